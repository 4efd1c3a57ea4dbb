"""Two adjacent axes of a program as one: how each operator is written for the merged axis.

Every value of the program has its old shape with the two dims replaced by one wherever they stand
side by side. Axes of extent 1 stay as they are; where two of them meet a merged axis, one is
dropped by a view. ``MERGING`` holds one function per operator. It returns the new value, or raises
``Apart`` with the reason why the operator tells the two axes apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from blockbuster.frontend.plain_folds import FOLDS
from blockbuster.frontend.program import ArrayProgram, Equation, Operand, Shape
from blockbuster.frontend.shapes import SCANS
from blockbuster.ir.expr import FUNCTIONS, Arg, Call, Const, Expr, Size, sizes_in
from blockbuster.ir.expr_lengths import length_of
from blockbuster.ir.extents import Lengths
from blockbuster.ir.graph import Value
from blockbuster.ir.length_symbols import Clamp
from blockbuster.ir.lengths import Length, inverse, size
from blockbuster.ir.types import Dim


class Apart(Exception):
    """An operator tells two axes apart, or a size of one of them is used alone."""


@dataclass(frozen=True)
class Pair:
    """Two dims that stand side by side, and the dim that replaces them."""

    first: Dim
    second: Dim
    name: Dim

    def places(self, shape: Shape) -> tuple[int, ...]:
        """Where the first dim of each occurrence stands. Raises Apart if one stands alone."""
        both = (self.first, self.second)
        found = tuple(i for i in range(len(shape) - 1) if shape[i : i + 2] == both)
        if not (len(found) == shape.count(self.first) == shape.count(self.second)):
            raise Apart(f"{self.first} and {self.second} are not side by side in {shape}")
        return found

    def merged(self, shape: Shape) -> Shape:
        """A shape with one dim in place of the two."""
        places = self.places(shape)
        seconds = [place + 1 for place in places]
        return tuple(
            self.name if at in places else axis for at, axis in enumerate(shape)
            if at not in seconds
        )  # fmt: skip

    def length(self, length: Length) -> Length:
        """A length with one size for the product of the two. Raises Apart for another use."""
        top, under = length.fraction
        if under.dims:
            return self.length(top) * inverse(self.length(under))
        terms = []
        for symbols, share in length.terms:
            inside = [dim for s in symbols if isinstance(s, Clamp) for dim in s.of.dims]
            count = symbols.count(self.first)
            alone = count != symbols.count(self.second)
            if alone or self.first in inside or self.second in inside:
                raise Apart(f"{length} reads the size of {self.first} or {self.second} alone")
            others = Length(((tuple(s for s in symbols if not self._is_one(s)), share),))
            for _ in range(count):
                others = others * size(self.name)
            terms.append(others)
        return sum(terms, Length())

    def expr(self, expr: Expr) -> Expr:
        """The same for a scalar expression."""
        if not any(self._is_one(dim) for dim in sizes_in(expr)):
            return expr
        length = length_of(expr)
        if length is not None and not length.fraction[1].dims:
            return self.length(length).expr
        if isinstance(expr, Call):
            return Call(expr.fn, tuple(map(self.expr, expr.args)))
        raise Apart(f"the size of {self.first} or {self.second} is read alone")

    def _is_one(self, symbol: object) -> bool:
        return symbol in (self.first, self.second)


def renumbered(axis: int, places: Sequence[int]) -> int:
    """The number of an axis, counted from the front, after the pairs at ``places`` merged."""
    return axis - sum(place < axis for place in places)


@dataclass(frozen=True)
class _Half:
    """A fold over one of two axes: it waits for the fold over the other one."""

    source: Value
    axis: int
    """The merged axis of the source."""
    other: int
    """The other axis, as the next fold has to name it."""
    op: str


@dataclass
class Merging:
    """The equations of a program, written anew for one pair."""

    old: ArrayProgram
    pair: Pair
    equations: list[Equation] = field(default_factory=list)
    now: dict[Value, Value] = field(default_factory=dict)
    half: dict[Value, _Half] = field(default_factory=dict)

    def run(self) -> None:
        """Write all equations. Raises Apart if one cannot be written."""
        for port, given in enumerate(self.old.inputs):
            self.pair.places(given.shape)
            self.now[Value(-1, port)] = Value(-1, port)
        for position, equation in enumerate(self.old.equations):
            made = self._written(equation)
            if isinstance(made, _Half):
                self.half[Value(position)] = made
            else:
                self.now[Value(position)] = made

    def value(self, operand: Operand) -> Value:
        """The new value of an operand, which is an array. Raises Apart for half of a fold."""
        assert isinstance(operand, Value)
        if operand in self.half:
            raise Apart("an operator reads what was folded over one axis alone")
        return self.now[operand]

    def shape(self, operand: Operand) -> Shape:
        """The old shape of an operand."""
        assert isinstance(operand, Value)
        return self.old.shape_of(operand)

    def add(self, equation: Equation) -> Value:
        """An equation, with the shape that it has in the new program."""
        self.equations.append(equation)
        return Value(len(self.equations) - 1)

    def made(self, old: Equation, operands: Sequence[Operand], **params: Any) -> Value:
        """The new form of an equation: with other operands, and with some parameters changed."""
        known = tuple(
            (key, params[key] if key in params else self._param(value)) for key, value in old.params
        )
        shape = self.pair.merged(old.shape)
        return self.add(replace(old, operands=tuple(operands), params=known, shape=shape))

    def fitted(self, operand: Operand, rank: int, places: Sequence[int]) -> Value:
        """An operand that broadcasts to ``rank`` axes with pairs at ``places``: of two axes of
        extent 1 that meet a merged axis, one is dropped.
        """
        shape = self.shape(operand)
        value, offset = self.value(operand), rank - len(shape)
        own, drop = self.pair.places(shape), []
        for at in (place - offset for place in places):
            if at < 0 or at in own:
                continue
            assert shape[at : at + 2] == (1, 1), "one of the two does not stand alone"
            drop.append(renumbered(at, own))
        return self.without(value, drop)

    def without(self, value: Value, drop: Sequence[int]) -> Value:
        """A view of a new value without some axes of extent 1."""
        if not drop:
            return value
        if value.node < 0:
            given = self.old.inputs[value.port]
            shape, kind = self.pair.merged(given.shape), given.kind
        else:
            shape, kind = self.equations[value.node].shape, self.equations[value.node].kind
        axes = tuple(i for i in range(len(shape)) if i not in drop)
        kept = tuple(shape[i] for i in axes)
        return self.add(Equation("expand", (value,), (("axes", axes),), kept, kind))

    def _written(self, equation: Equation) -> Value | _Half:
        if equation.op in FUNCTIONS:
            return _pointwise(self, equation)
        return MERGING[equation.op](self, equation)

    def _param(self, value: Any) -> Any:
        if isinstance(value, Length):
            return self.pair.length(value)
        if isinstance(value, Lengths):
            return Lengths(tuple(map(self.pair.length, value.extents)))
        return self.pair.expr(value) if isinstance(value, Const | Size | Call | Arg) else value

    def outside(self, equation: Equation, operand: Operand) -> int:
        """The axis that an operator names, in the new numbers. Raises Apart if it is one of two."""
        shape = self.shape(operand)
        places, axis = self.pair.places(shape), equation.param("axis") % len(shape)
        if axis in places or axis - 1 in places:
            raise Apart(f"{equation.op} runs along one of two axes")
        return renumbered(axis, places)


def _pointwise(merging: Merging, equation: Equation) -> Value:
    places, rank = merging.pair.places(equation.shape), len(equation.shape)
    return merging.made(equation, [_fitted(merging, o, rank, places) for o in equation.operands])


def _fitted(merging: Merging, operand: Operand, rank: int, places: Sequence[int]) -> Operand:
    if isinstance(operand, Value):
        return merging.fitted(operand, rank, places)
    return operand if operand is None else merging.pair.expr(operand)


def _plain(merging: Merging, equation: Equation) -> Value:
    """An operator for which axes mean nothing."""
    return merging.made(equation, [merging.value(operand) for operand in equation.operands])


def _along_axis(merging: Merging, equation: Equation) -> Value:
    """An operator along one axis that is none of the two."""
    axis = merging.outside(equation, equation.operands[0])
    return merging.made(equation, [merging.value(equation.operands[0])], axis=axis)


def _fold(merging: Merging, equation: Equation) -> Value | _Half:
    """A fold over another axis; or over one of two, which is half of a fold over the merged."""
    (operand,) = equation.operands
    assert isinstance(operand, Value)
    axis = equation.param("axis") % len(merging.shape(operand))
    half = merging.half.get(operand)
    if half is not None:
        if (half.op, half.other) != (equation.op, axis):
            raise Apart("a fold over one axis is not followed by one over the other")
        params = (("axis", half.axis), ("keepdims", False))
        shape = merging.pair.merged(equation.shape)
        return merging.add(replace(equation, operands=(half.source,), params=params, shape=shape))
    places = merging.pair.places(merging.shape(operand))
    for place in places:
        if axis in (place, place + 1):  # folds are plain: they drop their axis
            return _Half(merging.value(operand), renumbered(place, places), place, equation.op)
    return _along_axis(merging, equation)


def _norm(merging: Merging, equation: Equation) -> Value:
    x, *weights = equation.operands
    places, rank = merging.pair.places(merging.shape(x)), len(merging.shape(x))
    if rank - 2 in places:
        raise Apart(f"{equation.op} runs along the second of two axes")
    fitted = [_fitted(merging, weight, rank, places) for weight in weights]
    return merging.made(equation, [merging.value(x), *fitted])


def _matmul(merging: Merging, equation: Equation) -> Value:
    """Both axes are batch axes of the product, or the last batch axis and the rows on the left.

    If a product sums over one of them, the other one stands alone in its result.
    """
    a, b = equation.operands
    shapes = merging.shape(a), merging.shape(b)
    behind = [[len(s) - p for p in merging.pair.places(s)] for s in shapes]  # counted from the end
    batch = tuple(dict.fromkeys(at for one in behind for at in one if at > 3))
    left, right = (
        merging.fitted(operand, len(shape), [len(shape) - at for at in batch])
        for operand, shape in zip((a, b), shapes, strict=True)
    )
    if 3 in behind[0] and len(shapes[1]) > 2:
        assert shapes[1][-3] == 1, "one of the two does not stand alone"
        rank = len(shapes[1]) - sum(at <= len(shapes[1]) for at in batch)
        right = merging.without(right, [rank - 3])
    return merging.made(equation, [left, right])


def _view(merging: Merging, equation: Equation) -> Value:
    """A transpose, or new axes of extent 1: the two stay neighbours in their order."""
    (x,) = equation.operands
    places = merging.pair.places(merging.shape(x))
    axes: list[int | None] = list(equation.param("axes"))
    for place in places:
        at = axes.index(place)
        if axes[at + 1 : at + 2] != [place + 1]:
            raise Apart(f"{equation.op} moves one of two axes")
    seconds = [place + 1 for place in places]
    new = [a if a is None else renumbered(a, places) for a in axes if a not in seconds]
    return merging.made(equation, [merging.value(x)], axes=tuple(new))


def _concat(merging: Merging, equation: Equation) -> Value:
    axes = [merging.outside(equation, operand) for operand in equation.operands]
    operands = [merging.value(operand) for operand in equation.operands]
    return merging.made(equation, operands, axis=axes[0])


def _reshape(merging: Merging, equation: Equation) -> Value:
    """The same elements in the same order, whatever merges; nothing is left if shapes are equal."""
    (x,) = equation.operands
    value, pair = merging.value(x), merging.pair
    if pair.merged(merging.shape(x)) == pair.merged(equation.shape):
        return value
    extents = list(equation.param("shape").extents)
    for place in reversed(pair.places(equation.shape)):
        extents[place : place + 2] = [extents[place] * extents[place + 1]]
    return merging.made(equation, [value], shape=Lengths(tuple(map(pair.length, extents))))


def _opaque(merging: Merging, equation: Equation) -> Value:
    """A function of whole arrays sees their shapes."""
    shapes = [equation.shape, *(merging.shape(operand) for operand in equation.operands)]
    if any(map(merging.pair.places, shapes)):
        raise Apart(f"{equation.param('name')} is given an array with both axes")
    return _plain(merging, equation)


def _windows(merging: Merging, equation: Equation) -> Value:
    (x,), axis = equation.operands, equation.param("axis")
    own = (axis - 1, axis, len(equation.shape) - 2)  # the places of pairs with an axis made here
    if any(place in own for place in merging.pair.places(equation.shape)):
        raise Apart(f"{equation.op} makes one of two axes")
    return merging.made(equation, [merging.value(x)], axis=merging.outside(equation, x))


MERGING: Mapping[str, Callable[[Merging, Equation], Value | _Half]] = {
    **dict.fromkeys(FOLDS, _fold),
    **dict.fromkeys(("softmax", "log_softmax", "logsumexp", *SCANS), _along_axis),
    **dict.fromkeys(("slice", "strided"), _along_axis),
    **dict.fromkeys(("rms_norm", "layer_norm"), _norm),
    **dict.fromkeys(("cast", "arange"), _plain),
    **dict.fromkeys(("transpose", "expand"), _view),
    "matmul": _matmul, "concat": _concat, "reshape": _reshape, "custom": _opaque,
    "windows": _windows,
}  # fmt: skip
"""For each operator that is not pointwise, how it is written for a merged axis."""
