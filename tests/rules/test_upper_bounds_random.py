"""Random expressions of random inputs: none that shows to be bounded is ever large."""

from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster.rules.array_terms import Terms
from blockbuster.rules.upper_bounds import LARGEST, Bounds

NUMBERS = (-2.0, 0.5, 3.0, 30.0, 70.0)
DIMS = {"x": "M N", "y": "M N", "c": "M 1"}
SHAPES = {"x": (8, 3), "y": (8, 3), "c": (8, 1)}
UNARY = {
    "-": lambda a: -a,
    "abs": bb.abs,
    "square": lambda a: a * a,
    "tanh": bb.tanh,
    "rows' max": lambda a: bb.max(a, axis=1, keepdims=True),
    "columns' max": lambda a: bb.max(a, axis=0, keepdims=True),
    "rows' min": lambda a: bb.min(a, axis=1, keepdims=True),
    "a - rows' max": lambda a: a - bb.max(a, axis=1, keepdims=True),
    "a - columns' max": lambda a: a - bb.max(a, axis=0, keepdims=True),
    "share": lambda a: bb.abs(a) / bb.sum(bb.abs(a), axis=0, keepdims=True),
} | {f"{n} *": lambda a, n=n: n * a for n in NUMBERS} | {
    f"{n} +": lambda a, n=n: n + a for n in NUMBERS
}  # fmt: skip
BINARY = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "* abs": lambda a, b: a * bb.abs(b),
    "maximum": bb.maximum,
    "minimum": bb.minimum,
    "where": lambda a, b: bb.where(a > b, b, a),
    "where 0": lambda a, b: bb.where(b > 0, a, -1.0),
}


def drawn(random, depth):
    """A random expression: a name, or a function's and its operands."""
    if depth == 0 or random.random() < 0.15:
        return random.choice([*DIMS])
    if random.random() < 0.5:
        return random.choice([*UNARY]), drawn(random, depth - 1)
    again = (drawn(random, depth - 1), drawn(random, depth - 1))
    return random.choice([*BINARY]), *again


def evaluated(tree, arrays, seen):
    """The value of an expression; ``seen`` gets the largest number of each of its parts."""
    if isinstance(tree, str):
        return arrays[tree]
    fn, *parts = tree
    operands = [evaluated(part, arrays, seen) for part in parts]
    made = (UNARY if len(parts) == 1 else BINARY)[fn](*operands)
    seen.append(made)
    return made


def is_bounded(tree):
    def program(x, y, c):
        return evaluated(tree, {"x": x, "y": y, "c": c}, []) + 0.0

    graph, terms = bb.lower(bb.trace(program, **DIMS)), Terms()
    made = terms.values(graph)
    (output,) = graph.outputs
    return Bounds(terms).is_bounded(made[output.value])


@np.errstate(all="ignore")
def assert_never_large(tree, seed):
    random = np.random.default_rng(seed)
    for scale in (1.0, 1e4):
        arrays = {
            name: random.standard_normal(shape) * scale + random.choice([-scale, 0, scale])
            for name, shape in SHAPES.items()
        }
        seen = [np.zeros(1)]
        value = evaluated(tree, arrays, seen)
        digits = max(np.nan_to_num(np.abs(part)).max() for part in seen) * 1e-12
        assert not (value > LARGEST + 1e-6 + digits).any(), tree  # 0 / 0 is not larger


@given(st.integers(0, 2**32), st.integers(2, 5))
def test_what_shows_to_be_bounded_is_never_large(seed, depth):
    random = Random(seed)
    trees = [drawn(random, depth) for _ in range(8)]

    for tree in filter(is_bounded, trees):
        assert_never_large(tree, seed)


def test_many_of_them_show_to_be_bounded():
    random = Random(0)

    assert sum(is_bounded(drawn(random, 1 + at % 4)) for at in range(200)) >= 20
