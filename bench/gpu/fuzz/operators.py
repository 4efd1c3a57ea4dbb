"""Single operators over many shapes, and reductions over columns in particular."""

from __future__ import annotations

import math
from collections.abc import Callable

from bench.gpu.fuzz.pen import LARGE, MOST, SMALL, TINY, USUAL, Pen, Shape


def shape_of(pen: Pen, *lengths: int) -> Shape:
    """A shape with one of these numbers of axes, small dims beside large ones."""
    axes = pen.pick(*(lengths or (1, 2, 2, 2, 3, 4)))
    while True:
        shape = tuple(pen.size() for _ in range(axes))
        if axes == 2 and pen.chance(0.15):
            shape = (pen.pick(1000, 3000, 10_000), pen.pick(1, 3, 8, 33, 64))
        if math.prod(shape) <= MOST // 2:
            return shape


def operators(pen: Pen) -> str:
    """One program: an operator, at times of or beside an elementwise one."""
    return pen.pick(*FORMS)(pen)


def _elementwise(pen: Pen, x: str, shape: Shape) -> str:
    """What a reduction reads: numbers of size about 1, far from any edge of a domain."""
    if pen.chance(0.1):
        return f"{x} * {pen.fresh(*shape)}"
    forms = (
        x, x, x, f"bb.square({x})", f"bb.exp(-bb.abs({x}))", f"bb.tanh({x})", f"({x} * 0.5 + 1)",
        f"bb.where({x} > 0.0, {x}, {pen.pick('0.0', '-0.5')})",
    )  # fmt: skip
    return str(pen.pick(*forms))


def _reduction(pen: Pen) -> str:
    shape = shape_of(pen)
    x = pen.shifted(*shape)
    inner = _elementwise(pen, x, shape)
    name = pen.pick("sum", "mean", "max", "min", "logsumexp")
    keep = ", keepdims=True" if pen.chance(0.3) else ""
    axes = len(shape)
    axis = pen.random.randrange(axes) - pen.pick(0, axes)
    if name != "logsumexp" and pen.chance(0.25):
        chosen = sorted(pen.random.sample(range(axes), pen.random.randint(1, axes)))
        axis = pen.pick(None, tuple(chosen))
    return f"bb.{name}({inner}, axis={axis}{keep})"


def _along(pen: Pen) -> str:
    shape = shape_of(pen, 1, 2, 2, 3)
    x = pen.shifted(*shape)
    name = pen.pick("softmax", "log_softmax", "softmax")
    return f"bb.{name}({x}, axis={pen.random.randrange(len(shape))})"


def _norm(pen: Pen) -> str:
    shape = shape_of(pen, 2, 2, 3)
    x = pen.shifted(*shape)
    if pen.chance(0.5):
        weight = f", {pen.fresh(shape[-1])}" if pen.chance(0.5) else ""
        return f"bb.rms_norm({x}{weight}, eps=1e-2)"
    weights = f", {pen.fresh(shape[-1])}, {pen.fresh(shape[-1])}" if pen.chance(0.5) else ""
    return f"bb.layer_norm({x}{weights}, eps=1e-2)"


def _broadcast(pen: Pen) -> str:
    shape = shape_of(pen, 2, 2, 3)
    other = tuple(1 if pen.chance(0.4) else n for n in shape)[pen.pick(0, 0, 1) :]
    x, y = pen.fresh(*shape), pen.fresh(*other)
    forms = (
        f"{x} + {y}", f"{x} * {y}", f"{x} / (1 + bb.square({y}))", f"bb.maximum({x}, {y})",
        f"bb.minimum({x}, 0.5) - {y}", f"bb.where({y} > 0.0, {x}, -1.0)",
        f"{pen.activation()}({x} * {y})", f"bb.sqrt(bb.square({x}) + 0.1) * {y}",
        f"bb.log(1 + bb.square({x} + {y}))", f"bb.reciprocal(1 + bb.abs({x})) * {y}",
    )  # fmt: skip
    return str(pen.pick(*forms))


def _matmul(pen: Pen) -> str:
    m, k, n = (pen.size() for _ in range(3))
    lead = pen.pick((), (), (pen.pick(1, 2, 3, 5),))
    shared = bool(lead) and pen.chance(0.4)
    left = pen.fresh(*lead, k, m) + ".mT" if pen.chance(0.25) else pen.fresh(*lead, m, k)
    scale = round(k**-0.5, 4)
    right_lead = () if shared else lead
    if pen.chance(0.3):
        right = pen.fresh(*right_lead, n, k, scale=scale) + ".mT"
    else:
        right = pen.fresh(*right_lead, k, n, scale=scale)
    body = f"{left} @ {right}"
    form = pen.random.randrange(4)
    if form == 0:
        return f"{pen.activation()}({body} + {pen.fresh(n)})"
    if form == 1:
        return f"({body}).mT"
    return body


def _moved(pen: Pen) -> str:
    shape = shape_of(pen, 2, 3, 4)
    x = pen.fresh(*shape)
    form = pen.random.randrange(4)
    if form == 0:
        order = list(range(len(shape)))
        pen.random.shuffle(order)
        return f"bb.transpose({x}, {tuple(order)}) * 0.5"
    if form == 1:
        axis = pen.random.randrange(len(shape))
        other = (*shape[:axis], pen.size(TINY, SMALL), *shape[axis + 1 :])
        return f"bb.concat([{x}, bb.tanh({pen.fresh(*other)})], axis={axis})"
    axis = pen.random.randrange(len(shape))
    n = shape[axis]
    low, high = sorted((pen.random.randrange(n), pen.random.randint(1, n)))
    high = max(high, low + 1)
    return f"bb.exp(-bb.abs({x}[{':, ' * axis}{low}:{high}]))"


def _masked(pen: Pen) -> str:
    rows, columns = pen.size(), pen.size()
    x = pen.fresh(rows, columns)
    i, j = f"bb.arange({x}.shape[0])[:, None]", f"bb.arange({x}.shape[1])"
    mask = pen.pick(
        f"{i} >= {j}", f"{i} < {j}", f"{j} < {max(columns // 2, 1)}", f"{i} == {j}",
        f"({i} - {j} >= 0) & ({i} - {j} < 5)", f"{x} > 0.25",
    )  # fmt: skip
    body = f"bb.where({mask}, {x}, {pen.pick('0.0', '-1.0')})"
    form = pen.random.randrange(4)
    if form == 0:
        return f"bb.softmax({body}, axis=-1)"
    if form == 1:
        return f"bb.{pen.pick('sum', 'max', 'mean')}({body}, axis={pen.pick(0, 1)})"
    return body


FORMS: tuple[Callable[[Pen], str], ...] = (
    _reduction, _reduction, _reduction, _along, _norm, _broadcast, _matmul, _matmul, _moved,
    _masked,
)  # fmt: skip


def columns(pen: Pen) -> str:
    """One program: a reduction over rows, of few or many rows, columns that are no round number."""
    rows = pen.pick(2, 3, 5, 8, 8, 16, 40, 100, 257, 1000, 10_000)
    width = pen.pick(100, 130, 200, 257, 300, 511, 1000, 1023) if rows < 10_000 else 200
    width = pen.pick(width, width, pen.size(SMALL, USUAL, LARGE))
    lead = (pen.pick(1, 2, 3),) if rows <= 257 and pen.chance(0.2) else ()
    shape, axis = (*lead, rows, width), len(lead)
    x = pen.shifted(*shape)
    inner = _elementwise(pen, x, shape)
    first, second = (pen.pick("sum", "mean", "max", "min") for _ in range(2))
    folded = f"bb.{first}({inner}, axis={axis})"
    form = pen.random.randrange(8)
    if form == 0:
        return f"({folded}, bb.{second}({x}, axis={axis}))"
    if form == 1:
        return f"bb.softmax({x}, axis={axis})"
    if form == 2:
        return f"bb.logsumexp({inner}, axis={axis})"
    if form == 3:
        return f"{x} - bb.mean({inner}, axis={axis}, keepdims=True)"
    if form == 4:
        return f"({folded}, bb.{second}({x}, axis=-1))"
    return folded
