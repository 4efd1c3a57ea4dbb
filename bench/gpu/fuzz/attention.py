"""Attention in its variants: batches, heads in groups, masks, positions, biases, soft caps."""

from __future__ import annotations

from bench.gpu.fuzz.pen import Pen

INFINITE = "float('-inf')"


def attention(pen: Pen) -> str:
    """One program. Queries, keys and values are matrices, or have a batch dim, or two."""
    queries = pen.pick(1, 5, 16, 33, 64, 64, 100, 128, 200, 600)
    keys = queries if pen.chance(0.6) else pen.pick(1, 7, 33, 64, 130, 257)
    width, value = pen.pick(16, 32, 40, 64, 128), pen.pick(8, 16, 33, 64, 128)
    form = pen.random.randrange(6)
    if form == 0:
        return _grouped(pen, queries, keys, width, value)
    if form == 1:
        return _from_heads(pen, queries, width)
    if form == 2:
        return _turned(pen, queries, keys, width, value)
    lead = pen.pick((), (), (pen.pick(1, 2, 3),), (pen.pick(1, 2), pen.pick(1, 2, 4)))
    q, k = pen.fresh(*lead, queries, width), pen.fresh(*lead, keys, width)
    v = pen.fresh(*lead, keys, value)
    scores = changed(pen, f"({q} @ {k}.mT) * {width**-0.5:.4g}", q, k, (queries, keys))
    body = f"bb.softmax({scores}, axis=-1) @ {v}"
    if not lead and pen.chance(0.25):
        return f"({body}) @ {pen.weight(value, pen.pick(8, 64, 130))}"
    return body


def changed(pen: Pen, scores: str, q: str, k: str, shape: tuple[int, int]) -> str:
    """Scores with a mask, a bias or a cap, or as they are."""
    rows, columns = f"bb.arange({q}.shape[-2])[:, None]", f"bb.arange({k}.shape[-2])"
    form = pen.random.randrange(7)
    if form == 0:
        return f"bb.where({rows} >= {columns}, {scores}, {pen.pick('-1e4', INFINITE)})"
    if form == 1:
        reach = pen.pick(4, 16, 50)
        seen = f"({rows} - {columns} >= 0) & ({rows} - {columns} < {reach})"
        return f"bb.where({seen}, {scores}, {INFINITE})"
    if form == 2:
        return f"5.0 * bb.tanh(({scores}) * 0.2)"
    if form == 3:
        return f"{scores} + {pen.fresh(*shape)}"
    if form == 4:
        return f"bb.where({pen.fresh(*shape)} > -1.0, {scores}, -1e4)"
    return scores


def _grouped(pen: Pen, queries: int, keys: int, width: int, value: int) -> str:
    """Several heads of queries for one of keys and values."""
    batch, kv, group = pen.pick(1, 2), pen.pick(1, 2, 3), pen.pick(1, 2, 4)
    q, k = pen.fresh(batch, kv, group, queries, width), pen.fresh(batch, kv, keys, width)
    v = pen.fresh(batch, kv, keys, value)
    scores = f"({q} @ {k}[:, :, None].mT) * {width**-0.5:.4g}"
    scores = changed(pen, scores, q, k, (queries, keys))
    return f"bb.softmax({scores}, axis=-1) @ {v}[:, :, None]"


def _from_heads(pen: Pen, rows: int, width: int) -> str:
    """Heads split off a product, and merged again before the last one."""
    heads, inner, lead = pen.pick(1, 2, 4), pen.pick(16, 48, 64), pen.pick((), (2,))
    x = pen.fresh(*lead, rows, inner)
    names = [pen.fresh(inner, heads * width, scale=round(inner**-0.5, 4)) for _ in range(3)]
    q, k, v = (f"bb.split_heads({x} @ {name}, {heads})" for name in names)
    body = f"bb.softmax(({q} @ {k}.mT) * {width**-0.5:.4g}, axis=-1) @ {v}"
    merged = f"bb.merge_heads({body})"
    return f"{merged} @ {pen.weight(heads * width, 40)}" if pen.chance(0.5) else merged


def _turned(pen: Pen, queries: int, keys: int, width: int, value: int) -> str:
    """Rotary positions: halves of the width, turned by an angle per row."""
    half = width // 2

    def turned(rows: int) -> str:
        x, c, s = pen.fresh(rows, width), pen.fresh(rows, half), pen.fresh(rows, half)
        left, right = f"{x}[..., :{half}]", f"{x}[..., {half}:]"
        parts = f"{left} * {c} - {right} * {s}, {left} * {s} + {right} * {c}"
        return f"bb.concat([{parts}], axis=-1)"

    q, k = turned(queries), turned(keys)
    if pen.chance(0.3):
        return q
    scores = f"(({q}) @ ({k}).mT) * {width**-0.5:.4g}"
    return f"bb.softmax({scores}, axis=-1) @ {pen.fresh(keys, value)}"
