"""Random array programs, compiled for sm_90 and run in the interpreter; bench has more of them."""

import pytest

from bench.random_programs import judged, prepared
from blockbuster.emission import emit
from blockbuster.errors import EmitError
from blockbuster.runtime.launch import run_batch
from tests.parameters import rest_slow

SEEDS = range(500, 512)
FIRST = 2
"""So many of the seeds are tried without asking for slow tests."""


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
@pytest.mark.parametrize("seeds", rest_slow([SEEDS[:FIRST], SEEDS[FIRST:]], [SEEDS[:FIRST]]))
def test_random_programs_equal_the_reference(tmp_path, monkeypatch, seeds):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    assert len(equal([prepared(seed, "sm_90") for seed in seeds])) >= len(seeds) - 1


def emitted_in_chunks(graph, sizes, dtype, target):
    """A kernel with a small tile, and two chunks, for the first dim that some loop walks."""
    for dim in sizes:
        tiles = {dim: 16} if dim != "B" else {}
        try:
            return emit(graph, sizes, dtype, target, tiles=tiles, chunks={dim: 2})
        except EmitError as error:
            reason = error
    raise reason


@pytest.mark.slow
@pytest.mark.interpreter
@pytest.mark.parametrize("seeds", [range(7), range(7, 14)])
def test_random_programs_in_chunks_equal_the_reference(tmp_path, monkeypatch, seeds):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    kernels = equal([prepared(seed, "sm_90", emitted_in_chunks) for seed in seeds])
    assert len(kernels) >= len(seeds) // 3
    assert all(kernel.chunks for kernel in kernels)
