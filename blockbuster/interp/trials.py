"""Trials of a tier: random inputs, sizes and blocks, on which each program is run once.

A trial's draws depend only on the seed, its number and the programs' dims. So the programs of a
derivation get the same inputs: each is run once though it is compared with the one before and the
one after, and their common parts are computed once (``remembering.py``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from blockbuster.interp.degree import VARIABLE, Degrees, chance
from blockbuster.interp.layout import Array
from blockbuster.interp.proof import Counterexample
from blockbuster.interp.remembering import Remembering
from blockbuster.interp.residues import ZeroDenominator
from blockbuster.interp.semantics import Refused, Semantics
from blockbuster.interp.setting import DimsAtHand, Setting, dims_at_hand, settings
from blockbuster.interp.tiers import FREE, Tier
from blockbuster.ir.graph import Graph

DRAWS = 20  # how often inputs are drawn again before a zero denominator is taken to be no accident


class Unsettled(Exception):
    """A trial gave no answer; the text says why."""


@dataclass(frozen=True)
class Outcome:
    """The result of a tier's trials: the first difference, if any, and where it was looked for."""

    difference: Counterexample | None
    redraws: int
    settings: tuple[Setting, ...]
    draws: int
    """How often each setting was tried, at least."""


@dataclass
class Draw:
    """Inputs and a semantics drawn at random, and what programs gave for them."""

    setting: Setting
    semantics: Any
    inputs: Mapping[str, Array]
    outputs: dict[int, tuple[Graph, dict[str, Array]]] = field(default_factory=dict)
    """Of each graph that was run, by its id; it stays alive here."""

    def __post_init__(self) -> None:
        setting, semantics = self.setting, self.semantics
        objects = np.dtype(semantics.dtype).hasobject
        self._memory = None if objects else Remembering(setting.layout, semantics, self.inputs)

    def run(self, graph: Graph) -> dict[str, Array]:
        """The outputs of a program. Raises ZeroDenominator, or Refused."""
        known = self.outputs.get(id(graph))
        if known is None:
            made = (
                self._memory.outputs(graph)
                if self._memory
                else self.setting.run(graph, self.inputs, self.semantics)
            )
            known = self.outputs[id(graph)] = graph, made
        return known[1]


class Trials:
    """So many trials of a tier, for any number of programs with one interface.

    ``constants`` are numbers that the programs mention; where there is an order, values lie near.
    """

    def __init__(
        self, count: int, seed: int = 0, tier: Tier = FREE, constants: Sequence[float] = ()
    ) -> None:
        if count < 1:
            raise ValueError(f"trials is {count}, expected at least 1")
        self.count, self.seed, self.tier, self.constants = count, seed, tier, constants
        self.each = 2 if count >= 4 else 1
        """How often each setting is tried: twice squares the bound."""
        self.drawn: dict[tuple[object, ...], Draw] = {}
        self.tried: dict[DimsAtHand, tuple[Setting, ...]] = {}
        self.degrees: dict[tuple[object, ...], Degrees] = {}
        self.others: dict[int, Trials] = {}

    @property
    def sizes_matter(self) -> bool:
        """Whether numbers that no data enter were compared, others at other sizes.

        Of tiers with free comparisons.
        """
        return len({frozenset(draw.semantics.decided) for draw in self.drawn.values()}) > 1

    def of(self, tier: Tier) -> Trials:
        """A few trials of another tier, for the same programs."""
        return self.others.setdefault(id(tier), Trials(3, self.seed, tier))

    def outcome(self, a: Graph, b: Graph) -> Outcome:
        """Two programs compared in each trial, up to the first difference.

        Raises Unsettled where the trials cannot tell.
        """
        tried = self._settings(a, b)
        redraws = 0
        for number in range(self.count):
            setting = tried[number % len(tried)]
            difference, more = self._compared(a, b, setting, number)
            redraws += more
            if difference is not None:
                return Outcome(difference, redraws, tried, self.each)
        return Outcome(None, redraws, tried, self.count // len(tried))

    def agree_at(self, a: Graph, b: Graph, settings: Sequence[Setting]) -> bool:
        """Whether two programs agree in one trial of each of ``settings``. Raises Unsettled."""
        numbered = enumerate(settings, self.count)
        return all(self._compared(a, b, setting, at)[0] is None for at, setting in numbered)

    def false_accept_bound(self, a: Graph, b: Graph, outcome: Outcome) -> float:
        """The chance that trials of tier A hid a difference at one of their sizes (``degree.py``).

        The other programs that went through these trials count, where oracles remember.
        """
        worst = 0.0
        for setting in outcome.settings:
            degrees = self.degrees.get(setting.key)
            if degrees is None:
                inputs = {n: np.full(shape, VARIABLE) for n, shape in setting.shapes(a).items()}
                degrees = self.degrees[setting.key] = Degrees(setting.layout, inputs)
            for draw in self.drawn.values():
                if draw.setting.key == setting.key:
                    for graph, _ in draw.outputs.values():
                        degrees.bound(graph)
            left, right = degrees.bound(a), degrees.bound(b)
            others = [bound for bound in degrees.bounds.values() if bound not in (left, right)]
            worst = max(worst, chance(left, right, others))
        return worst**outcome.draws

    def _settings(self, a: Graph, b: Graph) -> tuple[Setting, ...]:
        known = dims_at_hand(a, b)
        if known not in self.tried:
            random = np.random.default_rng([self.seed, 0])
            count = -(-self.count // self.each)
            self.tried[known] = tuple(settings(a, b, count, random, sizes=self.tier.sizes))
        return self.tried[known]

    def _compared(
        self, a: Graph, b: Graph, setting: Setting, number: int
    ) -> tuple[Counterexample | None, int]:
        """One comparison, and how often inputs were drawn again for it."""
        for redraws in range(DRAWS):
            draw = self._draw(a, setting, number, redraws)
            try:
                left, right = draw.run(a), draw.run(b)
            except ZeroDenominator:
                continue
            except Refused as refused:
                raise Unsettled(f"ordered arithmetic refuses {refused}") from None
            if not differ(draw.semantics, left, right):
                return None, redraws
            sizes, steps, name = setting.sizes, setting.block_sizes, repr(draw.semantics)
            given = {n: x.astype(float) if x.dtype == object else x for n, x in draw.inputs.items()}
            return Counterexample((a, b), sizes, steps, given, left, right, name), redraws
        raise Unsettled(f"a denominator was zero in each of {DRAWS} draws")

    def _draw(self, graph: Graph, setting: Setting, number: int, redraw: int) -> Draw:
        key = (*setting.key, number, redraw)
        if key not in self.drawn:
            random = np.random.default_rng([self.seed, 2 + number, redraw])
            semantics = self.tier.semantics(random, self.constants)
            domain = setting.domain(graph)
            inputs = {
                name: self.tier.inputs(
                    semantics, random, shape, self.constants, domain.dtypes.get(name, "")
                )
                for name, shape in sorted(domain.shapes.items())
            }
            self.drawn[key] = Draw(setting, semantics, inputs)
        return self.drawn[key]


def differ(semantics: Semantics, left: dict[str, Array], right: dict[str, Array]) -> bool:
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
