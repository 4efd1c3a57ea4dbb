"""The stages of a first call: a library call compiles nothing, and all programs are known."""

import pytest

pytest.importorskip("torch", reason="torch is not installed: pip install torch")

from bench.first_calls import PROGRAMS, STAGES, counted, stages
from bench.peers.cases import BY_KEY


def test_a_call_of_the_library_is_chosen_and_not_compiled():
    row = stages("matmul-2048x8192x2048", "h100")

    assert row["kernels"] == 0
    assert row["choosing"] > 0
    assert [row[stage] for stage in STAGES[1:]] == [0, 0, 0]


def test_work_of_this_process_is_no_work_of_children():
    seconds = dict.fromkeys(STAGES, 0.0)
    with counted(seconds, "compiling", "assembling"):
        sum(range(1_000_000))

    assert seconds["compiling"] > 0
    assert seconds["assembling"] == 0


def test_the_programs_are_cases():
    assert {f"outside/{name}" for name in PROGRAMS} <= {*BY_KEY}
