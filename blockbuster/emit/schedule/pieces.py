"""The statements of a loop over single pieces of columns, for blocks of several pieces each.

A tile that differs by the piece has one of three forms. What a dot makes, and what is loaded for
it, is *flat*: the block of all columns takes the place of the piece. *Deep* are tiles with an axis
of pieces in front of that of a piece, and those of *rows* have an axis of pieces alone: what is
folded over each piece, and what has one entry for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from blockbuster.emit.schedule.group_heads import DOT, varying
from blockbuster.emit.schedule.on_grid import body_inside_grid
from blockbuster.emit.schedule.two_parts import named_in, on_tiles
from blockbuster.emit.tile.dataflow import defined, folded
from blockbuster.emit.tile.program import (
    Fold,
    For,
    Init,
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
from blockbuster.emit.tile.trips import dims_of
from blockbuster.ir.lengths import ONE, Length, Rule, product_of, size
from blockbuster.ir.ops import MONOID_OF, Cast, Functional, Pointwise, Scan
from blockbuster.ir.regroup import Regroup, regrouped
from blockbuster.ir.types import Dim, fresh_dim, size_class
from blockbuster.ir.views import AxisView, Run, Share, Strided

FLAT, DEEP, ROWS = "flat", "deep", "rows"


@dataclass(frozen=True)
class Pieces:
    """``joined``: all columns; ``dim`` counts their pieces, each of ``piece`` elements."""

    dim: Dim
    piece: Dim
    joined: Dim
    length: Length
    rules: tuple[Rule, ...] = ()

    def axes(self, axes: tuple[Dim, ...], form: str) -> tuple[Dim, ...] | None:
        """The axes of a tile in a form; None if it cannot have it."""
        if form == ROWS:
            return (*axes, self.dim)
        new = (self.joined,) if form == FLAT else (self.dim, self.piece)
        return regrouped(axes, (self.piece,), new)

    def view(self, view: View) -> View | None:
        """An access along whole columns; None if no axis has pieces one behind the other, in which
        case ``shared`` is one.
        """
        found = replace(view, dims=tuple(self._merged(axis) or axis for axis in view.dims))
        return found if self.joined in found.runs and self.dim not in found.runs else None

    def shared(self, view: View) -> View:
        """An access whose columns run along the axes of pieces and of their elements."""
        axes = zip(view.dims, view.buffer.axes, strict=True)
        return replace(view, dims=tuple(self._share(used, axis.dim) for used, axis in axes))

    def _merged(self, axis: AxisView) -> AxisView:
        if not isinstance(axis, Strided):
            return None
        for at, (outer, inner) in enumerate(zip(axis.runs, axis.runs[1:], strict=False)):
            plain = outer.share is None and inner.share is None
            if plain and (outer.dim, inner.dim) == (self.dim, self.piece):
                if outer.step != inner.step * self.length:
                    return None
                run = Run(self.joined, None, inner.step)
                runs = (*axis.runs[:at], run, *axis.runs[at + 2 :])
                is_all = is_whole(axis) and size_class(self.joined) == size_class(axis.of)
                return self.joined if is_all else replace(axis, runs=runs)
        return None

    def _share(self, used: AxisView, own: Dim | None) -> AxisView:
        both = (self.dim, self.piece)
        if isinstance(used, Strided):
            runs = (
                Run(self.joined, None, run.step, Share(both, both.index(run.dim)))
                if run.dim in both and run.share is None
                else run
                for run in used.runs
            )
            return replace(used, runs=tuple(runs))
        if used not in both or own is None:
            return used
        return Strided(own, (Run(self.joined, None, ONE, Share(both, both.index(used))),))


def is_whole(axis: Strided) -> bool:
    """True if two runs are all of an axis of an array, in order."""
    whole = axis.extent is not None and not axis.start.terms and not axis.padded
    return whole and len(axis.runs) == 2 and axis.runs[1].step == ONE


def pieces_of(nest: Nest, dim: Dim, piece: Dim, program: TileProgram) -> Pieces:
    """The columns of a nest whose pieces ``dim`` counts, under the dim of an array of them if there
    is one.
    """
    known = [rule.length for rule in program.rules if rule.dim == size_class(piece) and rule.exact]
    length = known[0] if known else size(size_class(piece))
    found = Pieces(dim, piece, f"{size_class(dim)}_{size_class(piece)}", length)
    views = (stmt.view for stmt in statements(nest.body) if isinstance(stmt, Load | Store))
    for axis in (axis for view in views for axis in view.dims):
        if not isinstance(axis, Strided) or not is_whole(axis):
            continue
        if tuple(run.dim for run in axis.runs) == (dim, piece) and axis.runs[0].step == length:
            return replace(found, joined=fresh_dim(size_class(axis.of), dims_of(program)))
    rule = Rule(found.joined, product_of([size(size_class(dim)), length]))
    return replace(found, rules=(rule,))


@dataclass
class Regrouped:
    """The body of a nest in which the loop over ``pieces.dim`` walks blocks of all columns.

    ``names``: of tiles that the program does not have.
    """

    nest: Nest
    pieces: Pieces
    names: Iterator[str]
    forms: dict[Tile, str] = field(default_factory=dict)
    tiles: dict[Tile, Tile] = field(default_factory=dict)
    why_not: str = ""

    def __post_init__(self) -> None:
        self._differing = varying(self.nest, self.pieces.dim)
        self._other: dict[tuple[Tile, str], Tile] = {}
        self._loops, inner = body_inside_grid(self.nest)
        self._inner = self._body(inner)

    @property
    def body(self) -> tuple[Stmt, ...]:
        """The statements; to be asked for only if ``why_not`` is empty."""
        body = self._in_pieces(self._inner)
        for loop in reversed(self._loops):
            dim = self.pieces.joined if loop.dim == self.pieces.dim else loop.dim
            body = (replace(loop, dim=dim, body=body),)
        return body

    def _in_pieces(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """``body`` with a loop over pieces around its end, from the first statement of them on."""
        first = next((at for at, s in enumerate(body) if self._of_pieces(s)), len(body))
        while True:
            sums = {tile for s in statements(body[first:]) for tile in folded(s)}
            begun = [at for at, s in enumerate(body[:first]) if defined(s) in sums]
            if not begun:
                break
            first = begun[0]
        if first == len(body):
            return body
        within = (self.pieces.joined, self.pieces.piece)
        return (*body[:first], For(self.pieces.dim, True, body[first:], within=within))

    def _of_pieces(self, stmt: Stmt) -> bool:
        """True if ``stmt``, or one inside, has tiles or places along the pieces."""
        dim = self.pieces.dim
        for one in statements((stmt,)):
            if any(dim in tile.axes for tile in named_in(one)):
                return True
            if isinstance(one, Let) and isinstance(one.op, Regroup):
                return True
        return False

    # statements --------------------------------------------------------------------

    def _body(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        out: list[Stmt] = []
        before = dict(self._other)
        for stmt in body:
            if isinstance(stmt, For):
                if stmt.span is not None or stmt.chunk is not None or stmt.within:
                    self._refuse(f"the loop over {stmt.dim} runs over a part of it already")
                changing = {tile for one in statements(stmt.body) for tile in folded(one)}
                self._forget(changing)
                out.append(replace(stmt, body=self._body(stmt.body)))
            else:
                self._forget(folded(stmt))
                out += self._stmt(stmt)
        self._other = before
        return tuple(out)

    def _forget(self, changing: Sequence[Tile] | set[Tile]) -> None:
        self._other = {key: made for key, made in self._other.items() if key[0] not in changing}

    def _refuse(self, reason: str) -> None:
        self.why_not = self.why_not or reason

    def _stmt(self, stmt: Stmt) -> Iterator[Stmt]:
        """``stmt`` for several pieces, behind the operands that it needs in another form."""
        dims = (self.pieces.dim, self.pieces.piece)
        if not any(tile in self._differing for tile in named_in(stmt)):
            if isinstance(stmt, Store) and self.pieces.dim in stmt.view.runs:
                self._refuse(f"{stmt.view.buffer.name} has the same for each of {dims[0]}")
            yield stmt
            return
        match stmt:
            case Load(target, view):
                yield self._load(stmt, target, view)
            case Init(target):
                self._form(target, FLAT if self.pieces.piece in target.axes else ROWS)
                yield on_tiles(stmt, self.tiles)
            case Fold(target, value=value, members=()) if stmt.onto is None:
                if self.forms.get(target) != self.forms.get(value):
                    self._refuse(f"{target.name} is folded with what has other axes")
                yield on_tiles(stmt, self.tiles)
            case Store(view, value):
                yield from self._store(stmt, view, value)
            case Let(target, op, args):
                yield from self._let(stmt, self._wanted(target, op, args))
            case _:
                self._refuse(f"it has a statement that knows no pieces: {type(stmt).__name__}")

    def _form(self, tile: Tile, form: str) -> None:
        axes = self.pieces.axes(tile.axes, form)
        if axes is None or self.pieces.dim in tile.axes or tile.per_lane:
            self._refuse(f"{tile.name} has no axis of whole pieces")
            return
        self.forms[tile], self.tiles[tile] = form, replace(tile, axes=axes)

    def _load(self, stmt: Load, target: Tile, view: View) -> Stmt:
        if self.pieces.piece not in target.axes:
            self._form(target, ROWS)
            return on_tiles(stmt, self.tiles)
        self._form(target, FLAT)
        return on_tiles(
            stmt, self.tiles, lambda view: self.pieces.view(view) or self.pieces.shared(view)
        )

    def _store(self, stmt: Store, view: View, value: Tile) -> Iterator[Stmt]:
        if self.forms.get(value) == ROWS:
            yield on_tiles(stmt, self.tiles)
            return
        whole = self.pieces.view(view)
        yield from self._as(value, FLAT if whole else DEEP)
        made = self._tile(value, FLAT if whole else DEEP)
        yield replace(stmt, value=made, view=whole or view)

    def _wanted(self, target: Tile, op: object, args: Sequence[Tile]) -> str:
        """The form of what an operator gives; "" where it has none, which is refused."""
        piece, forms = self.pieces.piece, [self.forms.get(arg) for arg in args]
        flat = all(
            form == FLAT or (form is None and piece not in arg.axes)
            for arg, form in zip(args, forms, strict=True)
        )
        match op:
            case Functional() if op == DOT:
                right = forms == [None, FLAT] and target.axes[1:] == (piece,)
                return FLAT if right else self._none(target)
            case Functional(name) if name in MONOID_OF:
                gone = args[0].axes[len(target.axes) :]
                return ROWS if gone == (piece,) and forms[0] in (FLAT, DEEP) else self._none(target)
            case Scan():
                return DEEP if target.axes[-1:] == (piece,) else self._none(target)
            case Cast():
                return forms[0] or self._none(target)
            case Pointwise() if piece in target.axes:
                return FLAT if flat else DEEP
            case Pointwise() if all(piece not in arg.axes for arg in args):
                return ROWS
        return self._none(target)

    def _none(self, target: Tile) -> str:
        self._refuse(f"{target.name} is made of several pieces, or of a part of one")
        return ""

    def _let(self, stmt: Let, form: str) -> Iterator[Stmt]:
        if not form:
            return
        deep = form == DEEP or (form == ROWS and isinstance(stmt.op, Functional))
        new = dict(self.tiles)
        for arg in dict.fromkeys(stmt.args) if deep else ():
            if self.forms.get(arg) == FLAT:
                yield from self._as(arg, DEEP)
                new[arg] = self._tile(arg, DEEP)
        self._form(stmt.target, form)
        new[stmt.target] = self.tiles.get(stmt.target, stmt.target)
        made = on_tiles(stmt, new)
        assert isinstance(made, Let)
        if isinstance(made.op, Pointwise) and not in_order(made):
            self._refuse(f"an operand of {stmt.target.name} would have its axes in another order")
        yield made

    # forms -------------------------------------------------------------------------

    def _tile(self, tile: Tile, form: str) -> Tile:
        return self._other.get((tile, form)) or self.tiles.get(tile, tile)

    def _as(self, tile: Tile, form: str) -> Iterator[Stmt]:
        """What makes ``tile`` in a form, unless it has it or had it made before."""
        if self.forms.get(tile) == form or (tile, form) in self._other or self.why_not:
            return
        axes = self.pieces.axes(tile.axes, form)
        if axes is None:
            self._refuse(f"{tile.name} has no axis of whole pieces")
            return
        columns, apart = (self.pieces.joined,), (self.pieces.dim, self.pieces.piece)
        op = Regroup(columns, apart) if form == DEEP else Regroup(apart, columns)
        made = replace(self.tiles[tile], name=next(self.names), axes=axes)
        self._other[tile, form] = made
        yield Let(made, op, (self.tiles[tile],))


def in_order(let: Let) -> bool:
    """True if the operands of arithmetic have their axes in the order of the result."""
    axes = let.target.axes
    return all(
        [dim for dim in axes if dim in arg.axes] == [dim for dim in arg.axes if dim in axes]
        for arg in let.args
    )
