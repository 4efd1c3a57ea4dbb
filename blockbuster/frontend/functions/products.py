"""Products that contract axes."""

from __future__ import annotations

from blockbuster.frontend.array import apply
from blockbuster.frontend.functions.row import Array, Row, example


def matmul(a: Array, b: Array) -> Array:
    """``a @ b``: the product over the last axis of ``a`` and the last but one of ``b``.

    Leading axes broadcast, and a vector counts as a row on the left and a column on the right.
    """
    return apply("matmul", a, b)


_GROUP = "Products"

ROWS = (
    Row(matmul, _GROUP, ("matmul",), torch=("matmul", "mm", "bmm", "Tensor.matmul"),
        examples=(example("M K", "K N"), example("B M K", "K"), example("B M K", "K N"))),
)  # fmt: skip
