"""The arrays of a call: their common properties, and the key by which two calls are alike.

Nothing here imports torch: whoever passes a tensor has it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from blockbuster.errors import LaunchError, a_kind, message
from blockbuster.ir.dtypes import FLOAT8, OWN, deciding
from blockbuster.runtime.launch import ALIGNED, records_gradients

FLOATS = (FLOAT8, "float16", "bfloat16", "float32", "float64")
KNOWN = (*FLOATS, *OWN)
PLAIN = (np.ndarray, np.memmap)
"""Arrays without rules of their own: masked ones are summed without what they mask."""


@dataclass(frozen=True)
class Arrays:
    """The common properties of a call's arrays. ``device`` is None for NumPy arrays.

    ``dtype``: where the dtypes of floats meet, and what floats have where no array holds any: as
    NumPy and torch make them of integers. ``others`` are those of arrays that have another.
    """

    shapes: Mapping[str, tuple[int, ...]]
    device: Any
    dtype: str
    others: Mapping[str, str] = field(default_factory=dict)

    @property
    def on_gpu(self) -> bool:
        """True for tensors on a GPU."""
        return self.device is not None and self.device.type != "cpu"


def described(value: Any) -> Any:
    """An array as part of a key; None for another value. What was prepared for a key runs for all.

    All that a launch depends on is in it: what Triton specializes a kernel on (alignment, and the
    sizes and strides, which are kernel arguments), and what ``in_common`` refuses. Plain NumPy
    arrays come first: small ones are computed in microseconds.
    """
    if type(value) is np.ndarray:
        return value.shape, value.dtype
    if hasattr(value, "data_ptr"):
        address = value.data_ptr()  # 0: the tensor is empty, or without memory of its own
        return (
            value.shape,
            value.stride(),
            value.dtype,
            value.device,
            address % ALIGNED == 0 if address else None,
            value.is_neg() or (value.requires_grad and records_gradients()),
        )
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype, type(value)
    return None


def kind_of(value: Any, layout: Any) -> Any:
    """An array as part of a key, without its sizes and strides; ``layout`` for another value.

    All that a trace depends on is in it but sizes, and what ``in_common`` refuses. ``layout`` is
    how the array is ``described``.
    """
    if hasattr(value, "data_ptr"):
        shape, _, dtype, device, aligned, odd = layout
        return type(value), len(shape), dtype, device, odd, aligned is None
    if isinstance(value, np.ndarray):
        return type(value), value.ndim, value.dtype
    return layout


def dtype_name(array: Any) -> str:
    """The name of an array's or tensor's dtype."""
    return str(getattr(array.dtype, "name", array.dtype)).removeprefix("torch.")


def common_dtype(names: list[str]) -> str:
    """The dtype in which floating dtypes meet: their own if they are one, else a wider.

    >>> common_dtype(["float16", "float16"]), common_dtype(["float16", "bfloat16"])
    ('float16', 'float32')
    """
    names = deciding(names)
    if len(names) == 1:
        return names[0]
    return "float64" if "float64" in names else "float32"


def in_common(arrays: Mapping[str, Any]) -> Arrays:
    """The common properties of a call's arrays; LaunchError names one that does not fit."""
    if not arrays:
        raise LaunchError(message("the call has no array", hint="pass a NumPy array or a tensor"))
    first = next(iter(arrays))
    device = getattr(arrays[first], "device", None) if is_tensor(arrays[first]) else None
    for name, array in arrays.items():
        _check(name, array)
        own = array.device if is_tensor(array) else None
        if own != device:
            here, there = _place(own), _place(device)
            raise LaunchError(
                message(f"{name} is {here}, {first} is {there}", hint="bring them to one device")
            )
    dtypes = {name: dtype_name(array) for name, array in arrays.items()}
    floats = [own for own in dtypes.values() if own in FLOATS]
    dtype = common_dtype(floats or ["float64" if device is None else "float32"])
    shapes = {name: tuple(array.shape) for name, array in arrays.items()}
    others = {name: own for name, own in dtypes.items() if own != dtype}
    found = Arrays(shapes, device, dtype, others)
    if found.on_gpu and dtype == "float64":
        name = next(name for name, own in dtypes.items() if own == "float64")
        raise LaunchError(
            message(
                f"{name} is float64 on {device}: kernels compute in float32",
                hint=f"pass {name}.float(); arrays on the CPU are computed in float64",
            )
        )
    return found


def is_tensor(value: object) -> bool:
    """True for torch tensors."""
    return hasattr(value, "data_ptr")


WIDER = {"uint16": "int32", "uint32": "int64", "uint64": "int64"}
"""Dtypes that torch computes nothing in, and those that hold their numbers."""


def _wider(name: str, array: Any) -> str:
    """What to pass in place of an array of a dtype that kernels do not know."""
    if dtype_name(array).startswith("complex"):
        return f"pass its parts as two arrays: {name}.real, {name}.imag"
    if not is_tensor(array) and array.dtype.kind in "SUMm":  # texts, dates
        return "pass an array of numbers"
    wider = WIDER.get(dtype_name(array), "")
    below = ", which holds those below 2**63" if dtype_name(array) == "uint64" else ""
    if is_tensor(array):
        return f"pass {name}.to(torch.{wider}){below}" if wider else f"pass {name}.float()"
    return f"pass {name}.astype(np.{wider or 'float32'}){below}"


def _check(name: str, array: Any) -> None:
    if not isinstance(array, np.ndarray | np.generic) and not is_tensor(array):
        what = f"{name} is {a_kind(array)}, expected a NumPy array or a tensor"
        raise TypeError(message(what, hint=f"pass np.asarray({name})"))
    dtype = dtype_name(array)
    if dtype not in KNOWN:
        known = f"known are {', '.join(KNOWN)}"
        raise LaunchError(message(f"{name} holds {dtype}; {known}", hint=_wider(name, array)))
    if not is_tensor(array):
        if type(array) not in PLAIN:
            kind = type(array).__name__
            hint = f"pass np.asarray({name}), or {name}.filled(value) where it is masked"
            raise LaunchError(message(f"{name} is a {kind}: plain arrays are needed", hint=hint))
        return
    if array.device.type not in ("cpu", "cuda"):
        raise LaunchError(f"{name} is on {array.device}: kernels run on the CPU and CUDA devices")
    if str(array.layout) != "torch.strided":
        raise LaunchError(message(f"{name} is {array.layout}", hint=f"pass {name}.to_dense()"))
    if not _has_memory(array):
        hint = "where torch traces or maps a function, call what compiled.as_custom_op(name) gives"
        raise LaunchError(message(f"{name} is a tensor without memory of its own", hint=hint))
    if array.is_neg():
        hint = f"pass {name}.resolve_neg()"
        raise LaunchError(message(f"{name} is a view that negates its memory when read", hint=hint))
    if array.requires_grad and records_gradients():
        raise LaunchError(
            message(
                f"{name} requires a gradient: Blockbuster compiles inference",
                hint=f"call under torch.no_grad(), or pass {name}.detach()",
            )
        )


def _has_memory(tensor: Any) -> bool:
    """False for the stand-ins with which torch traces, and those of ``torch.vmap``."""
    try:
        return bool(tensor.numel() == 0 or tensor.data_ptr())
    except RuntimeError:
        return False


def _place(device: Any) -> str:
    return "a NumPy array" if device is None else f"a tensor on {device}"
