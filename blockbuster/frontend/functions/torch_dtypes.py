"""torch's casts, and its questions about dtypes."""

from __future__ import annotations

from typing import Any, NoReturn

from blockbuster.frontend.array import TracedArray
from blockbuster.frontend.attributes import item_size
from blockbuster.frontend.functions.pointwise import astype
from blockbuster.frontend.functions.row import Array, Row, named, torch_row
from blockbuster.frontend.kinds import FLOAT, MASK
from blockbuster.frontend.memory import own
from blockbuster.frontend.source import trace_error


def to(
    input: Array,
    *what: Any,
    dtype: Any = None,
    device: Any = None,
    non_blocking: bool = False,  # noqa: ARG001 - nothing is moved
    copy: bool = False,
) -> Array:
    """``x`` in another dtype: ``x.to(torch.float16)``, ``x.to(y)``."""
    if len(what) == 1 and isinstance(what[0], TracedArray):
        return to(input, what[0].dtype, copy=copy)
    given = [one for one in (*what, dtype, device) if one is not None]
    here = input.trace.device if isinstance(input, TracedArray) else input.device
    wanted = [one for one in given if type(one) is not type(here) or one != here]
    is_device = [one for one in wanted if isinstance(one, str) or "device" in type(one).__name__]
    if is_device or not given or len(wanted) > 1:
        _refuse_device()
    if not wanted:
        return own(input) if copy else input
    return astype(input, wanted[0], copy=copy)


def _refuse_device() -> NoReturn:
    hint = "leave the device out: arrays are where the arguments are; .to(torch.float16) casts"
    raise trace_error("a traced array has no device to go to", hint=hint)


def type_as(input: Array, other: Array) -> Array:
    """``x`` in the dtype of another array."""
    return to(input, other.dtype)


def torch_type(input: Array, dtype: Any = None, non_blocking: bool = False) -> Array:  # noqa: ARG001
    """``x`` in another dtype."""
    if dtype is None or isinstance(dtype, str):
        hint = "name a dtype, x.type(torch.float16); x.dtype is that of x"
        raise trace_error(f"x.type() of {dtype!r} cannot be traced", hint=hint)
    return to(input, dtype)


def _cast(method: str, dtype: str) -> Row:
    """The row of a method that casts to a dtype: ``x.half()``."""

    def cast(input: Array) -> Array:
        return astype(input, dtype, copy=False)

    return torch_row(named(cast, f"to_{method}", f"``x`` in {dtype}."), f"Tensor.{method}")


def is_floating_point(input: Array) -> bool:
    """True if elements are floating-point numbers."""
    return bool(input.kind == FLOAT)


def is_complex(input: Array) -> bool:  # noqa: ARG001 - arrays are real
    """False: arrays are real."""
    return False


def is_signed(input: Array) -> bool:
    """False for masks and bytes without a sign."""
    return input.kind not in (MASK, "uint8")


def element_size(input: Array) -> int:
    """The number of bytes of an element."""
    return item_size(input)


CASTS = {
    "float": "float32", "half": "float16", "bfloat16": "bfloat16", "double": "float64",
    "bool": "bool", "byte": "uint8", "char": "int8", "short": "int16", "int": "int32",
    "long": "int64",
}  # fmt: skip

ROWS = (
    torch_row(to, "Tensor.to"), torch_row(type_as, "Tensor.type_as"),
    torch_row(torch_type, "Tensor.type"),
    *(_cast(method, dtype) for method, dtype in CASTS.items()),
    torch_row(is_floating_point, "is_floating_point", "Tensor.is_floating_point"),
    torch_row(is_complex, "is_complex", "Tensor.is_complex"),
    torch_row(is_signed, "is_signed", "Tensor.is_signed"),
    torch_row(element_size, "Tensor.element_size"),
)  # fmt: skip
