"""NumPy's and torch's names and arguments for our functions on traced arrays."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from blockbuster.frontend.array import TracedArray, along_axis
from blockbuster.frontend.captured import of_list
from blockbuster.frontend.fixed import static
from blockbuster.frontend.functions.refused import words
from blockbuster.frontend.functions.row import Row
from blockbuster.frontend.in_place import replaced, written_out
from blockbuster.frontend.source import trace_error

REDUCTIONS: Mapping[Any, Any] = {
    np.add: np.sum, np.multiply: np.prod, np.maximum: np.max, np.minimum: np.min,
    np.logical_and: np.all, np.logical_or: np.any,
}  # fmt: skip
"""The functions that ``ufunc.reduce`` is."""

SCANS = {np.add: "cumsum", np.multiply: "cumprod", np.maximum: "cummax", np.minimum: "cummin"}
"""The scans that ``ufunc.accumulate`` is."""

RENAMED = {
    "dim": "axis", "keepdim": "keepdims", "dims": "axes", "correction": "ddof",
    "diagonal": "k",
    "a_min": "min", "a_max": "max",
}  # fmt: skip
"""Our names of libraries' parameters."""

OF_TORCH = frozenset(("dim", "keepdim", "unbiased"))
OF_NUMPY = frozenset(("axis", "keepdims", "ddof"))
"""Parameters that NumPy's methods do not have."""

NO_METHODS = (
    "einsum", "tensordot", "cat", "concat", "concatenate", "stack", "hstack", "vstack",
    "row_stack", "where", "zeros_like", "ones_like", "full_like", "empty_like",
    "ones", "zeros", "empty", "full", "arange", "eye", "linspace",
    "cdist", "dropout", "layer_norm", "rms_norm", "cosine_similarity", "pairwise_distance",
    "_scaled_mm", "alpha_dropout", "feature_alpha_dropout", "rrelu", "softshrink", "threshold",
    "rnn_tanh_cell", "rnn_relu_cell", "gru_cell", "lstm_cell", "rnn_tanh", "rnn_relu", "gru",
    "lstm", "bilinear", "chain_matmul", "conv1d", "conv2d", "conv3d", "conv_transpose1d",
    "conv_transpose2d", "conv_transpose3d", "pixel_shuffle", "pixel_unshuffle", "channel_shuffle",
    "atleast_1d", "atleast_2d", "atleast_3d", "column_stack", "dstack", "meshgrid",
    "broadcast_tensors", "var_mean", "std_mean", "gradient", "trapezoid", "trapz",
)  # fmt: skip
"""Functions of torch's that tensors do not have as methods, or not with this first argument."""

FIRST = ("a", "x", "input", "self", "arr", "m", "ary", "array", "x1")
"""What libraries call the first array."""

LISTS = ("arrays", "operands", "x", "y", "a", "b", "v", "min", "max", "weights", "where")
"""Our parameters that are arrays, for which NumPy takes lists of numbers: the first two hold some.
"""

SECOND = ("b", "y", "other", "x2")


@dataclass(frozen=True)
class Spellings:
    """Rows by NumPy's functions, by methods of arrays, and by torch's names."""

    numpy: Mapping[Any, Row]
    methods: Mapping[str, Row]
    torch: Mapping[str, Row]

    def call_numpy(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """``func(*args, **kwargs)``, a function of NumPy's."""
        name = numpy_name(func)
        if func not in self.numpy:
            _refuse(f"np.{name}", name)
        args, kwargs = _without_defaults(func, args, kwargs)
        return call(self.numpy[func].function, f"np.{name}", args, kwargs, lists=LISTS)

    def call_ufunc(
        self, ufunc: Any, method: str, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        """A universal function of NumPy's, its ``reduce``, or its ``accumulate``."""
        if method == "reduce" and ufunc in REDUCTIONS:
            over = {} if len(args) > 1 else {"axis": 0}  # NumPy's default here
            return self.call_numpy(REDUCTIONS[ufunc], args, over | dict(kwargs))
        if method == "accumulate" and ufunc in SCANS:
            given = {"axis": 0, **dict(zip(("array", "axis"), args, strict=False)), **kwargs}
            if [*given] == ["axis", "array"]:
                return along_axis(SCANS[ufunc], given["array"], given["axis"])
        if method != "__call__":
            _refuse(f"np.{ufunc.__name__}.{method}", method)
        return self.call_numpy(ufunc, args, kwargs)

    def method(self, array: Any, name: str) -> Callable[..., Any]:
        """The method ``name`` of an array: NumPy's, or of torch's tensors."""
        known = name in self.methods or self._of_tensors(name)
        plain = name if known else name.removesuffix("_")
        if not known and (plain == name or self._of_tensors(plain) is None):
            _refuse(f".{name}", name)

        def bound(*args: Any, **kwargs: Any) -> Any:
            meant = self._meant(array, plain, kwargs).function
            made = call(meant, f".{name}", (array, *args), kwargs)
            return made if plain == name else replaced(array, made, f".{name}")

        return bound

    def _meant(self, array: Any, name: str, kwargs: Mapping[str, Any]) -> Row:
        """The row of a method. Where both libraries have it, names of parameters say whose is
        meant; without them, torch's is meant on tensors.
        """
        ours, theirs = self.methods.get(name), self._of_tensors(name)
        on_tensors = array.trace.of_tensors and OF_NUMPY.isdisjoint(kwargs)
        if ours is None or (theirs and (on_tensors or not OF_TORCH.isdisjoint(kwargs))):
            assert theirs is not None
            return theirs
        return ours

    def _of_tensors(self, name: str) -> Row | None:
        """The row of a method of tensors: torch has most of its functions as methods, too."""
        function = None if name in NO_METHODS else self.torch.get(name)
        return self.torch.get(f"Tensor.{name}", function)

    def torch_row(self, func: Any) -> Row | None:
        """The row of a function of torch's or of a method of its tensors."""
        name = torch_name(func)
        plain = name.rsplit(".", 1)[-1].strip("_")
        forms = (name, f"nn.functional.{plain}", plain, f"Tensor.{plain}")
        return next((self.torch[form] for form in forms if form in self.torch), None)

    def call_torch(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """``func(*args, **kwargs)``, a function of torch's or a method of its tensors."""
        name, row = torch_name(func), self.torch_row(func)
        if row is None:
            _refuse(f"torch.{name}", name)
        made = call(row.function, f"torch.{name}", args, _said(func, kwargs, row.function))
        in_place = name[-1] == "_" != name[-2] and name not in self.torch
        return replaced(args[0], made, f"torch.{name}") if in_place else made


def call(
    function: Callable[..., Any], what: str, args: Sequence[Any], kwargs: Mapping[str, Any],
    *, lists: Sequence[str] = (),
) -> Any:  # fmt: skip
    """``function`` with arguments whose names are a library's. Raises TraceError for others.

    The result is written to the array ``out=``; with ``inplace=True``, to the first argument.
    ``lists``: parameters for which lists of numbers count as arrays.
    """
    signature = inspect.signature(function)
    known = [*signature.parameters]
    named = {_parameter(name, known): value for name, value in kwargs.items()}
    out, in_place = named.pop("out", None), named.pop("inplace", False)
    left = [name for name in named if name not in known]
    if left:
        reason = f"{what} with {', '.join(left)} cannot be traced"
        raise trace_error(reason, hint=f"it takes {', '.join(known)}")
    try:
        bound = signature.bind(*args, **named)
    except TypeError as error:
        raise trace_error(f"{what}: {error}", hint=f"it takes {signature}") from None
    for name in (name for name in lists if name in bound.arguments):
        one = bound.arguments[name]
        several = name in lists[:2] and isinstance(one, list | tuple)
        bound.arguments[name] = [*map(of_list, one)] if several else of_list(one)
    made = function(*bound.args, **bound.kwargs)
    gave = made if isinstance(made, tuple | list) else (made,)
    for one in (*bound.args, *bound.kwargs.values(), *gave):
        if isinstance(one, TracedArray):
            one.trace.note_stored(one.value)
    if out is not None:
        return written_out(out, made, what)
    return replaced(bound.args[0], made, f"{what} with inplace=True") if in_place else made


def _parameter(name: str, known: Sequence[str]) -> str:
    """Our name of a library's parameter."""
    if name in known:
        return name
    for place, names in enumerate((FIRST, SECOND)):
        if name in names and place < len(known):
            return known[place]
    return RENAMED.get(name, name)


def _without_defaults(
    func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """The arguments without those that say what holds anyway, such as ``out=None``."""
    try:
        parameters = inspect.signature(func).parameters
    except ValueError:  # a function of NumPy's in C without a signature
        return args, kwargs
    names = [*parameters]
    given = {names[i]: value for i, value in enumerate(args[2:], start=2) if i < len(names)}
    kept = {
        name: value
        for name, value in (given | dict(kwargs)).items()
        if name not in parameters or value is not parameters[name].default
    }
    takes_all = len(args) > len(names) or any(
        p.kind is p.VAR_POSITIONAL for p in parameters.values()
    )
    return (args, kwargs) if takes_all else (args[:2], kept)


def _said(func: Any, kwargs: Mapping[str, Any], function: Callable[..., Any]) -> Mapping[str, Any]:
    """The keywords of a function of torch's without those that it adds itself, its defaults."""
    try:
        usual = inspect.signature(func).parameters
    except (TypeError, ValueError):  # a function in C adds none
        return kwargs
    known = inspect.signature(function).parameters
    return {
        name: value
        for name, value in kwargs.items()
        if name in known or name not in usual or static(value) != static(usual[name].default)
    }


_FAMILIES = ("linalg_", "special_", "fft_")
"""How torch calls the functions of its modules: ``linalg_norm`` for ``torch.linalg.norm``."""


def numpy_name(func: Any) -> str:
    """The name of a function of NumPy's as users write it: ``linalg.inv``."""
    module = str(getattr(func, "__module__", "") or "").removeprefix("numpy").strip(".")
    return f"{module}.{func.__name__}" if module and not module.startswith("_") else func.__name__


def torch_name(func: Any) -> str:
    """The name of a function of torch's: ``exp``, ``nn.functional.relu``, ``Tensor.exp``."""
    name = str(getattr(func, "__name__", func))
    module = str(getattr(func, "__module__", "") or "")
    if module.startswith("torch.nn"):
        return f"nn.functional.{name}"
    if name.startswith(_FAMILIES):
        return name.replace("_", ".", 1)
    kinds = ("method_descriptor", "wrapper_descriptor")  # x.exp, x[key]
    is_method = type(func).__name__ in kinds or module == "torch._tensor"
    return f"Tensor.{name}" if is_method else name


def _refuse(what: str, name: str) -> NoReturn:
    reason, hint = words(what, name)
    raise trace_error(reason, hint=hint)
