"""Running a plan on a GPU: what the files' launchers do is recorded once and then repeated.

A file's own ``launch`` checks the arrays, allocates and launches. For tensors of one layout
(shapes, strides, dtypes, device, alignment) all that never changes but the addresses. So the first
call runs ``launch`` with stand-ins for its kernels that note the compiled kernel and its arguments;
later calls allocate, fill in addresses and start the compiled kernels. Nothing of that waits for
the GPU or copies to it, so a call can be captured in a CUDA graph. For a new layout that needs no
other kernels the launcher does not run again: its numbers are computed as noted (relaunch.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from blockbuster.emit.target.compiler import Compilation, Refusal, target_of
from blockbuster.emit.target.gpu import Gpu
from blockbuster.emit.target.load import load_module
from blockbuster.errors import NOT_TAKEN, LaunchError, message, shown_lines
from blockbuster.runtime.first_launch import Compare, FirstChecks
from blockbuster.runtime.launch import from_host, to_host
from blockbuster.runtime.recorder import Noted, Recorder, Refused
from blockbuster.runtime.relaunch import Launch, Made, Relaunch
from blockbuster.runtime.tape import Finish, Move, Tape
from blockbuster.runtime.tensors import ALIGNED
from blockbuster.selection.pieces import Call
from blockbuster.selection.plan import File, Plan, Sizes, call_on_host, check_results, noted, shown

Tensor = Any


class Replay:
    """A plan for tensors of one layout; the first call checks, compiles and records.

    ``known``: what replays of the plan on this device have in common, by file; it grows. ``like``
    is one that ran, for arrays of the same dtypes: which steps read what is taken from it.
    """

    def __init__(
        self,
        plan: Plan,
        sizes: Sizes,
        gpu: Gpu,
        *,
        compare: Compare | None = None,
        known: Known | None = None,
        like: Replay | None = None,
    ) -> None:
        self._plan = plan
        self._known = {} if known is None else known
        self._checks = FirstChecks(gpu, compare) if compare else None
        self._dtype = gpu.dtype
        self._steps = [
            Recording(step, sizes, gpu, self._checks, self._known.get(step.text), of=plan.name)
            if isinstance(step, File)
            else DeviceCall(step, sizes, [gpu.dtype(plan.kept[name]) for name in step.writes])
            for step in plan.steps
        ]
        self._tape: Tape | None = None
        self._like = like._tape if like else None

    @property
    def notes(self) -> tuple[str, ...]:
        """What the calls turned out to need."""
        found = [s.note for s in self._steps if isinstance(s, DeviceCall)]
        found += [note for s in self._steps if isinstance(s, Recording) for note in s.notes]
        found += [self._checks.note] if self._checks else []
        return tuple(dict.fromkeys(filter(None, found)))

    @property
    def assemblers(self) -> tuple[str, ...]:
        """What made the machine code of the kernels."""
        made = [name for s in self._steps if isinstance(s, Recording) for name in s.assemblers]
        return tuple(dict.fromkeys(made))

    def __call__(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """The program's outputs, for its inputs in order. Raises Refused: see ``Recording``."""
        tape = self._tape
        if tape is None:
            results = self._first(tensors)
            if any(step.ran_launcher for step in self._steps):
                if self._checks:
                    self._checks.judge(self, tensors, results)
                self._learn()
            return results
        return tape.played(tensors)

    def poisoned(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """The same, with all that is allocated full of what kernels do not write."""
        recordings = [step for step in self._steps if isinstance(step, Recording)]
        for recording in recordings:
            recording.poison(True)
        try:
            return self(tensors)
        finally:
            for recording in recordings:
                recording.poison(False)

    def _learn(self) -> None:
        """Let other layouts have what was compiled for this one: its results were right.

        Not on AMD's devices: there Triton also tells small arrays from others.
        """
        if target_of(self._plan.target).backend != "cuda":
            return
        for step in self._steps:
            if isinstance(step, Recording):
                step.learn(self._known)

    def _first(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Run the steps for the first time; later calls repeat them."""
        like = self._like
        if like is None:
            return self._by_name(tensors)
        pairs = [*zip(self._steps, like.moves, strict=True)]
        moves: list[Move] = [(step.first, reads, casts) for step, (_, reads, casts) in pairs]
        results = Tape(moves, like.results, like.finishes).played(tensors)
        moves = [(step.play, reads, casts) for step, (_, reads, casts) in pairs]
        self._tape = Tape(moves, like.results, like.finishes)
        return results

    def _by_name(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Run the steps by the names of their arrays; note their numbers, in order of making."""
        numbers = {name: number for number, name in enumerate(self._plan.inputs)}
        arrays = [*tensors]
        moves: list[Move] = []
        for planned, step in zip(self._plan.steps, self._steps, strict=True):
            reads = [numbers[name] for name in step.reads]
            given = [arrays[number] for number in reads]
            casts = []
            for place, name in enumerate(step.reads):
                taken = self._plan.taken_as(planned, name)
                if taken and given[place].dtype is not self._dtype(taken):
                    casts.append((place, self._dtype(taken)))
                    given[place] = given[place].to(self._dtype(taken))
            moves.append((step.play, reads, casts))
            numbers.update({name: len(arrays) + i for i, name in enumerate(step.writes)})
            arrays += step.first(given)
        results = [numbers[seen.array] for seen in self._plan.results]
        made = [arrays[number] for number in results]
        finishes = []
        dtypes = map(self._dtype, self._plan.result_dtypes)
        for position, (seen, dtype) in enumerate(zip(self._plan.results, dtypes, strict=True)):
            finish = Finish(seen, dtype)
            if not finish.is_identity(made[position]):
                finishes.append((position, finish))
                made[position] = finish(made[position])
        self._tape = Tape(moves, results, finishes)
        return made


Known = dict[str, Relaunch]
"""What is known of a plan's files, by their texts, for all layouts."""


class Recording:
    """The launches of one file: made by its launcher at first, repeated later.

    ``known``: the file's launches for other layouts; the launcher is not run where they suffice.
    ``of`` is the name of the plan.
    """

    ran_launcher = False
    _launches: Sequence[Launch] = ()
    _made: Sequence[Made] = ()
    _results: Sequence[int] = ()
    _compilations: Sequence[Compilation] = ()
    _learned: Sequence[Tensor] = ()

    def __init__(
        self,
        file: File,
        sizes: Sizes,
        gpu: Gpu,
        checks: FirstChecks | None = None,
        known: Relaunch | None = None,
        *,
        of: str = "",
    ) -> None:
        self._of = of
        self.reads, self.writes = file.reads, file.writes
        self._file, self._sizes = file, sizes
        self._gpu, self._checks, self._relaunch = gpu, checks, known
        self._empty = gpu.empty

    @property
    def assemblers(self) -> tuple[str, ...]:
        """What made the machine code of its kernels."""
        return tuple(dict.fromkeys(made.assembler for made in self._compilations if made.assembler))

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know about that."""
        return tuple(dict.fromkeys(note for made in self._compilations for note in made.notes))

    def poison(self, poisons: bool) -> None:
        """Whether what is allocated is full of what kernels do not write."""
        self._empty = self._gpu.poisoned if poisons else self._gpu.empty

    def play(self, tensors: list[Tensor]) -> list[Tensor]:
        """The file's outputs for its inputs."""
        gpu = self._gpu
        if gpu.elsewhere():
            with gpu.current():
                return self._repeat(tensors)
        return self._repeat(tensors)

    def _repeat(self, tensors: list[Tensor]) -> list[Tensor]:
        empty = self._empty
        for shape, steps, dtype in self._made:
            tensors.append(empty(shape, steps, dtype))
        starts = [array.data_ptr() for array in tensors]
        stream = self._gpu.stream()
        for launch in self._launches:
            launch.start(
                launch.grid, 1, 1, stream, launch.function, launch.metadata, None, None, None,
                *[starts[number] for number in launch.arrays], *launch.rest,
            )  # fmt: skip
        return [tensors[number] for number in self._results]

    def first(self, tensors: list[Tensor]) -> list[Tensor]:
        """The file's outputs, for the first time with this layout. Raises Refused where Triton
        does not compile it.
        """
        known = self._relaunch
        laid = known.laid(tensors, self._sizes) if known else None
        if known is None or laid is None:
            return self._by_launcher(tensors)
        self._made, self._launches, self._results = laid.made, laid.launches, known.results
        return self.play([*tensors])

    def learn(self, known: Known) -> None:
        """Enter into ``known`` what its launcher started, if it ran."""
        tensors, self._learned = self._learned, ()
        text = self._file.text
        if tensors:
            if text not in known:
                known[text] = Relaunch(load_module(text), self._gpu.dtype)
            known[text].learn(self._launches, tensors, self._sizes)

    def _by_launcher(self, tensors: list[Tensor]) -> list[Tensor]:
        """The file's outputs, by its own launcher, which is recorded."""
        if self._checks:
            self._checks.expect_no_capture(self._of)
        aliases = [tensor.detach() for tensor in tensors]  # no two are the same object
        module = load_module(self._file.text)
        try:
            recorder = Recorder(module)
            if self._checks:
                dry = Recorder(module, launches=False)
                dry.launch(aliases, self._sizes)
                self._checks.admit(self._file, dry.noted, aliases, self._sizes)
                recorder = Recorder(module, earlier=dry.noted, poisons=True)
            results = recorder.launch(aliases, self._sizes)
        except Refusal as refusal:
            raise Refused((self._file,), str(refusal)) from refusal
        except ValueError as error:
            name = self._file.writes[0]
            raise LaunchError(message(str(error), origin=f"launching {name}")) from error
        arrays = [*aliases, *recorder.made]
        self._made = [(tuple(m.shape), m.stride(), m.dtype) for m in recorder.made]
        self._results = [next(i for i, a in enumerate(arrays) if a is r) for r in results]
        self._launches = [_as_launch(noted, arrays) for noted in recorder.noted]
        self._compilations = [noted.made for noted in recorder.noted]
        self._learned, self.ran_launcher = aliases, True
        return results


def _as_launch(noted: Noted, arrays: Sequence[Tensor]) -> Launch:
    """The start of a compiled kernel, with the arrays whose addresses it takes."""
    pointers = [argument for argument in noted.arguments if hasattr(argument, "data_ptr")]
    numbers = [_behind(pointer, arrays) for pointer in pointers]
    for pointer, number in zip(pointers, numbers, strict=True):
        assert pointer.data_ptr() == arrays[number].data_ptr(), "a view begins where its array does"
    others = noted.arguments[len(pointers) :]
    assert not any(hasattr(argument, "data_ptr") for argument in others), "arrays come first"
    rest = noted.names[len(noted.arguments) :]
    compiled, (grid, *more) = noted.made.compiled, noted.grid
    assert all(size == 1 for size in more), "the grids of emitted kernels have one axis"
    return Launch(
        compiled.run,
        grid,
        compiled.function,
        compiled.packed_metadata,
        numbers,
        (*others, *(noted.options[name] for name in rest)),
    )


def _behind(argument: Tensor, arrays: Sequence[Tensor]) -> int:
    """The array that a kernel's argument is, or is a view of: truth values enter as bytes."""
    for position, array in enumerate(arrays):
        if array is argument:
            return position
    memory = argument.untyped_storage().data_ptr()
    return next(i for i, a in enumerate(arrays) if a.untyped_storage().data_ptr() == memory)


class DeviceCall:
    """A function of whole arrays, called with tensors if it takes them, else through the host."""

    ran_launcher = False

    def __init__(self, call: Call, sizes: Sizes, dtypes: Sequence[Any]) -> None:
        self.reads = tuple(dict.fromkeys(seen.array for seen in call.operands))
        self.writes = call.writes
        self.note = ""
        self._call, self._sizes, self._dtypes = call, sizes, dtypes

    def first(self, tensors: list[Tensor]) -> list[Tensor]:
        """The function's results; notes whether it takes tensors."""
        operands = self._operands(tensors)
        return self._laid_out(self._tried(operands), operands)

    def play(self, tensors: list[Tensor]) -> list[Tensor]:
        """The function's results, laid out as later kernels were recorded with."""
        operands = self._operands(tensors)
        results = self._on_host(operands) if self.note else self._on_device(operands)
        return self._laid_out(results, operands)

    def _operands(self, tensors: list[Tensor]) -> list[Tensor]:
        known = dict(zip(self.reads, tensors, strict=True))
        return [shown(known[seen.array], seen) for seen in self._call.operands]

    def _tried(self, operands: list[Tensor]) -> list[Tensor]:
        try:
            return self._on_device(operands)
        except NOT_TAKEN as refusal:
            name = self._call.name
            reason = shown_lines(str(refusal) or type(refusal).__name__)[0]
            self.note = f"{name} runs on the host, with copies there and back: {reason}"
            try:
                return self._on_host(operands)
            except NOT_TAKEN as error:
                error.add_note(f"{name} was tried with tensors first: {reason}")
                raise

    def _on_device(self, operands: list[Tensor]) -> list[Tensor]:
        made = noted(self._call, self._call.fn, operands)
        results = list(made) if isinstance(made, tuple) else [made]
        for result in results:
            if not hasattr(result, "data_ptr") or result.device != operands[0].device:
                raise TypeError(f"{self._call.name} gave a {type(result).__name__}, not a tensor")
        check_results(self._call, results, self._sizes)
        return results

    def _on_host(self, operands: list[Tensor]) -> list[Tensor]:
        arrays = [to_host(tensor) for tensor in operands]
        made = call_on_host(self._call, arrays, self._sizes)
        pairs = zip(made, self._dtypes, strict=True)
        return [from_host(array, dtype, operands[0].device) for array, dtype in pairs]

    def _laid_out(self, results: list[Tensor], operands: list[Tensor]) -> list[Tensor]:
        used = [operand.untyped_storage().data_ptr() for operand in operands]
        pairs = zip(results, self._dtypes, strict=True)
        return [_own(result.to(dtype).contiguous(), used) for result, dtype in pairs]


def _own(result: Tensor, used: list[int]) -> Tensor:
    """An aligned tensor whose memory is none of ``used``."""
    shared = result.untyped_storage().data_ptr() in used
    return result.clone() if shared or result.data_ptr() % ALIGNED else result
