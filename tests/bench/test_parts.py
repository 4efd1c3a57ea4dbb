"""The schedules that bench/gpu/parts.py times: each with its loop in parts, and in one."""

import pytest

import blockbuster as bb
from bench.everyday import causal
from bench.gpu.parts import FORMS, in_parts, schedules

SIZES = dict(B=1, H=16, S=8192, D=128)


def test_each_form_is_timed_in_parts_and_in_one():
    graph = bb.fuse(bb.lower(bb.trace(causal, **dict.fromkeys("qkv", "B H S D")))).final
    found = schedules(graph, SIZES, masked=True)

    assert list(found) == [name for form in FORMS for name in (form, f"{form}, in parts")]
    for name, text in found.items():
        kernel = bb.emit(graph, SIZES, "float16", "sm_90", schedule=text)
        assert kernel.schedule.splitlines() == text.splitlines()
        assert ("part nest 1 S'" in text) == name.endswith("in parts")
    assert "warps 4" in found["4 warps"]
    assert "stage nest 1 S'#2 3" in found["4 warps, in parts"]


def test_a_schedule_that_narrows_nothing_has_no_parts():
    with pytest.raises(ValueError, match="expected a schedule that narrows a loop"):
        in_parts("block M 64; warps 4")
