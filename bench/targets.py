"""Compile a fixed set of programs for GPUs that are not there: shared memory, registers, spills.

    python -m bench.targets --out tests/golden/targets.json      all (make targets)
    python -m bench.targets --only geglu --targets sm_90,gfx942
    python -m bench.targets --in-turn                            half of the work (CI)

The exit code is 1 if a program does not compile or needs more than a target has. Spills are
reported only: default tiles ignore registers, which selection and tuning take into account.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from bench.programs import OURS, WORKLOADS

TARGETS = ("sm_80", "sm_90", "sm_100", "gfx942")
REGISTERS = {"sm_80": 255, "sm_90": 255, "sm_100": 255, "gfx942": 512}


@dataclass(frozen=True)
class Case:
    """A program with sizes of a kind, a dtype, tiles, and in how many chunks loops are run."""

    program: str
    kind: str = "timed"
    dtype: str = "float16"
    tiles: Mapping[str, int] = field(default_factory=dict)
    chunks: Mapping[str, int] | None = None

    @property
    def name(self) -> str:
        tiles = ",".join(f"{d}={n}" for d, n in self.tiles.items()) or "default"
        chunks = "".join(f" {d} in {n} chunks" for d, n in (self.chunks or {}).items())
        return f"{self.program} {self.kind} {self.dtype} {tiles}{chunks}"


VARIED = (
    Case("attention", "timed", "bfloat16"),
    Case("attention", "timed", "float32"),
    Case("attention", "ragged", "float16"),
    Case("attention", "timed", "float16", dict(M=128, N=64)),
    Case("attention", "timed", "float16", dict(M=64, N=32)),
    Case("attention", "timed", "float16", dict(M=16, N=128)),
    Case("layernorm-matmul", "ragged", "bfloat16"),
    Case("layernorm-matmul", "timed", "float16", dict(M=32, K=32, N=64)),
    Case("rmsnorm-swiglu", "timed", "bfloat16", dict(M=32, D=32, K=32, N=64)),
    Case("geglu", "timed", "float16", dict(M=128, K=32, N=64)),
    Case("geglu", "timed", "float32"),
    Case("mlp", "ragged", "bfloat16"),
    Case("mlp", "timed", "float32"),
    Case("causal-attention", "ragged", "bfloat16"),
    Case("grouped-attention", "timed", "bfloat16"),
    Case("logsumexp-of-product", "ragged", "float32"),
    Case("softmax-rows", "timed", "float32", dict(M=1, N=1024)),
    Case("transposed-sum", "timed", "bfloat16", dict(M=64, N=64)),
    Case("vector-chain", "timed", "bfloat16", dict(N=4096)),
    Case("layer-norm", "tiny", "float32"),
    Case("attention", "tiny", "float16"),
    Case("total", "ragged", "bfloat16", dict(M=4), dict(M=8)),
    Case("total", "ragged", "float32", dict(N=16), dict(N=4)),
    Case("column-sums", "timed", "float32", chunks=dict(M=4)),
    Case("linear-relu", "ragged", "float16", dict(K=32), dict(K=4)),
    Case("attention", "ragged", "float32", dict(N=32), dict(N=8)),
    Case("softmax-rows", "timed", "float16", tiles=dict(N=512), chunks=dict(N=2)),
)
CASES = (*(Case(workload.name) for workload in OURS), *VARIED)


def in_turn(cases: Sequence[Case]) -> list[tuple[Case, str]]:
    """Each case for Hopper, where kernels are timed, and for one of the other targets in turn."""
    others = [target for target in TARGETS if target != "sm_90"]
    return [(c, t) for i, c in enumerate(cases) for t in ("sm_90", others[i % len(others)])]


def compiled(case: Case, target: str) -> dict[str, Any]:
    """What each function of the case's kernel became."""
    import blockbuster as bb
    from blockbuster.emit.target.compiler import compile_kernel

    workload = WORKLOADS[case.program]
    graph = bb.fuse(bb.lower(bb.trace(workload.fn, **workload.inputs))).final
    record: dict[str, Any] = {"case": case.name, "target": target}
    try:
        sizes = workload.sizes_of(case.kind)
        kernel = bb.emit(graph, sizes, case.dtype, target, case.tiles, chunks=case.chunks)
        reports = compile_kernel(kernel)
    except bb.EmitError as error:
        return {**record, "error": str(error)[:1500]}
    rows = [[r.function, r.shared, r.registers, r.spills] for r in reports]
    return {**record, "functions": rows}


def failures(record: Mapping[str, Any]) -> Iterator[str]:
    """Why a record is not good enough."""
    if "error" in record:
        yield record["error"]
    for function, _, registers, _ in record.get("functions", ()):
        if not 0 < registers <= REGISTERS[record["target"]]:
            yield f"{function} has {registers} registers a thread"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", default="", help="a word that the names of the cases hold")
    parser.add_argument("--targets", default=",".join(TARGETS))
    parser.add_argument("--in-turn", action="store_true", help="two targets for each case")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    began = time.perf_counter()
    cases, targets = [c for c in CASES if options.only in c.name], options.targets.split(",")
    jobs = in_turn(cases) if options.in_turn else list(product(cases, targets))
    with (
        tempfile.TemporaryDirectory() as folder,
        ProcessPoolExecutor(
            options.processes, get_context("spawn"), initializer=_fresh, initargs=(folder,)
        ) as pool,
    ):
        records = list(pool.map(compiled, *zip(*jobs, strict=True), chunksize=2))
    bad = [(r, reason) for r in records for reason in failures(r)]
    for record, reason in bad:
        print(f"FAILED {record['case']} for {record['target']}: {reason}")
    if options.out:
        options.out.write_text(text_of(records), encoding="utf-8")
    spilled = sum(any(row[3] for row in r.get("functions", ())) for r in records)
    seconds = time.perf_counter() - began
    print(
        f"{len(jobs)} compilations of {len({c.name for c, _ in jobs})} programs x tiles:"
        f" {len(bad)} failed, {spilled} spill; {seconds:.0f} s, triton {_version()}"
    )
    return 1 if bad else 0


def _fresh(folder: str) -> None:
    """A cache of its own: an old one would hide what no longer compiles."""
    import os

    os.environ["TRITON_CACHE_DIR"] = folder


def _version() -> str:
    import triton

    return str(triton.__version__)


def text_of(records: list[dict[str, Any]]) -> str:
    """JSON with one line per record."""
    lines = ",\n".join(f" {json.dumps(record)}" for record in records)
    head = f'"triton": "{_version()}", "columns": {json.dumps(COLUMNS)}'
    return f'{{{head}, "records": [\n{lines}\n]}}\n'


COLUMNS = ("function", "bytes of shared memory", "registers a thread", "spilled bytes a thread")

if __name__ == "__main__":
    sys.exit(main())
