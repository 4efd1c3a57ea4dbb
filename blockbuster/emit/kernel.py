"""From a block program to a kernel: the passes in order, and the file that comes out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from blockbuster.emit.array_dtypes import ArrayDtypes, array_dtypes, given_by
from blockbuster.emit.bind import bind
from blockbuster.emit.chunk_loops import chunk_loops
from blockbuster.emit.defer_lane_sums import defer_lane_sums
from blockbuster.emit.drop_unit_loops import drop_unit_loops
from blockbuster.emit.finish_rows import finish_rows
from blockbuster.emit.guard import guard
from blockbuster.emit.hoist import hoist
from blockbuster.emit.kernel_call import launch
from blockbuster.emit.lead_first import lead_first
from blockbuster.emit.listing import listing
from blockbuster.emit.lower import lower_to_tiles
from blockbuster.emit.merge_repeats import merge_repeats
from blockbuster.emit.numpy_text import reference_text
from blockbuster.emit.split_nests import split_nests
from blockbuster.emit.target import Target, target_of
from blockbuster.emit.tile import TileProgram
from blockbuster.emit.tiles import LEAST, STAGES, choose_tiling, choose_warps, dot_dims
from blockbuster.emit.tiling import Tiling
from blockbuster.emit.trips import dims_of, named, sized
from blockbuster.emit.triton_text import Heading, triton_text
from blockbuster.errors import message
from blockbuster.ir.graph import Graph
from blockbuster.ir.lengths import completed, in_order
from blockbuster.ir.types import Dim, size_class
from blockbuster.ir.verify import check_graph
from blockbuster.rules import overflowing, safe


@dataclass(frozen=True)
class Kernel:
    """An emitted file: its text, and what it was written for. ``notes`` say what can overflow.

    ``chunks``: in how many chunks loops over some dims are run, side by side.
    Calling it runs it on NumPy arrays (in Triton's interpreter) or on CUDA tensors.
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

    def write(self, path: str | Path) -> Path:
        """Write the file; it runs on its own, without Blockbuster."""
        place = Path(path)
        place.write_text(self.source, encoding="utf-8", newline="\n")
        return place

    def __call__(self, *arrays: Any, **named: Any) -> Any:
        """The result for the inputs in order or by name; a tuple where there are several.

        On CUDA tensors the compiled kernel is looked at before its first call, and run in memory
        full of zeros and of NaN: LaunchError where it must not run, EmitError where Triton refuses.
        Numbers are not compared with the reference: ``python FILE --check`` does that.
        """
        return launch(self, *arrays, **named)


@dataclass(frozen=True)
class Scheduled:
    """A tile program after its passes: all that is decided about a kernel before it is printed.

    ``chosen``: the tiling of the dims that the program had before; ``tiling``: of all its dims.
    ``usual_warps``: the default for it, which ``warps`` are unless others were asked for.
    """

    program: TileProgram
    tiling: Tiling
    chosen: Tiling
    dtypes: ArrayDtypes
    device: Target
    warps: int
    usual_warps: int


def emit(
    graph: Graph,
    sizes: Mapping[Dim, int],
    dtype: str | Mapping[str, str] = "float16",
    target: str = "sm_90",
    tiles: Mapping[Dim, int] | None = None,
    reference: Graph | str | None = None,
    chunks: Mapping[Dim, int] | None = None,
) -> Kernel:
    """The Triton kernel of ``graph``, after the numerical-safety pass.

    ``sizes`` gives every dim the number of elements the kernel is tuned for, ``tiles`` the lanes of
    some dims (powers of two), ``chunks`` in how many chunks loops over some dims are run (powers of
    two; where ``chunks`` is None, as many as keep the target busy). ``dtype`` is that of all
    inputs, or those of some inputs and outputs by name (array_dtypes.py says what follows).
    ``reference`` is what the file checks itself against: another graph, or the text of a module
    with a function ``reference``. Raises ValueError for unknown or missing dims, dtypes and
    targets; EmitError for programs that have no Triton form, or no such loops.

    >>> from blockbuster.ir.parse import parse
    >>> graph = parse("graph(X: M[M]) { Y = map M (x in !X) { y = exp(x)  yield y } return Y }")
    >>> emit(graph, sizes={"M": 1000}, dtype="float32").tiles
    {'M': 1024}
    """
    check_graph(graph)
    device = target_of(target)
    said: list[str] = []
    stable = safe(graph, said.append)
    program = lower_to_tiles(stable)
    dtypes = array_dtypes(graph, program, given_by(dtype))
    _check_dims(program, sizes, tiles or {})
    _check_chunks(program, chunks or {})
    bound = completed({size_class(d): size for d, size in sizes.items()}, program.rules)
    scheduled = schedule(program, bound, dtypes=dtypes, device=device, tiles=tiles, chunks=chunks)
    notes = (*overflowing(stable), *dict.fromkeys(said))
    return written(scheduled, stable, reference=reference, notes=notes)


def schedule(
    program: TileProgram,
    sizes: Mapping[Dim, int],
    *,
    dtypes: ArrayDtypes,
    device: Target,
    tiles: Mapping[Dim, int] | None = None,
    warps: int | None = None,
    chunks: Mapping[Dim, int] | None = None,
) -> Scheduled:
    """``program`` with tiles and after its passes, for arrays of these dtypes.

    ``tiles`` and ``warps``: instead of the defaults.
    """
    chosen = choose_tiling(program, sizes, tiles or {}, dtypes.common, device)
    program, tiling = apply_passes(
        program, chosen, device.processors, accurate=dtypes.accurate, chunks=chunks
    )
    usual = choose_warps(program, tiling)
    return Scheduled(program, tiling, chosen, dtypes, device, warps or usual, usual)


def written(
    scheduled: Scheduled,
    graph: Graph,
    *,
    reference: Graph | str | None = None,
    notes: tuple[str, ...] = (),
) -> Kernel:
    """The file of a scheduled program; ``graph`` is the block program that became it."""
    program, tiling, dtypes = scheduled.program, scheduled.tiling, scheduled.dtypes
    device = scheduled.device.name
    heading = Heading(listing(graph), device, _reference(graph, reference), notes)
    options = {"num_warps": scheduled.warps, "num_stages": STAGES}
    return Kernel(
        name=_name(program),
        source=triton_text(program, tiling, dtypes, options, heading),
        sizes=scheduled.chosen.sizes,
        tiles={d: tiling.blocks[d] for d in scheduled.chosen.blocks if not tiling.is_unit(d)},
        dtype=dtypes.common.name,
        target=device,
        inputs=tuple(b.name for b in program.inputs),
        outputs=tuple(b.name for b in program.outputs),
        notes=notes,
        chunks=tuple((c.dim, c.count) for c in program.chunks),
    )


def apply_passes(
    program: TileProgram,
    tiling: Tiling,
    processors: int,
    *,
    accurate: bool = False,
    chunks: Mapping[Dim, int] | None = None,
) -> tuple[TileProgram, Tiling]:
    """``program`` after the passes that a kernel needs, in order, and the tiling of its dims.

    ``processors``: what a device runs at once. ``accurate``: results are float32, which shows how
    often a value was rounded. ``chunks``: instead of as many as keep the device busy.
    """
    program = drop_unit_loops(program, tiling.whole)
    program = hoist(program)
    if accurate:
        program = finish_rows(program, tiling)
    program = merge_repeats(hoist(split_nests(program)))
    program, tiling = chunk_loops(program, tiling, processors=processors, asked=chunks)
    program = lead_first(program)
    program = defer_lane_sums(program, tiling)
    dims = [d for d in dims_of(program) if not tiling.is_unit(d) and tiling.ragged(d)]
    return bind(guard(program, dims)), tiling


def _reference(graph: Graph, given: Graph | str | None) -> str:
    return given if isinstance(given, str) else reference_text(given or graph)


def _name(program: TileProgram) -> str:
    return f"{re.sub(r'[^A-Za-z0-9_]', '_', '_'.join(b.name for b in program.outputs))}_kernel"


def _check_chunks(program: TileProgram, chunks: Mapping[Dim, int]) -> None:
    dims = dims_of(program)
    for dim, count in chunks.items():
        if dim not in (*dims, *map(size_class, dims)):
            raise ValueError(
                message(f"unknown dim {dim!r} in chunks", hint=f"known: {', '.join(dims)}")
            )
        if count < 2 or count & (count - 1):
            raise ValueError(f"{dim} in {count} chunks, expected a power of two of at least 2")


def _check_dims(program: TileProgram, sizes: Mapping[Dim, int], tiles: Mapping[Dim, int]) -> None:
    known = named(program)
    for what, given in (("sizes", sizes), ("tiles", tiles)):
        for dim, number in given.items():
            if dim not in known:
                hint = f"known: {', '.join(known)}; other dims are read by no kernel"
                raise ValueError(message(f"unknown dim {dim!r} in {what}", hint=hint))
            if number < 0:
                raise ValueError(f"{what} has {number} for {dim}, expected a count")
    found = {*map(size_class, sizes)}
    found.update(rule.dim for rule in in_order(program.rules, found))
    missing = [d for d in sized(program) if d not in found]
    if missing:
        raise ValueError(
            message(f"no size given for {', '.join(missing)}", hint=f"dims: {', '.join(known)}")
        )
    dots = dot_dims(program)
    for dim, lanes in tiles.items():
        least = LEAST if dim in dots or dim in map(size_class, dots) else 1
        if lanes < least or lanes & (lanes - 1):
            raise ValueError(
                f"the tile of {dim} is {lanes}, expected a power of two of at least {least}"
            )
        if size_class(dim) in program.units and lanes != 1:
            raise ValueError(f"the tile of {dim} is {lanes}: its blocks have one element")
