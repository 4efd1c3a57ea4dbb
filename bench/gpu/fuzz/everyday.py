"""Everyday code: masks of positions, lengths and documents, dropout, sinks, norms of residuals.

Masks are any of the conditions from which loops get their bounds, combined at random, with sizes of
several blocks and of less than one; and what masks are used in is more than attention.
"""

from __future__ import annotations

from dataclasses import dataclass

from bench.gpu.fuzz.pen import Pen, Shape

INFINITE = "float('-inf')"


@dataclass(frozen=True)
class Field:
    """A matrix of scores for each element of ``lead``: its queries i and keys j as text."""

    lead: Shape
    queries: int
    keys: int
    i: str
    j: str

    def along(self, name: str, axis: str) -> str:
        """An input over (*lead, queries) or (*lead, keys), as a column or a row."""
        return f"{name}[..., :, None]" if axis == "queries" else f"{name}[..., None, :]"


def everyday(pen: Pen) -> str:
    """One program."""
    return pen.pick(_attention, _attention, _attention, _masked_sums, _norms, _backward)(pen)


def _attention(pen: Pen) -> str:
    queries = pen.pick(1, 16, 33, 64, 100, 200, 257, 600)
    keys = queries if pen.chance(0.6) else pen.pick(1, 7, 64, 130, 300)
    width = pen.pick(16, 32, 40, 64, 128)
    value = width if pen.chance(0.5) else pen.pick(8, 16, 33, 64)
    lead = pen.pick((), (), (pen.pick(1, 2, 3),), (pen.pick(1, 2), pen.pick(1, 2, 4)))
    q, k = pen.fresh(*lead, queries, width), pen.fresh(*lead, keys, width)
    v = k if value == width and pen.chance(0.3) else pen.fresh(*lead, keys, value)
    rows, columns = f"bb.arange({q}.shape[-2])[:, None]", f"bb.arange({k}.shape[-2])"
    field = Field(lead, queries, keys, rows, columns)
    scores = f"({q} @ {k}.mT) * {width**-0.5:.4g}"
    if pen.chance(0.2):
        scores = f"5.0 * bb.tanh(({scores}) * 0.2)"
    if pen.chance(0.8):
        scores = _hidden(pen, condition(pen, field), scores, pen.pick(INFINITE, INFINITE, "-1e4"))
    return _weighed(pen, scores, v, field)


def _weighed(pen: Pen, scores: str, v: str, field: Field) -> str:
    """Values weighed by a softmax, at times changed after it, or with a sink beside it."""
    p, form = f"bb.softmax({scores}, axis=-1)", pen.random.randrange(6)
    if form == 0:
        keep = pen.below(2, *field.lead, field.queries, field.keys)
        return f"({p} * {keep} / 0.9) @ {v}"
    if form == 1:
        return f"({p} * {field.along(pen.fresh(*field.lead, field.keys), 'keys')}) @ {v}"
    if form == 2:
        e, m = pen.local(), pen.local()
        top = f"bb.maximum(bb.max({e}, axis=-1, keepdims=True), 0.5)"
        parts = f"(bb.exp({e} - {m}) @ {v}) / (bb.sum(bb.exp({e} - {m}), axis=-1, keepdims=True)"
        inner = f"(lambda {m}: {parts} + bb.exp(0.5 - {m})))({top})"
        return f"(lambda {e}: {inner})({scores})"
    return f"{p} @ {v}"


def _hidden(pen: Pen, seen: str, x: str, fill: str) -> str:
    """``x`` where ``seen``, said in one of two ways."""
    if pen.chance(0.2):
        return f"bb.where(~({seen}), {fill}, {x})"
    return f"bb.where({seen}, {x}, {fill})"


def condition(pen: Pen, field: Field, depth: int = 2) -> str:
    """Which keys a query sees: comparisons of positions and data, with and, or and not."""
    if depth and pen.chance(0.55):
        left, right = condition(pen, field, depth - 1), condition(pen, field, depth - 1)
        if pen.chance(0.1):
            return f"(~({left}) | ({right}))"
        return f"(({left}) {pen.pick('&', '&', '|')} ({right}))"
    i, j = field.i, field.j
    at = pen.pick(0, 1, 3, 16, 50, 100, field.keys // 2)
    form = pen.random.randrange(11)
    if form <= 2:
        return f"{i} >= {j}"
    if form == 3:
        return f"{i} - {j} < {at}"
    if form == 4:
        return f"{j} < {at}"
    if form == 5:
        return f"bb.abs({i} - {j}) <= {at}"
    if form == 6:
        return f"{i} * {pen.pick(2, 3)} + {at} >= {j}"
    if form == 7:
        return f"{j} < {pen.below(field.keys + 1, *field.lead, 1, 1)}"
    if form == 8:
        return f"{j} <= {field.along(pen.below(field.keys, *field.lead, field.queries), 'queries')}"
    if form == 9 and field.queries == field.keys:
        document = pen.below(5, *field.lead, field.keys, rising=pen.chance(0.7))
        return f"{field.along(document, 'queries')} == {field.along(document, 'keys')}"
    ours = pen.below(4, *field.lead, field.queries, rising=True)
    theirs = pen.below(4, *field.lead, field.keys, rising=pen.chance(0.7))
    return f"{field.along(ours, 'queries')} == {field.along(theirs, 'keys')}"


def _masked_sums(pen: Pen) -> str:
    """Reductions and products of what a mask lets through."""
    rows, columns = pen.pick(1, 33, 64, 200, 300), pen.pick(5, 64, 130, 257, 500)
    x = pen.fresh(rows, columns)
    i, j = f"bb.arange({x}.shape[-2])[:, None]", f"bb.arange({x}.shape[-1])"
    seen = condition(pen, Field((), rows, columns, i, j))
    none, never = _hidden(pen, seen, x, "0.0"), _hidden(pen, seen, x, INFINITE)
    w = pen.weight(columns, pen.pick(16, 64, 100))
    return str(
        pen.pick(
            f"bb.sum({none}, axis=-1)",
            f"bb.sum({none}, axis=0)",
            f"({none}) @ {w}",
            f"bb.maximum(bb.max({never}, axis=-1), -9.0)",
            f"bb.softmax({never}, axis=-1)",
            f"bb.maximum(bb.logsumexp({never}, axis=-1), -50.0)",
            f"bb.relu({none} + 0.5) @ {w}",
            none,
        )
    )


def _norms(pen: Pen) -> str:
    """A norm of a sum, and the sum; with a product behind it at times."""
    rows, columns = pen.pick(1, 16, 33, 200), pen.pick(16, 64, 100, 128, 300, 1000)
    x, r, y = pen.fresh(rows, columns), pen.fresh(rows, columns), pen.local()
    g = pen.fresh(columns)
    norm = pen.pick(
        f"bb.rms_norm({y}, {g})",
        f"bb.layer_norm({y}, {g}, {g})",
        f"{y} * bb.rsqrt(bb.sum({y} * {y}, axis=-1, keepdims=True) + 1.0)",
        f"bb.softmax({y}, axis=-1)",
    )
    if pen.chance(0.3):
        norm = f"({norm}) @ {pen.weight(columns, pen.pick(16, 64, 100))}"
    if pen.chance(0.3):
        norm = f"{y} + bb.tanh({norm})" if "@" not in norm else norm
    results = pen.pick(f"{norm}, {y}", f"{norm}, {y}", f"{y}, {norm}", norm)
    return f"(lambda {y}: ({results}))({x} + {r})"


def _backward(pen: Pen) -> str:
    """The gradients of attention, some of them."""
    queries, keys = pen.pick(16, 64, 100, 200), pen.pick(16, 64, 130, 200)
    width = pen.pick(16, 32, 64)
    lead = pen.pick((), (), (2,), (2, 3))
    q, k = pen.fresh(*lead, queries, width), pen.fresh(*lead, keys, width)
    v, do = pen.fresh(*lead, keys, width), pen.fresh(*lead, queries, width)
    p, dp, ds = pen.local(), pen.local(), pen.local()
    rows, columns = f"bb.arange({q}.shape[-2])[:, None]", f"bb.arange({k}.shape[-2])"
    scores = f"({q} @ {k}.mT) * {width**-0.5:.4g}"
    if pen.chance(0.5):
        scores = f"bb.where({rows} >= {columns}, {scores}, {INFINITE})"
    results = [f"{ds} @ {k}", f"{ds}.mT @ {q}", f"{p}.mT @ {do}"]
    kept = [result for result in results if pen.chance(0.8)] or results[:1]
    change = f"{p} * ({dp} - bb.sum({dp} * {p}, axis=-1, keepdims=True)) * {width**-0.5:.4g}"
    inner = f"(lambda {ds}: ({', '.join(kept)}))({change})"
    return f"(lambda {p}: (lambda {dp}: {inner})({do} @ {v}.mT))(bb.softmax({scores}, axis=-1))"
