"""A plan: emitted files and calls of functions of whole arrays, in the order in which they run.

It is made for one dtype, one target and one class of sizes. ``run_plan.py`` runs it on the CPU,
``replay.py`` on a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from blockbuster.costs import Report, Work, cost, work, work_of
from blockbuster.costs.sizes import own_sizes
from blockbuster.emit.tile.changed import changed
from blockbuster.emit.tile.launch_spec import LaunchSpec
from blockbuster.emit.tile.other_arrays import with_arrays
from blockbuster.emit.tile.program import Buffer
from blockbuster.emit.tile.value_dtypes import result_dtype
from blockbuster.errors import LaunchError, message
from blockbuster.ir.lengths import Rule
from blockbuster.ir.sizes import bind_sizes
from blockbuster.ir.types import Dim, size_class
from blockbuster.machines import Machine
from blockbuster.machines import machine as machine_of
from blockbuster.selection.candidates.candidate import CPU
from blockbuster.selection.considered import Considered
from blockbuster.selection.plans.call_times import with_calls, without_kernels
from blockbuster.selection.plans.explanation import divided_of, explanation, lower_bound
from blockbuster.selection.plans.pieces import Axes, Call, Seen, Whole
from blockbuster.selection.plans.plan_dtypes import kept_dtypes

if TYPE_CHECKING:
    from blockbuster.view.draw import Drawing

Array = NDArray[Any]
Sizes = Mapping[Dim, int]


@dataclass(frozen=True)
class File:
    """An emitted module: kernels that run one after the other.

    ``axes`` are those of the arrays it writes. ``dims`` are all its dims but chunks, ``blocks`` the
    size classes that NumPy walks in blocks. ``launches``: what the launcher of a file for a GPU
    does. ``considered`` says why it is this snapshot; a plan that was saved has forgotten it.
    ``named``: for a module that was written for an equal part of the program, the plan's name of
    each size that the module names.
    """

    text: str = field(repr=False)
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    axes: tuple[Axes, ...]
    dims: tuple[Dim, ...]
    blocks: Mapping[Dim, int]
    kernels: int
    launches: LaunchSpec | None = field(default=None, repr=False)
    considered: Considered | None = field(default=None, compare=False, repr=False)
    named: Mapping[Dim, Dim] = field(default_factory=dict)

    @property
    def names(self) -> dict[str, str]:
        """The plan's names of the arrays of its program, which a saved plan has forgotten."""
        program = self.considered.best.program if self.considered else None
        arrays = (*program.inputs, *program.outputs) if program else ()
        names = (*self.reads, *self.writes) if program else ()
        return {one.name: name for one, name in zip(arrays, names, strict=True)}

    @property
    def works(self) -> tuple[Work, ...]:
        """The work of its kernels, which access the arrays of the plan."""
        scheduled = self.considered.best.scheduled if self.considered else None
        if scheduled is None:
            return ()
        names = {old: name for old, name in self.names.items() if old != name}
        if not names:
            return work(scheduled)

        def of(buffer: Buffer) -> Buffer:
            return changed(buffer, name=names[buffer.name]) if buffer.name in names else buffer

        program = with_arrays(scheduled.program, of)
        return work_of(program, own_sizes(program, scheduled.known), scheduled.target.name)

    def own(self, sizes: Sizes) -> Sizes:
        """The sizes that the module names, where those of the plan are ``sizes``."""
        return {dim: sizes[name] for dim, name in self.named.items()} if self.named else sizes


@dataclass(frozen=True)
class Plan:
    """The steps that run for one class of sizes. ``sizes`` are those for which it was made.

    ``inputs`` are the program's arrays with their axes (None: of extent 1); ``results`` tells where
    its outputs are. ``dtype`` is the common dtype of the inputs, ``input_dtypes`` lists the inputs
    with another dtype. ``dtypes`` are those of all arrays that steps write, and files compute in
    ``arithmetic``. ``rules`` give the sizes that no input shows. ``rounded``: arrays between
    files that are kept as eager execution would keep them.
    """

    name: str
    dtype: str
    target: str
    inputs: Mapping[str, Axes]
    sizes: Sizes
    steps: tuple[File | Call, ...]
    names: tuple[str, ...]
    results: tuple[Seen, ...]
    dtypes: Mapping[str, str]
    arithmetic: str
    notes: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    input_dtypes: Mapping[str, str] = field(default_factory=dict)
    rounded: tuple[str, ...] = ()
    divided: Any = field(default=None, compare=False, repr=False)

    @property
    def files(self) -> tuple[File, ...]:
        """The emitted modules, in order."""
        return tuple(step for step in self.steps if isinstance(step, File))

    @property
    def calls(self) -> tuple[Call, ...]:
        """The functions of whole arrays, in order."""
        return tuple(step for step in self.steps if isinstance(step, Call))

    @property
    def kernels(self) -> int:
        """How many kernels run, the functions of whole arrays not counted."""
        return sum(file.kernels for file in self.files)

    @property
    def total_us(self) -> float:
        """The predicted microseconds of its kernels, each launched by the host, and of copies.

        That is the closed form with a cold cache, the time that reports tell; ``cost`` has the time
        with other launches. The search ranks plans by it, but for kernels that hold far more memory
        than the program's arrays: those it counts twice.
        Functions of whole arrays are not counted. Raises ValueError for a plan from a file.
        """
        return sum(divided_of(self).times(self.sizes))

    @property
    def lower_bound_us(self) -> float:
        """Microseconds that no plan goes below, by the prices and bounds of the search.

        That is of plans whose parts are as large as those that were looked at: ``explain`` says how
        large. Raises ValueError as ``total_us``, and for a plan whose parts were given.
        """
        return lower_bound(self)

    @property
    def gap(self) -> float:
        """How far the plan may be above the best one, as a share of ``lower_bound_us``."""
        least = self.lower_bound_us
        return self.total_us / least - 1.0 if least > 0 else 0.0

    def explain(self) -> str:
        """Why the program became these kernels.

        For each part of the program: its operators, its arrays, its time and what limits it; for
        each array that is stored between kernels: why; then how the parts were found. Raises
        ValueError for a plan from a file.
        """
        return str(explanation(self))

    def draw(self) -> Drawing:
        """A picture of the parts, and of the arrays that go from one to another.

        Raises ValueError for a plan from a file.
        """
        from blockbuster.view.plan_picture import draw_plan

        return draw_plan(self)

    def _repr_html_(self) -> str | None:
        from blockbuster.view.notebook import plan_html

        return plan_html(self) if self.divided is not None else None

    @property
    def source(self) -> str:
        """The emitted modules, one after the other, each once."""
        return "\n\n".join(dict.fromkeys(file.text for file in self.files))

    @property
    def result_dtypes(self) -> tuple[str, ...]:
        """The dtypes of the outputs."""
        return tuple(self.dtypes[seen.array] for seen in self.results)

    @cached_property
    def kept(self) -> Mapping[str, str]:
        """The dtypes in which the arrays that steps write are kept: see ``kept_dtypes``."""
        own, common = self.input_dtypes, self.dtype
        return kept_dtypes(
            self.steps, self.dtypes, common=common, arithmetic=self.arithmetic, own=own,
            rounded=self.rounded,
        )  # fmt: skip

    def taken_as(self, step: File | Call, name: str) -> str:
        """The dtype in which a step reads an array; empty if a file takes an input as it is.

        Functions of whole arrays read the arrays that the user sees: rounded, and truth values as
        numbers. Integers are never rounded to floats.
        """
        if isinstance(step, Call) and step.only_moves:
            return self.kept[step.writes[0]]
        if isinstance(step, File):
            if name in self.rounded:
                return self.kept[name]
            return "" if name in self.inputs else result_dtype([self.kept[name]], self.arithmetic)
        own = self.input_dtypes.get(name, self.dtype)
        return result_dtype([self.dtypes.get(name, own)], self.dtype)

    def result_shapes(self, sizes: Sizes) -> tuple[tuple[int, ...], ...]:
        """The shapes of the outputs."""
        axes: dict[str, Axes] = {}
        for step in self.steps:
            axes.update(zip(step.writes, step.axes, strict=True))
        shown_as = [
            tuple(None if i is None else axes[seen.array][i] for i in seen.order)
            for seen in self.results
        ]
        return tuple(
            tuple(1 if dim is None else sizes[size_class(dim)] for dim in dims) for dims in shown_as
        )

    def cost(
        self, machine: str | Path | Machine = "h200", *, launch: str = "plain", warm: bool = False
    ) -> Report:
        """The cost of its kernels on a machine, one after the other: see ``Kernel.cost``.

        Calls of a library and copies between the kernels are counted, and named in
        ``Report.assumed``, as are a user's functions of whole arrays, which are not counted.
        """
        if self.target == CPU:
            what = "a plan for the CPU has no kernels whose cost could be told"
            raise ValueError(message(what, hint='compile for a GPU: machine="sm_90"'))
        divided_of(self)  # a plan from a file has forgotten its schedules
        device, works = machine_of(machine), [one for file in self.files for one in file.works]
        if self.calls and not works:
            found = without_kernels(device)
        else:
            found = cost(works, device, launch=launch, warm=warm)
        return with_calls(found, self, device, launch)

    def bind(self, shapes: Mapping[str, Sequence[int]]) -> dict[Dim, int]:
        """The size of every dim for arrays of these shapes; LaunchError if they disagree."""
        return bound(self.inputs, shapes, self.rules)

    def checked(self, sizes: Sizes) -> Sizes:
        """``sizes``, if NumPy text can run them: a dim that is one block must have elements.

        The launchers of kernels check sizes themselves.
        """
        for file in self.files if self.target == CPU else ():
            for dim in file.dims:
                if size_class(dim) not in file.blocks and not sizes[size_class(dim)]:
                    known = self.sizes[size_class(dim)]
                    raise LaunchError(f"{dim} is 0: {self.name} is compiled for {dim} = {known}")
        return sizes


def whole_file(step: Whole) -> File:
    """The module of a step on whole arrays."""
    return File(step.text, step.reads, step.writes, step.axes, (), {}, 1)


def bound(
    inputs: Mapping[str, Axes], shapes: Mapping[str, Sequence[int]], rules: tuple[Rule, ...]
) -> dict[Dim, int]:
    """The size of every dim, as ``inputs`` show it; LaunchError if shapes disagree."""
    try:
        return bind_sizes([*inputs.items()], shapes, rules)
    except ValueError as error:
        raise LaunchError(message(str(error))) from error


def call_on_host(call: Call, operands: Sequence[Array], sizes: Sizes) -> list[Array]:
    """The arrays that a function makes of NumPy arrays, which it cannot change."""
    views = [array.view() for array in operands]
    for view in views:
        view.flags.writeable = False
    made = noted(call, call.fn, views)
    results = [np.asarray(array) for array in (made if isinstance(made, tuple) else (made,))]
    results = with_units(call, results)
    check_results(call, results, sizes)
    shared = [any(np.may_share_memory(array, view) for view in views) for array in results]
    return [array.copy() if s else array for array, s in zip(results, shared, strict=True)]


def noted(call: Call, fn: Callable[..., Any], arrays: Sequence[Any]) -> Any:
    """``fn(*arrays)``; an error of the user's function says how it came to be called."""
    try:
        return fn(*arrays)
    except BaseException as error:
        shapes = ", ".join(str(tuple(array.shape)) for array in arrays)
        where = f" ({call.where})" if call.where else ""
        error.add_note(f"in {call.name}{where}, which runs between kernels, on arrays {shapes}")
        raise


def with_units(call: Call, results: Sequence[Any]) -> list[Any]:
    """What a library's call gave, with the axes of one element that its arrays have."""
    if not call.is_library:
        return list(results)
    return [
        array[tuple(None if dim is None else slice(None) for dim in axes)]
        if array.ndim < len(axes)
        else array
        for array, axes in zip(results, call.axes, strict=True)
    ]


def check_results(call: Call, results: Sequence[Any], sizes: Sizes) -> None:
    """Raise LaunchError unless a function gave the arrays that it was traced with."""
    if len(results) != len(call.axes):
        raise LaunchError(f"{call.name} gave {len(results)} arrays, expected {len(call.axes)}")
    for array, axes in zip(results, call.axes, strict=True):
        expected = tuple(1 if d is None else sizes[size_class(d)] for d in axes)
        if tuple(array.shape) != expected:
            raise LaunchError(
                message(
                    f"{call.name} gave an array of shape {tuple(array.shape)}, expected {expected}",
                    origin=call.where or None,
                )
            )


def shown(array: Any, seen: Seen) -> Any:
    """An array or tensor with its axes as ``seen`` has them."""
    order = seen.order
    if order == tuple(range(len(array.shape))):
        return array
    kept = sorted(axis for axis in order if axis is not None)
    taken = (slice(None) if i in kept else 0 for i in range(len(array.shape)))
    array = array[(*taken, ...)]  # without `...`, NumPy gives a number where no axis is left
    places = [kept.index(axis) for axis in order if axis is not None]
    array = array.transpose(places) if isinstance(array, np.ndarray) else array.permute(places)
    return array[(*(None if axis is None else slice(None) for axis in order), ...)]
