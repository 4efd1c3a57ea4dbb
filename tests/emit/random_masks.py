"""Random conditions on positions and data, as Python text: i and j count rows and columns, n is a
vector of the rows, h a number.
"""

import re

import numpy as np

import blockbuster as bb

COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
FACTORS = (-2, -1, 2, 3, 0.5)


LEAVES = ("j", "j", "i", "i", "3", "(j // 4)", "((i - 7) // 3)", "n", "h")
PLACES = LEAVES[:7]


def random_number(random, depth, leaves=LEAVES):
    """A number made of positions, data and constants."""
    drawn = random.random()
    if drawn < 0.6 or depth <= 0:
        chosen = random.choice(leaves)
        return str(random.randint(-3, 12)) if chosen == "3" else chosen
    inner = random_number(random, depth - 1, leaves)
    if drawn < 0.78:
        return f"({inner} {random.choice('+-')} {random_number(random, depth - 1, leaves)})"
    if drawn < 0.86:
        return f"({random.choice(FACTORS)} * {inner})"
    if drawn < 0.92:
        return f"np.abs({inner})"
    larger = random.choice(("maximum", "minimum"))
    return f"np.{larger}({inner}, {random_number(random, depth - 1, leaves)})"


def random_condition(random, depth, leaves=LEAVES):
    """A tree of and, or, not over comparisons."""
    drawn = random.random() if depth > 0 else 1.0
    if drawn < 0.6:
        inner = random_condition(random, depth - 1, leaves)
        if drawn >= 0.5:
            return f"(~{inner})"
        sign = "&" if drawn < 0.3 else "|"
        return f"({inner} {sign} {random_condition(random, depth - 1, leaves)})"
    left, right = (random_number(random, 2, leaves) for _ in range(2))
    if not re.search("[ijnh]", re.sub(r"np\.\w+", "", left + right)):
        left = f"({left} + 0 * j)"  # two constants compare to a number of Python's
    return f"({left} {random.choice(COMPARISONS)} {right})"


def masked_graph(random):
    """Sums, maxima, attention, or scores that are stored, under a random mask of positions; some
    also under one in memory.
    """
    while "j" not in (text := random_condition(random, random.randint(0, 2), PLACES)):
        pass
    seen = eval(f"lambda i, j: {text}", {"np": np})

    def mask(x, held=None):
        found = seen(bb.arange(x.shape[0])[:, None], bb.arange(x.shape[1]))
        return found if held is None else found & held

    def total(x, held=None):
        return bb.where(mask(x, held), x, 0.0).sum(-1)

    def largest(x, held=None):
        return bb.where(mask(x, held), x, -np.inf).max(-1)

    def attention(q, k, v, held=None):
        scores = q @ k.T
        return bb.softmax(bb.where(mask(scores, held), scores, -np.inf), axis=-1) @ v

    def stored(q, k):
        scores = q @ k.T
        return bb.where(mask(scores), scores, random.choice((0.0, -1.0, -np.inf)))

    of_dots = dict(q="M D", k="N D", v="N L")
    chosen, axes = random.choice(
        (
            (total, dict(x="M N")),
            (largest, dict(x="M N")),
            *[(attention, of_dots)] * 2,
            *[(stored, dict(q="M D", k="N D"))] * 2,
        )
    )
    if chosen is not stored and random.random() < 0.4:
        axes |= dict(held=random.choice(("bool: M N", "bool: N")))
    return bb.lower(bb.trace(chosen, **axes))
