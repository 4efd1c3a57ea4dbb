"""Searches for the fastest candidate: MCFuser's evolutionary one (Algorithm 1), and exhaustion."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from blockbuster.errors import EmitError
from blockbuster.tiling.measurement import Measurement, checked
from blockbuster.tiling.mutation import Mutations

C = TypeVar("C")


@dataclass(frozen=True)
class Settings:
    """The parameters of Algorithm 1.

    ``population``: candidates in a generation (N); ``top``: how many of them are measured (n, 8 in
    the source); ``gap``: the search ends when the best of a generation is within this part of the
    best before (epsilon); ``generations``: it ends here at the latest. Raises ValueError for what
    would search nothing.
    """

    population: int = 128
    top: int = 8
    gap: float = 0.01
    generations: int = 20
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("population", "top", "generations"):
            count = getattr(self, name)
            if not isinstance(count, int) or count < 1:
                raise ValueError(f"{name} is {count!r}, expected a whole number of at least 1")
        if not 0 <= self.gap < math.inf:
            raise ValueError(f"gap is {self.gap!r}, expected a part of a time: 0 or more, finite")


@dataclass(frozen=True)
class Found(Generic[C]):
    """The result of a search: the best candidate, its seconds, and all measurements, in order.

    ``best_of``: for each generation the best seconds measured so far.
    """

    best: C
    seconds: float
    measured: tuple[Measurement[C], ...]
    best_of: tuple[float, ...] = ()

    @property
    def lost(self) -> tuple[Measurement[C], ...]:
        """The measurements that gave no time, with their reasons."""
        return tuple(one for one in self.measured if one.seconds is None)


Measured = Callable[[Sequence[C]], Sequence[Measurement[C]]]
"""What measures some candidates, in their order: by a model, a simulator or a GPU.

``functools.partial(workers.measure, seconds_of)`` is one, for any executor.
"""


def exhaustive(candidates: Sequence[C], measured: Measured[C]) -> Found[C]:
    """Measure every candidate. Raises ValueError if none gives a time."""
    return _best(tuple(map(checked, measured(candidates))), ())


def evolutionary(
    candidates: Sequence[C],
    mutations: Mutations[C],
    estimate: Callable[[C], float],
    measured: Measured[C],
    settings: Settings = Settings(),
) -> Found[C]:
    """Algorithm 1 of the source: estimate a generation, measure its top, mutate it.

    A candidate is drawn for the next generation with a weight of one over its estimate, and one
    tile of it is changed. One whose estimate is an EmitError, a ValueError or no time is neither
    measured nor drawn; a generation of none but these is drawn anew. What was measured is not
    measured again. Where the source would return the last generation's best, this returns the
    best of all. Raises ValueError if no candidate gives a time. Equal seeds give equal searches, if
    measurements are equal.
    """
    generator = random.Random(settings.seed)
    estimates: dict[C, Measurement[C]] = {}
    times: dict[C, Measurement[C]] = {}
    history: list[float] = []
    population = _drawn(candidates, settings.population, generator)
    best = math.inf
    for _ in range(settings.generations):
        estimates |= {one: _estimated(estimate, one) for one in population if one not in estimates}
        likely = {one: s for one in population if (s := estimates[one].seconds) is not None}
        top = sorted(likely, key=lambda one: likely[one])[: settings.top]
        fresh = [one for one in top if one not in times]
        times |= {one.candidate: checked(one) for one in measured(fresh)}
        seconds = [s for one in top if (s := times[one].seconds) is not None]
        now = min(seconds, default=math.inf)
        converged = now < math.inf and abs(now - best) < settings.gap * now
        best = min(best, now)
        history.append(best)
        if converged:
            break
        if likely:
            possible = [one for one in population if one in likely]
            weights = [1 / likely[one] for one in possible]
            drawn = generator.choices(possible, weights, k=settings.population)
            population = [mutations.mutated(one, generator) for one in drawn]
        else:
            population = _drawn(candidates, settings.population, generator)
    return _best(tuple(times.values()) or tuple(estimates.values()), tuple(history))


def _estimated(estimate: Callable[[C], float], one: C) -> Measurement[C]:
    """What a model says of a candidate; lost where it does not fit or no kernel runs it."""
    try:
        return checked(Measurement(one, estimate(one)))
    except (EmitError, ValueError) as error:
        return Measurement(one, None, str(error))


def _drawn(candidates: Sequence[C], count: int, generator: random.Random) -> list[C]:
    """``count`` of the candidates, or all where there are fewer."""
    if not candidates:
        raise ValueError("there is no candidate to search among: the rules leave no tiles")
    return generator.sample(list(candidates), min(count, len(candidates)))


def _best(measured: tuple[Measurement[C], ...], history: tuple[float, ...]) -> Found[C]:
    times = [(one.seconds, at) for at, one in enumerate(measured) if one.seconds is not None]
    if not times:
        why = measured[0].reason if measured else "there is none"
        raise ValueError(f"no candidate gave a time; the first: {why}")
    seconds, at = min(times)
    return Found(measured[at].candidate, seconds, measured, history)
