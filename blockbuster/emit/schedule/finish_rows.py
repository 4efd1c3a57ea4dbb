"""finish: a row's reciprocal or logarithm is applied in the order that rounds least.

before   t2 = recip0(t1)                  after   t2 = t1, infinite where it is 0 (never_zero)
         for n in range(N):                       for n in range(N):
          t4 = row_scale(t3,t2)                    t4 = t3 / t2

before   t2 = -(log(t1) + t0)             after   t2 = -t0
         for n in range(N):                       t5 = -log(t1)
          t4 = row_shift(t3,t2)                   for n in range(N):
                                                   t4 = t3 + t2 + t5

A product with a reciprocal is rounded twice, a quotient once. For a sum with an exponent and the
logarithm of a significand, the first addition is exact if the exponent is near, as a row's maximum
is. Costs one division or addition per element, so the default schedule applies it only to float32
results, outside loops with a dot. If another nest reads the value, each part gets a workspace.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from blockbuster.emit.schedule.base import STATEMENT, Move
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.site import Site, statement_at
from blockbuster.emit.tile.dataflow import (
    expanded,
    fresh_names,
    fresh_workspace_names,
    operands,
    workspaces_in_order,
)
from blockbuster.emit.tile.program import (
    WORKSPACE,
    Buffer,
    For,
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
from blockbuster.emit.tile.tiling import Tiling
from blockbuster.emit.tile.uses import is_matrix_dot
from blockbuster.ir.expr import Arg, Call, Expr, call, never_zero
from blockbuster.ir.ops import Pointwise
from blockbuster.ir.types import Dim


@dataclass(frozen=True)
class Finish:
    """The replacement of a value: ``parts``, each an expression of the value's own operands.

    ``functions``: with which function the value is applied to a rest, and with which the parts are
    applied to that rest instead, one after the other.
    """

    parts: tuple[Expr, ...]
    functions: Mapping[str, str]


class FinishRows(Move):
    """Apply a row's reciprocal or logarithm in the order that rounds least."""

    name: ClassVar[str] = "finish"
    takes: ClassVar[str] = STATEMENT

    def not_here(self, scheduled: Scheduled, site: Site, let: Stmt, /, **args: Any) -> str:
        """The statement makes such a value, and all that reads it can apply its parts."""
        finish = finish_of(let)
        if finish is None or not isinstance(let, Let):
            return "it makes no reciprocal, and no logarithm with an exponent"
        return not_finishable(let, finish.functions, scheduled.draft)

    def rewritten(self, scheduled: Scheduled, site: Site, **args: Any) -> TileProgram:
        """The parts of the value in its place."""
        draft = scheduled.draft
        let = statement_at(draft, site)
        finish = finish_of(let) if let else None
        assert isinstance(let, Let)
        assert finish is not None
        return workspaces_in_order(_finished(draft, let, finish, fresh_names(draft)))


def finish_rows(program: TileProgram, units: tuple[Dim, ...]) -> TileProgram:
    """``program`` with all such values applied in parts, but beside a dot (NumPy text)."""
    names = fresh_names(program)
    tiling = Tiling({}, units)
    lets = [s for nest in program.nests for s in statements(nest.body) if isinstance(s, Let)]
    for let in lets:
        finish = finish_of(let)
        if finish is None or not_finishable(let, finish.functions, program):
            continue
        if not beside_a_dot(let, program, tiling):
            program = _finished(program, let, finish, names)
    return workspaces_in_order(program)


def finish_of(stmt: Stmt) -> Finish | None:
    """The best way to apply the value of ``stmt``, if there is a better one than as a whole."""
    if not isinstance(stmt, Let) or not isinstance(stmt.op, Pointwise):
        return None
    if any(arg.axes != stmt.op.axes for arg in stmt.args):
        return None
    match stmt.op.expr:
        case Call("recip0", (Arg(0) as x,)):
            return Finish((never_zero(x),), {"mul": "div"})
        case Call("reciprocal", (Arg(0) as x,)):
            return Finish((x,), {"mul": "div"})
        case Call("add", (Call("log") as log, Arg() as exponent)):
            return Finish((exponent, log), {"add": "add", "sub": "sub"})
        case Call("neg", (Call("add", (Call("log") as log, Arg() as exponent)),)):
            parts = (call("neg", exponent), call("neg", log))
            return Finish(parts, {"add": "add", "sub": "sub"})
    return None


def not_finishable(let: Let, functions: Mapping[str, str], program: TileProgram) -> str:
    """Why the value of ``let`` has to stay whole, or "".

    Other nests read it from workspaces, which then hold its parts.
    """
    name = let.target.name
    if len(let.target.axes) > 1:
        return f"{name} has an entry per element"
    reads = list(_reads_of(let, program))
    if not reads:
        return f"{name} is not read here"
    if any(_applied(stmt, tile, functions, (tile,)) is None for _, stmt, tile in reads):
        return f"{name} is read as something else"
    return ""


def beside_a_dot(let: Let, program: TileProgram, tiling: Tiling) -> bool:
    """True if the value of ``let`` is read in a loop that holds a dot."""
    return any(_beside_a_dot(nest.body, stmt, tiling) for nest, stmt, _ in _reads_of(let, program))


def _reads_of(let: Let, program: TileProgram) -> Iterator[tuple[Nest, Stmt, Tile]]:
    """Statements that read the value of ``let``, from a workspace too, with nest and tile."""
    through = _workspaces_of(let, program)
    for nest in program.nests:
        for tile in _tiles_of(let, nest, through):
            for stmt in statements(nest.body):
                if tile in operands(stmt) and not _moves(stmt, through):
                    yield nest, stmt, tile


def _workspaces_of(let: Let, program: TileProgram) -> tuple[Buffer, ...]:
    """The workspaces that hold the value of ``let`` and nothing else."""
    stores = [s for nest in program.nests for s in statements(nest.body) if isinstance(s, Store)]
    kept = dict.fromkeys(s.view.buffer for s in stores if s.value == let.target)
    return tuple(
        buffer
        for buffer in kept
        if buffer.space == WORKSPACE
        and all(s.value == let.target for s in stores if s.view.buffer == buffer)
    )


def _moves(stmt: Stmt, spaces: Container[Buffer]) -> bool:
    """True if ``stmt`` writes to one of these workspaces, or reads from it."""
    return isinstance(stmt, Load | Store) and stmt.view.buffer in spaces


def _tiles_of(let: Let, nest: Nest, spaces: Container[Buffer]) -> tuple[Tile, ...]:
    """The tiles of a nest that hold the value of ``let``: made there, or loaded."""
    return tuple(
        dict.fromkeys(
            stmt.target
            for stmt in statements(nest.body)
            if stmt == let or (isinstance(stmt, Load) and _moves(stmt, spaces))
        )
    )


def _beside_a_dot(body: tuple[Stmt, ...], reader: Stmt, tiling: Tiling) -> bool:
    """True if the innermost serial loop around ``reader`` holds a matrix dot."""
    for loop in (s for s in statements(body) if isinstance(s, For) and not s.parallel):
        inside = list(statements(loop.body))
        if reader in inside and any(is_matrix_dot(s, tiling) for s in inside):
            return True
    return False


def _applied(
    stmt: Stmt, value: Tile, functions: Mapping[str, str], parts: tuple[Tile, ...]
) -> Let | None:
    """``stmt`` with ``parts`` applied one by one where it applies ``value``, or None."""
    if not isinstance(stmt, Let) or not isinstance(stmt.op, Pointwise):
        return None
    if stmt.args.count(value) != 1:
        return None
    at = stmt.args.index(value)
    more = range(len(stmt.args), len(stmt.args) + len(parts) - 1)
    made = _rewritten(stmt.op.expr, at, functions, (at, *more))
    if made is None:
        return None
    args = (*stmt.args[:at], parts[0], *stmt.args[at + 1 :], *parts[1:])
    return replace(stmt, op=Pointwise(made, stmt.target.axes), args=args)


def _rewritten(
    expr: Expr, at: int, functions: Mapping[str, str], parts: tuple[int, ...]
) -> Expr | None:
    """``expr`` with ``parts`` applied in turn where argument ``at`` is; None if it is elsewhere."""
    match expr:
        case Arg(index):
            return None if index == at else expr
        case Call(fn, (rest, Arg(index))) if index == at and fn in functions:
            pass
        case Call("add" | "mul" as fn, (Arg(index), rest)) if index == at and fn in functions:
            pass
        case Call(fn, args):
            made = [_rewritten(arg, at, functions, parts) for arg in args]
            kept = tuple(arg for arg in made if arg is not None)
            return Call(fn, kept) if len(kept) == len(args) else None
        case _:
            return expr
    whole = _rewritten(rest, at, functions, parts)
    for part in parts:
        whole = None if whole is None else Call(functions[fn], (whole, Arg(part)))
    return whole


def _finished(program: TileProgram, let: Let, finish: Finish, names: Iterator[str]) -> TileProgram:
    """``program`` with the parts of a value in its place, in workspaces too."""
    arrays = fresh_workspace_names(program)
    spaces = {
        buffer: (buffer, *(replace(buffer, name=next(arrays)) for _ in finish.parts[1:]))
        for buffer in _workspaces_of(let, program)
    }
    nests = []
    for nest in program.nests:
        parts = {
            tile: (tile, *(replace(tile, name=next(names)) for _ in finish.parts[1:]))
            for tile in _tiles_of(let, nest, spaces)
        }
        spread = _Spread(let, finish, parts, spaces)
        nests.append(replace(nest, body=expanded(nest.body, spread.over)))
    workspaces = (other for b in program.workspaces for other in spaces.get(b, (b,)))
    return replace(program, nests=tuple(nests), workspaces=tuple(workspaces))


@dataclass(frozen=True)
class _Spread:
    """What takes the place of a value in one nest: parts for its tiles and its workspaces."""

    let: Let
    finish: Finish
    parts: Mapping[Tile, tuple[Tile, ...]]
    spaces: Mapping[Buffer, tuple[Buffer, ...]]

    def over(self, stmt: Stmt) -> Iterator[Stmt]:
        """``stmt`` with parts made, stored, loaded or applied where the value was."""
        if stmt == self.let:
            pairs = zip(self.parts[stmt.target], self.finish.parts, strict=True)
            yield from (replace(stmt, target=t, op=Pointwise(e, t.axes)) for t, e in pairs)
        elif isinstance(stmt, Load) and _moves(stmt, self.spaces):
            loads = zip(self.parts[stmt.target], self._views(stmt.view), strict=True)
            yield from (replace(stmt, target=tile, view=view) for tile, view in loads)
        elif isinstance(stmt, Store) and _moves(stmt, self.spaces):
            stores = zip(self.parts[stmt.value], self._views(stmt.view), strict=True)
            yield from (replace(stmt, value=tile, view=view) for tile, view in stores)
        else:
            yield self._applied(stmt)

    def _views(self, view: View) -> Iterator[View]:
        return (replace(view, buffer=buffer) for buffer in self.spaces[view.buffer])

    def _applied(self, stmt: Stmt) -> Stmt:
        for tile in [tile for tile in operands(stmt) if tile in self.parts]:
            made = _applied(stmt, tile, self.finish.functions, self.parts[tile])
            assert made is not None
            stmt = made
        return stmt
