"""The places of a kernel's tiles as Triton text: block numbers, offsets, masks and addresses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from blockbuster.emit.print.triton.addresses import Address
from blockbuster.emit.print.triton.file import File, Lines, Parameters
from blockbuster.emit.print.triton.ops import Lanes, spread
from blockbuster.emit.print.triton.stages import range_of
from blockbuster.emit.print.triton.strided import StridedPlaces
from blockbuster.emit.tile.chains import next_of
from blockbuster.emit.tile.grid_order import grouped_dims, turned_at_once
from blockbuster.emit.tile.group import Group
from blockbuster.emit.tile.names import Names, dim_word
from blockbuster.emit.tile.program import (
    END,
    FIRST,
    Buffer,
    For,
    Issue,
    Load,
    Nest,
    Stmt,
    Store,
    Tile,
    View,
    statements,
)
from blockbuster.emit.tile.tiling import Tiling, addressed_dims
from blockbuster.emit.tile.uneven_rows import single_rows
from blockbuster.ir.lengths import Length
from blockbuster.ir.types import Dim, size_class
from blockbuster.ir.views import AxisView, Share, Strided, is_padded, shares_of

ENDS = ("first", "stop")  # of a chunk, or of a span
NEARER = ("tl.maximum", "tl.minimum")  # the end that leaves out more


class Places:
    """The current block of each dim while a kernel is being printed.

    A block of a list-only dim is an index, a scalar; any other is a vector of offsets, with a mask
    where lanes may lie past the end.
    """

    def __init__(self, file: File, tiling: Tiling, names: Names, lines: Lines, stages: int) -> None:
        self._file = file
        self._tiling = tiling
        self._launched = stages, tiling
        self._names = names
        self._lines = lines
        self._numbers: dict[Dim, str] = {}  # of each dim that a loop or the grid walks
        self._starts: dict[Dim, str] = {}  # the first element of its block
        self._indices: dict[Dim, str] = {}
        self._full: dict[Dim, None] = {}  # of which the current block has no lanes past the end
        self._extents: dict[Dim, str] = {}
        self._pitches: dict[AxisView, dict[int, None]] = {}  # of the rows of accesses along a dim
        self._shares: dict[Dim, dict[Share, None]] = {}  # what joined dims say of their axes
        self._wide: dict[Dim, None] = {}  # of which loops begin at positions, perhaps of 64 bits
        self._single: frozenset[Dim] = frozenset()  # one row is all that tiles are
        self.parameters = Parameters()
        self._strided = StridedPlaces(self.size, self._part, self.offsets, self._indices)

    # parameters ------------------------------------------------------------------

    def size(self, dim: Dim) -> str:
        """The parameter that holds the size of ``dim``."""
        own, p = size_class(dim), self.parameters
        return p.told.get(own) or p.sizes.setdefault(own, self._file.size(dim))

    def _part(self, length: Length) -> str:
        return self.parameters.parts.setdefault(length, self._file.part(length))

    def block(self, dim: Dim) -> str:
        """The parameter that holds the number of lanes along ``dim``."""
        return self.parameters.blocks.setdefault(dim, self._file.block(dim))

    def extent(self, dim: Dim) -> str:
        """The size of ``dim`` as a float32 number."""
        self.size(dim)
        dim = size_class(dim)
        name = self._names.of(("extent", dim), f"size_{dim_word(dim).lower()}")
        return self._extents.setdefault(dim, name)

    def extent_lines(self) -> list[str]:
        """Definitions of the sizes that arithmetic uses."""
        return [
            f"    {name} = tl.cast({self._file.size(dim)}, tl.float32)"
            for dim, name in self._extents.items()
        ]

    def shape(self, lanes: Lanes) -> str:
        """The shape of a tile, as a tuple."""
        return f"({', '.join(map(self.block, lanes))}{',' * (len(lanes) == 1)})"

    def _pointer(self, buffer: Buffer) -> str:
        self.parameters.buffers.setdefault(buffer)
        return self._file.pointer(buffer)

    def _stride(self, buffer: Buffer, axis: int) -> str:
        name = self._file.stride(buffer, axis)
        return self.parameters.strides.setdefault((buffer, axis), name)

    # blocks ----------------------------------------------------------------------

    def start(self, nest: Nest) -> None:
        """Blocks of the grid's dims, and of the dims that no loop of the kernel walks."""
        for view in (s.view for s in statements(nest.body) if isinstance(s, Load | Issue | Store)):
            if view.buffer.pitch > 1:
                self._pitches.setdefault(view.dims[-1], {}).setdefault(view.buffer.pitch)
            for dim, share in shares_of(view.dims):
                self._shares.setdefault(dim, {}).setdefault(share)
        self._single = single_rows(nest, self._tiling)
        self._grid(nest)
        looped = {s.dim for s in statements(nest.body) if isinstance(s, For)}
        for dim in addressed_dims(nest.body, self._tiling):
            if dim not in looped and dim not in nest.grid:
                self._offsets(dim, "")

    def _grid(self, nest: Nest) -> None:
        """From the program's number to the block of each dim of the grid; the last runs fastest."""
        pid = "tl.program_id(0)"
        if nest.programs:
            pid = self._names.of("place", "place")
            self._walk(pid, " * ".join(map(self._count, nest.grid)), nest.stages)
        if len(nest.grid) > 1:
            self._lines.line(f"pid = {pid}")
            pid = "pid"
        for at, dim in reversed([*enumerate(nest.grid)]):
            number = self._names.of(("number", dim), f"pid_{dim_word(dim).lower()}")
            self._numbers[dim] = number
            count = self._count(dim)
            counted = f"{count} - 1 - " if dim in turned_at_once(nest) else ""
            if at == 0:
                self._lines.line(f"{number} = {counted}{pid}")
                continue
            self._lines.line(f"{number} = {counted}pid % {count}")
            if at > 1:
                self._lines.line(f"pid = pid // {count}")
            else:
                pid = f"pid // {count}"
        if nest.group is not None:
            self._grouped(nest, nest.group)
        for dim in nest.grid:
            self._block_at(dim, nest.body, f"{self._numbers[dim]} * {{}}")

    def _walk(self, place: str, places: str, stages: int) -> None:
        """The head of the loop in which a program takes one of so many places after the other.

        It becomes one loop with those inside it, so that the loads of the next place begin before
        the results of this one are stored; or its own loads run ahead, in so many stages.
        """
        self._lines.line(f"places = {places}")
        how = f"num_stages={stages}" if stages else "flatten=True"
        steps = f"tl.program_id(0), places, tl.num_programs(0), {how}"
        self._lines.line(f"for {place} in tl.range({steps}):")
        self._lines.depth += 1

    def _count(self, dim: Dim) -> str:
        """How many blocks ``dim`` has."""
        count = self.size(dim)
        return count if self._tiling.is_unit(dim) else f"tl.cdiv({count}, {self.block(dim)})"

    def _grouped(self, nest: Nest, group: Group) -> None:
        """The places of two dims, row by row until here, in groups of blocks of the first."""
        dims = grouped_dims(nest)
        names, counts = [self._numbers[dim] for dim in dims], [self._count(dim) for dim in dims]
        made = ", ".join(names)
        self._lines.line(f"{made} = tl.swizzle2d({made}, {', '.join(counts)}, {group.blocks})")
        for dim, name, count in zip(dims, names, counts, strict=True):
            if dim in nest.last_first:
                self._lines.line(f"{name} = {count} - 1 - {name}")

    def step(self, dim: Dim) -> str:
        """How many elements a block of ``dim`` has."""
        return "1" if self._tiling.is_unit(dim) else self.block(dim)

    def enter(self, stmt: For, bounds: Mapping[Tile, str]) -> None:
        """The head of a loop, and the block of its current iteration."""
        dim = stmt.dim
        if stmt.within:
            self._numbers[dim] = self._numbers[stmt.within[0]]
            self._block_at(dim, stmt.body, f"{self._numbers[dim]} * {{}}")
            return
        start = self._names.of(("start", dim), f"{dim_word(dim).lower()}0")
        ends = self._chunk(stmt) if stmt.chunk is not None else ("0", self.size(dim))
        steps = ", ".join(self._along(stmt, bounds) or self._spanned(stmt, ends, bounds))
        self._numbers[dim] = start
        if stmt.span is not None:
            self._wide[dim] = None
        if stmt.full:
            self._full[dim] = None
        if not self._tiling.is_unit(dim):
            steps += "" if next_of(stmt) else f", {self.block(dim)}"
            self._numbers[dim] = f"({start} // {self.block(dim)})"
        other = stmt.down or next_of(stmt)
        step = self._names.of(("step", dim), f"{start}_step") if other else start
        self._lines.line(f"for {step} in {range_of(stmt, steps, *self._launched)}:", stmt.origin)
        self._lines.depth += 1
        if stmt.down:
            block = "1" if self._tiling.is_unit(dim) else self.block(dim)
            self._lines.line(f"{start} = ({self.size(dim)} - 1) // {block} * {block} - {step}")
        self._block_at(dim, stmt.body, start)

    def _along(self, stmt: For, bounds: Mapping[Tile, str]) -> tuple[str, ...]:
        """The numbers of the iterations of a loop along a chain, at the first of its blocks."""
        if next_of(stmt) is None:
            return ()
        first, count = (bounds[tile] for tile in stmt.bounds)
        self.go_to(stmt.dim, first)
        return "0", f"{count}.to(tl.int32)"

    def go_to(self, dim: Dim, number: str) -> None:
        """The first element of the block of ``dim`` that a chain leads to."""
        start = self._names.of(("start", dim), f"{dim_word(dim).lower()}0")
        self._lines.line(f"{start} = {number} * {self.step(dim)}")

    def enter_flat(self, loops: Sequence[For]) -> None:
        """The head of loops that are one, and the blocks of its current iteration."""
        counts = [self._count(loop.dim) for loop in loops]
        step, every = self._names.of(("step", loops[-1].dim), "step"), " * ".join(counts)
        self._lines.line(f"for {step} in {range_of(loops[-1], f'0, {every}', *self._launched)}:")
        self._lines.depth += 1
        for at, loop in enumerate(loops):
            dim, under = loop.dim, counts[at + 1 :]
            text = f"{step} // ({' * '.join(under)})" if under[1:] else " // ".join([step, *under])
            text = f"{text} % {counts[at]}" if at else text
            start = self._names.of(("start", dim), f"{dim_word(dim).lower()}0")
            self._numbers[dim] = start
            if not self._tiling.is_unit(dim):
                text = f"{text} * {self.block(dim)}"
                self._numbers[dim] = f"({start} // {self.block(dim)})"
            if loop.full:
                self._full[dim] = None
            self._lines.line(f"{start} = {text}", loop.origin)
            self._block_at(dim, loop.body, start)

    def _chunk(self, stmt: For) -> tuple[str, str]:
        """The first element of the loop's chunk, and that behind its last."""
        dim, word = stmt.dim, dim_word(stmt.dim).lower()
        assert stmt.chunk is not None
        first, stop = (self._names.of((end, dim), f"{word}_{end}") for end in ENDS)
        args = (self.size(dim), self.step(dim), self.size(stmt.chunk), self._numbers[stmt.chunk])
        self._file.helpers.setdefault("_chunk")
        self._lines.line(f"{first}, {stop} = _chunk({', '.join(args)})")
        return first, stop

    def _spanned(
        self, stmt: For, ends: tuple[str, str], bounds: Mapping[Tile, str]
    ) -> Iterator[str]:
        """The first element and that behind the last of ``ends`` that lie in the span."""
        dim = stmt.dim
        unit = self._tiling.is_unit(dim)
        span = stmt.span or (None, None)
        for kind, limit, tile, nearer in zip(ENDS, ends, span, NEARER, strict=True):
            if tile is None:
                yield limit
                continue
            element = bounds[tile] if unit else f"{bounds[tile]} * {self.block(dim)}"
            name = self._names.of((kind, dim, stmt.span), f"{dim_word(dim).lower()}_{kind}")
            self._lines.line(f"{name} = {nearer}({element}, {limit})")
            yield name

    def edge(self, dim: Dim, at: str) -> str:
        """The index of the first or last element of the current block, or behind all elements."""
        if at == END:
            return self.size(dim)
        if self._tiling.is_unit(dim):
            return self.index(dim)
        start = self._starts.get(dim, "")
        if at == FIRST:
            return start or "tl.full((), 0, INDEX)"
        behind = f"{start} + {self.block(dim)}" if start else self.block(dim)
        stop = f"tl.minimum({behind}, {self.size(dim)})" if self._ragged(dim) else behind
        return f"{stop} - 1"

    def leave(self, *loops: For) -> None:
        """The end of a loop, or of loops that are one."""
        self._lines.depth -= not loops[0].within
        for dim in (loop.dim for loop in loops):
            del self._numbers[dim]
            for known in (self._wide, self._full, self._starts, self._indices):
                known.pop(dim, None)
            for share in self._shares.get(dim, ()):
                self._indices.pop(share.dim, None)

    def _block_at(self, dim: Dim, body: tuple[Stmt, ...], start: str) -> None:
        """The index, or the offsets and mask, of the block of ``dim`` whose number is known."""
        if self._tiling.is_unit(dim):
            index = self._names.of(("index", dim), dim_word(dim).lower())
            self._indices[dim] = index
            self._lines.line(f"{index} = tl.cast({self._numbers[dim]}, INDEX)")
            for share in self._shares.get(dim, ()):
                own = self._names.of(("index", share.dim), dim_word(share.dim).lower())
                self._indices[share.dim] = own
                self._lines.line(f"{own} = {share.python(index, self.size)}")
            return
        self._starts[dim] = start.format(self.block(dim))
        if dim in addressed_dims(body, self._tiling):
            self._offsets(dim, self._starts[dim])

    def _offsets(self, dim: Dim, start: str) -> None:
        lanes = f"tl.arange(0, {self.block(dim)})"
        vector, name = f"({start} + {lanes})" if start else lanes, self.offsets(dim)
        self._lines.line(f"{name} = {vector}.to(INDEX)")
        if dim in self._single:
            self._lines.line(f"{name} = tl.max_contiguous({name}, {self._file.even(dim)})")
        for share in self._shares.get(dim, ()):
            text = share.python(self.offsets(dim), self.size)
            self._lines.line(f"{self.offsets(dim, share)} = {text}")
        if self._ragged(dim):
            self._lines.line(f"{self._inside(dim)} = {self.offsets(dim)} < {self.size(dim)}")
            for pitch in self._pitches.get(dim, ()):
                end = padded(self.size(dim), pitch)
                self._lines.line(f"{self._inside(dim, pitch)} = {self.offsets(dim)} < {end}")

    # positions -------------------------------------------------------------------

    def offsets(self, dim: Dim, share: Share | None = None) -> str:
        """The positions of the lanes of the current block, or their share of a joined dim's: it has
        a name of its own, since the dim that it runs along may have lanes, too.
        """
        key, own = (dim, dim) if share is None else ((dim, share.dim), share.dim)
        return self._names.of(("offsets", key), f"offs_{dim_word(own).lower()}")

    def index(self, dim: Dim) -> str:
        """The position of the current element of a list-only dim."""
        return self._indices.get(dim, "tl.full((), 0, INDEX)")

    def _inside(self, dim: Dim, pitch: int = 1) -> str:
        """The mask of a dim, or of what its rows are padded to."""
        key, behind = (("mask", dim, pitch), "_padded") if pitch > 1 else (("mask", dim), "")
        return self._names.of(key, f"mask_{dim_word(dim).lower()}{behind}")

    def _ragged(self, dim: Dim) -> bool:
        return self._tiling.ragged(dim) and dim not in self._full

    def mask(self, dims: Lanes, lanes: Lanes, view: View | None = None) -> str:
        """The lanes of a tile that lie inside each of ``dims``; empty if all do.

        ``view``: as it is loaded or stored; then lanes that lie behind a padded row are inside, and
        those outside of an axis that reads zeros there are not.
        """
        pitches = dict.fromkeys(view.dims[-1:], view.buffer.pitch) if view else {}
        ragged = [dim for dim in lanes if dim in dims and self._ragged(dim)]
        inside = (self._inside(dim, pitches.get(dim, 1)) for dim in ragged)
        tests = [f"{name}{spread((d,), lanes)}" for d, name in zip(ragged, inside, strict=True)]
        for axis in filter(is_padded, view.dims if view else ()):
            self._file.helpers.setdefault("_within")
            tests.append(self._strided.within(axis, lanes))
        return " & ".join(tests)

    def address(self, view: View, lanes: Lanes) -> Address:
        """The pointers to the elements of a tile with ``lanes``."""
        found = Address(self._pointer(view.buffer))
        for axis, (dim, kind) in enumerate(zip(view.dims, view.buffer.axes, strict=True)):
            own = shift = ""
            if isinstance(dim, Strided):
                own, shift = self._strided.apart(dim, lanes)
            elif dim in lanes and not kind.per_block:
                own = f"{self.offsets(dim)}{spread((dim,), lanes)}"
            else:  # a dim that nothing walks is at number 0
                shift = (self._numbers if kind.per_block else self._indices).get(dim or "", "")
            if own:
                found.along[axis] = own, shift, self._stride(view.buffer, axis)
            elif shift:
                found.shared.append(f"{shift} * {self._stride(view.buffer, axis)}")
        return found

    def described(self, view: View, lanes: Lanes) -> tuple[str, str]:
        """The descriptor of an array, and the tile with ``lanes`` as it loads it."""
        shape, order, place = list[int](), list[Dim](), list[str]()
        for dim, axis in zip(view.dims, view.buffer.axes, strict=True):
            assert not isinstance(dim, Strided), "descriptors are for plain axes"
            inside = dim is not None and dim in lanes and not axis.per_block
            place.append(self._first(dim, self._starts if inside else self._numbers))
            shape.append(self._tiling.blocks[dim] if dim and inside else 1)
            order += [dim] if dim and inside else []
        key = view.buffer, tuple(shape)
        name = self.parameters.descriptors.setdefault(key, self._file.descriptor(*key))
        text = f"{name}.load([{', '.join(place)}])"
        if len(order) < len(shape):
            text += f".reshape({', '.join(map(self.block, order))})"
        return name, text if tuple(order) == lanes else f"{text}.T"

    def _first(self, dim: Dim | None, known: Mapping[Dim, str]) -> str:
        """The first element or the number of the current block of ``dim``, 32 bits wide."""
        number = known.get(dim, "0") if dim is not None else "0"
        return f"tl.cast({number}, tl.int32)" if dim in self._wide else number


def padded(size: str, pitch: int) -> str:
    """The elements from one row of an array to the next."""
    return f"tl.cdiv({size}, {pitch}) * {pitch}"
