"""What the launcher of an emitted file does, as a value: arrays that are made, one launch a kernel.

launcher_text.py prints it. Where kernels compute of constants alone, ``prepare`` launches them and
returns what they store; ``launch`` takes that, and calls ``prepare`` where it is not given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from blockbuster.emit.print.triton.even import even_strides, quotient
from blockbuster.emit.print.triton.file import EVEN_PARTS, File, Parameters
from blockbuster.emit.tile.constants import kept_arrays, kept_nests
from blockbuster.emit.tile.dataflow import dim_along
from blockbuster.emit.tile.dtypes import MEMORY
from blockbuster.emit.tile.launch_spec import (
    BLOCKS,
    LEAST,
    SIZE,
    STRIDE,
    TIMES,
    Array,
    Descriptor,
    Formula,
    LaunchSpec,
    Number,
    Section,
    Start,
    product,
)
from blockbuster.emit.tile.program import Buffer, Nest, TileProgram
from blockbuster.emit.tile.room import leaving_room
from blockbuster.emit.tile.tiling import Tiling
from blockbuster.emit.tile.trips import sized
from blockbuster.emit.tile.verify_waits import is_dependent
from blockbuster.ir.lengths import in_order
from blockbuster.ir.types import Dim, size_class


@dataclass(frozen=True)
class Kernel:
    """One printed kernel: its function's name, text, parameters and launch options."""

    name: str
    nest: Nest
    tiling: Tiling
    body: list[str]
    parameters: Parameters
    options: Mapping[str, int]


def sizes_shown(program: TileProgram) -> tuple[tuple[Dim, ...], tuple[Dim, ...]]:
    """The size classes of a program, chunks apart, and those that show in no input."""
    counted = [dim for c in program.chunks for dim in (c.number, c.lanes)]
    dims = tuple(dim for dim in sized(program) if dim not in counted)
    axes = (axis.dim for buffer in program.inputs for axis in buffer.axes)
    shown = {size_class(dim) for dim in axes if dim is not None}
    found = {*shown, *(r.dim for r in in_order(program.rules, shown) if r.exact)}
    return dims, tuple(dim for dim in dims if dim not in found)


def launch_spec(
    program: TileProgram, file: File, kernels: Sequence[Kernel], *, guarded: bool = False
) -> LaunchSpec:
    """What the file's launcher does. ``guarded``: it looks at the assembler before it launches."""
    return _Launches(program, file, kernels).spec(guarded)


class _Launches:
    def __init__(self, program: TileProgram, file: File, kernels: Sequence[Kernel]) -> None:
        self._program, self._file, self._kernels = program, file, kernels
        self._dims, self._free = sizes_shown(program)
        kept = kept_nests(program)
        self._kept = [kernels[at] for at in kept]
        self._running = [kernel for at, kernel in enumerate(kernels) if at not in kept]

    def spec(self, guarded: bool) -> LaunchSpec:
        program = self._program
        return LaunchSpec(
            launch=self._launch(),
            outputs=tuple(self._array(b)._replace(dtype=b.dtype) for b in program.outputs),
            results=tuple(map(self._file.buffer, program.outputs)),
            prepare=self._prepare() if self._kept else None,
            keeps=tuple(map(self._array, kept_arrays(program))) if self._kept else (),
            chunks=tuple((chunks.number, chunks.count) for chunks in program.chunks),
            guarded=guarded,
        )

    def _launch(self) -> Section:
        """What each call does."""
        program = self._program
        used = _used(self._running)
        own = [buffer for buffer in program.workspaces if buffer in used]
        rooms = leaving_room([kernel.nest for kernel in self._running])
        return Section(
            inputs=tuple(map(self._array, program.inputs)),
            free=self._free,
            dims=self._dims,
            makes=tuple(self._array(b) for b in own if b not in kept_arrays(program)),
            spans=tuple(map(self._file.buffer, (*program.inputs, *program.outputs, *own))),
            starts=tuple(
                self._start(kernel, waits=is_dependent(kernel.nest), leaves_room=room)
                for kernel, room in zip(self._running, rooms, strict=True)
            ),
        )

    def _prepare(self) -> Section:
        """What is computed of constants, which calls share."""
        used = _used(self._kept)
        inputs = [b for b in self._program.inputs if b in used]
        made = [b for b in self._program.workspaces if b in used]
        dims, free = self._needed(inputs, made)
        return Section(
            inputs=tuple(map(self._array, inputs)),
            free=tuple(free),
            dims=tuple(dims),
            makes=tuple(map(self._array, made)),
            spans=tuple(map(self._file.buffer, (*inputs, *made))),
            starts=tuple(map(self._start, self._kept)),
        )

    def _needed(
        self, inputs: Sequence[Buffer], made: Sequence[Buffer]
    ) -> tuple[list[Dim], list[Dim]]:
        """The dims whose sizes prepared kernels use, and those that no constant shows."""
        taken = [kernel.parameters for kernel in self._kept]
        used = [size_class(dim) for p in taken for dim in (*p.sizes, *p.told)]
        used += [size_class(dim) for kernel in self._kept for dim in kernel.nest.grid]
        used += [size_class(a.dim) for b in made for a in b.axes if a.dim is not None]
        shown = {size_class(a.dim) for b in inputs for a in b.axes if a.dim is not None}
        dims = [dim for dim in self._dims if dim in used]
        return dims, [dim for dim in dims if dim not in shown]

    # arrays and numbers ------------------------------------------------------------------

    def _array(self, buffer: Buffer) -> Array:
        return Array(self._file.buffer(buffer), self._shape(buffer), MEMORY[buffer.dtype].name)

    def _shape(self, buffer: Buffer) -> tuple[Number, ...]:
        users = (kernel for kernel in self._kernels if buffer in kernel.parameters.buffers)
        user = next(users, None)
        extents = [
            self._extent(dim_along(user.nest.body, buffer, at), user.tiling)
            if axis.per_block and user
            else self._extent(axis.dim, None)
            for at, axis in enumerate(buffer.axes)
        ]
        if buffer.pitch > 1:
            extents[-1] = Formula(TIMES, Formula(BLOCKS, extents[-1], buffer.pitch), buffer.pitch)
        return tuple(extents)

    def _extent(self, dim: Dim | None, tiling: Tiling | None) -> Number:
        """The elements along ``dim``, or how many blocks ``tiling`` cuts it into."""
        if dim is None or (tiling and dim in tiling.whole):
            return 1
        size = Formula(SIZE, size_class(dim))
        blocks = tiling and not tiling.is_unit(dim)
        return Formula(BLOCKS, size, tiling.blocks[dim]) if tiling and blocks else size

    # launches ----------------------------------------------------------------------------

    def _start(self, kernel: Kernel, *, waits: bool = False, leaves_room: bool = False) -> Start:
        p, file = kernel.parameters, self._file
        counts = [self._extent(dim, kernel.tiling) for dim in kernel.nest.grid]
        blocks, most = product(counts), kernel.nest.programs
        return Start(
            kernel=kernel.name,
            grid=Formula(LEAST, blocks, most) if most else blocks,
            arrays=tuple(map(file.buffer, p.buffers)),
            sizes=tuple(p.sizes),
            strides=tuple((file.buffer(buffer), axis) for buffer, axis in p.strides),
            descriptors=tuple(
                Descriptor(name, file.buffer(buffer), tile)
                for (buffer, tile), name in p.descriptors.items()
            ),
            lanes=tuple((name, kernel.tiling.blocks[dim]) for dim, name in p.blocks.items()),
            even=tuple(self._even(p)),
            told=tuple((name, Formula(SIZE, dim)) for dim, name in p.told.items()),
            asks=p.overlaps,
            options=tuple(kernel.options.items()),
            waits=waits,
            leaves_room=leaves_room,
        )

    def _even(self, p: Parameters) -> Iterator[tuple[str, tuple[Number, ...]]]:
        """What is told of numbers of rows, and of quotients of sizes."""
        for dim in p.rows:
            sizes = [Formula(SIZE, dim)] if dim in p.sizes else []
            strides = [Formula(STRIDE, self._file.buffer(b), at) for b, at in even_strides(p, dim)]
            yield self._file.even(dim), (*sizes, *strides)
        if p.parts:
            yield EVEN_PARTS, tuple(map(quotient, p.parts))


def _used(kernels: Sequence[Kernel]) -> dict[Buffer, None]:
    return {buffer: None for kernel in kernels for buffer in kernel.parameters.buffers}
