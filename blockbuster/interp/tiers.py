"""Tiers: the ways to compare two programs exactly, their inputs, and what agreement shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from blockbuster.interp.anywhere import CharactersAnywhere, ExactAnywhere
from blockbuster.interp.characters import Characters
from blockbuster.interp.domains import UNSIGNED, near_to, nearest
from blockbuster.interp.exact import Drawn, Exact, random_prime
from blockbuster.interp.free_order import FreeCharacters
from blockbuster.interp.layout import Array
from blockbuster.interp.ordered import Ordered
from blockbuster.interp.setting import SIZES, SQUARES

AT = "at the tried sizes and blocks, over exact arithmetic, wherever denominators are nonzero"
HASH = "the seeded hash behaves as a random function"
PRIMES = "a nonzero difference is nonzero modulo the random 50-bit primes drawn"

ORDER = "max, min and comparisons follow one random total order per trial, == a random relation"


@dataclass(frozen=True)
class Tier:
    """A way to compare: the semantics of one draw, its inputs, and what agreement shows.

    Both are made of a random generator and the numbers that the programs mention. An input has a
    dtype, too: residues stand for any numbers, fractions are numbers of it.
    """

    name: str
    scope: str
    assumptions: tuple[str, ...]
    semantics: Callable[[np.random.Generator, Sequence[float]], Any]
    inputs: Callable[[Any, np.random.Generator, Sequence[int], Sequence[float], str], Array]
    sizes: Sequence[int] = SIZES


def _uniform(
    semantics: Any, random: np.random.Generator, shape: Sequence[int], _: Sequence[float], __: str
) -> Array:
    return np.asarray(semantics.random(random, shape))


def _multiples(
    semantics: Any,
    random: np.random.Generator,
    shape: Sequence[int],
    constants: Sequence[float],
    dtype: str,
) -> Array:
    """Multiples of 4, so that means and scaled products stay whole, small or large.

    Between them if they are integers: no quotient of multiples of 4 has a rest modulo 2.
    """
    step = 4 * int(random.choice((1, 1, 4, 64)))
    draws = random.integers(-3, 4, shape) * float(step)
    if dtype:
        draws = draws + random.integers(0, 4, shape)
        draws = np.abs(draws) if dtype in UNSIGNED else draws
    return np.asarray(semantics.item(nearest(dtype, near_to(constants, random, draws))))


FREE = Tier(
    "A",
    f"equality as terms in +, *, / with the other functions uninterpreted, {AT}",
    (HASH, PRIMES),
    lambda random, _: Exact(random_prime(random), int(random.integers(2**62))),
    _uniform,
)
EXP = (
    "of exp only exp(a + b) = exp(a) * exp(b) is used; the arguments of logs and roots are positive"
)
DRAWN = Tier(
    "A",
    f"equality as terms in +, *, / with the other functions uninterpreted, for the random orders "
    f"drawn, {AT}",
    (HASH, PRIMES, ORDER),
    lambda random, near: Drawn(random_prime(random), int(random.integers(2**62)), near),
    _uniform,
)
FREE_CHARACTERS = Tier(
    "B",
    "equality of values where exp turns sums into products (and log, sqrt follow) and max, min and "
    f"comparisons are uninterpreted, {AT}",
    (HASH, EXP),
    lambda random, _: FreeCharacters(int(random.integers(2**62))),
    _uniform,
)
CHARACTERS = Tier(
    "B",
    f"equality of values where exp turns sums into products (and log, sqrt follow), {AT}",
    (
        HASH,
        EXP,
        ORDER,
    ),
    lambda random, near: Characters(int(random.integers(2**62)), near),
    _uniform,
)
ORDERED = Tier(
    "ordered",
    f"equality of values on random fractions, in their order, with exp(n) := 2**n, {AT}",
    ("a difference would show on whole numbers of the magnitudes tried",),
    lambda *_: Ordered(),
    _multiples,
    SQUARES,
)

CASES = {
    laws: Tier(
        name,
        f"equality as terms in +, *, / {words} in every case of their comparisons, at the sizes "
        "named, over exact arithmetic, wherever denominators are nonzero",
        ("cases said to be empty are: by exact linear arithmetic",),
        FREE.semantics,
        _uniform,
    )
    for laws, name, words in (
        (False, "A", "with the other functions uninterpreted"),
        (True, "B", "where exp turns sums into products (and log, sqrt follow)"),
    )
}
"""By whether laws of exp are used: no random trial, but all cases gone through."""

ANYWHERE = {
    FREE: replace(
        FREE,
        semantics=lambda random, _: ExactAnywhere(
            random_prime(random), int(random.integers(2**62))
        ),
    ),
    FREE_CHARACTERS: replace(
        FREE_CHARACTERS, semantics=lambda random, _: CharactersAnywhere(int(random.integers(2**62)))
    ),
}
"""The tiers with free comparisons, whatever positions and sizes are."""
