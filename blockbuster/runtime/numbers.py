"""Notes of how a launcher makes its numbers, as one Python function.

A list of notes that is read one by one takes several microseconds at each new layout; the function
takes one. Its text is made of the notes' whole numbers alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from types import CodeType, FunctionType
from typing import Any

SIZE, STEP, NUMBER, TIMES, BLOCKS = range(5)
Note = tuple[int, Any, Any]
"""How a number is made: the size of a dim, a stride (array, axis), itself, a product of two earlier
ones, or a quotient of two that is rounded up.
"""

Pairs = Sequence[tuple[int, int]]
Numbers = tuple[int, ...]
Made = tuple[Numbers, Numbers, tuple[int, ...]]


class Arithmetic:
    """All numbers of ``notes``, sums of products of some, and what Triton tells of others.

    ``spans``: for each array the pairs of numbers whose products are summed. ``told``: the numbers
    that are told apart, as 1, multiples of 16 and all others.
    """

    def __init__(self, notes: Sequence[Note], spans: Iterable[Pairs], told: Iterable[int]) -> None:
        self._dims = tuple(dict.fromkeys(one for kind, one, _ in notes if kind == SIZE))
        of_dim = {dim: place for place, dim in enumerate(self._dims)}
        made = "".join(f"(n{at} := {_expression(note, of_dim)})," for at, note in enumerate(notes))
        sums = "".join(f"{' + '.join(f'n{a} * n{b}' for a, b in s) or 0}," for s in spans)
        kinds = "".join(f"2 if n{at} == 1 else not n{at} & 15," for at in told)
        self._function = _function(f"lambda s, z: (({made}), ({sums}), ({kinds}))")

    def __call__(self, strides: Sequence[Sequence[int]], sizes: Any) -> Made:
        """The numbers, the sums, and what is told, for arrays with these strides."""
        found: Made = self._function(strides, [sizes[dim] for dim in self._dims])
        return found


def _expression(note: Note, of_dim: dict[Any, int]) -> str:
    kind, one, other = note
    if kind == SIZE:
        return f"z[{of_dim[one]:d}]"
    if kind == STEP:
        return f"s[{one:d}][{other:d}]"
    if kind == TIMES:
        return f"n{one:d} * n{other:d}"
    return f"-(-n{one:d} // n{other:d})" if kind == BLOCKS else f"{one:d}"


def _function(text: str) -> Callable[..., Any]:
    """The function that an expression is; it reads nothing but its arguments."""
    constants = compile(text, "<numbers of a launcher>", "eval").co_consts
    (code,) = [constant for constant in constants if isinstance(constant, CodeType)]
    return FunctionType(code, {})


def picked(places: Sequence[int]) -> Callable[[Numbers], Numbers]:
    """A function that gives the numbers at these places."""
    if len(places) > 1:
        return itemgetter(*places)
    return lambda numbers: tuple([numbers[place] for place in places])
