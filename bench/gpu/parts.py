"""Causal attention on a GPU: the gain of the move ``part``, beside attention without a mask.

    python3 -m bench.gpu.parts --out $OUT                     8192 and 16384, in about a minute
    python3 -m bench.gpu.parts --out $OUT --lengths 2048      where it does not pay, perhaps

Each length is timed under the default schedule and with four warps and three stages, with the loop
in parts and in one, all in turn, in rounds. Parts have to give the same bits as one loop.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from bench.gpu.everyday import DEPTH, HEADS, LARGEST

ROUNDS = 7
WARM, TIMED = 10, 60  # milliseconds of each clock
FORMS = {
    "default": (),
    "4 warps": ((r"^warps .*", "warps 4"), (r"^(stage \S+ \S+ \S+) \d+", r"\1 3")),
}


def schedules(graph: Any, sizes: dict[str, int], *, masked: bool) -> dict[str, str]:
    """Schedules by name: each form, in parts and in one."""
    import blockbuster as bb

    found = {}
    for form, changes in FORMS.items():
        text = bb.emit(graph, sizes, "float16", "sm_90").schedule
        for old, new in changes:
            text = re.sub(old, new, text, flags=re.MULTILINE)
        lines = [
            line for line in text.splitlines() if not line.startswith("part") and "#" not in line
        ]
        found[form] = "\n".join(lines)
        if masked:
            found[f"{form}, in parts"] = in_parts("\n".join(lines))
    return found


def in_parts(text: str) -> str:
    """``text``, of one narrowed loop, with the move, and with both parts staged."""
    loop = re.search(r"^narrow (nest \d+ \S+)", text, re.MULTILINE)
    if loop is None:
        raise ValueError(f"expected a schedule that narrows a loop, got\n{text}")
    text = text.replace(loop[0], f"{loop[0]}\npart {loop[1]}")
    return re.sub(rf"^stage {loop[1]} (\d+.*)$", rf"\g<0>\nstage {loop[1]}#2 \1", text, flags=re.M)


def measured(length: int) -> dict[str, Any]:
    """Times at one length, in microseconds, and whether results are right."""
    import torch

    import blockbuster as bb
    from bench.everyday import causal, full

    shape, sizes = (1, HEADS, length, DEPTH), dict(B=1, H=HEADS, S=length, D=DEPTH)
    q, k, v = (torch.randn(shape, device="cuda").half() for _ in "qkv")
    call = torch.nn.functional.scaled_dot_product_attention
    runs: dict[str, Callable[[], Any]] = {}
    record: dict[str, Any] = {"length": length, "errors": {}, "same bits": {}}
    for fn in (full, causal):
        masked = fn is causal
        graph = bb.fuse(bb.lower(bb.trace(fn, **dict.fromkeys("qkv", "B H S D")))).final
        right, made = call(q, k, v, is_causal=masked).double(), {}
        for name, text in schedules(graph, sizes, masked=masked).items():
            kernel = bb.emit(graph, sizes, "float16", "sm_90", schedule=text)
            made[name] = torch.full_like(q, float("nan"))
            run = partial(kernel, q=q, k=k, v=v, out=made[name])
            run()
            error = float((made[name].double() - right).norm() / right.norm())
            record["errors"][f"{fn.__name__}, {name}"] = error
            if not error <= 2 * LARGEST:
                raise ValueError(f"{fn.__name__}, {name} is off by {error:.1e} of the result")
            runs[f"{fn.__name__}, {name}"] = run
        if masked:
            for form in FORMS:
                same = torch.equal(made[form], made[f"{form}, in parts"])
                record["same bits"][form] = same
    record["times"] = in_rounds(runs)
    return record


def in_rounds(runs: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """The median of rounds in which all run in turn."""
    from triton.testing import do_bench

    found: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(ROUNDS):
        for name, run in runs.items():
            one = do_bench(run, warmup=WARM, rep=TIMED, return_mode="median")
            found[name].append(1e3 * float(one))
    return {name: statistics.median(times) for name, times in found.items()}


def shown(record: dict[str, Any]) -> None:
    """Print the times of a length, and the share of what the mask leaves."""
    for name, us in record["times"].items():
        whole = record["times"]["full, " + name.split(", ")[1]]
        print(
            f"{record['length']:6} {name:28} {us:9.1f} us, {us / whole:.3f} of no mask", flush=True
        )
    print(f"{record['length']:6} same bits: {record['same bits']}", flush=True)


def main() -> None:
    """Measure all lengths and write the record."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("build/parts"))
    parser.add_argument("--lengths", type=int, nargs="+", default=[8192, 16384])
    options = parser.parse_args()
    from bench.schedules.run import machine

    records = []
    for length in options.lengths:
        records.append(measured(length))
        shown(records[-1])
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "parts.json"
    text = json.dumps({**machine(), "records": records}, indent=1)
    path.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
