"""check_kernel on users' Triton kernels, in Triton's interpreter: what is wrong with each."""

import pytest

from tests.interpreted import printed_by

WORDS = {
    "right": "passed",
    "right, not named": "passed",
    "right sum": "passed",
    "right atomics": "passed",
    "stores one too many": "writes past the end of out: 1 element, the nearest is 1 element",
    "stores one too many, not named": "past the end of an array of shape (3, 20) that the launcher",
    "stores without a mask": "writes past the end of out: 12 elements, the nearest is 1 element",
    "stores before the start": "writes before the start of out: 1 element, the nearest is 1",
    "leaves the tail": "leaves 12 of 60 elements of out as they were before the call",
    "changes its input": "changes its input x: 60 of 60 elements",
    "loads one too many": "it reads out of bounds, what it has not written, or what the mask",
    "adds to what was there": "are not finite",
    "right, served": "passed",
    "one_too_many, served": "writes past the end of out: 1 element, the nearest is 1 element",
}


@pytest.fixture(scope="module")
def reports():
    """What is said of each kernel of triton_kernels.py, by a process that has the interpreter."""
    return printed_by("tests.emit.triton_kernels")


@pytest.mark.interpreter
@pytest.mark.parametrize("name", WORDS)
def test_what_is_wrong_is_named(reports, name):
    assert WORDS[name] in reports[name], reports[name]
    assert reports[name].startswith("passed") is (WORDS[name] == "passed")
    assert "ran in this process" not in reports[name]
