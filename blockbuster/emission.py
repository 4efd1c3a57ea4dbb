"""``bb.emit``: a program as one Triton file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from blockbuster.emit.kernel import Kernel, written
from blockbuster.emit.schedule.block import LEAST
from blockbuster.emit.schedule.scheduled import Scheduled, unscheduled
from blockbuster.emit.schedule.script import checked_complete, replayed
from blockbuster.emit.target.targets import target_of
from blockbuster.emit.tile.array_dtypes import Given, given_by, typed_for_gpu
from blockbuster.emit.tile.constants import known_names, names_given
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.program import TileProgram
from blockbuster.emit.tile.trips import dims_of, named, sized
from blockbuster.errors import EmitError, ParseError, among, message
from blockbuster.interp.report import ProofReport
from blockbuster.ir.graph import Graph
from blockbuster.ir.lengths import in_order
from blockbuster.ir.sizes import bind_sizes, whole
from blockbuster.ir.types import Dim, size_class
from blockbuster.ir.verify import check_graph
from blockbuster.machines import Machine
from blockbuster.rules import Derivation, overflowing, safe
from blockbuster.selection.choice import Fused
from blockbuster.selection.contest import best_schedule
from blockbuster.selection.decisions.default_schedule import default_schedule
from blockbuster.selection.decisions.default_tiles import dot_dims


@dataclass(frozen=True)
class _Source:
    """What a kernel is emitted from.

    ``graph`` became ``stable``, which became ``program``. ``fused`` is how it was fused, ``best``
    the schedule that it was chosen with and ``chosen`` why it was, where there was a choice.
    """

    graph: Graph
    stable: Graph
    program: TileProgram
    notes: tuple[str, ...]
    fused: Derivation | None = None
    best: Scheduled | None = None
    chosen: str = ""


def emit(
    graph: Graph | Derivation,
    sizes: Mapping[Dim, int],
    dtype: str | Mapping[str, str] = "float16",
    target: str | Machine = "sm_90",
    tiles: Mapping[Dim, int] | None = None,
    reference: Graph | str | None = None,
    chunks: Mapping[Dim, int] | None = None,
    schedule: str | None = None,
    constant: Sequence[str] = (),
) -> Kernel:
    """The Triton file of ``graph``, after the numerical-safety pass.

    A graph is emitted as given. For a derivation, the program is emitted that costs least at these
    sizes, as ``jit`` chooses it: a snapshot or, with the default rules, a form beside the snapshots
    (selection/choice.py). ``kernel.chosen`` and the head of the file say which one, and
    ``kernel.derivation`` begins with the steps that lead to it from the start or, for some forms
    beside the snapshots, from the safe form of a snapshot. If several kernels cost least, they
    stand in one file, with one schedule, one tile program and one launcher.

    ``target`` is an architecture ("sm_90"), the name of a GPU ("rtx3080") or a ``Machine``. The
    numbers of one machine decide which program and which schedule cost least: those of the
    ``Machine``, or of the named GPU; an H200's for "sm_90" and for GPUs that are as large, such as
    "h100"; for another architecture those of one GPU of it (docs/targets_and_machines.md).

    ``sizes`` gives every dim the number of elements for which the kernel is tuned, ``tiles`` the
    lanes of some dims (powers of two), ``chunks`` into how many chunks loops over some dims are cut
    (powers of two; if ``chunks`` is None, as many as keep the target busy). Without both, schedules
    near the default one are compared by the closed form (selection/contest.py). ``dtype`` is that
    of all inputs, or those of some inputs and outputs by name (array_dtypes.py defines the others).
    ``schedule`` is the text of another schedule, which replaces all of these defaults: the text in
    ``kernel.schedule`` makes that kernel again, byte for byte. ``tiles``, ``chunks`` and
    ``schedule`` apply to the program that is chosen without them; to apply them to another one,
    pass that program: ``derivation.final``, ``derivation.snapshots[0]``.

    ``constant`` names inputs that stay as they are from call to call. What kernels compute of them
    alone is then made by a function ``prepare`` of the file; ``launch(..., prepared=...)`` takes
    it, and calls ``prepare`` where it is not given.

    ``reference`` is what the file checks itself against: another graph, or the text of a module
    with a function ``reference``. By default that is the function that was traced, operator by
    operator; for a graph that was not lowered from one (or that a rule has changed since), it is
    the graph. Raises ValueError for unknown or missing dims, dtypes and targets;
    EmitError for programs that have no Triton form, or no such loops, and for a move of the
    schedule that does not apply; ParseError for a schedule that cannot be read.

    >>> from blockbuster.ir.parse import parse
    >>> graph = parse("graph(X: M[M]) { Y = map M (x in !X) { y = exp(x)  yield y } return Y }")
    >>> emit(graph, sizes={"M": 1000}, dtype="float32").tiles
    {'M': 1024}
    """
    if schedule is not None and (tiles or chunks):
        raise ValueError("a schedule says tiles and chunks itself: give it, or these, not both")
    device, given = target_of(target), replace(given_by(dtype), constants=names_given(constant))
    sizes, tiles, chunks = whole(sizes), _whole(tiles, "tiles"), _whole(chunks, "chunks")
    if isinstance(graph, Derivation):
        source, reference = _chosen(graph, sizes, given, target), reference or graph.start
    else:
        source, reference = _as_given(graph, sizes, given), reference or _with_meaning(graph)
    program = source.program
    known_names(given.constants, [buffer.name for buffer in program.inputs])
    _check_tiles(program, tiles or {})
    _check_chunks(program, chunks or {})
    bound = bind_sizes((), {}, program.rules, sizes)
    if schedule is not None:
        scheduled = _replayed(source, unscheduled(program, bound, device), schedule)
    elif source.best is not None and tiles is None and chunks is None:
        scheduled = source.best
    else:
        scheduled = default_schedule(program, bound, device=device, tiles=tiles, chunks=chunks)
        if tiles is None and chunks is None:
            scheduled = best_schedule(scheduled)
    return written(
        scheduled,
        source.stable,
        reference=reference,
        notes=source.notes,
        fused=source.fused,
        chosen=source.chosen,
    )


def _with_meaning(graph: Graph) -> Graph | None:
    """``graph`` if the function is known that it was lowered from."""
    return graph if graph.meaning is not None else None


def _whole(numbers: Mapping[Dim, int] | None, what: str) -> dict[Dim, int] | None:
    return None if numbers is None else whole(numbers, what)


def _as_given(graph: Graph, sizes: Mapping[Dim, int], given: Given) -> _Source:
    check_graph(graph)
    said: list[str] = []
    stable = safe(graph, said.append)
    program = typed_for_gpu(graph, lower_to_tiles(stable), given)
    _check_sizes(program, sizes)
    return _Source(graph, stable, program, (*overflowing(stable), *dict.fromkeys(said)))


def _chosen(
    derivation: Derivation,
    sizes: Mapping[Dim, int],
    given: Given,
    target: str | Machine,
) -> _Source:
    """The program of a derivation that costs least, with the schedule that it has then."""
    start = derivation.start
    check_graph(start)
    program = lower_to_tiles(start)
    _check_sizes(program, sizes)
    bound = bind_sizes((), {}, program.rules, sizes)
    fused = Fused(start, derivation, constants=bool(given.constants))
    considered = fused.consider(bound, given, target)
    best = considered.best
    assert best.scheduled is not None, "a GPU's choice has a schedule"
    return _Source(
        best.graph,
        best.stable,
        best.scheduled.start,
        (*best.unsafe, *best.notes),
        fused.derivation_of(best),
        best.scheduled,
        considered.short,
    )


def _replayed(source: _Source, before: Scheduled, schedule: str) -> Scheduled:
    """``before`` with the moves of a schedule. An error says which program they were for."""
    try:
        return checked_complete(replayed(before, schedule))
    except (EmitError, ParseError) as error:
        if source.chosen:
            error.add_note(
                f"the schedule was applied to what costs least, {source.chosen}; if it was made for"
                " another program, emit that one: bb.emit(derivation.final, sizes, schedule=...)"
            )
        raise


def check_schedule(
    graph: Graph,
    schedule: str,
    sizes: Mapping[Dim, int],
    dtype: str | Mapping[str, str] = "float16",
    target: str | Machine = "sm_90",
    *,
    trials: int = 8,
    seed: int = 0,
) -> ProofReport:
    """A proof of every move of a schedule's text, by running the programs before and after it.

    The interpreter of tile programs runs them on random inputs, at random small sizes and blocks:
    exactly where that settles it, with parallel iterations in random order, results and workspaces
    poisoned, loads that run ahead as late and slots reused as early as allowed. Raises the errors
    of ``emit`` for a schedule that cannot be read or does not apply.

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
                message(f"unknown dim {dim!r} in chunks", hint=among(dim, dims))
            )
        if count < 2 or count & (count - 1):
            raise ValueError(f"{dim} in {count} chunks, expected a power of two of at least 2")


def _check_known(program: TileProgram, what: str, given: Mapping[Dim, int]) -> None:
    known = named(program)
    for dim in given:
        if dim not in known:
            hint = f"{among(dim, known)}; other dims are read by no kernel"
            raise ValueError(message(f"unknown dim {dim!r} in {what}", hint=hint))


def _check_sizes(program: TileProgram, sizes: Mapping[Dim, int]) -> None:
    _check_known(program, "sizes", sizes)
    found = {*map(size_class, sizes)}
    found.update(rule.dim for rule in in_order(program.rules, found))
    missing = [d for d in sized(program) if d not in found]
    if missing:
        hint = f"dims: {', '.join(named(program))}"
        raise ValueError(message(f"no size given for {', '.join(missing)}", hint=hint))


def _check_tiles(program: TileProgram, tiles: Mapping[Dim, int]) -> None:
    _check_known(program, "tiles", tiles)
    dots = dot_dims(program)
    for dim, lanes in tiles.items():
        least = LEAST if dim in dots or dim in map(size_class, dots) else 1
        if lanes < least or lanes & (lanes - 1):
            raise ValueError(
                f"the tile of {dim} is {lanes}, expected a power of two of at least {least}"
            )
        if size_class(dim) in program.units and lanes != 1:
            raise ValueError(f"the tile of {dim} is {lanes}: its blocks have one element")
