"""One nest of a tile program as one ``@triton.jit`` function.

A tile is a Python name; loops, loads and stores stand as they do in the nest. Every access of a dim
that may have lanes past its end is masked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from blockbuster.emit.print.triton.file import File, Lines, Parameters
from blockbuster.emit.print.triton.ops import Lanes, Operand, OpPrinter
from blockbuster.emit.print.triton.places import Places
from blockbuster.emit.print.triton.scalars import (
    ACCURATE_CALLS,
    ATOM,
    ScalarPrinter,
    Text,
    as_dtype,
    as_float,
    number,
)
from blockbuster.emit.tile.dtypes import MEMORY
from blockbuster.emit.tile.names import dim_word
from blockbuster.emit.tile.program import (
    Await,
    Fold,
    For,
    Guard,
    Init,
    Iota,
    Issue,
    Let,
    Load,
    Member,
    Nest,
    Stmt,
    Store,
    Tile,
    statements,
)
from blockbuster.emit.tile.result_dtypes import FLOAT
from blockbuster.emit.tile.rings import issues
from blockbuster.emit.tile.tiling import Tiling
from blockbuster.emit.tile.uses import Uses, is_matrix_dot
from blockbuster.emit.tile.value_dtypes import TRUTH
from blockbuster.ir.expr import Arg, Call, Expr, arguments
from blockbuster.ir.ops import Cast

_IDENTITY = {"+": "0.0", "max": 'float("-inf")', "min": 'float("inf")'}
APART = "in two steps, else Triton 3.6 swaps rows"
_PRODUCT = Call("mul", (Arg(0), Arg(1)))


def kernel_body(nest: Nest, tiling: Tiling, file: File) -> tuple[list[str], Parameters]:
    """The lines of the function of ``nest``, and what the function takes."""
    return _KernelPrinter(nest, tiling, file).body()


class _KernelPrinter:
    def __init__(self, nest: Nest, tiling: Tiling, file: File) -> None:
        self._nest = nest
        self._file = file
        self._tiling = tiling
        self._names = file.names.copy()
        self._uses = Uses(nest, tiling)
        self._issues = issues(nest.body)
        self._lines = Lines()
        self._places = Places(file, tiling, self._names, self._lines)
        self._scalars = ScalarPrinter(self._places.extent, file.helpers, self._calls())
        self._ops = OpPrinter(self._scalars, self._places.shape)
        self._tiles: dict[Tile, Operand] = {}
        self._columns: dict[Tile, None] = {}
        self._joined: dict[Tile, Let] = {}

    def _calls(self) -> Mapping[str, str]:
        """How some scalar functions are spelled where results are float32.

        Beside a dot Triton's exp will do: it is off by as much as one more rounding of its
        argument, which has come through many, and a better one took 5 % of attention's time.
        """
        if not self._file.accurate:
            return {}
        dots = any(is_matrix_dot(s, self._tiling) for s in statements(self._nest.body))
        return {fn: call for fn, call in ACCURATE_CALLS.items() if not (dots and fn == "exp")}

    def body(self) -> tuple[list[str], Parameters]:
        self._places.start(self._nest)
        at = len(self._lines.text)
        self._statements(self._nest.body)
        self._lines.text[at:at] = self._places.extent_lines()
        return self._lines.text, self._places.parameters

    def _statements(self, body: tuple[Stmt, ...]) -> None:
        joined = self._uses.accumulated(body)
        self._joined.update(joined)
        for stmt in body:
            if not (isinstance(stmt, Let) and stmt.target in joined):
                STATEMENTS[type(stmt)](self, stmt)

    def _define(self, tile: Tile, lanes: Lanes, hint: str = "") -> str:
        name = self._names.of(tile, tile.hint or hint or tile.name)
        self._tiles[tile] = Operand(Text(name, tile.dtype), lanes)
        return name

    # memory ----------------------------------------------------------------------

    def _issue(self, stmt: Issue) -> None:
        """Nothing: the loop's head says how far its loads run ahead of where they are awaited."""

    def _load(self, stmt: Load | Await) -> None:
        target = stmt.target
        view = stmt.view if isinstance(stmt, Load) else self._issues[stmt.token].view
        buffer, lanes = view.buffer, self._tiling.lanes(target)
        hint = view.hint or buffer.name
        name = self._define(target, lanes, hint.lower())
        if self._uses.read_transposed(target):
            self._columns[target] = None
            lanes = lanes[::-1]
        args = [self._places.address(view, lanes)]
        if mask := self._places.mask(lanes, lanes):
            args += [f"mask={mask}", "other=0" if buffer.dtype == TRUTH else "other=0.0"]
        end = ") != 0" if buffer.dtype == TRUTH else ")"
        self._lines.call(f"{name} = tl.load(", args, end, stmt.origin)

    def _iota(self, stmt: Iota) -> None:
        lanes = self._tiling.lanes(stmt.target)
        name = self._define(stmt.target, lanes, f"index_{dim_word(stmt.dim).lower()}")
        place = self._places.offsets(stmt.dim) if lanes else self._places.index(stmt.dim)
        self._lines.line(f"{name} = {place}", stmt.origin)

    def _store(self, stmt: Store) -> None:
        operand, buffer = self._tiles[stmt.value], stmt.view.buffer
        value = as_dtype(operand.text, buffer.dtype)
        if buffer.dtype == TRUTH:
            value = Text(f"{value.at(ATOM)}.to({MEMORY[TRUTH].triton})")
        args = [self._places.address(stmt.view, operand.lanes), value.text]
        if mask := self._places.mask(operand.lanes, operand.lanes):
            args.append(f"mask={mask}")
        self._lines.call("tl.store(", args, ")", stmt.origin)

    # arithmetic ------------------------------------------------------------------

    def _let(self, stmt: Let) -> None:
        lanes = self._tiling.lanes(stmt.target)
        text = as_dtype(self._value(stmt, lanes), stmt.target.dtype)
        if isinstance(stmt.op, Cast) and stmt.args[0] in self._columns:
            self._columns[stmt.target] = None
        name = self._define(stmt.target, lanes)
        self._lines.line(f"{name} = {text.text}", stmt.origin)

    def _value(self, stmt: Let, lanes: Lanes, total: str = "") -> Text:
        args = [self._tiles[arg] for arg in stmt.args]
        if is_matrix_dot(stmt, self._tiling):
            return self._ops.matrix_dot(args[0], args[1], stmt.args[1] in self._columns, total)
        summed = self._uses.summed(stmt.target)
        return self._ops.text(stmt.op, args, lanes, summed=summed)

    def _guard(self, stmt: Guard) -> None:
        operand = self._tiles[stmt.value]
        text = as_dtype(operand.text, stmt.target.dtype)
        if mask := self._places.mask((stmt.dim,), operand.lanes):
            text = Text(f"tl.where({mask}, {text.text}, {number(stmt.fill)})", text.dtype)
        name = self._define(stmt.target, operand.lanes, stmt.value.hint)
        self._lines.line(f"{name} = {text.text}", stmt.origin, "lanes past the end")

    def _init(self, stmt: Init) -> None:
        lanes = self._tiling.lanes(stmt.target)
        name = self._define(stmt.target, lanes)
        shape = self._places.shape(lanes)
        self._lines.line(f"{name} = tl.full({shape}, {_IDENTITY[stmt.monoid]}, tl.float32)")

    def _fold(self, stmt: Fold) -> None:
        total = self._tiles[stmt.target]
        name = total.text.text
        if stmt.value in self._joined:
            dot = self._joined[stmt.value]
            text = self._value(dot, total.lanes, name)
            self._lines.line(f"{name} = {text.text}", dot.origin)
            return
        value = self._number(stmt.value)
        if stmt.ahead:
            self._members(stmt, total, None, value)
            self._lines.line(f"{name} = {value.text.text}", stmt.origin)
            return
        if self._exchanges_rows(stmt):
            text = self._ops.fold_apart(stmt.monoid, total.text, value.over(total.lanes))
            self._lines.line(f"{name} = {text.text}", stmt.origin, APART)
            return
        text = self._ops.fold(stmt.monoid, total.text, value.over(total.lanes))
        if not stmt.members:
            self._lines.line(f"{name} = {text.text}", stmt.origin)
            return
        new = self._names.of(("next", stmt.target), f"{name}_next")
        self._lines.line(f"{new} = {text.text}", stmt.origin)
        self._members(stmt, total, value, Operand(Text(new), total.lanes))
        self._lines.line(f"{name} = {new}")

    def _exchanges_rows(self, stmt: Fold) -> bool:
        """True if Triton may exchange rows of what ``stmt`` reduces, were it folded plainly."""
        buffer = self._uses.loaded_over_blocks(stmt)
        return buffer is not None and buffer.dtype == FLOAT

    def _number(self, tile: Tile) -> Operand:
        operand = self._tiles[tile]
        return Operand(as_float(operand.text), operand.lanes)

    def _members(self, stmt: Fold, old: Operand, value: Operand | None, new: Operand) -> None:
        """Members of a group, each side rescaled from its own lead to the folded one.

        ``value``: the lead of what is folded in; None where that is the folded one already.
        """
        scales: dict[tuple[Expr, str], Operand] = {}

        def rescaled(member: Member, side: str, item: Operand, lead: Operand) -> Text:
            scale, lanes = _scale(member.factor), self._tiles[member.target].lanes
            factors = [lead, new]
            if scale is not None:
                if (scale, side) not in scales:
                    scales[scale, side] = self._scaling(scale, stmt, side, lead, new)
                factors = [scales[scale, side]]
            expr = member.factor if scale is None else _PRODUCT
            return self._scalars.text(expr, [x.over(lanes) for x in (item, *factors)])

        for member in stmt.members:
            target = self._tiles[member.target]
            text, origin = rescaled(member, "old", target, old), stmt.origin
            if dot := self._joined.get(member.value):
                text, origin = self._value(dot, target.lanes, text.text), dot.origin
            else:
                own = self._number(member.value)
                new_side = rescaled(member, "new", own, value) if value else own.over(target.lanes)
                text = self._ops.fold(member.monoid, text, new_side)
            self._lines.line(f"{target.text.text} = {text.text}", origin)

    def _scaling(self, scale: Expr, stmt: Fold, side: str, lead: Operand, new: Operand) -> Operand:
        """What a partial result with this lead is multiplied by, once per element of the lead."""
        text = self._scalars.text(scale, [lead.text, lead.text, new.text])
        name = self._names.of(("scale", stmt.target, scale, side), f"scale_{side}")
        self._lines.line(f"{name} = {text.text}", stmt.origin)
        return Operand(Text(name), new.lanes)

    def _for(self, stmt: For) -> None:
        self._places.enter(stmt)
        self._statements(stmt.body)
        self._places.leave(stmt)
        for tile in self._uses.shared_sums(stmt):
            name = self._tiles[tile].text.text
            self._lines.line(f"{name} = {name} + 0.0  # Triton 3.6 wants a loop's sum read once")


def _scale(factor: Expr) -> Expr | None:
    """g where ``factor`` is x * g(r, r2): it is the same for all elements that share a lead."""
    match factor:
        case Call("mul", (Arg(0), scale)) | Call("mul", (scale, Arg(0))):
            return scale if 0 not in arguments(scale) else None
    return None


STATEMENTS: dict[type, Callable[[Any, Any], None]] = {
    Load: _KernelPrinter._load,
    Issue: _KernelPrinter._issue,
    Await: _KernelPrinter._load,
    Iota: _KernelPrinter._iota,
    Store: _KernelPrinter._store,
    Let: _KernelPrinter._let,
    Guard: _KernelPrinter._guard,
    Init: _KernelPrinter._init,
    Fold: _KernelPrinter._fold,
    For: _KernelPrinter._for,
}
