"""What each kernel of a case takes on a GPU, beside those of its peers.

    python3 -m bench.gpu.kernel_times --out $OUT --only outside/inception-32x256x14x14,...
    python3 -m bench.gpu.kernel_times --out $OUT --only KEYS --tune    measured schedules, too

Each case of bench/peers is run by every contestant under the profiler of torch; the times of the
kernels of one call are written, in order, to kernel_times.jsonl, with the report of ours, which has
what was predicted. ``--tune`` runs the same program with ``bb.jit(tune="measure")``: where that is
faster, the space of schedules holds what the price does not choose.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from bench.outside.making import callable_for
from bench.peers.case import Case, Run
from bench.peers.cases import BY_KEY
from bench.peers.contestants import Jitted
from bench.records import Record, machine

CALLS = 12
SEED = 1


def kernels(run: Run) -> list[tuple[str, float]]:
    """The kernels of one call in the order of their launches, with median microseconds."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    run()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        for _ in range(CALLS):
            run()
        torch.cuda.synchronize()
    events = [
        e
        for e in seen.events()
        if e.device_time_total > 0 and "DeviceType.CUDA" in str(e.device_type)
    ]
    events.sort(key=lambda e: e.time_range.start)
    count = len(events) // CALLS
    rows = [events[at::count] for at in range(count)] if count else []
    return [
        (row[0].name[:120], round(statistics.median(e.device_time_total for e in row), 2))
        for row in rows
    ]


def makers(case: Case, *, tune: bool) -> Iterator[tuple[str, Callable[[Any], Run]]]:
    """The contestants of a case, and ours with measured schedules."""
    for one in case.contestants:
        yield one.name, one.make
    if tune:
        yield "ours, tuned", lambda inputs: _tuned(case, inputs)


def _tuned(case: Case, inputs: Any) -> Run:
    import blockbuster as bb

    arrays = tuple(inputs.values())
    fast = bb.jit(tune="measure")(callable_for(case.fn, arrays))
    fast(*arrays)
    return Jitted(fast, arrays)


def record(key: str, alone: Any, *, tune: bool) -> Record:
    """The kernels of all contestants of a case; ``alone``: a lock that is held while they run."""
    case = BY_KEY[key]
    inputs = case.drawn(case.sizes, "cuda", SEED)
    found: Record = {"key": key, "kernels": {}, "reports": {}}
    for name, make in makers(case, tune=tune):
        try:
            run = make(inputs)
            run()
            with alone:
                found["kernels"][name] = kernels(run)
        except Exception as error:  # one that fails must not hide the others
            found["kernels"][name] = f"{type(error).__name__}: {error}"[:600]
            continue
        if hasattr(run, "report"):
            found["reports"][name] = run.report()
    return found


def text(found: Record) -> str:
    """A record for people: a line for each contestant, and one for each of its kernels."""
    lines = [found["key"]]
    for name, rows in found["kernels"].items():
        if isinstance(rows, str):
            lines.append(f"  {name}: {rows}")
        else:
            lines.append(f"  {name}: {sum(us for _, us in rows):.1f}")
            lines += [f"    {us:8.1f}  {kernel[:80]}" for kernel, us in rows]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", required=True, help="keys of cases, with commas")
    parser.add_argument("--tune", action="store_true", help="ours with tune='measure', too")
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    keys = options.only.split(",")
    for key in keys:
        if key not in BY_KEY:
            parser.error(f"no case {key!r}")
    with (
        (options.out / "kernel_times.jsonl").open("a") as file,
        ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool,
    ):
        alone = get_context("spawn").Manager().Lock()
        asked = [pool.submit(partial(record, tune=options.tune), key, alone) for key in keys]
        for done in as_completed(asked):
            print(text(done.result()), flush=True)
            file.write(json.dumps(done.result() | {"about": machine()}) + "\n")
            file.flush()


if __name__ == "__main__":
    main()
