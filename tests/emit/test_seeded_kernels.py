"""check_kernel on Triton kernels with a fault each: all are found, and right ones pass."""

import pytest

from tests.interpreted import printed_by

ORDER = "results change with the order in which the programs of its grid run"
MASKED = "or what the mask of a load leaves out"
WORDS = {
    "maximum beside 0": "negative: error 1 of the largest result",
    "minimum beside 0": "positive: error 1 of the largest result",
    "position beside 0": "negative: error 1 of the largest result",
    "softmax beside 0": "negative: error 0.000417 of the largest result",
    "softmax without shift": "extreme: 18 elements are not finite",
    "mean without other": MASKED,
    "mean over the block": "error 0.344 of the largest result",
    "mean in halves": "of the largest result, allowed 0.0001",
    "product without other": MASKED,
    "product without a tail": MASKED,
    "tiles guarded in rows": ORDER,
    "tiles guarded in rows, not named": ORDER,
    "tiles one too wide": ORDER,
    "tiles in a swapped grid": "leaves 65 of 105 elements of out",
    "tiles of contiguous rows": "strided: results change with what lies around the inputs",
    "a store into the next block": ORDER,
    "reads of a neighbour's result": ORDER,
    "a running sum": ORDER,
    "reversal in place": ORDER,
    "a sum without atomics": ORDER,
    "a sum on unwritten memory": "1 elements are not finite",
    "a stale workspace": "results differ from run to run",
    "a count without atomics": ORDER,
    "a count that is kept": "results differ from run to run",
}


@pytest.fixture(scope="module")
def reports():
    return printed_by("tests.emit.seeded_checks")


@pytest.mark.interpreter
def test_right_kernels_pass(reports):
    failed = [text for text in reports["right"].values() if not text.startswith("passed")]

    assert len(reports["right"]) == 13
    assert not failed
    waits = "not checked: other orders of the programs of a grid: they wait for each other"
    assert [name for name, text in reports["right"].items() if waits in text] == [
        "a chain of flags"
    ]


@pytest.mark.interpreter
@pytest.mark.parametrize("name", WORDS)
def test_faults_are_found(reports, name):
    report = reports["wrong"][name]

    assert report.startswith("FAILED")
    assert WORDS[name] in report, report


@pytest.mark.interpreter
def test_every_fault_has_words(reports):
    assert [*reports["wrong"]] == [*WORDS]
