"""split-lanes: a dim that is one block becomes two: its first elements, and the rest.

before   q = load(Q[m,:])      [M, D 128]     after   q0 = load(Q[m,:64])   [M, D_to64 64]
         k = load(K[n,:])      [N, D 128]             q1 = load(Q[m,64:])   [M, D_from64 16]
         s = dot(q, k)         [M, N]                 s  = dot(q0, k0)      [M, N]
                                                      s += dot(q1, k1)

Tiles have a power of two of lanes, so heads of 80 elements are padded to 128: three fifths more
work, on zeros. Blocks of 64 and 16 need no padding. Costs twice as many loads and dots, of which
the second are narrow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, ClassVar

from blockbuster.emit.schedule.base import Args, NestMove, not_a_power_of_two
from blockbuster.emit.schedule.block import LEAST, least_lanes
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site, nest_at, with_nest
from blockbuster.emit.schedule.two_parts import TwoParts, has_axis, name_taken, named_in, with_rules
from blockbuster.emit.schedule.words import Form
from blockbuster.emit.tile.dataflow import accessed, expanded, fresh_names
from blockbuster.emit.tile.names import dim_word
from blockbuster.emit.tile.program import (
    Block,
    Fold,
    For,
    Init,
    Let,
    Load,
    Member,
    Nest,
    Stmt,
    Store,
    TileProgram,
    View,
    statements,
)
from blockbuster.emit.tile.tiling import power_of_two
from blockbuster.ir.lengths import ZERO, Length, Rule, size, whole
from blockbuster.ir.ops import MONOID_OF, Cast, Functional, Pointwise, Transpose
from blockbuster.ir.types import Dim, size_class
from blockbuster.ir.views import AxisView, Run, Strided, shares_of

MONOIDS = {"dot": "+", **MONOID_OF}
"""What adds up the parts of what takes all of a dim."""


class SplitLanes(NestMove):
    """Hold a dim in two tiles, of its first ``lanes`` elements and of all others."""

    name: ClassVar[str] = "split-lanes"
    form: ClassVar[Form] = Form("DIM LANES")

    def arguments(self, scheduled: Scheduled, site: Site) -> Iterator[Args]:
        """Half of a block, or a quarter of it, for each dim that can be split there."""
        nest = nest_at(scheduled.draft, site)
        for block in nest.blocks if nest else ():
            for lanes in (block.lanes // 2, block.lanes // 4):
                if not self.why_not(scheduled, site, dim=block.dim, lanes=lanes):
                    yield {"dim": block.dim, "lanes": lanes}

    def not_here(self, scheduled: Scheduled, site: Site, nest: Nest, /, **args: Any) -> str:
        """The dim is one block, with more elements, and each statement can be done in two parts."""
        draft, dim, lanes = scheduled.draft, args["dim"], args["lanes"]
        least = least_lanes(nest, draft.units).get(dim, 1)
        found = (not_in_parts(stmt, dim) for stmt in statements(nest.body))
        return (
            not_one_block(nest, dim)
            or not_a_power_of_two(lanes, f"the first part of {dim}", least)
            or no_rest(scheduled.sizes[size_class(dim)], dim, lanes)
            or name_taken(draft, *Halves(dim, lanes).rules)
            or next(filter(None, found), "")
        )

    def rewritten(self, scheduled: Scheduled, site: Site, **args: Any) -> TileProgram:
        """The nest with each of its tiles in two parts."""
        draft, halves = scheduled.draft, Halves(args["dim"], args["lanes"])
        writer = _Writer(halves, fresh_names(draft), draft.units)
        left = scheduled.sizes[size_class(halves.dim)] - halves.lanes
        made = with_nest(draft, site, writer.nest(draft.nests[site.nest - 1], left))
        whole = tuple(dict.fromkeys((*draft.whole, *halves.dims)))
        return with_rules(replace(made, whole=whole), *halves.rules)


@dataclass(frozen=True)
class Halves:
    """``dim`` as its first ``lanes`` elements and the others, under dims of their own."""

    dim: Dim
    lanes: int

    @property
    def dims(self) -> tuple[Dim, Dim]:
        """The dims of the parts."""
        word = dim_word(self.dim)
        return f"{word}_to{self.lanes}", f"{word}_from{self.lanes}"

    @property
    def rules(self) -> tuple[Rule, Rule]:
        """The sizes of the parts."""
        first, rest = self.dims
        left = size(size_class(self.dim)) - whole(self.lanes)
        return Rule(first, whole(self.lanes)), Rule(rest, left)

    def view(self, view: View, part: int) -> View:
        """An access to all of ``dim``, as one to a part."""
        axes = zip(view.dims, view.buffer.axes, strict=True)
        dims = tuple(self._axis(dim, axis.dim, part) for dim, axis in axes)
        return replace(view, dims=dims)

    def _axis(self, axis: AxisView, array: Dim | None, part: int) -> AxisView:
        new, behind = self.dims[part], whole(self.lanes) if part else ZERO
        if axis == self.dim:
            assert array is not None
            return Strided(array, (Run(new),), behind)
        if not isinstance(axis, Strided) or self.dim not in (run.dim for run in axis.runs):
            return axis
        step: Length = next(run.step for run in axis.runs if run.dim == self.dim)
        runs = (Run(new, None, r.step) if r.dim == self.dim else r for r in axis.runs)
        return replace(axis, runs=tuple(runs), start=axis.start + behind * step)


class _Writer:
    def __init__(self, halves: Halves, names: Iterator[str], units: tuple[Dim, ...]) -> None:
        self._halves, self._names, self._units = halves, names, units
        self._parts = TwoParts(halves, names)

    def nest(self, nest: Nest, left: int) -> Nest:
        """``nest`` in parts, the second of which has ``left`` elements."""
        first, rest = self._halves.dims
        fewest = least_lanes(nest, self._units).get(self._halves.dim, LEAST)
        lanes = power_of_two(left, fewest)
        blocks = (
            Block(first, self._halves.lanes, whole=True, ragged=False),
            Block(rest, lanes, whole=True, ragged=left != lanes),
        )
        body = expanded(nest.body, self._statement)
        return replace(nest, body=body, blocks=(*nest.blocks, *blocks))

    def _statement(self, stmt: Stmt) -> Iterator[Stmt]:
        if not has_axis(stmt, self._halves.dim):
            yield stmt
        elif isinstance(stmt, Let) and self._halves.dim not in stmt.target.axes:
            yield from self._added(stmt)
        elif isinstance(stmt, Fold) and self._halves.dim not in stmt.target.axes:
            members = chain.from_iterable(map(self._members, stmt.members))
            yield replace(stmt, members=tuple(members))
        else:
            yield from (self._parts.stmt(stmt, part) for part in (0, 1))

    def _members(self, member: Member) -> tuple[Member, ...]:
        if self._halves.dim not in member.target.axes:
            return (member,)
        tile = self._parts.tile
        pairs = ((tile(member.target, p), tile(member.value, p)) for p in (0, 1))
        return tuple(replace(member, target=target, value=value) for target, value in pairs)

    def _added(self, let: Let) -> Iterator[Stmt]:
        """What takes all of the dim: that of its parts, folded."""
        assert isinstance(let.op, Functional)
        monoid = MONOIDS[let.op.name]
        yield Init(let.target, monoid)
        for part in (0, 1):
            value = replace(let.target, name=next(self._names), hint="")
            args = tuple(self._parts.tile(arg, part) for arg in let.args)
            yield replace(let, target=value, args=args)
            yield Fold(let.target, monoid, value, origin=let.origin)


# predicates ------------------------------------------------------------------------


def not_one_block(nest: Nest, dim: Dim) -> str:
    """Why ``nest`` does not hold all of ``dim`` in tiles, or ""."""
    block = next((block for block in nest.blocks if block.dim == dim), None)
    if block is None or not any(has_axis(stmt, dim) for stmt in statements(nest.body)):
        return f"no tile of {dim} is cut here"
    return "" if block.whole else f"{dim} is walked in blocks: split what is one block"


def no_rest(size: int, dim: Dim, lanes: int) -> str:
    """Why no elements of ``dim`` are left behind the first ``lanes``, or ""."""
    return f"{dim} has {size} elements: none are left behind {lanes}" if size <= lanes else ""


def not_in_parts(stmt: Stmt, dim: Dim) -> str:
    """Why ``stmt`` cannot be done for two parts of ``dim``, one after the other, or ""."""
    tiles = named_in(stmt)
    match stmt:
        case Load() | Store():
            for used, axis in zip(stmt.view.dims, stmt.view.buffer.axes, strict=True):
                if axis.per_block and dim in (used, axis.dim):
                    return f"{stmt.view.buffer.name} has an entry per block of {dim}"
            if any(joined == dim for joined, _ in shares_of(stmt.view.dims)):
                return f"{stmt.view.buffer.name} has several axes along {dim}"
            if dim in stmt.view.runs and dim not in accessed(stmt).axes:
                return f"{stmt.view.buffer.name} is accessed at one element of {dim}"
        case Let(target, op) if dim not in target.axes and any(dim in t.axes for t in tiles):
            if not isinstance(op, Functional) or op.name not in MONOIDS:
                return f"{target.name} is made of all of {dim} at once"
        case Let(target, op) if dim in target.axes:
            if not isinstance(op, Functional | Pointwise | Transpose | Cast):
                return f"{target.name} has {dim} under another name"
        case Fold(target, members=members) if dim in target.axes:
            if any(dim not in member.target.axes for member in members):
                return f"{target.name} is a running exponent for each of {dim}"
        case Fold(target, members=members) if any(m.leads != (0,) for m in members):
            return f"the group of {target.name} has several leads"
        case Init() | Fold():
            return ""
        case For(dim=walked) if walked == dim:
            return f"a loop runs over {dim}"
        case _ if any(dim in tile.axes for tile in tiles):
            return f"{tiles[-1].name} is scheduled already, or holds positions along {dim}"
    return ""
