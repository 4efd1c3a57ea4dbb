"""Programs under construction: a value's type and further facts about it.

A term knows over which dims it is *partial* (a fold of the current block only, to be completed with
the same monoid) and how many bits its elements may need where inputs are small integers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from blockbuster.ir.builder import Builder
from blockbuster.ir.graph import Index, Read, Value
from blockbuster.ir.ops import Collect, Map, Op
from blockbuster.ir.types import Dim, Type

INPUT_BITS = 2  # elements of inputs lie between -2 and 2


class Term(NamedTuple):
    """A value and what is known of it: the monoid ``fold`` completes it over ``partial``."""

    value: Value
    type: Type
    bits: int = INPUT_BITS
    fold: str = ""
    partial: frozenset[Dim] = frozenset()

    def depends_on(self, dims: frozenset[Dim]) -> bool:
        """True if elements change along one of ``dims``, or are partial there."""
        return bool(dims & (self.partial | set(self.type.axes)))

    def varies_along(self, dim: Dim) -> bool:
        """True if the value is not the same for all blocks of ``dim``, or partial there."""
        return dim in self.type.lists or dim in self.type.axes or dim in self.partial


Make = Callable[..., Sequence[Value]]
"""``make(builder, ports, *operands)`` adds what computes these results; returns their values."""
Reads = Callable[[list[int]], list[Value]]
"""What is read for the results ``ports``: the operands of ``make``."""


@dataclass
class Level:
    """A graph that is being drawn: a program or the body of a map.

    Most of what is drawn leads to no output, so nothing is built before the outputs are known.
    """

    enclosing: tuple[Dim, ...] = ()
    inputs: list[tuple[Type, Read | Index | None, str]] = field(default_factory=list)
    nodes: list[tuple[Make, Reads]] = field(default_factory=list)
    terms: list[Term] = field(default_factory=list)
    local: list[Term] = field(default_factory=list)
    """The items among the terms."""
    listed: list[Term] = field(default_factory=list)
    """The lists among the terms."""
    found: dict[tuple[Value, ...], dict[int, list[int]]] = field(default_factory=dict)
    """What is ``needed`` for some ends."""

    def given(self, type: Type, view: Read | Index | None = None, hint: str = "") -> None:
        """A new input."""
        self.inputs.append((type, view, hint))
        self.keep(Term(Value(-1, len(self.inputs) - 1), type))

    def entered(self, term: Term, *, iterated: bool) -> None:
        """A term of the level around, or its entries, as a new input of a body."""
        _, type, bits, fold, partial = term
        if iterated:
            type = type.element()
        value = Value(-1, len(self.inputs))
        self.inputs.append((type, None, ""))
        self.keep(Term(value, type, bits, fold, partial))

    def keep(self, term: Term) -> None:
        """Let what is drawn next use ``term``."""
        self.terms.append(term)
        (self.listed if term.type.lists else self.local).append(term)

    def draw(self, make: Make, reads: Reads) -> int:
        """The number of a new node."""
        self.nodes.append((make, reads))
        return len(self.nodes) - 1

    def add(
        self, op: Op, operands: Sequence[Term], bits: int, fold: str, partial: frozenset[Dim]
    ) -> None:
        """A new node with one result."""
        (type,) = op.result_types(tuple([t.type for t in operands]))
        values = [t.value for t in operands]
        node = self.draw(lambda builder, _, *given: builder.add(op, *given), lambda _: values)
        self.keep(Term(Value(node), type, bits, fold if partial else "", partial))

    def needed(self, ends: Sequence[Term]) -> dict[int, list[int]]:
        """The nodes that ``ends`` are made of, with their results; those of -1 are inputs."""
        values = tuple([term.value for term in ends])
        if values not in self.found:
            ports: dict[int, set[int]] = {-1: set()}
            for node, port in values:
                ports.setdefault(node, set()).add(port)
            for node in range(max(ports), -1, -1):
                if node in ports:
                    for before, port in self.nodes[node][1](sorted(ports[node])):
                        ports.setdefault(before, set()).add(port)
            self.found[values] = {node: sorted(ports[node]) for node in sorted(ports)}
        return self.found[values]

    def built(self, ends: Sequence[Term], inputs: Iterable[int]) -> tuple[Builder, list[Value]]:
        """A builder with these inputs and what ``ends`` are made of, and their values there."""
        builder = Builder()
        values = {Value(-1, port): builder.input(*self.inputs[port]) for port in inputs}
        for node, ports in self.needed(ends).items():
            if node >= 0:
                make, reads = self.nodes[node]
                made = make(builder, ports, *[values[v] for v in reads(ports)])
                for port, value in zip(ports, made, strict=True):
                    values[Value(node, port)] = value
        return builder, [values[term.value] for term in ends]


def adds(a: Term, b: Term) -> bool:
    """True if a sum of the two is a whole value, or a partial sum over the dims of both."""
    return a.partial == b.partial and (not a.partial or a.fold == b.fold == "+")


def multiplies(a: Term, b: Term) -> bool:
    """True if a product is whole or a partial sum: neither varies where the other is partial."""
    if not a.partial and not b.partial:
        return True
    sums = all(not t.partial or t.fold == "+" for t in (a, b))
    return sums and not a.depends_on(b.partial) and not b.depends_on(a.partial)


def add_map(
    builder: Builder,
    dim: Dim,
    iterated: Sequence[Value],
    broadcast: Sequence[Value],
    body: Callable[..., Value],
) -> Value:
    """A map that collects ``body(inner builder, *its inputs)``."""
    inner = Builder()
    inputs = [inner.input(builder.type_of(v).element()) for v in iterated]
    inputs += [inner.input(builder.type_of(v)) for v in broadcast]
    graph = inner.finish(body(inner, *inputs))
    flags = (True,) * len(iterated) + (False,) * len(broadcast)
    return builder.add(Map(dim, graph, flags, (Collect(),)), *iterated, *broadcast)[0]
