"""Spaces of schedules that are tuned, and the table of what was found."""

from types import SimpleNamespace

import pytest

import blockbuster as bb
from bench.costs import building
from bench.costs.tunable import EXAMPLES, MOST, chain_of, scheduled, space, workload_of
from bench.costs.tune import line, table
from bench.costs.tuning import Job, built
from blockbuster.tiling.realization import candidate_of, simplified


@pytest.mark.parametrize("name", ["G1", "G5", "S6"])
def test_a_space_is_small_and_every_schedule_replays(name):
    chain, machine = chain_of(name), bb.machine("h200")
    configs = space(chain, machine)
    texts = {config.schedule(chain) for config in configs}

    assert 40 <= len(texts) == len(configs) <= MOST
    for config in configs[::9]:
        made = scheduled(name, config.schedule(chain))
        assert candidate_of(chain, made) == simplified(chain, config.candidate)


def test_workloads_are_drawn_at_their_sizes():
    workload = workload_of("S6")
    assert workload.shapes(workload.sizes) == {
        "q": [16, 256, 80], "k": [16, 256, 80], "v": [16, 256, 80],
    }  # fmt: skip
    assert len(EXAMPLES) == 21


def test_the_table_says_what_is_near_the_best():
    us = {"default": 5.0, "closed form": 4.2, "binaries": 4.1, "equations": 6.0, "ranked": 4.0}
    record = {
        "workload": "G1",
        "space": 9,
        "ranked": {"seconds": 7.5},
        "mcfuser": {"seconds": 3.0},
        "us": us | {"mcfuser": 4.3, "all 1": 3.95, "all 2": 4.0},
    }
    failed = {"workload": "G2", "error": "EmitError: none of 32 schedules compiles"}
    shown = table([record, failed])

    assert "0.15 us) of the best of all, of 1: default 0, closed form 0, binaries 1" in shown
    assert "closed form: the choice beats the default schedule for 1 of 1" in shown
    assert line(failed) == "G2   FAILED: EmitError: none of 32 schedules compiles"
    assert line(record).startswith("G1     9 configurations; ranked 7.5 s mcfuser 3.0 s; default")


def test_a_kernel_that_is_miscompiled_or_too_large_is_not_run(monkeypatch, tmp_path):
    machine = bb.machine("h200")
    chain = chain_of("G1")
    job = Job("G1", space(chain, machine)[0].schedule(chain), str(tmp_path))
    compiled = SimpleNamespace(metadata=SimpleNamespace(shared=64), asm={})
    monkeypatch.setenv("TRITON_CACHE_DIR", "")  # given back after the test: the job changes it
    monkeypatch.setattr(building, "compiled_entry", lambda entry, target: (compiled, "ptxas"))
    monkeypatch.setattr(building, "reasons_to_refuse", lambda made: ("it lost a register",))
    with pytest.raises(bb.EmitError, match="it lost a register"):
        built(job)

    compiled.metadata.shared = 1 << 20
    with pytest.raises(bb.EmitError, match="needs 1048576 bytes of shared memory, not"):
        built(job)
    assert not job.path.exists()
