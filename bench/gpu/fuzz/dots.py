"""Dot-heavy programs: chains and sums of products, gates and norms, small dims beside large ones.

All products keep numbers of size about 1 (the weights are scaled), exponentials are of such numbers
or inside softmax, and conditions compare inputs, which are the same in every precision.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bench.gpu.fuzz.pen import SMALL, TINY, USUAL, Pen


@dataclass(frozen=True)
class Dims:
    """Rows, what is summed over, columns, a narrow dim, the dim of a last product."""

    rows: int
    inner: int
    columns: int
    narrow: int
    last: int


def dots(pen: Pen) -> str:
    """One program: nested products of depth one to three, then an end."""
    dims = Dims(
        pen.pick(17, 64, 64, 100, 128, 176, 300, 1000, pen.size(TINY, SMALL), pen.size(USUAL)),
        pen.pick(16, 64, 88, 128, pen.size(SMALL, USUAL)),
        pen.pick(33, 64, 132, 256, pen.size(SMALL, USUAL)),
        pen.pick(1, 2, 3, 4, 8, 16),
        pen.pick(8, 40, 64, 130),
    )
    body = _matrix(pen, dims, pen.pick(1, 2, 2, 3))
    end = pen.random.randrange(7)
    if end == 0:
        return f"{body} @ {pen.weight(dims.columns, dims.last)}"
    if end == 1:
        return f"bb.softmax({body}, axis=-1) @ {pen.input(dims.columns, dims.last)}"
    if end == 2:
        return f"({body}, {_column(pen, dims, 1)})"
    if end == 3:
        return f"bb.layer_norm({body}, eps=1e-2)"
    if end == 4:
        reduction = pen.pick("sum", "max", "mean", "logsumexp")
        return f"bb.{reduction}({body}, axis={pen.pick(-1, -1, 0)})"
    return body


def _matrix(pen: Pen, dims: Dims, depth: int) -> str:
    """A matrix of rows x columns."""
    forms = LEAVES if depth <= 0 else LEAVES + INNER
    return pen.pick(*forms)(pen, dims, depth - 1)


def _column(pen: Pen, dims: Dims, depth: int) -> str:
    """A matrix of rows x 1."""
    scores = f"({_x(pen, dims)} @ {pen.weight(dims.inner, dims.narrow)})"
    at = pen.random.randrange(dims.narrow)
    form = pen.random.randrange(6)
    if form == 0:
        return f"bb.softmax({scores}, axis=-1)[..., {at}:{at + 1}]"
    if form == 1:
        return f"bb.max({scores}, axis=-1, keepdims=True)"
    if form == 2:
        inner = _matrix(pen, dims, depth - 1)
        return f"bb.mean(bb.square({inner}), axis=-1, keepdims=True)"
    if form == 3:
        return f"bb.logsumexp({scores}, axis=-1)[:, None]"
    if form == 4:
        return f"bb.sigmoid({scores})[..., {at}:{at + 1}]"
    return f"bb.mean({_matrix(pen, dims, depth - 1)}, axis=-1, keepdims=True)"


def _x(pen: Pen, dims: Dims) -> str:
    """What most products read: the same matrix again and again."""
    shape = (dims.rows, dims.inner)
    seen = [name for name, given in pen.inputs.items() if given.shape == shape]
    return seen[0] if seen and pen.chance(0.8) else pen.fresh(*shape)


def _product(pen: Pen, dims: Dims, _: int) -> str:
    return f"({_x(pen, dims)} @ {pen.weight(dims.inner, dims.columns)})"


def _narrow_chain(pen: Pen, dims: Dims, _: int) -> str:
    first = f"({_x(pen, dims)} @ {pen.weight(dims.inner, dims.narrow)})"
    first = f"{pen.activation()}({first})" if pen.chance(0.4) else first
    return f"({first} @ {pen.weight(dims.narrow, dims.columns)})"


def _wide_chain(pen: Pen, dims: Dims, _: int) -> str:
    first = f"({_x(pen, dims)} @ {pen.weight(dims.inner, dims.last)})"
    first = f"{pen.activation()}({first})" if pen.chance(0.5) else first
    return f"({first} @ {pen.weight(dims.last, dims.columns)})"


def _transposed(pen: Pen, dims: Dims, _: int) -> str:
    weight = pen.input(dims.columns, dims.inner, scale=round(dims.inner**-0.5, 4))
    return f"({_x(pen, dims)} @ {weight}.T)"


def _normed(pen: Pen, dims: Dims, _: int) -> str:
    norm = pen.pick("rms_norm", "layer_norm")
    weight = pen.weight(dims.inner, dims.columns)
    return f"(bb.{norm}({_x(pen, dims)}, eps=1e-2) @ {weight})"


LEAVES: tuple[Callable[[Pen, Dims, int], str], ...] = (
    _product, _product, _narrow_chain, _wide_chain, _transposed, _normed,
    lambda pen, dims, _: pen.input(dims.rows, dims.columns),
)  # fmt: skip
INNER: tuple[Callable[[Pen, Dims, int], str], ...] = (
    lambda pen, dims, d: f"({_matrix(pen, dims, d)} * {_column(pen, dims, d)})",
    lambda pen, dims, d: f"({_matrix(pen, dims, d)} * {_column(pen, dims, d)})",
    lambda pen, dims, d: f"({_matrix(pen, dims, d)} + {_matrix(pen, dims, d)})",
    lambda pen, dims, d: f"({_matrix(pen, dims, d)} * {_matrix(pen, dims, d)})",
    lambda pen, dims, d: f"{pen.activation()}({_matrix(pen, dims, d)})",
    lambda pen, dims, d: f"{pen.activation()}({_matrix(pen, dims, d)} + {pen.input(dims.columns)})",
    lambda pen, dims, d: f"bb.softmax({_matrix(pen, dims, d)}, axis=-1)",
    lambda pen, dims, d: (
        f"bb.where({pen.input(dims.rows, dims.columns)} > 0.0, {_matrix(pen, dims, d)}, 0.5)"
    ),
)
