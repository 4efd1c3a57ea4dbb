"""Small runs of emitted kernels, for a memory checker to watch: see sanitize.sh."""

from __future__ import annotations

import sys

import torch

import blockbuster as bb
from bench.gpu.measure import as_tuple, final_graph, into_poisoned, judge, make_inputs
from bench.programs import WORKLOADS, eager

NAMES = (
    "attention", "causal-attention", "layernorm-matmul", "rmsnorm-swiglu", "mlp", "three-outputs",
    "softmax-columns", "transposed-sum", "total", "vector-chain", "cross-entropy",
)  # fmt: skip


def main(names: list[str]) -> int:
    bad = 0
    for name in names or NAMES:
        workload = WORKLOADS[name]
        graph = final_graph(workload)
        for dtype in ("float16", "float32"):
            timed = bb.emit(graph, sizes=workload.sizes_of("timed"), dtype=dtype)
            in_chunks = {dim: 2 for dim, _ in timed.chunks}
            sizes = workload.sizes_of("ragged")
            for kind in ("ragged", "strided", *(["chunks"] if in_chunks else [])):
                chunks = in_chunks if kind == "chunks" else None
                kernel = bb.emit(graph, sizes=sizes, dtype=dtype, chunks=chunks)
                inputs = make_inputs(workload, sizes, kind, getattr(torch, dtype), "cuda")
                like = as_tuple(eager(workload.fn)(**inputs))
                run = into_poisoned(kernel, like, strided=kind == "strided")
                error, _ = judge(workload, run, lambda _, given=inputs: given, draws=1)
                bad += not error.passed
                print(name, dtype, kind, "ok" if error.passed else f"FAILED {error}", flush=True)
    return bad


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
