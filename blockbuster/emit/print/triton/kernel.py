"""One nest of a tile program as one ``@triton.jit`` function.

A tile is a Python name; loops, loads and stores stand as they do in the nest. Every access along a
dim that may have lanes past its end is masked.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile
from typing import Any

from blockbuster.emit.print.integers import integer_literal
from blockbuster.emit.print.triton.even import even_lines
from blockbuster.emit.print.triton.file import OVERLAPS, File, Lines, Parameters
from blockbuster.emit.print.triton.ops import Lanes, Operand, OpPrinter
from blockbuster.emit.print.triton.places import Places
from blockbuster.emit.print.triton.rows import in_order, in_rows, rows_of_pairs, shape_of_pairs
from blockbuster.emit.print.triton.scalars import (
    ACCURATE_CALLS,
    ATOM,
    ScalarPrinter,
    Text,
    as_dtype,
    as_float,
    as_integer,
    number,
)
from blockbuster.emit.print.triton.stages import launched_stages
from blockbuster.emit.tile.dataflow import accessed, flat_loops
from blockbuster.emit.tile.dtypes import MEMORY
from blockbuster.emit.tile.in_turn import dims_in_turn
from blockbuster.emit.tile.names import dim_word
from blockbuster.emit.tile.next_block import Next
from blockbuster.emit.tile.program import (
    Await,
    BlockOf,
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
)
from blockbuster.emit.tile.result_dtypes import INDEX
from blockbuster.emit.tile.rings import issues
from blockbuster.emit.tile.tiling import Tiling
from blockbuster.emit.tile.told_sizes import told_sizes
from blockbuster.emit.tile.uneven_rows import uneven_rows
from blockbuster.emit.tile.uses import is_matrix_dot
from blockbuster.emit.tile.waits import Release, Wait
from blockbuster.emit.tile.workarounds import READ_ONCE, REASONS
from blockbuster.ir.dtypes import INTEGERS, OWN, TRUTH
from blockbuster.ir.ops import IDENTITY, Cast
from blockbuster.ir.types import size_class


def kernel_body(nest: Nest, tiling: Tiling, file: File) -> tuple[list[str], Parameters]:
    """The lines of the function of ``nest``, and what the function takes."""
    return _KernelPrinter(nest, tiling, file).body()


def _parted(nest: Nest) -> tuple[tuple[Stmt, ...], tuple[Stmt, ...]]:
    """What a program does once, in front of its loop over places if it has one, and the rest."""
    first = takewhile(lambda stmt: isinstance(stmt, Wait | Release), nest.body)
    once = tuple(first) if nest.programs else ()
    return once, nest.body[len(once) :]


class _KernelPrinter:
    def __init__(self, nest: Nest, tiling: Tiling, file: File) -> None:
        self._nest = nest
        self._file = file
        self._tiling = tiling
        self._names = file.names.copy()
        self._issues = issues(nest.body)
        self._lines = Lines()
        self._places = Places(file, tiling, self._names, self._lines, launched_stages(nest, tiling))
        told = map(size_class, told_sizes(nest, tiling))
        self._places.parameters.told = {dim: file.size(dim) for dim in told}
        calls = {fn: ACCURATE_CALLS[fn] for fn in nest.accurate}
        self._scalars = ScalarPrinter(self._places.extent, file.helpers, calls)
        self._ops = OpPrinter(self._scalars, self._places.shape)
        self._tiles: dict[Tile, Operand] = {}
        self._columns: dict[Tile, None] = {}
        self._joined: dict[Tile, Let] = {}
        self._beside: Let | None = None
        self._pair: Load | Store | None = None
        self._begun = -1  # the number of lines when a step of a dependent launch was the last

    def body(self) -> tuple[list[str], Parameters]:
        once, body = _parted(self._nest)
        self._statements(once)
        self._places.start(self._nest)
        at = 0 if self._nest.programs else len(self._lines.text)  # in front of a loop over places
        self._statements(body)
        self._lines.text[at:at] = self._places.extent_lines()
        parameters = self._places.parameters
        parameters.rows = uneven_rows(self._nest, self._tiling)
        return [*even_lines(parameters, self._file), *self._lines.text], parameters

    def _statements(self, body: tuple[Stmt, ...]) -> None:
        for stmt in body:
            STATEMENTS[type(stmt)](self, stmt)

    def _define(self, tile: Tile, lanes: Lanes, hint: str = "") -> str:
        name = self._names.of(tile, tile.hint or hint or tile.name)
        self._tiles[tile] = Operand(Text(name, tile.dtype, single=not lanes), lanes)
        return name

    # memory ----------------------------------------------------------------------

    def _issue(self, stmt: Issue) -> None:
        """Nothing: the loop's head says how far its loads run ahead of where they are awaited."""

    def _load(self, stmt: Load | Await) -> None:
        target = stmt.target
        if isinstance(stmt, Load) and stmt.view.paired:
            self._in_pairs(stmt)
            return
        view = stmt.view if isinstance(stmt, Load) else self._issues[stmt.token].view
        buffer, lanes = view.buffer, self._tiling.lanes(target)
        hint = view.hint or buffer.name
        name = self._define(target, lanes, hint.lower())
        if stmt.columns:
            self._columns[target] = None
            lanes = lanes[::-1]
        args = [self._places.address(view, lanes).text()]
        if mask := self._places.mask(lanes, lanes, view):
            args += [f"mask={mask}", "other=0" if buffer.dtype in OWN else "other=0.0"]
        end = ") != 0" if buffer.dtype == TRUTH else ")"
        if not (isinstance(stmt, Await) and self._issues[stmt.token].described):
            self._lines.call(f"{name} = tl.load(", args, end, stmt.origin)
            return
        descriptor, text = self._places.described(view, lanes)
        self._lines.line(f"if {descriptor} is None:", note="strides that no descriptor takes")
        self._lines.depth += 1
        self._lines.call(f"{name} = tl.load(", args, end, stmt.origin)
        self._lines.depth -= 1
        self._lines.line("else:")
        self._lines.line(f"    {name} = {text}", stmt.origin)

    def _iota(self, stmt: Iota) -> None:
        lanes, word = self._tiling.lanes(stmt.target), dim_word(stmt.dim).lower()
        if stmt.at:
            name = self._define(stmt.target, lanes, f"{stmt.at}_{word}")
            place = self._places.edge(stmt.dim, stmt.at)
        else:
            name = self._define(stmt.target, lanes, f"index_{word}")
            place = self._places.offsets(stmt.dim) if lanes else self._places.index(stmt.dim)
        self._lines.line(f"{name} = {place}", stmt.origin)

    def _block_of(self, stmt: BlockOf) -> None:
        position = self._tiles[stmt.value]
        whole = position.text.dtype in (INDEX, *INTEGERS)
        helper = "_block_of" if whole else "_block_at"
        text = position.text if whole else as_float(position.text)
        made = self._scalars.helper(helper, text.text, self._places.step(stmt.dim))
        name = self._define(stmt.target, position.lanes, f"block_{dim_word(stmt.dim).lower()}")
        self._lines.line(f"{name} = {made.text}", stmt.origin)

    def _next(self, stmt: Next) -> None:
        self._places.go_to(stmt.dim, self._tiles[stmt.value].text.text)

    def _store(self, stmt: Store) -> None:
        if stmt.view.paired:
            self._in_pairs(stmt)
            return
        operand, buffer = self._tiles[stmt.value], stmt.view.buffer
        value = as_dtype(operand.text, buffer.dtype)
        if buffer.dtype == TRUTH:
            value = Text(f"{value.at(ATOM)}.to({MEMORY[TRUTH].triton})")
        mask = self._places.mask(operand.lanes, operand.lanes, stmt.view)
        address = self._places.address(stmt.view, operand.lanes)
        if columns := dims_in_turn(stmt.view, operand.lanes, self._tiling):
            lined_up, count = in_rows(operand.lanes, columns, self._places.shape)
            args = [address.in_rows(lined_up, count), lined_up(value.text)]
            mask = mask and lined_up(mask)
        else:
            args = [address.text(), value.text]
        args += [f"mask={mask}"] if mask else []
        self._lines.call("tl.store(", args, ")", stmt.origin)

    def _in_pairs(self, stmt: Load | Store) -> None:
        """An access of every other element, with the one before it, as an access of rows."""
        if self._pair is None:
            self._pair = stmt  # spelled with the next one
            return
        pair, self._pair = in_order(self._pair, stmt), None
        buffer, lanes = stmt.view.buffer, self._tiling.lanes(accessed(stmt))
        address, mask = rows_of_pairs(self._places, stmt.view, lanes)
        rows, apart = shape_of_pairs(self._places, lanes)
        masked = [f"mask={mask}"] if mask else []
        if isinstance(stmt, Store):
            values = [as_dtype(self._tiles[accessed(s)].text, buffer.dtype).text for s in pair]
            joined = f"tl.reshape(tl.join({', '.join(values)}), {rows})"
            self._lines.call("tl.store(", [address, joined, *masked], ")", stmt.origin)
            return
        hint = (stmt.view.hint or buffer.name).lower()
        whole = self._names.of(("pairs", stmt.target), f"{hint}_pairs")
        names = ", ".join(self._define(accessed(s), lanes, hint) for s in pair)
        other = ["other=0" if buffer.dtype in OWN else "other=0.0"] if mask else []
        self._lines.call(f"{whole} = tl.load(", [address, *masked, *other], ")", stmt.origin)
        self._lines.line(f"{names} = tl.split(tl.reshape({whole}, {apart}))")

    # other kernels ---------------------------------------------------------------

    def _wait(self, stmt: Wait) -> None:
        self._early("wait", "until the kernel before has ended")

    def _release(self, stmt: Release) -> None:
        self._early("launch_dependents", "the next kernel may begin")

    def _early(self, name: str, note: str) -> None:
        """A step of a dependent launch, which not every device has."""
        self._places.parameters.overlaps = True
        if len(self._lines.text) != self._begun:  # else it follows another such step
            self._lines.line(f"if {OVERLAPS}:")
        self._lines.line(f"    tl.extra.cuda.gdc_{name}()", note=note)
        self._begun = len(self._lines.text)

    # arithmetic ------------------------------------------------------------------

    def _let(self, stmt: Let) -> None:
        if stmt.into is not None:
            self._joined[stmt.target] = stmt  # spelled where it is added
            return
        if stmt.beside:
            self._beside = stmt  # spelled with the next one
            return
        lanes = self._tiling.lanes(stmt.target)
        if self._beside is not None:
            self._two_sums(self._beside, stmt, lanes)
            return
        text = as_dtype(self._value(stmt, lanes), stmt.target.dtype)
        if isinstance(stmt.op, Cast) and stmt.args[0] in self._columns:
            self._columns[stmt.target] = None
        name = self._define(stmt.target, lanes)
        fused = "tl.fma(" in text.text  # with zero: a product by itself
        note = REASONS[stmt.apart] if stmt.apart and fused else ""
        self._lines.line(f"{name} = {text.text}", stmt.origin, note)

    def _two_sums(self, first: Let, second: Let, lanes: Lanes) -> None:
        self._beside = None
        text = self._ops.sums([self._tiles[let.args[0]] for let in (first, second)], lanes)
        names = [self._define(let.target, lanes) for let in (first, second)]
        self._lines.line(f"{', '.join(names)} = {text.text}", second.origin)

    def _value(self, stmt: Let, lanes: Lanes, total: str = "") -> Text:
        args = [self._tiles[arg] for arg in stmt.args]
        if is_matrix_dot(stmt, self._tiling):
            columns = stmt.args[1] in self._columns
            depth = self._tiling.block(stmt.args[0].axes[-1])
            return self._ops.matrix_dot(
                args[0], args[1], columns, total, split=stmt.split, depth=depth
            )
        return self._ops.text(stmt.op, args, lanes, apart=stmt.apart)

    def _guard(self, stmt: Guard) -> None:
        operand = self._tiles[stmt.value]
        text = as_dtype(operand.text, stmt.target.dtype)
        if mask := self._places.mask((stmt.dim,), operand.lanes):
            fill = number(stmt.fill)
            if text.dtype in INTEGERS:
                fill = integer_literal(stmt.fill, text.dtype)
            text = Text(f"tl.where({mask}, {text.text}, {fill})", text.dtype)
        name = self._define(stmt.target, operand.lanes, stmt.value.hint)
        self._lines.line(f"{name} = {text.text}", stmt.origin, "lanes past the end")

    def _init(self, stmt: Init) -> None:
        lanes = self._tiling.lanes(stmt.target)
        name = self._define(stmt.target, lanes)
        shape, dtype = self._places.shape(lanes), stmt.target.dtype
        start, kind = number(IDENTITY[stmt.monoid]), "tl.float32"
        if dtype in INTEGERS:
            start, kind = integer_literal(IDENTITY[stmt.monoid], dtype), MEMORY[dtype].triton
        self._lines.line(f"{name} = tl.full({shape}, {start}, {kind})")

    def _fold(self, stmt: Fold) -> None:
        total = self._tiles[stmt.target]
        name = total.text.text
        onto = total if stmt.onto is None else self._tiles[stmt.onto]
        if stmt.value in self._joined:
            dot = self._joined[stmt.value]
            text = self._value(dot, total.lanes, onto.text.text)
            self._lines.line(f"{name} = {text.text}", dot.origin)
            return
        value = self._number(stmt.value, stmt.target.dtype)
        if stmt.ahead:
            self._lines.line(f"{name} = {value.text.text}", stmt.origin)
            return
        spelled = self._ops.fold_apart(stmt.apart) if stmt.apart else self._ops.fold
        text = spelled(stmt.monoid, onto.text, value.over(total.lanes))
        self._lines.line(f"{name} = {text.text}", stmt.origin, REASONS.get(stmt.apart, ""))

    def _number(self, tile: Tile, dtype: str = "") -> Operand:
        """A tile as a number of arithmetic; as an integer, for an accumulator of ``dtype``."""
        operand = self._tiles[tile]
        whole = dtype in INTEGERS
        text = as_integer(operand.text, dtype) if whole else as_float(operand.text)
        return Operand(text, operand.lanes)

    def _for(self, stmt: For) -> None:
        loops = flat_loops(stmt)
        if len(loops) > 1:
            self._places.enter_flat(loops)
        else:
            self._places.enter(stmt, {tile: self._tiles[tile].text.text for tile in stmt.bounds})
        self._statements(loops[-1].body)
        self._places.leave(*loops)
        for tile in stmt.settled:
            name = self._tiles[tile].text.text
            zero = "0" if tile.dtype in INTEGERS else "0.0"
            self._lines.line(f"{name} = {name} + {zero}", note=REASONS[READ_ONCE])


STATEMENTS: dict[type, Callable[[Any, Any], None]] = {
    Load: _KernelPrinter._load,
    Issue: _KernelPrinter._issue,
    Await: _KernelPrinter._load,
    Iota: _KernelPrinter._iota,
    BlockOf: _KernelPrinter._block_of,
    Store: _KernelPrinter._store,
    Let: _KernelPrinter._let,
    Guard: _KernelPrinter._guard,
    Init: _KernelPrinter._init,
    Fold: _KernelPrinter._fold,
    For: _KernelPrinter._for,
    Wait: _KernelPrinter._wait,
    Release: _KernelPrinter._release,
    Next: _KernelPrinter._next,
}
