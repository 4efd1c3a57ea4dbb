"""Compiled programs: a plan that runs for arrays of any layout that fits it."""

from __future__ import annotations

import functools
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from blockbuster.emit.target.gpu import Gpu
from blockbuster.errors import LaunchError, message
from blockbuster.frontend.arguments import Shape
from blockbuster.frontend.copies import (
    CopyJoin,
    CopyMerge,
    CopyReshape,
    CopySlice,
    CopySplit,
    CopyWindows,
)
from blockbuster.frontend.library_calls import (
    LibraryAttention,
    LibraryConvolution,
    LibraryProduct,
    LibraryScaled,
)
from blockbuster.frontend.lower import WholeArrays
from blockbuster.frontend.moves import Flip, Ranked, Scattered, Take
from blockbuster.frontend.program import ArrayProgram
from blockbuster.frontend.protocols import AlongAxis, Product
from blockbuster.frontend.recurrent import Recurrent
from blockbuster.frontend.resampled import Resampled
from blockbuster.frontend.saved_program import program_to_json
from blockbuster.ir.lengths import completed
from blockbuster.runtime.first_launch import Compare, Refused
from blockbuster.runtime.graphs import Graphed
from blockbuster.runtime.launch import from_host, new_like, register, to_host
from blockbuster.runtime.merged_arrays import Regrouping, Viewed
from blockbuster.runtime.replay import OnGpu, Replay
from blockbuster.runtime.run_plan import OnHost, settled
from blockbuster.runtime.saved import Contents, write_plan
from blockbuster.runtime.tensors import Arrays, described, in_common, is_tensor
from blockbuster.selection.candidates.candidate import CPU
from blockbuster.selection.plans.plan import Plan, Sizes
from blockbuster.selection.plans.report import Report, report

KEPT = 1024  # layouts of arguments that a function or a program remembers

SAVED = {
    kind.__name__: kind
    for kind in (
        AlongAxis,
        CopyJoin,
        CopyMerge,
        CopyReshape,
        CopySlice,
        CopySplit,
        CopyWindows,
        Flip,
        LibraryAttention,
        LibraryConvolution,
        LibraryProduct,
        LibraryScaled,
        Product,
        Ranked,
        Recurrent,
        Resampled,
        Scattered,
        Take,
        WholeArrays,
    )
}
"""The callable objects of ours that a saved program may hold, and no others."""

Run = Callable[[Sequence[Any]], list[Any]]
Instead = Callable[[Plan, Refused, Sizes], Plan]


class Compiled:
    """A program for one dtype, one target and one class of sizes; call it with its arrays.

    Arrays are given in order or by name. The result has the structure that the function returned.
    ``plan`` is run; if Triton cannot compile one of its files, ``instead`` returns the next best
    plan for the given sizes. ``compare`` judges the first results of new kernels; without it they
    are returned unchecked. ``program`` is the array program that the plan computes, which is saved
    with it; ``said`` is for the report. ``shaped`` puts the outputs together as the function
    returned them. ``graph``: calls after the first with tensors of a layout are CUDA graphs
    (graphs.py). ``file``: where the plan was read from, if it was. ``regrouping``: the plan is for
    merged axes of the arrays (merged_arrays.py); it is not saved, the original program is.
    """

    def __init__(
        self,
        plan: Plan,
        shape: Shape,
        *,
        instead: Instead | None = None,
        compare: Compare | None = None,
        program: ArrayProgram | None = None,
        said: tuple[str, ...] = (),
        graph: bool = False,
        file: str = "",
        regrouping: Regrouping | None = None,
    ) -> None:
        self.plan = plan
        self.shaped = shape.make
        self._shape = shape
        self._instead = instead
        self._compare = compare
        self._program, self._said = program, said
        self._graph = graph
        self._file = file
        self._regrouping = regrouping
        self._runs: dict[Any, Run] = {}
        self._gpus: dict[int, OnGpu] = {}
        self._lock = threading.RLock()

    def __repr__(self) -> str:
        plan = self.plan
        return f"<{plan.name} for {plan.target}, {plan.dtype}: {plan.kernels} kernels>"

    @property
    def source(self) -> str:
        """The text that runs: one module for each emitted file, and one for equal files."""
        return self.plan.source

    @property
    def report(self) -> Report:
        """The report: what fused, how many kernels there are, and which other functions run."""
        return self.report_with()

    def report_with(self, *said: str, sizes: Sizes | None = None) -> Report:
        """The report with more notes, for other sizes than those for which the plan was made."""
        notes = [note for run in self._runs.values() for note in getattr(run, "notes", ())]
        made = [name for run in self._runs.values() for name in getattr(run, "assemblers", ())]
        masks = self._program.masks if self._program is not None else ()
        notes = [*said, *self._said, *masks, *notes]
        return report(self.plan, tuple(dict.fromkeys(notes)), tuple(dict.fromkeys(made)), sizes)

    def __call__(self, *arrays: Any, **named: Any) -> Any:
        """The results for the program's inputs."""
        if named or len(arrays) != len(self.plan.inputs):
            return self.shaped(self.run(self._in_order(arrays, named)))
        return self.shaped(self.run(arrays))

    def run(self, arrays: Sequence[Any]) -> list[Any]:
        """The outputs in order, for the inputs in order."""
        try:
            key = tuple([described(array) for array in arrays])
        except RuntimeError:  # a tensor without strides or memory: say which
            in_common(dict(zip(self.plan.inputs, arrays, strict=True)))
            raise
        run = self._runs.get(key)
        if run is None:
            return self.prepared(key, arrays)[1]
        if not self._file:
            return run(arrays)
        with Contents(self._file):
            return run(arrays)

    def prepared(self, key: Any, arrays: Sequence[Any]) -> tuple[Run, list[Any]]:
        """The runner for arrays of this layout, and its result for these arrays.

        Raises LaunchError if they do not fit, EmitError if Triton compiles no plan.
        """
        with self._lock:
            known = self._runs.get(key)
            if known is not None:
                return known, known(arrays)
            found = in_common(dict(zip(self.plan.inputs, arrays, strict=True)))
            self._check(found)
            bind = self._regrouping.bind if self._regrouping else self.plan.bind
            return self.sized(key, arrays, bind(found.shapes))

    def sized(self, key: Any, arrays: Sequence[Any], sizes: Sizes) -> tuple[Run, list[Any]]:
        """The same program for a new layout of these sizes, which is known to fit.

        If the plan has merged axes, the sizes are those of the original program.
        """
        regrouping = self._regrouping
        with self._lock:
            extents = regrouping.extents(arrays) if regrouping else None
            if regrouping is None:
                run, results = self._begun(arrays, sizes)
            elif extents is None:
                run, results = regrouping.otherwise(sizes).prepared(key, arrays)
            else:
                pairs = zip(arrays, extents, strict=True)  # constants stay the very same tensors
                viewed = [a if a.shape == e else a.reshape(e) for a, e in pairs]
                shapes = dict(zip(self.plan.inputs, extents, strict=True))
                inner, results = self._begun(viewed, self.plan.bind(shapes))
                run = regrouping.viewed(inner, arrays, extents, sizes)
                results = run.returned(results)
            keep(self._runs, key, run)
            return run, results

    def _begun(self, arrays: Sequence[Any], sizes: Sizes) -> tuple[Run, list[Any]]:
        """A runner for arrays of a new layout, as the plan takes them, and its first results."""
        device = arrays[0].device if is_tensor(arrays[0]) else None
        while True:
            try:
                with Contents(self._file) if self._file else nullcontext():
                    run = self._runner(sizes, device)
                    results = run(arrays)
            except Refused as refused:
                if self._instead is None:
                    raise
                if refused.wrong:
                    warnings.warn(_warning(self.plan, refused), RuntimeWarning, stacklevel=4)
                self.plan = self._instead(self.plan, refused, sizes)
                self._runs, self._gpus = {}, {}
            else:
                return settled(self._graphed(run), arrays), results

    def shapes_taken(self, arrays: Sequence[Any]) -> dict[str, tuple[int, ...]]:
        """The shapes in which the plan takes arrays, by name; they may have merged axes."""
        extents = self._regrouping.extents(arrays) if self._regrouping else None
        shapes = extents or [tuple(array.shape) for array in arrays]
        return dict(zip(self.plan.inputs, shapes, strict=True))

    def pinned(self, *arrays: Any) -> Callable[[], Any]:
        """A call for these very tensors, with what is kept of their constants now.

        For CUDA graphs of the caller's, which would otherwise compute it in each replay: nobody
        sees there that a constant has changed. On the CPU it is a call like any other.
        """
        self.run(arrays)  # it is compiled, and checked
        run = self._runs[tuple([described(array) for array in arrays])]
        if isinstance(run, Viewed):
            pinned: Run = run.by(_pinned(run.run, run.viewed(arrays)))
        else:
            pinned = _pinned(run, arrays)
        return lambda: self.shaped(pinned(arrays))

    def clear_constants(self) -> None:
        """Forget what was computed of constants: the next calls compute it anew.

        For changes that torch does not count: through ``tensor.data``, or by another library.
        """
        with self._lock:
            for on_gpu in self._gpus.values():
                on_gpu.kept.clear()
            for run in self._runs.values():
                inner = run.run if isinstance(run, Viewed) else run
                if isinstance(inner, Graphed):
                    inner.clear()

    def _in_order(self, arrays: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
        inputs = self.plan.inputs
        given = {**dict(zip(inputs, arrays, strict=False)), **named}
        once = len(given) == len(arrays) + len(named)
        given = {**(self._program.held if self._program else {}), **given}
        if not once or given.keys() != inputs.keys():
            raise TypeError(f"{self.plan.name} takes the arrays {', '.join(inputs)}, each once")
        return [given[name] for name in inputs]

    def _check(self, arrays: Arrays) -> None:
        """Raise LaunchError for arrays of other dtypes, or in another place."""
        plan = self.plan
        for name in arrays.shapes:
            dtype = arrays.others.get(name, arrays.dtype)
            expected = plan.input_dtypes.get(name, plan.dtype)
            if dtype != expected:
                raise LaunchError(f"{name} holds {dtype}, expected {expected}")
        if (plan.target == CPU) is arrays.on_gpu:
            place = "on a GPU" if arrays.on_gpu else "on the CPU"
            raise LaunchError(
                message(
                    f"{plan.name} is compiled for {plan.target}, the arrays are {place}",
                    hint="move them, or compile for the machine where they are",
                )
            )

    def _runner(self, sizes: Sizes, device: Any) -> Run:
        plan = self.plan
        if len(sizes) < len(plan.sizes):  # parts have dims of their own
            sizes = completed(sizes, plan.rules)
        if plan.target == CPU:
            known = sizes if all(sizes.values()) else plan.checked(sizes)
            on_host = OnHost(plan, known)
            return on_host if device is None else functools.partial(_on_tensors, plan, on_host)
        on_gpu = self._gpus.get(device.index)
        if on_gpu is None:
            on_gpu = self._gpus[device.index] = OnGpu(
                plan, Gpu(device.index), self._compare, self._instead is not None
            )
        return Replay(on_gpu, sizes)

    def _graphed(self, run: Run) -> Run:
        """``run``, which ran, as graphs from now on, if that is asked for."""
        if not self._graph:
            return run
        if not isinstance(run, Replay):
            hint = "pass tensors on a GPU, or leave out graph=True"
            what = f"graph=True needs a GPU, and {self.plan.name} runs on the CPU"
            raise LaunchError(message(what, hint=hint))
        return Graphed(run, run.gpu)

    def save(self, path: str | Path) -> Path:
        """Write the program to one file, complete enough to run and check it; ``load`` reads the
        file.

        A nested result is read back as a dict under its outputs' names, without constants. Raises
        ValueError for a function of whole arrays that cannot be imported by its name.
        """
        if self._regrouping:
            return self._regrouping.original.save(path)
        kind = "dict" if self._shape.kind == "nested" else self._shape.kind
        shape = {"kind": kind, "keys": self._shape.keys}
        return write_plan(
            self.plan, Path(path), SAVED, shape=shape, program=_as_json(self._program)
        )

    def as_custom_op(self, name: str) -> Any:
        """A ``torch.library`` operator ``namespace::name`` that runs this program on tensors.

        It takes the program's arrays and returns one tensor or a tuple; ``torch.compile`` and
        ``torch.export`` see the shapes of its results and do not look inside. Raises ValueError
        for a name of another form.
        """
        words = name.split("::")
        if len(words) != 2 or not all(word.isidentifier() for word in words):
            hint = 'give a namespace and a name: "mine::attention"'
            raise ValueError(message(f"{name!r} names no operator of torch", hint=hint))
        if self._regrouping:
            return self._regrouping.original.as_custom_op(name)
        plan, single = self.plan, len(self.plan.results) == 1
        takes = ", ".join(f"Tensor {name}" for name in plan.inputs)
        gives = "Tensor" if single else f"({', '.join('Tensor' for _ in plan.results)})"

        def compute(*tensors: Any) -> Any:
            made = self.run([t.detach() for t in tensors])
            # what a graph writes is overwritten by its next replay, and torch knows nothing of that
            results = [one.clone() if self._graph else one.contiguous() for one in made]
            return results[0] if single else tuple(results)

        def fake(*tensors: Any) -> Any:
            given = zip(plan.inputs, tensors, strict=True)
            shapes = plan.result_shapes(plan.bind({name: t.shape for name, t in given}))
            pairs = zip(shapes, plan.result_dtypes, strict=True)
            results = [new_like(tensors[0], shape, dtype) for shape, dtype in pairs]
            return results[0] if single else tuple(results)

        return register(name, f"({takes}) -> {gives}", compute, fake)


def _pinned(run: Run, arrays: Sequence[Any]) -> Run:
    """A runner with what is kept of the constants among these arrays now, and without graphs."""
    replay = run.replay if isinstance(run, Graphed) else run
    return replay.pinned(arrays)[0] if isinstance(replay, Replay) else replay


def _on_tensors(plan: Plan, run: Run, tensors: Sequence[Any]) -> list[Any]:
    """The outputs for tensors, whose memory is read where it lies."""
    results = run([to_host(tensor) for tensor in tensors])
    dtypes = plan.result_dtypes
    return [from_host(r, dtype) for r, dtype in zip(results, dtypes, strict=True)]


def _as_json(program: ArrayProgram | None) -> dict[str, Any] | None:
    """A program as it is saved; None for one that has no form in a file.

    It may hold a function that no result needs, so the plan does not, and that has no name.
    """
    try:
        return None if program is None else program_to_json(program, SAVED)
    except ValueError:
        return None  # ``load`` says in its report that nothing can be compared


def _warning(plan: Plan, refused: Refused) -> str:
    """What to say of a kernel that was compiled and gives wrong results."""
    shown = f"; {refused.evidence} reproduces it" if refused.evidence else ""
    names = ", ".join(name for file in refused.files for name in file.writes)
    what = f"{plan.name}: a kernel for {names} is not used, the next choice is"
    return f"{what}: {refused.reason}{shown}"


def keep(memory: dict[Any, Any], key: Any, value: Any) -> None:
    """Remember a value; the oldest goes where there are many."""
    memory[key] = value
    if len(memory) > KEPT:
        del memory[next(iter(memory))]
