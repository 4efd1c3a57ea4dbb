"""The judgement of a kernel: are its rounding errors no larger than those of an eager function?

Both are measured against float64, on the same rounded inputs. Independent draws of inputs are dealt
into groups. In each group our error is compared with eager's: the largest error, and the root mean
square. A group exceeds if one of the two is more than 1.5 times eager's, and more than one rounding
to the dtype of the result (two for float32, in which the arithmetic itself is done): a ratio means
nothing if eager is exact. An output fails

- if more than half of the groups exceed. A systematic excess shows in every group, so no number of
  them hides it; the luck of one draw, the ratio of two largest errors, shows in a few.
- if the largest error of all draws is more than 4 times eager's largest of all draws (and than
  that rounding). One wrong element is enough, however rarely it comes.
- if an element is one that ``fitting`` does not allow (say, NaN though eager's is finite, or finite
  though the exact result is infinite), or a truth value differs;
- if no element of it is judged: elements that eager or the exact function loses tell nothing about
  a kernel.

Draws go on until 100 results of each group have an error, ours or eager's: results that are exact
in both, such as a saturated tanh, tell nothing. If that takes too many draws and fewer than 50
results of a typical group have an error, ratios are luck and only the second bound decides.

The reliability, for errors of normal distribution, and for errors whose size is itself log-normal:
of two equally good functions, one fails in 0 and 3.5 % of judgements on groups of 50 errors, in 0
and 1 % on groups of 100 or 1000; one with twice eager's errors passes in 0 and 0.25 %.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import reduce
from operator import add
from statistics import median, median_low
from typing import Any

import numpy as np

from blockbuster.emit.tile.dtypes import DTYPES, FLOAT32

Array = Any  # a NumPy array or a torch tensor

GROUPS = 15
RATIO, BOUND = 1.5, 4.0
ENOUGH, FEW = 100, 50
SEEN = 10_000
"""Results of a group after which no more draws are made for the errors among them."""

LARGEST = {"float16": 65504.0, "bfloat16": 3.3895313892515355e38, "float64": 1.7976931348623157e308}
FLOAT32_LARGEST = 3.4028234663852886e38
ROUNDING = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-23}


@dataclass(frozen=True)
class Sample:
    """Errors of one output: ``erring`` of its judged ``results`` carry one, ours or eager's.

    ``peak`` is our largest error, ``squares`` the sum of their squares; the same of eager's, and of
    the exact results. ``lost``: elements that should be finite or another infinity, or truth values
    that differ; ``odd``: finite ones that should be something else. Both are results. ``spared``:
    elements that are as they may be, but say nothing of the kernel.
    """

    results: int = 0
    erring: int = 0
    lost: int = 0
    odd: int = 0
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
        return self.erring >= ENOUGH or self.results >= SEEN or self.lost + self.odd > 0


@dataclass(frozen=True)
class Verdict:
    """The verdict of groups of samples: medians of the ratios, and the ratio of the largest of all.

    ``relative`` is our largest error over the largest result, ``erring`` the results with an error.
    Counts are over all draws: ``results`` were judged, ``spared`` were not.
    """

    ratio_max: float
    ratio_rms: float
    ratio_all: float
    relative: float
    results: int
    erring: int
    lost: int
    odd: int
    spared: int
    passed: bool

    @property
    def says_nothing(self) -> bool:
        """True if there are elements and none of them is judged."""
        return self.spared > 0 and not self.results

    def data(self) -> dict[str, Any]:
        """The verdict as plain data."""
        return asdict(self)


def sampled(
    ours: Array, theirs: Array, exact: Array, dtype: str, *, tolerance: float | None = None
) -> Sample:
    """The errors of ``ours`` (of ``dtype``) and ``theirs``; all three in float64, or all truths.

    ``tolerance`` (default: by dtype) is for finite elements beside which eager's are not.
    """
    size = math.prod(exact.shape)
    if dtype == "bool":
        return Sample(results=size, lost=int((ours != exact).sum()))
    judged, spared, measured = fitting(ours, theirs, exact, dtype, tolerance)
    wrong = ~(judged | spared)
    odd = int((wrong & (abs(ours) < math.inf)).sum())
    lost, left = int(wrong.sum()) - odd, int(spared.sum())
    found = Sample(results=size - left, lost=lost, odd=odd, spared=left)
    if lost or odd or not bool(measured.any()):
        return found
    right = exact[measured]
    mine, other = abs(ours[measured] - right), abs(theirs[measured] - right)
    sums = [(float(x.max()), float((x * x).sum())) for x in (mine, other, abs(right))]
    erring = int(((mine > 0) | (other > 0)).sum())
    return found + Sample(0, erring, 0, 0, 0, *sums[0], *sums[1], *sums[2])


def fitting(
    ours: Array, theirs: Array, exact: Array, dtype: str, tolerance: float | None = None
) -> tuple[Array, Array, Array]:
    """Which elements of ``ours`` are judged and fit, which fit but say nothing; the errors to take.

    What is in neither of the first two is wrong. For our, eager's and the exact element:

    - All three are finite and the exact one is in the dtype's range: the error is measured.
    - Otherwise ours is right, or what eager gives. Right is the infinity that the exact result is,
      or overflows to in the dtype; or a number as near to it as the dtype's tolerance says, since
      eager has no error to compare with. So where eager agrees with the exact result nothing else
      will do, and where eager is off ours need not be.
    - What is only as eager's is spared: it is no worse, and says no more. So is NaN for NaN, which
      a kernel leaves in poisoned memory without writing it.
    - An exact result in the upper half of the range may become the infinity of its sign, because
      what it is made of may overflow. That is spared, too.

    No finite number stands for an infinity or a NaN that the exact function and eager agree on: it
    could be any. So the exact function has to be stable by itself.
    """
    largest = LARGEST.get(dtype, FLOAT32_LARGEST)
    allowed = DTYPES.get(dtype, FLOAT32).tolerance if tolerance is None else tolerance
    size = abs(exact)

    def near(other: Array) -> Array:
        inside = abs(other)[abs(other) <= largest]
        scale = float(inside.max()) if len(inside) else 0.0
        return abs(ours - other) <= allowed * scale

    with np.errstate(invalid="ignore"):  # inf - inf is near nothing
        infinite = (abs(ours) == math.inf) & (ours * exact > 0)
        as_eager = (ours == theirs) | near(theirs) | ((ours != ours) & (theirs != theirs))
        is_near = near(exact)
    finite = (abs(ours) < math.inf) & (abs(theirs) < math.inf)
    measured = finite & (size <= largest)
    judged = measured | (infinite & (size > largest)) | is_near
    nan = (ours != ours) & (exact != exact)
    return judged, (as_eager | nan | (infinite & (size > largest / 2))) & ~judged, measured


def verdict(groups: Sequence[Sample], dtype: str) -> Verdict:
    """Whether an output of ``dtype`` is as good as eager's, from its samples, a group each."""
    whole = reduce(add, groups)
    counts = whole.results, whole.erring, whole.lost, whole.odd, whole.spared
    if whole.lost or whole.odd or (whole.spared and not whole.results):
        return Verdict(math.inf, math.inf, math.inf, math.inf, *counts, passed=False)
    unit = ROUNDING.get(dtype, 2.0**-53)
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
        whole.peak / max(whole.exact_peak, 1e-300),
        *counts,
        passed=bounded and not (told and 2 * sum(above) > len(groups)),
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
        sum(v.results for v in found),
        min(v.erring for v in found),
        sum(v.lost for v in found),
        sum(v.odd for v in found),
        sum(v.spared for v in found),
        all(v.passed for v in found),
    )
