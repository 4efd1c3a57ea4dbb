"""`prove_equal` on pairs that are equal by construction, and on pairs that differ by one edit.

``python -m tests.interp.test_proof_pairs 500`` runs more of them and prints the rates.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from random import Random

import pytest

from blockbuster.interp.equal import prove_equal
from tests.interp.pairs import different_pair, equal_pair, told_apart
from tests.parameters import rest_slow

PAIRS = range(40)


@pytest.mark.parametrize("seed", rest_slow(PAIRS, PAIRS[::4]))
def test_equal_pairs_are_equal(seed):
    kind, a, b = equal_pair(Random(f"equal {seed}"))

    proof = prove_equal(a, b)

    assert proof.equal, f"{kind}\n{proof}\n{a}{b}"


@pytest.mark.parametrize("seed", rest_slow(PAIRS, PAIRS[::4]))
def test_different_pairs_are_different(seed):
    kind, a, b = different_pair(Random(f"different {seed}"))

    proof = prove_equal(a, b)

    assert proof.equal is False, f"{kind}\n{proof}\n{a}{b}"


@pytest.mark.parametrize(
    ("safely", "fewest"),
    [(False, {"A": 29, "B": 28, "ordered": 9}), (True, {"A": 29, "B": 28, "ordered": 0})],
)
def test_each_tier_by_itself_tells_most_pairs_apart(safely, fewest):
    """The kill rate of the tiers without a bound, on edits that float64 sees."""
    verdicts = told_apart(30, safely=safely)

    assert verdicts["A"]["agree"] == 0
    for tier, least in fewest.items():
        assert verdicts[tier]["differ"] >= least, verdicts
        assert verdicts[tier]["agree"] <= 1, verdicts


def main(count: int) -> None:
    """Verdicts over ``count`` pairs of each kind, misses in full."""
    for make, name, wanted in ((equal_pair, "equal", True), (different_pair, "different", False)):
        verdicts: Counter[str] = Counter()
        seconds = 0.0
        for seed in range(count):
            kind, a, b = make(Random(f"{name} {seed}"))
            began = time.perf_counter()
            proof = prove_equal(a, b)
            seconds += time.perf_counter() - began
            verdicts[f"{kind}: {proof.equal} (tier {proof.tier})"] += 1
            if proof.equal is not wanted:
                print(f"MISS {name} {seed} {kind}: {proof}")
        print(f"{name}: {count} pairs, {count / seconds:.0f} per second; {dict(verdicts)}")
    for safely in (False, True):
        print(f"told apart (safe forms: {safely}): {told_apart(count, safely=safely)}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
