"""What is chosen for each case of bench/peers, as emitted files; two choices timed side by side.

    python -m bench.choices make --out before.jsonl                  # no GPU; --target h100, --only
    python -m bench.choices differ before.jsonl after.jsonl          # no GPU
    python -m bench.choices measure before.jsonl after.jsonl --out FOLDER       # on a GPU

Two commits, two machines, or a model with and without a term: wherever a change lets the model
choose otherwise, only cases whose schedules differ have to be timed again. ``measure`` times both
in turn in one process, cold and by CUDA graph, and writes times.jsonl and table.md into FOLDER.
Run it again to go on where it ended.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import blockbuster as bb
from bench.ablation import Alone, graphed, locked, named, right_launches
from bench.peers.case import Case
from bench.peers.cases import BY_KEY, CASES
from bench.timing import Clock, Rounds, Run, cold_calls, in_rounds, warm_calls
from blockbuster.emit.target.compiler import assembling_here
from blockbuster.emit.target.targets import target_of
from blockbuster.errors import BlockbusterError

ROUNDS = 7


@dataclass(frozen=True)
class Chosen:
    """The choice for a case: its schedule, the microseconds of the closed form, the emitted file.

    ``reason``: why there is none.
    """

    key: str
    schedule: str = ""
    estimate: float = 0.0
    source: str = ""
    reason: str = ""

    @property
    def says(self) -> tuple[str, str]:
        """The schedule and the code: the comment in front of it has prices, too."""
        return self.schedule, self.source.partition('"""')[2].partition('"""')[2]


def fused(case: Case) -> tuple[bb.Derivation, str | dict[str, str], list[str]]:
    """A case's derivation, the dtypes of its arrays and the names of its constant inputs."""
    derivation = bb.fuse(bb.lower(bb.trace(named(case), **case.inputs)))
    dtypes = {**dict.fromkeys(case.inputs, case.dtype), **case.own} if case.own else case.dtype
    return derivation, dtypes, [n for at, n in enumerate(case.inputs) if at in case.constant]


def chosen(key: str, target: str) -> Chosen:
    """The choice for a case on a target."""
    case = BY_KEY[key]
    derivation, dtypes, constant = fused(case)
    try:
        kernel = bb.emit(derivation, dict(case.sizes), dtypes, target, constant=constant)
        time = kernel.cost(target_of(target).machine, launch="graph").time_us
    except (BlockbusterError, ValueError) as error:
        return Chosen(key, reason=str(error))
    return Chosen(key, kernel.schedule, round(time, 2), kernel.source)


def make(out: Path, keys: Sequence[str], target: str, workers: int) -> None:
    """Append the choices of these cases to a file, but for those that it has."""
    done = read(out) if out.exists() else {}
    left = [key for key in keys if key not in done]
    with ProcessPoolExecutor(workers) as pool, out.open("a", encoding="utf-8") as file:
        asked = [pool.submit(chosen, key, target) for key in left]
        for count, one in enumerate(as_completed(asked), start=1):
            file.write(json.dumps(asdict(one.result())) + "\n")
            file.flush()
            print(f"{count} of {len(left)}: {one.result().key}", file=sys.stderr)


def read(path: Path) -> dict[str, Chosen]:
    """The choices in a file, by case."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return {one.key: one for one in (Chosen(**json.loads(line)) for line in lines)}


def asked_for(words: Sequence[str]) -> list[str]:
    """The cases of these suites, and those of these names; those of all suites of bench/peers if
    there are no words.
    """
    if not words:
        return [case.key for case in CASES]
    return [key for key in BY_KEY if any(w in (key, key.split("/")[0]) for w in words)]


Two = tuple[Chosen, Chosen]


def differing(before: Mapping[str, Chosen], after: Mapping[str, Chosen]) -> Iterator[Two]:
    """The cases of both whose choices are different schedules or files."""
    for key, one in before.items():
        if key in after and one.says != after[key].says:
            yield one, after[key]


# on a GPU -------------------------------------------------------------------------


def measured(before: Chosen, after: Chosen, alone: Alone) -> dict[str, Any]:
    """A line of times: launches and times are taken inside ``alone()``, kernels compiled before."""
    sources = {"before": before.source, "after": after.source}
    reasons = {"before": before.reason, "after": after.reason}
    failed = {name: reasons[name] for name, source in sources.items() if not source}
    case = BY_KEY[before.key]
    given = {name: source for name, source in sources.items() if source}
    launches, wrong = right_launches(case, given, alone)
    with alone(), assembling_here():
        cold, warm = times_of(launches)
    return {
        "key": before.key, "cold": cold, "warm": warm,
        "failed": {**failed, **wrong}, "before": before.schedule, "after": after.schedule,
        "estimates": [before.estimate, after.estimate],
    }  # fmt: skip


def times_of(launches: Mapping[str, Run]) -> list[Rounds]:
    """Rounds of all launches in turn, cold and warm: as CUDA graphs, for the checks of a launcher
    in Python take longer than some kernels.
    """
    clock = Clock()
    once = {name: graphed(launch) for name, launch in launches.items()}
    usual = {name: min(clock.cold(run, 3) for _ in range(3)) for name, run in once.items()}
    cold = {name: partial(clock.cold, run, cold_calls(usual[name])) for name, run in once.items()}
    warm = {n: clock.graph(launch, warm_calls(usual[n])) for n, launch in launches.items()}
    return in_rounds(ROUNDS, cold, warm)


def measure(twos: Sequence[Two], folder: Path, workers: int) -> None:
    """Time all that have no times in ``folder`` yet."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "times.jsonl"
    done = [one["key"] for one in lines_of(path)]
    alone = partial(locked, str(folder / "lock"))
    with (
        ProcessPoolExecutor(workers, get_context("spawn")) as pool,
        path.open("a", encoding="utf-8") as file,
    ):
        left = [two for two in twos if two[0].key not in done]
        asked = {pool.submit(measured, *two, alone): two[0].key for two in left}
        for one in as_completed(asked):
            if one.exception() is not None:  # one case that fails must not hide the others
                print(f"{asked[one]}: {one.exception()}", file=sys.stderr)
                continue
            file.write(json.dumps(one.result()) + "\n")
            file.flush()
    (folder / "lock").unlink(missing_ok=True)
    (folder / "table.md").write_text(table(lines_of(path)), encoding="utf-8")


def lines_of(path: Path) -> list[dict[str, Any]]:
    """The lines of times in a file, none if there is no file."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]


def table(found: Sequence[Mapping[str, Any]]) -> str:
    """A line for each case: times before and after, and what the closed form said."""
    lines = [
        "# Two choices side by side\n",
        "Microseconds, medians of rounds in turn; a ratio below 1 is faster than before;\n"
        "*estimate* is the ratio by the closed form.\n",
        "| case | graph, before | after | ratio | cold, before | after | ratio | estimate | |",
        "|" + "---|" * 9,
    ]
    ratios: dict[str, list[float]] = {"warm": [], "cold": []}
    for one in sorted(found, key=lambda one: str(one["key"])):
        cells = [str(one["key"])]
        for way, kept in ratios.items():
            medians = [statistics.median(one[way].get(n) or [0.0]) for n in ("before", "after")]
            if not all(medians):
                cells += ["", "", ""]
                continue
            kept.append(medians[1] / medians[0])
            cells += [f"{medians[0]:.1f}", f"{medians[1]:.1f}", f"{kept[-1]:.2f}"]
        before, after = one["estimates"]
        cells.append(f"{after / before:.2f}" if before and after else "")
        cells.append("; ".join(f"{n}: {why}" for n, why in one["failed"].items()).replace("|", "/"))
        lines.append(f"| {' | '.join(cells)} |")
    means = [statistics.geometric_mean(kept) if kept else 0.0 for kept in ratios.values()]
    lines.append(f"\nGeometric means of ratios: by graph {means[0]:.3f}, cold {means[1]:.3f}.")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Make, compare or measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("make", "differ", "measure"))
    parser.add_argument("files", nargs="*", type=Path, help="two files of choices")
    parser.add_argument("--out", type=Path, help="a file (make) or a folder (measure)")
    parser.add_argument("--only", default="", help="suites or cases, separated by commas (make)")
    parser.add_argument("--target", default="sm_90", help="an architecture or a GPU (make)")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    options = parser.parse_args()
    if options.out is None and options.what != "differ":
        parser.error(f"{options.what} needs --out")
    if options.what == "make":
        words = [word for word in options.only.split(",") if word]
        make(options.out, asked_for(words), options.target, options.workers)
        return 0
    if len(options.files) != 2:
        parser.error(f"{options.what} takes two files of choices")
    twos = list(differing(*map(read, options.files)))
    if options.what == "differ":
        for before, after in twos:
            print(f"{before.key}: {before.estimate} -> {after.estimate} us {after.reason}".rstrip())
        return 0
    measure(twos, options.out, options.workers)
    print((options.out / "table.md").read_text(encoding="utf-8"))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
