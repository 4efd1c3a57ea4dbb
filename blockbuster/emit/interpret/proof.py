"""Is a tile program equal to another, or to a block program? By the tiers of ``prove_equal``.

Both programs run on random residues with uninterpreted functions, at small sizes and blocks, with
parallel iterations in a random order. Programs that agree are equal as terms, but for luck, which
is bounded as for block programs. This suffices for changes in the order of sums, products and
maxima. Tier B decides equalities that rest on a law of exp; random orders and fractions decide
those that rest on order. The programs count as different if floats differ, or if the second program
reads elements that are not there.

A tile program with dtypes rounds where a block program does not, and the place where a sum is cut
decides what is rounded. Each rounding is first an unknown function. Programs that are not equal
this way are compared again without the roundings of dtypes, then without those of casts, and the
proof says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from blockbuster.emit.interpret.draws import Drawn, Draws
from blockbuster.emit.interpret.memory import Hazard
from blockbuster.emit.interpret.remembered import Remembered
from blockbuster.emit.interpret.sides import Cut, Program, Side, cuts
from blockbuster.emit.tile.program import TileProgram
from blockbuster.errors import VerifyError
from blockbuster.interp.apart import clearly_apart, close
from blockbuster.interp.characters import Characters, representative
from blockbuster.interp.degree import VARIABLE, Bound, chance
from blockbuster.interp.domains import nearest, small
from blockbuster.interp.layout import Array
from blockbuster.interp.proof import Proof, plain
from blockbuster.interp.residues import ZeroDenominator
from blockbuster.interp.semantics import Float32, Float64, Refused
from blockbuster.interp.tiers import AT, CHARACTERS, DRAWN, FREE, FREE_CHARACTERS, ORDERED, Tier
from blockbuster.interp.trials import DRAWS, Unsettled, differ
from blockbuster.ir.dtypes import TRUTH

ORDER_ALONE = "max, min and < follow one random total order per trial"


class Generic(Characters):
    """Characters of which only those are equal that are the same: no data are zero by chance."""

    def same(self, x: Any, y: Any) -> Any:
        return self._decided(representative(x) == representative(y))


GENERIC = replace(
    CHARACTERS,
    scope="equality of values where exp turns sums into products (and log, sqrt follow), wherever "
    f"numbers that are compared with == differ unless they are equal as terms, {AT}",
    assumptions=(*CHARACTERS.assumptions[:2], ORDER_ALONE),
    semantics=lambda random, near: Generic(int(random.integers(2**62)), near),
)
DrawArray = Callable[[Sequence[int], str], Array]
"""Draws an array of a shape, with numbers of a dtype; "" stands for floats."""
LADDER = (FREE_CHARACTERS, DRAWN, CHARACTERS, GENERIC, ORDERED)
"""The tiers that are asked where terms differ and floats do not."""
WAYS = ((1, 4), (-8, 4), (-8, 64))
"""The floats that are tried: from which multiple on, of which part of 1; up to 8 of them."""
UNTYPED = "arrays and operands of dots have no dtypes: what these round is left out"
BOUNDING = "{} hold whole numbers from -1 on, up to one more than a dim has elements"
"""Arrays that bound loops: residues have no order, by which a loop could know its iterations."""
UNROUNDED = "numbers are not rounded: what dtypes and casts do to them is left out"


@dataclass(frozen=True)
class TileCounterexample:
    """Inputs, sizes and blocks on which two programs give different outputs."""

    programs: tuple[Program, Program]
    cut: Cut
    inputs: Mapping[str, Array]
    left: Mapping[str, Array]
    right: Mapping[str, Array]
    semantics: str

    def __str__(self) -> str:
        setting = self.cut.setting
        lines = [f"sizes {dict(setting.sizes)}, blocks {dict(setting.block_sizes)}"]
        lines += [f"{name} = {array.tolist()}" for name, array in self.inputs.items()]
        outputs = (self.left, self.right)
        for program, made in zip(self.programs, outputs, strict=True):
            lines += ["", program.show().removesuffix("\n")]
            lines += [f"  {name} = {array.tolist()}" for name, array in made.items()]
        return "\n".join(lines)

    def to_data(self) -> dict[str, Any]:
        """The counterexample as plain data."""
        arrays = {"inputs": self.inputs, "left": self.left, "right": self.right}
        return {
            "sizes": dict(self.cut.setting.sizes),
            "block_sizes": dict(self.cut.setting.block_sizes),
            "semantics": self.semantics,
            **{key: {n: plain(a) for n, a in held.items()} for key, held in arrays.items()},
        }


def prove_tiles(
    before: Program,
    after: TileProgram,
    *,
    trials: int = 8,
    seed: int = 0,
    lanes: bool = False,
    draws: Draws | None = None,
) -> Proof:
    """Compare a tile program with the program that it was made from, on random inputs and sizes.

    ``equal`` is True where they agree in every trial of some tier, False where floats differ or
    ``after`` is ill-formed or reads what is not there, None where neither shows. ``lanes``: the
    padded lanes of ``after`` must not count either, as after ``guard``. ``draws``: those of other
    proofs, whose programs have something in common with these. Raises ValueError where interfaces
    differ or ``trials`` is below 1, VerifyError where ``before`` is at fault.
    """
    if trials < 1:
        raise ValueError(f"trials is {trials}, expected at least 1")
    known = Draws() if draws is None else draws
    comparison = Comparison((known.side(before), known.side(after)), trials, seed, known)
    if isinstance(before, TileProgram):
        known.verify(before)
    try:
        comparison.check_after(lanes=lanes)
        return comparison.proof()
    except Fault as fault:
        known.forget()
        return comparison.found(False, FREE, str(fault))


def unrounded(semantics: Any) -> Any:
    """The same meaning of operators, but for casts, which change nothing."""
    other = copy(semantics)
    other.cast = lambda item, dtype: item
    return other


def _differ(x: Array, y: Array, rough_x: Array, rough_y: Array, *, finite: bool) -> bool:
    """True if x and y differ by more than rounding; ``finite``: or in where they are."""
    if x.shape != y.shape or clearly_apart(x, y, rough_x, rough_y):
        return True
    return finite and bool((np.isfinite(x) != np.isfinite(y)).any())


class Fault(Exception):
    """The second program reads what is not there; the text says where."""


@dataclass(frozen=True)
class Trialled:
    """The result of a tier's trials: whether all agree, and where they were."""

    agree: bool
    redraws: int
    cuts: Sequence[Cut]


class Comparison:
    """Two programs with one interface, compared in trials."""

    def __init__(
        self, sides: tuple[Side, Side], trials: int, seed: int, draws: Draws | None = None
    ) -> None:
        self.sides, self.trials, self.seed = sides, trials, seed
        self.draws = draws or Draws()
        self.casts, self.left_out = True, tuple[str, ...]()
        self.each = 2 if trials >= 4 else 1  # how often each setting is tried, as in ``Trials``
        self.together = self.draws.together(sides)
        self.constants = tuple(dict.fromkeys(c for side in self.together for c in side.constants))
        self.bounding = tuple(dict.fromkeys(name for side in sides for name in side.bounding))
        before, after = sides
        self.dtypes = {**before.dtypes, **after.dtypes}
        self.whole = [name for name in self.bounding if self.dtypes.get(name) != TRUTH]
        if before.sources != after.sources:
            raise ValueError(
                f"the programs read different arrays: {before.sources} and {after.sources}"
            )
        if before.outputs != after.outputs:
            raise ValueError(
                f"the programs return different arrays: {before.outputs} and {after.outputs}"
            )

    def proof(self) -> Proof:
        """The proof by the first tier that settles the comparison."""
        typed = [side.typed for side in self.sides]
        if all(typed):
            proof, _ = self._terms()
            if proof is not None:
                return proof
        if any(typed):
            before, after = (side.untyped for side in self.sides)
            self.sides, self.left_out = (before, after), (UNTYPED,)
        proof, why = self._terms()
        if proof is not None:
            return proof
        if any(side.casts for side in self.sides):
            self.casts, self.left_out = False, (UNROUNDED,)
        visible = self.float_difference()
        if visible is not None:
            reason = "the programs differ as terms, and in floating point"
            return self.found(False, FREE, reason, counterexample=visible)
        for tier in LADDER if self.casts else (FREE, *LADDER):
            try:
                outcome = self.tried(tier)
            except Unsettled:
                continue
            if outcome.agree:
                return self.agreed(tier, outcome)
        return self.found(None, FREE, why)

    def _terms(self) -> tuple[Proof | None, str]:
        """A yes where the programs are equal as terms, else why there is none."""
        try:
            free = self.tried(FREE)
        except Unsettled as unsettled:
            return None, str(unsettled)
        why = "the programs differ as terms, but no difference shows in floating point"
        return (self.agreed(FREE, free), "") if free.agree else (None, why)

    def agreed(self, tier: Tier, outcome: Trialled) -> Proof:
        """A yes."""
        reason = "the programs agree in every trial"
        bound = self.bound(outcome) if tier is FREE else None
        facts = {"false_accept_bound": bound, "redraws": outcome.redraws}
        return self.found(True, tier, reason, **facts)

    def found(self, equal: bool | None, tier: Tier, reason: str, **more: Any) -> Proof:
        """The answer, with the words of its tier."""
        facts = {"false_accept_bound": None, "counterexample": None, "redraws": 0, **more}
        bounds = (BOUNDING.format(", ".join(self.whole)),) if self.whole else ()
        assumed = (*tier.assumptions, *self.left_out, *bounds)
        return Proof(
            equal, tier.name, tier.scope, assumed, reason=reason, trials=self.trials, **facts
        )

    def cuts(self, tier: Tier) -> tuple[Cut, ...]:
        """The sizes and blocks at which trials of a tier are made."""
        random = np.random.default_rng([self.seed, 0])
        return tuple(cuts(self.together, -(-self.trials // self.each), random, tier.sizes))

    def run(
        self,
        cut: Cut,
        draw: DrawArray,
        semantics: Any,
        whole: DrawArray | None = None,
        known: Remembered | None = None,
    ) -> tuple[dict[str, Array], ...]:
        """The inputs drawn, and the outputs of both sides. ``whole`` draws what bounds loops."""
        sizes = cut.setting.sizes
        inputs = {
            name: (whole if whole and name in self.whole else draw)(
                [1 if d is None else sizes[d] for d in axes], self.dtypes.get(name, "")
            )
            for name, axes in sorted(self.sides[0].sources.items())
        }
        before, after = self.sides
        if not self.casts:
            semantics = unrounded(semantics)
        left = before.run(inputs, cut, semantics, known)
        try:
            return inputs, left, after.run(inputs, cut, semantics, known)
        except Hazard as hazard:
            raise Fault(str(hazard)) from None

    def tried(self, tier: Tier) -> Trialled:
        """Both sides compared in each trial, up to the first difference. Raises Unsettled."""
        tried, redraws = self.cuts(tier), 0
        for number in range(self.trials):
            agree, more = self._compared(tier, tried[number % len(tried)], number)
            redraws += more
            if not agree:
                return Trialled(False, redraws, tried)
        return Trialled(True, redraws, tried)

    def _compared(self, tier: Tier, cut: Cut, number: int) -> tuple[bool, int]:
        drawn = self.drawn(cut)
        drawn.sides |= {side.program: side for side in self.sides}
        for redraw in range(DRAWS):
            random = np.random.default_rng([self.seed, 2 + number, redraw])
            key = tier.name, tier.scope, number, redraw, self.constants
            found = drawn.draw(key, tier.semantics(random, self.constants))
            semantics = found.semantics

            def draw(
                shape: Sequence[int], dtype: str, semantics: Any = semantics, random: Any = random
            ) -> Any:
                return tier.inputs(semantics, random, shape, self.constants, dtype)

            def whole(
                shape: Sequence[int], dtype: str, semantics: Any = semantics, random: Any = random
            ) -> Any:
                most = max(cut.setting.sizes.values()) + 2
                drawn = random.integers(-1, most, shape).astype(float)
                return semantics.item(nearest(dtype, drawn).astype(float))

            try:
                _, left, right = self.run(cut, draw, semantics, whole, found.known)
            except ZeroDenominator:
                continue
            except Refused as refused:
                raise Unsettled(f"ordered arithmetic refuses {refused}") from None
            return not differ(semantics, left, right), redraw
        raise Unsettled(f"a denominator was zero in each of {DRAWS} draws")

    def bound(self, outcome: Trialled) -> float | None:
        """The chance that trials of tier A hid a difference at one of their sizes.

        None if data bound loops: degrees do not tell which iterations there are.
        """
        if self.bounding:
            return None
        worst = 0.0
        for cut in outcome.cuts:
            before, after = (self._degrees(side, cut) for side in self.sides)
            own = [side.program for side in self.sides]
            run = self.drawn(cut).sides.items()
            others = [self._degrees(side, cut) for program, side in run if program not in own]
            worst = max(worst, chance(before, after, others))
        return worst ** (self.trials // len(outcome.cuts))

    def drawn(self, cut: Cut) -> Drawn:
        """What was drawn at these sizes and blocks, with roundings as they count now."""
        return self.draws.at((self.seed, cut.key, self.left_out, self.casts))

    def _degrees(self, side: Side, cut: Cut) -> Bound:
        drawn = self.drawn(cut)
        if side.program not in drawn.bounds:
            before = drawn.degree.noted.copy()
            outputs = self._run_degrees(side, cut, drawn)
            drawn.bounds[side.program] = Bound(outputs, drawn.degree.noted.since(before))
        return drawn.bounds[side.program]

    def _run_degrees(self, side: Side, cut: Cut, drawn: Drawn) -> dict[str, Array]:
        degree = drawn.degree if self.casts else unrounded(drawn.degree)
        sizes = cut.setting.sizes
        inputs = {
            name: np.full([1 if d is None else sizes[d] for d in axes], VARIABLE)
            for name, axes in side.sources.items()
        }
        return side.run(inputs, cut, degree, drawn.known)

    def float_difference(self) -> TileCounterexample | None:
        """Inputs on which outputs differ by far more than rounding can explain."""
        random = np.random.default_rng([self.seed, 1])
        for cut in self.cuts(FREE):
            for lowest, parts in WAYS:

                def draw(
                    shape: Sequence[int], dtype: str, lowest: int = lowest, parts: int = parts
                ) -> Any:
                    return small(dtype, random, shape, lowest=lowest, parts=parts)

                known = self.drawn(cut).draw("doubles", Float64).known
                inputs, left, right = self.run(cut, draw, Float64, known=known)
                if all(close(x, right[name]) for name, x in left.items()):
                    continue
                single = Float32 if self.casts else unrounded(Float32)
                rough = [side.run(inputs, cut, single) for side in self.sides]
                tiny = parts == WAYS[-1][1]  # nothing overflows
                for name, x in left.items():
                    if _differ(x, right[name], *(made[name] for made in rough), finite=tiny):
                        before, after = (side.program for side in self.sides)
                        programs = (before, after)
                        return TileCounterexample(programs, cut, inputs, left, right, "bb.Float64")
        return None

    def check_after(self, *, lanes: bool) -> None:
        """Raise Fault where the second side is ill-formed, or its padded lanes count."""
        _, after = self.sides
        try:
            if isinstance(after.program, TileProgram):
                self.draws.verify(after.program)
            for cut in self.cuts(FREE) if lanes else ():
                after.check_lanes(cut)
        except VerifyError as error:
            raise Fault(str(error)) from None
