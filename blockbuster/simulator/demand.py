"""The demand of one run of a body on a processor: seconds on each of its units, step by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from blockbuster.costs.phases import Phase
from blockbuster.costs.steps import Rates, is_stream

LOCAL = 2
"""Where a processor's own memory stands among the tiers of a machine."""


@dataclass(frozen=True, eq=False)
class Demand:
    """``seconds``: of each unit of a processor, for a program that has it alone.

    ``least``: seconds that the step lasts, however idle the processor is. ``queued``: the units
    that programs may have to share; the others never decide when a step ends.
    """

    seconds: Mapping[str, float]
    least: float = 0.0
    queued: tuple[str, ...] = ()

    def times(self, runs: int) -> Demand:
        """The demand of so many runs, one after the other."""
        seconds = {unit: runs * s for unit, s in self.seconds.items()}
        return Demand(seconds, runs * self.least, self.queued)


def deciding(steps: Sequence[Demand]) -> tuple[str, ...]:
    """The units of which no other is busy at least as long in each of ``steps``.

    A unit that is never busy longer than another ends no step: where programs share both equally,
    the amount of the other unit is given last.
    """
    units = tuple(dict.fromkeys(unit for step in steps for unit in step.seconds))
    seconds = {unit: [step.seconds.get(unit, 0.0) for step in steps] for unit in units}

    def less(at: int, other: int) -> bool:
        pairs = list(zip(seconds[units[at]], seconds[units[other]], strict=True))
        equal = all(mine == theirs for mine, theirs in pairs)
        return all(mine <= theirs for mine, theirs in pairs) and (not equal or other < at)

    numbers = range(len(units))
    return tuple(units[i] for i in numbers if not any(less(i, j) for j in numbers if i != j))


def demands(phase: Phase, rates: Rates) -> tuple[Demand, ...]:
    """The steps of one run of ``phase``, which is one of those of ``rates.work``.

    What is computed from the result of a dot waits for it, and the next dot waits for that: matrix
    units and the others work one after the other. A body of dots and nothing else is one step: the
    matrix units take the next operands while they still multiply.
    """
    if not phase.runs:
        return ()
    dot, rest = _of_dots(phase, rates), _of_others(phase, rates)
    each = {unit: seconds / phase.runs for unit, seconds in rates.computing(phase).items()}
    chain, waits = rates.issuing(phase, each), _waits(phase, rates)
    matrix = dot.get("matrix", 0.0)
    if dot and (phase.waits or rest.get("vector")):
        fitted, clock = rates.fitted, rates.machine.clock
        return (Demand(dot, matrix + phase.dots * fitted.dot / clock), Demand(rest, chain + waits))
    both = {unit: dot.get(unit, 0.0) + rest.get(unit, 0.0) for unit in (*dot, *rest)}
    least = max(matrix, chain) + waits
    return (Demand(both, least),) if both or least else ()


def between(phase: Phase, rates: Rates) -> float:
    """Seconds of a run in which its program has no loads under way that run ahead by one.

    They begin where a run ends and are waited for where the next begins; only the last dots of
    four warps together go on meanwhile, or all that a run does if nothing waits for its dots.
    """
    if is_stream(phase):
        return 0.0
    own = sum(step.least for step in demands(phase, rates))
    apart = phase.apart or not phase.dots
    return own - (0.0 if apart else rates.computing(phase)["matrix"] / phase.runs / phase.dots)


def port(phase: Phase, rates: Rates) -> float:
    """Seconds in which a processor loads or stores a byte: it asks for lines, parts of them come.

    It has its share of the cache's bandwidth, and no more where others are idle.
    """
    machine, fitted = rates.machine, rates.fitted
    moved = sum(phase.loaded.values()) + sum(phase.stored.values())
    if not moved:
        return 0.0
    cache = machine.tiers[1].bandwidth * fitted.cache / machine.processors
    return max(phase.sectors / cache, phase.lines * fitted.request / machine.clock) / moved


def _waits(phase: Phase, rates: Rates) -> float:
    """Seconds of one run in which one thing waits for another, dots apart."""
    fitted = rates.fitted
    cycles = phase.folds * fitted.fold + phase.exchanges * fitted.exchange
    return (cycles + (0.0 if phase.dims else fitted.begin)) / rates.machine.clock


def _of_dots(phase: Phase, rates: Rates) -> dict[str, float]:
    """Seconds of matrix units, and of reading their operands."""
    found = {
        "matrix": rates.computing(phase)["matrix"] / phase.runs,
        rates.machine.tiers[LOCAL].name: _local(phase.fetched, phase, rates),
    }
    return found if found["matrix"] else {}


def _of_others(phase: Phase, rates: Rates) -> dict[str, float]:
    """Seconds of the other units, and of copies into a processor's own memory."""
    found = {unit: s / phase.runs for unit, s in rates.computing(phase).items() if unit != "matrix"}
    found[rates.machine.tiers[LOCAL].name] = _local(phase.copied, phase, rates)
    return {unit: seconds for unit, seconds in found.items() if seconds}


def _local(moved: int, phase: Phase, rates: Rates) -> float:
    processors, local = rates.machine.processors, rates.machine.tiers[LOCAL]
    return moved * rates.work.crowded / phase.runs * processors / local.bandwidth
