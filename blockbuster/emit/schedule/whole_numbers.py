"""Formulas of indices, sizes and integers: which are integers, and their extremes in a block."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from blockbuster.emit.schedule.conditions import Formulas
from blockbuster.emit.tile.program import Iota, Let, Tile
from blockbuster.ir.dtypes import INTEGERS
from blockbuster.ir.expr import Arg, Call, Const, Expr, Size, call, substitute
from blockbuster.ir.ops import Functional, Pointwise
from blockbuster.ir.origin import Origin

WHOLE = ("add", "sub", "neg", "mul", "abs", "maximum", "minimum", "whole")
"""Functions that give whole numbers for whole numbers."""

Leaf = Callable[[Tile, bool], Expr]
"""The first index of a vector of them in the current block, or the last one."""


def is_whole(expr: Expr, formulas: Formulas) -> bool:
    """True if a formula is a whole number, whatever the data."""
    match expr:
        case Arg(index):
            return isinstance(formulas.made.get(formulas.leaves[index]), Iota)
        case Const(value):
            return value.is_integer()
        case Size():
            return True
        case Call("floordiv", (a, Const(divisor))):
            return divisor > 0 and divisor.is_integer() and is_whole(a, formulas)
    return expr.fn in WHOLE and all(is_whole(arg, formulas) for arg in expr.args)


def of_indices(expr: Expr, formulas: Formulas) -> bool:
    """True if a formula is whole but for divisions by numbers: ``extreme`` follows it."""
    match expr:
        case Call("div", (a, Const())):
            return of_indices(a, formulas)
        case Call("floordiv"):
            return is_whole(expr, formulas)
        case Call(fn, args) if fn in WHOLE:
            return all(of_indices(arg, formulas) for arg in args)
        case Call():
            return False
    return isinstance(expr, Const) or is_whole(expr, formulas)


def extreme(expr: Expr, formulas: Formulas, leaf: Leaf, *, most: bool) -> Expr:
    """The most (or least) that a formula of indices is in a block, and perhaps more (or less).

    Exact where no index vector stands in it twice.
    """

    def of(part: Expr, most: bool) -> Expr:
        return extreme(part, formulas, leaf, most=most)

    match expr:
        case Arg(index):
            return leaf(formulas.leaves[index], most)
        case Call("sub", (a, b)):
            return call("sub", of(a, most), of(b, not most))
        case Call("whole", (a,)):
            return of(a, most)
        case Call("neg", (a,)):
            return call("neg", of(a, not most))
        case Call("abs", (a,)):
            sides = of(a, True), call("neg", of(a, False))
            if most:
                return call("maximum", *sides)
            return call("maximum", call("maximum", of(a, False), call("neg", of(a, True))), 0.0)
        case Call("mul", (a, b)):
            return _product(a, b, of, most)
        case Call("div", (a, Const(divisor) as b)):
            return call("div", of(a, most if divisor > 0 else not most), b)
        case Call("floordiv", (a, b)):  # of whole numbers by a positive one: it grows with them
            return call("floordiv", call("whole", of(a, most)), b)
        case Call(fn, (a, b)):  # sums, maxima and minima grow with both
            return call(fn, of(a, most), of(b, most))
    return expr


def _product(a: Expr, b: Expr, of: Callable[[Expr, bool], Expr], most: bool) -> Expr:
    if isinstance(a, Const):
        a, b = b, a
    if isinstance(b, Const):
        return call("mul", of(a, most if b.value >= 0 else not most), b)
    ends = [call("mul", of(a, x), of(b, y)) for x in (False, True) for y in (False, True)]
    fn = "maximum" if most else "minimum"
    return call(fn, call(fn, ends[0], ends[1]), call(fn, ends[2], ends[3]))


def read_as_number(at: int, leaf: Tile) -> Expr:
    """Operand ``at``, the tile ``leaf``, in a formula of ours: int8 would not hold each of them."""
    return call("whole", Arg(at)) if leaf.dtype in INTEGERS else Arg(at)


def cleaned(formula: Expr, leaves: Sequence[Tile], instead: float) -> Expr:
    """``formula`` over ``leaves`` with a number in place of NaN, which integers never are."""
    if leaves and all(leaf.dtype in INTEGERS for leaf in leaves):
        return formula
    return call("where", call("eq", formula, formula), formula, instead)


def extreme_in_block(
    formulas: Formulas,
    expr: Expr,
    reduction: str,
    unknown: float,
    names: Iterator[str],
    origin: Origin,
) -> list[Let]:
    """Operators that make the extreme of ``expr`` in a block, by ``row_min`` or ``row_max``; the
    last gives it. ``unknown``: the number that takes the place of NaN.
    """
    leaves = formulas.leaves_of(expr)
    places = [leaves.index(leaf) if leaf in leaves else 0 for leaf in formulas.leaves]
    number = substitute(expr, list(map(read_as_number, places, formulas.leaves)))
    tile = Tile(next(names), max((leaf.axes for leaf in leaves), key=len, default=()))
    op = Pointwise(cleaned(number, leaves, unknown), tile.axes)
    made = [Let(tile, op, leaves, origin)]
    while tile.axes:
        whole, tile = tile, Tile(next(names), tile.axes[:-1])
        made.append(Let(tile, Functional(reduction), (whole,), origin))
    return made


def plus(expr: Expr, number: float) -> Expr:
    """``expr`` + a number, with numbers at its end added up."""
    match expr:
        case Const(value):
            return Const(value + number)
        case Call("add" | "sub" as fn, (a, Const(value))):
            return plus(a, (value if fn == "add" else -value) + number)
    if number == 0:
        return expr
    return call("add", expr, number) if number > 0 else call("sub", expr, -number)
