"""Random programs of heads: what all heads of a group share, what each has, biases and masks."""

import numpy as np

import blockbuster as bb

BIASES = ("G 1 1", "G M 1", "G 1 N", "M 1", "N", "M N", "H 1 1 1", "G M N")
"""Axes of arrays that are added to the scores [H, G, M, N], by their last ones."""


def grouped_graph(random):
    """Scores of heads that share keys, with random biases and a mask, and what becomes of them."""
    biases = random.sample(BIASES, random.randint(0, 2))
    sign, ending = random.choice((-1, 1)), random.choice(ENDINGS)
    masked = random.random() < 0.5

    def scores(q, k, *given):
        s = q @ k.swapaxes(-1, -2)[:, None]
        for bias in given:
            s = s + bias
        if masked:
            seen = sign * bb.arange(q.shape[-2])[:, None] <= sign * bb.arange(k.shape[-2]) + 1
            s = bb.where(seen, s, -np.inf if ending is attended else 0.0)
        return s

    def program(q, k, v, *given):
        return ending(scores(q, k, *given), v)

    dims = dict(q="H G M D", k="H N D", v="H N L")
    dims |= {f"b{at}": bias for at, bias in enumerate(biases)}
    return bb.lower(bb.trace(named(program, len(biases)), **dims))


def named(program, biases):
    """``program`` with an argument of its own for every bias."""
    by_count = (
        program,
        lambda q, k, v, b0: program(q, k, v, b0),
        lambda q, k, v, b0, b1: program(q, k, v, b0, b1),
    )
    return by_count[biases] if biases else lambda q, k, v: program(q, k, v)


def attended(s, v):
    return bb.softmax(s, axis=-1) @ v[:, None]


def applied(s, v):
    return bb.maximum(s, 0.0) @ v[:, None]


def totals(s, v):
    return s.sum(-1), bb.maximum(s, 0.0) @ v[:, None]


def stored(s, v):
    return s, v


def of_columns(s, v):
    return s.sum(-2), v


ENDINGS = (attended, attended, applied, totals, stored, of_columns)
