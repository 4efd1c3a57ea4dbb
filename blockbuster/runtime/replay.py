"""Runs a plan on a GPU: the actions of the files' launchers are recorded once and then repeated.

A file's own ``launch`` checks the arrays, allocates and launches. For tensors of one layout
(shapes, strides, dtypes, device, alignment), only the addresses change between calls. So the first
call runs ``launch`` with stand-ins for its kernels that record the compiled kernel and its
arguments; later calls allocate, fill in addresses and start the compiled kernels. None of this
waits for the GPU or copies to it, so a call can be captured in a CUDA graph. For a new layout that
needs no other kernels, the launcher does not run again: its numbers are computed by the recorded
formulas (relaunch.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from blockbuster.emit.target.compiler import Compilation, Refusal
from blockbuster.emit.target.gpu import Gpu
from blockbuster.emit.target.load import load_module
from blockbuster.emit.target.starting import starter
from blockbuster.emit.target.targets import target_of
from blockbuster.errors import LaunchError, message
from blockbuster.runtime.device_call import DeviceCall
from blockbuster.runtime.first_launch import Compare, FirstChecks, Run
from blockbuster.runtime.kept import Kept
from blockbuster.runtime.launches import Described, Kernel, Laid, laid_out, prepared
from blockbuster.runtime.numbers import Start
from blockbuster.runtime.recorder import Noted, Recorder, Refused
from blockbuster.runtime.relaunch import Relaunch
from blockbuster.runtime.tape import Finish, Move, Play, Tape, taken
from blockbuster.selection.plans.pieces import Call
from blockbuster.selection.plans.plan import File, Plan, Sizes

Tensor = Any
Known = dict[str, Relaunch]
"""What is known of a plan's files, by their texts, for all layouts."""


@dataclass
class OnGpu:
    """A plan on one GPU: what its replays for all layouts have in common.

    ``known`` grows with what they compile; ``kept`` has what was computed of constants. ``tape`` is
    that of the first one, after it ran: later ones read the same arrays in the same order.
    """

    plan: Plan
    gpu: Gpu
    compare: Compare | None = None
    known: Known = field(default_factory=dict)
    tape: Tape | None = None
    kept: Kept = field(default_factory=Kept)


class Replay:
    """A plan for tensors of one layout; the first call checks, compiles and records."""

    __slots__ = ("_calls", "_checks", "_of", "_recordings", "_sizes", "_tape")

    def __init__(self, of: OnGpu, sizes: Sizes) -> None:
        self._of, self._sizes = of, sizes
        self._tape: Tape | None = None
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

    def __call__(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """The program's outputs, for its inputs in order. Raises Refused: see ``Recording``."""
        tape = self._tape
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
        self._of.tape = like or self._tape
        return results

    def _learn(self) -> None:
        """Let other layouts have what was compiled for this one: its results were right.

        Not on AMD's devices: there Triton also tells small arrays from others.
        """
        if target_of(self._of.plan.target).backend == "cuda":
            for recording in self._recordings:
                recording.learn(self._of.known)

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
            call = DeviceCall(planned, self._sizes, dtypes)
            self._calls += (call,)
            return call.play, call.first(given)
        known = of.known.get(planned.text)
        laid = known.laid(given, self._sizes) if known else None
        if laid is not None:
            return laid, laid(given)
        if of.compare and self._checks is None:
            self._checks = FirstChecks(of.gpu, of.compare)
        name, kept = of.plan.name, of.kept
        recording = Recording(planned, self._sizes, of.gpu, self._checks, of=name, kept=kept)
        self._recordings += (recording,)
        return recording.by_launcher(given)


class Recording:
    """A file run by its own launcher for arrays of one layout, and what that did.

    ``of`` is the name of the plan, ``kept`` keeps what it computes of constants.
    """

    def __init__(
        self,
        file: File,
        sizes: Sizes,
        gpu: Gpu,
        checks: FirstChecks | None = None,
        *,
        of: str = "",
        kept: Kept | None = None,
    ) -> None:
        self._file, self._sizes, self._gpu, self._checks, self._of = file, sizes, gpu, checks, of
        self._kept = Kept() if kept is None else kept
        self._compilations: Sequence[Compilation] = ()
        self._learned: tuple[Laid, Sequence[Tensor]] | None = None

    @property
    def assemblers(self) -> tuple[str, ...]:
        """The assemblers of its kernels."""
        return tuple(dict.fromkeys(made.assembler for made in self._compilations if made.assembler))

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the recording."""
        return tuple(dict.fromkeys(note for made in self._compilations for note in made.notes))

    def learn(self, known: Known) -> None:
        """Enter into ``known`` what its launcher started."""
        assert self._learned is not None, "its launcher ran, and it is asked once"
        (laid, tensors), self._learned = self._learned, None
        text = self._file.text
        if text not in known:
            known[text] = Relaunch(load_module(text), self._gpu)
        known[text].learn(laid, tensors, self._sizes)

    def by_launcher(self, tensors: list[Tensor]) -> tuple[Play, list[Tensor]]:
        """A player of the file by its launcher, and its outputs. Raises Refused if Triton refuses
        it.
        """
        if self._checks:
            self._checks.expect_no_capture(self._of)
        aliases = [tensor.detach() for tensor in tensors]  # no two are the same object
        recorder, results = self._recorded(aliases)
        arrays = [*aliases, *recorder.made]
        numbers = [next(i for i, a in enumerate(arrays) if a is r) for r in results]
        self._compilations = [noted.made for noted in recorder.noted]
        made = [(tuple(m.shape), m.stride(), m.dtype) for m in recorder.made]
        launches = [(_kernel(noted, arrays), _start(noted)) for noted in recorder.noted]
        part = prepared(recorder.prepared, len(tensors), made, launches, self._kept)
        laid = laid_out(self._gpu, made, launches, numbers, part, len(tensors))
        self._learned = laid, aliases
        return laid, results

    def _recorded(self, aliases: Sequence[Tensor]) -> tuple[Recorder, list[Tensor]]:
        """The file's launcher, recorded, and its outputs."""
        module = load_module(self._file.text)
        try:
            recorder = Recorder(module)
            if self._checks:
                dry = Recorder(module, launches=False)
                dry.launch(aliases, self._sizes)
                self._checks.admit(self._file, dry.noted, aliases, self._sizes)
                recorder = Recorder(module, earlier=dry.noted, poisons=True)
            return recorder, recorder.launch(aliases, self._sizes)
        except Refusal as refusal:
            raise Refused((self._file,), str(refusal)) from refusal
        except ValueError as error:
            name = self._file.writes[0]
            raise LaunchError(message(str(error), origin=f"launching {name}")) from error


def _kernel(noted: Noted, arrays: Sequence[Tensor]) -> Kernel:
    """A compiled kernel that was started, with the arrays whose addresses it takes."""
    pointers = [argument for argument in noted.arguments if hasattr(argument, "data_ptr")]
    of_view = {id(view): array for view, array in noted.views}
    numbers = tuple([_behind(of_view.get(id(one), one), arrays) for one in pointers])
    for pointer, number in zip(pointers, numbers, strict=True):
        assert pointer.data_ptr() == arrays[number].data_ptr(), "a view begins where its array does"
    given = [noted.options[name] for name in noted.names[len(noted.arguments) :]]
    count = sum(one is None or hasattr(one, "block_shape") for one in given)
    described = tuple([one and _described(one, arrays) for one in given[:count]])
    constants = tuple(given[count:])
    compiled = noted.made.compiled
    return Kernel(starter(compiled), compiled.function, numbers, constants, described)


def _described(descriptor: Any, arrays: Sequence[Tensor]) -> Described:
    """What stands for the descriptor that a kernel was started with."""
    return Described(_behind(descriptor.base, arrays), tuple(descriptor.block_shape))


def _start(noted: Noted) -> Start:
    """How a kernel was started: its grid, and its arguments behind the arrays."""
    grid, *more = noted.grid
    assert all(size == 1 for size in more), "the grids of emitted kernels have one axis"
    is_array = [hasattr(argument, "data_ptr") for argument in noted.arguments]
    assert is_array == sorted(is_array, reverse=True), "arrays come first"
    return grid, tuple(noted.arguments[sum(is_array) :])


def _behind(argument: Tensor, arrays: Sequence[Tensor]) -> int:
    """The array that a kernel's argument is, or is a view of: truth values enter as bytes."""
    for position, array in enumerate(arrays):
        if array is argument:
            return position
    memory = argument.untyped_storage().data_ptr()
    return next(i for i, a in enumerate(arrays) if a.untyped_storage().data_ptr() == memory)
