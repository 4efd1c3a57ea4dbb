"""The facts about sizes on which a trace depends: it serves all sizes that share them.

Each question that a trace asks about sizes is a fact: is this axis of extent 1, are these two
equally long, does a slice end inside? A trace serves all sizes for which every answer is the same.
Sizes are polynomials of the extents of the examples' axes, which are numbered in the order of the
inputs: ``?0``, ``?1``, ...
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from blockbuster.ir.completion import total_of
from blockbuster.ir.formula import function_of
from blockbuster.ir.lengths import Length
from blockbuster.ir.types import Dim

Relation = Literal["equal", "at least", "whole"]
"""Two sizes are equal; the first is at least the second; their difference is a whole number."""

def axis_named(number: int) -> Dim:
    """The raw dim of the axis of that number, of all axes of the examples."""
    return f"?{number}"


class SizeFacts:
    """The questions of one trace, with their answers."""

    def __init__(self) -> None:
        self._facts: dict[tuple[Relation, Length], bool] = {}

    def __len__(self) -> int:
        return len(self._facts)

    def ask(
        self, relation: Relation, left: Length, right: Length, extents: Mapping[Dim, int]
    ) -> bool:
        """Whether the relation is true for these extents of axes; it is remembered."""
        apart = left - right
        total, divisor = apart.total(extents)
        answer = _answer(relation, total, divisor)
        if relation == "whole" and divisor == 1:
            return answer
        self._facts[relation, apart] = answer
        return answer

    def condition(self) -> Callable[[Sequence[int]], bool]:
        """True of the extents of all axes if a trace with such examples would get the same answers
        to the questions asked so far. Every new size asks for it, so it is one function.

        >>> from blockbuster.ir.lengths import ONE, size
        >>> facts = SizeFacts()
        >>> facts.ask("equal", size("?0"), ONE, {"?0": 5})
        False
        >>> holds = facts.condition()
        >>> holds([7]), holds([1])
        (True, False)
        """
        texts = [_text(*fact, answer) for fact, answer in self._facts.items()]
        return function_of(f"lambda e: {' and '.join(texts) or True}", "facts of sizes")


def _answer(relation: Relation, total: int, divisor: int) -> bool:
    if relation == "equal":
        return total == 0
    return total >= 0 if relation == "at least" else total % divisor == 0


def _text(relation: Relation, apart: Length, answer: bool) -> str:
    """That a question has this answer, of the extents ``e``, as Python."""
    total, divisor = total_of(apart, {dim: f"e[{int(dim[1:]):d}]" for dim in apart.dims})
    if relation == "equal":
        return f"{total} {'==' if answer else '!='} 0"
    if relation == "at least":
        return f"{total} {'>=' if answer else '<'} 0"
    return f"{total} % {divisor} {'==' if answer else '!='} 0"
