"""factor: exponentials are computed in base 2, with the scale of their argument folded in.

before   t4 = t3 * |D| ** -0.5            after   t4 = row_max(t3)
         t5 = row_max(t4)                         t5 = t4 * |D| ** -0.5
         t6 = maximum(t1, t5)                     t6 = maximum(t1, t5)
         t7 = sub0(t4, t6)                        t7 = finite(t6 * log2 e)        (an entry per row)
         t8 = exp(t7)                             t8 = 2 ** (t3 * (|D| ** -0.5 * log2 e) - t7)

An element takes one fused multiply-add and one ex2 instead of two multiplications, a subtraction, a
test for infinity and an ex2. The test is made once per row: finite(z) is z if z is finite, else the
largest finite number of z's sign. So x - finite(z) is x where x is infinite, and infinite where
only z is, as in sub0. Results at -inf and inf are therefore unchanged; where z is NaN, results at
an infinite x are NaN, too. Numbers from 2.3e38 on (float32's largest, over log2 e) count as
infinite. Rounding differs: products with the scale are not rounded, but the scale in base 2 is, by
the same amount for all elements. In 16 bits this does not show; results in float32 had 1.5 times
the error of eager on an H200, so the default schedule does not apply this move to them.

A running maximum that nothing else reads is kept in base 2 as well (lead_bits.py).

The leads of groups are folded first, and their factors become statements, as before printing. Masks
stay where they are: where(mask, c * s, -inf) is c * where(mask, s, -inf).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, ClassVar, TypeAlias

from blockbuster.emit.closing.lead_first import lead_first
from blockbuster.emit.closing.share_factors import share_factors
from blockbuster.emit.schedule.base import NEST, Move
from blockbuster.emit.schedule.lead_bits import with_lead_bits
from blockbuster.emit.schedule.lets import expression_of, lets_of, without_unread
from blockbuster.emit.schedule.scaling import Scaled, compacted, scaled_of
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site, nests_at
from blockbuster.emit.tile.changed import changed
from blockbuster.emit.tile.dataflow import expanded, folded, names_beside, readers_of
from blockbuster.emit.tile.each_nest import KEPT, Body, Names, Same, names_of
from blockbuster.emit.tile.program import For, Let, Nest, Stmt, Tile, TileProgram, statements
from blockbuster.ir.base_two import LOG2_E, exp2, finite
from blockbuster.ir.expr import Arg, Call, Const, Expr, call, replaced, substitute
from blockbuster.ir.ops import Functional, Pointwise
from blockbuster.ir.origin import Origin

ROW_MAX = Functional("row_max")
BITS = "bits"
"""What a value in base 2 is called in texts."""

Shifts: TypeAlias = dict[tuple[Tile, bool, Tile | None], Tile]
"""What is subtracted: by z, by whether infinite x stay what they are, and by what is added to x."""


class Factor(Move):
    """Make exponentials of differences with a row's value in base 2."""

    name: ClassVar[str] = "factor"
    takes: ClassVar[str] = NEST

    def not_here(
        self, scheduled: Scheduled, site: Site, nests: tuple[Nest, ...], /, **args: Any
    ) -> str:
        """Some exponential takes the difference of a tile and a value of its row."""
        if any(map(is_factorable, nests)):
            return ""
        return "no exponential takes the difference of a tile and a value of its row"

    def rewritten(self, scheduled: Scheduled, site: Site, **args: Any) -> TileProgram:
        """The draft with such exponentials in base 2, and with leads folded first."""
        draft, chosen = scheduled.draft, nests_at(scheduled.draft, site)
        led = share_factors(lead_first(draft))
        nests, taken = list(draft.nests), names_of(led)
        for at in (at for at in chosen if is_factorable(draft.nests[at])):
            body, given = _factored(Same(led.nests[at].body), taken)
            nests[at], taken = changed(led.nests[at], body=body), taken | given
        return changed(draft, nests=tuple(nests))


@dataclass(frozen=True)
class Power:
    """exp(x - z): ``x`` is an expression over ``args``. ``safe``: infinite x stay what they are.

    ``added``: it is exp(x + z). ``row``: another value of the row, which is added to x.
    """

    x: Expr
    args: tuple[Tile, ...]
    z: Tile
    safe: bool
    added: bool = False
    row: Tile | None = None


def powers_in(let: Let, lets: Mapping[Tile, Let]) -> dict[Expr, Power]:
    """The powers that ``let`` makes, by their expressions in it.

    The difference is made there, too, or in a statement of its own.
    """
    expr = expression_of(let)
    found, stack = dict[Expr, Power](), [expr] if expr is not None else []
    while stack:
        top = stack.pop()
        if power := _power(top, let, lets):
            found[top] = power
        elif isinstance(top, Call):
            stack.extend(reversed(top.args))
    return found


def _power(expr: Expr, let: Let, lets: Mapping[Tile, Let]) -> Power | None:
    args = let.args
    match expr:
        case Call("exp", (Arg(index),)):
            before = lets.get(args[index])
            if before is None or not isinstance(before.op, Pointwise):
                return None
            if before.target.axes != let.target.axes:
                return None
            difference, args = before.op.expr, before.args
        case Call("exp", (difference,)):
            pass
        case _:
            return None
    match difference:
        case Call("sub0" | "sub" as fn, (x, Arg(index))):
            return Power(x, args, args[index], fn == "sub0")
        case Call("add", (Arg(first), Arg(second))):
            wide, narrow = sorted((args[first], args[second]), key=_few_lanes)
            return Power(Arg(args.index(wide)), args, narrow, safe=False, added=True)
    return None


def _few_lanes(tile: Tile) -> int:
    return -len(_lanes(tile))


def is_by_row(power: Power, target: Tile) -> bool:
    """True if z has one entry for several lanes of the power."""
    return _lanes(power.z) < _lanes(target)


def _lanes(tile: Tile) -> frozenset[str]:
    return frozenset((*tile.axes, *tile.per_lane))


def is_factorable(nest: Nest) -> bool:
    """True if ``nest`` makes some power of which one value serves a row."""
    return _is_factorable(Same(nest.body))


@lru_cache(maxsize=KEPT)
def _is_factorable(body: Same[Body]) -> bool:
    lets = lets_of(body.one)
    return any(
        is_by_row(power, let.target)
        for let in lets.values()
        for power in powers_in(let, lets).values()
    )


@lru_cache(maxsize=KEPT)
def _factored(body: Same[Body], taken: frozenset[str]) -> tuple[Body, frozenset[str]]:
    """A body, whose groups are taken apart, with its powers in base 2, and the names of new tiles,
    which are not ``taken``.
    """
    names, lets = Names(names_beside(taken)), lets_of(body.one)
    writer = _Writer(lets, readers_of(body.one), names)
    made = expanded(writer.walked(body.one, {}), writer.with_maxima)
    return with_lead_bits(without_unread(made, body.one)), frozenset(names.given)


@dataclass
class _Writer:
    """Rewrites a body. ``unscaled``: what stands in for tiles whose factor is folded in."""

    lets: Mapping[Tile, Let]
    readers: Mapping[Tile, list[Stmt]]
    names: Iterator[str]
    unscaled: dict[Tile, tuple[Scaled, Tile]] = field(default_factory=dict)

    def walked(self, body: tuple[Stmt, ...], shifts: Shifts) -> tuple[Stmt, ...]:
        """``body`` with powers in base 2; ``shifts``: what is subtracted so far."""
        known, out = dict(shifts), list[Stmt]()
        for stmt in body:
            if isinstance(stmt, For):
                changing = {tile for inner in statements(stmt.body) for tile in folded(inner)}
                known = {by: shift for by, shift in known.items() if not {by[0], by[2]} & changing}
                out.append(replace(stmt, body=self.walked(stmt.body, known)))
                continue
            if isinstance(stmt, Let):
                out += self._in_base_two(stmt, known)
            else:
                out.append(stmt)
            changed = folded(stmt)
            known = {by: shift for by, shift in known.items() if not {by[0], by[2]} & {*changed}}
        return tuple(out)

    def _in_base_two(self, let: Let, known: Shifts) -> Iterator[Stmt]:
        """``let`` with its powers in base 2, behind what their rows need."""
        pool = {tile: Arg(index) for index, tile in enumerate(let.args)}
        made = dict[Expr, Expr]()
        for expr, power in powers_in(let, self.lets).items():
            power = self._gathered(power, let.target)
            by = power.z, power.safe, power.row
            if by not in known and is_by_row(power, let.target):
                like = max(power.z, power.row or power.z, key=lambda tile: len(_lanes(tile)))
                known[by] = self._made(like, "shift" if power.safe else BITS)
                yield from self._shift(power, known[by], let.origin)
            if by in known:
                made[expr] = self._power(power, known[by], pool)
        if made:
            assert isinstance(let.op, Pointwise)
            expr, args = compacted(replaced(let.op.expr, made), tuple(pool))
            let = replace(let, op=replace(let.op, expr=expr), args=args)
        yield let

    def _gathered(self, power: Power, target: Tile) -> Power:
        """exp((x + r) - z) as exp(x - (z - r)), where r has an entry per row, too.

        Not where infinite x stay what they are: z - r may be infinite where z is not.
        """
        let = self.lets.get(power.args[power.x.index]) if isinstance(power.x, Arg) else None
        if power.safe or let is None or not self._is_read_once(let.target):
            return power
        match let.op:
            case Pointwise(Call("add", (Arg(first), Arg(second)))):
                wide, row = sorted((let.args[first], let.args[second]), key=_few_lanes)
            case _:
                return power
        rows = _lanes(row) | _lanes(power.z)
        nested = rows in (_lanes(row), _lanes(power.z)) and rows < _lanes(target)
        if not nested or wide.axes != target.axes or row.dtype != power.z.dtype:
            return power
        return replace(power, x=Arg(0), args=(wide,), row=row)

    def _shift(self, power: Power, shift: Tile, origin: Origin) -> Iterator[Stmt]:
        """``shift`` is z in base 2; where infinite x are kept, it is finite."""
        scaled = self._made(power.z, BITS) if power.safe else shift
        rows = (power.z, power.row) if power.row else (power.z,)
        total: Expr = call("add" if power.added else "sub", Arg(0), Arg(1)) if power.row else Arg(0)
        yield Let(scaled, Pointwise(call("mul", total, LOG2_E), scaled.axes), rows, origin)
        if power.safe:
            yield Let(shift, Pointwise(finite(Arg(0)), shift.axes), (scaled,), origin)

    def _power(self, power: Power, shift: Tile, pool: dict[Tile, Arg]) -> Expr:
        """``power`` in base 2, over the tiles of ``pool``."""
        x = self._unscaled(power)
        args = [pool.setdefault(tile, Arg(len(pool))) for tile in (*x.args, shift)]
        product = call("mul", substitute(x.expr, args), x.scaling(Const(LOG2_E)))
        return exp2(call("add" if power.added else "sub", product, args[-1]))

    def _made(self, like: Tile, hint: str) -> Tile:
        return replace(like, name=next(self.names), hint=hint, dtype=like.dtype)

    def _unscaled(self, power: Power) -> Scaled:
        """x without its factors; a tile that other powers and maxima read, too, is made so."""
        if not isinstance(power.x, Arg):
            return scaled_of(power.x, power.args, self.lets, self._is_read_once)
        tile = power.args[power.x.index]
        if tile not in self.unscaled:
            found = self._taken_apart(tile)
            if found is None:
                return Scaled(Arg(0), (tile,), ())
            plain = found.expr == Arg(0) and found.args[0].axes == tile.axes
            self.unscaled[tile] = found, found.args[0] if plain else self._made(tile, tile.hint)
        found, made = self.unscaled[tile]
        return Scaled(Arg(0), (made,), found.factors)

    def _taken_apart(self, tile: Tile) -> Scaled | None:
        """``tile`` without its factors, if all that reads it can do without them."""
        let = self.lets.get(tile)
        if let is None or not isinstance(let.op, Pointwise):
            return None
        if not all(map(self._does_without, self.readers[tile])):
            return None
        found = scaled_of(let.op.expr, let.args, self.lets, self._is_read_once)
        return found if found.factors else None

    def _does_without(self, stmt: Stmt) -> bool:
        """True for a maximum of rows, and for what makes nothing but powers with a row's value."""
        if not isinstance(stmt, Let):
            return False
        if stmt.op == ROW_MAX or self._is_by_row(stmt):
            return True
        readers = self.readers.get(stmt.target, [])
        return bool(readers) and all(map(self._is_by_row, readers))

    def _is_by_row(self, stmt: Stmt) -> bool:
        """True for what makes a power with a row's value."""
        if not isinstance(stmt, Let):
            return False
        found = powers_in(stmt, self.lets).values()
        return bool(found) and all(is_by_row(power, stmt.target) for power in found)

    def _is_read_once(self, tile: Tile) -> bool:
        return len(self.readers.get(tile, ())) == 1

    def with_maxima(self, stmt: Stmt) -> Iterator[Stmt]:
        """``stmt``, its tile made without factors, too: these come behind maxima of rows."""
        if isinstance(stmt, Let) and stmt.target in self.unscaled:
            found, made = self.unscaled[stmt.target]
            if made not in found.args:
                op = Pointwise(found.expr, made.axes)
                yield replace(stmt, target=made, op=op, args=found.args)
        elif isinstance(stmt, Let) and stmt.op == ROW_MAX and stmt.args[0] in self.unscaled:
            found, made = self.unscaled[stmt.args[0]]
            most = self._made(stmt.target, stmt.target.hint)
            yield replace(stmt, target=most, args=(made,))
            op = Pointwise(found.scaling(Arg(0)), stmt.target.axes)
            stmt = replace(stmt, op=op, args=(most,))
        yield stmt
