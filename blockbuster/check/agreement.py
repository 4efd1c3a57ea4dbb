"""The quick judgement of a kernel's first result: against the exact result, beside eager's.

It judges a result that is about to be returned; ``judge.py`` judges a kernel thoroughly. A kernel
that a compiler broke is wrong in a large part of its result, so one or two sets of arrays suffice.
A right kernel must never be refused:

- An element is judged if both the exact result and eager's are finite numbers of the dtype. In the
  upper half of the dtype's range ours may still be infinite or NaN, because intermediate values may
  overflow. If the exact result is beyond twice the range and eager's is infinite, ours must not be
  a number.
- Its error may be 4 times the largest of eager's, or half a unit in the last place of the largest
  result (one unit for float32), or the error made where numbers too small for the dtype become 0.
- If a few roundings of operands can change the exact result to ours, ours is right: a rounding
  decides at the jump of a comparison, and may be what is left of x - x. ``Reach`` holds how far
  results can move.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from blockbuster.check.judge import BOUND, FLOAT32_LARGEST, LARGEST, ROUNDING, Sample

Tensor = Any  # a torch tensor, or a NumPy array

FLUSHED = {"float16": 2.0**-25, "bfloat16": 2.0**-126, "float32": 2.0**-126}
"""Numbers up to here may become 0: the fast functions of GPUs know no subnormal ones of float32."""


@dataclass(frozen=True)
class Reach:
    """The least and the largest that each element of an output becomes with a few roundings."""

    low: Tensor
    high: Tensor

    @classmethod
    def of(cls, results: Sequence[Tensor]) -> Reach:
        """The reach of exact results, and of results of inputs with small changes."""
        low = high = results[0]
        for result in results[1:]:
            low = low.where(low <= result, result)
            high = high.where(high >= result, result)
        return cls(low, high)

    def holds(self, ours: Tensor, *, beside: float) -> Tensor:
        """Where our results are within the reach, doubled, give or take ``beside``."""
        if self.low.dtype == ours.dtype and not ours.dtype.is_floating_point:
            return self.low != self.high
        room = (self.high - self.low) + beside
        return (ours.double() >= self.low - room) & (ours.double() <= self.high + room)


def sampled(
    ours: Tensor, eager: Tensor, exact: Tensor, dtype: str, reach: Reach | None = None
) -> Sample:
    """The errors of one output of ``dtype``. ``lost`` are elements that are no number, or a truth
    value that is false; with ``reach``, those are left out that a few roundings give as well."""
    if dtype == "bool":
        wrong = (ours != exact) & (eager == exact)
        if reach is not None:
            wrong = wrong & ~reach.holds(ours, beside=0)
        return Sample(results=math.prod(exact.shape), lost=int(wrong.sum()))
    right, mine, other = exact.double(), ours.double(), eager.double()
    largest = LARGEST.get(dtype, FLOAT32_LARGEST)
    size = right.abs()
    judged = (size <= largest) & (other.abs() <= largest)
    judged &= (size <= largest / 2) | mine.isfinite()
    errors, theirs = _errors(mine, right, judged), _errors(other, right, judged)
    overflown = (size > 2 * largest) & (other == right.sign() * math.inf)
    errors = errors.masked_fill(overflown & mine.isfinite(), math.inf)
    judged, right = judged | overflown, right.masked_fill(overflown, 0.0)
    found = _sample(errors, theirs, right, judged)
    if reach is None:
        return found
    excused = reach.holds(ours, beside=limit(found, dtype))
    return _sample(errors.where(~excused, 0.0), theirs, right, judged & ~excused)


def _errors(found: Tensor, right: Tensor, judged: Tensor) -> Tensor:
    """Distances from the exact values, infinite for NaN; 0 for elements that are not judged."""
    apart = (found - right).abs().where(judged, 0.0)
    return apart.where(apart == apart, math.inf)


def _sample(errors: Tensor, theirs: Tensor, right: Tensor, judged: Tensor) -> Sample:
    if not bool(judged.any()):
        return Sample(spared=math.prod(right.shape))
    number = errors < math.inf
    return Sample(
        results=int(judged.sum()),
        erring=int(((errors > 0) | (theirs > 0)).sum()),
        lost=int((~number).sum()),
        spared=int((~judged).sum()),
        peak=float(errors.where(number, 0.0).max()),
        eager_peak=float(theirs.max()),
        exact_peak=float(right.abs().where(judged, 0.0).max()),
    )


def limit(sample: Sample, dtype: str) -> float:
    """The largest error that an output of ``dtype`` may have."""
    unit = ROUNDING.get(dtype, 2.0**-53) * sample.exact_peak
    return max(BOUND * sample.eager_peak, unit, FLUSHED.get(dtype, 0.0))


def excess(sample: Sample, dtype: str) -> str:
    """By how much errors exceed their bounds, in words; empty if they do not."""
    if sample.lost:
        what = "truth values" if dtype == "bool" else "elements that are no numbers"
        return f"{sample.lost} of {sample.results} {what} where eager is right"
    if sample.peak <= limit(sample, dtype):
        return ""
    return (
        f"a largest error of {sample.peak:.2g} beside eager's {sample.eager_peak:.2g}, "
        f"for results of up to {sample.exact_peak:.2g}"
    )


def first_excess(samples: Iterable[Sample], dtypes: Sequence[str], names: Sequence[str]) -> str:
    """The first output whose errors are too large, and how; empty if there is none."""
    for sample, dtype, name in zip(samples, dtypes, names, strict=True):
        reason = excess(sample, dtype)
        if reason:
            return f"{name} has {reason}"
    return ""
