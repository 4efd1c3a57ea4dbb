"""The ``launch`` function of an emitted file: checks, allocation, one launch per kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from blockbuster.emit.print.triton.file import OVERLAPS, File, Parameters, literal, wrapped
from blockbuster.emit.tile.dtypes import MEMORY
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


def launcher_text(
    program: TileProgram, file: File, kernels: list[Kernel], *, guarded: bool = False
) -> str:
    """The text of the function. ``guarded``: it looks at the assembler before it launches."""
    return _Launcher(program, file, kernels, guarded).text()


class _Launcher:
    def __init__(
        self, program: TileProgram, file: File, kernels: list[Kernel], guarded: bool
    ) -> None:
        self._guarded = guarded
        self._program = program
        self._file = file
        self._dims, self._free = sizes_shown(program)
        self._arrays = (*program.inputs, *program.outputs, *program.workspaces)
        self._kernels = kernels
        self._dependent = [*(is_dependent(kernel.nest) for kernel in kernels), False]
        self._chained = any(self._dependent)
        self._rooms = leaving_room([kernel.nest for kernel in kernels])

    def text(self) -> str:
        names = [self._file.buffer(b) for b in self._program.inputs]
        results = [self._file.buffer(b) for b in self._program.outputs]
        free = [f"{self._file.size(d)}" for d in self._free]
        takes = [*names, "*", *free] if free else [*names]
        head = ", ".join([*takes, *(f"{r}=None" for r in results)])
        return "\n".join(
            [
                f"def launch({head}):",
                f'    """{", ".join(results)}, written into the arrays given for them, if any."""',
                f"    size = {_entries({d: self._file.size(d) for d in self._free})}",
                f"    inputs = {_entries({n: n for n in names})}",
                "    for name, array in inputs.items():",
                f"        check_array(name, array, INPUTS[name], {names[0]}, size)",
                "    check_sizes(check_lengths(size))",
                *(f"    {self._file.size(d)} = size[{literal(d)}]" for d in self._dims),
                *(f"    {self._file.size(c.number)} = {c.count}" for c in self._program.chunks),
                *(line for b in self._program.outputs for line in self._output(b)),
                *(self._workspace(b) for b in self._program.workspaces),
                f"    index = index_type({', '.join(self._file.buffer(b) for b in self._arrays)})",
                f"    with on_device({names[0]}):",
                *(["        check_assembler()"] if self._guarded else []),
                *([f"        overlaps = can_overlap({names[0]})"] if self._chained else []),
                *(line for at in range(len(self._kernels)) for line in self._launch(at)),
                f"    return {', '.join(results)}",
            ]
        )

    def _output(self, buffer: Buffer) -> list[str]:
        name, like = self._file.buffer(buffer), self._file.buffer(self._program.inputs[0])
        dtype = f"DTYPES[{literal(name)}]"
        return [
            f"    if {name} is None:",
            f"        {name} = empty({self._shape(buffer)}, {dtype}, {like})",
            f"    check_array({literal(name)}, {name}, OUTPUTS[{literal(name)}], {like}, size)",
        ]

    def _workspace(self, buffer: Buffer) -> str:
        name, like = self._file.buffer(buffer), self._file.buffer(self._program.inputs[0])
        dtype = MEMORY[buffer.dtype].name
        return f"    {name} = empty({self._shape(buffer)}, {literal(dtype)}, {like})"

    def _shape(self, buffer: Buffer) -> str:
        users = (kernel.tiling for kernel in self._kernels if buffer in kernel.parameters.buffers)
        user = next(users, None)
        extents = [self._extent(a.dim, user if a.per_block else None) for a in buffer.axes]
        if buffer.pitch > 1:
            extents[-1] = f"triton.cdiv({extents[-1]}, {buffer.pitch}) * {buffer.pitch}"
        return f"({extents[0]},)" if len(extents) == 1 else f"({', '.join(extents)})"

    def _extent(self, dim: Dim | None, tiling: Tiling | None) -> str:
        """The elements along ``dim``, or how many blocks ``tiling`` cuts it into."""
        if dim is None or (tiling and dim in tiling.whole):
            return "1"
        size = self._file.size(dim)
        blocks = tiling and not tiling.is_unit(dim)
        return f"triton.cdiv({size}, {tiling.blocks[dim]})" if tiling and blocks else size

    def _launch(self, at: int) -> list[str]:
        """The launch of a kernel. ``early``: how one is launched behind one that did start, if it
        may begin before that has ended; the first of a chain begins when all has ended, unless it
        is the first of all and waits for whatever the caller launched before. ``started``: the
        kernel, where it leaves room for the next one.
        """
        kernel, dependent, leads = self._kernels[at], *self._dependent[at : at + 2]
        p = kernel.parameters
        counts = [self._extent(dim, kernel.tiling) for dim in kernel.nest.grid]
        arrays = [f"argument({self._file.buffer(b)})" for b in p.buffers]
        steps = [f"strides({self._file.buffer(b)})[{axis}]" for b, axis in p.strides]
        constants = [f"{name}={kernel.tiling.blocks[d]}" for d, name in p.blocks.items()]
        described = [
            f"{name}=descriptor({self._file.buffer(b)}, {literal(tile)})"
            for (b, tile), name in p.descriptors.items()
        ]
        constants += ["INDEX=index", *([f"{OVERLAPS}=overlaps"] if p.overlaps else [])]
        options = [f"{name}={value}" for name, value in kernel.options.items()]
        early = '{"launch_pdl": True} if overlaps else {}'
        options += ["**early"] if dependent and at else [f"**({early})"] if dependent else []
        begun = [f"            early = {early}"]
        if self._rooms[at]:
            begun += ["            if overlaps:", "                leave_room(started)"]
        lines = ["        early = {}"] if leads and not (dependent and at) else []
        blocks, most = " * ".join(counts) or "1", kernel.nest.programs
        lines += [f"        grid = {f'min({blocks}, {most})' if most else blocks}"]
        started = f"{'started = ' if self._rooms[at] else ''}{kernel.name}[(grid,)]("
        lines += ["        if grid:", f"            {started}"]
        for group in (arrays, list(p.sizes.values()), steps, described, constants, options):
            lines += wrapped(group, 16)
        return [*lines, "            )", *(begun if leads else [])]


def _entries(names: Mapping[str, str]) -> str:
    """A dict of variables."""
    return f"{{{', '.join(f'{literal(key)}: {name}' for key, name in names.items())}}}"
