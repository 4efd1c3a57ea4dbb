"""Triton text: a tile program as one stand-alone file with a launcher, a check, a benchmark."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from blockbuster.emit.print.triton.checking import DRAWS, JUDGEMENT
from blockbuster.emit.print.triton.file import EVEN_PARTS, OVERLAPS, File, literal, wrapped
from blockbuster.emit.print.triton.functions import ACCURATE, HELPERS, helper_sources
from blockbuster.emit.print.triton.harness import ARRAYS, ASSEMBLER, COMMANDS, START
from blockbuster.emit.print.triton.kernel import kernel_body
from blockbuster.emit.print.triton.launch_helpers import launch_helpers, leaves_room
from blockbuster.emit.print.triton.launcher import Kernel, launch_spec, sizes_shown
from blockbuster.emit.print.triton.launcher_text import launcher_text
from blockbuster.emit.print.triton.stages import launched_stages
from blockbuster.emit.print.triton.table import kernel_table
from blockbuster.emit.tile.between import between
from blockbuster.emit.tile.dataflow import stored
from blockbuster.emit.tile.dtypes import MEMORY, dtype_of
from blockbuster.emit.tile.input_kinds import Kind, known_kinds
from blockbuster.emit.tile.launch_spec import LaunchSpec
from blockbuster.emit.tile.names import Names, comment
from blockbuster.emit.tile.program import Block, Buffer, Nest, TileProgram
from blockbuster.emit.tile.tiling import Tiling, tiling_of
from blockbuster.emit.tile.trips import dims_of
from blockbuster.errors import EmitError, message, quoted_lines, shown, shown_lines
from blockbuster.ir.dtypes import HALF, TRUTH
from blockbuster.ir.length_symbols import Clamp, Symbol
from blockbuster.ir.lengths import Length, in_order
from blockbuster.ir.meaning import Reference
from blockbuster.ir.types import Dim, size_class

_RESERVED = (
    "INDEX", "pid", "name", "array", "inputs", "launch", "reference", "main", "check", "bench",
    "size", "index", "grid", "random_inputs", "poisoned", "on_host",
    "INPUTS", "OUTPUTS", "TRUTH", "FREE", "SIZES", "BLOCKS", "MULTIPLES", "AT_MOST", "EXACTLY",
    "EAGER", "APART", "HELD", "OVER_ZERO", "NOTES", "LARGEST", "FLOAT32_LARGEST", "LARGE",
    "FIXED", "ROUNDING", "NEARBY", "ROOM", "integers", "sizes_to_check", "expected", "in_parts",
    "Expected",
    "unlike", "within", "judged", "same_bits", "run_kernels", "compare", "better", "KINDS", "drawn",
    "in_numpy", "is_close", "LENGTHS", "check_lengths", "quotient_of", "total_of", "DTYPES",
    "TOLERANCE", "KERNELS", "HostArray", "has_gpu", "argument", "strides", "empty",
    "check_assembler", "descriptor", "index_type", "even", OVERLAPS, "can_overlap", "overlaps",
    "early", "leave_room", "started", "prepare", "prepared", "check_prepared", "of_constants",
    "on_device", "check_array", "check_sizes", "dtype_name", "os", "sys", "math",
    "argparse", "contextlib", "ctypes", "functools", *HELPERS, *ACCURATE,
)  # fmt: skip
IMPORTS = {
    f"import {name}" for name in ("argparse", "contextlib", "functools", "math", "os", "sys")
}


@dataclass(frozen=True)
class Heading:
    """The parts of a file that do not follow from the program.

    ``checks_assembler``: it looks at the assembler before it launches. ``chosen``: what the program
    was chosen among, and why. ``kinds``: of the inputs that the check draws.
    """

    listing: str
    target: str
    reference: Reference
    notes: tuple[str, ...] = ()
    schedule: str = ""
    checks_assembler: bool = False
    kinds: Mapping[str, Kind] = field(default_factory=dict)


class TritonFile(NamedTuple):
    """The text of a file, and what its launcher does."""

    text: str
    launches: LaunchSpec


def triton_file(program: TileProgram, sizes: Mapping[Dim, int], heading: Heading) -> TritonFile:
    """The file of a program. ``sizes``: what it is written for, by size class."""
    _refuse_block_axes(program)
    text = _FileText(program, sizes)
    spec = launch_spec(program, text.file, text.kernels, guarded=heading.checks_assembler)
    imports, reference = _parted(heading.reference.text)
    imports |= IMPORTS | ({"import ctypes"} if leaves_room(program) else set())
    sections = [
        text.docstring(heading),
        "\n".join(sorted(imports)),
        START.strip(),
        "import numpy as np\nimport triton\nimport triton.language as tl",
        text.constants(heading),
        *helper_sources(text.file.helpers, text.file.accurate),
        *(text.function(kernel) for kernel in text.kernels),
        kernel_table(text.file, text.kernels, spec),
        launcher_text(spec, text.file.size),
        reference,
        ARRAYS.strip(),
        *launch_helpers(program, text.kernels),
        *([ASSEMBLER.strip()] if heading.checks_assembler else []),
        DRAWS.strip(),
        JUDGEMENT.strip(),
        COMMANDS.strip(),
    ]
    return TritonFile("\n\n\n".join(part.strip("\n") for part in sections) + "\n", spec)


def _terms(length: Length) -> tuple[object, object]:
    """A length as the file computes it: see ``total_of`` in harness.py."""
    top, under = length.fraction
    terms = tuple((int(times), tuple(map(_factor, symbols))) for symbols, times in top.terms)
    return terms, _terms(under)[0] if under.constant is None else under.constant


def _factor(symbol: Symbol) -> object:
    return (*_terms(symbol.of), symbol.rounds) if isinstance(symbol, Clamp) else symbol


def _schedule(text: str) -> str:
    """The moves that made the kernel, if there are any, and how to have them again."""
    lines = "".join(f"    {line}\n" for line in shown_lines(text)) if text else ""
    words = "These moves made it of the program above; bb.emit(..., schedule=TEXT) replays them."
    return f"{words}\n\n{lines}\n" if lines else ""


def _refuse_block_axes(program: TileProgram) -> None:
    for buffer in (*program.inputs, *program.outputs):
        for axis in buffer.axes:
            if axis.per_block:
                raise EmitError(
                    message(
                        f"{buffer.name} holds one entry per block of {axis.dim}: its shape would "
                        "depend on the tiles",
                        hint=f"reduce over {axis.dim} inside the program",
                    )
                )
    if not program.inputs:
        raise EmitError(
            message(
                "the program reads no array, so nothing tells on which device to run",
                hint="give it an input",
            )
        )


def _parted(reference: str) -> tuple[set[str], str]:
    """The import lines of a module's text but NumPy's, and the rest."""
    lines = reference.strip().split("\n")
    imports = {line for line in lines if line.startswith("import ")}
    rest = "\n".join(line for line in lines if line not in imports)
    return imports - {"import numpy as np"}, rest.strip()


class _FileText:
    def __init__(self, program: TileProgram, sizes: Mapping[Dim, int]) -> None:
        self._program = program
        self._cuts = [(nest, tiling_of(program, nest)) for nest in program.nests]
        self._arrays = (*program.inputs, *program.outputs, *program.workspaces)
        dtype, accurate = dtype_of(program.dtype), any(nest.accurate for nest in program.nests)
        self.file = File(dtype, Names(_RESERVED), accurate, sizes)
        self._dims, self._free = sizes_shown(program)
        self._claim_names()
        self.kernels = [self._kernel(nest, tiling) for nest, tiling in self._cuts]

    def _claim_names(self) -> None:
        """Names that callers see come first, so that they stay as they are."""
        for buffer in self._arrays:
            self.file.buffer(buffer)
        for dim in self._dims:
            self.file.size(dim)
        for dim in dims_of(self._program):
            self.file.block(dim)
        for buffer in self._arrays:
            self.file.pointer(buffer)
            for axis in range(len(buffer.axes)):
                self.file.stride(buffer, axis)

    def _kernel(self, nest: Nest, tiling: Tiling) -> Kernel:
        body, parameters = kernel_body(nest, tiling, self.file)
        written = "_".join(self.file.buffer(b) for b in stored(nest.body))
        name = self.file.names.of(("kernel", nest), f"{written}_kernel")
        options = {"num_warps": nest.warps, "num_stages": launched_stages(nest, tiling)}
        return Kernel(name, nest, tiling, body, parameters, options)

    # head ------------------------------------------------------------------------

    def docstring(self, heading: Heading) -> str:
        inputs = ", ".join(self._shown(b) for b in self._program.inputs)
        outputs = ", ".join(self._shown(b) for b in self._program.outputs)
        sizes = " ".join(f"{d}={self.file.sizes[d]}" for d in self._dims)
        names = ", ".join(self.file.buffer(b) for b in self._program.inputs)
        example = " ".join(f"{d}={self.file.sizes[d]}" for d in self._dims[:2])
        number = len(self._program.nests)
        kernels = "one Triton kernel" if number == 1 else f"{number} Triton kernels"
        listing = "\n".join(f"    {line}" for line in shown_lines(heading.listing))
        schedule = _schedule(heading.schedule)
        promise = "\n".join((self._promise(), *(f"Note: {note}." for note in heading.notes)))
        text = f"""{outputs} from {inputs}, in {kernels}.
{self._between()}
Written by Blockbuster for {sizes}, {self._kinds(self._program.inputs)}, {heading.target}.
Needs Triton, NumPy and, on a GPU, torch; not Blockbuster.

{listing}

{schedule}{promise}

    from this_file import launch
    {", ".join(self.file.buffer(b) for b in self._program.outputs)} = launch({names})

    python this_file.py --check                 compare with the float64 reference below
    python this_file.py --check --sizes {example}    at other sizes
    python this_file.py --bench                 time it on a GPU
"""
        return quoted_lines("\n".join(map(shown, text.split("\n"))))

    def _between(self) -> str:
        """What kernels write for later ones, a line each; nothing for a kernel by itself."""
        blocks: dict[Dim, int] = {block.dim: block.lanes for block in self._blocks()}
        lines = []
        for one in between(self._program, self.file.sizes, blocks):
            of = one.chunks
            partial = f", partial results of {of.count} chunks of {of.dim}" if of else ""
            lines += textwrap.wrap(f"Stored on the way: {one.words}{partial}.", 96)
        return "".join(f"{line}\n" for line in lines)

    def _shown(self, buffer: Buffer) -> str:
        axes = ", ".join(str(axis) for axis in self._axes(buffer))
        return f"{self.file.buffer(buffer)}[{axes}]"

    def _promise(self) -> str:
        limits = [f"{d} a multiple of {n}" for d, n in self._multiples().items()]
        limits += [f"{d} at most {n}" for d, n in self._at_most().items()]
        limits += [f"{d} = {n}" for d, n in self._exactly().items()]
        sizes = f"Any sizes with {', '.join(limits)}" if limits else "Any sizes"
        kinds = self._kinds(self._program.outputs)
        words = f"{sizes}; any strides. Arithmetic is float32, results are {kinds}."
        text = "\n".join(textwrap.wrap(words, 96))
        chunks = [f"over {c.dim} in {c.count}" for c in self._program.chunks]
        return (
            f"{text}\nLoops run in chunks, side by side: {', '.join(chunks)}." if chunks else text
        )

    # constants -------------------------------------------------------------------

    def constants(self, heading: Heading) -> str:
        truth = [self.file.buffer(b) for b in self._arrays if b.dtype == TRUTH]
        blocks: dict[Dim, int] = {}
        for block in self._blocks():
            name = size_class(block.dim)
            blocks[name] = max(blocks.get(name, 0), block.lanes)
        return "\n".join(
            [
                _table("INPUTS", self._axes_of(self._program.inputs), "axes; 1: of extent 1"),
                _table("OUTPUTS", self._axes_of(self._program.outputs)),
                f"TRUTH = {literal(tuple(truth))}  # arrays of bool",
                _table("KINDS", self._kinds_of(heading.kinds), "inputs that are not any numbers"),
                f"FREE = {literal(self._free)}  # dims that no input shows",
                _table("DTYPES", self._dtypes()),
                f"TOLERANCE = {self._tolerance()!r}  # of --check, of the largest result",
                *self._of_reference(heading),
                _table("SIZES", self._sizes(), "what the kernels were written for"),
                _table("BLOCKS", blocks),
                _table("MULTIPLES", self._multiples(), "no masks: sizes are multiples of these"),
                _table("AT_MOST", self._at_most(), "dims that are one block"),
                _table("EXACTLY", self._exactly(), "dims that are one full block, without masks"),
                f"LENGTHS = {literal(self._lengths())}  # dim, exact, (times, dims), ..., divisor",
            ]
        )

    def _of_reference(self, heading: Heading) -> list[str]:
        """What the check knows of the reference, and of the kernels beside it."""
        reference, inputs = heading.reference, [buffer.dtype for buffer in self._program.inputs]
        halves = all(dtype == HALF for dtype in inputs)
        eager = (HALF if halves else "float32") if reference.in_dtypes else ""
        return [
            f"EAGER = {literal(eager)}  # in which the reference computes as libraries do",
            f"APART = {literal(reference.apart)}  # dims along which it can be computed in parts",
            f"HELD = {reference.held}  # bytes that it holds",
            f"OVER_ZERO = {reference.over_zero}  # it divides integers",
            _table("FIXED", self._fixed(reference), "sizes that it alone is right for"),
            f"NOTES = {literal(heading.notes)}",
        ]

    def _fixed(self, reference: Reference) -> dict[Dim, int]:
        sizes = self._sizes()
        return {dim: size for dim, size in reference.fixed.items() if dim in sizes}

    def _dtypes(self) -> dict[str, str]:
        arrays = (*self._program.inputs, *self._program.outputs)
        return {self.file.buffer(b): b.dtype for b in arrays}

    def _kinds_of(self, kinds: Mapping[str, Kind]) -> dict[str, Kind]:
        known = known_kinds(kinds, self._dims)
        return {self.file.buffer(b): known[b.name] for b in self._program.inputs if b.name in known}

    def _kinds(self, buffers: tuple[Buffer, ...]) -> str:
        return " and ".join(dict.fromkeys(b.dtype for b in buffers))

    def _tolerance(self) -> float:
        results = (MEMORY[b.dtype].tolerance for b in self._program.outputs)
        return max(self.file.dtype.tolerance, *results)

    def _axes(self, buffer: Buffer) -> tuple[Dim | int, ...]:
        return tuple(1 if a.dim is None else size_class(a.dim) for a in buffer.axes)

    def _axes_of(self, buffers: tuple[Buffer, ...]) -> dict[str, tuple[Dim | int, ...]]:
        return {self.file.buffer(b): self._axes(b) for b in buffers}

    def _sizes(self) -> dict[Dim, int]:
        follow = {rule[0] for rule in self._lengths() if rule[1]}
        return {dim: self.file.sizes[dim] for dim in self._dims if dim not in follow}

    def _lengths(self) -> tuple[tuple[object, ...], ...]:
        """Sizes that follow from others, and least sizes, in an order in which they can be had."""
        axes = (axis.dim for buffer in self._program.inputs for axis in buffer.axes)
        shown = {size_class(dim) for dim in axes if dim is not None} | set(self._free)
        rules = in_order(self._program.rules, shown)
        read = {dim for rule in rules if rule.dim in self._dims for dim in rule.length.dims}
        counts = [chunks.lanes for chunks in self._program.chunks if chunks.lanes in read]
        return tuple(
            (rule.dim, rule.exact, *_terms(rule.length))
            for rule in rules
            if rule.dim in (*self._dims, *counts)
        )

    def _blocks(self) -> Iterator[Block]:
        """How the nests cut the dims that they walk, chunks apart."""
        counted = [chunks.lanes for chunks in self._program.chunks]
        order = {dim: at for at, dim in enumerate(dims_of(self._program))}
        blocks = (block for nest, _ in self._cuts for block in nest.blocks)
        known = (block for block in blocks if block.dim not in counted and block.dim in order)
        yield from sorted(known, key=lambda block: order[block.dim])

    def _multiples(self) -> dict[Dim, int]:
        found: dict[Dim, int] = {}
        for block in self._blocks():
            if not (block.whole or block.ragged):
                name = size_class(block.dim)
                found[name] = max(found.get(name, 1), block.lanes)
        return {dim: block for dim, block in found.items() if block > 1}

    def _at_most(self) -> dict[Dim, int]:
        found: dict[Dim, int] = {}
        for block in self._blocks():
            if block.whole and block.ragged:
                name = size_class(block.dim)
                found[name] = min(found.get(name, block.lanes), block.lanes)
        return found

    def _exactly(self) -> dict[Dim, int]:
        full = (block for block in self._blocks() if block.whole and not block.ragged)
        return {size_class(block.dim): block.lanes for block in full}

    # kernels ---------------------------------------------------------------------

    def function(self, kernel: Kernel) -> str:
        p = kernel.parameters
        runtime = [self.file.pointer(b) for b in p.buffers]
        even = (*map(self.file.even, p.rows), *([EVEN_PARTS] if p.parts else []))
        told = (*even, *p.told.values())
        names = (*p.blocks.values(), *told, "INDEX", *([OVERLAPS] if p.overlaps else []))
        constants = [f"{name}: tl.constexpr" for name in names]
        lines = ["@triton.jit", f"def {kernel.name}("]
        numbers = list(p.sizes.values()), list(p.strides.values())
        for group in (runtime, *numbers, list(p.descriptors.values()), constants):
            lines += wrapped(group, 4)
        return "\n".join([*lines, "):", *kernel.body])


def _table(name: str, entries: Mapping[str, object], note: str = "") -> str:
    return f"{name} = {literal(dict(entries))}" + comment(note)
