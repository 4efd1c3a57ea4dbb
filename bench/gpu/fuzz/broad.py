"""Broad programs: views, masks, batch dims, norms, concatenations and products in one another.

A program is written from its result inwards: ``_value`` gives an expression of a shape, whose parts
have shapes that fit. What keeps it well-conditioned: products have scaled weights, or are divided
by the root of what they sum over; differences are of independent inputs; conditions compare inputs
or indices, never computed numbers; norms have an eps of 1e-2, so that a row of equal numbers is not
blown up; logarithms, roots and quotients stay away from zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from bench.gpu.fuzz.pen import MOST, SMALL, TINY, USUAL, Pen, Shape

Form = Callable[[Pen, Shape, int], str]


def broad(pen: Pen) -> str:
    """One program of one or two results."""
    axes = pen.pick(1, 2, 2, 2, 3, 3, 4)
    lead = tuple(pen.pick(1, 2, 3) for _ in range(max(axes - 2, 0)))
    shape = (*lead, *(pen.size(TINY, SMALL, USUAL) for _ in range(min(axes, 2))))
    body = _value(pen, shape, pen.pick(2, 3, 3, 4))
    form = pen.random.randrange(12)
    if form in (0, 1):
        other = f"bb.{pen.pick('sum', 'max', 'mean')}({_value(pen, shape, 1)}, axis=-1)"
        return f"({body}, {other})"
    if form == 2:
        t = pen.local()
        parts = pen.pick(
            f"{t}, bb.mean({t}, axis=0)", f"bb.max({t}, axis=-1), {t}, bb.tanh({t})",
            f"{t}, {t}", f"{t}, {pen.input(*shape)} > 0.5",
        )  # fmt: skip
        return f"(lambda {t}: ({parts}))({body})"
    if form == 3:
        cut = pen.pick("", "[..., :4]", "[..., None]", "[..., 0]", "[:1]")
        return f"bb.astype({body}, {pen.pick('float32', 'float16')!r}){cut}"
    return body


def _value(pen: Pen, shape: Shape, depth: int) -> str:
    """An expression of this shape."""
    if depth <= 0 or math.prod(shape) > MOST:
        return _leaf(pen, shape, 0)
    forms = [form for least, most, form in FORMS if least <= len(shape) <= most]
    return str(pen.random.choice(forms)(pen, shape, depth - 1))


def _leaf(pen: Pen, shape: Shape, _: int) -> str:
    if len(shape) > 1 and pen.chance(0.15):
        wide = tuple(1 if pen.chance(0.5) else n for n in shape)[pen.pick(0, 1) :]
        return f"({pen.input(*shape)} + {pen.input(*wide)})"
    return pen.input(*shape)


def _unary(pen: Pen, shape: Shape, depth: int) -> str:
    x = _value(pen, shape, depth)
    forms = (
        f"{pen.activation()}({x})", f"{pen.activation()}({x})", f"({x} * 0.5 + 1)",
        f"bb.exp(-bb.abs({x}))", f"bb.log(1 + bb.square({x}))", f"bb.rsqrt(bb.square({x}) + 0.5)",
        f"bb.maximum({x}, -0.2)", f"(-{x})",
    )  # fmt: skip
    return str(pen.pick(*forms))


def _binary(pen: Pen, shape: Shape, depth: int) -> str:
    x = _value(pen, shape, depth)
    if pen.chance(0.2):
        return f"({x} - {pen.fresh(*shape)})"
    y = _value(pen, shape, depth - pen.pick(0, 1))
    forms = (
        f"({x} + {y})", f"({x} * bb.tanh({y}))", f"({x} / (1 + bb.square({y})))",
        f"bb.maximum({x}, {y})",
    )  # fmt: skip
    return str(pen.pick(*forms))


def _by_row(pen: Pen, shape: Shape, depth: int) -> str:
    axis = pen.random.randrange(len(shape))
    inner = (*shape[:axis], pen.size(TINY, SMALL, USUAL), *shape[axis + 1 :])
    fold = f"bb.{pen.pick('mean', 'max', 'min')}({_value(pen, inner, depth)}, axis={axis}"
    return f"({_value(pen, shape, depth)} {pen.pick('*', '+')} {fold}, keepdims=True))"


def _norm(pen: Pen, shape: Shape, depth: int) -> str:
    x = _value(pen, shape, depth)
    axis = pen.random.randrange(len(shape))
    if pen.chance(0.15):
        return f"bb.rms_norm({x}, {pen.input(shape[-1])}, eps=1e-2)"
    forms = (
        f"bb.softmax({x}, axis={axis})", f"bb.softmax({x}, axis=-1)",
        f"bb.log_softmax({x}, axis=-1)", f"bb.layer_norm({x}, eps=1e-2)",
        f"bb.rms_norm({x}, eps=1e-2)",
        f"({x} - bb.mean({x}, axis=-1, keepdims=True))",
    )  # fmt: skip
    return str(pen.pick(*forms))


def _product(pen: Pen, shape: Shape, depth: int) -> str:
    *lead, m, n = shape
    k = pen.size(TINY, SMALL, USUAL)
    left = _value(pen, (*lead, m, k), depth)
    if pen.chance(0.5):
        return f"({left} @ {pen.weight(k, n, *(lead if pen.chance(0.4) else ()))})"
    right = _value(pen, (*lead, k, n), depth - 1)
    return f"(({left} @ {right}) * {k**-0.5:.4g})"


def _turned(pen: Pen, shape: Shape, depth: int) -> str:
    *lead, m, n = shape
    if pen.chance(0.5):
        return f"{_parted(_value(pen, (*lead, n, m), depth))}.mT"
    k = pen.size(SMALL, USUAL)
    left, right = _value(pen, (*lead, m, k), depth), _value(pen, (*lead, n, k), depth - 1)
    return f"(({left} @ {_parted(right)}.mT) * {k**-0.5:.4g})"


def _permuted(pen: Pen, shape: Shape, depth: int) -> str:
    order = list(range(len(shape)))
    pen.random.shuffle(order)
    given = [0] * len(shape)
    for place, axis in enumerate(order):
        given[axis] = shape[place]
    return f"bb.transpose({_value(pen, tuple(given), depth)}, {tuple(order)})"


def _sliced(pen: Pen, shape: Shape, depth: int) -> str:
    axis, more = pen.random.randrange(len(shape)), pen.pick(1, 2, 5, 16)
    n = shape[axis]
    low = pen.random.randint(0, more)
    inner = (*shape[:axis], n + more, *shape[axis + 1 :])
    return f"{_parted(_value(pen, inner, depth))}[{':, ' * axis}{low}:{low + n}]"


def _concat(pen: Pen, shape: Shape, depth: int) -> str:
    axis = pen.random.randrange(len(shape))
    n = shape[axis]
    if n < 2:
        return _binary(pen, shape, depth)
    first = pen.random.randint(1, n - 1)
    parts = [
        _value(pen, (*shape[:axis], size, *shape[axis + 1 :]), depth - at)
        for at, size in enumerate((first, n - first))
    ]
    return f"bb.concat([{', '.join(parts)}], axis={axis})"


def _where(pen: Pen, shape: Shape, depth: int) -> str:
    x = _value(pen, shape, depth)
    other = _value(pen, shape, depth - 2) if pen.chance(0.3) else pen.pick("0.0", "-1.0")
    if len(shape) < 2 or pen.chance(0.4):
        mask = f"{pen.input(*pen.pick(shape, shape[-1:]))} > {pen.pick(0.0, -0.5)}"
        return f"bb.where({mask}, {x}, {other})"
    known = _whole(pen, shape)
    row, column = f"bb.arange({known}.shape[-2])[:, None]", f"bb.arange({known}.shape[-1])"
    mask = pen.pick(
        f"{row} >= {column}", f"({row} - {column} >= 0) & ({row} - {column} < 7)",
        f"{column} < {max(1, shape[-1] - 3)}",
    )  # fmt: skip
    return f"bb.where({mask}, {x}, {other})"


def _whole(pen: Pen, shape: Shape) -> str:
    """An input that shows how long the axes are."""
    alike = [name for name, given in pen.inputs.items() if given.shape == shape]
    return alike[0] if alike else pen.fresh(*shape)


def _folded(pen: Pen, shape: Shape, depth: int) -> str:
    axis = pen.random.randint(0, len(shape))
    n = pen.size(TINY, SMALL, USUAL)
    inner = _value(pen, (*shape[:axis], n, *shape[axis:]), depth)
    name = pen.pick("mean", "max", "min", "sum", "logsumexp")
    if name == "sum":
        return f"(bb.sum({inner}, axis={axis}) * {n**-0.5:.4g})"
    return f"bb.{name}({inner}, axis={axis})"


def _spread(pen: Pen, shape: Shape, depth: int) -> str:
    column = _value(pen, shape[:-1], depth)
    return f"({_value(pen, shape, depth)} * {_parted(column)}[..., None])"


def _heads(pen: Pen, shape: Shape, _: int) -> str:
    *lead, heads, rows, width = shape  # only a product, or an input, is split
    x = pen.fresh(*lead, rows, k := pen.pick(16, 40))
    return f"bb.split_heads({x} @ {pen.weight(k, heads * width)}, {heads})"


def _merged(pen: Pen, shape: Shape, depth: int) -> str:
    *lead, rows, columns = shape
    heads = next((h for h in (4, 2, 3) if columns % h == 0), 1)
    x = _value(pen, (*lead, heads, rows, columns // heads), depth)
    return f"bb.merge_heads({x})"


def _picked(pen: Pen, shape: Shape, depth: int) -> str:
    axis, n = pen.random.randint(0, len(shape)), pen.size(TINY, SMALL)
    inner = _value(pen, (*shape[:axis], n, *shape[axis:]), depth)
    return f"{_parted(inner)}[{':, ' * axis}{pen.random.randrange(n)}]"


def _shared(pen: Pen, shape: Shape, depth: int) -> str:
    """A computed value that is used several times."""
    t, axis = pen.local(), pen.random.randrange(len(shape))
    forms = [
        f"{t} * bb.mean({t}, axis={axis}, keepdims=True)", f"{t} + bb.softmax({t}, axis={axis})",
        f"bb.tanh({t}) * {t}", f"{t} - bb.max({t}, axis={axis}, keepdims=True)",
        f"bb.exp({t} - bb.max({t}, axis=-1, keepdims=True))",
        f"bb.rms_norm({t}, eps=1e-2) + bb.tanh({t})",
    ]  # fmt: skip
    if len(shape) > 1:
        m, n = shape[-2:]
        forms += 2 * [f"(({t} @ {t}.mT) * {n**-0.5:.4g}) @ {t} * {m**-0.5:.4g}"]
        forms += [f"bb.softmax({t} @ {t}.mT * {n**-0.5:.4g}, axis=-1) @ {t}"]
        if m == n:
            forms += [f"{t} + {t}.mT", f"{t} @ {t} * {n**-0.5:.4g}"]
    return f"(lambda {t}: {pen.pick(*forms)})({_value(pen, shape, depth)})"


def _parted(text: str) -> str:
    """The expression, in parentheses unless it is a name or a call."""
    return text if text.isidentifier() or text.startswith(("bb.", "(")) else f"({text})"


FORMS: tuple[tuple[int, int, Form], ...] = (
    (1, 4, _leaf), (1, 4, _unary), (1, 4, _unary), (1, 4, _binary), (1, 4, _binary),
    (1, 4, _by_row), (1, 4, _norm), (1, 4, _norm), (2, 4, _product), (2, 4, _product),
    (2, 4, _turned), (2, 4, _permuted), (1, 4, _sliced), (1, 4, _concat), (1, 4, _where),
    (2, 4, _where), (1, 3, _folded), (2, 4, _spread), (3, 4, _heads), (2, 3, _merged),
    (1, 3, _picked), (1, 4, _shared), (2, 3, _shared),
)  # fmt: skip
