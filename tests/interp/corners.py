"""Pairs of programs that differ in a corner only, and equal pairs in which comparisons matter.

``different_in_a_corner`` adds to a program what is zero, or changes nothing, except where several
comparisons go one way together: in a narrow window, at a tie, at far positions, at large sizes.
``equal_by_order`` writes one function in two ways that agree by laws of order alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import and_
from random import Random
from typing import Any

import numpy as np

from blockbuster.frontend import (
    abs,
    arange,
    lower,
    max,
    maximum,
    min,
    minimum,
    relu,
    softmax,
    sum,
    trace,
    where,
)
from blockbuster.ir.graph import Graph
from blockbuster.rules import fuse

Pair = tuple[str, Graph, Graph]
Function = Callable[[Any, Any], Any]


def program(function: Function) -> Graph:
    """A function of two matrices as a block program."""
    return lower(trace(function, x="M N", y="M N"))


# corners -------------------------------------------------------------------------------


def different_in_a_corner(random: Random) -> Pair:
    """A program, and one that differs from it in a corner."""
    kind = random.choice(list(CORNERS))
    base = random.choice(BASES)
    corner = CORNERS[kind](random)
    return kind, program(lambda x, y: corner(base(x, y), x, y)), program(base)


BASES: list[Function] = [
    lambda x, y: x * 1 + y * 0,
    lambda x, y: x + 2 * y,
    lambda x, y: relu(x) + y,
    lambda x, y: x * y,
    lambda x, y: maximum(x, y),
]


def value(random: Random, x: Any, y: Any) -> Any:
    """Something that is compared: an input, or what is made of both, or of a row."""
    return random.choice([
        lambda: x, lambda: y, lambda: x + y, lambda: x - 2 * y, lambda: 3 * x,
        lambda: sum(x, axis=-1, keepdims=True), lambda: max(y, axis=-1, keepdims=True),
        lambda: min(x, axis=-1, keepdims=True) + y,
    ])()  # fmt: skip


def conjunction(random: Random):
    """Several comparisons that hold at once where x and y are 2 by 2 of one number each."""
    count, low, width = random.randint(1, 3), random.randint(-30, 30), random.choice([0.5, 1, 2])
    point = np.full((2, 2), low + width / 2), np.full((2, 2), random.randint(-30, 30) + 0.25)
    seeds = [random.randrange(2**30) for _ in range(count)]

    def corner(f, x, y):
        hits = [x > low, x < low + width]
        for seed in seeds:
            bound = float(np.floor(np.min(value(Random(seed), *point)))) - 1
            hits.append(value(Random(seed), x, y) > bound)
        return where(reduce(and_, hits), f + 5, f)

    return corner


def window(random: Random):
    """A product of relus, a relu of a distance, or a clip: a bump."""
    low, width = random.randint(-50, 50), random.choice([0.5, 1, 3])
    kind, seed = random.randrange(4), random.randrange(2**30)

    def corner(f, x, y):
        v = value(Random(seed), x, y)
        return (
            f
            + [
                lambda: relu(v - low) * relu(low + width - v),
                lambda: relu(width - abs(v - low)),
                lambda: minimum(relu(v - low), relu(low + width - v)),
                lambda: maximum(minimum(v - low, low + width - v), 0),
            ][kind]()
        )

    return corner


def tie(random: Random):
    """An equality of data with data or a number."""
    number = random.randint(-9, 9) / 2
    kind = random.randrange(3)

    def corner(f, x, y):
        hit = [lambda: x == y + number, lambda: 2 * x == number, lambda: x - number == 3 * y][kind]
        return where(hit(), f + 1, f)

    return corner


def nested(random: Random):
    """A where in a where in a where."""
    a, b = (random.randint(-20, 20) for _ in range(2))

    def corner(f, x, y):
        return where(x > a, where(y < b, where(x + y > a + b - 1, where(
            x < a + 2, f - 1, f), f), f), f)  # fmt: skip

    return corner


def scaled(random: Random):
    """A threshold that the data scale."""
    number, low = random.randint(2, 30), random.randint(10, 60)

    def corner(f, x, y):
        return where((x > number * y + low) & (y > low) & (x < number * y + low + 1), f + 2, f)

    return corner


def by_sign(random: Random):
    """A sign, made by division, in a window."""
    low = random.randint(5, 60) + 0.25

    def corner(f, x, y):
        sign = (x - low) / abs(x - low)
        other = (x - low - 1) / abs(x - low - 1)
        return f + relu(sign - other - 1)

    return corner


def far_position(random: Random):
    """A position beyond those tried, hidden by arithmetic."""
    kind, far = random.randrange(7), random.randint(66, 5000)

    def corner(f, x, y):
        j = arange(x.shape[1])
        i = arange(x.shape[0])[:, None]
        hit = [
            lambda: (j - far / 2) > far / 2, lambda: j / 16 > far / 16,
            lambda: j * 0.01 > far / 100,
            lambda: (i - far > j) & (j > 3), lambda: j * j > far * far, lambda: i * j > far * 9,
            lambda: maximum(j, far) > far,
        ][kind]  # fmt: skip
        return where(hit(), f + 1, f)

    return corner


def far_size(random: Random):
    """A size beyond those tried, hidden by arithmetic."""
    kind, far = random.randrange(4), random.randint(70, 5000)

    def corner(f, x, y):
        n, m = x.shape[1] * 1.0, x.shape[0] * 1.0
        return f + [
            lambda: maximum(x * 0 + n, far) - far, lambda: relu(x * 0 + n / 4 - far),
            lambda: relu(x * 0 + n * m - far * far), lambda: relu(x * 0 + n - far) * y,
        ][kind]()  # fmt: skip

    return corner


def long_row(random: Random):
    """A count of a row's elements that only long rows have."""
    many = random.randint(6, 40) + 0.5

    def corner(f, x, y):
        count = sum(where(x > 0, 1.0, 0.0), axis=-1, keepdims=True)
        return where(count > many, f + 1, f)

    return corner


CORNERS: dict[str, Callable[[Random], Callable[..., Any]]] = {
    "conjunction": conjunction, "window": window, "tie": tie, "nested": nested, "scaled": scaled,
    "sign": by_sign, "position": far_position, "size": far_size, "row": long_row,
}  # fmt: skip


# equal pairs ---------------------------------------------------------------------------


def equal_by_order(random: Random) -> Pair:
    """Two ways to write one function, inside of other functions."""
    kind = random.choice(list(EQUAL))
    one, other = EQUAL[kind](random)
    around = random.choice(AROUND)
    left, right = random.sample([one, other], 2)
    return (
        kind,
        program(lambda x, y: around(left(x, y), x, y)),
        program(lambda x, y: around(right(x, y), x, y)),
    )


AROUND: list[Callable[..., Any]] = [
    lambda f, x, y: f,
    lambda f, x, y: f * y + x,
    lambda f, x, y: sum(f, axis=-1, keepdims=True) + x,
    lambda f, x, y: relu(f) + y,
    lambda f, x, y: f @ y.T,
    lambda f, x, y: np.exp(f) + y,
]


def _negated(random: Random) -> tuple[Function, Function]:
    n = random.randint(-5, 70)
    return lambda x, y: where(x > n, x, y), lambda x, y: where(x <= n, y, x)


def _demorgan(random: Random) -> tuple[Function, Function]:
    a, b = random.randint(-5, 20), random.randint(-5, 20)
    return (
        lambda x, y: where(~((x > a) & (y < b)), x, 0.0),
        lambda x, y: where((x <= a) | (y >= b), x, 0.0),
    )


def _clip(random: Random) -> tuple[Function, Function]:
    low, width = random.randint(-9, 9), random.randint(0, 9)
    return (
        lambda x, y: minimum(maximum(x + y, low), low + width),
        lambda x, y: maximum(minimum(x + y, low + width), low),
    )


def _scaled(random: Random) -> tuple[Function, Function]:
    n = random.randint(2, 9)
    return lambda x, y: maximum(n * x, n * y), lambda x, y: n * maximum(x, y)


def _causal(random: Random) -> tuple[Function, Function]:
    shift = random.randint(0, 9)

    def masked(condition):
        def attention(x, y):
            i, j = arange(x.shape[0])[:, None], arange(x.shape[0])
            return softmax(where(condition(i, j), x @ y.T, -np.inf)) @ x

        return attention

    return masked(lambda i, j: i + shift >= j), masked(lambda i, j: j - i <= shift)


EQUAL: dict[str, Callable[[Random], tuple[Function, Function]]] = {
    "relu": lambda _: (lambda x, y: relu(x - y), lambda x, y: maximum(x - y, 0)),
    "two relus": lambda _: (lambda x, y: relu(x) - relu(-x) + y, lambda x, y: x + y),
    "abs": lambda _: (lambda x, y: abs(x - y), lambda x, y: maximum(x - y, y - x)),
    "abs of relus": lambda _: (lambda x, y: abs(x), lambda x, y: relu(x) + relu(-x)),
    "max and min": lambda _: (lambda x, y: maximum(x, y) + minimum(x, y), lambda x, y: x + y),
    "max of relu": lambda _: (lambda x, y: maximum(x, y), lambda x, y: y + relu(x - y)),
    "where": lambda _: (lambda x, y: where(x > y, x, y), lambda x, y: maximum(x, y)),
    "min": lambda _: (lambda x, y: minimum(x, y), lambda x, y: -maximum(-x, -y)),
    "sides": lambda _: (lambda x, y: where(x > y, x, 0.0), lambda x, y: where(y < x, x, 0.0)),
    "negated": _negated, "De Morgan": _demorgan, "clip": _clip, "scaled": _scaled,
    "causal": _causal,
}  # fmt: skip


def equal_by_rules(random: Random) -> Pair:
    """A program with comparisons, and what the rules make of it."""
    _, graph, _ = equal_by_order(random)
    return "fused", graph, fuse(graph).final
