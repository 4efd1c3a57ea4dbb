"""``bb.emit``: a program as one Triton file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from blockbuster.emit.kernel import Kernel, written
from blockbuster.emit.schedule.block import LEAST
from blockbuster.emit.schedule.scheduled import Scheduled, unscheduled
from blockbuster.emit.schedule.script import checked_complete, program_of, replayed
from blockbuster.emit.target.targets import Target, target_of
from blockbuster.emit.tile.array_dtypes import Given, given_by, typed_for_gpu
from blockbuster.emit.tile.constants import known_names, names_given
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.lowered import Lowered, lowered
from blockbuster.emit.tile.program import TileProgram
from blockbuster.emit.tile.trips import dims_of, named, sized
from blockbuster.errors import EmitError, ParseError, among, message
from blockbuster.interp.report import ProofReport
from blockbuster.ir.graph import Graph
from blockbuster.ir.lengths import in_order
from blockbuster.ir.sizes import bind_sizes, example_of_sizes, whole
from blockbuster.ir.types import Dim, size_class
from blockbuster.ir.verify import check_graph
from blockbuster.machines import Machine
from blockbuster.rules import Derivation
from blockbuster.selection.candidates.named import program_named
from blockbuster.selection.candidates.variant import Variant
from blockbuster.selection.choice import Fused
from blockbuster.selection.considered import Considered
from blockbuster.selection.contest import best_schedule
from blockbuster.selection.decisions.default_schedule import default_schedule
from blockbuster.selection.decisions.default_tiles import dot_dims


@dataclass(frozen=True)
class _Source:
    """What a kernel is emitted from.

    ``program`` is the tile program of ``lowered``, with dtypes. ``reference`` is the graph that the
    file checks itself against by default, ``plain`` the tile program of that, if it is known. Of a
    derivation ``fused`` leads to the program, and ``name`` is what a schedule's text calls it;
    ``best`` is the schedule that it was chosen with, of all that was ``considered``.
    """

    lowered: Lowered
    program: TileProgram
    notes: tuple[str, ...]
    reference: Graph | None = None
    fused: Derivation | None = None
    name: str = ""
    plain: TileProgram | None = None
    best: Scheduled | None = None
    considered: Considered | None = None

    def best_for(
        self,
        sizes: Mapping[Dim, int],
        device: Target,
        tiles: Mapping[Dim, int] | None,
        chunks: Mapping[Dim, int] | None,
    ) -> Scheduled:
        """The default schedule with these tiles and chunks; without both the best that is known."""
        free = tiles is None and chunks is None
        if free and self.best is not None:
            return self.best
        made = default_schedule(self.program, sizes, device=device, tiles=tiles, chunks=chunks)
        return best_schedule(made) if free else made


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
    (selection/choice.py). ``kernel.chosen`` says which one and why, and ``kernel.derivation``
    begins with the steps that lead to it from the start. If several kernels cost least, they stand
    in one file, with one schedule, one tile program and one launcher.

    ``target`` is an architecture ("sm_90"), the name of a GPU ("rtx3080") or a ``Machine``. The
    numbers of one machine decide which program and which schedule cost least: those of the
    ``Machine``, or of the named GPU; an H200's for "sm_90" and for GPUs that are as large, such as
    "h100"; for another architecture those of one GPU of it (docs/targets_and_machines.md).

    ``sizes`` gives every dim the number of elements for which the kernel is tuned (those that the
    function was traced with need not be repeated), ``tiles`` the
    lanes of some dims (powers of two), ``chunks`` into how many chunks loops over some dims are cut
    (powers of two; if ``chunks`` is None, as many as keep the target busy). Without both, schedules
    near the default one are compared by the closed form (selection/contest.py). ``dtype`` is that
    of all inputs, or those of some inputs and outputs by name (array_dtypes.py defines the others).
    ``tiles`` and ``chunks`` apply to the program that is chosen without them; to apply them to
    another one, pass that program: ``derivation.final``, ``derivation.snapshots[0]``.

    ``schedule`` is the text of another schedule, which replaces all of these defaults. Its moves
    are replayed, and nothing is compared: the text in ``kernel.schedule`` makes that kernel again,
    byte for byte. Of a derivation it schedules the program that its first line names, such as
    ``for snapshot 1``, and without that line ``derivation.final``.

    ``constant`` names inputs that stay as they are from call to call. What kernels compute of them
    alone is then made by a function ``prepare`` of the file; ``launch(..., prepared=...)`` takes
    it, and calls ``prepare`` where it is not given.

    ``reference`` is what the file checks itself against: another graph, or the text of a module
    with a function ``reference``. By default that is the function that was traced, operator by
    operator; for a graph that was not lowered from one (or that a rule has changed since), it is
    the graph. Raises ValueError for unknown or missing dims, dtypes and targets, for a size of 0
    and for another size than the function was traced with;
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
    name, moves = program_of(schedule or "")
    if isinstance(graph, Derivation):
        source = _of_derivation(graph, sizes, given, target, None if schedule is None else name)
    else:
        source = _as_given(graph, sizes, given, name)
    program, reference = source.program, reference or source.reference
    start = graph.start if isinstance(graph, Derivation) else graph
    _check_given(program, given, tiles or {}, chunks or {})
    bound = bind_sizes((), {}, program.rules, _with_fixed(program, start, sizes))
    if schedule is not None:
        scheduled = _replayed(source, unscheduled(program, bound, device), moves)
    else:
        scheduled = source.best_for(bound, device, tiles, chunks)
    made = written(
        scheduled,
        source.lowered.stable,
        reference=reference,
        tiles=source.lowered.program,
        plain=source.plain if reference is source.reference else None,
        notes=source.notes,
        fused=source.fused,
        name=source.name,
        chosen=source.considered.short if source.considered else "",
    )
    return replace(made, considered=source.considered) if scheduled is source.best else made


def _whole(numbers: Mapping[Dim, int] | None, what: str) -> dict[Dim, int] | None:
    return None if numbers is None else whole(numbers, what)


def _as_given(graph: Graph, sizes: Mapping[Dim, int], given: Given, name: str) -> _Source:
    check_graph(graph)
    if name:
        hint = "give emit the derivation, or leave the line out"
        what = f"the schedule is for {name!r}, a program of a derivation, and a graph was given"
        raise EmitError(message(what, hint=hint))
    low = lowered(graph)
    program = typed_for_gpu(graph, low.program, given)
    _check_sizes(program, _with_fixed(program, graph, sizes))
    traced = graph if graph.meaning is not None else None  # else the file compares with the graph
    return _Source(low, program, (*low.unsafe, *low.notes), traced)


def _of_derivation(
    derivation: Derivation,
    sizes: Mapping[Dim, int],
    given: Given,
    target: str | Machine,
    name: str | None,
) -> _Source:
    """The program that a schedule is for by name, "" for the final one; None: what costs least."""
    start = derivation.start
    check_graph(start)
    plain = lower_to_tiles(start)
    sizes = _with_fixed(plain, start, sizes)
    _check_sizes(plain, sizes)
    if name is None:
        bound = bind_sizes((), {}, plain.rules, sizes)
        return replace(_chosen(derivation, bound, given, target), plain=plain)
    made = program_named(name, derivation) if name else Variant(derivation)
    low = lowered(made.graph, made.notes)
    program = typed_for_gpu(start, low.program, given)
    name = "" if made.derivation is derivation else name
    return _Source(low, program, (*low.unsafe, *low.notes), start, made.derivation, name, plain)


def _chosen(
    derivation: Derivation, sizes: Mapping[Dim, int], given: Given, target: str | Machine
) -> _Source:
    """The program of a derivation that costs least, with the schedule that it has then."""
    fused = Fused(derivation.start, derivation, constants=bool(given.constants))
    considered = fused.consider(sizes, given, target)
    best = considered.best
    assert best.scheduled is not None, "a GPU's choice has a schedule"
    return _Source(
        best.lowered,
        best.scheduled.start,
        (*fused.faults, *best.unsafe, *best.notes),
        derivation.start,
        fused.derivation_of(best),
        fused.name_of(best),
        best=best.scheduled,
        considered=considered,
    )


def _replayed(source: _Source, before: Scheduled, moves: str) -> Scheduled:
    """``before`` with the moves of a schedule. An error says which program they were for."""
    try:
        return checked_complete(replayed(before, moves))
    except (EmitError, ParseError) as error:
        if source.name:
            error.add_note(f"the schedule was applied to {source.name}, which it is for")
        elif source.fused:
            error.add_note(
                "the schedule was applied to derivation.final; the text of one for another program"
                " begins with a line that names it, such as 'for snapshot 1'"
            )
        raise


def check_schedule(
    graph: Graph | Derivation,
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
            raise ValueError(message(f"unknown dim {dim!r} in chunks", hint=among(dim, dims)))
        if count < 2 or count & (count - 1):
            raise ValueError(f"{dim} in {count} chunks, expected a power of two of at least 2")


def _check_known(program: TileProgram, what: str, given: Mapping[Dim, int]) -> None:
    known = named(program)
    for dim in given:
        if dim not in known:
            hint = f"{among(dim, known)}; other dims are read by no kernel"
            raise ValueError(message(f"unknown dim {dim!r} in {what}", hint=hint))


def _with_fixed(program: TileProgram, graph: Graph, sizes: Mapping[Dim, int]) -> dict[Dim, int]:
    """``sizes``, and those that the traced function was given. Raises ValueError where these
    differ, where a dim has no size, and where one has no elements.
    """
    _check_known(program, "sizes", sizes)
    traced = graph.meaning.sizes if graph.meaning is not None else {}
    for dim, size in sizes.items():
        if traced.get(dim, size) != size:
            hint = (
                f'trace it with the dim {dim} without a number to emit it for any size: x="{dim}"'
            )
            what = f"{dim} is {size}, but the function was traced for {traced[dim]}"
            raise ValueError(message(what, hint=hint))
        if size == 0:
            what = f"{dim} has size 0: a kernel without elements does nothing"
            raise ValueError(message(what, hint="give every dim at least one element"))
    known = named(program)
    return {**{dim: size for dim, size in traced.items() if dim in known}, **sizes}


def _check_sizes(program: TileProgram, sizes: Mapping[Dim, int]) -> None:
    found = {*map(size_class, sizes)}
    found.update(rule.dim for rule in in_order(program.rules, found))
    missing = [d for d in sized(program) if d not in found]
    if missing:
        hint = example_of_sizes(named(program), sizes)
        raise ValueError(message(f"no size given for {', '.join(missing)}", hint=hint))


def _check_given(
    program: TileProgram, given: Given, tiles: Mapping[Dim, int], chunks: Mapping[Dim, int]
) -> None:
    known_names(given.constants, [buffer.name for buffer in program.inputs])
    _check_tiles(program, tiles)
    _check_chunks(program, chunks)


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
