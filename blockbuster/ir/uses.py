"""The readers of each value in a level, and the order of results that follows from them.

Results stand in order of first use, consumers before producers (``canonical.py``). That order is a
traversal of the whole level; this module compares two reads by looking only near them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import repeat
from typing import NamedTuple

from blockbuster.ir.graph import Node, Value

LOOK_AHEAD = 4
"""How many readers away two nodes may meet whose order is told without sorting the level."""


class Uses(NamedTuple):
    """Nodes, their rank in a dependency order, what reads each value, and where values leave."""

    nodes: Mapping[int, Node]
    rank: Mapping[int, int]
    readers: Mapping[Value, Mapping[int, None]]
    leaves_at: Mapping[Value, int]

    def path(self, producer: int, consumer: int) -> bool:
        """True if ``consumer`` depends on ``producer``, directly or through others."""
        first = self.rank[producer]
        seen, stack = {consumer}, [consumer]
        while stack:
            for value in self.nodes[stack.pop()].operands:
                node = value[0]
                if node == producer:
                    return True
                if node >= 0 and node not in seen and self.rank[node] > first:
                    seen.add(node)
                    stack.append(node)
        return False

    def surely_before(self, first: Value, second: Value, ahead: int = 0) -> bool:
        """True if of two results of a node the first is used first in any case.

        It is if a reader of it comes before all of the second's. Outputs come before readers.
        ``ahead`` is how many readers away two nodes may meet by whose operands that is told: what
        is told without looking ahead rests on the node's own readers, and on paths among them.
        """
        at, later = self.leaves_at.get(first), self.leaves_at.get(second)
        if at is not None or later is not None:
            return at is not None and (later is None or at < later)
        if not self.readers.get(first):
            return False
        last = max(self.readers[first], key=self.rank.__getitem__)
        return all(
            self._reads_first(last, first, reader, second, ahead)
            for reader in self.readers.get(second, ())
        )

    def _reads_first(self, a: int, x: Value, b: int, y: Value, depth: int) -> bool:
        """True if consumers first, the read of ``x`` by node ``a`` comes before that by ``b``."""
        if a != b:
            return self._surely_earlier(a, b, depth)
        operands = self.nodes[a].operands
        return operands.index(x) < operands.index(y)

    def _surely_earlier(self, a: int, b: int, depth: int) -> bool:
        """True if node ``a`` comes before ``b`` in any case, consumers first.

        It does if it depends on ``b``, or if all that reads it comes before all that reads ``b``:
        then it may come as soon, and was read first.
        """
        if self.path(b, a):
            return True
        ends = [value for key in (a, b) for value in results_of(self.nodes, key)]
        if not depth or any(value in self.leaves_at for value in ends):
            return False
        return all(
            self._reads_first(reader, x, other, y, depth - 1)
            for x in results_of(self.nodes, a)
            for reader in self.readers.get(x, ())
            for y in results_of(self.nodes, b)
            for other in self.readers.get(y, ())
        )


def results_of(nodes: Mapping[int, Node] | Sequence[Node], key: int) -> list[Value]:
    """The results of a node."""
    return [*map(_value, zip(repeat(key), range(len(nodes[key].types)), strict=False))]


_value = partial(tuple.__new__, Value)
"""``Value`` of a pair, three times as fast: some maps have hundreds of results."""
