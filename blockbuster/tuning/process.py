"""The work of a tuning run's processes on a GPU: check one plan, or time several in rounds.

A plan comes as a file that ``Compiled.save`` wrote, with the array program that defines the right
result.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from blockbuster.check.loading import comparison, program_for
from blockbuster.emit.target.gpu import Gpu
from blockbuster.frontend.program import ArrayProgram
from blockbuster.ir.types import size_class
from blockbuster.runtime.compiled import SAVED
from blockbuster.runtime.first_launch import Compare, Finding, Refused
from blockbuster.runtime.replay import OnGpu, Replay
from blockbuster.runtime.saved import read_plan
from blockbuster.selection.plans.plan import Plan
from blockbuster.tuning.clock import Clock

NOTHING = "nothing says what is right: the program has no form in a file"
ROUNDS = (3, 9)
"""Rounds of times, at least and at most."""

ALONE = -1
"""The number in a report of the first plan, while the others are not ready yet."""

SCALE = 0.25
"""Of drawn numbers: products of several matrices stay in the range of float16."""


class Alone(Gpu):
    """A GPU in a process that may fault alone: no kernel needs a trial first."""

    def is_probed(self, assemblers: Iterable[str]) -> bool:
        """True: a launch that faults ends this process, and is its answer."""
        return True


def warm(device: int) -> None:
    """Set up what a process needs once on a GPU: its context, matrix products, Triton's files."""
    import torch

    torch.cuda.set_device(device)
    for dtype in (torch.float16, torch.float32, torch.float64):
        ones = torch.ones(64, 64, dtype=dtype, device="cuda")
        (torch.exp(ones) @ ones).sum().item()
    with suppress(ImportError):  # in other versions these stand elsewhere
        import_module("triton.runtime.cache").triton_key()
        import_module("triton.experimental.gluon")


def check(path: str, device: int) -> str:
    """Why a plan must not be used; "" if its results are right.

    Its allocations are poisoned, two runs are compared bit by bit, errors with those of eager.
    """
    plan, program = _read(path)
    if program is None:
        return NOTHING
    findings: list[Finding] = []
    compared = comparison(program)

    def compare(*given: Any) -> Finding:
        findings.append(compared(*given))
        return findings[-1]

    try:
        _ready(plan, Alone(device), drawn(plan, device), compare)
    except Refused as refused:
        return refused.reason
    return next((one.note for one in findings if one.note), "")


def time_rounds(paths: Sequence[str], device: int, until: float, report: str) -> None:
    """Time plans in turn, round by round; a line of ``report`` for each time: [plan, us].

    The first plan is timed alone before the others are made ready, which may take all the time that
    is left. Then every plan is timed once in a round, so a device that slows down slows all. No
    round begins after ``until`` of the monotonic clock, but for the first ones.
    """
    clock, gpu = Clock(device), Gpu(device)
    plan, _ = _read(paths[0])
    tensors = drawn(plan, device)  # all plans compute the same
    timers = [clock.timer(_ready(plan, gpu, tensors))]
    with Path(report).open("a", encoding="utf-8") as file:

        def note(at: int, us: float) -> None:
            file.write(json.dumps([at, round(us, 3)]) + "\n")
            file.flush()

        for _ in range(ROUNDS[0] if len(paths) > 1 else 0):
            note(ALONE, timers[0]())
        timers += [clock.timer(_ready(_read(path)[0], gpu, tensors)) for path in paths[1:]]
        for number in range(ROUNDS[1]):
            if number >= ROUNDS[0] and time.monotonic() > until:
                return
            for at, timer in enumerate(timers):
                note(at, timer())


def _read(path: str) -> tuple[Plan, ArrayProgram | None]:
    plan, _, program = read_plan(Path(path), SAVED, program=program_for)
    return plan, program


def _ready(
    plan: Plan, gpu: Gpu, tensors: list[Any], compare: Compare | None = None
) -> Callable[[], list[Any]]:
    """A plan that ran once on these inputs, and runs on them again."""
    replay = Replay(OnGpu(plan, gpu, compare), plan.sizes)
    replay(tensors)
    run, _ = replay.pinned(tensors)  # the clock captures it in a graph
    return partial(run, tensors)


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
