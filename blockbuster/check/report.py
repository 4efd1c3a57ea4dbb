"""The report of a kernel's check: one entry for each configuration, inputs and variant of them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from blockbuster.check.lint import Finding

NO_NUMBER = "eager or the reference gives no number there, or one that hardly fits its dtype"


@dataclass(frozen=True)
class CheckedRun:
    """One configuration on one set of inputs. ``problems`` is empty if all is well.

    ``error`` is the largest of all draws, over the largest result; the ratios to eager's errors are
    medians over groups of draws. ``judged`` and ``spared`` count elements of each output over all
    draws: those that show whether the kernel is right, and those that do not, because eager or the
    reference loses them. ``sizes``: the sizes to which the inputs were cut, if they were. ``notes``
    name what could not be tried.
    """

    configuration: int
    inputs: int
    variant: str
    error: float
    ratio_max: float | None
    ratio_rms: float | None
    problems: tuple[str, ...]
    judged: tuple[int, ...] = ()
    spared: tuple[int, ...] = ()
    sizes: str = ""
    notes: tuple[str, ...] = ()

    @property
    def where(self) -> str:
        """The configuration, the inputs, the sizes that they are cut to, and their variant."""
        cut = f", {self.sizes}" if self.sizes else ""
        return f"configuration {self.configuration}, inputs {self.inputs}{cut}, {self.variant}"

    @property
    def left(self) -> tuple[str, ...]:
        """For each output of which elements are spared, how many."""
        return tuple(
            f"{spared} of {spared + judged} elements of output {at} ({self.where}): {NO_NUMBER}"
            for at, (judged, spared) in enumerate(zip(self.judged, self.spared, strict=True))
            if spared
        )


@dataclass(frozen=True)
class KernelReport:
    """The result of ``check_kernel``. ``notes`` name the checks that were not possible, and why."""

    runs: tuple[CheckedRun, ...]
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """True if every run is right and the lint found nothing."""
        return not self.findings and not any(run.problems for run in self.runs)

    def to_json(self) -> str:
        """The whole report as JSON."""
        return json.dumps({"passed": self.passed, **asdict(self)}, indent=1)

    def __str__(self) -> str:
        bad = [run for run in self.runs if run.problems]
        worst = max((run.error for run in self.runs), default=0.0)
        ratios = [r for run in self.runs for r in (run.ratio_max, run.ratio_rms) if r is not None]
        beside = f", at most {max(ratios):.2f} times eager's" if ratios else ""
        lines = [
            f"{'passed' if self.passed else 'FAILED'}: {len(self.runs)} runs, {len(bad)} wrong;"
            f" largest error {worst:.2g} of the largest result{beside}"
        ]
        lines += [f"  {run.where}: {problem}" for run in bad for problem in run.problems]
        lines += [f"  {finding}" for finding in self.findings]
        spared = [left for run in self.runs for left in run.left]
        return "\n".join([*lines, *(f"  not checked: {note}" for note in [*spared, *self.notes])])
