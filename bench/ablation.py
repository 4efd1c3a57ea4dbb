"""The worth of each move: chosen schedules with one move left out, by the closed form and on a GPU.

    python -m bench.ablation make --out FOLDER       # the kernels; needs no GPU
    python -m bench.ablation measure --out FOLDER    # their results and times, on a GPU
    python -m bench.ablation table --out FOLDER      # table.md

For each program, the schedule that is chosen for it is replayed without the lines of one move, and
without later lines that then do not apply any more. All else stays as it was chosen: where a
schedule would be chosen differently without the move, a part of the loss could be made good. Moves
without which no kernel is complete (``block``, ``warps``, ``split``) are not left out.
"""

from __future__ import annotations

import argparse
import fcntl
import inspect
import json
import math
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import blockbuster as bb
from bench.peers.case import Case
from bench.peers.cases import BY_KEY
from bench.timing import timed
from blockbuster.emit.kernel import written
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.script import not_complete, parsed
from blockbuster.emit.target.compiler import assembling_here
from blockbuster.emit.target.load import load_module
from blockbuster.errors import EmitError, ParseError
from blockbuster.rules import fuse
from blockbuster.selection.choice import Fused
from blockbuster.selection.considered import Considered
from blockbuster.selection.price import priced

KEYS = (
    "attention/full-4096-128", "attention/causal-4096-64", "attention/causal-2048-64",
    "masks/window-8192", "masks/soft-cap-2048", "masks/alibi-2048",
    "decode/causal-8192", "decode/gqa-8192", "self_attention/S6", "gemm/4096x4096x4096",
    "gemm_chain/G4", "norm_matmul/rms-2048x4096x4096", "ffn/llama3-8b-16", "ffn/llama3-8b-2048",
    "rows/softmax-256x16384", "rows/length-256x131072", "float32/linear-2048x1024x1024",
    "losses/cross-entropy-4096x32768", "others/residual-rms-norm",
)  # fmt: skip
NEEDED = ("block", "warps", "split")
WHOLE = "as chosen"
DESCRIPTORS = " by descriptors"
LARGEST = 2e-2
"""The error of a variant's result relative to the norm: more is a wrong kernel."""

ROUNDS = 5

Alone = Callable[[], AbstractContextManager[Any]]


@dataclass(frozen=True)
class Variant:
    """A schedule of a program without one move.

    ``left_out`` is the move's name, ``fell`` are the other lines that did not apply without it,
    ``estimate`` the microseconds of the closed form, and ``source`` the kernel's file. ``reason``:
    why there is no kernel.
    """

    key: str
    left_out: str
    fell: tuple[str, ...] = ()
    schedule: str = ""
    estimate: float = math.inf
    source: str = ""
    reason: str = ""


def considered(case: Case, target: str = "sm_90") -> Considered:
    """The choice for a case; its arrays all have the case's dtype."""
    start = bb.lower(bb.trace(named(case), **case.inputs))
    sizes = dict(case.sizes)
    return Fused(start, fuse(start)).consider(sizes, case.dtype, target)


def named(case: Case) -> Callable[..., Any]:
    """The function of a case with a parameter for each array."""

    def call(*arrays: Any) -> Any:
        return case.fn(*arrays)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(name, kind) for name in case.inputs]
    vars(call)["__signature__"] = inspect.Signature(parameters)
    return call


def variants(key: str, found: Considered) -> Iterator[Variant]:
    """The kernel as it is chosen, and without each of the moves of its schedule."""
    best = found.best
    assert best.scheduled is not None, "chosen for a GPU"
    text = best.scheduled.schedule
    names = dict.fromkeys(line.move.name for line in parsed(text))
    left_out = [name for name in names if name not in NEEDED]
    left_out += ["descriptors"] if DESCRIPTORS in text else []
    for name in (WHOLE, *left_out):
        yield _variant(key, best.scheduled, best.stable, name)


def _variant(key: str, chosen: Scheduled, stable: Any, name: str) -> Variant:
    start = Scheduled(chosen.start, chosen.start, chosen.sizes, chosen.target)
    made, fell = without(start, chosen.schedule, name)
    if reason := not_complete(made):
        return Variant(key, name, fell, made.schedule, reason=reason)
    try:
        estimate = priced(made).microseconds
        source = written(made, stable).source
    except (EmitError, ValueError) as error:
        return Variant(key, name, fell, made.schedule, reason=str(error))
    return Variant(key, name, fell, made.schedule, round(estimate, 2), source)


def without(start: Scheduled, text: str, name: str) -> tuple[Scheduled, tuple[str, ...]]:
    """``start`` after the moves of a text but those of a name, and the lines that do not apply.

    ``DESCRIPTORS`` are no move, but words of one.
    """
    text = text.replace(DESCRIPTORS, "") if name == "descriptors" else text
    fell: list[str] = []
    for line in parsed(text):
        if line.move.name == name:
            continue
        try:
            reason = line.move.why_not(start, line.site, **line.args)
            start = start if reason else line.move.apply(start, line.site, **line.args)
        except (EmitError, ParseError, KeyError) as error:
            reason = str(error)
        fell += [line.text] if reason else []
    return start, tuple(fell)


def make(folder: Path, keys: tuple[str, ...]) -> None:
    """Write all variants of the cases into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "variants.jsonl").open("w", encoding="utf-8") as file:
        for key in keys:
            for one in variants(key, considered(BY_KEY[key])):
                file.write(json.dumps(asdict(one)) + "\n")
                print(f"{key} without {one.left_out}: {one.estimate} us {one.reason}", flush=True)


def read(folder: Path) -> dict[str, list[Variant]]:
    """The variants of each case."""
    found: dict[str, list[Variant]] = {}
    for line in (folder / "variants.jsonl").read_text(encoding="utf-8").splitlines():
        data = json.loads(line)
        one = Variant(**{**data, "fell": tuple(data["fell"])})
        found.setdefault(one.key, []).append(one)
    return found


def prepared(
    case: Case, made: list[Variant], alone: Alone = nullcontext
) -> tuple[dict[str, Any], dict[str, str]]:
    """Calls of the variants that are right on a GPU, by name, and why others are none."""
    sources = {one.left_out: one.source for one in made if one.source}
    failed = {one.left_out: one.reason for one in made if not one.source}
    launches, wrong = right_launches(case, sources, alone)
    with alone(), assembling_here():
        return {name: graphed(launch) for name, launch in launches.items()}, {**failed, **wrong}


def right_launches(
    case: Case, sources: Mapping[str, str], alone: Alone = nullcontext
) -> tuple[dict[str, Any], dict[str, str]]:
    """Launches of emitted files of a case on a GPU, by name, and why others are none.

    All results have to agree with those of the first. All files are compiled first, by a launch
    each; those that are timed are inside ``alone()``.
    """
    inputs = case.drawn(case.sizes, "cuda", 0)
    launches: dict[str, Any] = {}
    failed: dict[str, str] = {}
    for name, source in sources.items():
        module = load_module(source)
        try:
            with assembling_here():
                module.launch(**inputs)
        except Exception as error:  # one that fails must not hide the others
            failed[name] = f"{type(error).__name__}: {error}"[:300]
            continue
        launches[name] = partial(_launch, module, inputs, case.sizes)
    with alone(), assembling_here():
        return _right(launches, failed)


def _launch(module: Any, inputs: Mapping[str, Any], sizes: Mapping[str, int]) -> Callable[[], Any]:
    """The launch of a file, with what it keeps of constants computed once."""
    prepare = getattr(module, "prepare", None)
    if prepare is None:
        return partial(module.launch, **inputs)
    given = {**sizes, **inputs}
    kept = prepare(**{name: given[name] for name in inspect.signature(prepare).parameters})
    return partial(module.launch, **inputs, prepared=kept)


def _right(
    launches: Mapping[str, Any], failed: dict[str, str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """The launches whose results agree with those of the first."""
    runs: dict[str, Any] = {}
    right: list[Any] = []
    for name, prepared in launches.items():
        try:
            launch = prepared()
            found = launch()
        except Exception as error:  # one that fails must not hide the others
            failed[name] = f"{type(error).__name__}: {error}"[:300]
            continue
        found = found if isinstance(found, tuple) else (found,)
        right = right or [x.double() for x in found]
        pairs = zip(found, right, strict=True)
        error = max(float((x.double() - y).norm() / y.norm().clamp_min(1e-9)) for x, y in pairs)
        if not error <= LARGEST:
            failed[name] = f"error {error:.2g}"
            continue
        runs[name] = launch
    return runs, failed


def graphed(launch: Callable[[], Any]) -> Callable[[], Any]:
    """The same call as a CUDA graph: checks in Python take longer than some kernels."""
    import torch

    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = launch()

    def replay() -> Any:
        graph.replay()
        return results  # what it writes stays allocated

    return replay


def measured(runs: Mapping[str, Any]) -> dict[str, float]:
    """The median microseconds of calls, with nothing in the cache, all in turn."""
    cold = timed(runs, ROUNDS, graphed=0.0).cold
    return {name: sorted(rounds)[len(rounds) // 2] for name, rounds in cold.items()}


def measured_case(key: str, made: list[Variant], alone: Alone = nullcontext) -> dict[str, Any]:
    """A line of the times of a case's variants. Launches and times are taken inside ``alone()``."""
    runs, failed = prepared(BY_KEY[key], made, alone)
    with alone():
        times = measured(runs)
    return {"key": key, "times": times, "failed": failed}


def measure(folder: Path, workers: int = 1, alone: Alone = nullcontext) -> None:
    """Time all variants of ``folder`` that have no times there yet on this machine's GPU.

    Kernels are compiled in ``workers`` processes. ``alone``: a lock of processes, so that nothing
    else runs while one is timed; a case's line is written when it is known.
    """
    done = _times(folder)
    left = {key: made for key, made in read(folder).items() if key not in done}
    with (
        ProcessPoolExecutor(workers, get_context("spawn")) as pool,
        (folder / "times.jsonl").open("a", encoding="utf-8") as file,
    ):
        asked = [pool.submit(measured_case, key, made, alone) for key, made in left.items()]
        for one in as_completed(asked):
            file.write(json.dumps(one.result()) + "\n")
            file.flush()
            print(f"{one.result()['key']} was measured", flush=True)


def table(folder: Path) -> str:
    """A line for each variant: times without the move over those with it."""
    lines = [
        "# Chosen schedules with one move left out\n",
        "| program | left out | estimate | measured | lines that fell with it |",
        "|" + " --- |" * 5,
    ]
    times = _times(folder)
    for key, made in read(folder).items():
        whole, known = made[0], times.get(key, {"times": {}, "failed": {}})
        for one in made:
            lines.append(_line(one, whole, known))
    return "\n".join(lines) + "\n"


def _line(one: Variant, whole: Variant, known: Mapping[str, Any]) -> str:
    time, base = known["times"].get(one.left_out), known["times"].get(WHOLE)
    if one is whole:
        estimate, found = f"{one.estimate:.1f} us", f"{base:.1f} us" if base else ""
    else:
        known_time = math.isfinite(one.estimate)
        estimate = f"{one.estimate / whole.estimate:.2f}" if known_time else one.reason
        found = f"{time / base:.2f}" if time and base else known["failed"].get(one.left_out, "")
    cells = (one.key, one.left_out, estimate, found, "; ".join(one.fell))
    return f"| {' | '.join(cell.replace('|', '/').replace(chr(10), ' ') for cell in cells)} |"


def _times(folder: Path) -> dict[str, Any]:
    path = folder / "times.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {one["key"]: one for one in map(json.loads, lines)}


@contextmanager
def locked(path: str) -> Iterator[None]:
    """The use of a GPU by one process at a time: all name the same file."""
    with open(path, "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def main() -> int:
    """Make, measure or show."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("make", "measure", "table"))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", default="", help="keys of cases, separated by commas")
    parser.add_argument("--workers", type=int, default=4, help="processes that compile (measure)")
    options = parser.parse_args()
    if options.what == "make":
        make(options.out, tuple(options.only.split(",")) if options.only else KEYS)
    elif options.what == "measure":
        measure(options.out, options.workers, partial(locked, str(options.out / "lock")))
    else:
        text = table(options.out)
        (options.out / "table.md").write_text(text, encoding="utf-8")
        print(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
