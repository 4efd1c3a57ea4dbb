"""What bench/gpu/overlap.py compares: schedules that overlap, and the same without; a control."""

import re

import pytest

from bench.gpu.overlap import pairs, without_waits
from bench.schedules.measure import emitted
from bench.schedules.programs import CASES

FOUND = [(case, *pair) for case in CASES for pair in pairs(case)]


def test_the_programs_of_several_kernels_are_there():
    names = {case.name for case, *_ in FOUND}
    assert names >= {"chain-two-kernels", "few-rows-matmul", "decode", "row-lengths"}


@pytest.mark.parametrize(
    ("case", "word", "plain", "early"),
    FOUND,
    ids=[f"{case.name} {word}" for case, word, *_ in FOUND],
)
def test_a_schedule_that_overlaps_is_another_one_and_a_line(case, word, plain, early):
    late, kernel = (emitted(case, text, case.sizes) for text in (plain, early))

    assert re.fullmatch(r"overlap( nest 2)?\n", kernel.schedule.removeprefix(late.schedule))
    assert kernel.outputs == ("out",)
    control = without_waits(kernel.source)
    assert not re.search("gdc_wait", control)
    assert control.count("gdc_launch_dependents") == 1
    compile(control, word, "exec")
