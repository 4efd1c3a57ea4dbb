"""Typing: assigns a dtype to every buffer and tile of a tile program.

before   t1 = load(P[m,n])            after   t1 = load(P[m,n])      float32, as the array P has it
         t2 = load(V[n,d])                    t2 = load(V[n,d])      float16
         t3 = exp(t1)                         t3 = exp(t1)           float32
                                              t4 = float16(t3)
         t5 += dot(t3,t2)                     t5 += dot(t4,t2)       float32

The rules:

- Inputs and outputs have the dtypes of their declarations (array_dtypes.py), a loaded tile that of
  its array, indices and numbers of blocks "int", an accumulator the dtype of arithmetic.
- ``result_dtypes.py`` gives the dtype of an operator's result.
- A dot on the matrix units takes both operands in the program's dtype: an operand with another
  dtype is cast first. Two operands of float8 stay in it where the matrix units take them so, and
  are float16 otherwise (float8_dots.py).
- A workspace has the dtype of the tiles stored in it; if these differ, the dtype of arithmetic.

Passes assign dtypes to the tiles and workspaces that they make. Passes that change the value of a
tile (loaded instead of computed, read before it is folded) call ``retyped`` to update the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TypeVar

from blockbuster.emit.tile.changed import changed
from blockbuster.emit.tile.dataflow import folded, mapped, rebound, renamed, same_or, with_parts
from blockbuster.emit.tile.dtypes import DTYPES
from blockbuster.emit.tile.each_nest import KEPT, Around, Body, Same, around_nests, naming_body
from blockbuster.emit.tile.float8_dots import (
    is_widening,
    not_in_float8,
    not_precise,
    without_unread_casts,
)
from blockbuster.emit.tile.other_arrays import accessed_in, with_dtypes
from blockbuster.emit.tile.program import (
    WORKSPACE,
    Await,
    BlockOf,
    Buffer,
    Fold,
    For,
    Guard,
    Init,
    Iota,
    Issue,
    Let,
    Load,
    Nest,
    Stmt,
    Store,
    Tile,
    TileProgram,
    View,
    statements,
)
from blockbuster.emit.tile.result_dtypes import FLOAT, INDEX, WIDTHS, folded_dtype, value_dtype
from blockbuster.emit.tile.rings import arrivals, issues
from blockbuster.emit.tile.tiling import blocked
from blockbuster.errors import EmitError, message
from blockbuster.ir.dtypes import FLOAT8, HALF, INTEGERS
from blockbuster.ir.ops import Cast, Functional
from blockbuster.ir.origin import Origin
from blockbuster.ir.types import Dim

Holder = TypeVar("Holder", Tile, Buffer)
Made = dict[tuple[Tile, str], Tile]
"""Casts of tiles to dtypes that stand before a statement."""

OPERAND = "operand of a dot"
"""What made a cast that no program asks for: the matrix units take the narrow dtype."""


def typed(program: TileProgram, arrays: Mapping[str, str], dtype: str) -> TileProgram:
    """``program`` with dtypes.

    ``arrays``: those of its inputs and outputs by name. ``dtype``: what its dots take; arithmetic
    is float64 where that is, else float32. Raises EmitError for a cast to a dtype that is wider.
    """
    _refuse_wide_casts(program, dtype)
    return retyped(with_dtypes(replace(program, dtype=dtype), arrays))


def arithmetic_of(program: TileProgram) -> str:
    """The dtype in which operators compute."""
    return "float64" if program.dtype == "float64" else FLOAT


def is_accurate(program: TileProgram) -> bool:
    """True if dots take float32 or a result is float32: it shows how often a value is rounded."""
    return around_nests(program).accurate


def retyped(program: TileProgram, before: TileProgram | None = None) -> TileProgram:
    """``program`` with the dtypes of its tiles as they follow from those of its arrays.

    Workspaces without one get that of what is stored in them. Casts that dots lack are added, and
    casts to the dtype that a tile has already are dropped. A program without dtypes stays as it is.
    ``before``: a program whose tiles have their dtypes. Nests with the statements of one of its
    nests have them, too.
    """
    if not program.dtype:
        return program
    settled = _settled(program, before) if before else frozenset[int]()
    buffers = (*program.inputs, *program.outputs, *program.workspaces)
    known = {b.name: b.dtype for b in buffers if b.dtype}
    kept: dict[str, str] = {}  # only ever widened, so that this ends
    totals: dict[str, str] = {}  # only ever more of them
    while True:
        typing = _Typing(arithmetic_of(program), known, dict(kept), totals)
        nests = tuple(n if id(n.body) in settled else typing.typed(n) for n in program.nests)
        found = typing.integer_totals()
        if (typing.kept, found) == (kept, totals):
            return cast_for_dots(with_dtypes(with_parts(program, nests=nests), kept))
        kept, totals = typing.kept if found == totals else {}, found


def _settled(program: TileProgram, before: TileProgram) -> frozenset[int]:
    """The bodies of ``program``, by ``id``, with the dtypes that follow, since ``before`` has them.

    There are none if an array of ``before`` is another one now, or if a sum of such a nest has the
    name of a sum elsewhere: sums of one name have one dtype.
    """
    arrays = (*program.inputs, *program.outputs, *program.workspaces)
    same = (program.dtype, program.units) == (before.dtype, before.units)
    if not (same and {*before.inputs, *before.outputs, *before.workspaces} <= {*arrays}):
        return frozenset()
    bodies = frozenset(id(nest.body) for nest in before.nests)
    parts: tuple[list[Nest], list[Nest]] = [], []
    for nest in program.nests:
        parts[id(nest.body) in bodies].append(nest)
    others, settled = (
        frozenset[str]().union(*(_sums(Same(nest.body)) for nest in part)) for part in parts
    )
    return bodies if settled.isdisjoint(others) else frozenset()


def _sums(body: Same[Body]) -> frozenset[str]:
    """The names of what ``body`` folds."""
    return frozenset(name for name, _ in typed_sums(body))


@lru_cache(maxsize=KEPT)
def typed_sums(body: Same[Body]) -> frozenset[tuple[str, str]]:
    """The names of what ``body`` folds, with their dtypes."""
    sums = (tile for stmt in statements(body.one) for tile in folded(stmt))
    return frozenset((tile.name, tile.dtype) for tile in sums)


def takes_matrix_units(stmt: Stmt, units: tuple[Dim, ...]) -> bool:
    """True if ``stmt`` is a dot of two blocks; ``units`` are dims whose blocks are elements."""
    if not (isinstance(stmt, Let) and isinstance(stmt.op, Functional) and stmt.op.name == "dot"):
        return False
    left, right = stmt.args
    return len(blocked(left.axes, units)) == len(blocked(right.axes, units)) == 2


@dataclass(frozen=True)
class Folded:
    """The monoid of an accumulator, and the dtypes of what is folded into it.

    ``alone``: these are all, whatever was folded into it before: it has the lead of a group.
    """

    monoid: str
    dtypes: tuple[str, ...] = ()
    alone: bool = False

    def with_more(self, dtypes: tuple[str, ...]) -> Folded:
        """The same with more that is folded."""
        return replace(self, dtypes=(*self.dtypes, *dtypes))


Items = tuple[tuple[str, str], ...]


def _items(dtypes: Mapping[str, str], names: Iterable[str] | None = None) -> Items:
    return tuple([(n, dtypes[n]) for n in (dtypes if names is None else names) if n in dtypes])


@lru_cache(maxsize=KEPT)
def _typed_body(
    body: Same[Body], arithmetic: str, known: Items, kept: Items, totals: Items
) -> tuple[Body, Items, tuple[tuple[str, Folded], ...]]:
    """A body with dtypes, the dtypes of its workspaces behind it, and what it folds.

    ``known``, ``kept``: the dtypes of its arrays.
    """
    typing = _Typing(arithmetic, dict(known), dict(kept), dict(totals))
    return typing.body(body.one), _items(typing.kept), tuple(typing.folds.items())


@dataclass
class _Typing:
    """Dtypes while a program is walked in order.

    ``kept``: of workspaces, by what is stored; ``totals``: of accumulators of integers, by name.
    """

    arithmetic: str
    known: Mapping[str, str]
    kept: dict[str, str]
    totals: Mapping[str, str]
    folds: dict[str, Folded] = field(default_factory=dict)
    tiles: dict[Tile, Tile] = field(default_factory=dict)
    rings: dict[str, str] = field(default_factory=dict)

    def typed(self, nest: Nest) -> Nest:
        """``nest`` with dtypes for its tiles."""
        of, names = Same(nest.body), [b.name for b in accessed_in(Same(nest.body))]
        known, kept = (_items(held, names) for held in (self.known, self.kept))
        body, kept, folds = _typed_body(of, self.arithmetic, known, kept, _items(self.totals))
        self.kept |= kept
        for name, one in folds:
            before = None if one.alone else self.folds.get(name)
            self.folds[name] = before.with_more(one.dtypes) if before else one
        return with_parts(nest, body=body)

    def body(self, body: Body) -> Body:
        """The same for the body of a nest, the first one that is walked."""
        self.rings = {t: self._held(issue.view) for t, issue in issues(body).items()}
        return mapped(body, self._stmt)

    def _stmt(self, stmt: Stmt) -> Stmt:
        match stmt:
            case Load():
                return with_parts(stmt, target=self._made(stmt.target, self._held(stmt.view)))
            case Issue():
                return with_parts(stmt, tile=_of_dtype(stmt.tile, self.rings[stmt.token]))
            case Await():
                return with_parts(stmt, target=self._made(stmt.target, self.rings[stmt.token]))
            case Iota():
                return with_parts(stmt, target=self._made(stmt.target, INDEX))
            case BlockOf():
                value = self._read(stmt.value)
                return with_parts(stmt, target=self._made(stmt.target, INDEX), value=value)
            case Init():
                dtype = self.totals.get(stmt.target.name, self.arithmetic)
                return with_parts(stmt, target=self._made(stmt.target, dtype))
            case Let():
                args = tuple(map(self._read, stmt.args))
                dtype = value_dtype(stmt.op, [arg.dtype for arg in args], self.arithmetic)
                return with_parts(stmt, target=self._made(stmt.target, dtype), args=args)
            case Guard():
                value = self._read(stmt.value)
                dtype = filled_dtype(value.dtype, self.arithmetic)
                return with_parts(stmt, target=self._made(stmt.target, dtype), value=value)
            case Store():
                value = self._read(stmt.value)
                self._keep(stmt.view.buffer, stored_dtype(value.dtype, self.arithmetic))
                return with_parts(stmt, value=value)
            case Fold():
                return self._fold(stmt)
        return renamed(stmt, self.tiles)

    def _fold(self, stmt: Fold) -> Fold:
        members = tuple(
            with_parts(m, target=self._read(m.target), value=self._read(m.value))
            for m in stmt.members
        )
        target, value = self._read(stmt.target), self._read(stmt.value)
        known = self.folds.get(target.name, Folded(stmt.monoid))
        self.folds[target.name] = known.with_more((self.arithmetic if members else value.dtype,))
        for member in members:
            self.folds[member.target.name] = Folded(member.monoid, (self.arithmetic,), alone=True)
        return with_parts(stmt, target=target, value=value, members=members)

    def integer_totals(self) -> dict[str, str]:
        """The dtypes of accumulators into which integers alone are folded."""
        folds = self.folds.items()
        found = {name: folded_dtype(one.monoid, one.dtypes) for name, one in folds}
        return {name: dtype for name, dtype in found.items() if dtype}

    def _made(self, tile: Tile, dtype: str) -> Tile:
        self.tiles[tile] = _of_dtype(tile, dtype)
        return self.tiles[tile]

    def _read(self, tile: Tile) -> Tile:
        return self.tiles.get(tile, tile)

    def _held(self, view: View) -> str:
        name = view.buffer.name
        return self.known.get(name) or self.kept.get(name, self.arithmetic)

    def _keep(self, buffer: Buffer, dtype: str) -> None:
        if buffer.space == WORKSPACE and buffer.name not in self.known:
            same = self.kept.setdefault(buffer.name, dtype) == dtype
            self.kept[buffer.name] = dtype if same else self.arithmetic


def _of_dtype(typed: Holder, dtype: str) -> Holder:
    return typed if typed.dtype == dtype else changed(typed, dtype=dtype)


def filled_dtype(value: str, arithmetic: str = FLOAT) -> str:
    """The dtype of a tile with numbers in its padded lanes: its own, if that holds numbers."""
    keeps = not value or value in INTEGERS or (WIDTHS[value] and value != FLOAT8)
    return value if keeps else arithmetic  # float8 has no infinity


def stored_dtype(value: str, arithmetic: str = FLOAT) -> str:
    """The dtype of a workspace that holds tiles of one dtype: theirs, but no indices."""
    return arithmetic if value == INDEX else value


@dataclass
class _Casts:
    """Adds the casts that dots lack, and drops those that change nothing.

    Two dots of one tile share a cast, unless it is among ``changing``: accumulators.
    """

    around: Around
    names: Iterator[str]
    changing: frozenset[Tile]
    views: Mapping[Tile, View]
    alias: dict[Tile, Tile] = field(default_factory=dict)
    widened: dict[Tile, Tile] = field(default_factory=dict)
    """The tiles of float8 that other tiles are casts of."""

    def body(self, body: tuple[Stmt, ...], outer: Made) -> tuple[Stmt, ...]:
        made, out = dict(outer), list[Stmt]()
        for stmt in body:
            if isinstance(stmt, For):
                loop = rebound(stmt, self.alias)
                out.append(with_parts(loop, body=self.body(stmt.body, made)))
                continue
            stmt = renamed(stmt, self.alias)
            if isinstance(stmt, Let) and _changes_nothing(stmt):
                self.alias[stmt.target] = stmt.args[0]
                continue
            if isinstance(stmt, Let) and is_widening(stmt):
                self.widened[stmt.target] = stmt.args[0]
                made[stmt.args[0], stmt.target.dtype] = stmt.target
            if isinstance(stmt, Let) and takes_matrix_units(stmt, self.around.units):
                stmt = self._dot(stmt, made, out)
            out.append(stmt)
        return same_or(body, tuple(out))

    def _dot(self, dot: Let, made: Made, out: list[Stmt]) -> Let:
        """A dot whose operands have the dtype in which the matrix units take them."""
        args, dtype = dot.args, self.around.dtype
        narrow = tuple(self.widened.get(arg, arg) for arg in args)
        if dtype != "float64" and all(arg.dtype == FLOAT8 for arg in narrow):
            if args == narrow:
                reason = not_precise(self.around.outputs) or not_in_float8(args, self.views)
                dtype = HALF if reason else FLOAT8
            elif dtype == FLOAT or all(arg.dtype == HALF for arg in args):
                args, dtype = narrow, HALF
        return with_parts(dot, args=tuple(self._cast(arg, dtype, dot, made, out) for arg in args))

    def _cast(self, arg: Tile, dtype: str, dot: Let, made: Made, out: list[Stmt]) -> Tile:
        if arg.dtype == dtype:
            return arg
        if (arg, dtype) not in made or arg in self.changing:
            made[arg, dtype] = Tile(next(self.names), arg.axes, arg.hint, dtype=dtype)
            origin = Origin(OPERAND, (dot.origin,))
            out.append(Let(made[arg, dtype], Cast(dtype), (arg,), origin))
        return made[arg, dtype]


def _changes_nothing(stmt: Let) -> bool:
    """True for a cast that was added for a dot, of what is in that dtype by now."""
    return stmt.origin.rule == OPERAND and stmt.op == Cast(stmt.args[0].dtype)


@naming_body()
def cast_for_dots(nest: Nest, around: Around, names: Iterator[str]) -> Nest:
    """A nest with the casts that its dots need."""
    changing = frozenset(tile for stmt in statements(nest.body) for tile in folded(stmt))
    body = _Casts(around, names, changing, dict(arrivals(nest.body))).body(nest.body, {})
    return with_parts(nest, body=without_unread_casts(body))


def _refuse_wide_casts(program: TileProgram, dtype: str) -> None:
    if dtype == "float64":
        return
    for nest in program.nests:
        for stmt in statements(nest.body):
            if isinstance(stmt, Let) and stmt.op == Cast("float64"):
                raise EmitError(
                    message(
                        "a cast to float64: kernels compute in float32",
                        hint=f"the nearest supported form is a cast to one of {', '.join(DTYPES)}",
                    )
                )
