"""Runs a plan on a GPU: what the files' launchers do is computed once for a layout and repeated.

For tensors of one layout (shapes, strides, dtypes, device, alignment), only the addresses change
between calls. So the first call compiles the kernels and computes what they are started with, from
the LaunchSpec of which each file's launcher is printed (file_launches.py); later calls allocate,
fill in addresses and start the compiled kernels. None of this waits for the GPU or copies to it, so
a call can be captured in a CUDA graph. A new layout that needs no other kernels compiles nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from blockbuster.emit.target.compiler import Compilation, Refusal, Source, compile_ahead
from blockbuster.emit.target.gpu import Gpu
from blockbuster.emit.target.load import load_module
from blockbuster.emit.target.targets import target_of
from blockbuster.errors import LaunchError, message
from blockbuster.ir.types import size_class
from blockbuster.runtime.device_call import DeviceCall
from blockbuster.runtime.file_launches import FileLaunches, First
from blockbuster.runtime.first_launch import Compare, FirstChecks, Refused, Run
from blockbuster.runtime.kept import Kept
from blockbuster.runtime.launches import Laid, directly, in_rows
from blockbuster.runtime.room import Empty, NoRoom, room, within
from blockbuster.runtime.tape import Finish, Move, Play, Tape, taken
from blockbuster.selection.plans.pieces import Call
from blockbuster.selection.plans.plan import File, Plan, Sizes

Tensor = Any


@dataclass
class OnGpu:
    """A plan on one GPU: what its replays for all layouts have in common.

    ``known`` has the launches of its files, by their texts and what they read; ``kept`` has what
    was computed of constants. ``has_others``: another plan may take its place. ``tape`` is that of
    the first replay, after it ran: later ones read the same arrays in the same order.
    """

    plan: Plan
    gpu: Gpu
    compare: Compare | None = None
    has_others: bool = False
    known: dict[tuple[str, tuple[str, ...]], FileLaunches] = field(default_factory=dict)
    tape: Tape | None = None
    kept: Kept = field(default_factory=Kept)

    def launches(self, file: File) -> FileLaunches:
        """The launches of a file, for all layouts."""
        key = file.text, file.reads  # equal files of other arrays keep other constants
        if key not in self.known:
            assert file.launches is not None, "files for a GPU say what their launcher does"
            self.known[key] = FileLaunches(load_module(file.text), file.launches, self.gpu)
        return self.known[key]


class Replay:
    """A plan for tensors of one layout; the first call checks, compiles and records."""

    __slots__ = ("_calls", "_checks", "_directly", "_of", "_recordings", "_sizes", "_tape")

    def __init__(self, of: OnGpu, sizes: Sizes) -> None:
        self._of, self._sizes = of, sizes
        self._tape: Tape | None = None
        self._directly: Run | None = None
        self._checks: FirstChecks | None = None
        self._recordings: tuple[Recording, ...] = ()
        self._calls: tuple[DeviceCall, ...] = ()

    @property
    def gpu(self) -> Gpu:
        """The device that it runs on."""
        return self._of.gpu

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes from the calls."""
        found = [call.note for call in self._calls]
        found += [note for recording in self._recordings for note in recording.notes]
        found += [self._checks.note] if self._checks else []
        found += [self._of.kept.note]
        return tuple(dict.fromkeys(filter(None, found)))

    @property
    def on_host(self) -> tuple[str, ...]:
        """Which functions of whole arrays run on the host, and why."""
        return tuple([call.note for call in self._calls if call.note])

    @property
    def assemblers(self) -> tuple[str, ...]:
        """The assemblers of the kernels."""
        made = [name for recording in self._recordings for name in recording.assemblers]
        return tuple(dict.fromkeys(made))

    @property
    def by_address(self) -> bool:
        """True if it ran, and reads nothing of the tensors that it is given but their addresses."""
        tape = self._tape
        if tape is None or min(tape.results) < len(self._of.plan.inputs):
            return False
        moves = [isinstance(p, Laid) and p.by_address and not casts for p, _, casts in tape.moves]
        return all(moves)

    def directly(self, views: Mapping[int, tuple[int, ...]]) -> Run | None:
        """What it does as one function, with ``views`` of some results; None if there are several
        steps, or it did not run yet.
        """
        tape = self._tape
        if tape is None or len(tape.moves) != 1 or tape.finishes:
            return None
        (play, reads, casts), inputs = tape.moves[0], len(self._of.plan.inputs)
        same = [inputs + at for at in range(len(tape.results))] == [*tape.results]
        if casts or not same or [*reads] != [*range(inputs)] or not isinstance(play, Laid):
            return None
        return directly(play, inputs, views)

    def __call__(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """The program's outputs, for its inputs in order. Raises Refused: see ``Recording``."""
        directly, tape = self._directly, self._tape
        if directly is not None:
            return directly(tensors)
        return self._first(tensors) if tape is None else tape.played(tensors)

    def poisoned(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """The same, with all that is allocated full of what kernels do not write."""
        assert self._tape is not None, "it ran before"
        moves: list[Move] = []
        for play, reads, casts in self._tape.moves:
            if isinstance(play, Laid):  # what is kept is computed again, too
                play = play._replace(empty=self._of.gpu.poisoned, prepared=None, room=None)
            moves.append((play, reads, casts))
        return self._tape._replace(moves=moves).played(tensors)

    def pinned(self, tensors: Sequence[Tensor]) -> tuple[Run, list[Tensor]]:
        """The same for these constants as they are now, whatever becomes of them: for graphs, which
        read what is kept at its address. And which tensors the constants are.
        """
        assert self._tape is not None, "it ran before"
        moves: list[Move] = []
        constants: list[Tensor] = []
        for play, reads, casts in self._tape.moves:
            if isinstance(play, Laid) and play.prepared:
                inputs = [tensors[n] if n < len(tensors) else None for n in reads]
                play, own = play.pinned(inputs)  # constants are inputs of the plan
                constants += own
            moves.append((play, reads, casts))
        return self._tape._replace(moves=moves).played, constants

    def _first(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Run the steps for the first time; later calls repeat them."""
        like = self._of.tape
        results = self._by_name(tensors) if like is None else self._as(like, tensors)
        if self._recordings:
            if self._checks:
                self._checks.judge(self, tensors, results)
            self._learn()
        self._of.tape, self._directly = like or self._tape, self.directly({})
        return results

    def _learn(self) -> None:
        """Let other layouts have what was compiled for this one: its results were right.

        Not on AMD's devices: there Triton also tells small arrays from others.
        """
        if target_of(self._of.plan.target).backend == "cuda":
            for recording in self._recordings:
                recording.learn()

    def _as(self, like: Tape, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Run the steps, which read what they do in ``like``."""
        arrays = [*tensors]
        moves: list[Move] = []
        for planned, (_, reads, casts) in zip(self._of.plan.steps, like.moves, strict=True):
            play, made = self._step(planned, taken(arrays, reads, casts))
            moves.append((play, reads, casts))
            arrays += made
        self._tape = Tape(moves, like.results, like.finishes)
        return self._tape.finished(arrays)

    def _by_name(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Run the steps by the names of their arrays; note their numbers, in order of making."""
        plan, dtype_of = self._of.plan, self._of.gpu.dtype
        numbers = {name: number for number, name in enumerate(plan.inputs)}
        arrays = [*tensors]
        moves: list[Move] = []
        self._compile_ahead(tensors)
        for planned in plan.steps:
            reads = [numbers[name] for name in planned.reads]
            casts = []
            for place, name in enumerate(planned.reads):
                taken_as = plan.taken_as(planned, name)
                if taken_as and arrays[numbers[name]].dtype is not dtype_of(taken_as):
                    casts.append((place, dtype_of(taken_as)))
            play, made = self._step(planned, taken(arrays, reads, casts))
            moves.append((play, reads, casts))
            numbers.update({name: len(arrays) + i for i, name in enumerate(planned.writes)})
            arrays += made
        results = [numbers[seen.array] for seen in plan.results]
        self._tape = Tape(moves, results, self._finishes([arrays[number] for number in results]))
        return self._tape.finished(arrays)

    def _compile_ahead(self, tensors: Sequence[Tensor]) -> None:
        """Compile the kernels of several files at once.

        Arrays between steps are made for this and let go, since a kernel depends on their layout
        alone; as many as there is room for. Arrays that do not fit are left to the step that
        refuses them.
        """
        of, plan, sources = self._of, self._of.plan, list[Source]()
        if len(plan.files) < 2 or of.gpu.is_capturing():
            return
        known = {name: one.detach() for name, one in zip(plan.inputs, tensors, strict=True)}
        empty = within(room(tensors[0].device), of.gpu.empty)
        with suppress(ValueError, NoRoom):
            for planned in plan.steps:
                if isinstance(planned, Call):
                    known |= zip(planned.writes, self._laid_out(planned, empty), strict=True)
                    continue
                given = [
                    self._as_taken(planned, name, known[name], empty) for name in planned.reads
                ]
                sizes = planned.own(self._sizes)
                begun = of.launches(planned).begun(given, sizes, empty)
                known |= zip(planned.writes, begun.results, strict=True)
                sources += [one.source for one in begun.wanted]
        compile_ahead(sources, of.gpu)

    def _laid_out(self, call: Call, empty: Empty) -> Iterator[Tensor]:
        """Arrays as a function of whole arrays makes them (device_call.py), not written."""
        dtype_of, kept = self._of.gpu.dtype, self._of.plan.kept
        for name, axes in zip(call.writes, call.axes, strict=True):
            shape = tuple(1 if dim is None else self._sizes[size_class(dim)] for dim in axes)
            yield empty(shape, in_rows(shape), dtype_of(kept[name]))

    def _as_taken(self, file: File, name: str, tensor: Tensor, empty: Empty) -> Tensor:
        """``tensor``, or one of the same layout in the dtype in which a file takes it."""
        taken_as = self._of.plan.taken_as(file, name)
        if not taken_as or tensor.dtype is self._of.gpu.dtype(taken_as):
            return tensor
        return empty(tuple(tensor.shape), tensor.stride(), self._of.gpu.dtype(taken_as))

    def _finishes(self, made: Sequence[Tensor]) -> list[tuple[int, Finish]]:
        """What is left to do to the arrays that were made to be the results."""
        finishes = []
        plan = self._of.plan
        asked = zip(plan.results, plan.result_dtypes, made, strict=True)
        for position, (seen, dtype, tensor) in enumerate(asked):
            finish = Finish(seen, self._of.gpu.dtype(dtype))
            if not finish.is_identity(tensor):
                finishes.append((position, finish))
        return finishes

    def _step(self, planned: File | Call, given: list[Tensor]) -> tuple[Play, list[Tensor]]:
        """A step for the first time: what plays it again, and the arrays that it makes."""
        of = self._of
        if isinstance(planned, Call):
            dtypes = [of.gpu.dtype(of.plan.kept[name]) for name in planned.writes]
            call = DeviceCall(planned, self._sizes, dtypes, has_others=of.has_others)
            self._calls += (call,)
            return call.play, call.first(given)
        launches = of.launches(planned)
        sizes = planned.own(self._sizes)
        laid = launches.laid(given, sizes)
        if laid is not None:
            return laid, laid(given)
        if of.compare and self._checks is None:
            self._checks = FirstChecks(of.gpu, of.compare)
        recording = Recording(of, planned, sizes, self._checks)
        self._recordings += (recording,)
        return recording.first(given)


class Recording:
    """A file whose kernels are compiled and started for the first arrays of a layout."""

    def __init__(
        self, of: OnGpu, file: File, sizes: Sizes, checks: FirstChecks | None = None
    ) -> None:
        self._of, self._file, self._sizes, self._checks = of, file, sizes, checks
        self._learned: tuple[Any, Laid] | None = None
        self._compilations: Sequence[Compilation] = ()

    @property
    def assemblers(self) -> tuple[str, ...]:
        """The assemblers of its kernels."""
        return tuple(dict.fromkeys(made.assembler for made in self._compilations if made.assembler))

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the recording."""
        return tuple(dict.fromkeys(note for made in self._compilations for note in made.notes))

    def learn(self) -> None:
        """Let other layouts have the kernels."""
        assert self._learned is not None, "it ran"
        self._of.launches(self._file).learn(*self._learned)

    def first(self, tensors: list[Tensor]) -> tuple[Play, list[Tensor]]:
        """A player of the file, and its outputs. Raises Refused if Triton refuses it."""
        if self._checks:
            self._checks.expect_no_capture(self._of.plan.name)
        try:
            first = self._compiled([tensor.detach() for tensor in tensors])
        except Refusal as refusal:
            raise Refused((self._file,), str(refusal)) from refusal
        except ValueError as error:
            name = self._file.writes[0]
            raise LaunchError(message(str(error), origin=f"launching {name}")) from error
        self._learned, self._compilations = (first.pattern, first.laid), first.compilations
        return first.laid, first()

    def _compiled(self, tensors: list[Tensor]) -> First:
        """The file's launches, which may run; what is new is checked later in poisoned memory."""
        of, checks = self._of, self._checks
        empty = of.gpu.poisoned if checks else of.gpu.empty
        first = of.launches(self._file).first(tensors, self._sizes, of.kept, empty)
        if checks:
            checks.admit(self._file, first.compilations, tensors, self._sizes)
        else:
            for made in first.compilations:
                made.look()  # a lost register can be an address
        return first
