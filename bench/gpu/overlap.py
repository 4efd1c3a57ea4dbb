"""Kernels that begin before the one before has ended, on a GPU: the same bits, and what they gain.

    python3 -m bench.gpu.overlap --out $OUT                     all, in about two minutes
    python3 -m bench.gpu.overlap --out $OUT --only decode

A kernel that reads too early finds what an earlier call left there. So calls for several draws of
inputs follow each other in one CUDA graph, which is replayed; each result has to have the bits that
it has without overlap. As a control the same is done without the waits: on kernels that take some
time it has to fail, else the comparison shows nothing.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bench.schedules.measure import GPU, drawn, emitted, result_like
from bench.schedules.programs import CASES, Case
from bench.timing import medians

Array = Any
Launch = Callable[..., Any]

DRAWS = 4
CALLS = 10  # of each draw in a graph
REPLAYS = 50
ROUNDS = 7
WORD = "overlap"  # what schedules that overlap are called by


def pairs(case: Case) -> Iterator[tuple[str, str, str]]:
    """Names and texts of schedules that overlap, each with the text that does not."""
    for word, text in case.alternatives().items():
        if word.startswith(WORD):
            yield word, re.sub(r"^overlap\b.*\n?", "", text, flags=re.MULTILINE), text


def without_waits(source: str) -> str:
    """The text of a file whose kernels begin early and wait for nothing."""
    return re.sub(r"tl\.extra\.cuda\.gdc_wait\(\)", "pass", source)


def measured(case: Case) -> Iterator[dict[str, Any]]:
    """For each schedule of a case: results that differ, of how many, and times in microseconds."""
    draws = [drawn(case, GPU, seed) for seed in range(DRAWS)]
    outputs = [[result_like(case, inputs) for _ in range(CALLS)] for inputs in draws]
    for word, plain, early in pairs(case):
        sources = [emitted(case, text, case.sizes).source for text in (plain, early)]
        late, launch, control = map(launcher, (*sources, without_waits(sources[1])))
        right = [late(**inputs).clone() for inputs in draws]
        differ = partial(differing, draws=draws, outputs=outputs, right=right)
        yield {
            "program": case.name,
            "schedule": word,
            "compared": REPLAYS * CALLS * DRAWS,
            "differ": differ(launch),
            "differ without waits": differ(control),
            "times": times({"in turn": late, "overlap": launch}, draws[0], outputs[0][0]),
        }


def launcher(source: str) -> Launch:
    """The launcher of a file, compiled with the assembler that is chosen for this device."""
    from blockbuster.emit.target.compiler import assembling_here
    from blockbuster.emit.target.load import load_module

    module = load_module(source)

    def launch(**arrays: Array) -> Any:
        with assembling_here():
            return module.launch(**arrays)

    return launch


def differing(
    launch: Launch,
    draws: Sequence[Mapping[str, Array]],
    outputs: Sequence[Sequence[Array]],
    right: Sequence[Array],
) -> int:
    """How many results of replayed calls have other bits than ``right``."""
    import torch

    def calls() -> None:
        for call in range(CALLS):
            for inputs, made in zip(draws, outputs, strict=True):
                launch(**inputs, out=made[call])

    calls()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        calls()
    found = 0
    for _ in range(REPLAYS):
        for made in outputs:
            for y in made:
                y.fill_(float("nan"))
        graph.replay()
        same = zip(outputs, right, strict=True)
        found += sum(not torch.equal(y, exact) for made, exact in same for y in made)
    return found


def times(
    launches: Mapping[str, Launch], inputs: Mapping[str, Array], out: Array
) -> dict[str, float]:
    """The median time of each, in turn."""
    return medians({n: partial(run, **inputs, out=out) for n, run in launches.items()}, ROUNDS)


def line(record: Mapping[str, Any]) -> str:
    """A record on one line."""
    late, early = record["times"]["in turn"], record["times"]["overlap"]
    return (
        f"{record['program']:20} {record['schedule']:22} {late:7.2f} us in turn, {early:7.2f} "
        f"overlap ({late - early:5.2f} less); of {record['compared']} {record['differ']} differ, "
        f"{record['differ without waits']} without waits"
    )


def main() -> int:
    """Measure and write the record; 1 if a result differs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("build/overlap"))
    parser.add_argument("--only", default="", help="names, separated by commas")
    options = parser.parse_args()
    from bench.schedules.run import machine

    names = [name for name in options.only.split(",") if name]
    records = []
    for case in CASES:
        if not names or case.name in names:
            for record in measured(case):
                print(line(record), flush=True)
                records.append(record)
    options.out.mkdir(parents=True, exist_ok=True)
    text = json.dumps({**machine(), "records": records}, indent=1)
    (options.out / "overlap.json").write_text(text + "\n", encoding="utf-8")
    return 1 if any(record["differ"] for record in records) else 0


if __name__ == "__main__":
    raise SystemExit(main())
