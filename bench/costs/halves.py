"""Products with what folds pieces of their columns, in one kernel, and their halves: the prices.

    python -m bench.costs.halves                                 what is predicted; no GPU
    python -m bench.costs.halves --out $OUT/halves               measured, too
    python -m bench.costs.halves --table bench/results/FOLDER/halves.jsonl       a table again

In one kernel, as they are chosen while a program's views go to its inputs, these products take 50
to 800 times as long as two kernels. So a price must be right there, too, if it is to tell whether
a program is better cut. Each program is emitted as chosen for its sizes, compiled, checked against
float64 and timed, cold and by CUDA graph. OUT/halves.jsonl gets a line for each.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import blockbuster
from bench.costs import array_functions as arrays
from bench.costs.measured import LAUNCH, WARM, WAYS, Record
from bench.costs.variations import TARGET
from bench.costs.workloads import Workload
from bench.records import machine
from bench.schedules.programs import matmul
from blockbuster.emit.target.targets import target_of
from blockbuster.machines.present import gpu_name

ROUNDS = 3


def _workload(name: str, fn: Callable[..., Any], **inputs: str) -> Workload:
    sizes = {size: int(size) for dims in inputs.values() for size in dims.split()}
    return Workload(name, "halves", fn, inputs, sizes, sizes)


LARGE = dict(x="1024 8192", w="8192 8192")
SMALL = dict(x="1024 4096", w="4096 4096")
WORKLOADS = (
    _workload("linear and group norm", arrays.group_norm_of_linear, **LARGE, b="8192"),
    _workload("linear", arrays.linear, **LARGE, b="8192"),
    _workload("group norm", arrays.group_norm, x="1024 16 512"),
    _workload("product and max of pairs", arrays.max_of_pairs_of_product, **SMALL),
    _workload("product and norm of heads", arrays.norm_of_heads_of_product, **SMALL),
    _workload("product", matmul, **SMALL),
    _workload("max of pairs", arrays.largest_of_pieces, x="1024 2048 2"),
    _workload("norm of heads", arrays.norm_of_heads, x="1024 32 128"),
)
BY_NAME = {workload.name: workload for workload in WORKLOADS}


@dataclass(frozen=True)
class Made:
    """The kernel that is chosen for a program: its schedule and its file.

    ``predicted``: microseconds by the closed form, by way of measuring.
    """

    name: str
    schedule: str
    source: str
    predicted: dict[str, float]


def made(name: str) -> Made:
    """What is chosen for a program, compiled. Raises EmitError for a kernel that must not run."""
    from bench.costs.building import runnable
    from blockbuster.emit.target.load import load_module

    workload, target = BY_NAME[name], target_of(TARGET)
    traced = blockbuster.trace(workload.fn, **workload.inputs)
    derivation = blockbuster.fuse(blockbuster.lower(traced))
    kernel = blockbuster.emit(derivation, dict(traced.fixed_sizes), workload.dtype, TARGET)
    for entry in load_module(kernel.source).KERNELS:
        runnable(entry, target)
    predicted = {
        way: kernel.cost(target.machine, launch=LAUNCH[way], warm=way == WARM).time_us
        for way in WAYS
    }
    return Made(name, kernel.schedule, kernel.source, predicted)


def timed(one: Made, folder: Path) -> dict[str, list[float]]:
    """Microseconds of each round, by way. Raises ValueError if a result is wrong."""
    from bench.costs.launching import ready
    from bench.costs.timing import clocks_of, error_of, in_rounds
    from bench.timing import Clock

    workload, clock = BY_NAME[one.name], Clock()
    path = folder / f"{one.name.replace(' ', '-')}.py"
    path.write_text(one.source, encoding="utf-8")
    inputs = workload.drawn(workload.sizes, "cuda", seed=1)
    run = ready(path, inputs)
    if not (error := error_of(run, workload.reference(inputs))) <= workload.largest:
        raise ValueError(f"{one.name}: wrong by {error:.1e}")
    clocks = {one.name: clocks_of(clock, run, clock.cold(run, 3))}
    return dict(zip(WAYS, in_rounds(clocks, ROUNDS)[one.name], strict=True))


def records(workers: int, folder: Path | None) -> Iterator[Record]:
    """A record for each program, with times if it is to be timed in a folder."""
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        for one in pool.map(made, BY_NAME):
            times = timed(one, folder) if folder else {}
            about = asdict(one)
            del about["source"]
            yield about | times


def table(found: Sequence[Record]) -> str:
    """Predicted and measured microseconds, and the former over the latter, by way."""
    columns = f"{'predicted':>10} {'measured':>10} {'ratio':>6}"
    lines = [f"{'':26} {WAYS[0]:^28} {WAYS[1]:^28}", f"{'':26} {columns} {columns}"]
    for record in found:
        cells = [f"{record['name']:26}"]
        for way in WAYS:
            said, time = record["predicted"][way], statistics.median(record.get(way, [math.nan]))
            cells.append(f"{said:10.2f} {time:10.2f} {said / time:6.2f}")
        lines.append(" ".join(cells))
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, help="a folder: times are measured, and written there")
    parser.add_argument("--table", type=Path, help="halves.jsonl of an earlier run")
    parser.add_argument("--workers", type=int, default=2, help="processes that compile")
    options = parser.parse_args()
    if options.table:
        lines = options.table.read_text(encoding="utf-8").splitlines()
        print(table([json.loads(text) for text in lines]))
        return 0
    if options.out is None:
        print(table(list(records(options.workers, None))))
        return 0
    if not gpu_name():
        parser.error("there is no GPU here; without --out times are predicted alone")
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "machine.json").write_text(json.dumps(machine(), indent=1) + "\n", "utf-8")
    with tempfile.TemporaryDirectory() as folder:
        found = list(records(options.workers, Path(folder)))
    text = "".join(json.dumps(record) + "\n" for record in found)
    (options.out / "halves.jsonl").write_text(text, encoding="utf-8")
    print(table(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
