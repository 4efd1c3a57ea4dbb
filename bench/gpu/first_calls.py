"""First calls of ``bb.jit`` and of ``torch.compile``, each in a process of its own, on a GPU.

    python -m bench.gpu.first_calls --out $OUT [--every 10] [--only NAMES] [--workers 4]

Of every N-th program of bench/outside, and of the models of bench.choosing_times. A process imports
torch and its compiler's package, makes the inputs, and waits for the device; then the first call is
timed until its results are there. ``cold``: both sides begin with empty caches on disk; ``warm``:
another process finds those that the cold one left. Both sides of a program run one after the other
beside equally many other processes, since compilers use what processors they find. OUT/cases.jsonl
gets a line of JSON for each program.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from statistics import median
from typing import Any

import torch

from bench.choosing_times import cases as models
from bench.outside.making import callable_for
from bench.peers.cases import ALL
from bench.records import Log, Record, machine

OURS, TORCH = SIDES = ("blockbuster", "torch.compile")
CACHES = ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "XDG_CACHE_HOME", "CUDA_CACHE_PATH")
MODELS = ("gpt-block", "mlp-16", "cell-8", "cell-64", "decoder-4096-16", "decoder-4096-2048")
WHEN = ("cold", "warm")
PATIENCE = 150.0  # seconds that a process may take
Made = tuple[Callable[..., Any], Sequence[torch.Tensor]]


def program(name: str) -> Made:
    """The function of a program, and its inputs on the GPU."""
    if name in MODELS:
        function, given = next(made for key, made in models() if key == name)
        arrays = [torch.randn(x.shape, device="cuda").mul_(0.05).to(x.dtype) for x in given]
        return function, arrays
    case = next(one for one in ALL if one.key == name)
    arrays = list(case.drawn(case.sizes, "cuda", 0).values())
    return callable_for(case.fn, arrays), arrays


def first_call(name: str, side: str) -> float:
    """The seconds of the first call in this process."""
    function, arrays = program(name)
    if side == OURS:
        import blockbuster as bb

        compiled: Callable[..., Any] = bb.jit(function)
    else:
        compiled = torch.compile(function, dynamic=False)
    with torch.no_grad():
        torch.cuda.synchronize()
        begun = time.perf_counter()
        compiled(*arrays)
        torch.cuda.synchronize()
    return time.perf_counter() - begun


def in_a_process(name: str, side: str, caches: str) -> float | str:
    """The same in a process that keeps its ``caches`` in a folder; what it said if it failed."""
    command = [sys.executable, "-m", "bench.gpu.first_calls", "--alone", name, side]
    environment = os.environ | {variable: f"{caches}/{variable}" for variable in CACHES}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE, env=environment, check=False
        )
    except subprocess.TimeoutExpired:
        return f"took more than {PATIENCE:.0f} s"
    return done.stderr[-600:] if done.returncode else float(done.stdout.split()[-1])


def record(name: str, times: Sequence[str]) -> Record:
    """Both sides of a program, cold and then perhaps warm."""
    made: Record = {"key": name}
    for side in SIDES:
        with tempfile.TemporaryDirectory() as caches:
            made[side] = {when: in_a_process(name, side, caches) for when in times}
    return made


def line(made: Record) -> str:
    """Seconds cold and warm of both sides."""

    def shown(found: float | str) -> str:
        return "failed" if isinstance(found, str) else f"{found:.2f}"

    numbers = (shown(made[side][when]) for when in made[OURS] for side in SIDES)
    return f"{made['key']:56} " + " ".join(f"{one:>8}" for one in numbers)


def medians(records: Sequence[Record]) -> Iterator[str]:
    """Of ours, of torch.compile, and of their ratio, where neither failed."""
    for when in WHEN:
        both = [(made[OURS][when], made[TORCH][when]) for made in records if when in made[OURS]]
        times = [pair for pair in both if not any(isinstance(one, str) for one in pair)]
        if times:
            ours, torchs, ratio = map(median, zip(*((a, b, a / b) for a, b in times), strict=True))
            words = f"{ours:.2f} s, torch.compile {torchs:.2f} s, ratio {ratio:.2f}"
            yield f"{when}: {words}; {len(times)} programs"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--every", type=int, default=10, help="every N-th program of bench/outside")
    parser.add_argument("--only", default="", help="programs by name, with commas between")
    parser.add_argument("--workers", type=int, default=4, help="programs at a time")
    parser.add_argument("--cold", action="store_true", help="with empty caches alone")
    parser.add_argument("--alone", nargs=2, metavar=("PROGRAM", "SIDE"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.alone:
        print(first_call(*asked.alone))
        return
    outside = [case.key for case in ALL if case.suite == "outside"][:: asked.every]
    names = asked.only.split(",") if asked.only else [*outside, *MODELS]
    asked.out.mkdir(parents=True, exist_ok=True)
    log = Log(asked.out / "cases.jsonl")
    (asked.out / "runs.jsonl").write_text(json.dumps(machine() | {"workers": asked.workers}) + "\n")
    print(f"{'seconds':56} {'ours':>8} {'torch':>8} {'warm':>8} {'torch':>8}")
    times = WHEN[:1] if asked.cold else WHEN
    with ThreadPoolExecutor(asked.workers) as pool:
        for done in as_completed(pool.submit(record, name, times) for name in names):
            log.note(made := done.result())
            print(line(made), flush=True)
    print(*medians([*log.found.values()]), sep="\n")


if __name__ == "__main__":
    main()
