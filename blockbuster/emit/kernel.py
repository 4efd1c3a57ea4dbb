"""An emitted kernel: the text of one Triton file, with its program, sizes and target."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from blockbuster.emit.closing.lead_first import lead_first
from blockbuster.emit.print.numpy.reference import reference_text
from blockbuster.emit.print.triton.launcher import sizes_shown
from blockbuster.emit.print.triton.text import Heading, triton_file
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.script import for_program
from blockbuster.emit.schedule.steps import KernelDerivation, derived
from blockbuster.emit.target.assembler import dots_may_break
from blockbuster.emit.tile.input_kinds import Kind, input_kinds
from blockbuster.emit.tile.launch_spec import LaunchSpec
from blockbuster.emit.tile.listing import listing
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.program import TileProgram
from blockbuster.ir.graph import Graph
from blockbuster.ir.meaning import Reference
from blockbuster.ir.types import Dim
from blockbuster.rules import Derivation

if TYPE_CHECKING:
    from blockbuster.costs.formulas import Formula
    from blockbuster.costs.report import Report as CostReport
    from blockbuster.machines.machine import Machine
    from blockbuster.selection.considered import Considered
    from blockbuster.selection.plans.report import Report


@dataclass(frozen=True)
class Kernel:
    """An emitted file: its text, and the setting it was written for.

    ``notes`` name possible overflows. ``chunks``: into how many chunks the loops over some dims are
    cut, which run side by side. ``schedule``: the moves that made it, as text that ``bb.emit(...,
    schedule=...)`` replays; if a derivation was given and the kernel is not that of its final
    program, the first line names the program. ``launches``: what the file's launcher does.
    ``tile_program``: the loops, tiles and loads from which the file is printed; ``print`` shows it.
    ``derivation``: the steps that led to it.
    ``chosen``: the alternatives and the reason for the choice, in words; empty if nothing was
    chosen. It is no part of the file, which depends on program and schedule alone, nor are the
    choices themselves, ``considered``. A file may
    hold several kernels that run one after the other; all fields are those of the file. Calling it
    runs it on NumPy arrays (in Triton's interpreter) or on CUDA tensors.
    """

    name: str
    source: str = field(repr=False)
    sizes: Mapping[Dim, int] = field(hash=False)
    tiles: Mapping[Dim, int] = field(hash=False)
    dtype: str
    target: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    notes: tuple[str, ...] = ()
    chunks: tuple[tuple[Dim, int], ...] = ()
    schedule: str = field(default="", repr=False)
    chosen: str = field(default="", repr=False, compare=False)
    considered: Considered | None = field(default=None, repr=False, compare=False)
    launches: LaunchSpec | None = field(default=None, repr=False, compare=False)
    tile_program: TileProgram | None = field(default=None, repr=False, compare=False)
    derivation: KernelDerivation | None = field(default=None, repr=False, compare=False)

    def __repr__(self) -> str:
        sizes = " ".join(f"{dim}={size}" for dim, size in self.sizes.items())
        number = "1 kernel" if self.kernels == 1 else f"{self.kernels} kernels"
        return f"Kernel({self.name}: {number} for {self.target}, {self.dtype}, {sizes})"

    def _repr_html_(self) -> str:
        from blockbuster.view.notebook import kernel_html

        return kernel_html(self)

    @property
    def report(self) -> Report:
        """What each kernel of the file computes, its time and its limit, and what did not fuse.

        ``report.details`` has the candidates, their prices and tiles. Raises ValueError for a
        kernel that was not made by ``bb.emit``.
        """
        from blockbuster.selection.plans.kernel_report import kernel_report

        return kernel_report(self)

    @property
    def kernels(self) -> int:
        """How many kernels the file launches, one after the other."""
        return len(self.tile_program.nests) if self.tile_program else 1

    def write(self, path: str | Path) -> Path:
        """Write the file; it runs on its own, without Blockbuster."""
        place = Path(path)
        place.write_text(self.source, encoding="utf-8", newline="\n")
        return place

    def __call__(self, *arrays: Any, **named: Any) -> Any:
        """The result for the inputs in order or by name; a tuple if there are several.

        On CUDA tensors the compiled kernel is inspected before its first call, and run in memory
        full of zeros and of NaN. Raises LaunchError if it must not run, EmitError if Triton refuses
        it. Numbers are not compared with the reference: ``python FILE --check`` does that.
        """
        from blockbuster.runtime.kernel_call import launch

        return launch(self, *arrays, **named)

    def cost(
        self, machine: str | Path | Machine = "h200", *, launch: str = "plain", warm: bool = False
    ) -> CostReport:
        """The cost on a machine, by a closed form, at the sizes for which the kernel was written.

        ``machine``: a name ("h200", "auto"), the path of a file, or a ``Machine``. ``launch``:
        "plain", from the host, or "graph". ``warm``: the cache holds the most recently used data;
        else inputs come from global memory. Raises ValueError for an unknown machine, a rate that
        it lacks, a size of zero, or a kernel that does not fit it.
        """
        from blockbuster.costs import cost, work_of

        if self.tile_program is None:
            raise ValueError("this kernel has no tile program: emit it again to ask for its cost")
        works = work_of(self.tile_program, self.sizes, self.target)
        return cost(works, machine, launch=launch, warm=warm)

    def formulas(self) -> tuple[Formula, ...]:
        """What each kernel of the file moves and computes, as SymPy expressions in its sizes.

        They hold at other sizes, too, as long as the file is right there: its sizes and multiples
        of its blocks. Raises ValueError where a loop's bounds need not be whole numbers.
        """
        from blockbuster.costs.formulas import formulas

        if self.tile_program is None:
            raise ValueError("this kernel has no tile program: emit it again to ask for formulas")
        return formulas(self.tile_program, self.sizes, self.target)


def written(
    scheduled: Scheduled,
    graph: Graph,
    *,
    reference: Graph | str | None = None,
    tiles: TileProgram | None = None,
    plain: TileProgram | None = None,
    notes: tuple[str, ...] = (),
    fused: Derivation | None = None,
    name: str = "",
    chosen: str = "",
) -> Kernel:
    """The file of a scheduled program; ``graph`` is the block program that became it.

    ``fused`` is how that was fused, if it is known, ``name`` what its schedule calls it, ``chosen``
    why it was chosen. The file checks itself against ``reference``: the text of a module, or the
    function that a graph was lowered from; where that is not known, the graph. ``tiles`` and
    ``plain`` are the tile programs of ``graph`` and of a graph that is the reference; they are
    lowered here if they are not given.
    """
    program = scheduled.program
    tiles = tiles or lower_to_tiles(graph)
    origin = graph
    if isinstance(reference, Graph):
        origin, plain = reference, plain or lower_to_tiles(reference)
    else:
        plain = tiles
    found = _reference(reference, origin, plain, scheduled)
    heading = _heading(scheduled, tiles, found, notes, name, input_kinds(plain))
    file = triton_file(program, scheduled.sizes, heading)
    return Kernel(
        name=_name(program),
        source=file.text,
        launches=file.launches,
        sizes=scheduled.known,
        tiles=scheduled.blocks,
        dtype=program.dtype,
        target=heading.target,
        inputs=tuple(b.name for b in program.inputs),
        outputs=tuple(b.name for b in program.outputs),
        notes=notes,
        chunks=tuple((c.dim, c.count) for c in program.chunks),
        schedule=heading.schedule,
        chosen=chosen,
        tile_program=program,
        derivation=derived(scheduled, fused, graph),
    )


def _heading(
    scheduled: Scheduled,
    tiles: TileProgram,
    reference: Reference,
    notes: tuple[str, ...],
    name: str,
    kinds: Mapping[str, Kind],
) -> Heading:
    device = scheduled.target.name
    return Heading(
        listing(lead_first(tiles)),  # as the kernel takes exponentials
        device,
        reference,
        notes,
        for_program(name, scheduled.schedule),
        checks_assembler=dots_may_break(scheduled.program, device),
        kinds=kinds,
    )


def _reference(
    given: Graph | str | None, graph: Graph, plain: TileProgram, scheduled: Scheduled
) -> Reference:
    """The function that a file checks itself against; ``plain``: the tile program of ``graph``."""
    if isinstance(given, str):
        return Reference(given)
    program = scheduled.program
    users = graph.meaning and graph.meaning.reference(
        [buffer.name for buffer in program.inputs],
        [buffer.name for buffer in program.outputs],
        sizes=scheduled.known,
        free=sizes_shown(program)[1],
    )
    return users or Reference(reference_text(plain), in_dtypes=True)


def _name(program: TileProgram) -> str:
    return f"{re.sub(r'[^A-Za-z0-9_]', '_', '_'.join(b.name for b in program.outputs))}_kernel"
