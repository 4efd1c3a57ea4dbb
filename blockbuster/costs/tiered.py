"""The closed form: a kernel's time from its work and a machine's rates.

A processor runs some programs side by side. One iteration of their loop takes as long as the
busiest resource needs for all of them, but no less than one program's chain: a dot, the values
computed from it, the next dot, and waits for loads, some of which began an iteration or more
before. A kernel takes as many rounds of programs as fill all processors, and a last round of the
remaining programs.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from blockbuster.costs.cached import from_memory
from blockbuster.costs.coefficients import FITTED, Coefficients
from blockbuster.costs.steps import Rates, Step, is_stream
from blockbuster.costs.work import Work
from blockbuster.machines.machine import Machine

SPARE = 1.25
"""How many times the available registers an estimate may want before a kernel counts as spilling:
of the fitted pairs that want 1.1 to 1.25 times as many most spill, and take 1.04 to 1.5 times as
long as without; those that want more take up to 33 times as long.
"""


VALUE_UNITS = ("vector", "special", "issue")
"""The resources of warps that compute values other than dots."""


@dataclass(frozen=True)
class NestTime:
    """Seconds of one kernel without its launch.

    ``bytes``: by tier. ``busy``: seconds in which each resource works. ``resident``: programs that
    a processor runs side by side. ``waves``: how many times the programs fill all processors;
    ``tail``: the part of the processors' time that passes after the last program of each.
    """

    seconds: float
    bytes: Mapping[str, int] = field(hash=False)
    busy: Mapping[str, float] = field(hash=False)
    resident: int
    waves: float = 1.0
    tail: float = 0.0


def time_of(
    work: Work,
    machine: Machine,
    *,
    held: Collection[str] = (),
    coefficients: Coefficients = FITTED,
) -> NestTime:
    """The time of one kernel; ``held`` are arrays that the cache has before it begins.

    Its registers are an estimate, which decides how many programs share a processor: the seconds
    are the mean over likely numbers, and all else is as estimated. Raises ValueError for a program
    that does not fit a processor of the machine, or a rate that is needed and missing.
    """
    likely = work.footprint.likely_residents(machine)
    times = {n: _with_residents(work, machine, n, held, coefficients) for n in likely}
    seconds = sum(weight * times[n].seconds for n, weight in likely.items())
    wanted = work.footprint.registers / work.footprint.available(machine)
    spilled = 1.0 + coefficients.spill * max(0.0, wanted - SPARE)
    return replace(times[work.footprint.resident(machine)], seconds=seconds * spilled)


def _with_residents(
    work: Work,
    machine: Machine,
    resident: int,
    held: Collection[str],
    coefficients: Coefficients,
) -> NestTime:
    """The time of one kernel of which a processor runs so many programs side by side."""
    resident = min(resident, -(-work.fixed // machine.processors)) if work.fixed else resident
    wave = min(work.programs, machine.processors * resident)
    missed = from_memory(work, machine, wave, held)
    rates = Rates(work, machine, coefficients, missed)
    return passed(work, machine, rates, resident, coefficients.start)


class Stepping(Protocol):
    """The source of a kernel's steps: the closed form, or a model that knows its machine code."""

    @property
    def resources(self) -> tuple[str, ...]: ...
    def moved(self) -> dict[str, int]: ...
    @property
    def between(self) -> float: ...
    def total(self, name: str) -> float: ...
    def steps(self, active: int) -> tuple[Step, ...]: ...


def passed(work: Work, machine: Machine, rates: Stepping, resident: int, start: float) -> NestTime:
    """The time of a kernel with known steps, with ``resident`` programs on a processor."""
    seconds, idle = _rounds(work, machine, rates, resident)
    busy = {name: rates.total(name) for name in rates.resources}
    waves = work.programs / (machine.processors * resident)
    return NestTime(seconds + start, rates.moved(), busy, resident, waves, idle / (seconds + start))


def _rounds(work: Work, machine: Machine, rates: Stepping, resident: int) -> tuple[float, float]:
    """Seconds until the last program is done; of these, those after a processor's last program."""
    side = min(resident, -(-work.programs // machine.processors))
    if any(phase.each for phase in work.phases):
        return _listed(work, machine, rates, side)
    if work.fixed and not work.in_turn:
        return _one_by_one(work, machine, rates, side)
    full, left = divmod(work.programs, machine.processors * resident)
    ahead = work.in_turn and resident == 1
    found = last = 0.0
    if full:
        round_ = rates.steps(machine.processors)
        pairs = work.in_turn and not ahead
        later = in_turn(round_, rates.between) if ahead else overlapped(round_, resident, pairs)
        later += rates.between if _in_step(work, resident) else 0.0
        found += begun_at_once(round_, resident) + (full - 1) * later
    if left:
        steps = rates.steps(left)
        others = -(-left // machine.processors)
        waits = not (full and ahead)
        last = begun_at_once(steps, others) if waits else in_turn(steps, rates.between)
    return found + last, last * max(0.0, 1.0 - left / machine.processors)


def _one_by_one(work: Work, machine: Machine, rates: Stepping, side: int) -> tuple[float, float]:
    """The same where a fixed number of programs takes the places, and begins each anew.

    Only other programs on a processor hide the waits of a place, and few fit.
    """
    at_once = min(work.fixed, machine.processors * side)
    full, left = divmod(work.programs, at_once)
    steps = rates.steps(min(at_once, machine.processors))
    found = full * begun_at_once(steps, side)
    if not left:
        return found, 0.0
    last = begun_at_once(rates.steps(min(left, machine.processors)), -(-left // machine.processors))
    return found + last, last * max(0.0, 1.0 - left / machine.processors)


def _in_step(work: Work, resident: int) -> bool:
    """True if programs side by side store at the same time, since they began at the same time.

    Not where they take places in turn: then one stores while the others' dots run.
    """
    return resident > 1 and not work.in_turn and any(map(is_stream, work.phases))


def begun_at_once(steps: tuple[Step, ...], programs: int) -> float:
    """Seconds of so many programs that begin at once."""
    return sum(step.runs * step.seconds(programs) for step in steps)


def in_turn(steps: tuple[Step, ...], between: float) -> float:
    """Seconds of a place of the grid whose loads began at the place before, and whose results are
    stored at the next one.

    Matrix units stand still ``between`` their dots: that adds to the time where the dots take
    longest, and is part of it where storing does.
    """
    begun = tuple(replace(step, chain=step.chain - step.fill) for step in steps)
    return side_by_side(begun, 1) + (between if _longest(begun, 1).streams else 0.0)


def overlapped(steps: tuple[Step, ...], programs: int, turns: bool = False) -> float:
    """Seconds in which so many programs pass, some of which begin while others compute.

    ``turns``: they take their places in turn.
    """
    return begun_at_once(steps, 1) if programs == 1 else side_by_side(steps, programs, turns)


def side_by_side(steps: tuple[Step, ...], programs: int, turns: bool = False) -> float:
    """Seconds in which so many programs pass, all of whose steps are mixed.

    They overlap as well as their longest step does; if they take ``turns``, as well as their loops
    of dots, which never stop then: others store meanwhile. So two programs of 128 x 128 to a
    processor take a product of 8192 x 128 x 4096 in 26 microseconds instead of 34; an H200 took 24.

    Matrix units stand still while values are computed behind a loop of dots, whether the next dots
    come from the same warps or from those of another program: on an H100 silu took 8 to 12
    microseconds more behind a product of 4096 x 768 x 3072 than the product alone, in any of 12
    schedules, and tanh 13 to 25; if all issue slots are taken, their instructions take 7 and 12
    (bench/results/2026-11-28-h100-outside/schedules_of_products.jsonl).
    """
    loops = [step for step in steps if step.streams]
    like = _longest(loops if turns and loops else steps, programs)
    behind = [step for step in steps if like.streams and not step.streams]
    names = dict.fromkeys(name for step in steps for name in step.resources)
    mixed = {name: loops if behind and name in VALUE_UNITS else steps for name in names}
    busy = [sum(s.runs * s.resources.get(name, 0.0) for s in mixed[name]) for name in mixed]
    chain = sum(step.runs * step.chain for step in steps)
    alone = programs * sum(step.runs * step.values for step in behind)
    alone += sum(step.runs * step.places for step in steps)
    return like.combined([programs * each for each in busy], chain, alone)


def _longest(steps: Sequence[Step], programs: int) -> Step:
    return max(steps, key=lambda step: step.runs * step.seconds(programs))


def _listed(work: Work, machine: Machine, rates: Stepping, side: int) -> tuple[float, float]:
    """The same where programs differ: each slot takes the next one as soon as it is free.

    Slots are filled processor by processor, so a processor has ``side`` programs until there is
    none left; from then on those that still run share it with fewer others.
    """
    steps = rates.steps(min(work.fixed or work.programs, work.programs, machine.processors))
    found = np.zeros(work.programs)
    for step in steps:
        found += np.array(step.each or step.runs) * step.seconds(side)
    lengths = found.tolist()
    if work.fixed:  # each program takes every so manieth place
        lengths = [sum(lengths[at :: work.fixed]) for at in range(min(work.fixed, work.programs))]
    ends = _ends(lengths, machine.processors, side)
    alone = [begun_at_once(steps, count) / begun_at_once(steps, side) for count in range(side + 1)]
    done = [_shared(each, alone) for each in ends]
    return max(done), max(done) - sum(done) / len(done)


def _ends(lengths: Sequence[float], processors: int, side: int) -> list[list[float]]:
    """When the slots of each processor are free for good, if a slot takes as long for a program as
    beside ``side - 1`` others.
    """
    free = [(0.0, slot) for slot in range(processors * side)]
    for length in lengths:
        at, slot = free[0]
        heapq.heapreplace(free, (at + length, slot))
    found: list[list[float]] = [[] for _ in range(processors)]
    for end, slot in free:
        found[slot % processors].append(end)
    return found


def _shared(ends: Sequence[float], part: Sequence[float]) -> float:
    """When a processor is done whose slots would be free at ``ends``: ``part[n]`` is the part of
    the time beside all others that a program takes beside n - 1.
    """
    found = before = 0.0
    for left, end in zip(range(len(ends), 0, -1), sorted(ends), strict=True):
        found += (end - before) * part[left]
        before = end
    return found
