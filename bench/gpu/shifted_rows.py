"""LayerNorm of rows whose mean is many deviations: errors beside eager's, and times.

    python3 -m bench.gpu.shifted_rows
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from typing import Any

import torch
from triton.testing import do_bench

import blockbuster as bb
from bench.gpu.measure import (
    as_tuple,
    final_graph,
    into_poisoned,
    judge,
    make_inputs,
    poisoned,
    run_into,
)
from bench.gpu.run_programs import graph_time, machine
from bench.programs import WORKLOADS, Workload, eager

DEVIATIONS = (0, 8, 100)


def shifted(workload: Workload, sizes: Any, dtype: Any, deviations: int, seed: int) -> Any:
    """Random inputs, of deviation 1/2, with x that many deviations from 0."""
    made = make_inputs(workload, sizes, "random", dtype, "cuda", seed)
    return {**made, "x": (made["x"].float() + deviations / 2).to(dtype)}


def main() -> int:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    print(machine())
    for name in ("layernorm-matmul", "layer-norm"):
        workload = WORKLOADS[name]
        sizes = workload.sizes_of("timed")
        for dtype in ("float16", "float32"):
            kernel = bb.emit(final_graph(workload), sizes=sizes, dtype=dtype)
            kind = getattr(torch, dtype)
            inputs = make_inputs(workload, sizes, "random", kind, "cuda")
            outputs = poisoned(as_tuple(eager(workload.fn)(**inputs)))
            shown = []
            for deviations in DEVIATIONS:
                draw = partial(shifted, workload, sizes, kind, deviations)
                error, _ = judge(workload, into_poisoned(kernel, outputs), draw)
                shown.append(
                    f"mean {deviations} deviations: {error.ratio_max:.2f}|{error.ratio_rms:.2f}"
                    f" {error.relative:.1e}"
                )
            run = partial(run_into, kernel, inputs, outputs)
            times = f"{1e3 * do_bench(run, return_mode='median'):.1f} us g {graph_time(run):.1f}"
            print(f"{name:17} {dtype} {times:20} {'; '.join(shown)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
