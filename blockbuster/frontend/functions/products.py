"""Products that sum over shared axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from blockbuster.frontend.array import TracedArray, apply, as_floats, reduce_axes
from blockbuster.frontend.functions.einsum import einsum_traced, is_traced
from blockbuster.frontend.functions.einsum_spec import is_extended
from blockbuster.frontend.functions.extended_einsum import Pads, extended_einsum
from blockbuster.frontend.functions.pointwise import abs, sqrt, square
from blockbuster.frontend.functions.reductions import Axes, max, min, sum
from blockbuster.frontend.functions.row import Array, Row, Text, example
from blockbuster.frontend.functions.shapes import has_elements, ravel
from blockbuster.frontend.kinds import FLOAT
from blockbuster.frontend.source import trace_error
from blockbuster.frontend.torch import is_tensor, tensor_einsum


def matmul(a: Array, b: Array) -> Array:
    """``a @ b``: the product over the last axis of ``a`` and the last but one of ``b``.

    Leading axes broadcast, and a vector counts as a row on the left and a column on the right.
    """
    return apply("matmul", a, b)


def einsum(
    subscripts: str, *operands: Array, optimize: Any = True, pad: Pads | None = None,
    sizes: Mapping[str, Any] | None = None, **named: Any,
) -> Array:  # fmt: skip
    """The sum of products that ``subscripts`` name: ``"mk,kn->mn"`` is ``a @ b``.

    Letters that the result lacks are summed, letters of several operands are batches; an ellipsis
    stands for leading axes. Three or more operands are multiplied in pairs, in NumPy's order. A
    letter may not stand twice in one operand.

    An operand may be read at sums: ``"nc(h+r)(2*w+s+off[c]), kcrs -> nkhw"``, with whole numbers
    and tables of integers by keyword. A letter that stands in sums alone has as many elements as
    fit in the axis; ``sizes`` says others. ``pad``: zeros in front of the axis of a letter and
    behind it, ``{"h": (1, 1)}``. Raises TraceError, with a mark under the place in the spec.
    """
    if not isinstance(subscripts, str):
        raise trace_error("einsum takes its subscripts as text", hint='write "mk,kn->mn"')
    if is_extended(subscripts):
        return extended_einsum(subscripts, operands, pad, sizes, named, einsum)
    if pad or sizes or named:
        word = next(iter((*(["pad"] * bool(pad)), *(["sizes"] * bool(sizes)), *named)))
        raise trace_error(f"einsum {subscripts!r} reads no {word}",
                          hint='sums stand in parentheses: "(h+r)c,rck->hk"')  # fmt: skip
    if is_traced(operands):
        return einsum_traced(subscripts, operands, taps=None)
    if any(map(is_tensor, operands)):
        return tensor_einsum(subscripts, operands)
    return np.einsum(subscripts, *operands, optimize=optimize)


def tensordot(a: Array, b: Array, axes: int | Sequence[Any] = 2) -> Array:
    """The product summed over ``axes``: a count of last and first axes, or one list per array."""
    left, right = len(a.shape), len(b.shape)
    if isinstance(axes, int):
        over_a, over_b = range(left - axes, left), range(axes)
    else:
        over_a, over_b = (([x] if isinstance(x, int) else x) for x in axes)  # type: ignore[assignment]
    names_a = [chr(ord("a") + i) for i in range(left)]
    names_b = [chr(ord("A") + i) for i in range(right)]
    for i, j in zip(over_a, over_b, strict=True):
        names_b[j] = names_a[i]
    free = [x for x in names_a if x not in names_b] + [x for x in names_b if x not in names_a]
    text = f"{''.join(names_a)},{''.join(names_b)}->{''.join(free)}"
    if is_traced((a, b)):
        return einsum_traced(text, (a, b), broadcasts=False)
    return einsum(text, a, b)


def dot(a: Array, b: Array) -> Array:
    """``a @ b`` for vectors and matrices, ``a * b`` for numbers; leading axes do not broadcast."""
    if 0 in (_rank(a), _rank(b)):
        return a * b
    return matmul(a, b) if _rank(b) <= 2 else tensordot(a, b, ([-1], [-2]))


def _rank(x: Array) -> int:
    return len(getattr(x, "shape", ()))


def inner(a: Array, b: Array) -> Array:
    """The product summed over the last axes of both."""
    return tensordot(a, b, ([-1], [-1]))


def outer(a: Array, b: Array) -> Array:
    """The product of every element of one vector with every element of another."""
    if (len(a.shape), len(b.shape)) != (1, 1):
        raise trace_error("outer takes two vectors", hint="use a[..., :, None] * b[..., None, :]")
    return a[:, None] * b[None, :]


def vdot(a: Array, b: Array) -> Array:
    """The sum of the products of corresponding elements of two arrays, each in its own order."""
    traced = [x for x in (a, b) if isinstance(x, TracedArray)]
    if not traced:
        return matmul(ravel(a), ravel(b)) if is_tensor(a) else np.vdot(a, b)
    a, b = (traced[0].trace.array(x) for x in (a, b))
    if a.ndim != 1 and FLOAT in (a.kind, b.kind) and a.trace.dims.alike(a.axes, b.axes):
        return sum(a * b)  # no copy has to put elements in order
    return matmul(ravel(a), ravel(b))


def norm(x: Array, ord: Any = None, axis: Axes = None, keepdims: bool = False) -> Array:
    """The norm of vectors along ``axis``, or of a whole array: by default the 2-norm.

    ``ord`` of "fro" or None is the root of the sum of squares. Norms of matrices that need
    singular values are refused.
    """
    over = range(len(x.shape)) if axis is None else (axis,) if isinstance(axis, int) else axis
    x = as_floats(x)
    if ord in (None, "fro") or (ord == 2 and len(over) == 1):
        return sqrt(sum(square(x), axis, keepdims))
    if len(over) == 2 and ord in (1, -1, np.inf, -np.inf):
        inner = over[0] if ord in (1, -1) else over[1]
        return (max if ord > 0 else min)(sum(abs(x), inner, True), axis, keepdims)
    if len(over) != 1 or isinstance(ord, str):
        raise trace_error(
            f"a norm of order {ord!r} over {len(over)} axes cannot be traced",
            hint="norms of vectors have one axis; of matrices, use ord='fro', 1 or inf",
        )
    if ord == np.inf and not has_elements(x, over[0]):
        ord = 1  # 0, as in NumPy
    return vector_norm(x, ord, axis, keepdims)


def vector_norm(x: Array, ord: float, axis: Axes, keepdims: bool) -> Array:
    """The norm of order ``ord`` of all elements along axes, or of all."""
    size = abs(as_floats(x))
    if ord in (np.inf, -np.inf):
        return (max if ord > 0 else min)(size, axis, keepdims)
    if ord == 0:
        return reduce_axes("sum", apply("where", size != 0, 1.0, size), axis, keepdims)
    if ord == 1:
        return sum(size, axis, keepdims)
    return sum(size**ord, axis, keepdims) ** (1 / ord)


def vecdot(x: Array, y: Array, *, axis: int = -1) -> Array:
    """The sums of the products of elements along an axis."""
    return sum(x * y, axis)


def norm_of_vectors(x: Array, *, axis: Axes = None, keepdims: bool = False, ord: Any = 2) -> Array:
    """The norm of vectors along axes, or of all elements."""
    if ord == 2:
        return norm(x, None, axis, keepdims)
    return vector_norm(x, ord, axis, keepdims)


_GROUP = "Products"

ROWS = (
    Row(matmul, _GROUP, ("matmul", "linalg.matmul"), torch=("matmul", "mm", "bmm", "Tensor.matmul"),
        examples=(
        example("M K", "K N"), example("B M K", "K"), example("B M K", "K N"),
        example("int: M K", "int: K N")),
        note="Of integers, exact: no unit for matrices computes it."),
    Row(einsum, _GROUP, ("einsum",), torch=("einsum", "functional.einsum"), examples=(
        example(Text("mk,kn->mn"), "M K", "K N"),
        example(Text("bhqd,bhkd->bhqk"), "B H M K", "B H N K"),
        example(Text("bqhd,bkhd->bhqk"), "B M H K", "B N H K"),
        example(Text("bqhd,hde->bqe"), "B M H K", "H K N"),
        example(Text("mk,k"), "M K", "K"),
        example(Text("bmk,bk->bm"), "B M K", "B K"),
        example(Text("i,j->ij"), "M", "N"),
        example(Text("i,i->"), "M", "M"),
        example(Text("ij->ji"), "M N"),
        example(Text("ijk->j"), "B M N"),
        example(Text("...mk,...kn"), "B M K", "K N"),
        example(Text("b...k,...k->...b"), "B M K", "M K"),
        example(Text("ab,bc,cd->ad"), "M K", "K N", "N L"),
        example(Text("ab,ab,ab->b"), "M K", "M K", "M K"),
        example(Text("abc,cd,b->da"), "B M K", "K N", "M"),
    ), note="Three operands and more meet in pairs; no diagonals."),
    Row(tensordot, _GROUP, ("tensordot",), torch=("tensordot",),
        examples=(example("B M K", "M K N"), example("B M K", "K N", axes=1),
                  example("B M K", "K M N", axes=([2, 1], [0, 1])))),
    Row(dot, _GROUP, ("dot",), ("dot",), ("dot", "Tensor.dot"),
        (example("K", "K"), example("M K", "K N"), example("M K", "K"), example("M K", "B K N"))),
    Row(inner, _GROUP, ("inner",), torch=("inner", "Tensor.inner"),
        examples=(example("K", "K"), example("B M K", "N K"))),
    Row(outer, _GROUP, ("outer", "linalg.outer"), torch=("outer", "ger", "Tensor.outer"),
        examples=(example("M", "N"),), note="Of vectors, which it does not flatten to."),
    Row(vdot, _GROUP, ("vdot",), torch=("vdot", "Tensor.vdot"),
        examples=(example("K", "K"), example("M K", "M K"))),
    Row(norm, _GROUP, ("linalg.norm",), torch=("norm", "linalg.norm", "Tensor.norm"), examples=(
        example("M N"), example("M N", axis=-1), example("M N", 1, axis=0, keepdims=True),
        example("M N", np.inf, axis=1), example("M N", 3, axis=1), example("M N", 0, axis=1),
        example("M N", Text("fro"))),
        note="Norms of vectors, and the Frobenius norm."),
    Row(vecdot, _GROUP, ("vecdot", "linalg.vecdot"), public=False, torch=("linalg.vecdot",),
        examples=(example("M K", "M K"), example("M K", "M K", axis=0))),
    Row(norm_of_vectors, _GROUP, ("linalg.vector_norm",), public=False, examples=(
        example("M N"), example("M N", axis=1, ord=3), example("M N", ord=1, keepdims=True))),
)  # fmt: skip
