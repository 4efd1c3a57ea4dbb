"""When the rounding errors of a kernel are no larger than those of an eager function beside it.

Both are measured against float64, on the same rounded inputs. Independent draws of inputs are dealt
into groups; in each group our error is compared with eager's: the largest, and the root mean
square. A group exceeds where one of the two is more than 1.5 times eager's, and more than one
rounding to the dtype of the result (two for float32, in which the arithmetic itself is done): a
ratio means nothing where eager is exact. An output fails

- where more than half of the groups exceed. A systematic excess shows in every group, so no number
  of them hides it; the luck of one draw, the ratio of two largest errors, shows in a few.
- where the largest error of all draws is more than 4 times eager's largest of all draws (and than
  that rounding). One wrong element is enough, however rarely it comes.
- where an element is not finite though eager's is, or a truth value differs;
- where an element is NaN, as poison is, or has the other sign, though eager is infinite and right.
  A finite one is spared: what overflows in eager, even in float64, need not overflow in ours.

Draws go on until 100 results of each group carry an error, ours or eager's: results that are exact
in both, such as a saturated tanh, say nothing. Where that takes too many draws and fewer than 50 of
a typical group carry one, ratios are luck and the second bound decides alone.

How sure that is, for errors of normal distribution, and for errors whose size is itself
log-normal: of two equally good functions, one fails in 0 and 3.5 % of judgements on groups of 50
errors, in 0 and 1 % on groups of 100 or 1000; one with twice eager's errors passes in 0 and 0.25 %.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import reduce
from operator import add
from statistics import median, median_low
from typing import Any

Array = Any  # a NumPy array or a torch tensor

GROUPS = 15
RATIO, BOUND = 1.5, 4.0
ENOUGH, FEW = 100, 50
SEEN = 10_000
"""Results of a group after which no more draws are made for the errors among them."""

LARGEST = {"float16": 65504.0, "float64": 1.7976931348623157e308}
ROUNDING = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-23}


@dataclass(frozen=True)
class Sample:
    """Errors of one output: ``erring`` of its ``results`` carry one, ours or eager's.

    ``peak`` is our largest error, ``squares`` the sum of their squares; the same of eager's, and of
    the exact results. ``lost``: elements that are not finite though eager's are, or are not even of
    eager's infinity where that is right, or truth values that differ; ``spared``: elements on which
    no error is measured, because eager's are not finite or the exact ones leave half the dtype's
    range.
    """

    results: int = 0
    erring: int = 0
    lost: int = 0
    spared: int = 0
    peak: float = 0.0
    squares: float = 0.0
    eager_peak: float = 0.0
    eager_squares: float = 0.0
    exact_peak: float = 0.0
    exact_squares: float = 0.0

    def __add__(self, other: Sample) -> Sample:
        pairs = [(name, getattr(self, name), getattr(other, name)) for name in asdict(self)]
        return Sample(**{n: max(a, b) if n.endswith("peak") else a + b for n, a, b in pairs})

    @property
    def is_enough(self) -> bool:
        """True if more draws would say little more."""
        return self.erring >= ENOUGH or self.results >= SEEN or self.lost > 0


@dataclass(frozen=True)
class Verdict:
    """What groups of samples say: medians of the ratios, and the ratio of the largest of all.

    ``relative`` is our largest error over the largest result, ``erring`` the results with an error.
    """

    ratio_max: float
    ratio_rms: float
    ratio_all: float
    relative: float
    erring: int
    lost: int
    spared: int
    passed: bool

    def data(self) -> dict[str, Any]:
        """The verdict as plain data."""
        return asdict(self)


def sampled(ours: Array, theirs: Array, exact: Array, dtype: str) -> Sample:
    """The errors of ``ours`` (of ``dtype``) and ``theirs``; all three in float64, or all truths."""
    if dtype == "bool":
        wrong = int((ours != exact).sum())
        return Sample(results=math.prod(exact.shape), lost=wrong)
    judged = (abs(exact) <= LARGEST.get(dtype, 3.4e38) / 2) & (abs(theirs) < math.inf)
    results = int(judged.sum())
    infinite = (theirs == exact) & (abs(exact) == math.inf) & (ours != exact)
    lost = int(((judged | infinite) & ~(abs(ours) < math.inf)).sum())
    found = Sample(results=results, lost=lost, spared=math.prod(exact.shape) - results)
    if lost or not results:
        return found
    right = exact[judged]
    mine, other = abs(ours[judged] - right), abs(theirs[judged] - right)
    sums = [(float(x.max()), float((x * x).sum())) for x in (mine, other, abs(right))]
    erring = int(((mine > 0) | (other > 0)).sum())
    return found + Sample(0, erring, 0, 0, *sums[0], *sums[1], *sums[2])


def verdict(groups: Sequence[Sample], dtype: str) -> Verdict:
    """Whether an output of ``dtype`` is as good as eager's, from its samples, a group each."""
    whole = reduce(add, groups)
    unit = ROUNDING.get(dtype, 2.0**-53)
    relative = whole.peak / max(whole.exact_peak, 1e-300)
    if whole.lost:
        none = math.inf
        return Verdict(none, none, none, none, whole.erring, whole.lost, whole.spared, False)
    peaks = [ratio(g.peak, g.eager_peak) for g in groups]
    means = [ratio(math.sqrt(g.squares), math.sqrt(g.eager_squares)) for g in groups]
    above = [
        (p > RATIO and g.peak > unit * g.exact_peak)
        or (m > RATIO and g.squares > unit**2 * g.exact_squares)
        for p, m, g in zip(peaks, means, groups, strict=True)
    ]
    told = median(g.erring for g in groups) >= FEW
    bounded = whole.peak <= max(BOUND * whole.eager_peak, unit * whole.exact_peak)
    return Verdict(
        median_low(peaks),
        median_low(means),
        ratio(whole.peak, whole.eager_peak),
        relative,
        whole.erring,
        0,
        whole.spared,
        bounded and not (told and 2 * sum(above) > len(groups)),
    )


def ratio(ours: float, theirs: float) -> float:
    """Our error over eager's: 0 where ours is 0, else infinite where eager's is."""
    if ours == 0:
        return 0.0
    return ours / theirs if theirs else math.inf


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Over the outputs of a program."""
    found = list(verdicts)
    return Verdict(
        max(v.ratio_max for v in found),
        max(v.ratio_rms for v in found),
        max(v.ratio_all for v in found),
        max(v.relative for v in found),
        min(v.erring for v in found),
        sum(v.lost for v in found),
        sum(v.spared for v in found),
        all(v.passed for v in found),
    )
