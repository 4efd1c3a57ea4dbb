"""Random array programs, compiled for sm_90 and run in the interpreter; bench has more of them."""

import pytest

from bench.random_programs import judged, prepared
from blockbuster.emission import emit
from blockbuster.errors import EmitError
from blockbuster.runtime.launch import run_batch

SEEDS = range(500, 512)


def equal(found):
    """The kernels of those programs that have one: their results are right, the rest is refused."""
    ready = [entry for entry in found if entry[1] is not None]
    results = run_batch([job for _, job, _ in ready])
    verdicts = [
        judged(record, got, wanted) for (record, _, wanted), got in zip(ready, results, strict=True)
    ]
    refused = [record for record, job, _ in found if job is None]
    assert [r for r in refused if r["verdict"] != "refused"] == []
    assert [r for r in verdicts if r["verdict"] != "equal"] == []
    return [job[0] for _, job, _ in ready]


@pytest.mark.interpreter
def test_random_programs_equal_the_reference(tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    assert len(equal([prepared(seed, "sm_90") for seed in SEEDS])) >= 10


def emitted_in_chunks(graph, sizes, dtype, target):
    """A kernel with a small tile, and two chunks, for the first dim that some loop walks."""
    for dim in sizes:
        tiles = {dim: 16} if dim != "B" else {}
        try:
            return emit(graph, sizes, dtype, target, tiles=tiles, chunks={dim: 2})
        except EmitError as error:
            reason = error
    raise reason


@pytest.mark.interpreter
def test_random_programs_in_chunks_equal_the_reference(tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    kernels = equal([prepared(seed, "sm_90", emitted_in_chunks) for seed in range(14)])
    assert len(kernels) >= 5
    assert all(kernel.chunks for kernel in kernels)
