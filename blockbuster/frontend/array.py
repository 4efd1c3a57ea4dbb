"""Traced arrays: stand-ins that record what a function does to them."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from blockbuster.errors import TraceError
from blockbuster.frontend.assignment import assign
from blockbuster.frontend.attributes import ATTRIBUTES
from blockbuster.frontend.class_asked_for import shown_class
from blockbuster.frontend.dtype_names import dtype_of
from blockbuster.frontend.in_place import IN_NUMPY, IN_TORCH, augmented, library, taken_out
from blockbuster.frontend.kinds import FLOAT, MASK, POSITION
from blockbuster.frontend.memory import Held, own, perhaps
from blockbuster.frontend.no_values import NoValues
from blockbuster.frontend.numerics import NUMPY
from blockbuster.frontend.program import Axis, Operand, Shape
from blockbuster.frontend.protocols import AlongAxis
from blockbuster.frontend.shapes import SCANS, axis_of
from blockbuster.frontend.sizes import ElementCount, Extents, KnownSize, SizeExpr, fixed
from blockbuster.frontend.source import Refused, trace_error
from blockbuster.frontend.torch import is_tensor, on_tensors, tensor_along_axis
from blockbuster.ir.dtypes import OWN
from blockbuster.ir.expr import FUNCTIONS, Call, Const, Size
from blockbuster.ir.graph import Value

if TYPE_CHECKING:
    from blockbuster.frontend.trace import Trace


class NoSuchAttribute(TraceError, AttributeError):
    """A TraceError that ``hasattr`` understands."""


def _binary(name: str, *, reflected: bool = False) -> Callable[..., TracedArray]:
    def method(self: TracedArray, other: Any) -> TracedArray:
        pair = (other, self) if reflected else (self, other)
        return self.trace.record(name, pair)

    return method


def _unary(name: str) -> Callable[..., TracedArray]:
    def method(self: TracedArray) -> TracedArray:
        return self.trace.record(name, (self,))

    return method


def _in_place(name: str) -> Callable[..., TracedArray]:
    def method(self: TracedArray, other: Any) -> TracedArray:
        return augmented(self, name, other)

    return method


class TracedArray(Held, NoValues):
    """An array of a program that is being traced: a shape and a position, no values."""

    __hash__ = None  # type: ignore[assignment]

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """The class of the argument where the user's code asks ``isinstance``; else its own."""
        of_tensors, of_arrays = self.trace.of_tensors, self.trace.of_arrays
        return shown_class(TracedArray, of_tensors=of_tensors, of_arrays=of_arrays)

    @property
    def value(self) -> Value:
        """The input or the result that the array is now."""
        return self.current().value

    @property
    def axes(self) -> Shape:
        """Its axes."""
        return self.current().axes

    @property
    def kind(self) -> str:
        """Floats, a mask, or integers: ``kinds.py``."""
        return self.current().kind

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _FIELDS:
            hint = "reshape, astype and where give new arrays; x[...] = value changes elements"
            raise trace_error(f"a traced array takes no x.{name} = value", hint=hint)
        super().__setattr__(name, value)

    def __repr__(self) -> str:
        return f"TracedArray{self.trace.dims.show(self.axes)}"

    @property
    def shape(self) -> tuple[Any, ...]:
        """The extents: sizes that take part in arithmetic, and the literal 1."""
        return Extents(map(self._extent, self.trace.dims.shape(self.axes)))

    def _extent(self, axis: Axis) -> Any:
        known = self.trace.dims.length(axis).constant if self.trace.in_numbers else None
        if known is not None:
            return KnownSize(known, self.trace)
        return SizeExpr(Size(axis), self.trace) if isinstance(axis, str) else axis

    def __iter__(self) -> Iterator[Any]:
        """The arrays along the first axis, whose size becomes fixed: ``a, b = x``."""
        return iter([self[place] for place in range(rows_to_loop_over(self))])

    def __len__(self) -> int:  # type: ignore[override]
        if self.trace.in_numbers and self.axes and isinstance(self.shape[0], int):
            return int(self.shape[0])
        return super().__len__()

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.axes)

    @property
    def dtype(self) -> Any:
        """The dtype, as far as the inputs' are known; else one to which a cast changes nothing."""
        return dtype_of(self)

    @property
    def size(self) -> Any:
        """The number of elements; torch's ``x.size()`` and ``x.size(axis)``, too."""
        return ElementCount(self)

    @property
    def device(self) -> Any:
        """That of the example tensors. Raises TraceError where there are none."""
        if self.trace.device is None:
            hint = "leave devices out: arrays are where the arguments are"
            raise trace_error("a traced array has no device", hint=hint)
        return self.trace.device

    __add__, __radd__ = _binary("add"), _binary("add", reflected=True)
    __sub__, __rsub__ = _binary("sub"), _binary("sub", reflected=True)
    __mul__, __rmul__ = _binary("mul"), _binary("mul", reflected=True)
    __truediv__, __rtruediv__ = _binary("div"), _binary("div", reflected=True)
    __pow__, __rpow__ = _binary("pow"), _binary("pow", reflected=True)
    __floordiv__, __rfloordiv__ = _binary("floordiv"), _binary("floordiv", reflected=True)
    __mod__, __rmod__ = _binary("mod"), _binary("mod", reflected=True)
    __matmul__, __rmatmul__ = _binary("matmul"), _binary("matmul", reflected=True)
    __and__, __rand__ = _binary("and"), _binary("and", reflected=True)
    __or__, __ror__ = _binary("or"), _binary("or", reflected=True)
    __xor__, __rxor__ = _binary("xor"), _binary("xor", reflected=True)
    __lshift__, __rlshift__ = _binary("lshift"), _binary("lshift", reflected=True)
    __rshift__, __rrshift__ = _binary("rshift"), _binary("rshift", reflected=True)
    __lt__, __le__, __gt__, __ge__ = _binary("lt"), _binary("le"), _binary("gt"), _binary("ge")
    __eq__, __ne__ = _binary("eq"), _binary("ne")  # type: ignore[assignment]
    __iadd__, __isub__, __imul__ = _in_place("add"), _in_place("sub"), _in_place("mul")
    __itruediv__, __ifloordiv__ = _in_place("div"), _in_place("floordiv")
    __imod__, __ipow__, __imatmul__ = _in_place("mod"), _in_place("pow"), _in_place("matmul")
    __iand__, __ior__, __ixor__ = _in_place("and"), _in_place("or"), _in_place("xor")
    __ilshift__, __irshift__ = _in_place("lshift"), _in_place("rshift")
    __neg__, __abs__, __invert__ = _unary("neg"), _unary("abs"), _unary("not")

    def __divmod__(self, other: Any) -> tuple[Any, Any]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Any, Any]:
        return other // self, other % self

    def transpose(self, *axes: Any) -> TracedArray:
        """The axes in another order, given as a tuple or one by one; reversed if none is given.

        Two numbers exchange two axes, as in torch, unless they are the order of a matrix's axes.
        """
        if len(axes) == 2 and (self.ndim != 2 or self.trace.of_tensors):
            return self.swapaxes(*axes)
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
        return self.trace.transpose(self, tuple(order) if order else None)

    def swapaxes(self, axis1: int, axis2: int) -> TracedArray:
        """Two axes exchanged."""
        return self.trace.swapaxes(self, axis1, axis2)

    @property
    def T(self) -> TracedArray:
        """All axes reversed, as in NumPy."""
        return self.transpose()

    @property
    def mT(self) -> TracedArray:
        """The last two axes exchanged."""
        return self.swapaxes(-1, -2)

    def __getitem__(self, key: Any) -> TracedArray:
        """New axes, ``x[:, None]``, slices, ``x[..., a:b]``, and single positions, ``x[0]``."""
        keys = key if isinstance(key, tuple) else (key,)
        made = self.trace.index(self, keys)
        made = made if made.ndim else taken_out(made, self, keys)
        if made is not self:
            made.taken_as = (self, keys)
        return made

    def __setitem__(self, key: Any, value: Any) -> None:
        assign(self, key, value)

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        return self.trace.spellings.call_ufunc(ufunc, method, args, kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return self.trace.spellings.call_numpy(func, args, kwargs)

    def __array_namespace__(self, *, api_version: Any = None) -> Any:
        """The array API's functions: NumPy's, which take traced arrays."""
        array: Any = np.empty(0)
        return array.__array_namespace__(api_version=api_version)

    def __pos__(self) -> Any:
        return self._copied("+x is a copy in NumPy and x itself in torch")

    def __copy__(self) -> Any:
        return self._copied("copy.copy copies an array of NumPy's and no tensor")

    def __deepcopy__(self, memo: Any) -> Any:
        return own(self)

    def _copied(self, why: str) -> Any:
        """A copy if this is an array of NumPy's, the array itself if it is a tensor."""
        known = library(self.trace)
        if known == IN_TORCH:
            return self
        return own(self) if known == IN_NUMPY else perhaps(self, self, why)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named = dict(kwargs or {})
        trace = first_traced((*args, *named.values())).trace
        taken = functools.partial(trace.captures.taken, op=getattr(func, "__name__", ""))
        named = {name: taken(value) for name, value in named.items()}
        return trace.spellings.call_torch(func, [*map(taken, args)], named)

    def __round__(self, digits: int | None = None) -> Any:
        return self.trace.spellings.method(self, "round")(digits or 0)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in ATTRIBUTES and self.trace.of_tensors:
            return ATTRIBUTES[name](self)
        try:
            return self.trace.spellings.method(self, name)
        except TraceError as error:
            raise NoSuchAttribute(*error.args) from None


_FIELDS = ("trace", "now", "seen", "memory", "shows", "is_number", "taken_as")


MOST_ROWS = 1024
"""Rows of a loop in Python: each is traced by itself, and a program of so many takes minutes."""


def rows_to_loop_over(x: TracedArray) -> int:
    """The number of arrays along the first axis. Raises TraceError if it is unknown or large."""
    if not x.axes:
        raise TypeError("iteration over an array of no axes")
    dims, hint = x.trace.dims, "functions take all of x: bb.sum(x, axis=0)"
    if any(dims.extent(dim) is None for dim in dims.length(x.axes[0]).dims):
        reason = "a traced array has no values to loop over: how many rows"
        hint = f'index it, x[0]; {hint}; or give the axis a size, "M=4 N"'
        raise trace_error(f"{reason} {dims.show(x.axes)} has is not known", hint=hint)
    rows = fixed(x.shape[0])
    if rows > MOST_ROWS:
        reason = f"a loop in Python over {rows} rows: each is traced by itself, up to {MOST_ROWS}"
        raise trace_error(reason, hint=hint)
    return rows


def first_traced(values: Any) -> TracedArray:
    """The first traced array among values and sequences of values."""
    for value in values:
        inside = value if isinstance(value, list | tuple) else (value,)
        for one in inside:
            if isinstance(one, TracedArray):
                return one
    raise AssertionError("torch asks arrays that it was given")


def apply(op: str, *operands: Any, **params: Any) -> Any:
    """Record an operation if an operand is traced; compute it at once if none is."""
    for operand in operands:
        if isinstance(operand, TracedArray):
            return operand.trace.record(op, operands, params)
    sizes = [o for o in operands if isinstance(o, SizeExpr)]
    if sizes and op in FUNCTIONS:
        known = [sizes[0].trace.scalar(o) for o in operands]
        return SizeExpr(Call(op, tuple(known)), sizes[0].trace)
    if sizes:
        raise trace_error(f"{op} takes arrays, and the size {sizes[0]!r} is none")
    if any(map(is_tensor, operands)):
        return on_tensors(op, operands, params)
    return NUMPY[op](*operands, **params)


def array_at(trace: Trace, value: Value) -> TracedArray:
    """An input of a trace, or what an equation of it made."""
    inputs, equations = trace.recorded
    made = inputs[value.port] if value.node < 0 else equations[value.node]
    return TracedArray(trace, value, made.shape, made.kind)


def operand_at(trace: Trace, operand: Operand) -> Any:
    """An operand of a recorded equation, as another operation takes it."""
    if isinstance(operand, Value):
        return array_at(trace, operand)
    if operand is None or isinstance(operand, Const):
        return operand and operand.value
    return SizeExpr(operand, trace)


def reduce_axes(op: str, x: Any, axis: Any, keepdims: bool) -> Any:
    """A reduction over one axis, several, or all (None): one recorded operation per axis."""
    if not isinstance(x, TracedArray):
        return apply(op, x, axis=axis, keepdims=keepdims)
    if not isinstance(keepdims, bool | int | np.bool_):
        raise trace_error(f"{op} with keepdims={keepdims!r}", hint="name the dtype: dtype=...")
    if x.ndim == 0 and x.trace.of_tensors and axis in (0, -1):
        axis = ()  # torch takes a tensor without axes for one of one axis here
    if isinstance(axis, int) and x.ndim:
        return x.trace.record(op, (x,), {"axis": axis, "keepdims": keepdims})
    try:
        given = range(x.ndim) if axis is None else axis if isinstance(axis, Sequence) else (axis,)
        axes = [axis_of(a, x.ndim) for a in given]
        if len(set(axes)) < len(axes):
            raise Refused(f"an axis stands twice in {axis}")
    except Refused as refused:
        raise trace_error(f"{op}: {refused.reason}") from None
    if not axes:
        return _over_nothing(op, x)
    over = sorted(axes, reverse=True)
    return functools.reduce(lambda y, a: reduce_axes(op, y, operator.index(a), keepdims), over, x)


def _over_nothing(op: str, x: TracedArray) -> TracedArray:
    """A reduction over no axis: the array, in the dtype that the reduction gives."""
    if op == "mean" and x.kind != FLOAT:
        return x.trace.floats(x)
    if op == "sum" and x.kind != FLOAT:
        return x.trace.integers(x, POSITION)
    copied: TracedArray = own(x)
    return copied


def as_floats(x: Any, *, alone: bool = False) -> Any:
    """A traced array of masks or integers as one of floats; anything else as it is.

    ``alone``: for a function of one array, which in NumPy makes narrow floats of narrow integers.
    """
    return x.trace.floats(x, alone) if isinstance(x, TracedArray) and x.kind != FLOAT else x


def along_axis(name: str, x: Any, axis: int | None) -> Any:
    """A function of ``protocols.OPAQUE``; an axis of None is for arrays of one axis."""
    if isinstance(x, TracedArray):
        if name == "sort" and x.kind == MASK:
            return along_axis(name, x + 0, axis) != 0
        x = x + 0 if name == "argsort" and x.kind == MASK else x
        only = -1 if axis is None and x.ndim <= 1 else axis
        if name in SCANS:
            return scanned(name, x, only)
        return x.trace.along_axis(AlongAxis(name, only), x)  # type: ignore[arg-type]
    if is_tensor(x):
        return tensor_along_axis(name, x, axis)
    if name == "argsort":
        return np.argsort(x, axis, kind="stable")
    if name in ("cummax", "cummin"):
        return NUMPY[name](x, axis=0 if axis is None and np.ndim(x) == 1 else axis)
    return getattr(np, name)(x, axis=axis)


def scanned(op: str, x: TracedArray, axis: Any) -> Any:
    """The folds along an axis up to each element; sums and products of integers are int64."""
    if x.kind == MASK and op in ("cummax", "cummin"):
        return scanned(op, x + 0, axis) != 0
    if x.kind != FLOAT and op in ("cumsum", "cumprod"):
        x = x.trace.integers(x, POSITION)
    return x.trace.record(op, (x,), {"axis": axis})


def cast_dtype(dtype: Any) -> str:
    """The name of a dtype to cast to, given as NumPy, Python or torch write it."""
    name = str(getattr(dtype, "name", dtype)).removeprefix("torch.")
    if isinstance(dtype, type):
        name = np.dtype(dtype).name
    name = {"float": "float64", "half": "float16", "single": "float32", "int": "int64"}.get(
        name, name
    )
    if name not in ("float16", "bfloat16", "float32", "float64", *OWN):
        hint = f"cast to a floating dtype, {', '.join(OWN)}"
        raise trace_error(f"a cast to {name} cannot be traced", hint=hint)
    return name
