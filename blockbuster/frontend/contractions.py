"""Sums of products that are written by broadcasting, recorded as the products that they are.

    (x[:, :, None] * w[None]).sum(1)                     x @ w
    (x[:, None] @ w)[:, 0], with w: (K, N)               x @ w
    (a.transpose(1, 2, 0) * b).sum(2)                    (a * b[...]).sum(0), in the order of a

A product is made by matrix units only where the program says matmul, and a computed array is stored
in the order in which the program names its axes. So the same sum would become other kernels with
every way to write it. The letters of an einsum do not depend on that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from blockbuster.frontend.array import TracedArray, array_at
from blockbuster.frontend.kinds import FLOAT, MOVES
from blockbuster.frontend.operation import Operation
from blockbuster.frontend.program import Equation
from blockbuster.ir.graph import Value
from blockbuster.ir.lengths import ONE

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
UNIT = "."
"""Stands for an axis of one element, which no letter counts."""

VIEWS = ("transpose", "expand")

Einsum = Callable[[str, Sequence[Any]], TracedArray]


@dataclass(frozen=True)
class Shown:
    """An array whose axes are named: a letter each, or ``UNIT``."""

    array: TracedArray
    letters: str

    @property
    def own(self) -> str:
        """The letters without axes of one element."""
        return self.letters.replace(UNIT, "")


def contracted(asked: Operation, einsum: Einsum) -> TracedArray | None:
    """A sum or a matmul of floats as the einsum that it is; None if it is best as it stands."""
    _, op, operands, params, _ = asked
    if op == "sum" and operands[0].ndim <= len(LETTERS):
        return _sum(operands[0], params["axis"] % operands[0].ndim, params["keepdims"], einsum)
    if op == "matmul" and min(x.ndim for x in operands) > 1:
        return _rows_of_batches(operands[0], operands[1], einsum)
    return None


def _sum(x: TracedArray, axis: int, keeps: bool, einsum: Einsum) -> TracedArray | None:
    """The sum over an axis of a product of two arrays."""
    seen = _named(x)
    folded = seen.letters[axis]
    product = _before_views(seen)
    equation = equation_of(product.array)
    if folded == UNIT or equation is None or equation.op != "mul":
        return None
    factors = equation.arrays
    if len(factors) < 2:
        return None
    first, second = (_before_views(_aligned(x, f, product.letters)) for f in factors)
    if not first.array.kind == second.array.kind == FLOAT:
        return None
    if folded not in first.letters or folded not in second.letters:
        return None
    rows = [c for c in first.own if c not in second.own]
    columns = [c for c in second.own if c not in first.own]
    if not (rows and columns) and not _is_turned(first, second, product.own):
        return None
    output = seen.own.replace(folded, "")
    made = einsum(f"{first.own},{second.own}->{output}", (_plain(first), _plain(second)))
    shown = seen.letters[:axis] + UNIT * keeps + seen.letters[axis + 1 :]
    return _with_units(made, shown)


def _is_turned(first: Shown, second: Shown, order: str) -> bool:
    """True for a product in another order of axes than the computed array that has them all."""
    wider = max(first, second, key=lambda one: len(one.own))
    equation = equation_of(wider.array)
    is_computed = equation is not None and equation.op not in MOVES
    return is_computed and len(wider.own) == len(order) and wider.own != order


def _rows_of_batches(a: TracedArray, b: TracedArray, einsum: Einsum) -> TracedArray | None:
    """A matmul of single rows, or columns, for each of a batch that the other operand lacks."""
    batch = LETTERS[: max(a.ndim, b.ndim) - 2]
    row, column, inner = LETTERS[-3], LETTERS[-2], LETTERS[-1]
    first = _named(a, batch[len(batch) - (a.ndim - 2) :] + row + inner)
    second = _named(b, batch[len(batch) - (b.ndim - 2) :] + inner + column)
    only = [[c for c in batch if c in x.own and c not in y.own]
            for x, y in ((first, second), (second, first))]  # fmt: skip
    rows, columns = (row in first.own, column in second.own)
    moves = (not rows and only[0] and (columns or only[1])) or (
        not columns and only[1] and (rows or only[0])
    )
    if not moves or inner not in first.own or inner not in second.own:
        return None
    shown = "".join(c if c in first.own + second.own else UNIT for c in batch + row + column)
    text = f"{first.own},{second.own}->{shown.replace(UNIT, '')}"
    return _with_units(einsum(text, (_plain(first), _plain(second))), shown)


def _named(x: TracedArray, letters: str = LETTERS) -> Shown:
    """An array with the first of ``letters`` for its axes. No size is asked for: the trace would
    then hold for that size alone.
    """
    letters = letters[: x.ndim]
    units = [x.trace.dims.length(axis) == ONE for axis in x.axes]
    return Shown(x, "".join(UNIT if u else c for u, c in zip(units, letters, strict=True)))


def _aligned(x: TracedArray, value: Value, letters: str) -> Shown:
    """A factor of a product whose axes have these letters."""
    array = array_at(x.trace, value)
    return _named(array, letters[len(letters) - array.ndim :])


def equation_of(x: Any) -> Equation | None:
    """The equation that makes a traced array; None for inputs and for numbers."""
    made = isinstance(x, TracedArray) and x.value.node >= 0
    return x.trace.recorded[1][x.value.node] if made else None


def shows_windows(x: Any) -> bool:
    """True if a traced array is a view of windows, which may overlap."""
    equation = equation_of(x)
    while equation is not None and equation.op in MOVES and equation.op != "windows":
        (shown,) = equation.operands
        equation = equation_of(array_at(x.trace, shown)) if isinstance(shown, Value) else None
    return equation is not None and equation.op == "windows"


def along_windows(x: Any, letters: str) -> str:
    """The letter of the axis that runs along windows, where views show an array of windows."""
    seen = _before_views(Shown(x, letters)) if isinstance(x, TracedArray) else None
    equation = equation_of(seen.array) if seen else None
    return seen.letters[-1] if seen and equation and equation.op == "windows" else ""


def _before_views(seen: Shown) -> Shown:
    """The array that transposes and new axes show, with the letters that are shown of it."""
    equation = equation_of(seen.array)
    while equation is not None and equation.op in VIEWS:
        (shown,) = equation.operands
        assert isinstance(shown, Value)
        base = array_at(seen.array.trace, shown)
        letters = [UNIT] * base.ndim
        for letter, axis in zip(seen.letters, equation.param("axes"), strict=True):
            if axis is not None:
                letters[axis] = letter
        seen = Shown(base, "".join(letters))
        equation = equation_of(base)
    return seen


def _plain(seen: Shown) -> TracedArray:
    """The array without its axes of one element."""
    key = tuple(0 if letter == UNIT else slice(None) for letter in seen.letters)
    return seen.array if UNIT not in seen.letters else seen.array[key]


def _with_units(array: TracedArray, letters: str) -> TracedArray:
    """An array of the letters, with an axis of one element for each ``UNIT``."""
    if UNIT not in letters:
        return array
    return array[tuple(None if letter == UNIT else slice(None) for letter in letters)]
