"""Where a mask can be true: bounds of the positions along one dim, derived from the condition.

A condition is a tree of and, or, not over comparisons. A comparison is solved for the position j of
the dim: sums, products with numbers and |...| are moved to the other side, so that i - j < 256
becomes j > i - 256. The other side varies between rows, so each bound is the extreme over the rows
of a block. Both sides' bounds hold for an "and"; an "or" has the hull of its sides. So the range
contains every position where the condition is true in some row; a comparison that cannot be solved
bounds nothing. For a comparison with data along the dim (the numbers of documents), a nest that
runs before finds the blocks that have such a column (scan_nest.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce

from blockbuster.emit.schedule.bounds import Bound, Edge, Outer, Range, Scan
from blockbuster.emit.schedule.conditions import Formulas
from blockbuster.emit.schedule.whole_numbers import is_whole
from blockbuster.emit.tile.program import Iota, Tile
from blockbuster.ir.expr import Arg, Call, Const, Expr, call
from blockbuster.ir.types import Dim

OPPOSITE = {"lt": "ge", "ge": "lt", "le": "gt", "gt": "le", "eq": "ne", "ne": "eq"}
MIRRORED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq", "ne": "ne"}
ROUNDING = 2.0**-20
"""Of the numbers that are added up: more than sums and products of floats can be off by."""


ALL = Range()


def both(a: Range, b: Range) -> Range:
    """The intersection of two ranges."""
    return Range(_inner(a.low, b.low), _inner(a.high, b.high))


def either(a: Range, b: Range) -> Range:
    """The hull of both ranges."""
    return Range(_outer(a.low, b.low), _outer(a.high, b.high))


def _inner(a: Bound | None, b: Bound | None) -> Bound | None:
    if a is None or b is None or a == b:
        return b if a is None else a
    return Outer((a, b), most=False)


def _outer(a: Bound | None, b: Bound | None) -> Bound | None:
    if a is None or b is None:
        return None
    return a if a == b else Outer((a, b), most=True)


@dataclass(frozen=True)
class MaskRanges:
    """Solves conditions for the positions along ``dim``."""

    formulas: Formulas
    dim: Dim
    open: bool = False

    def of(self, condition: Expr, wanted: bool = True) -> Range:
        """A range that holds every position where ``condition`` is ``wanted`` in some row."""
        match condition:
            case Call("not", (inner,)):
                return self.of(inner, not wanted)
            case Call("and" | "or" as fn, parts):
                joined = both if (fn == "and") == wanted else either
                return reduce(joined, (self.of(part, wanted) for part in parts))
            case Call("where", (chosen, a, b)):
                taken = both(self.of(chosen), self.of(a, wanted))
                return either(taken, both(self.of(chosen, False), self.of(b, wanted)))
            case Call(fn, (left, right)) if fn in OPPOSITE:
                return self._compared(fn, left, right, wanted)
        return ALL

    def _compared(self, fn: str, left: Expr, right: Expr, wanted: bool) -> Range:
        varies = self.formulas.varies
        opposed = not wanted and fn not in ("eq", "ne")  # x < NaN is false, so its opposite is true
        solver = replace(self, open=opposed)
        fn = fn if wanted else OPPOSITE[fn]
        if not varies(right, self.dim):
            return solver._side(left, fn, right)
        if not varies(left, self.dim):
            return solver._side(right, MIRRORED[fn], left)
        if is_whole(left, self.formulas) and is_whole(right, self.formulas):
            return solver.solved(call("sub", left, right), fn, Const(0.0))
        return ALL

    def _side(self, held: Expr, fn: str, bound: Expr) -> Range:
        """Where ``held``, which is not the same in all blocks, compares with ``bound``."""
        found = self.solved(held, fn, bound)
        leaves = self.formulas.leaves_of(held)
        columns = all(leaf.axes == (self.dim,) for leaf in leaves)
        if found.bounded or fn == "ne" or self.open or not columns:
            return found
        if all(map(self._is_index, leaves)):
            return ALL
        return Range(Scan(held, fn, bound, least=True), Scan(held, fn, bound, least=False))

    def solved(self, held: Expr, fn: str, bound: Expr) -> Range:
        """The range where ``held``, which contains the position, compares with ``bound``, which
        does not.
        """
        if fn == "ne" or not self.formulas.varies(held, self.dim):
            return ALL
        if fn == "eq":
            return both(self.solved(held, "le", bound), self.solved(held, "ge", bound))
        if self.is_position(held):
            edge = Edge(bound, fn in ("gt", "ge"), fn in ("lt", "gt"), self.open)
            return Range(low=edge) if edge.least else Range(high=edge)
        if is_whole(held, self.formulas) and (line := self._line(held)) is not None:
            return self._divided(line[0], fn, _minus(bound, line[1]), line[1])
        return self._around(held, fn, bound)

    def _around(self, held: Expr, fn: str, bound: Expr) -> Range:
        """The same for what is made of the position by a function: it goes to the other side."""
        match held:
            case Call("add", args):
                return self.sum_of(args, fn, bound)
            case Call("sub", (x, y)):
                return self.difference_of(x, y, fn, bound)
            case Call("mul", args):
                return self.product_of(args, fn, bound)
            case Call("neg", (x,)):
                return self.solved(x, MIRRORED[fn], negated(bound))
            case Call("floordiv", (x, Const(divisor))) if is_whole(held, self.formulas):
                return self._floored(x, divisor, fn, bound)
            case Call("abs", (x,)):
                sides = self.solved(x, fn, bound), self.solved(x, MIRRORED[fn], negated(bound))
                return both(*sides) if fn in ("lt", "le") else either(*sides)
            case Call("maximum" | "minimum" as name, args):
                all_of_them = (name == "maximum") == (fn in ("lt", "le"))
                return self._each(both if all_of_them else either, args, fn, bound)
        return ALL

    def is_position(self, expr: Expr) -> bool:
        """True for the index vector of the dim."""
        return isinstance(expr, Arg) and self._is_index(self.formulas.leaves[expr.index])

    def _is_index(self, leaf: Tile) -> bool:
        stmt = self.formulas.made.get(leaf)
        return isinstance(stmt, Iota) and stmt.dim == self.dim

    def _line(self, expr: Expr) -> tuple[float, Expr] | None:
        """(a, b) if ``expr`` is a * position + b with whole a other than 0, and b without it."""
        if not self.formulas.varies(expr, self.dim):
            return 0.0, expr
        if self.is_position(expr):
            return 1.0, Const(0.0)
        match expr:
            case Call("neg", (x,)) if (line := self._line(x)) is not None:
                return -line[0], negated(line[1])
            case Call("add" | "sub" as fn, parts):
                lines = [self._line(part) for part in parts]
                if None in lines:
                    return None
                (a, b), (c, d) = (line for line in lines if line is not None)
                return (a + c, _plus(b, d)) if fn == "add" else (a - c, _minus(b, d))
            case Call("mul", (Const(factor), x) | (x, Const(factor))):
                line = self._line(x)
                return line and (line[0] * factor, _scaled(line[1], factor))
        return None

    def _divided(self, factor: float, fn: str, bound: Expr, moved: Expr) -> Range:
        """Where factor * position compares with ``bound``, from which ``moved`` was taken away."""
        if factor == 0:
            return ALL
        if factor < 0:
            return self._divided(-factor, MIRRORED[fn], negated(bound), moved)
        position = next(Arg(at) for at, x in enumerate(self.formulas.leaves) if self._is_index(x))
        whole = is_whole(bound, self.formulas)
        if factor == 1 and (whole or moved == Const(0.0)):
            return self.solved(position, fn, bound)
        if whole:  # a whole product passes none of the quarters between
            step = {"lt": -0.25, "le": 0.25, "gt": 0.25, "ge": -0.25}[fn]
            bound = _plus(bound, Const(step))
        return self._rounded(position, fn, _quotient(bound, factor), () if whole else (moved,))

    def sum_of(self, args: tuple[Expr, ...], fn: str, bound: Expr) -> Range:
        """x + y."""
        x, y = args if self.formulas.varies(args[0], self.dim) else args[::-1]
        return self._moved(x, y, fn, _minus(bound, y))

    def difference_of(self, x: Expr, y: Expr, fn: str, bound: Expr) -> Range:
        """x - y."""
        if self.formulas.varies(x, self.dim):
            return self._moved(x, y, fn, _plus(bound, y))
        return self._moved(y, x, MIRRORED[fn], _minus(x, bound))

    def _moved(self, held: Expr, moved: Expr, fn: str, bound: Expr) -> Range:
        if self.formulas.varies(moved, self.dim):
            return ALL
        if is_whole(bound, self.formulas):
            return self.solved(held, fn, bound)
        return self._rounded(held, fn, bound, (moved,))

    def _rounded(self, held: Expr, fn: str, bound: Expr, moved: tuple[Expr, ...]) -> Range:
        """``solved`` for a bound that floats round: farther out, and without one where it is NaN.

        ``moved``: what was taken away from ``held``, which was rounded with it.
        """
        magnitude = reduce(_plus, map(abs_of, moved), abs_of(bound))
        outward = _plus if fn in ("lt", "le") else _minus
        bound = outward(bound, _scaled(magnitude, ROUNDING))
        return replace(self, open=True).solved(held, fn, bound)

    def product_of(self, args: tuple[Expr, ...], fn: str, bound: Expr) -> Range:
        """x * c."""
        for factor, held in (args, args[::-1]):
            if isinstance(factor, Const) and factor.value not in (0.0, float("inf")):
                fn = fn if factor.value > 0 else MIRRORED[fn]
                return self._rounded(held, fn, _quotient(bound, factor.value), ())
        return ALL

    def _floored(self, held: Expr, divisor: float, fn: str, bound: Expr) -> Range:
        """Where whole ``held`` // ``divisor``, a positive number, compares with ``bound``.

        Of whole q: x // d <= q where x < d * (q + 1), and x // d >= q where x >= d * q.
        """
        if not is_whole(bound, self.formulas):
            return ALL
        after = _plus(bound, Const(1.0)) if fn in ("le", "gt") else bound
        side = "lt" if fn in ("lt", "le") else "ge"
        return self.solved(held, side, _scaled(after, divisor))

    def _each(
        self, joined: Callable[[Range, Range], Range], args: tuple[Expr, ...], fn: str, bound: Expr
    ) -> Range:
        """A maximum is at most a number where all are, and at least it where one is."""
        if self.open and not all(is_whole(arg, self.formulas) for arg in args):
            return ALL  # of which one is NaN
        return reduce(joined, (self.solved(arg, fn, bound) for arg in args))


def abs_of(expr: Expr) -> Expr:
    """|x|."""
    return Const(abs(expr.value)) if isinstance(expr, Const) else call("abs", expr)


def negated(expr: Expr) -> Expr:
    """-x."""
    match expr:
        case Const(value):
            return Const(0.0 - value)  # 0 has no sign here
        case Call("neg", (a,)):
            return a
        case Call("sub", (a, b)):
            return call("sub", b, a)
    return call("neg", expr)


def _plus(a: Expr, b: Expr) -> Expr:
    match a, b:
        case Const(x), Const(y):
            return Const(x + y)
        case (_, Const(0.0)):
            return a
        case (Const(0.0), _):
            return b
    return call("add", a, b)


def _minus(a: Expr, b: Expr) -> Expr:
    match a, b:
        case Const(x), Const(y):
            return Const(x - y)
        case (_, Const(0.0)):
            return a
    return call("sub", a, b)


def _scaled(a: Expr, factor: float) -> Expr:
    return Const(a.value * factor) if isinstance(a, Const) else call("mul", a, factor)


def _quotient(a: Expr, divisor: float) -> Expr:
    if divisor == 1:
        return a
    return Const(a.value / divisor) if isinstance(a, Const) else call("div", a, divisor)
