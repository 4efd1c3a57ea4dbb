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

from blockbuster.compiled import Compiled, Run, keep
from blockbuster.emit.choice import CPU
from blockbuster.emit.dtypes import dtype_of
from blockbuster.emit.machines import known_machine, target_for
from blockbuster.emit.plan import Family, Plan, Sizes
from blockbuster.emit.replay import Refused
from blockbuster.emit.report import Report, not_one_kernel
from blockbuster.emit.saved import read_plan
from blockbuster.emit.tensors import Arrays, described, in_common
from blockbuster.errors import FusionError, LaunchError, message
from blockbuster.frontend import ArrayProgram, lower
from blockbuster.frontend.arguments import (
    Leaf,
    Shape,
    leaves,
    shape_again,
    shape_from_names,
    static,
    static_key,
    trace_call,
)
from blockbuster.frontend.program import check_program
from blockbuster.ir.lengths import completed

Ready = Callable[[tuple[Any, ...], dict[str, Any]], Any]


@dataclass(frozen=True)
class _Traced:
    """A function traced for fixed arguments, and what it was compiled to."""

    family: Family
    shape: Shape
    compiled: list[Compiled] = field(default_factory=list)


def _ready(run: Run, make: Callable[[list[Any]], Any], arrays: Sequence[Leaf], given: int) -> Ready:
    """What a call with known arguments, ``given`` of them positional, runs."""
    places = [leaf.place for leaf in arrays]
    if places == list(range(given)):
        return lambda args, kwargs: make(run(args))

    def by_place(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        found = []
        for leaf, place in zip(arrays, places, strict=True):
            if place is None:
                found.append(leaf.value)  # a default
            else:
                found.append(args[place] if isinstance(place, int) else kwargs[place])
        return make(run(found))

    return by_place


class Jitted:
    """A function that is traced, fused and compiled when it is called; see ``jit``."""

    def __init__(self, fn: Callable[..., Any], *, one_kernel: bool, machine: str) -> None:
        functools.update_wrapper(self, fn)
        self._fn = fn
        self._one_kernel = one_kernel
        self._machine = machine
        self._ready: dict[Any, Ready] = {}
        self._traced: dict[Any, _Traced] = {}
        self._lock = threading.RLock()

    def __repr__(self) -> str:
        return f"<jit of {getattr(self._fn, '__name__', 'a function')}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the function returns for these arguments."""
        try:
            key: Any = [described(value) or static(value) for value in args]
            for name, value in kwargs.items():
                key += name, described(value) or static(value)
            key = tuple(key)
            ready = self._ready.get(key)
        except (TypeError, RuntimeError):  # no hash, or no strides: say which argument
            found = leaves(self._fn, args, kwargs)
            in_common({leaf.name: leaf.value for leaf in found if leaf.is_array})
            raise
        return ready(args, kwargs) if ready else self._first(key, args, kwargs)

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

    def _first(self, key: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call with arguments of a new kind: what it returns. It is remembered how."""
        found = leaves(self._fn, args, kwargs)
        compiled = self._compiled(found)
        arrays = [leaf for leaf in found if leaf.is_array]
        values = [leaf.value for leaf in arrays]
        run, results = compiled.prepared(tuple(map(described, values)), values)
        ready = _ready(run, compiled.shaped, [leaf.kept() for leaf in arrays], len(args))
        with self._lock:
            keep(self._ready, key, ready)
        return compiled.shaped(results)

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
            plan = self._plan(traced.family, sizes)
            for compiled in traced.compiled:
                if compiled.plan is plan:
                    return compiled
            instead = functools.partial(self._instead, traced.family)
            mixed = bool(arrays.others)
            traced.compiled.append(Compiled(plan, traced.shape, mixed=mixed, instead=instead))
            return traced.compiled[-1]

    def _plan(self, family: Family, sizes: Sizes) -> Plan:
        plan = family.at(sizes, one_kernel=self._one_kernel)
        if self._one_kernel and (plan.kernels > 1 or plan.calls):
            raise FusionError(not_one_kernel(plan))
        return plan

    def _instead(self, family: Family, plan: Plan, refused: Refused, sizes: Sizes) -> Plan:
        with self._lock:
            family.refuse(plan, refused.file, refused.reason)
            return self._plan(family, sizes)

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
    float32 meet) unless cast; arithmetic is float32, on the CPU float64 where an array is or a
    cast says so.

    ``one_kernel`` raises FusionError, with the reasons, where the result would be several.
    ``machine`` names what is compiled for; "auto" is where the arrays are. ``tune`` is "model".
    """
    if tune != "model":
        known = "tune='measure' comes with the tuner" if tune == "measure" else f"{tune!r} is none"
        raise ValueError(message(f"{known}: only tune='model' is there yet"))
    known_machine(machine)
    if fn is None:
        return functools.partial(jit, one_kernel=one_kernel, machine=machine)
    if not callable(fn):
        raise TypeError(f"bb.jit takes a function, not a {type(fn).__name__}")
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
    check_program(program)
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
    family = _family(program, dtype, target)

    def instead(plan: Plan, refused: Refused, sizes: Sizes) -> Plan:
        family.refuse(plan, refused.file, refused.reason)
        return family.at(sizes)

    shape = shape_from_names([output.name for output in program.outputs])
    return Compiled(family.at(bound), shape, instead=instead)


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
    graph = lower(program)
    return Family(
        graph,
        inputs,
        name=program.name,
        dtype=dtype,
        target=target,
        input_dtypes=others or {},
        rules=program.rules,
    )
