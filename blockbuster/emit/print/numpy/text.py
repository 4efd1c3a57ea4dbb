"""NumPy text: a tile program as executable, readable source that imports only NumPy.

Tiles are slices of arrays, so a ragged last block needs no padding. A tile takes over the memory of
a tile that is not read any more (reuse.py). If only its store reads it, it is computed directly in
the stored array. The same printer, in its *terse* form, writes the references of emitted kernels
(reference.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from blockbuster.emit.print.numpy.groups import group_lines
from blockbuster.emit.print.numpy.mixed import has_integers
from blockbuster.emit.print.numpy.operators import Operators
from blockbuster.emit.print.numpy.own_functions import HELPERS
from blockbuster.emit.print.numpy.places import Scope, SlicedPlaces, lanes_of, listed, permuted
from blockbuster.emit.print.numpy.spelling import (
    IDENTITY_TEXT,
    MONOID_TEXT,
    RESERVED,
    Spelling,
    aligned,
)
from blockbuster.emit.tile.chains import next_of
from blockbuster.emit.tile.dataflow import defined
from blockbuster.emit.tile.names import note_of
from blockbuster.emit.tile.next_block import Next
from blockbuster.emit.tile.program import (
    END,
    LAST,
    Await,
    BlockOf,
    Buffer,
    BufferAxis,
    Fold,
    For,
    Guard,
    Init,
    Iota,
    Issue,
    Let,
    Load,
    Stmt,
    Store,
    Tile,
    TileProgram,
    View,
)
from blockbuster.emit.tile.result_dtypes import WIDTHS
from blockbuster.emit.tile.reuse import Reuse, reuse_in
from blockbuster.emit.tile.rings import issues
from blockbuster.emit.tile.tried import Tried
from blockbuster.emit.tile.trips import dims_of, sized
from blockbuster.emit.tile.waits import Release, Wait
from blockbuster.ir.expr import Expr
from blockbuster.ir.ops import IDENTITY, Functional, Pointwise
from blockbuster.ir.types import Dim, size_class
from blockbuster.ir.views import Strided, is_padded

DECORATOR = "@np.errstate(all='ignore')"
RUN_DOC = '''    """Outputs by name, for arrays of ``dtype`` by name.

    ``order`` puts the iterations of a parallel loop in order; ``empty`` makes arrays to fill.
    """
'''
SAFE_DOC = '''    """The same for numbers of any size."""
'''

AGAIN = "safe(inputs, sizes, block_sizes, dtype=dtype, order=order, empty=empty)"


def numpy_text(program: TileProgram, *, tried: Tried | None = None) -> str:
    """A module's source: ``run(inputs, sizes, block_sizes, *, dtype, order, empty)``.

    ``sizes`` is by size class, ``block_sizes`` by dim. ``tried``: runs first, and gives way to
    ``program`` where it is not right.
    """
    if tried is None:
        printer = Text(program)
        return printer.module([DECORATOR, *printer.function("run", RUN_DOC)])
    safe, printer = Text(program), Text(tried.program, tried=tried)
    found = [DECORATOR, *printer.function("run", RUN_DOC)]
    return printer.module(found, safe.function("safe", SAFE_DOC), safe.helpers())


class Text(Operators):
    """The lines of a program. ``terse``: the plain text of a reference, with no order of loops.

    ``tried``: what its numbers are checked for; where they fail, the text calls ``safe``.
    """

    def __init__(
        self,
        program: TileProgram,
        terse: bool = False,
        tried: Tried | None = None,
    ) -> None:
        self._program = program
        self._terse = terse
        self._tried = tried
        self._taken: dict[str, None] = dict.fromkeys(RESERVED)
        buffers = (*program.inputs, *program.outputs, *program.workspaces)
        self.names = {buffer: self._unique(buffer.name) for buffer in buffers}
        self._dims = dims_of(program)
        self._sizes = {d: self._unique(d) for d in sized(program)}
        self._blocks = {d: self._unique(f"B{d}") for d in self._dims}
        self._at = {d: self._unique(d.lower()) for d in self._dims}
        self._spelling = Spelling(self._size, exact=not terse)
        self._integers = has_integers(program)
        self._stored: list[Store] = []  # what is made in its place

    def _unique(self, name: str) -> str:
        # ASCII only: Python takes some letters for others, so that two names would be one
        plain = re.sub(r"\W|^(?=\d|$)", "_", name.replace("'", "1"), flags=re.ASCII)
        while plain in self._taken or re.fullmatch(r"t\d+(_new)?", plain):
            plain += "_"
        self._taken[plain] = None
        return plain

    def module(
        self, function: list[str], before: Sequence[str] = (), helpers: Sequence[str] = ()
    ) -> str:
        """The whole text; ``before`` stands a function that this one calls, with its helpers."""
        needed = [HELPERS[name] for name in dict.fromkeys((*helpers, *self.helpers()))]
        math = ["import math\n"] if any("math." in helper for helper in needed) else []
        head = "\n".join([*math, "import numpy as np\n"])
        parts = ["\n".join(lines) + "\n" for lines in (before, function) if lines]
        return "\n\n".join([head, *needed, *parts])

    def helpers(self) -> Sequence[str]:
        """The names of the functions that the lines need."""
        return tuple(self._spelling.helpers)

    def function(self, name: str, doc: str) -> list[str]:
        """The function that computes the program."""
        lines = [*self.body()]
        results = ", ".join(f"{b.name!r}: {self.names[b]}" for b in self._program.outputs)
        return [
            f"def {name}(inputs, sizes, block_sizes, *, dtype=np.float64, order=list, "
            "empty=np.empty):",
            *doc.rstrip("\n").split("\n"),
            *self.bindings(lines),
            *lines,
            f"    return {{{results}}}",
        ]

    # the head of a function ------------------------------------------------------

    def bindings(self, body: Sequence[str]) -> Iterator[str]:
        """Arrays, and the sizes and block sizes that ``body`` reads, as local names."""
        made = (*self._program.outputs, *self._program.workspaces)
        allocations = [self.allocation(buffer, "empty") for buffer in made]
        read = {word for line in (*allocations, *body) for word in re.findall(r"\w+", line)}
        for buffer in self._program.inputs:
            yield f"    {self.names[buffer]} = inputs[{buffer.name!r}]"
        for dim, name in self._sizes.items():
            if name in read:
                yield f"    {name} = sizes[{dim!r}]"
        for dim in self._dims:
            if self._blocks[dim] in read:
                yield f"    {self._blocks[dim]} = block_sizes[{dim!r}]"
        yield from allocations

    def allocation(self, buffer: Buffer, empty: str) -> str:
        """The line that makes an output or workspace."""
        extents = listed([self._whole_extent(axis) for axis in buffer.axes])
        return f"    {self.names[buffer]} = {empty}({extents}, {self._dtype(buffer)})"

    def _whole_extent(self, axis: BufferAxis) -> str:
        if axis.dim is None or (axis.per_block and axis.dim in self._program.whole):
            return "1"
        size = self._size(axis.dim)
        return f"-(-{size} // {self._blocks[axis.dim]})" if axis.per_block else size

    def _size(self, dim: Dim) -> str:
        return self._sizes[size_class(dim)]

    # statements ------------------------------------------------------------------

    def body(self) -> Iterator[str]:
        for nest in self._program.nests:
            scope = Scope("    ", ())
            self._issues = issues(nest.body)
            plain = self._terse or self._integers
            self._reuse = Reuse() if plain else reuse_in(nest)
            for dim in nest.grid:
                yield scope.indent + self._loop(For(dim, True, ()))[0]
                scope = scope.inside(dim)
            yield from self._statements(nest.body, scope)

    def _statements(self, body: tuple[Stmt, ...], scope: Scope) -> Iterator[str]:
        for stmt in body:
            if isinstance(stmt, For):
                yield from (scope.indent + line for line in self._loop(stmt))
                yield from self._statements(stmt.body, scope.inside(stmt.dim))
            else:
                note = note_of(stmt) if isinstance(stmt, Let | Fold) else ""
                for line in self.written(stmt, scope):
                    yield f"{scope.indent}{line}{note}"
                    note = ""
                yield from (scope.indent + line for line in self._check(defined(stmt)))

    def written(self, stmt: Stmt, scope: Scope) -> list[str]:
        """The lines of a statement that is no loop."""
        return WRITERS[type(stmt)](self, stmt, scope)

    def _loop(self, loop: For) -> list[str]:
        for joined in loop.within[:1]:
            number = f"{self._at[joined]} // {self._blocks[joined]}"
            return [f"for {self._at[loop.dim]} in [{number} * {self._blocks[loop.dim]}]:"]
        if loop.span is not None and next_of(loop) is not None:
            first, count = loop.bounds
            return [*self._next(Next(loop.dim, first)), f"for _ in range(int({count.name})):"]
        steps = f"range(0, {self._size(loop.dim)}, {self._blocks[loop.dim]})"
        if loop.chunk is not None:
            part = self._spelling.helper("chunk")
            steps = f"{part}({steps}, {self._at[loop.chunk]}, {self._size(loop.chunk)})"
        if loop.span is not None:
            begin, end = (tile and tile.name for tile in loop.span)
            steps = f"{self._spelling.helper('within')}({steps}, {begin}, {end})"
        steps = f"reversed({steps})" if loop.down else steps
        return [f"for {self._at[loop.dim]} in {f'order({steps})' if loop.parallel else steps}:"]

    def _next(self, stmt: Next, scope: Scope | None = None) -> list[str]:
        return [f"{self._at[stmt.dim]} = int({stmt.value.name}) * {self._blocks[stmt.dim]}"]

    def _load(self, stmt: Load | Await, scope: Scope) -> list[str]:
        tile = stmt.target
        view = stmt.view if isinstance(stmt, Load) else self._issues[stmt.token].view
        name, places = self.names[view.buffer], self._places(scope)
        if any(map(is_padded, view.dims)):
            text = places.with_zeros(name, view, tile, self._spelling.helper)
        else:
            text = name + self.index(view, tile, scope)
        if tile.dtype == "float64" and 0 < WIDTHS.get(view.buffer.dtype, 0) < WIDTHS[tile.dtype]:
            text += ".astype(np.float64)"
        text += permuted(view.sliced(tile), tile.axes)
        return [f"{tile.name} = {text}"]

    def _store(self, stmt: Store, scope: Scope) -> list[str]:
        tile, view = stmt.value, stmt.view
        if stmt in self._stored:
            return []
        index = self.index(view, tile, scope) or "[...]"
        text = tile.name + permuted(tile.axes, view.sliced(tile))
        return [f"{self.names[view.buffer]}{index} = {text}"]

    def index(self, view: View, tile: Tile, scope: Scope) -> str:
        """The place of a tile in an array, in brackets; empty for the whole of it in terse text."""
        axes = zip(view.dims, view.buffer.axes, strict=True)
        places = self._places(scope)
        if places.needs_positions(view, tile):
            return f"[{', '.join(places.positions(view, tile))}]"
        texts = [
            places.slice(dim, tile)
            if isinstance(dim, Strided)
            else self._at_axis(dim, axis, tile, scope)
            for dim, axis in axes
        ]
        if texts and all(text == ":" for text in texts):
            return ""
        return f"[{', '.join(texts) or '...'}]"

    def _places(self, scope: Scope) -> SlicedPlaces:
        return SlicedPlaces(
            self._size, lambda dim: self._start(dim, scope), lambda dim: self._extent(dim, scope)
        )

    def _at_axis(self, dim: Dim | None, axis: BufferAxis, tile: Tile, scope: Scope) -> str:
        if dim is None:
            return "0"
        looped = dim in scope.loops
        at, block = self._at[dim], self._blocks[dim]
        if dim in tile.axes and not axis.per_block:
            return f"{at}:{at} + {block}" if looped else ":"
        if not looped:
            return "0"
        return f"{at} // {block}" if axis.per_block else at

    def _start(self, dim: Dim, scope: Scope) -> str:
        """The first element of the current block of ``dim``."""
        return self._at[dim] if dim in scope.loops else ""

    def _extent(self, dim: Dim, scope: Scope) -> str:
        """How many elements of ``dim`` the current block has."""
        size = self._size(dim)
        rest = f"min({self._blocks[dim]}, {size} - {self._at[dim]})"
        return rest if dim in scope.loops else size

    def _shape(self, tile: Tile, scope: Scope) -> str:
        extents = (
            self._blocks[dim] if dim in tile.per_lane else self._extent(dim, scope)
            for dim in tile.axes
        )
        return listed(list(extents))

    def _iota(self, stmt: Iota, scope: Scope) -> list[str]:
        start, extent = self._start(stmt.dim, scope), self._extent(stmt.dim, scope)
        if stmt.at:
            last = f" + {extent} - 1" if stmt.at == LAST else ""
            place = self._size(stmt.dim) if stmt.at == END else f"{start or 0}{last}"
            return [f"{stmt.target.name} = {f'np.int64({place})' if self._integers else place}"]
        steps = f"{start}, {start} + {extent}" if start else extent
        dtype = "np.int64" if self._integers else "dtype"
        return [f"{stmt.target.name} = np.arange({steps}, dtype={dtype})"]

    def _block_of(self, stmt: BlockOf, scope: Scope) -> list[str]:
        whole = stmt.dim in self._program.whole
        lanes = f"max({self._size(stmt.dim)}, 1)" if whole else self._blocks[stmt.dim]
        at = f"({stmt.value.name}, {lanes})"
        return [f"{stmt.target.name} = {self._spelling.helper('block_of')}{at}"]

    def _guard(self, stmt: Guard, scope: Scope) -> list[str]:
        return [f"{stmt.target.name} = {self._read(stmt.value, stmt.target)}"]

    def _init(self, stmt: Init, scope: Scope) -> list[str]:
        shape, fill = self._shape(stmt.target, scope), IDENTITY[stmt.monoid]
        start = self._number(stmt.target, IDENTITY_TEXT[stmt.monoid], fill)
        return [f"{stmt.target.name} = np.full({shape}, {start}, {self._dtype(stmt.target)})"]

    def _fold(self, stmt: Fold, scope: Scope) -> list[str]:
        lead, value = stmt.target, self._folded(stmt.value, stmt.target)
        place = lead.name + lanes_of(lead, stmt.value)
        onto = place if stmt.onto is None else self._folded(stmt.onto, lead)
        folded = MONOID_TEXT[stmt.monoid].format(onto, value)
        if not stmt.members:
            return [f"{place} = {value if stmt.ahead else folded}"]

        def spelled(target: Tile, factor: Expr, names: Sequence[str]) -> str:
            return self._spell(target).number(factor, names, 6)

        return group_lines(stmt, value, folded, self._folded, spelled)

    def _let(self, stmt: Let, scope: Scope) -> list[str]:
        text = self._into_memory(stmt, scope) or self.operator(stmt, scope)
        return [f"{stmt.target.name} = {text}"]

    def _check(self, made: Tile | None) -> Iterator[str]:
        """What ends the function where the numbers of a tile are not small."""
        if made is not None and self._tried and made in self._tried.small:
            yield f"if not np.vdot({made.name}, {made.name}) < {self._tried.limit}:"
            yield f"    return {AGAIN}"

    def _into_memory(self, stmt: Let, scope: Scope) -> str:
        """The value of ``stmt`` made in memory that is there already; empty if none is."""
        free, store = self._reuse.taken.get(stmt.target), self._reuse.stored.get(stmt.target)
        memory = free.name if free else ""
        if store is not None and self._places(scope).needs_positions(store.view, store.value):
            store = None  # elements at positions are a copy: nothing written to them would stay
        if store is not None:
            memory = self.names[store.view.buffer] + self.index(store.view, store.value, scope)
        if not memory:
            return ""
        spelling, names = self._spell(stmt.target, stmt.args), self._operands(stmt)
        if isinstance(stmt.op, Functional):
            text = spelling.functional_into(stmt.op.name, names, memory)
        else:
            assert isinstance(stmt.op, Pointwise)
            given = zip(names, stmt.args, strict=True)
            names = [aligned(name, arg.axes, stmt.op.axes) for name, arg in given]
            text = spelling.into(stmt.op.expr, names, memory, free.name if free else "")
        if text and store is not None:
            self._stored.append(store)
        return text


WRITERS: dict[type, Callable[[Text, Any, Scope], list[str]]] = {
    Load: Text._load,
    **dict.fromkeys((Issue, Wait, Release), lambda *_: []),  # nests and loads run in turn
    Await: Text._load,
    Iota: Text._iota,
    BlockOf: Text._block_of,
    Next: Text._next,
    Store: Text._store,
    Let: Text._let,
    Guard: Text._guard,
    Init: Text._init,
    Fold: Text._fold,
}
