"""torch's product of arrays of float8 with scales."""

from __future__ import annotations

from typing import Any

from blockbuster.frontend.functions.pointwise import astype
from blockbuster.frontend.functions.products import matmul
from blockbuster.frontend.functions.row import Array, torch_row
from blockbuster.frontend.source import trace_error
from blockbuster.ir.dtypes import FLOAT8


def scaled_mm(
    input: Array,
    mat2: Array,
    scale_a: Array,
    scale_b: Array,
    bias: Array | None = None,
    scale_result: Array | None = None,
    out_dtype: Any = None,
    use_fast_accum: bool = False,  # noqa: ARG001 - sums are those of False
) -> Array:
    """``(a @ b) * scale_a * scale_b + bias`` in ``out_dtype``; scales of the whole or of rows."""
    if out_dtype is None or FLOAT8 in str(out_dtype) or scale_result is not None:
        hint = "pass out_dtype=torch.bfloat16, torch.float16 or torch.float32"
        raise trace_error(f"_scaled_mm with results in {FLOAT8} cannot be traced", hint=hint)
    found = matmul(input, mat2) * scale_a * scale_b
    return astype(found if bias is None else found + bias, out_dtype)


ROWS = (torch_row(scaled_mm, "_scaled_mm"),)
