"""The whole path: from a function or an array program to something that runs.

``jit`` traces when it is called, ``compile`` works ahead of time. Both fuse, choose, emit and give
a ``Compiled``: kernels in order, with functions of whole arrays between them. This is where the
packages meet.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, overload

from blockbuster.emit.choice import CPU
from blockbuster.emit.dtypes import dtype_of
from blockbuster.emit.launch import Gpu, from_host, new_like, register, to_host
from blockbuster.emit.machines import known_machine, target_for
from blockbuster.emit.plan import Family, Plan, run_on_host
from blockbuster.emit.replay import Replay
from blockbuster.emit.report import Report, not_one_kernel, report
from blockbuster.emit.saved import read_plan, write_plan
from blockbuster.emit.tensors import Arrays, described, in_common
from blockbuster.errors import FusionError, LaunchError, message
from blockbuster.frontend import ArrayProgram, lower
from blockbuster.frontend.arguments import (
    Leaf,
    Shape,
    leaves,
    shape_again,
    shape_from_names,
    static_key,
    trace_call,
)
from blockbuster.ir.graph import Value
from blockbuster.ir.lengths import completed

KEPT = 1024  # layouts of arguments that a function remembers

Run = Callable[[Sequence[Any]], list[Any]]


class Compiled:
    """A program for one dtype, one target and one class of sizes; call it with its arrays.

    Arrays come in order or by name. The result is shaped as the function returned it.
    """

    def __init__(self, plan: Plan, shape: Shape, *, mixed: bool = False) -> None:
        self.plan = plan
        self._shape = shape
        self._mixed = mixed
        self._runs: dict[Any, Run] = {}
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        plan = self.plan
        return f"<{plan.name} for {plan.target}, {plan.dtype}: {plan.kernels} kernels>"

    @property
    def source(self) -> str:
        """The text of what runs: one module for each emitted file."""
        return self.plan.source

    @property
    def report(self) -> Report:
        """What fused, how many kernels there are, and what else runs."""
        notes = [note for run in self._runs.values() for note in getattr(run, "notes", ())]
        return report(self.plan, tuple(dict.fromkeys(notes)))

    def __call__(self, *arrays: Any, **named: Any) -> Any:
        """The results for the program's inputs."""
        values = arrays if not named and len(arrays) == len(self.plan.inputs) else None
        return self.shaped(self.run(values or self._in_order(arrays, named)))

    def run(self, arrays: Sequence[Any]) -> list[Any]:
        """The outputs in order, for the inputs in order."""
        try:
            key = tuple(map(described, arrays))
        except RuntimeError:  # a tensor without strides or memory: say which
            in_common(dict(zip(self.plan.inputs, arrays, strict=True)))
            raise
        return (self._runs.get(key) or self.prepared(key, arrays))(arrays)

    def shaped(self, results: list[Any]) -> Any:
        """Outputs in order, put together as the function returned them."""
        return self._shape.make(results)

    def prepared(self, key: Any, arrays: Sequence[Any]) -> Run:
        """What runs for arrays of this layout. Raises LaunchError where they do not fit."""
        with self._lock:
            if key not in self._runs:
                found = in_common(dict(zip(self.plan.inputs, arrays, strict=True)))
                _keep(self._runs, key, self._runner(found))
            return self._runs[key]

    def _in_order(self, arrays: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
        inputs = self.plan.inputs
        given = {**dict(zip(inputs, arrays, strict=False)), **named}
        if len(given) != len(arrays) + len(named) or given.keys() != inputs.keys():
            raise TypeError(f"{self.plan.name} takes the arrays {', '.join(inputs)}, each once")
        return [given[name] for name in inputs]

    def _runner(self, arrays: Arrays) -> Run:
        plan = self.plan
        for name in arrays.shapes:
            dtype = arrays.others.get(name, arrays.dtype)
            if dtype != plan.dtype and not self._mixed:
                raise LaunchError(f"{name} holds {dtype}, expected {plan.dtype}")
        sizes = plan.checked(plan.bind(arrays.shapes))
        if (plan.target == CPU) is arrays.on_gpu:
            place = "on a GPU" if arrays.on_gpu else "on the CPU"
            raise LaunchError(
                message(
                    f"{plan.name} is compiled for {plan.target}, the arrays are {place}",
                    hint="move them, or compile for the machine where they are",
                )
            )
        if arrays.on_gpu:
            return Replay(plan, sizes, Gpu(arrays.device.index))
        return functools.partial(_on_host, plan, sizes, arrays.device is not None)

    def save(self, path: str | Path) -> Path:
        """Write all that is needed to run into one file, which ``load`` reads."""
        shape = {"kind": self._shape.kind, "keys": self._shape.keys}
        return write_plan(self.plan, Path(path), shape=shape)

    def as_custom_op(self, name: str) -> Any:
        """A ``torch.library`` operator ``namespace::name`` that runs this program on tensors.

        It takes the program's arrays and returns one tensor or a tuple; ``torch.compile`` and
        ``torch.export`` see the shapes of its results and do not look inside.
        """
        plan, single = self.plan, len(self.plan.results) == 1
        takes = ", ".join(f"Tensor {name}" for name in plan.inputs)
        gives = "Tensor" if single else f"({', '.join('Tensor' for _ in plan.results)})"

        def compute(*tensors: Any) -> Any:
            results = [made.contiguous() for made in self.run([t.detach() for t in tensors])]
            return results[0] if single else tuple(results)

        def fake(*tensors: Any) -> Any:
            given = zip(plan.inputs, tensors, strict=True)
            shapes = plan.result_shapes(plan.bind({name: t.shape for name, t in given}))
            pairs = zip(shapes, plan.result_dtypes, strict=True)
            results = [new_like(tensors[0], shape, dtype) for shape, dtype in pairs]
            return results[0] if single else tuple(results)

        return register(name, f"({takes}) -> {gives}", compute, fake)


def _on_host(plan: Plan, sizes: Any, as_tensors: bool, arrays: Sequence[Any]) -> list[Any]:
    """A plan for the CPU on NumPy arrays, or on tensors whose memory it reads where it lies."""
    host = [to_host(array) for array in arrays] if as_tensors else arrays
    results = run_on_host(plan, dict(zip(plan.inputs, host, strict=True)), sizes)
    if not as_tensors:
        return results
    return [from_host(r, dtype) for r, dtype in zip(results, plan.result_dtypes, strict=True)]


def _keep(memory: dict[Any, Any], key: Any, value: Any) -> None:
    """Remember a value; the oldest goes where there are many."""
    if len(memory) >= KEPT:
        del memory[next(iter(memory))]
    memory[key] = value


@dataclass(frozen=True)
class _Traced:
    """A function traced for fixed arguments, and what it was compiled to."""

    family: Family
    shape: Shape
    compiled: dict[int, Compiled] = field(default_factory=dict)


class _Ready:
    """What a call with known arguments runs: where its arrays are, and what takes them."""

    def __init__(self, compiled: Compiled, run: Run, arrays: Sequence[Leaf]) -> None:
        self._run, self._shaped = run, compiled.shaped
        self._leaves = [leaf.kept() for leaf in arrays]
        self._all = [leaf.place for leaf in arrays] == list(range(len(arrays)))

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self._all and len(args) == len(self._leaves):
            return self._shaped(self._run(args))
        arrays = []
        for leaf in self._leaves:
            if leaf.place is None:
                arrays.append(leaf.value)
            else:
                arrays.append(
                    args[leaf.place] if isinstance(leaf.place, int) else kwargs[leaf.place]
                )
        return self._shaped(self._run(arrays))


class Jitted:
    """A function that is traced, fused and compiled when it is called; see ``jit``."""

    def __init__(self, fn: Callable[..., Any], *, one_kernel: bool, machine: str) -> None:
        functools.update_wrapper(self, fn)
        self._fn = fn
        self._one_kernel = one_kernel
        self._machine = machine
        self._ready: dict[Any, _Ready] = {}
        self._traced: dict[Any, _Traced] = {}
        self._lock = threading.RLock()

    def __repr__(self) -> str:
        return f"<jit of {getattr(self._fn, '__name__', 'a function')}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the function returns for these arguments."""
        try:
            key = (tuple(map(described, args)), *((k, described(v)) for k, v in kwargs.items()))
            ready = self._ready.get(key)
        except (TypeError, RuntimeError):  # no hash, or no strides: say which argument
            found = leaves(self._fn, args, kwargs)
            in_common({leaf.name: leaf.value for leaf in found if leaf.is_array})
            raise
        return (ready or self._prepare(key, args, kwargs))(args, kwargs)

    def compiled_for(self, *args: Any, **kwargs: Any) -> Compiled:
        """What a call with these arguments would run; nothing is run."""
        return self._compiled(leaves(self._fn, args, kwargs))

    def plan_for(self, *args: Any, **kwargs: Any) -> Plan:
        """The kernels, and what runs between them, for these arguments."""
        return self.compiled_for(*args, **kwargs).plan

    def source_for(self, *args: Any, **kwargs: Any) -> str:
        """The emitted text for these arguments."""
        return self.compiled_for(*args, **kwargs).source

    def report_for(self, *args: Any, **kwargs: Any) -> Report:
        """What fused for these arguments, how many kernels there are, and what else runs."""
        return self.compiled_for(*args, **kwargs).report

    def _prepare(self, key: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Ready:
        found = leaves(self._fn, args, kwargs)
        compiled = self._compiled(found)
        arrays = tuple(leaf for leaf in found if leaf.is_array)
        values = [leaf.value for leaf in arrays]
        run = compiled.prepared(tuple(map(described, values)), values)
        ready = _Ready(compiled, run, arrays)
        with self._lock:
            _keep(self._ready, key, ready)
        return ready

    def _compiled(self, found: Sequence[Leaf]) -> Compiled:
        arrays = in_common({leaf.name: leaf.value for leaf in found if leaf.is_array})
        target = target_for(self._machine, arrays)
        units = tuple(tuple(n == 1 for n in shape) for shape in arrays.shapes.values())
        dtypes = (arrays.dtype, *arrays.others.items())
        key = (static_key(found), tuple(arrays.shapes), units, dtypes, target)
        with self._lock:
            if key not in self._traced:
                self._traced[key] = self._trace(found, arrays, target)
            traced = self._traced[key]
            try:
                sizes = traced.family.bind(arrays.shapes)
            except LaunchError:
                self._trace(found, arrays, target)  # raises with the line that disagrees
                raise
            plan = traced.family.at(sizes, one_kernel=self._one_kernel)
            if self._one_kernel and (plan.kernels > 1 or plan.calls):
                raise FusionError(not_one_kernel(plan))
            new = Compiled(plan, traced.shape, mixed=bool(arrays.others))
            return traced.compiled.setdefault(id(plan), new)

    def _trace(self, found: Sequence[Leaf], arrays: Arrays, target: str) -> _Traced:
        program, shape = trace_call(self._fn, found)
        return _Traced(_family(program, arrays.dtype, target, arrays.others), shape)


@overload
def jit(fn: Callable[..., Any], /) -> Jitted: ...
@overload
def jit(
    *, one_kernel: bool = False, tune: str = "model", machine: str = "auto"
) -> Callable[[Callable[..., Any]], Jitted]: ...
def jit(
    fn: Callable[..., Any] | None = None,
    /,
    *,
    one_kernel: bool = False,
    tune: str = "model",
    machine: str = "auto",
) -> Any:
    """``fn`` compiled when it is called: NumPy on the CPU, Triton for CUDA tensors.

    Arrays may have any shapes and strides; what was compiled is reused for sizes that the same
    kernels serve. All other arguments are fixed: another value is another program, and so are
    globals that ``fn`` reads. Results have the inputs' common dtype (float32 where float16 and
    float32 meet) unless cast; arithmetic is float32, or float64 for float64 arrays on the CPU.

    ``one_kernel`` raises FusionError, with the reasons, where the result would be several.
    ``machine`` names what is compiled for; "auto" is where the arrays are. ``tune`` is "model".
    """
    if tune != "model":
        known = "tune='measure' comes with the tuner" if tune == "measure" else f"{tune!r} is none"
        raise ValueError(message(f"{known}: only tune='model' is there yet"))
    known_machine(machine)
    if fn is None:
        return functools.partial(jit, one_kernel=one_kernel, machine=machine)
    return Jitted(fn, one_kernel=one_kernel, machine=machine)


def compile(
    program: ArrayProgram,
    sizes: Mapping[str, int],
    dtype: str = "float16",
    machine: str = "auto",
) -> Compiled:
    """An array program compiled ahead of time, for sizes of the class of ``sizes``.

    ``machine`` is "cpu", a GPU's name or architecture; "auto" is the GPU if there is one. Raises
    ValueError for unknown or missing dims, dtypes and machines.
    """
    target = target_for(machine)
    if target != CPU or dtype != "float64":
        dtype_of(dtype)
    bound = completed({**program.sizes, **sizes}, program.rules)
    wrong = [d for d in bound if d not in program.dims] or [
        d for d in program.dims if d not in bound
    ]
    if wrong or any(bound[d] != n for d, n in program.sizes.items()):
        what = f"sizes and dims differ in {', '.join(wrong)}" if wrong else "a fixed size differs"
        raise ValueError(message(what, value=dict(sizes), hint=f"dims: {', '.join(program.dims)}"))
    plan = _family(program, dtype, target).at(bound)
    return Compiled(plan, shape_from_names([output.name for output in program.outputs]))


def load(path: str | Path) -> Compiled:
    """What ``Compiled.save`` wrote. Running it runs code from the file, as an import does.

    Raises LaunchError for a damaged file.
    """
    plan, shape = read_plan(Path(path))
    return Compiled(plan, shape_again(shape["kind"], shape["keys"]))


def _family(
    program: ArrayProgram, dtype: str, target: str, others: Mapping[str, str] | None = None
) -> Family:
    inputs = {
        given.name: tuple(axis if isinstance(axis, str) else None for axis in given.shape)
        for given in program.inputs
    }
    dtypes = tuple(_cast_to(program, output.value) for output in program.outputs)
    graph = lower(program)
    return Family(
        graph,
        inputs,
        name=program.name,
        dtype=dtype,
        target=target,
        dtypes=dtypes,
        input_dtypes=others or {},
        rules=program.rules,
    )


def _cast_to(program: ArrayProgram, value: Value) -> str:
    """The dtype that an output is cast to last of all, or an empty string."""
    while value.node >= 0:
        equation = program.equations[value.node]
        if equation.op == "cast":
            return str(equation.param("dtype"))
        if equation.op not in ("transpose", "expand"):
            break
        operand = equation.operands[0]
        assert isinstance(operand, Value)
        value = operand
    return ""
