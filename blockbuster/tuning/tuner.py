"""``tune="measure"``: kernels without known results are measured before they first run."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field

from blockbuster.selection.plans.family import Family
from blockbuster.selection.plans.plan import File, Plan
from blockbuster.tuning.bench import gpu_bench
from blockbuster.tuning.candidates import candidates
from blockbuster.tuning.entry import Entry
from blockbuster.tuning.known import KnownResults
from blockbuster.tuning.measuring import LIMIT, Measuring, Save, Tell, Unsaved

TWICE = 2
"""A plan made anew may be for other sizes than the one that was measured, once."""

LONGER = "so the times of others say nothing; bb.tune and `blockbuster tune` take a longer limit"


@dataclass(frozen=True)
class Tuner:
    """Measures kernels without results, and stores the results.

    ``asked_for``: the questions that were measured in this process, with any outcome.
    """

    known: KnownResults
    measuring: Measuring
    asked_for: dict[str, None] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def tuned(
        self, family: Family, plan: Callable[[], Plan], save: Save, *, one_kernel: bool = False
    ) -> Plan:
        """The plan that ``plan`` returns after its kernels were measured."""
        with self.lock:
            for _ in range(TWICE):
                found = plan()
                new = [file for file in found.files if self._is_new(family, found, file)]
                if not new:
                    return found
                for file in new:
                    self.measured(family, found, file, save, one_kernel=one_kernel)
                family.forget()
            return plan()

    def measured(
        self, family: Family, plan: Plan, file: File, save: Save, *, one_kernel: bool = False
    ) -> Entry | None:
        """The measurements for a file of a plan; they are kept if any schedule has a time."""
        asked = family.asked(plan, file, one_kernel=one_kernel)
        key = self.known.key(asked)
        assert key is not None, "it is asked for by its key"
        self.asked_for[key.question] = None
        full = self.known.with_versions(key)
        self.measuring.bench.begin()
        try:
            entry = self.measuring.entry(family, plan, file, asked, key=full, save=save)
        except Unsaved as error:
            _warn(plan, f"it cannot be measured in a process of its own: {error}")
            return None
        if not entry.ranked:
            _warn(plan, f"no schedule could be timed: {entry.found[0].reason}")
            return entry
        self.known.store.write(entry)
        if not entry.is_fair:
            _warn(plan, f"it was not compiled within {self.measuring.limit:g} s, {LONGER}")
        return entry

    def _is_new(self, family: Family, plan: Plan, file: File) -> bool:
        asked = family.asked(plan, file)
        key = self.known.key(asked)
        if key is None or key.question in self.asked_for:
            return False
        return not self.known.is_settled(asked, self.measuring.limit)


def _warn(plan: Plan, reason: str) -> None:
    said = f"{plan.name} is not tuned, the model's choice is taken: {reason}"
    warnings.warn(said, RuntimeWarning, stacklevel=5)


def tuner_for(
    known: KnownResults, device: int, *, limit: float = LIMIT, tell: Tell = lambda _: None
) -> Tuner:
    """A tuner for a GPU of this host, by its number."""
    return Tuner(known, Measuring(gpu_bench(device), candidates, limit, tell))
