"""Attention of few positions: heads in groups of any size, short keys and keys in chunks."""

from __future__ import annotations

from bench.gpu.fuzz.attention import changed
from bench.gpu.fuzz.pen import Pen


def decode(pen: Pen) -> str:
    """One program: each group of heads has keys and values; or a batch of single rows."""
    if pen.chance(0.2):
        rows, inner = pen.pick(2, 7, 16, 17, 33), pen.pick(64, 200, 1024)
        return f"{pen.fresh(rows, 1, inner)} @ {pen.weight(inner, pen.pick(40, 64, 300))}"
    kv, group = pen.pick(1, 2, 3, 8), pen.pick(1, 2, 3, 5, 8, 16, 17)
    queries, keys = pen.pick(1, 1, 1, 2, 4, 7), pen.pick(5, 33, 64, 500, 1000, 2048)
    width = pen.pick(16, 40, 64, 80, 128)
    q, k = pen.fresh(1, kv, group, queries, width), pen.fresh(1, kv, keys, width)
    v = pen.fresh(1, kv, keys, pen.pick(16, 64, 80, 128))
    scores = f"({q} @ {k}[:, :, None].mT) * {width**-0.5:.4g}"
    if pen.chance(0.3):
        slopes = pen.fresh(kv, group)
        places = f"(bb.arange({q}.shape[-2])[:, None] - bb.arange({k}.shape[-2]))"
        scores = f"{scores} - 0.01 * {slopes}[:, :, None, None] * {places}"
    scores = changed(pen, scores, q, k, (queries, keys))
    return f"bb.softmax({scores}, axis=-1) @ {v}[:, :, None]"
