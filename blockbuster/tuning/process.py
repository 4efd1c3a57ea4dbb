"""What processes of a tuning run do on a GPU: run one plan, or compare several and time them.

A plan comes as a file that ``Compiled.save`` wrote, with the array program that says what is right.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from blockbuster.check.loading import comparison, program_for
from blockbuster.emit.target.gpu import Gpu
from blockbuster.frontend.program import ArrayProgram
from blockbuster.ir.types import size_class
from blockbuster.runtime.compiled import SAVED
from blockbuster.runtime.first_launch import Compare, Finding
from blockbuster.runtime.recorder import Refused
from blockbuster.runtime.replay import OnGpu, Replay
from blockbuster.runtime.saved import read_plan
from blockbuster.selection.plan import Plan
from blockbuster.tuning.clock import Clock
from blockbuster.tuning.forks import LATE

NOTHING = "nothing says what is right: the program has no form in a file"
ROUNDS = (3, 9)
"""Rounds of times, at least and at most."""

SCALE = 0.25
"""Of drawn numbers: products of several matrices stay in the range of float16."""


class Alone(Gpu):
    """A GPU in a process whose faults are nobody else's: no kernel needs a trial before."""

    def is_probed(self, assemblers: Iterable[str]) -> bool:
        """True: a launch that faults ends this process, and is its answer."""
        return True


def run_once(path: str, device: int) -> str:
    """Compile a plan, and run it once: why that cannot be, or "".

    A process of its own may fault or hang; what it compiles stays in Triton's cache.
    """
    plan, _ = _read(path)
    try:
        _ready(plan, Alone(device), drawn(plan, device))
    except Refused as refused:
        return refused.reason
    return ""


def time_rounds(
    paths: Sequence[str], device: int, compared: float, until: float, report: str
) -> None:
    """Compare the results of plans, then time those that are right in turn, round by round.

    A line of ``report`` for each time, [plan, microseconds], or reason why a plan has none. Every
    plan is timed once in a round, so a device that slows down slows all. But for the first plan,
    none is compared after ``compared`` of the monotonic clock, and no round begins after ``until``,
    but for the first ones.
    """
    clock = Clock(device)
    timers: dict[int, Callable[[], float]] = {}
    with Path(report).open("a", encoding="utf-8") as file:

        def note(at: int, entry: float | str) -> None:
            file.write(json.dumps([at, entry]) + "\n")
            file.flush()

        for at, path in enumerate(paths):
            run = _right(path, device) if not at or time.monotonic() < compared else LATE
            if isinstance(run, str):
                note(at, run)
            else:
                timers[at] = clock.timer(run)
        for number in range(ROUNDS[1]):
            if number >= ROUNDS[0] and time.monotonic() > until:
                return
            for at, timer in timers.items():
                note(at, round(timer(), 3))


def _right(path: str, device: int) -> Callable[[], list[Any]] | str:
    """A plan that runs on drawn inputs, or why it must not be used.

    What it allocates is poisoned, two runs are compared bit by bit, errors with those of eager.
    """
    plan, program = _read(path)
    if program is None:
        return NOTHING
    findings: list[Finding] = []
    exact = comparison(program)

    def compare(*given: Any) -> Finding:
        findings.append(exact(*given))
        return findings[-1]

    try:
        run = _ready(plan, Alone(device), drawn(plan, device), compare)
    except Refused as refused:
        return refused.reason
    return next((one.note for one in findings if one.note), "") or run


def _read(path: str) -> tuple[Plan, ArrayProgram | None]:
    plan, _, program = read_plan(Path(path), SAVED, program=program_for)
    return plan, program


def _ready(
    plan: Plan, gpu: Gpu, tensors: list[Any], compare: Compare | None = None
) -> Callable[[], list[Any]]:
    """A plan that ran once on these inputs, and runs on them again."""
    replay = Replay(OnGpu(plan, gpu, compare), plan.sizes)
    replay(tensors)
    return partial(replay, tensors)


def drawn(plan: Plan, device: int) -> list[Any]:
    """Normally distributed inputs of a plan, the same at each call."""
    import torch

    torch.cuda.set_device(device)
    random = torch.Generator("cuda").manual_seed(1)
    found = []
    for name, axes in plan.inputs.items():
        shape = [1 if axis is None else plan.sizes[size_class(axis)] for axis in axes]
        made = torch.randn(shape, generator=random, device="cuda", dtype=torch.float32) * SCALE
        found.append(made.to(getattr(torch, plan.input_dtypes.get(name, plan.dtype))))
    return found
