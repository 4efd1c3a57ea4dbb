"""Tracing: runs a Python function on stand-ins and records its operations as an array program."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn, TypeVar

import numpy as np

from blockbuster.errors import TraceError, a_kind
from blockbuster.frontend.array import TracedArray
from blockbuster.frontend.captured import Captures
from blockbuster.frontend.dims import DimTable
from blockbuster.frontend.final_names import hints_of, with_names
from blockbuster.frontend.functions.table import SPELLINGS
from blockbuster.frontend.given import from_example, from_text
from blockbuster.frontend.kinds import (
    FLOAT,
    POSITION,
    SCALAR,
    kind_of_dtype,
    result_kind,
    scalar_kind,
)
from blockbuster.frontend.library_errors import of_stand_ins
from blockbuster.frontend.made_here import with_made
from blockbuster.frontend.masks import LOOKED_THROUGH, from_positions, otherwise
from blockbuster.frontend.one_name import with_one_name
from blockbuster.frontend.parameters import bound_to, parameter_names, result_of, stand_in
from blockbuster.frontend.plain_folds import live, without_lost_dims
from blockbuster.frontend.program import (
    ArrayInput,
    ArrayOutput,
    ArrayProgram,
    Equation,
    Operand,
    Params,
    Shape,
)
from blockbuster.frontend.promotion import floats_of_integers, promoted
from blockbuster.frontend.protocols import AlongAxis
from blockbuster.frontend.put_back import PUT_BACK, as_view
from blockbuster.frontend.reshaping import wanted
from blockbuster.frontend.results import named_results
from blockbuster.frontend.shapes import SHAPES, WEIGHTED, axis_of
from blockbuster.frontend.size_facts import SizeFacts
from blockbuster.frontend.sizes import held_exactly, scalar
from blockbuster.frontend.source import Refused, trace_error, user_line
from blockbuster.frontend.taking import indexed
from blockbuster.frontend.torch import is_tensor
from blockbuster.frontend.trees import distinct
from blockbuster.frontend.users_frames import UsersFrames
from blockbuster.frontend.written_out import as_result
from blockbuster.ir.expr import Const, Expr
from blockbuster.ir.graph import Value
from blockbuster.ir.lengths import Length
from blockbuster.ir.origin import SourceLine

_T = TypeVar("_T")

_KEPT = "a function that stores arrays in self or in a global has to return them instead"


def trace(fn: Callable[..., Any], /, **inputs: Any) -> ArrayProgram:
    """The array program that ``fn`` computes for inputs of these shapes.

    Each input is a dim string (``"B M D"``, a fixed size as ``"D=64"``, a bare integer as a fresh
    dim of that size, ``1`` as a unit axis), or an example array or tensor: its axes start as fresh
    dims, and operations unify them. Equal sizes alone never unify dims. Masks and integers state
    their kind before their dims: ``"bool: M N"``, ``"int64: M"``.

    Raises TraceError, with the user's line, if no array program can express what ``fn`` does.

    >>> print(trace(lambda x, w: x @ w, x="M K", w="K N"))
    lambda(x: (M, K), w: (K, N)) {
      t0: (M, N) = matmul(x, w)
      return t0
    }
    <BLANKLINE>
    """
    with UsersFrames():
        return trace_reader(fn, inputs, {"": fn}, one_class=False, alone=True)[0]


def trace_with_facts(fn: Callable[..., Any], /, **inputs: Any) -> tuple[ArrayProgram, SizeFacts]:
    """Trace for sizes of one class; also returns the facts that tell which sizes these are."""
    return trace_reader(fn, inputs, {"": fn}, one_class=True)


def trace_reader(
    fn: Callable[..., Any],
    inputs: Mapping[str, Any],
    roots: Mapping[str, Any],
    *, one_class: bool, for_cpu: bool = False, alone: bool = False,
) -> tuple[ArrayProgram, SizeFacts]:  # fmt: skip
    """Trace ``fn``. In ``roots``, names are looked up for the arrays that ``fn`` captures.

    ``one_class``: the program is only used for sizes to which the facts apply. Otherwise the
    lengths of slices are clamps, which hold for all sizes. ``for_cpu``: it will run on a CPU.
    ``alone``: constants beside arrays are refused.

    If ``fn`` fails because it needs a size as a number, as in ``np.arange(x.shape[0])``, it is
    traced again with the known sizes as numbers: the program is for these sizes alone, and a note
    says so.
    """
    recording = Trace(roots, one_class=one_class, for_cpu=for_cpu)
    try:
        return _traced(recording, fn, inputs, alone), recording.dims.facts
    except (TraceError, TypeError) as error:  # a TypeError of a library that takes numbers only
        if not recording.dims.some_are_known:
            raise
        reason = str(error).split("\n")[0]
    begun = partial(Trace, roots, in_numbers=True, for_cpu=for_cpu)
    again, program = with_made(begun, lambda one: _traced(one, fn, inputs, alone))
    assert program.apart is not None
    note = f"known sizes are fixed, the program is for them alone: {reason}"
    vars(program)["apart"] = replace(program.apart, notes=(note, *program.apart.notes))
    return program, again.dims.facts


def _traced(recording: Trace, fn: Any, inputs: Mapping[str, Any], alone: bool) -> ArrayProgram:
    names = parameter_names(fn, inputs)
    bound = bound_to(fn, {name: stand_in(recording.input, name, inputs[name]) for name in names})
    try:
        result = result_of(fn, bound.args, bound.kwargs)
    except (TypeError, RuntimeError, ValueError) as error:
        told = of_stand_ins(error)
        if told is None:
            raise
        raise told from None
    word = re.sub(r"\W", "", getattr(fn, "__name__", "")) or "program"
    program, apart = with_one_name(recording.finish(word, named_results(result, alone=alone)))
    vars(program)["apart"] = apart
    return program


class Trace:
    """The recording of one call: it grows while the function runs and then becomes a program."""

    spellings = SPELLINGS

    def __init__(
        self,
        roots: Mapping[str, Any] | None = None,
        *,
        in_numbers: bool = False,
        one_class: bool = False,
        for_cpu: bool = False,
    ) -> None:
        self.dims = DimTable(of_examples_alone=in_numbers, one_class=one_class)
        self.in_numbers, self.for_cpu = in_numbers, for_cpu
        """True if entries of shapes that are known are plain numbers."""
        self._inputs: list[ArrayInput] = []
        self.captures = Captures(roots or {}, self._held, partial(from_positions, self))
        self._equations: list[Equation] = []
        self.dtypes: list[str] = []  # of the first equations: others were not asked for yet
        self.reading: list[bool] = []  # likewise: whether they read an input, or positions alone
        self.of_tensors = False
        """True if an input is a tensor of torch's: methods mean what they mean there."""
        self.of_arrays = False
        """True if an argument is an array of NumPy's."""
        self.device: Any = None  # of the first tensor
        self.replaced: dict[int, None] = {}
        """Equations that are needless, if no other reads them: others say the same."""
        self.line: SourceLine | None = None
        """The user's line, where it is not the one that Python runs now."""

    def __call__(self, *_: Any, **__: Any) -> NoReturn:
        """Raises TraceError: ``x.trace()`` of a user's means the sum of a diagonal."""
        raise trace_error("x.trace() cannot be traced", hint="use np.trace(x), or torch.trace(x)")

    @property
    def recorded(self) -> tuple[Sequence[ArrayInput], Sequence[Equation]]:
        """The inputs and the equations until now."""
        return self._inputs, self._equations

    def input(self, name: str, given: Any, *, shown: str = "") -> TracedArray:
        """A stand-in for the input ``name`` described by a dim string or an example.

        ``shown`` is what the user calls it, where that is no name.
        """
        if not name.isidentifier():
            hint = 'inputs have names of letters, digits and _: x="M N"'
            raise trace_error(f"{name!r} is no name of an input", hint=hint)
        try:
            shape, dtype = (
                from_text(self.dims, given)
                if isinstance(given, str)
                else from_example(self.dims, given)
            )
            kind = kind_of_dtype(dtype)
        except Refused as refused:
            what = f"input {shown or name}: {refused.reason}"
            raise trace_error(what, hint=refused.hint) from None
        if is_tensor(given) and not self.of_tensors:
            self.of_tensors, self.device = True, given.device
        name = distinct([*(one.name for one in self._inputs), name])[-1]
        self._inputs.append(ArrayInput(name, shape, dtype))
        made = TracedArray(self, Value(-1, len(self._inputs) - 1), shape, kind)
        made.memory.owner = f"the argument {shown or name}"
        self.of_arrays |= isinstance(given, np.ndarray)
        return made

    def captured(self, array: Any) -> TracedArray:
        """The hidden input for an array that the function read: one for each array."""
        return self.captures.of(array)

    def _held(self, name: str, array: Any, one_value: tuple[float, float]) -> TracedArray:
        known = self.of_arrays
        made = self.input(name, array)
        self._inputs[-1] = replace(self._inputs[-1], value=array, one_value=one_value)
        self.of_arrays = known
        return made

    def array(self, value: Any) -> TracedArray:
        """A traced array, or the hidden input for another one."""
        return value if isinstance(value, TracedArray) else self.captured(value)

    def record(
        self, op: str, operands: Sequence[Any], params: Mapping[str, Any] | None = None
    ) -> TracedArray:
        """Append an operation; returns its result. Raises TraceError with the user's line."""
        given = dict(params or {})
        taken = partial(self.captures.if_array, op=op, lists=not self.of_tensors)
        operands = self.checked(lambda: [*map(taken, operands)], op)
        operands, dtype = self.checked(lambda: promoted(self, op, operands), op)
        if dtype:
            return self.record("cast", (self._recorded(op, operands, given),), {"dtype": dtype})
        return self._recorded(op, operands, given)

    def _recorded(self, op: str, operands: Sequence[Any], given: Mapping[str, Any]) -> TracedArray:
        arrays = [o for o in operands if isinstance(o, TracedArray)]
        instead = self.checked(lambda: otherwise(self, op, operands, given), op, *arrays)
        if instead is not None:
            return as_view(instead, arrays[0], op, given) if op in PUT_BACK else instead
        operands = self.checked(lambda: floats_of_integers(self, op, operands), op, *arrays)

        def judged() -> tuple[tuple[Operand, ...], Shape, str]:
            taken = [self._operand(o, op) for o in operands]
            present = [(shape, kind) for operand, shape, kind in taken if operand is not None]
            kind = result_kind(op, [kind for _, kind in present])
            shape = SHAPES[op](self.dims, [shape for shape, _ in present], given)
            return tuple(operand for operand, _, _ in taken), shape, kind

        taken, shape, kind = self.checked(judged, op, *arrays)
        made = self._append(op, taken, given, shape, kind)
        return as_view(made, arrays[0], op, given) if op in PUT_BACK else made

    def floats(self, x: TracedArray, alone: bool = False) -> TracedArray:
        """Integers as floats, of functions of ``x`` alone or of sums; adding -0.0 changes none."""
        read = ("exp", (x,)) if alone else ("add", (x, -0.0))
        made: TracedArray = floats_of_integers(self, *read)[0]
        return made if made is not x else self.beside_floats(x)

    def beside_floats(self, x: TracedArray) -> TracedArray:
        """Integers or masks as floats that take the dtype of what they meet."""
        return self._append("add", (x.value, Const(-0.0)), {}, x.axes, FLOAT)

    def integers(self, x: TracedArray, dtype: str) -> TracedArray:
        """Whole numbers as integers of a dtype."""
        return self._append("whole", (x.value,), {}, x.axes, dtype)

    def transpose(self, x: TracedArray, axes: tuple[Any, ...] | None) -> TracedArray:
        """The axes of ``x`` in the order ``axes``, reversed for None."""
        rank = x.ndim
        order = axes if axes is not None else tuple(reversed(range(rank)))
        counted = self.checked(lambda: tuple(axis_of(a, rank) for a in order), "transpose", x)
        if sorted(counted) != list(range(rank)):
            raise trace_error(f"axes {order} do not reorder the axes of {self.dims.show(x.axes)}")
        return self.record("transpose", (x,), {"axes": counted})

    def swapaxes(self, x: TracedArray, first: Any, second: Any) -> TracedArray:
        """Two axes of ``x`` exchanged."""
        pair = (first, second)
        i, j = self.checked(lambda: [axis_of(a, x.ndim) for a in pair], "transpose", x)
        order = list(range(x.ndim))
        order[i], order[j] = j, i
        return self.transpose(x, tuple(order))

    def reshape(self, x: TracedArray, entries: Sequence[Any]) -> TracedArray:
        """The elements of ``x`` in order under other axes."""
        shape = self.checked(lambda: wanted(self.dims, x.axes, entries), "reshape", x)
        same = shape.extents == tuple(self.dims.length(axis) for axis in x.axes)
        return x if same else self.record("reshape", (x,), {"shape": shape})

    def keeps_extent(self, x: TracedArray, axis: int, entry: Any) -> None:
        """Raise TraceError if an axis of ``x`` has not as many elements as ``entry`` says."""
        self.checked(lambda: wanted(self.dims, (x.axes[axis],), (entry,)), "broadcast_to", x)

    def index(self, x: TracedArray, key: tuple[Any, ...]) -> TracedArray:
        """``x[key]``."""
        return indexed(self, x, key)

    def along_axis(self, op: AlongAxis, x: TracedArray) -> TracedArray:
        """An opaque NumPy function along one axis, which keeps the shape."""
        self.checked(lambda: axis_of(op.axis, x.ndim), op.name, x)
        kind = POSITION if op.name == "argsort" else x.kind
        return self.custom(op, (x,), x.axes, str(op), kind)

    def custom(
        self, fn: Callable[..., Any], arrays: Sequence[Any], shape: Shape, name: str,
        kind: str = FLOAT,
    ) -> TracedArray:  # fmt: skip
        """Any function of whole arrays, with a result of a known shape."""
        if not all(isinstance(array, TracedArray) for array in arrays):
            raise trace_error(f"{name} takes traced arrays only", hint="let fn hold other values")
        taken = self.checked(lambda: [self._operand(a, name) for a in arrays], name)
        operands = tuple(operand for operand, _, _ in taken)
        return self._append("custom", operands, {"fn": fn, "name": name}, shape, kind)

    def scalar(self, value: Any) -> Expr:
        """A number or a size as an expression."""
        found = scalar(value)
        if found is None:
            raise trace_error(f"{a_kind(value)} is neither an array nor a number")
        return found

    def finish(self, name: str, results: Sequence[tuple[str, TracedArray]]) -> ArrayProgram:
        """The program whose outputs are ``results``, with all dims under their final names."""
        if any(array.trace is not self for _, array in results):
            raise trace_error("the function returned an array of another trace")
        outputs = tuple(ArrayOutput(key, as_result(array).value) for key, array in results)
        self.captures.check()
        self.dims.find_units()
        shapes = [i.shape for i in self._inputs] + [e.shape for e in self._equations]
        self.dims.check_whole(shapes)
        names = self.dims.final_names(shapes)

        def renamed(shape: Shape) -> Shape:
            return tuple(names[a] if isinstance(a, str) else a for a in shape)

        settled = [replace(e, params=self._settled(e.params)) for e in self._equations]
        equations = tuple(
            replace(e, **with_names(e, names), shape=renamed(e.shape), hint=hint)
            for e, hint in zip(settled, hints_of(settled), strict=True)
        )
        program = ArrayProgram(
            name,
            tuple(replace(i, shape=renamed(i.shape)) for i in self._inputs),
            equations,
            outputs,
            tuple(self.dims.fixed_sizes(names).items()),
            self.dims.size_rules(names),
            masks=tuple(self.captures.notes),
        )
        return without_lost_dims(live(program, LOOKED_THROUGH, self.replaced))

    def _settled(self, params: Params) -> Params:
        """Parameters, with clamps replaced where later assumptions made them plain lengths."""
        return tuple(
            (key, self.dims.normal(v) if isinstance(v, Length) and v.clamps else v)
            for key, v in params
        )

    def _append(
        self,
        op: str,
        operands: tuple[Operand, ...],
        params: Mapping[str, Any],
        shape: Shape,
        kind: str,
    ) -> TracedArray:
        where = self.line or user_line()
        equation = Equation(op, operands, tuple(params.items()), shape, kind, where=where)
        self._equations.append(equation)
        return TracedArray(self, Value(len(self._equations) - 1), shape, kind)

    def note_stored(self, value: Value) -> None:
        """Eager execution stores ``value``: a function of a library takes or returns it."""
        if value.node >= 0:
            self._equations[value.node] = replace(self._equations[value.node], is_stored=True)

    def _operand(self, given: Any, op: str) -> tuple[Operand, Shape, str]:
        """An argument of the operation ``op`` with its shape and kind."""
        if isinstance(given, TracedArray):
            if given.trace is not self:
                raise Refused("an operand belongs to another trace", _KEPT)
            return given.value, given.axes, given.kind
        if given is None and op in WEIGHTED:
            return None, (), SCALAR
        if (number := scalar(given)) is not None:
            return held_exactly(given, number), (), scalar_kind(given)
        if isinstance(given, np.ndarray | np.generic):  # of one element, or it were captured
            number = held_exactly(given.item(), Const(float(given.item())))
            return number, (1,) * given.ndim, scalar_kind(given)
        hint = 'take an array of it; the dims of one array are one text, "M N"'
        hint = hint if isinstance(given, tuple) else ""
        raise Refused(f"{a_kind(given)} is neither an array nor a number", hint)

    def checked(self, work: Callable[[], _T], op: str, *arrays: TracedArray) -> _T:
        """What ``work`` gives; what it refuses of ``arrays`` is a TraceError."""
        try:
            return work()
        except Refused as refused:
            shown = " and ".join(self.dims.show(a.axes) for a in arrays)
            reason = f"{op} of {shown}: {refused.reason}" if shown else f"{op}: {refused.reason}"
            raise trace_error(reason, hint=refused.hint, error=refused.error) from None
