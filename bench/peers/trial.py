"""One case in this process: all contestants made, compared with the exact result, and timed."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from bench.peers.case import (
    BOUND,
    EAGER,
    OURS,
    PEERS_LARGEST,
    Array,
    Case,
    Contestant,
    Inputs,
    Run,
    as_tuple,
    error_of,
)
from bench.records import Record

ROUNDS = 5
GRAPHED = 1000.0  # microseconds below which calls are timed by CUDA graph, too
Say = Callable[[str], None]


class LostDeviceError(Exception):
    """CUDA is of no more use to this process."""


@dataclass
class Prepared:
    """A case whose contestants have run once: ``runs`` are those that did, ``failed`` the rest."""

    case: Case
    inputs: Inputs
    runs: dict[str, Run] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    setup: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def prepared(
    case: Case, contestants: Iterable[Contestant], inputs: Inputs, say: Say = lambda name: None
) -> Prepared:
    """Make and run each contestant once; ``say`` hears who comes next.

    Raises LostDeviceError after a fault of the device.
    """
    made = Prepared(case, inputs)
    for one in contestants:
        say(one.name)
        begun = time.monotonic()
        try:
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                run = one.make(inputs)
                run()
            _settled()
        except LostDeviceError:
            raise
        except Exception as error:  # one that fails must not hide the others
            _settled()
            made.failed[one.name] = f"{type(error).__name__}: {error}"[:600]
            continue
        if one.kind == OURS:
            made.notes += [str(w.message) for w in said if w.category is RuntimeWarning]
        made.runs[one.name] = run
        made.setup[one.name] = round(time.monotonic() - begun, 2)
    _emptied()
    return made


def checked(made: Prepared, say: Say = lambda name: None) -> dict[str, float]:
    """The error of each contestant; those that are wrong move from ``runs`` to ``failed``.

    Where the case quantizes, ours may err as much as eager, if that is right as a peer.
    """
    case, kinds = made.case, {one.name: one.kind for one in made.case.contestants}
    exact = case.reference(made.inputs)
    errors: dict[str, float] = {}
    names = [name for name in made.runs if kinds[name] != BOUND]
    for name in sorted(names, key=lambda name: name != EAGER):
        say(name)
        is_ours = kinds[name] == OURS
        allowed = case.quantizes and EAGER in made.runs
        of_eager = errors.get(EAGER, 0.0) if allowed else 0.0
        largest = max(case.largest, of_eager) if is_ours else case.largest * PEERS_LARGEST
        try:
            found = [y.clone() for y in as_tuple(made.runs[name]())]
            errors[name] = error_of(tuple(found), exact)
            if not errors[name] <= largest:
                raise ValueError(f"its error is {errors[name]:.1e}, above {largest:.0e}")
            if is_ours and not _runs_alike(made.runs[name], found):
                raise ValueError("two runs on the same inputs differ")
        except Exception as error:  # as above
            made.failed[name] = f"{type(error).__name__}: {error}"[:600]
            del made.runs[name]
        _settled()
    _emptied()
    return errors


def _runs_alike(run: Run, found: list[Array]) -> bool:
    """Whether a second run gives the same bits, over memory that is full of NaN (or of -1)."""
    import torch

    wrong = [float("nan") if y.is_floating_point() else -1 for y in found]
    poison = [torch.full_like(*pair) for _ in range(2) for pair in zip(found, wrong, strict=True)]
    del poison
    return all(torch.equal(y, z) for y, z in zip(found, as_tuple(run()), strict=True))


def measured(made: Prepared, say: Say = lambda name: None) -> Record:
    """Errors and times of all contestants, on a GPU."""
    from bench.timing import timed

    case = made.case
    errors = checked(made, say)
    say("")
    times = timed(made.runs, ROUNDS, graphed=float("inf") if case.graph else GRAPHED)
    ours = made.runs.get("ours")
    return {
        "key": case.key,
        "state": "timed",
        **about(case),
        "errors": errors,
        "failed": made.failed,
        "setup": made.setup,
        "notes": made.notes,
        "cold": times.cold,
        "warm": times.warm,
        "uncaptured": times.uncaptured,
        "report": ours.report() if ours is not None else "",
    }


def about(case: Case) -> dict[str, Any]:
    """What a record says of its case."""
    return {
        "suite": case.suite,
        "family": case.family,
        "case": case.name,
        "dtype": case.dtype,
        "sizes": dict(case.sizes),
        "kinds": {one.name: one.kind for one in case.contestants},
    }


def _settled() -> None:
    """Wait for the device. Raises LostDeviceError if it has failed."""
    import torch

    if torch.cuda.is_available():
        try:
            torch.cuda.synchronize()
        except RuntimeError as error:
            raise LostDeviceError(str(error)) from None


def _emptied() -> None:
    """Give memory back that other processes may need."""
    import gc

    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
