"""Matmuls on a GPU: what groups of tiles and loads by descriptors gain, beside the library.

    python3 -m bench.gpu.matmul_loads --out $OUT              all sizes, in about two minutes
    python3 -m bench.gpu.matmul_loads --out $OUT --only 8192x8192x8192

Each size runs with 128 x 256 tiles: row by row, in groups of 4, 8 and 16 rows of tiles, by
descriptors, and in groups of 8 by descriptors. All are compared with float64 and run twice, then
timed in turn, in rounds.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from bench.schedules.measure import CALLS, ROUNDS, times_of
from bench.schedules.programs import matmul

LARGEST = 1e-3
SIZES = (
    (2048, 4096, 4096), (4096, 4096, 4096), (8192, 8192, 8192), (8192, 1024, 1024),
    (16384, 4096, 1024), (1024, 4096, 28672),
    (4000, 4104, 4080),  # ragged: rows of x are no multiples of 32 bytes
)  # fmt: skip
BLOCKS = "block M 128, K 64, N 256\n{group}warps 8\nstage nest 1 K 3{words}\n"
GROUPS = {name: f"group nest 1 M {name}\n" for name in (4, 8, 16)}
FORMS = {
    "row by row": BLOCKS.format(group="", words=""),
    **{f"groups of {n}": BLOCKS.format(group=g, words="") for n, g in GROUPS.items()},
    "descriptors": BLOCKS.format(group="", words=" by descriptors"),
    "groups of 8, descriptors": BLOCKS.format(group=GROUPS[8], words=" by descriptors"),
}


def measured(m: int, k: int, n: int) -> dict[str, Any]:
    """Times of one size, in microseconds, and errors, of the whole result."""
    import torch

    import blockbuster as bb

    graph = bb.fuse(bb.lower(bb.trace(matmul, x="M K", w="K N"))).final
    random = torch.Generator(device="cuda").manual_seed(0)
    x = torch.randn((m, k), device="cuda", generator=random).half()
    w = (torch.randn((k, n), device="cuda", generator=random) * k**-0.5).half()
    right = x.double() @ w.double()
    errors: dict[str, float] = {}
    runs: dict[str, Any] = {"library": lambda: (x @ w,)}
    for name, text in FORMS.items():
        kernel = bb.emit(graph, dict(M=m, K=k, N=n), "float16", "sm_90", schedule=text)
        out = torch.full((m, n), float("nan"), device="cuda", dtype=torch.float16)

        def run(kernel: Any = kernel, out: Any = out) -> tuple[Any, ...]:
            kernel(x=x, w=w, out=out)
            return (out,)

        first = run()[0].clone()
        out.fill_(float("nan"))
        run()
        errors[name] = float((out.double() - right).norm() / right.norm())
        if not errors[name] <= LARGEST or not torch.equal(first, out):
            raise ValueError(f"{m}x{k}x{n}, {name}: wrong by {errors[name]:.1e}, or moving")
        runs[name] = run
    times = times_of(runs, ROUNDS)
    return {"sizes": [m, k, n], "errors": errors, "times": times}


def main() -> None:
    """Measure all sizes and write the record."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("build/loads"))
    parser.add_argument("--only", nargs="+", default=[], metavar="MxKxN")
    options = parser.parse_args()
    from bench.schedules.run import machine

    chosen = [tuple(map(int, text.split("x"))) for text in options.only] or list(SIZES)
    records = []
    for m, k, n in chosen:
        records.append(measured(m, k, n))
        library = records[-1]["times"]["library"]
        for name, us in records[-1]["times"].items():
            print(f"{m}x{k}x{n:<8} {name:26} {us:9.1f} us, {us / library:.3f}", flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    text = json.dumps({**machine(), "calls": CALLS, "records": records}, indent=1)
    (options.out / "matmul_loads.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
