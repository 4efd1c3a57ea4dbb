"""Programs like those that were found wrong, with the sizes of then and others near them."""

from __future__ import annotations

from collections.abc import Callable

from bench.gpu.fuzz.pen import Pen


def found(pen: Pen) -> str:
    """One program."""
    return pen.pick(*FOUND)(pen)


def _chained(pen: Pen) -> str:
    rows, inner = pen.pick(64, 17, 176, 300), pen.pick(64, 88, 128)
    middle, last = pen.pick(33, 40, 64, 20), pen.pick(8, 16, 3, 40)
    x, a, w = pen.fresh(rows, inner), pen.weight(inner, middle), pen.weight(middle, last)
    return f"({x} @ {a}) @ {w}"


def _weighed_by_softmax(pen: Pen) -> str:
    rows, inner, columns = pen.pick(64, 176, 300), pen.pick(64, 88), pen.pick(64, 132, 256)
    narrow = pen.pick(2, 4, 8)
    x, g, a = pen.fresh(rows, inner), pen.weight(inner, narrow), pen.weight(inner, columns)
    at = pen.random.randrange(narrow)
    return f"bb.softmax({x} @ {g}, axis=-1)[..., {at}:{at + 1}] * ({x} @ {a})"


def _norm_of_two(pen: Pen) -> str:
    rows, inner, columns = pen.pick(64, 176), pen.pick(88, 64, 128), pen.pick(64, 132, 256)
    narrow = pen.pick(8, 4, 16)
    x, b = pen.fresh(rows, inner), pen.fresh(inner, columns, scale=round(inner**-0.5, 4))
    g, h = pen.weight(inner, narrow), pen.weight(narrow, columns)
    norm = pen.pick("layer_norm", "rms_norm")
    return f"bb.{norm}({x} @ {b} + ({x} @ {g}) @ {h})"


def _two_experts(pen: Pen) -> str:
    rows, inner, columns = pen.pick(64, 176, 100), pen.pick(64, 88, 128), pen.pick(64, 132)
    x, g = pen.fresh(rows, inner), pen.weight(inner, 2)
    one, two = (pen.fresh(inner, columns, scale=round(inner**-0.5, 4)) for _ in range(2))
    gate = f"bb.softmax({x} @ {g}, axis=-1)"
    return f"{gate}[..., 0:1] * ({x} @ {one}) + {gate}[..., 1:2] * ({x} @ {two})"


def _low_rank(pen: Pen) -> str:
    rows, inner, columns = pen.pick(64, 176), pen.pick(64, 128), pen.pick(64, 132, 256)
    rank = pen.pick(4, 8, 16)
    x, w = pen.fresh(rows, inner), pen.weight(inner, columns)
    a, b = pen.weight(inner, rank), pen.weight(rank, columns)
    return f"{pen.activation()}({x} @ {w} + 0.5 * (({x} @ {a}) @ {b}))"


def _softmax_twice(pen: Pen) -> str:
    n = pen.pick(33, 64, 100)
    x = pen.fresh(n, n)
    below = f"bb.arange({x}.shape[0])[:, None] >= bb.arange({x}.shape[1])"
    inner = f"bb.softmax(bb.where({below}, {x}, -1.0), axis=-1)"
    return pen.pick(f"bb.softmax({inner}, axis=-1) @ {x}.T", f"{inner} @ bb.tanh({x})")


def _batch_by_concat(pen: Pen) -> str:
    x, y = pen.fresh(33, 40), pen.fresh(pen.pick(1, 2), 64, 33)
    return f"bb.sum(bb.concat([{y}, {y}], axis=0) @ {x}, axis={pen.pick(0, 1, -1)})"


def _entropy(pen: Pen) -> str:
    x = pen.fresh(pen.pick(64, 300), pen.pick(33, 257))
    return f"-bb.sum(bb.softmax({x}, axis=-1) * bb.log_softmax({x}, axis=-1), axis=-1)"


FOUND: tuple[Callable[[Pen], str], ...] = (
    _chained, _chained, _weighed_by_softmax, _norm_of_two, _two_experts, _low_rank,
    _softmax_twice, _batch_by_concat, _entropy,
)  # fmt: skip
