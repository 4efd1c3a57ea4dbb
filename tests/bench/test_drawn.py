"""Programs drawn at random: torch runs each, and a seed is one program."""

import pytest

import blockbuster as bb
from bench.outside.drawn import drawn, floor

pytest.importorskip("torch", reason="torch is not installed: pip install torch")


def test_each_program_runs_in_torch_and_has_a_floor():
    for seed in range(60):
        program = drawn(seed)
        assert floor(program, bb.machine("h100")) > 1.0
        assert (program.text, program.shapes) == (drawn(seed).text, drawn(seed).shapes)


def test_programs_differ():
    assert len({drawn(seed).text for seed in range(60)}) > 50
