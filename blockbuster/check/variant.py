"""The check of one kernel on one variant of its inputs: repeated runs, new draws, judgement."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockbuster.check.arguments import (
    call_reference,
    check_alike,
    check_named,
    results_of,
)
from blockbuster.check.call import Call, in_doubles
from blockbuster.check.grid_order import AT_ONCE, BACKWARDS, FORWARDS, NOTHING, ORDERS, Seen
from blockbuster.check.guarded import Packed, blank, packed, unaligned
from blockbuster.check.inputs import SIGNED, copied, doubled, redrawn, varied
from blockbuster.check.judge import GROUPS, Sample, Verdict, sampled, verdict, worst
from blockbuster.check.own_process import Runner
from blockbuster.check.report import NO_NUMBER, CheckedRun
from blockbuster.emit.tile.dtypes import DTYPES

Arrays = Mapping[str, Any]  # NumPy arrays or torch tensors
Run = Callable[..., Any]
Numbers = list[NDArray[Any]]

PADDING = 3  # elements between the rows of a strided output
RACE = "results differ from run to run"
OUTSIDE = (
    "results change with what lies around the inputs, or in the outputs before the call: it reads"
    " out of bounds, what it has not written, or what the mask of a load leaves out"
)
ORDER = (
    "results change with the order in which the programs of its grid run: one reads or writes what"
    " another one writes"
)
WAITS = "other orders of the programs of a grid: they wait for each other"


@dataclass
class Calls:
    """Calls of a kernel on one variant. ``like``: the layouts of its results, once known.

    ``seen``: what Triton's interpreter has seen of its launches.
    """

    runner: Runner
    names: tuple[str, ...]
    variant: str
    problems: list[str] = field(default_factory=list)
    like: tuple[Packed, ...] = ()
    seen: Seen = NOTHING

    def results(
        self, given: Arrays, during: str, turn: int, order: str = FORWARDS
    ) -> Numbers | None:
        """The results of a call; None if there are none, and ``problems`` say why.

        Outputs are passed if their shapes are known. Programs that wait for others run forwards.
        """
        inputs = [packed(name, array) for name, array in given.items()]
        padding = PADDING if self.variant == "strided" else 0
        outputs = [
            blank(name, like, padding=padding)
            for name, like in zip(self.names, self.like, strict=False)
        ]
        if self.variant == "unaligned":
            inputs, outputs = [*map(unaligned, inputs)], [*map(unaligned, outputs)]
        order = FORWARDS if self.seen.waits else order
        outcome = self.runner.call(Call(tuple(inputs), tuple(outputs), turn, order))
        self.seen |= outcome.seen
        if outcome.refused:
            raise TypeError(outcome.refused)
        self.problems += outcome.problems
        if outcome.stopped:
            self.problems.append(f"the kernel {outcome.stopped}, during {during}")
            return None
        self.like = self.like or tuple(result.like for result in outcome.results)
        return [result.numbers for result in outcome.results]

    def compare(self, given: Arrays, first: Numbers, again: Numbers, turn: int, order: str) -> None:
        """Report a problem if results for the same inputs differ.

        Two turns that each repeat their own results tell a wrong read from a race. If nothing but
        the order of programs makes a difference, these do not work independently.
        """
        known = any(problem in self.problems for problem in (RACE, OUTSIDE, ORDER))
        if _same(first, again) or known:
            return
        if self.seen.grids and self._depends_on(order, given, first):
            self.problems.append(ORDER)
            return
        repeated = turn and all(
            _same(expected, self.results(given, "a repeated run", own))
            for expected, own in ((first, 0), (again, turn))
        )
        self.problems.append(OUTSIDE if repeated else RACE)

    def _depends_on(self, order: str, given: Arrays, first: Numbers) -> bool:
        """True if forwards gives ``first`` again, and ``order`` something else."""
        during = "a repeated run"
        forwards = _same(first, self.results(given, during, 0))
        return forwards and not _same(first, self.results(given, during, 0, order))


@dataclass(frozen=True)
class Suite:
    """The setting of a check: reference, eager function, and number of repetitions."""

    reference: Run
    eager: Run | None
    runs: int
    draws: int
    tolerance: float | None

    def check(
        self, runner: Runner, names: tuple[str, ...], arrays: Arrays, variant: str
    ) -> CheckedRun:
        """The findings on one variant of one set of inputs."""
        calls = Calls(runner, names, variant)
        given = varied(arrays, variant)
        first = calls.results(given, "run 1", 0)
        if first is None:
            return _without_results(calls)
        for number in range(1, self.runs):
            turn, order = 2 * (number % 2), BACKWARDS if number % 2 else AT_ONCE
            order = FORWARDS if calls.seen.atomics else order  # they may round otherwise
            again = calls.results(given, f"run {number + 1}", turn, order)
            if again is None:
                return _without_results(calls)
            calls.compare(given, first, again, turn, order)
        exact = self._exact(given)
        check_named(names, first)
        check_alike("kernel", first, exact)
        wrong = [
            f"a result has shape {ours.shape}, expected {right.shape}"
            for ours, right in zip(first, exact, strict=True)
            if ours.shape != right.shape
        ]
        if wrong:
            calls.problems += wrong
            return _without_results(calls)
        return self._judged(calls, arrays, first)

    def _judged(self, calls: Calls, arrays: Arrays, first: Numbers) -> CheckedRun:
        groups = self._groups(calls, arrays, first)
        if groups is None:
            return _without_results(calls)
        dtypes = [like.dtype_name for like in calls.like]
        verdicts = [verdict(g, d) for g, d in zip(groups, dtypes, strict=True)]
        for found, dtype in zip(verdicts, dtypes, strict=True):
            if not (found.says_nothing and calls.variant in SIGNED):  # a logarithm of less than 0
                calls.problems += self._problems(found, dtype)
        last = worst(verdicts)
        peak, mean = (last.ratio_max, last.ratio_rms) if self.eager else (None, None)
        judged, spared = tuple(v.results for v in verdicts), tuple(v.spared for v in verdicts)
        said = _told_once(calls.problems)
        notes = (WAITS,) * calls.seen.waits
        return CheckedRun(
            0, 0, calls.variant, last.relative, peak, mean, said, judged, spared, notes=notes
        )

    def _groups(self, calls: Calls, arrays: Arrays, first: Numbers) -> list[list[Sample]] | None:
        """For each output, the errors of each group of draws; None if a draw has no results."""
        groups = [[Sample()] * min(GROUPS, self.draws) for _ in first]
        for seed in range(self.draws):
            given = varied(redrawn(arrays, seed) if seed else arrays, calls.variant)
            exact = self._exact(given)
            eager = self.eager and self.eager(**copied(given))
            theirs = _results("eager function", eager) if self.eager else exact
            check_alike("eager function", theirs, exact)
            turn, order = (seed + 1) % 3, ORDERS[2 - seed % 3]
            ours = calls.results(given, f"draw {seed}", turn, order)
            if ours is None:
                return None
            if seed == 0 and not calls.seen.atomics:
                calls.compare(given, first, ours, turn, order)
            if [a.shape for a in ours] != [a.shape for a in exact]:
                calls.problems.append("the shapes of its results differ from run to run")
                return None
            for at, row in enumerate(zip(ours, theirs, exact, strict=True)):
                dtype = calls.like[at].dtype_name
                groups[at][seed % GROUPS] += sampled(*row, dtype, tolerance=self.tolerance)
        return groups

    def _exact(self, given: Arrays) -> Numbers:
        """The results of the reference in float64."""
        return _results("reference", call_reference(self.reference, doubled(given)))

    def _problems(self, found: Verdict, dtype: str) -> list[str]:
        """What is wrong with one output."""
        what = "are wrong" if dtype == "bool" else "are not finite: not written, or overflown"
        odd = "are finite, but neither near the reference nor what eager gives"
        wrong = [f"{n} elements {text}" for n, text in ((found.lost, what), (found.odd, odd)) if n]
        if wrong:
            return wrong
        if found.says_nothing:
            return [f"none of the {found.spared} elements of an output is judged: {NO_NUMBER}"]
        if self.eager is None:
            default = DTYPES.get(dtype, DTYPES["float32"]).tolerance
            allowed = default if self.tolerance is None else self.tolerance
            text = f"error {found.relative:.3g} of the largest result, allowed {allowed:g}"
            return [text] if found.relative > allowed else []
        text = (
            f"error {found.ratio_max:.2f} (largest) and {found.ratio_rms:.2f} (rms) times eager's"
        )
        return [] if found.passed else [f"{text}, {found.ratio_all:.2f} (largest) over all draws"]


def _without_results(calls: Calls) -> CheckedRun:
    """The findings where nothing could be judged."""
    return CheckedRun(0, 0, calls.variant, math.inf, None, None, _told_once(calls.problems))


def _told_once(problems: Sequence[str]) -> tuple[str, ...]:
    """Each problem once: of those that differ in numbers only, the first."""
    kinds: dict[str, str] = {}
    for problem in problems:
        kinds.setdefault(problem.partition(":")[0], problem)
    return tuple(kinds.values())


def _results(who: str, returned: Any) -> Numbers:
    return [in_doubles(who, array) for array in results_of(who, returned)]


def _same(left: Numbers, right: Numbers | None) -> bool:
    """Equality of every bit, where one NaN is as good as another: float64 loses none."""
    return right is not None and len(left) == len(right) and all(map(_same_bits, left, right))


def _same_bits(left: NDArray[Any], right: NDArray[Any]) -> bool:
    return left.shape == right.shape and _one_nan(left).tobytes() == _one_nan(right).tobytes()


def _one_nan(array: NDArray[Any]) -> NDArray[Any]:
    return np.where(np.isnan(array), np.nan, array)
