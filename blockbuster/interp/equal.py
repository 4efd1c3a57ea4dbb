"""Are two programs equal? A randomized exact answer, and what exactly it says.

The programs are run on random residues with uninterpreted functions (tier A), at random small
sizes and blocks. Where they agree in every trial they are equal as terms, but for luck, and that
is bounded. Where they do not they may still be equal, by a law of some function or of order, so a
difference is only reported as one where it shows in floating point too; else tier B (exp is a
homomorphism) and ordered arithmetic are asked, which may say equal; different only where exact
fractions are what both programs compute.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from blockbuster.interp.apart import constants_of, float_difference, near
from blockbuster.interp.binding import sources
from blockbuster.interp.characters import Characters
from blockbuster.interp.degree import VARIABLE, Degree
from blockbuster.interp.exact import Drawn, Exact, random_prime
from blockbuster.interp.layout import Array
from blockbuster.interp.ordered import Ordered, Refused, is_literal
from blockbuster.interp.proof import Counterexample, Proof
from blockbuster.interp.residues import ZeroDenominator
from blockbuster.interp.semantics import Semantics
from blockbuster.interp.setting import SIZES, SQUARES, Setting, settings
from blockbuster.ir.graph import Graph

__all__ = ["Counterexample", "Proof", "Setting", "check_equal_exactly", "prove_equal", "settings"]

DRAWS = 20  # how often inputs are drawn again before a zero denominator is taken to be no accident

AT = "at the tried sizes and blocks, over exact arithmetic, wherever denominators are nonzero"
HASH = "the seeded hash behaves as a random function"
PRIMES = "a nonzero difference is nonzero modulo the random 50-bit primes drawn"


class Unsettled(Exception):
    """A trial gave no answer; the text says why."""


@dataclass(frozen=True)
class Tier:
    """A way to compare: the semantics of one draw, its inputs, and what agreement shows."""

    name: str
    scope: str
    assumptions: tuple[str, ...]
    semantics: Callable[[np.random.Generator], Any]
    inputs: Callable[[Any, np.random.Generator, Sequence[int], Sequence[float]], Array]
    sizes: Sequence[int] = SIZES


def _uniform(
    semantics: Any, random: np.random.Generator, shape: Sequence[int], _: Sequence[float]
) -> Array:
    return np.asarray(semantics.random(random, shape))


def _multiples(
    semantics: Any, random: np.random.Generator, shape: Sequence[int], constants: Sequence[float]
) -> Array:
    """Multiples of 4, so that means and scaled products stay whole, small or large."""
    step = 4 * int(random.choice((1, 1, 4, 64)))
    draws = near(constants, random, random.integers(-3, 4, shape) * float(step))
    return np.asarray(semantics.item(draws))


FREE = Tier(
    "A",
    f"equality as terms in +, *, / with the other functions uninterpreted, {AT}",
    (HASH, PRIMES),
    lambda random: Exact(random_prime(random), int(random.integers(2**62))),
    _uniform,
)
DRAWN = Tier(
    "A",
    f"equality as terms in +, *, / with the other functions uninterpreted, for the random orders "
    f"drawn, {AT}",
    (HASH, PRIMES, "max, min and comparisons follow one random total order per trial"),
    lambda random: Drawn(random_prime(random), int(random.integers(2**62))),
    _uniform,
)
CHARACTERS = Tier(
    "B",
    f"equality of values where exp turns sums into products (and log, sqrt follow), {AT}",
    (
        HASH,
        "exp is a character of residues; logs and roots are of positive numbers",
        "max, min and comparisons follow one random total order per trial",
    ),
    lambda random: Characters(int(random.integers(2**62))),
    _uniform,
)
ORDERED = Tier(
    "ordered",
    f"equality of values on random fractions, in their order, with exp(n) := 2**n, {AT}",
    ("a difference would show on whole numbers of the magnitudes tried",),
    lambda _: Ordered(),
    _multiples,
    SQUARES,
)


@dataclass(frozen=True)
class Outcome:
    """What the trials of a tier gave: the first difference, if any, and where it was looked for."""

    difference: Counterexample | None
    redraws: int
    settings: tuple[Setting, ...]
    draws: int


def check_equal_exactly(
    a: Graph, b: Graph, *, trials: int = 2, seed: int = 0
) -> Counterexample | None:
    """Where two programs differ as terms, or None where they agree in every trial.

    Raises Unsettled where the trials cannot tell, ValueError where the interfaces differ.
    """
    _same_interface(a, b)
    return _run(FREE, a, b, trials, seed).difference


def prove_equal(a: Graph, b: Graph, trials: int = 8, seed: int = 0) -> Proof:
    """Compare two programs of one interface exactly, on random inputs, sizes and blocks.

    ``equal`` is True where they agree in every trial of some tier, False where they differ in
    floating point too, None where neither shows. Raises ValueError where the interfaces differ, or
    trials is below 1.
    """
    if trials < 1:
        raise ValueError(f"trials is {trials}, expected at least 1")
    _same_interface(a, b)

    def proof(equal: bool | None, tier: Tier, reason: str, **more: Any) -> Proof:
        facts = {"false_accept_bound": None, "counterexample": None, "redraws": 0, **more}
        return Proof(
            equal, tier.name, tier.scope, tier.assumptions, reason=reason, trials=trials, **facts
        )

    if a == b:
        return proof(True, FREE, "the programs are the same", false_accept_bound=0.0)
    why = "the programs differ as terms, but no difference shows in floating point"
    for tier in (FREE, DRAWN, CHARACTERS, ORDERED):
        if tier is DRAWN:
            visible = float_difference(a, b, trials, seed)
            if visible is not None:
                found = "the programs differ as terms, and in floating point"
                return proof(False, FREE, found, counterexample=visible)
        try:
            outcome = _run(tier, a, b, trials, seed)
        except Unsettled as unsettled:
            why = str(unsettled) if tier is FREE else why
            continue
        if outcome.difference is None:
            bound = false_accept_bound(a, b, outcome) if tier is FREE else None
            found = "the programs agree in every trial"
            return proof(True, tier, found, false_accept_bound=bound, redraws=outcome.redraws)
        if tier is ORDERED and is_literal(a) and is_literal(b):
            found = "the programs differ in exact arithmetic"
            return proof(False, tier, found, counterexample=outcome.difference)
    return proof(None, FREE, why)


def false_accept_bound(a: Graph, b: Graph, outcome: Outcome) -> float:
    """The chance that trials of tier A hid a difference at one of their sizes (``degree.py``)."""
    worst = 0.0
    for setting in outcome.settings:
        degree = Degree()
        inputs = {name: np.full(shape, VARIABLE) for name, shape in setting.shapes(a).items()}
        left, right = (setting.run(graph, inputs, degree) for graph in (a, b))
        worst = max(worst, degree.bound([*left.values()], [right[n] for n in left]))
    return worst**outcome.draws


def _same_interface(a: Graph, b: Graph) -> None:
    for what, left, right in (
        ("read", sorted(sources(a)), sorted(sources(b))),
        ("return", list(a.output_names), list(b.output_names)),
    ):
        if left != right:
            raise ValueError(f"the programs {what} different arrays: {left} and {right}")


def _run(tier: Tier, a: Graph, b: Graph, trials: int, seed: int) -> Outcome:
    """The trials of a tier: from four on, each size is tried twice, which squares the bound."""
    random = np.random.default_rng([seed, 0])
    draws = 2 if trials >= 4 else 1
    tried = tuple(settings(a, b, -(-trials // draws), random, sizes=tier.sizes))
    redraws = 0
    for number in range(trials):
        setting = tried[number % len(tried)]
        difference, more = _draw(tier, a, b, setting, random)
        redraws += more
        if difference is not None:
            return Outcome(difference, redraws, tried, draws)
    return Outcome(None, redraws, tried, trials // len(tried))


def _draw(
    tier: Tier, a: Graph, b: Graph, setting: Setting, random: np.random.Generator
) -> tuple[Counterexample | None, int]:
    """One comparison, and how often inputs were drawn again for it."""
    constants = constants_of(a, b)
    for redraws in range(DRAWS):
        semantics = tier.semantics(random)
        inputs = {
            name: tier.inputs(semantics, random, shape, constants)
            for name, shape in setting.shapes(a).items()
        }
        try:
            left = setting.run(a, inputs, semantics)
            right = setting.run(b, inputs, semantics)
        except ZeroDenominator:
            continue
        except Refused as refused:
            raise Unsettled(f"ordered arithmetic refuses {refused}") from None
        if _differ(semantics, left, right):
            sizes, steps = setting.sizes, setting.block_sizes
            given = {n: x.astype(float) if x.dtype == object else x for n, x in inputs.items()}
            found = Counterexample((a, b), sizes, steps, given, left, right, repr(semantics))
            return found, redraws
        return None, redraws
    raise Unsettled(f"a denominator was zero in each of {DRAWS} draws")


def _differ(semantics: Semantics, left: dict[str, Array], right: dict[str, Array]) -> bool:
    """True if an element differs. Raises Unsettled if none does but some are undefined."""
    undefined = False
    for name, x in left.items():
        y = right[name]
        if x.shape != y.shape:
            return True
        apart, unclear = semantics.compared(x, y)
        if apart:
            return True
        undefined |= unclear
    if undefined:
        raise Unsettled(
            "an output is undefined: it contains inf - inf, or an infinity times a number"
        )
    return False
