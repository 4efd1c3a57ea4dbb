"""One block program as one Triton file: ``bb.emit``."""

from __future__ import annotations

from collections.abc import Mapping

from blockbuster.emit.kernel import Kernel, written
from blockbuster.emit.schedule.block import LEAST
from blockbuster.emit.schedule.scheduled import unscheduled
from blockbuster.emit.schedule.script import checked_complete, replayed
from blockbuster.emit.target.compiler import target_of
from blockbuster.emit.tile.array_dtypes import given_by, typed_for_gpu
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.program import TileProgram
from blockbuster.emit.tile.trips import dims_of, named, sized
from blockbuster.errors import message
from blockbuster.interp.report import ProofReport
from blockbuster.ir.graph import Graph
from blockbuster.ir.lengths import in_order
from blockbuster.ir.sizes import bind_sizes
from blockbuster.ir.types import Dim, size_class
from blockbuster.ir.verify import check_graph
from blockbuster.rules import Derivation, overflowing, safe
from blockbuster.selection.contest import best_schedule
from blockbuster.selection.default_schedule import default_schedule
from blockbuster.selection.default_tiles import dot_dims


def emit(
    graph: Graph | Derivation,
    sizes: Mapping[Dim, int],
    dtype: str | Mapping[str, str] = "float16",
    target: str = "sm_90",
    tiles: Mapping[Dim, int] | None = None,
    reference: Graph | str | None = None,
    chunks: Mapping[Dim, int] | None = None,
    schedule: str | None = None,
) -> Kernel:
    """The Triton kernel of ``graph``, after the numerical-safety pass.

    Of a derivation, that is the kernel of its last snapshot, and ``kernel.derivation`` goes on
    where it ends.

    ``sizes`` gives every dim the number of elements the kernel is tuned for, ``tiles`` the lanes of
    some dims (powers of two), ``chunks`` in how many chunks loops over some dims are run (powers of
    two; where ``chunks`` is None, as many as keep the target busy). Without both, schedules near
    the default one are compared by the closed form (selection/contest.py). ``dtype`` is that of all
    inputs, or those of some inputs and outputs by name (array_dtypes.py says what follows).
    ``schedule`` is the text of another schedule, which says all of this instead of the default:
    the one that a kernel shows as ``kernel.schedule`` gives that kernel again, byte for byte.
    ``reference`` is what the file checks itself against: another graph, or the text of a module
    with a function ``reference``. Raises ValueError for unknown or missing dims, dtypes and
    targets; EmitError for programs that have no Triton form, or no such loops, and for a move of
    the schedule that does not apply; ParseError for a schedule that cannot be read.

    >>> from blockbuster.ir.parse import parse
    >>> graph = parse("graph(X: M[M]) { Y = map M (x in !X) { y = exp(x)  yield y } return Y }")
    >>> emit(graph, sizes={"M": 1000}, dtype="float32").tiles
    {'M': 1024}
    """
    fused, graph = (graph, graph.final) if isinstance(graph, Derivation) else (None, graph)
    check_graph(graph)
    device = target_of(target)
    said: list[str] = []
    stable = safe(graph, said.append)
    program = typed_for_gpu(graph, lower_to_tiles(stable), given_by(dtype))
    _check_dims(program, sizes, tiles or {})
    _check_chunks(program, chunks or {})
    bound = bind_sizes((), {}, program.rules, sizes)
    if schedule is None:
        scheduled = default_schedule(program, bound, device=device, tiles=tiles, chunks=chunks)
        if tiles is None and chunks is None:
            scheduled = best_schedule(scheduled)
    elif tiles or chunks:
        raise ValueError("a schedule says tiles and chunks itself: give it, or these, not both")
    else:
        before = unscheduled(program, bound, device)
        scheduled = checked_complete(replayed(before, schedule))
    notes = (*overflowing(stable), *dict.fromkeys(said))
    return written(scheduled, stable, reference=reference, notes=notes, fused=fused)


def check_schedule(
    graph: Graph,
    schedule: str,
    sizes: Mapping[Dim, int],
    dtype: str | Mapping[str, str] = "float16",
    target: str = "sm_90",
    *,
    trials: int = 8,
    seed: int = 0,
) -> ProofReport:
    """A proof of every move of a schedule's text, by running the program before and after it.

    Programs are run by the interpreter of tile programs on random inputs, at random small sizes and
    blocks: exactly where that settles it, with parallel iterations in random order, results and
    workspaces poisoned, loads that run ahead as late and slots reused as early as they may be.
    Raises as ``emit`` does for a schedule that cannot be read or does not apply.

    >>> from blockbuster.ir.parse import parse
    >>> graph = parse("graph(X: M[M]) { Y = map M (x in !X) { y = exp(x)  yield y } return Y }")
    >>> check_schedule(graph, "block M 64; warps 4", {"M": 1000}).equal
    True
    """
    derivation = emit(graph, sizes, dtype, target, schedule=schedule).derivation
    assert derivation is not None
    return derivation.prove(trials=trials, seed=seed)


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
