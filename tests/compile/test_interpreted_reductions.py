"""Reductions in Triton's interpreter: those of the worker are those of the interpreter itself."""

import pytest

from tests.interpreted import printed_by


@pytest.mark.interpreter
def test_results_are_the_same_bits_by_fewer_calls():
    found = printed_by("tests.compile.interpreted_reductions")

    assert found["count"] == 64
    assert found["differ"] == []
    assert found["calls"] == [2 * 255, 8]
