"""`prove_equal` where only a corner differs, and where order alone makes programs equal.

``python -m tests.interp.test_corners 500`` runs more of both and prints what was not as it should.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from fractions import Fraction
from random import Random

import numpy as np
import pytest

from blockbuster.frontend import (
    arange,
    layer_norm,
    max,
    maximum,
    min,
    minimum,
    relu,
    sigmoid,
    softmax,
    sum,
    where,
)
from blockbuster.interp.equal import prove_equal
from blockbuster.interp.evaluate import evaluate
from blockbuster.interp.linear import CONSTANT, solution
from blockbuster.interp.positions import far_sizes, unseen
from blockbuster.rules import fuse, safe
from tests.interp.corners import (
    different_in_a_corner,
    equal_by_order,
    equal_by_rules,
    program,
)
from tests.parameters import rest_slow

PAIRS = range(64)
some_pairs = pytest.mark.parametrize("seed", rest_slow(PAIRS, PAIRS[::4]))


@some_pairs
def test_a_corner_is_never_called_equal(seed):
    kind, a, b = different_in_a_corner(Random(f"c {seed}"))

    proof = prove_equal(a, b)

    assert proof.equal is not True, f"{kind}: {proof}\n{a}{b}"
    if proof.equal is None:
        assert kind in ("position", "size", "row"), proof  # the others are found
        assert "no size tried gets to where" in proof.reason or "longer rows" in proof.reason
    elif proof.counterexample.semantics == "bb.Float64":
        found = proof.counterexample
        outputs = [
            evaluate(g, found.inputs, sizes=found.sizes, block_sizes=found.block_sizes)["out"]
            for g in (a, b)
        ]
        assert not np.allclose(*outputs, rtol=1e-9, atol=0)


@some_pairs
def test_what_order_makes_equal_is_equal(seed):
    kind, a, b = equal_by_order(Random(f"e {seed}"))

    proof = prove_equal(a, b)

    assert proof.equal is True, f"{kind}: {proof}\n{a}{b}"


@pytest.mark.parametrize("seed", range(10))
def test_rules_keep_comparisons(seed):
    _, a, b = equal_by_rules(Random(f"r {seed}"))

    assert prove_equal(a, b).equal is True


def changed(change):
    """x + y, and what ``change`` makes of it."""
    return program(lambda x, y: change(x + y, x, y)), program(lambda x, y: x + y)


def columns(x):
    return arange(x.shape[1])


@pytest.mark.parametrize(
    "change",
    [
        lambda f, x, y: f + relu(x - 3) * relu(4 - x),
        lambda f, x, y: where((x > 10) & (y > 10) & (y < 11), 5.0, f),
        lambda f, x, y: where((x == 7) & (y == 9), 5.0, f),
        lambda f, x, y: where(abs(x - 30) + abs(y - 40) < 0.5, 5.0, f),
        lambda f, x, y: where((x - 30) * (x - 30) + (y - 40) * (y - 40) < 0.25, 5.0, f),
        lambda f, x, y: where((x * y > 1000) & (x * y < 1001) & (x > 100), 5.0, f),
        lambda f, x, y: where((x / (y * y + 1) > 20) & (x / (y * y + 1) < 21), 5.0, f),
        lambda f, x, y: where(sum(x, axis=-1, keepdims=True) == 77, 5.0, f),
        lambda f, x, y: f + relu(max(x, axis=-1, keepdims=True) - 30) * relu(y - 40) * relu(41 - y),
        lambda f, x, y: where((columns(x) > 20) & (x > 3) & (x < 4), 5.0, f),
        lambda f, x, y: where(columns(x) > 1, f + relu(x - 3) * relu(4 - x), f),
        lambda f, x, y: (
            where((x > 10) & (y > 11) & (x + y < 22) & (x < 10.75) & (y < x), 5.0, f)
            + where((x > 10) & (x < 10.5) & (y > 10) & (y < x), 1.0, 0.0)
        ),
    ],
)
def test_witnesses_are_solved_for(change):
    proof = prove_equal(*changed(change))

    assert proof.equal is False
    exec(str(proof.counterexample), {})


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda f, x, y: where((columns(x) - 40) > 40, 5.0, f), "no size tried gets to"),
        (lambda f, x, y: where(columns(x) / 16 < 8, f, 5.0), "no size tried gets to"),
        (lambda f, x, y: where(columns(x) * 0.01 < 1, f, 5.0), "no size tried gets to"),
        (lambda f, x, y: where(columns(x) * columns(x) > 5000, 5.0, f), "no size tried gets to"),
        (
            lambda f, x, y: where(
                (arange(x.shape[0])[:, None] - 40 > columns(x)) & (columns(x) > 40), 5.0, f
            ),
            "no size tried gets to",
        ),
        (lambda f, x, y: where(columns(x) > x.shape[0] + 70.0, 5.0, f), "no size tried gets to"),
        (lambda f, x, y: f + maximum(x * 0 + x.shape[1] * 1.0, 600) - 600, "no size tried gets to"),
        (lambda f, x, y: f + maximum(x - x + x.shape[1], 600) - 600, "no size tried gets to"),
        (
            lambda f, x, y: where(
                sum(where(x > 0, 1.0, 0.0), axis=-1, keepdims=True) > 7, 5.0, f
            ),
            "only longer rows",
        ),
        (
            lambda f, x, y: where(sum(x * 0 + 1, axis=-1, keepdims=True) > 100, 5.0, f),
            "depends on how long rows are",
        ),
        (
            lambda f, x, y: where(sum(x - x + columns(x), axis=-1, keepdims=True) > 3000, 5.0, f),
            "depends on how long rows are",
        ),
        (lambda f, x, y: where(sigmoid(x) < 5 - columns(x), f, 5.0), "only longer rows"),
        (
            lambda f, x, y: f + x * columns(x) * (columns(x) - 1) * (columns(x) - 2)
            * (columns(x) - 3) * (columns(x) - 4),
            "enters? with powers up to",
        ),
        (
            lambda f, x, y: f + x * (x.shape[1] - 1.0) * (x.shape[1] - 2.0) * (x.shape[1] - 3.0)
            * (x.shape[1] - 4.0) * (x.shape[1] - 5.0),
            "enters? with powers up to",
        ),
        (lambda f, x, y: where(x * x == 2, 5.0, f), r"not reached: x\[0, 0\]\*\*2 = 2"),
        (
            lambda f, x, y: f + relu(softmax(x) - 0.9) * relu(y - 33) * relu(34 - y),
            "not reached: ",
        ),
    ],
)  # fmt: skip
def test_what_is_not_reached_is_said(change, why):
    proof = prove_equal(*changed(change))

    assert proof.equal is None
    assert re.search(why, proof.reason), proof.reason


@pytest.mark.parametrize(
    "change",
    [
        lambda f, x, y: where((columns(x) - 20) > 20, 5.0, f),
        lambda f, x, y: where(columns(x) / 4 < 8, f, 5.0),
        lambda f, x, y: where(columns(x) * columns(x) > 1000, 5.0, f),
        lambda f, x, y: where((columns(x) - 7) * (columns(x) - 30) == 0, 5.0, f),
        lambda f, x, y: f + maximum(x * 0 + x.shape[1] * 1.0, 6) - 6,
        lambda f, x, y: where(
            (arange(x.shape[0])[:, None] - 10 > columns(x)) & (columns(x) > 10), 5.0, f
        ),
    ],
)
def test_sizes_get_past_thresholds(change):
    assert prove_equal(*changed(change)).equal is False


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (lambda x, y: relu(x) - relu(x - 6), lambda x, y: minimum(maximum(x, 0), 6)),
        (lambda x, y: max(x, axis=-1) * 2, lambda x, y: min(-2 * x, axis=-1) * -1),
        (
            lambda x, y: maximum(x, minimum(y, 3)),
            lambda x, y: minimum(maximum(x, y), maximum(x, 3)),
        ),
        (lambda x, y: relu(x) * relu(x) + y, lambda x, y: x * relu(x) + y),
        (lambda x, y: x / abs(x) + y, lambda x, y: where(x > 0, 1.0, -1.0) + y),
        (lambda x, y: where((x > y) & (y > 3) & (x < 3), 5.0, x), lambda x, y: x + 0 * y),
        (lambda x, y: where(x * x + 1 > 0, x, y), lambda x, y: x + 0 * y),
        (lambda x, y: relu(x @ y.T) @ y, lambda x, y: ((abs(x @ y.T) + x @ y.T) / 2) @ y),
        (lambda x, y: softmax(relu(x) - relu(-x)) @ y.T, lambda x, y: softmax(x) @ y.T),
        (lambda x, y: layer_norm(relu(x) - relu(-x)) + y, lambda x, y: layer_norm(x) + y),
        (lambda x, y: np.exp(-abs(x)) + y, lambda x, y: np.exp(-where(x < 0, -x, x)) + y),
    ],
)
def test_identities_of_order(one, other):
    proof = prove_equal(program(one), program(other))

    assert proof.equal is True, proof
    assert "in every case of their comparisons at sizes 1, 2" in proof.reason


def test_a_bound_is_printed_for_free_comparisons_only():
    same = prove_equal(program(lambda x, y: relu(x - y)), program(lambda x, y: maximum(x - y, 0)))
    cases = prove_equal(program(lambda x, y: relu(x) - relu(-x) + y), program(lambda x, y: x + y))

    assert (same.equal, same.tier) == (True, "A")
    assert same.false_accept_bound < 1e-15
    assert cases.equal is True
    assert cases.false_accept_bound is None
    assert "no proven bound" in str(cases)


@pytest.mark.parametrize("width", [7, 100, 4096])
def test_far_masks_that_are_the_same_do_not_matter(width):
    def attention(x, y):
        i, j = arange(x.shape[0])[:, None], arange(x.shape[0])
        seen = (i >= j) & (i - j < width)
        return softmax(where(seen, x @ y.T, -np.inf)) @ x

    graph = program(attention)

    assert prove_equal(graph, fuse(graph).final).equal is True
    proof = prove_equal(graph, safe(graph))
    assert (proof.equal, proof.tier) == (True, "B")


def test_thresholds_are_solved_for():
    def far(condition):
        graph = program(lambda x, y: where(condition(columns(x)), x, y))
        return [*map(dict, far_sizes(graph, graph))], unseen(graph, graph, [{"M": 5, "N": 5}])

    assert far(lambda j: j - 20 > 20) == ([{"N": 42}], "no size tried gets to where -N[0] + 40 = 0")
    assert far(lambda j: j * j > 1000)[0] == [{"N": 33}]
    assert far(lambda j: j > 1) == ([], "")
    assert far(lambda j: 2 * j == 41)[0] == [{"N": 22}]


def test_linear_systems():
    def row(constant=0, **factors):
        numbers = {"xyz".index(n): Fraction(f) for n, f in factors.items()}
        return numbers | ({CONSTANT: Fraction(constant)} if constant else {})

    assert solution([row(-3, x=1), row(4, x=-1)], [], []) == {0: Fraction(7, 2)}
    assert solution([row(-4, x=1), row(3, x=-1)], [], []) is None
    assert solution([row(-3, x=1)], [row(3, x=-1)], []) is None
    assert solution([], [row(-3, x=1), row(3, x=-1)], []) == {0: 3}
    assert solution([row(x=1, y=-1), row(y=1, z=-1), row(z=1, x=-1)], [], []) is None
    assert solution([row(x=1)], [], [row(x=1, y=1), row(y=1)]) is None


@pytest.mark.parametrize("seed", range(40))
def test_solutions_of_linear_systems_are_found(seed):
    random = Random(seed)

    def rows(most):
        made = [{n: Fraction(random.randint(-3, 3)) for n in (0, 1, CONSTANT)}
                for _ in range(random.randint(0, most))]  # fmt: skip
        return [{n: c for n, c in row.items() if c} for row in made]

    def at(row, point):
        return row.get(CONSTANT, 0) + row.get(0, 0) * point[0] + row.get(1, 0) * point[1]

    def holds(point):
        return (
            all(at(row, point) > 0 for row in strict)
            and all(at(row, point) >= 0 for row in weak)
            and all(at(row, point) == 0 for row in equal)
        )

    strict, weak, equal = rows(4), rows(3), rows(1)
    found = solution(strict, weak, equal)

    if found is not None:
        assert holds({0: found.get(0, Fraction(0)), 1: found.get(1, Fraction(0))})
    else:
        places = [Fraction(n, 2) for n in range(-12, 13)]
        assert not any(holds({0: x, 1: y}) for x in places for y in places)


def main(count: int) -> None:
    """Verdicts over ``count`` pairs of each kind, misses in full."""
    for make, name, wrong in ((different_in_a_corner, "c", True), (equal_by_order, "e", False)):
        verdicts: Counter[tuple[str, bool | None]] = Counter()
        for seed in range(count):
            kind, a, b = make(Random(f"{name} {seed}"))
            proof = prove_equal(a, b)
            verdicts[kind, proof.equal] += 1
            if proof.equal is wrong:
                print(f"WRONG {name} {seed} {kind}: {proof}")
        print(name, dict(verdicts))


if __name__ == "__main__":
    main(int(sys.argv[1]))
