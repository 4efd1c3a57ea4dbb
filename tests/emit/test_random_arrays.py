"""Random array programs, compiled for sm_90 and run in the interpreter; bench has more of them."""

import pytest

from bench.random_programs import judged, prepared
from blockbuster.emit.launch import run_batch

SEEDS = range(500, 512)


@pytest.mark.interpreter
def test_random_programs_equal_the_reference(tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    found = [prepared(seed, "sm_90") for seed in SEEDS]
    ready = [entry for entry in found if entry[1] is not None]
    results = run_batch([job for _, job, _ in ready])

    verdicts = [
        judged(record, got, wanted) for (record, _, wanted), got in zip(ready, results, strict=True)
    ]
    refused = [record for record, job, _ in found if job is None]
    assert len(ready) >= 10
    assert [r for r in refused if r["verdict"] != "refused"] == []
    assert [r for r in verdicts if r["verdict"] != "equal"] == []
