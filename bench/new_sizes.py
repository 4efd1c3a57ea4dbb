"""The host cost of new sizes: a jitted function at N = 1, 2, ... 4096, as decoding calls it.

    python -m bench.new_sizes [--device cpu|cuda] [--upto 4096] [--json FILE] [--whole]

Each size is called once ("new") and, a while later, again ("known": its layout is remembered). The
cost of a new size is the difference to a known one. Only the host is timed. On a GPU calls return
before the kernels have run; on the CPU the arithmetic is left out (``--whole`` leaves it in) and
time is that of this thread, so that neither caches nor other processes are measured. Calls that
chose or compiled something (the first of a class of sizes, the first kernel of a pattern) are
listed separately: "first of a class". The first call of all, which traces, fuses and loads modules,
is counted with those.

The raw times of every size are in the JSON, with how many plans and how many compiled kernels
served all sizes.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import blockbuster as bb
from blockbuster.jitted import Jitted
from blockbuster.runtime import compiled
from blockbuster.runtime.compiled import Run
from blockbuster.runtime.replay import Recording
from blockbuster.selection.plans.plan import Plan

AGAIN = 256  # sizes after which a size is called again: its layout is still remembered


def attention(q, k, v):
    return bb.softmax((q @ k.T) * q.shape[-1] ** -0.5) @ v


def batched(q, k, v):
    return bb.softmax((q @ k.swapaxes(-1, -2)) * q.shape[-1] ** -0.5) @ v


def appended(q, k, new):
    keys = bb.concat([k, new], axis=0)
    return bb.softmax(q @ keys.T) @ keys


def rows(x):
    return bb.softmax(x)


Arrays = Callable[[Callable[..., Any], int], list[Callable[[int], Any]]]
CASES: dict[str, tuple[Callable[..., Any], Arrays]] = {
    "attention, one query of 128": (
        attention,
        lambda draw, most: [_fixed(draw(1, 128)), _first(draw(most, 128)), _first(draw(most, 128))],
    ),
    "attention, 8 heads, one query of 64": (
        batched,
        lambda draw, most: [
            _fixed(draw(8, 1, 64)),
            _middle(draw(8, most, 64)),
            _middle(draw(8, most, 64)),
        ],
    ),
    "attention, a key appended": (
        appended,
        lambda draw, most: [_fixed(draw(1, 64)), _first(draw(most, 64)), _fixed(draw(1, 64))],
    ),
    "softmax of 16 rows": (rows, lambda draw, most: [_columns(draw(16, most))]),
}


def _fixed(array: Any) -> Callable[[int], Any]:
    return lambda n: array


def _first(array: Any) -> Callable[[int], Any]:
    return lambda n: array[:n]


def _middle(array: Any) -> Callable[[int], Any]:
    return lambda n: array[:, :n]


def _columns(array: Any) -> Callable[[int], Any]:
    return lambda n: array[:, :n]


def drawing(device: str) -> Callable[..., Any]:
    """Draws arrays: float32 for NumPy on the CPU, float16 tensors on a GPU."""
    if device == "cpu":
        rng = np.random.default_rng(0)
        return lambda *shape: rng.standard_normal(shape, dtype=np.float32)
    import torch

    return lambda *shape: torch.randn(shape, device=device, dtype=torch.float16)


class Work:
    """Counts what a call does beside looking up: choices of a class, and files compiled."""

    def __init__(self, function: Jitted) -> None:
        self._function = function
        self.files = 0
        first = Recording.first

        def counted(recording: Recording, tensors: list[Any]) -> Any:
            self.files += 1
            return first(recording, tensors)

        Recording.first = counted  # type: ignore[method-assign]

    def done(self) -> tuple[int, ...]:
        """Numbers that change where a call did more than look up."""
        families = [traced.family for traced in self._function._traced.values()]
        classes = [c for f in families for g in f._classes._groups.values() for c in g.plans]
        alone = sum(len(f._classes._exact) for f in families)
        return len(families), len(classes), alone, self.files

    def plans(self) -> int:
        """How many plans serve all sizes."""
        return sum(len(t.family._plans) for t in self._function._traced.values())

    def binaries(self) -> int:
        """How many compiled kernels serve all sizes, on a GPU."""
        found: dict[int, Any] = {}
        for traced in self._function._traced.values():
            for one in traced.compiled:
                for on_gpu in one._gpus.values():
                    for launches in on_gpu.known.values():
                        for kernels in launches._known.values():
                            found |= {id(kernel.function): kernel for kernel in kernels}
        return len(found)


def measured(name: str, device: str, upto: int) -> dict[str, Any]:
    """Times in microseconds of every size, new and known."""
    clock = time.thread_time if device == "cpu" else time.perf_counter
    fn, arrays = CASES[name]
    function = bb.jit(fn)
    found = arrays(drawing(device), upto)
    work = Work(function)
    new: list[float] = []
    known: list[float] = []
    chose: list[bool] = []

    def timed(n: int) -> float:
        given = [array(n) for array in found]
        start = clock()
        function(*given)
        return (clock() - start) * 1e6

    for first in range(1, upto + 1, AGAIN):
        block = range(first, min(first + AGAIN, upto + 1))
        for n in block:
            before = work.done()
            new.append(timed(n))
            chose.append(work.done() != before)
        known += map(timed, block)
        _wait(device)
    return {"program": name, "new_us": new, "known_us": known, "first_of_class": chose,
            "plans": work.plans(), "compiled_kernels": work.binaries()}  # fmt: skip


def _nothing(plan: Plan, _: Any) -> Run:
    """What stands for a plan that is to run on the CPU: it gives its inputs."""
    return lambda given: [given[0]] * len(plan.results)


def _wait(device: str) -> None:
    if device != "cpu":
        import torch

        torch.cuda.synchronize()


def summary(found: dict[str, Any]) -> dict[str, float]:
    """What an engineer wants to know of the raw times."""
    new, known = np.array(found["new_us"]), np.array(found["known_us"])
    first = np.array(found["first_of_class"])
    more = (new - known)[~first]
    return {
        "known_median_us": float(np.median(known)),
        "new_median_us": float(np.median(new[~first])),
        "more_median_us": float(np.median(more)),
        "more_p99_us": float(np.percentile(more, 99)),
        "firsts": int(first.sum()),
        "firsts_median_ms": float(np.median(new[first])) / 1e3,
        "firsts_total_s": float(new[first].sum()) / 1e6,
    }


def shown(found: dict[str, Any]) -> str:
    """One program in words."""
    of = summary(found)
    kernels = f", {found['compiled_kernels']} compiled kernels" if found["compiled_kernels"] else ""
    return (
        f"{found['program']:36} known {of['known_median_us']:6.1f} us, a new size costs "
        f"{of['more_median_us']:5.1f} us more (99th percentile {of['more_p99_us']:6.1f}); "
        f"{of['firsts']:3} first of a class, {of['firsts_median_ms']:6.1f} ms each, "
        f"{of['firsts_total_s']:5.1f} s in all; {found['plans']} plans{kernels}"
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Measure all programs; print a line for each, and write the raw times."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--upto", type=int, default=4096)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--whole", action="store_true", help="time the CPU's arithmetic, too")
    options = parser.parse_args(argv)
    if options.device == "cpu" and not options.whole:
        compiled.OnHost = _nothing
    device = platform.processor() or platform.machine()
    if options.device == "cuda":
        import torch

        device = torch.cuda.get_device_name()
    results = []
    for name in CASES:
        results.append(measured(name, options.device, options.upto))
        print(shown(results[-1]), flush=True)
    if options.json:
        for found in results:
            found["summary"] = summary(found)
        data = {"device": device, "upto": options.upto, "programs": results}
        options.json.write_text(json.dumps(data) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
