"""Functions as people write them at work: each by ``bb.jit``, beside float64 on the CPU.

    python -m bench.at_work --out build/at_work.jsonl      all of them; again to go on
    python -m bench.at_work --only cache,sinkhorn          those whose name has one of these words
    python -m bench.at_work --table                        only the table of what is there

Each function runs on small float32 tensors by ``bb.jit`` and eagerly in float64: the error is
relative to the norm of the result. A line also says how many seconds of the processor the first
call took (tracing, fusing, choosing and running; all modules are imported before), and what is
chosen for an H100 at the sizes that its case names, in float16: kernels, calls of a library or of
functions of whole arrays, microseconds by the closed form, and the roofline below them.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

import blockbuster as bb
from bench.at_work import algorithms, attention, layers, losses, models, pictures
from bench.outside.predict import imported, predicted
from bench.peers.case import Case, as_tuple, error_of
from bench.peers.report import markdown
from bench.records import Log, Record

CASES: tuple[Case, ...] = (
    *attention.CASES, *layers.CASES, *losses.CASES,
    *models.CASES, *pictures.CASES, *algorithms.CASES,
)  # fmt: skip
MACHINE = "h100"


def on_the_cpu(case: Case, seed: int = 0) -> Record:
    """The error of the first call on small float32 tensors, and its seconds of the processor."""
    small = replace(case, dtype="float32")
    inputs = small.drawn(case.few, "cpu", seed)
    with torch.no_grad():
        exact = as_tuple(small.reference(inputs))
        eager = error_of(as_tuple(case.fn(*inputs.values())), exact)
        begun = time.process_time()
        try:
            found = as_tuple(bb.jit(case.fn)(*inputs.values()))
        except Exception as error:  # what stumbles is what this list is for
            return {"refused": f"{type(error).__name__}: {error}"}
    seconds = time.process_time() - begun
    error = error_of(found, exact)
    right = error <= max(small.largest, 2 * eager)
    return {"error": error, "eager": eager, "right": right, "first_call": round(seconds, 2)}


def record_of(case: Case) -> Record:
    """All that is known of a case."""
    plan = predicted(case, MACHINE)
    chosen = {"choosing": plan.pop("seconds", None), **plan}
    return {"name": case.name, **chosen, **on_the_cpu(case)}


def table(found: Sequence[Record]) -> str:
    """A line for each function, then the words of those that are refused or wrong."""
    rows = [
        (
            r["family"], r["name"], r.get("kernels", r["state"]), r.get("calls", ""),
            r.get("predicted_us", ""), r["floor_us"], r.get("choosing", ""),
            f"{r['error']:.1e}" if "error" in r else "refused", r.get("first_call", ""),
        )
        for r in found
    ]  # fmt: skip
    head = (
        "kind", "function and sizes", "kernels", "calls", "predicted, us", "roofline, us",
        "choosing, s", "error", "first call on the CPU, s",
    )  # fmt: skip
    lines = [markdown(head, rows)]
    for r in found:
        said = [r.get("reason", ""), r.get("refused", "")]
        said += [] if r.get("right", True) else [f"error {r['error']:.1e}, eager {r['eager']:.1e}"]
        lines += [f"- {r['name']}: {' '.join(words.split())}" for words in said if words]
    return "\n".join(lines)


def chosen(words: str) -> list[Case]:
    """The cases whose name has one of the words, with commas between them."""
    parts = [word for word in words.split(",") if word]
    return [c for c in CASES if not parts or any(word in c.name for word in parts)]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("build/at_work.jsonl"))
    parser.add_argument("--only", default="", metavar="WORDS")
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    cases = chosen(options.only)
    if not cases:
        parser.error(f"no function has {options.only!r} in its name")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    log = Log(options.out)
    left = [case for case in cases if case.key not in log.found and not options.table]
    if left:
        torch.set_num_threads(1)
        imported(MACHINE)
        bb.jit(lambda x: torch.softmax(x @ x, -1))(torch.ones(4, 4))
    for at, case in enumerate(left, start=1):
        log.note({"key": case.key, **record_of(case)})
        print(f"{at} of {len(left)}  {case.name}", flush=True)
    print(table([log.found[case.key] for case in cases if case.key in log.found]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
