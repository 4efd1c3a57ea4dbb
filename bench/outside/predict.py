"""What is chosen for each case of this folder, without a GPU: accepted, kernels, time, floor.

    python -m bench.outside.predict --out build/outside.jsonl                  again to go on
    python -m bench.outside.predict --out build/outside.jsonl --families losses,vision --every 3
    python -m bench.outside.predict --out build/outside.jsonl --table          only the tables

The file gets a line for each case. A case that takes longer than ``--seconds`` is given up, and so
is its process. The seconds in the file are those of the processor, so that other work on the
machine counts less.

The floor is a roofline: the larger of the bytes of all inputs and results over the bandwidth, and
the operations of the products, as eager torch computes them, over the peak; plus the launch of one
kernel. The peak of float32 is that of three products of tf32 on the matrix units.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import blockbuster as bb
from bench.outside.making import callable_for
from bench.peers.case import Case, as_tuple
from bench.peers.cases import BY_KEY
from bench.peers.pool import LOST, READY, Setting, Worker
from bench.peers.report import families, geometric_mean, markdown
from bench.peers.run import add_choice, chosen
from bench.records import Log, Record
from blockbuster.selection.plans.at_sizes import at_sizes

CHOOSE = "choose"
ACCEPTED, REFUSED, BROKEN = "accepted", "refused", "broken"
WORST = 40  # cases in the table of the largest ratios


def work(pipe: Connection, _: Setting, *, machine: str) -> None:
    """What a process does: choose for the cases that it is told."""
    imported(machine)
    with suppress(EOFError, ConnectionError):
        pipe.send(READY)
        while True:
            _, key, _ = pipe.recv()
            pipe.send({"key": key, **predicted(BY_KEY[key], machine)})


def imported(machine: str) -> None:
    """Import all that a choice needs, so that no case is charged for it."""
    import torch

    x = torch.empty((256, 256), dtype=torch.float16)
    bb.jit(lambda x: torch.softmax(x @ x, -1), machine=machine).plan_for(x)


def predicted(case: Case, machine: str) -> Record:
    """The plan for one case and its price, or why there is none."""
    import torch

    dtypes = {name: getattr(torch, case.own.get(name, case.dtype)) for name in case.inputs}
    arrays = [torch.empty(case.shape(n, case.sizes), dtype=dtype) for n, dtype in dtypes.items()]
    about = {"family": case.family, "dtype": case.dtype, "sizes": dict(case.sizes)}
    about["floor_us"] = round(floor(case, arrays, machine), 2)
    begun = time.process_time()
    try:
        with torch.no_grad():
            jitted = bb.jit(callable_for(case.fn, arrays), machine=machine)
            plan = at_sizes(jitted.plan_for(*arrays), jitted.sizes_for(*arrays))
    except bb.BlockbusterError as error:
        return {**about, "state": REFUSED, "reason": str(error)}
    except Exception as error:  # a fault of ours: it must not end the list
        return {**about, "state": BROKEN, "reason": f"{type(error).__name__}: {error}"[:600]}
    about["seconds"] = round(time.process_time() - begun, 2)
    about |= {"state": ACCEPTED, "kernels": plan.kernels, "calls": len(plan.calls)}
    about["library"] = sum(call.is_library for call in plan.calls)
    if about["library"]:  # what its calls take is known to the search alone
        return {**about, **_priced(plan.total_us, about["floor_us"]), "limited_by": "library"}
    try:
        price = plan.cost(machine, launch="graph")
    except ValueError as error:  # a function of whole arrays has no price
        return {**about, "reason": str(error)}
    return {**about, **_priced(price.time_us, about["floor_us"]), "limited_by": price.critical}


def _priced(us: float, floor_us: float) -> Record:
    return {"predicted_us": round(us, 2), "ratio": round(us / floor_us, 2)}


def floor(case: Case, arrays: Sequence[Any], name: str) -> float:
    """Microseconds below which no single kernel computes the case by the products it writes."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    machine = bb.machine(name)
    given = [torch.empty_like(array, device="meta") for array in arrays]
    fn = callable_for(case.plain, given)
    weights = fn.state_dict().values() if isinstance(fn, torch.nn.Module) else ()
    with FlopCounterMode(display=False) as counted, torch.no_grad():
        results = as_tuple(fn(*given))
    moved = sum(array.numel() * array.element_size() for array in (*given, *weights, *results))
    matrix, dtype = machine.compute["matrix"], case.dtype
    peak = matrix["tf32"] / 3 if dtype == "float32" else matrix[dtype]
    seconds = max(moved / machine.tiers[0].bandwidth, counted.get_total_flops() / peak)
    return float(1e6 * (seconds + machine.launch.graph))


def records(keys: Sequence[str], seconds: float, machine: str) -> Iterator[Record]:
    """A record for each case, by a process that is replaced if a case takes too long."""
    setting, begin = Setting(patience=seconds), partial(work, machine=machine)
    worker = Worker(setting, begin)
    try:
        for key in keys:
            worker.ask((CHOOSE, key, ()))
            record = None
            while record is None:
                record = worker.heard(is_speaking=bool(wait([worker.pipe], timeout=1.0)))
            if record["state"] == LOST:
                case = BY_KEY[key]
                record |= {"family": case.family, "dtype": case.dtype, "sizes": dict(case.sizes)}
                worker = Worker(setting, begin)
            yield record
    finally:
        worker.end()


# tables ---------------------------------------------------------------------------


def table(found: Sequence[Record]) -> str:
    """A line for each family, the cases furthest above their floor, and those without a plan."""
    parts = [
        "# Predicted times over their floors\n", by_family(found),
        f"The {WORST} largest ratios:\n", worst(found), "Without a plan or a price:\n",
        failures(found),
    ]  # fmt: skip
    return "\n".join(parts)


def by_family(found: Sequence[Record]) -> str:
    """Cases, accepted ones, the mean ratio and the largest, and the median seconds."""
    rows = []
    for family, members in {**families(found), "all": list(found)}.items():
        ratios = [r["ratio"] for r in members if "ratio" in r]
        seconds = sorted(r["seconds"] for r in members if "seconds" in r)
        mean, taken = geometric_mean(ratios), [r for r in members if r["state"] == ACCEPTED]
        times = (f"{seconds[len(seconds) // 2]:.1f}", f"{seconds[-1]:.1f}") if seconds else ("", "")
        ends = (f"{mean:.2f}", f"{max(ratios):.1f}") if mean else ("", "")
        rows.append((family, len(members), len(taken), *ends, *times))
    head = ("family", "cases", "accepted", "predicted / floor, mean", "largest",
            "median seconds", "longest")  # fmt: skip
    return markdown(head, rows)


def worst(found: Sequence[Record]) -> str:
    """The cases with the largest ratios."""
    priced = sorted((r for r in found if "ratio" in r), key=lambda r: -r["ratio"])[:WORST]
    rows = [
        (
            r["key"], r["kernels"], r["predicted_us"], r["floor_us"], r["ratio"], r["limited_by"],
            r["seconds"],
        )
        for r in priced
    ]  # fmt: skip
    head = (
        "case", "kernels", "predicted, us", "floor, us", "ratio", "limited by", "seconds to choose",
    )  # fmt: skip
    return markdown(head, rows)


def failures(found: Sequence[Record]) -> str:
    """The cases that have no plan, or a plan without a price, and why."""
    rows = [
        (r["key"], r["state"], " ".join(r["reason"].split())[:240]) for r in found if "reason" in r
    ]
    return markdown(("case", "state", "why"), rows)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("build/outside.jsonl"))
    parser.add_argument("--machine", default="h100")
    parser.add_argument("--seconds", type=float, default=60, help="for one case")
    parser.add_argument("--table", action="store_true", help="print the tables of what is there")
    add_choice(parser, only="outside")
    options = parser.parse_args()
    try:
        keys = [case.key for case in chosen(options)]
        if bb.machine(options.machine).kind != "gpu":
            raise ValueError(f"{options.machine} is no GPU: a floor needs rates of matrix units")
    except ValueError as error:
        parser.error(str(error))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    log = Log(options.out)
    if not options.table:
        left = [key for key in keys if key not in log.found]
        for at, record in enumerate(records(left, options.seconds, options.machine), start=1):
            log.note(record)
            said = record.get("ratio", record["state"])
            print(f"{at} of {len(left)}  {record['key']}  {said}", flush=True)
    print(table([log.found[key] for key in keys if key in log.found]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
