"""Attributes of torch's tensors that a traced array has: they depend on no element.

``x.shape``, ``x.dtype``, ``x.device`` and ``x.mT`` are those of NumPy's arrays, too (``array.py``).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from blockbuster.frontend.dtype_names import dtype_name
from blockbuster.frontend.source import trace_error

if TYPE_CHECKING:
    from blockbuster.frontend.array import TracedArray

NEVER = (
    "is_nested", "is_sparse", "is_sparse_csr", "is_quantized", "is_mkldnn", "is_meta", "is_mps",
    "is_xpu", "is_xla", "is_vulkan", "is_mtia", "is_ipu",
)  # fmt: skip
"""Questions whose answer is no: traced arrays are plain, on a CPU or on a GPU with CUDA."""

_BYTES = {"bfloat16": 2, "float8_e4m3fn": 1}
"""Of elements of dtypes that NumPy lacks."""


def item_size(x: TracedArray) -> int:
    """The number of bytes of an element. Raises TraceError if the dtype is not known."""
    name = dtype_name(x)
    if not name:
        hint = "trace with example arrays, or write the number"
        raise trace_error("the size of an element is not known: dims have no dtype", hint=hint)
    return _BYTES.get(name) or np.dtype(name).itemsize


def _matrix_transposed(x: TracedArray) -> TracedArray:
    if x.ndim != 2:
        reason = f"x.H is for matrices, and this array has {x.ndim} axes"
        raise trace_error(reason, hint="use x.mT, which exchanges the last two axes")
    return x.mT


def _strided(_: TracedArray) -> Any:
    return sys.modules["torch"].strided


ATTRIBUTES: Mapping[str, Callable[[TracedArray], Any]] = {
    **dict.fromkeys(NEVER, lambda _: False),
    "is_cuda": lambda x: x.device.type == "cuda",
    "is_cpu": lambda x: x.device.type == "cpu",
    "layout": _strided,
    "itemsize": item_size,
    "H": _matrix_transposed,
    "mH": lambda x: x.mT,
}
"""The value of an attribute by its name."""
