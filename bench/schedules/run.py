"""Replay each schedule here on a GPU: right, and how fast beside the same kernel by hand.

    python3 -m bench.schedules.run --out $OUT               all, in under five minutes
    python3 -m bench.schedules.run --out $OUT --only matmul,decode --default
    python3 -m bench.schedules.run --compile                what they compile to; needs no GPU
    python3 -m bench.schedules.run --cpu                    few blocks, in Triton's interpreter

Every program runs in a process of its own: one that dies or hangs loses one row. What is timed is
first compared with float64 on several draws; what is wrong is not timed. Then ours, the hand forms,
the library's call (and with --default our default schedule) are timed in turn, round by round.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from bench.schedules.programs import BY_NAME, CASES, Case

Array = Any
Record = dict[str, Any]
Run = Callable[[], tuple[Array, ...]]

DTYPE = "float16"
DRAWS = 3
LARGEST = 1e-3  # root mean square of the error, over that of the result: half precision gives 5e-4
GRAPHED = 100.0  # microseconds below which a call's launch would be a part of what is measured
CALLS = 20  # in one graph
ROUNDS = 5


# one program, in a process of its own ----------------------------------------------


@dataclass(frozen=True)
class Place:
    """Where a case is measured: on a GPU at its sizes, or on the CPU at few blocks, untimed."""

    device: str

    @property
    def is_gpu(self) -> bool:
        return self.device == "cuda"

    def sizes(self, case: Case) -> Mapping[str, int]:
        return case.sizes if self.is_gpu else case.few


GPU, CPU = Place("cuda"), Place("cpu")


def measured(case: Case, place: Place = GPU, *, default: bool, rounds: int = ROUNDS) -> Record:
    """What is found out about a case."""
    import torch

    from blockbuster.emit.target.compiler import assembling_here

    torch.backends.cuda.matmul.allow_tf32 = False
    sizes = dict(place.sizes(case))
    record: Record = {"program": case.name, "sizes": sizes, "schedule": case.text, "errors": {}}
    with assembling_here() as assembler:
        record["assembler"] = str(assembler or "")
    runs, bad = {}, {}
    with torch.no_grad():
        inputs = drawn(case, place, seed=0)
        for name, make in contestants(case, place, default=default):
            try:
                record["errors"][name] = checked(case, place, make)
                runs[name] = make(inputs)
            except Exception as error:  # one that fails must not hide the others
                bad[name] = f"{type(error).__name__}: {error}"[:800]
        record["failed"] = bad
        record["times"] = times_of(runs, rounds) if place.is_gpu else {}
    return record


Make = Callable[[Mapping[str, Array]], Run]


def contestants(case: Case, place: Place, *, default: bool) -> Iterator[tuple[str, Make]]:
    """What is compared: a name, and what makes it for inputs."""
    sizes = place.sizes(case)
    yield "ours", partial(ours, case, case.text, sizes)
    for word, text in case.alternatives().items():
        yield f"ours {word}", partial(ours, case, text, sizes)
    if default:
        yield "default", partial(ours, case, None, sizes)
    for form in case.forms():
        if place.is_gpu or not form.settings.get("dependent"):  # no interpreter has such launches
            yield f"hand {form.name}", partial(by_hand, form)
    if place.is_gpu:
        yield "library", lambda inputs: lambda: (case.library(**inputs),)


def ours(
    case: Case, schedule: str | None, sizes: Mapping[str, int], inputs: Mapping[str, Array]
) -> Run:
    """The kernel of a schedule's text, with outputs of its own; None: the default schedule."""
    kernel = emitted(case, schedule, sizes)
    outputs = {name: result_like(case, inputs) for name in kernel.outputs}

    def run() -> tuple[Array, ...]:
        kernel(**inputs, **outputs)
        return tuple(outputs.values())

    return run


def by_hand(form: Any, inputs: Mapping[str, Array]) -> Run:
    """A hand form, compiled with the assembler that ours is compiled with."""
    from blockbuster.emit.target.compiler import assembling_here

    ready = form.ready(inputs)
    with assembling_here():
        ready.run()
    return ready.run


def emitted(case: Case, schedule: str | None, sizes: Mapping[str, int]) -> Any:
    import blockbuster as bb

    return bb.emit(case.graph(), sizes, DTYPE, "sm_90", schedule=schedule)


def result_like(case: Case, inputs: Mapping[str, Array]) -> Array:
    """A new array of the shape of the result, of which there is one."""
    import torch

    meta = {name: torch.empty(x.shape, device="meta") for name, x in inputs.items()}
    (result,) = case.oracle()(**meta)
    first = next(iter(inputs.values()))
    return torch.empty(result.shape, dtype=first.dtype, device=first.device)


def drawn(case: Case, place: Place, seed: int) -> dict[str, Array]:
    """Normally distributed inputs; weights are scaled so that results stay near one."""
    import torch

    random = torch.Generator(device=place.device).manual_seed(seed)
    made = {}
    for name, shape in case.shapes(place.sizes(case)).items():
        x = torch.randn(shape, generator=random, device=place.device, dtype=torch.float32)
        scale = shape[-2] ** -0.5 if name in case.weights else 1.0
        made[name] = (x * scale).to(getattr(torch, DTYPE))
    return made


def checked(case: Case, place: Place, make: Make) -> float:
    """The largest error of some draws, each run twice. Raises ValueError if one is not right."""
    import torch

    worst = 0.0
    for seed in range(1, DRAWS + 1 if place.is_gpu else 2):
        inputs = drawn(case, place, seed)
        right = case.oracle()(**{name: x.double() for name, x in inputs.items()})
        run = make(inputs)
        first = [y.clone() for y in poisoned(run)]
        for y, exact in zip(first, right, strict=True):
            error = float((y.double() - exact).norm() / exact.norm())
            if not error <= LARGEST:
                raise ValueError(f"the error is {error:.1e} of the result, above {LARGEST:.0e}")
            worst = max(worst, error)
        for y, z in zip(first, poisoned(run), strict=True):
            if not torch.equal(y, z):
                raise ValueError("two runs on the same inputs differ")
    return worst


def poisoned(run: Run) -> tuple[Array, ...]:
    """The results of a second run, over outputs that were filled with NaN after the first."""
    for y in run():
        y.fill_(float("nan"))
    return run()


def times_of(runs: Mapping[str, Run], rounds: int) -> dict[str, float]:
    """Medians, in microseconds, of rounds in which all run in turn; by graph where they are short.

    All by graph, or none: the same is compared.
    """
    once = {name: cold_time(run) for name, run in runs.items()}
    short = min(once.values(), default=GRAPHED) < GRAPHED
    clocks = {name: graph_clock(run) if short else _cold_clock(run) for name, run in runs.items()}
    found: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, clock in clocks.items():
            found[name].append(clock())
    return {name: statistics.median(times) for name, times in found.items()}


def cold_time(run: Run) -> float:
    """Microseconds of a call that finds nothing in L2."""
    from triton.testing import do_bench

    return 1e3 * float(do_bench(run, warmup=5, rep=20, return_mode="median"))


def _cold_clock(run: Run) -> Callable[[], float]:
    return lambda: cold_time(run)


def graph_clock(run: Run) -> Callable[[], float]:
    """A clock of microseconds for a call, of which ``CALLS`` are captured once and replayed."""
    import torch

    graph = torch.cuda.CUDAGraph()
    run()
    with torch.cuda.graph(graph):
        for _ in range(CALLS):
            run()
    return lambda: cold_time(graph.replay) / CALLS


# compiling ------------------------------------------------------------------------


def compiled(case: Case) -> Record:
    """What each kernel of a case's schedule and of its hand forms takes, without a GPU."""
    from blockbuster.emit.target.compiler import compile_kernel

    texts = {"ours": case.text} | {f"ours {w}": t for w, t in case.alternatives().items()}
    made = {name: compile_kernel(emitted(case, text, case.sizes)) for name, text in texts.items()}
    mine = {name: [asdict(report) for report in reports] for name, reports in made.items()}
    return {"program": case.name, "kernels": {**mine, **compiled_forms(case)}}


def compiled_forms(case: Case) -> dict[str, list[Record]]:
    """What each kernel of the hand forms takes."""
    import torch

    from blockbuster.emit.target.compiler import compile_entry, target_of

    target = target_of("sm_90")
    shapes = case.shapes(case.sizes).items()
    inputs = {n: torch.empty(s, dtype=torch.float16, device="meta") for n, s in shapes}
    return {
        form.name: [asdict(compile_entry(x.entry(), target)) for x in form.ready(inputs).launches]
        for form in case.forms()
    }


def compile_all(names: list[str]) -> int:
    """Print what is compiled, a kernel to a line. The exit code is 1 if a schedule fails."""
    import blockbuster as bb

    failed = 0
    print(f"{'program':20} {'form':44} {'kernel':28} {'shared':>7} {'regs':>5} {'spills':>6}")
    for name in names:
        try:
            record = compiled(BY_NAME[name])
        except bb.BlockbusterError as error:
            print(f"{name:20} FAILED {error}")
            failed += 1
            continue
        for form, reports in record["kernels"].items():
            for r in reports:
                numbers = f"{r['shared']:7} {r['registers']:5} {r['spills']:6}"
                print(f"{name:20} {form:44} {r['function']:28} {numbers}")
    return 1 if failed else 0


# the parent ------------------------------------------------------------------------


def run_all(names: list[str], options: argparse.Namespace) -> int:
    """Measure all, write the record and print the table."""
    options.out.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    records = []
    for at, name in enumerate(names):
        left = options.seconds - (time.monotonic() - began)
        records.append(child(name, options, min(90.0, left)))
        print(f"{at + 1}/{len(names)} {name}: {time.monotonic() - began:.0f} s", flush=True)
    report = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        **machine(),
        "seconds": round(time.monotonic() - began, 1),
        "largest_error": LARGEST,
        "records": records,
    }
    path: Path = options.out / "schedules.json"
    path.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(table(records))
    print(f"{report['gpu']}, torch {report['torch']}, triton {report['triton']}, {report['date']}")
    return 1 if any(r.get("error") or "ours" in r.get("failed", {}) for r in records) else 0


def child(name: str, options: argparse.Namespace, seconds: float) -> Record:
    """The record of one program's process."""
    if seconds <= 0:
        return {"program": name, "error": "no time was left"}
    out = options.out / f"{name}.json"
    command = [sys.executable, "-m", "bench.schedules.run", "--one", name, "--out", str(out)]
    command += [f"--{flag}" for flag in ("default", "cpu") if getattr(options, flag)]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    if options.cpu:
        environment["TRITON_INTERPRET"] = "1"
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=seconds, env=environment, check=False
        )
    except subprocess.TimeoutExpired:
        return {"program": name, "error": f"stopped after {seconds:.0f} s"}
    if done.returncode:
        return {"program": name, "error": f"code {done.returncode}: {done.stderr[-600:]}"}
    record: Record = json.loads(out.read_text(encoding="utf-8"))
    out.unlink()
    return record


def machine() -> dict[str, str]:
    import torch
    import triton

    import blockbuster as bb

    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"
    versions = {"torch": torch.__version__, "triton": triton.__version__}
    return {"gpu": gpu, **versions, "python": sys.version.split()[0], "blockbuster": bb.__version__}


def table(records: list[Record]) -> str:
    """Per program: ours, the best hand form, the library, the default; times in microseconds."""
    lines = [
        f"{'program':20} {'ours':>8} {'by hand':>8} {'ratio':>6} {'library':>8} {'default':>8}"
        "  best by hand"
    ]
    for record in records:
        times = record.get("times", {})
        hand = {n: t for n, t in times.items() if n.startswith("hand ")}
        best = min(hand, key=lambda n: hand[n], default="")
        ratio = times["ours"] / hand[best] if "ours" in times and best else None
        shown = (
            *(_cell(times.get("ours"), 8, 1), _cell(hand.get(best), 8, 1), _cell(ratio, 6, 2)),
            *(_cell(times.get(name), 8, 1) for name in ("library", "default")),
        )
        lines.append(f"{record['program']:20} {' '.join(shown)}  {best.removeprefix('hand ')}")
        lines += [f"  {name}: {t:.1f}" for name, t in times.items() if name.startswith("ours ")]
        if "error" in record:
            lines.append(f"  FAILED: {record['error'][:400]}")
        lines += [f"  FAILED {n}: {why[:400]}" for n, why in record.get("failed", {}).items()]
    return "\n".join(lines)


def _cell(number: float | None, width: int, digits: int) -> str:
    return f"{'-' if number is None else format(number, f'.{digits}f'):>{width}}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("build/schedules"))
    parser.add_argument("--only", default="", help="names, separated by commas")
    parser.add_argument("--seconds", type=float, default=280)
    parser.add_argument("--default", action="store_true", help="time the default schedule, too")
    parser.add_argument("--compile", action="store_true", help="compile for sm_90, run nothing")
    parser.add_argument("--cpu", action="store_true", help="few blocks, in Triton's interpreter")
    parser.add_argument("--one", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    names = [n for n in options.only.split(",") if n] or [case.name for case in CASES]
    if unknown := [n for n in names if n not in BY_NAME]:
        parser.error(f"unknown: {', '.join(unknown)}; programs: {', '.join(BY_NAME)}")
    if options.one:
        place = CPU if options.cpu else GPU
        record = measured(BY_NAME[options.one], place, default=options.default)
        options.out.write_text(json.dumps(record), encoding="utf-8")
        return 0
    return compile_all(names) if options.compile else run_all(names, options)


if __name__ == "__main__":
    sys.exit(main())
