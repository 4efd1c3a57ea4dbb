"""cancel-exactly: a value minus an equal value is 0, although compilers fuse products with sums.

before   t2 = t1 * t1                     after   t2 = t1 * t1   apart cancels
         t3 = row_max(t2)                         t3 = row_max(t2)
         t4 = t2 - t3                             t4 = t2 - t3

By default a compiler makes fma(t1, t1, -t3) of the difference. That rounds once, at the end, and t3
holds a product that is rounded already: at the maximum, t4 would be the rounding error of the
product, not 0. ``t2 - t2`` would be that error everywhere.

Invariant: a product that is added to a value, or subtracted from one, is rounded by itself if the
value may be an equal product. The value counts as a product if it is one that was selected, stored,
summed or averaged alone, multiplied by a mask, or rounded; a product plus something, and any other
function of a product, do not count. Products that meet other values are fused as before.

Products are equal if their factors are, in either order: x*x and square(x) are. A value that is
moved, loaded again, multiplied by 1 or added to 0 stays the same. Signs are ignored, since
x*y + (-x)*y is 0, too. Costs an operation for each product that would have been fused. A product
that is -0 becomes 0: the two compare as equal.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from blockbuster.emit.tile.alike import first_alike
from blockbuster.emit.tile.changed import changed
from blockbuster.emit.tile.dataflow import defined, mapped, operands, with_parts
from blockbuster.emit.tile.each_nest import KEPT, Body, Same
from blockbuster.emit.tile.program import (
    Await,
    Fold,
    Issue,
    Let,
    Load,
    Stmt,
    Store,
    Tile,
    TileProgram,
    View,
    statements,
)
from blockbuster.emit.tile.result_dtypes import FLOAT
from blockbuster.emit.tile.typed import takes_matrix_units
from blockbuster.emit.tile.workarounds import CANCELS
from blockbuster.ir.expr import COMMUTATIVE, Arg, Call, Const, Expr, functions_of
from blockbuster.ir.ops import Cast, Functional, Op, Pointwise, Relabel, Transpose
from blockbuster.ir.regroup import Regroup
from blockbuster.ir.types import Dim

SUMS = ("add", "sub", "sub0")
PRODUCTS = ("mul", "pow", "silu", "gelu")
"""Scalar functions that are a product, or end in one."""
PASSING = (
    *PRODUCTS, "div", "maximum", "minimum", "where", "abs", "relu", "floor", "round", "whole",
)  # fmt: skip
"""Scalar functions whose value may be that of an operand, whatever the others are."""


def cancel_exactly(program: TileProgram) -> TileProgram:
    """``program`` with the products marked that meet values that may be equal products."""
    bodies = _marked(tuple(Same(nest.body) for nest in program.nests), program.units)
    alike = (first_alike(body, program.inputs) for body in bodies)
    pairs = zip(program.nests, alike, strict=True)
    return with_parts(program, nests=tuple(with_parts(nest, body=body) for nest, body in pairs))


@lru_cache(maxsize=KEPT)
def _marked(bodies: tuple[Same[Body], ...], units: tuple[Dim, ...]) -> tuple[Body, ...]:
    """The bodies of all nests: a product may meet what another nest stored."""
    marked = _Values([body.one for body in bodies], units).marked()
    if not marked:
        return tuple(body.one for body in bodies)
    made = []
    for at, body in enumerate(bodies):

        def mark(stmt: Stmt, at: int = at) -> Stmt:
            if isinstance(stmt, Let) and (at, stmt) in marked and not is_rounded(stmt):
                return changed(stmt, apart=CANCELS)
            return stmt

        made.append(mapped(body.one, mark))
    return tuple(made)


def is_rounded(let: Let) -> bool:
    """True if the products in ``let`` are rounded by themselves already: there is only one."""
    if not let.apart or not isinstance(let.op, Pointwise):
        return bool(let.apart)
    expr = let.op.expr
    count = sum(fn in (*PRODUCTS, "square") for fn in functions_of(expr))
    return count == 1 and isinstance(expr, Call) and expr.fn in (*PRODUCTS, "square")


class Sum(NamedTuple):
    """A place where a compiler may fuse a product: the two values that are added."""

    left: int
    right: int


@dataclass
class _Numbers:
    """Values by numbers: equal ones have the same."""

    known: dict[Hashable, int] = field(default_factory=dict)
    parts: list[list[int]] = field(default_factory=list)
    """For each value, the other values that it may equal."""
    products: dict[int, dict[tuple[int, Let], None]] = field(default_factory=dict)
    """The numbers of products, each with the statements that compute it, and their nests."""
    seen_as: list[tuple[int, ...]] = field(default_factory=list)
    """For each value, the products that a compiler may see where the value is used."""

    def of(self, key: Hashable, parts: Sequence[int] = (), seen_as: Sequence[int] = ()) -> int:
        """The number of a value, which may be one of ``parts``."""
        number = self.known.setdefault(key, len(self.parts))
        if number == len(self.parts):
            self.parts.append([*parts])
            self.seen_as.append(tuple(seen_as))
        return number

    def product(self, key: Hashable, parts: Sequence[int], where: tuple[int, Let]) -> int:
        """The number of a product that a statement computes."""
        number = self.of(key, parts)
        self.seen_as[number] = (number,)
        self.products.setdefault(number, {})[where] = None
        return number

    def may_be(self) -> list[int]:
        """For each value, the set of products that it may equal, as bits of a number."""
        bits = {number: 1 << at for at, number in enumerate(self.products)}
        found = [bits.get(number, 0) for number in range(len(self.parts))]
        while True:  # accumulators and arrays may equal values that are computed later
            before = [*found]
            for number, parts in enumerate(self.parts):
                for part in parts:
                    found[number] |= found[part]
            if found == before:
                return found


class _Values:
    """The values of a program, and the sums among them."""

    def __init__(self, bodies: Sequence[Body], units: tuple[Dim, ...]) -> None:
        self._numbers = _Numbers()
        self._units = units
        self._sums: dict[Sum, None] = {}
        self._zero, self._one, self._two = (self._numbers.of(Const(float(n))) for n in range(3))
        for at, body in enumerate(bodies):
            self._body(at, body)

    def marked(self) -> dict[tuple[int, Let], None]:
        """The statements whose products have to be rounded by themselves, with their nests."""
        if not self._numbers.products:
            return {}
        numbers, may_be = self._numbers, self._numbers.may_be()
        bits = {number: 1 << at for at, number in enumerate(numbers.products)}
        found: dict[tuple[int, Let], None] = {}
        for left, right in self._sums:
            for one, other in ((left, right), (right, left)):
                for product in numbers.seen_as[one]:
                    if may_be[other] & bits[product]:
                        found |= numbers.products[product]
        return found

    # statements ----------------------------------------------------------------------

    def _body(self, at: int, whole: Body) -> None:
        body = [*statements(whole)]
        views = {stmt.token: stmt.view for stmt in body if isinstance(stmt, Issue)}
        tiles: dict[Tile, int] = {}

        def of(tile: Tile) -> int:
            """The number of a tile; an accumulator may be all that is folded to it."""
            return tiles.setdefault(tile, self._numbers.of((at, tile)))

        for stmt in body:
            made = defined(stmt)
            match stmt:
                case Load(target, view):
                    tiles[target] = self._loaded(view)
                case Await(target, token):
                    tiles[target] = self._loaded(views[token])
                case Let():
                    args = [of(arg) for arg in stmt.args]
                    tiles[stmt.target] = self._rounded(stmt, self._let((at, stmt), args))
                case Store(view, value):
                    self._numbers.parts[self._array(view)].append(of(value))
                case Fold(target, members=members):
                    self._numbers.parts[of(target)] += map(of, operands(stmt))
                    for member in members:
                        self._numbers.parts[of(member.target)] += [of(target), of(member.value)]
                case _ if made is not None and operands(stmt):
                    parts = [of(tile) for tile in operands(stmt)]
                    tiles[made] = self._numbers.of((at, made), parts)

    def _array(self, view: View) -> int:
        return self._numbers.of(("array", view.buffer.name))

    def _loaded(self, view: View) -> int:
        return self._numbers.of(("load", view), [self._array(view)])

    def _rounded(self, let: Let, number: int) -> int:
        """What is kept of a value: narrower dtypes keep another one."""
        if let.target.dtype in (FLOAT, ""):
            return number
        return self._numbers.of(("rounded", let.target.dtype, number), [number])

    def _let(self, where: tuple[int, Let], args: list[int]) -> int:
        op: Op = where[1].op
        match op:
            case Relabel() | Transpose() | Regroup():
                return args[0]
            case Cast(dtype):
                return args[0] if dtype == FLOAT else self._numbers.of((op, *args), args)
            case Pointwise(expr):
                return self._expression(expr, args, where)
            case Functional("dot") if takes_matrix_units(where[1], self._units):
                return self._numbers.of((op, *args))
            case Functional("dot"):
                return self._call("mul", args, where)
            case _:  # a reduction of one lane is the value itself
                return self._numbers.of((op, *args), args, self._numbers.seen_as[args[0]])

    # expressions ---------------------------------------------------------------------

    def _expression(self, expr: Expr, args: Sequence[int], where: tuple[int, Let]) -> int:
        match expr:
            case Arg(index):
                return args[index]
            case Call(fn, inner):
                return self._call(fn, [self._expression(e, args, where) for e in inner], where)
            case Const(value):
                return self._numbers.of(Const(abs(value)))
        return self._numbers.of(expr)

    def _call(self, fn: str, args: list[int], where: tuple[int, Let]) -> int:
        if fn == "square" or (fn == "pow" and args[1] == self._two):
            fn, args = "mul", [args[0]] * 2
        neutral = {"add": self._zero, "sub": self._zero, "mul": self._one, "div": self._one}
        if fn == "neg" or args[1:] == [neutral.get(fn)]:
            return args[0]
        if fn in COMMUTATIVE and args[0] == neutral.get(fn):
            return args[1]
        if fn in SUMS:
            self._sums[Sum(args[0], args[1])] = None
        if fn == "round":  # it compares what is left of its operand with a half
            self._sums[Sum(args[0], args[0])] = None
        key = (fn, *(sorted(args) if fn in COMMUTATIVE else args))
        if fn in PRODUCTS:
            return self._numbers.product(key, args, where)
        return self._numbers.of(key, args if fn in PASSING else ())
