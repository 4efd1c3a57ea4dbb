"""The dtypes that a kernel can have, and their names in Triton, in its signatures and in NumPy."""

from __future__ import annotations

from dataclasses import dataclass

from blockbuster.errors import a_kind, among, message
from blockbuster.ir.dtypes import FLOAT8


@dataclass(frozen=True)
class Dtype:
    """A dtype of inputs and outputs; arithmetic is float32 whatever it is.

    ``tolerance`` is the error that a stand-alone check of a kernel accepts, relative to the largest
    result: rounding of inputs to a dot, and of the result.
    """

    name: str
    triton: str
    pointer: str
    bytes: int
    tolerance: float


FLOAT32 = Dtype("float32", "tl.float32", "*fp32", 4, 1e-4)
BOOLEAN = Dtype("uint8", "tl.uint8", "*u8", 1, 0.0)  # truth values in memory, one byte each

DTYPES: dict[str, Dtype] = {
    "float16": Dtype("float16", "tl.float16", "*fp16", 2, 5e-3),
    "bfloat16": Dtype("bfloat16", "tl.bfloat16", "*bf16", 2, 4e-2),
    "float32": FLOAT32,
}
MEMORY: dict[str, Dtype] = {
    **DTYPES, "bool": BOOLEAN,
    FLOAT8: Dtype(FLOAT8, "tl.float8e4nv", "*fp8e4nv", 1, 0.0),
    "int8": Dtype("int8", "tl.int8", "*i8", 1, 0.0),
    "uint8": Dtype("uint8", "tl.uint8", "*u8", 1, 0.0),
    "int16": Dtype("int16", "tl.int16", "*i16", 2, 0.0),
    "int32": Dtype("int32", "tl.int32", "*i32", 4, 0.0),
    "int64": Dtype("int64", "tl.int64", "*i64", 8, 0.0),
}  # fmt: skip
"""How arrays of a dtype lie in memory."""


def dtype_of(name: str) -> Dtype:
    """The entry of ``DTYPES``; ValueError names the known ones, TypeError for no name at all."""
    if not isinstance(name, str):
        hint = f"pass one of the names {', '.join(DTYPES)}"
        raise TypeError(message(f"dtype is {a_kind(name)}, not a name", value=name, hint=hint))
    if name not in DTYPES:
        raise ValueError(
            message(f"no kernel is written for dtype {name!r}", hint=among(name, DTYPES))
        )
    return DTYPES[name]
