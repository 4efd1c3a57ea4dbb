"""The ``launch`` function of an emitted file: checks, allocation, one launch per kernel.

Where kernels compute of constants alone, ``prepare`` launches them and returns what they store;
``launch`` takes that, and calls ``prepare`` where it is not given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from blockbuster.emit.print.triton.even import even_numbers, even_strides, quotient
from blockbuster.emit.print.triton.file import (
    EVEN_PARTS,
    OVERLAPS,
    File,
    Parameters,
    literal,
    wrapped,
)
from blockbuster.emit.tile.constants import kept_arrays, kept_nests
from blockbuster.emit.tile.dataflow import dim_along
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
        self._kernels = kernels
        kept = kept_nests(program)
        self._kept = [kernels[at] for at in kept]
        self._running = [kernel for at, kernel in enumerate(kernels) if at not in kept]
        self._dependent = [*(is_dependent(kernel.nest) for kernel in self._running), False]
        self._rooms = leaving_room([kernel.nest for kernel in self._running])

    def text(self) -> str:
        """The function, behind the one that prepares what it keeps."""
        return f"{self._prepare()}\n\n\n{self._launcher()}" if self._kept else self._launcher()

    def _launcher(self) -> str:
        program = self._program
        names = [self._file.buffer(b) for b in program.inputs]
        results = [self._file.buffer(b) for b in program.outputs]
        free = [f"{self._file.size(d)}" for d in self._free]
        takes = [*names, "*", *free] if free else [*names]
        optional = [*results, *(["prepared"] if self._kept else [])]
        head = ", ".join([*takes, *(f"{r}=None" for r in optional)])
        used = {b: None for kernel in self._running for b in kernel.parameters.buffers}
        own = [buffer for buffer in program.workspaces if buffer in used]
        arrays = (*program.inputs, *program.outputs, *own)
        chained = any(self._dependent)
        return "\n".join(
            [
                f"def launch({head}):",
                *self._said(results),
                *self._sizes(program.inputs, self._free, self._dims),
                *(self._prepared() if self._kept else []),
                *(line for b in program.outputs for line in self._output(b)),
                *(self._workspace(b) for b in own if b not in kept_arrays(program)),
                f"    index = index_type({', '.join(self._file.buffer(b) for b in arrays)})",
                f"    with on_device({names[0]}):",
                *(["        check_assembler()"] if self._guarded else []),
                *([f"        overlaps = can_overlap({names[0]})"] if chained else []),
                *(line for at in range(len(self._running)) for line in self._launch(at)),
                f"    return {', '.join(results)}",
            ]
        )

    def _said(self, results: list[str]) -> list[str]:
        said = f"{', '.join(results)}, written into the arrays given for them, if any."
        if not self._kept:
            return [f'    """{said}"""']
        more = "``prepared``: what ``prepare`` returned; None: it is called here."
        return [f'    """{said}', "", f"    {more}", '    """']

    def _sizes(
        self, inputs: Sequence[Buffer], free: Sequence[Dim], dims: Sequence[Dim]
    ) -> list[str]:
        """The checks of inputs, and the sizes of dims."""
        names = [self._file.buffer(b) for b in inputs]
        whole = dims is self._dims
        return [
            f"    size = {_entries({d: self._file.size(d) for d in free})}",
            f"    inputs = {_entries({n: n for n in names})}",
            "    for name, array in inputs.items():",
            f"        check_array(name, array, INPUTS[name], {names[0]}, size)",
            f"    check_sizes({'check_lengths' if whole else 'of_constants'}(size))",
            *(f"    {self._file.size(d)} = size[{literal(d)}]" for d in dims),
            *(f"    {self._file.size(c.number)} = {c.count}" for c in self._program.chunks),
        ]

    # what is kept from call to call ------------------------------------------------------

    def _prepare(self) -> str:
        """The function that computes of constants what calls share."""
        program = self._program
        used = {b: None for kernel in self._kept for b in kernel.parameters.buffers}
        inputs = [b for b in program.inputs if b in used]
        made = [b for b in program.workspaces if b in used]
        names = [self._file.buffer(b) for b in inputs]
        dims, free = self._needed(inputs, made)
        head = ", ".join([*names, *(["*", *map(self._file.size, free)] if free else [])])
        gives = ", ".join(self._file.buffer(b) for b in kept_arrays(program))
        return "\n".join(
            [
                f"def prepare({head}):",
                f'    """{gives} for ``launch``: right until a change of {", ".join(names)}."""',
                *self._sizes(inputs, free, dims),
                *(self._workspace(b, names[0]) for b in made),
                f"    index = index_type({', '.join([*names, *map(self._file.buffer, made)])})",
                f"    with on_device({names[0]}):",
                *(["        check_assembler()"] if self._guarded else []),
                *(line for kernel in self._kept for line in self._started(kernel)),
                f"    return ({gives},)",
            ]
        )

    def _needed(
        self, inputs: Sequence[Buffer], made: Sequence[Buffer]
    ) -> tuple[list[Dim], list[Dim]]:
        """The dims whose sizes prepared kernels use, and those that no constant shows."""
        used = [size_class(dim) for kernel in self._kept for dim in kernel.parameters.sizes]
        used += [size_class(dim) for kernel in self._kept for dim in kernel.nest.grid]
        used += [size_class(a.dim) for b in made for a in b.axes if a.dim is not None]
        shown = {size_class(a.dim) for b in inputs for a in b.axes if a.dim is not None}
        dims = [dim for dim in self._dims if dim in used]
        return dims, [dim for dim in dims if dim not in shown]

    def _prepared(self) -> list[str]:
        """How ``launch`` comes by what is kept."""
        program = self._program
        used = {b: None for kernel in self._kept for b in kernel.parameters.buffers}
        inputs = [b for b in program.inputs if b in used]
        _, free = self._needed(inputs, [b for b in program.workspaces if b in used])
        given = [self._file.buffer(b) for b in inputs]
        given += [f"{self._file.size(d)}={self._file.size(d)}" for d in free]
        kept = kept_arrays(program)
        names = ", ".join(self._file.buffer(b) for b in kept)
        shapes = ", ".join(
            f"({literal(self._file.buffer(b))}, {self._shape(b)}, {literal(MEMORY[b.dtype].name)})"
            for b in kept
        )
        return [
            "    if prepared is None:",
            f"        prepared = prepare({', '.join(given)})",
            f"    check_prepared(prepared, [{shapes}], {self._file.buffer(program.inputs[0])})",
            f"    ({names},) = prepared",
        ]

    # arrays that are made ----------------------------------------------------------------

    def _output(self, buffer: Buffer) -> list[str]:
        name, like = self._file.buffer(buffer), self._file.buffer(self._program.inputs[0])
        dtype = f"DTYPES[{literal(name)}]"
        return [
            f"    if {name} is None:",
            f"        {name} = empty({self._shape(buffer)}, {dtype}, {like})",
            f"    check_array({literal(name)}, {name}, OUTPUTS[{literal(name)}], {like}, size)",
        ]

    def _workspace(self, buffer: Buffer, like: str = "") -> str:
        name = self._file.buffer(buffer)
        like = like or self._file.buffer(self._program.inputs[0])
        dtype = MEMORY[buffer.dtype].name
        return f"    {name} = empty({self._shape(buffer)}, {literal(dtype)}, {like})"

    def _shape(self, buffer: Buffer) -> str:
        users = (kernel for kernel in self._kernels if buffer in kernel.parameters.buffers)
        user = next(users, None)
        extents = [
            self._extent(dim_along(user.nest.body, buffer, at), user.tiling)
            if axis.per_block and user
            else self._extent(axis.dim, None)
            for at, axis in enumerate(buffer.axes)
        ]
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

    def _even(self, parameters: Parameters, dim: Dim) -> str:
        """What divides the numbers of rows along ``dim``."""
        keys = even_strides(parameters, dim)
        steps = [f"strides({self._file.buffer(buffer)})[{axis}]" for buffer, axis in keys]
        return f"even({', '.join(even_numbers(parameters, dim, steps))})"

    # launches ----------------------------------------------------------------------------

    def _launch(self, at: int) -> list[str]:
        """The launch of a kernel of each call. ``early``: how one is launched behind one that did
        start, if it may begin before that has ended; the first of a chain begins when all has
        ended, unless it is the first of all and waits for whatever the caller launched before.
        ``started``: the kernel, where it leaves room for the next one.
        """
        dependent, leads = self._dependent[at : at + 2]
        early = '{"launch_pdl": True} if overlaps else {}'
        options = ["**early"] if dependent and at else [f"**({early})"] if dependent else []
        begun = [f"            early = {early}"] if leads else []
        lines = ["        early = {}"] if leads and not (dependent and at) else []
        name = "started" if self._rooms[at] else ""
        if name:
            begun += ["            if overlaps:", f"                leave_room({name})"]
        return [*lines, *self._started(self._running[at], options, name), *begun]

    def _started(self, kernel: Kernel, options: Sequence[str] = (), name: str = "") -> list[str]:
        """A launch, with these options beside the kernel's; ``name``: of what is started."""
        p = kernel.parameters
        counts = [self._extent(dim, kernel.tiling) for dim in kernel.nest.grid]
        arrays = [f"argument({self._file.buffer(b)})" for b in p.buffers]
        steps = [f"strides({self._file.buffer(b)})[{axis}]" for b, axis in p.strides]
        constants = [f"{name}={kernel.tiling.blocks[d]}" for d, name in p.blocks.items()]
        described = [
            f"{name}=descriptor({self._file.buffer(b)}, {literal(tile)})"
            for (b, tile), name in p.descriptors.items()
        ]
        constants += [f"{self._file.even(dim)}={self._even(p, dim)}" for dim in p.rows]
        if p.parts:
            parts = ", ".join(quotient(length, self._file) for length in p.parts)
            constants.append(f"{EVEN_PARTS}=even({parts})")
        constants += ["INDEX=index", *([f"{OVERLAPS}=overlaps"] if p.overlaps else [])]
        options = [*(f"{name}={value}" for name, value in kernel.options.items()), *options]
        blocks, most = " * ".join(counts) or "1", kernel.nest.programs
        lines = [f"        grid = {f'min({blocks}, {most})' if most else blocks}"]
        called = f"{name} = {kernel.name}" if name else kernel.name
        lines += ["        if grid:", f"            {called}[(grid,)]("]
        for group in (arrays, list(p.sizes.values()), steps, described, constants, options):
            lines += wrapped(group, 16)
        return [*lines, "            )"]


def _entries(names: Mapping[str, str]) -> str:
    """A dict of variables."""
    return f"{{{', '.join(f'{literal(key)}: {name}' for key, name in names.items())}}}"
