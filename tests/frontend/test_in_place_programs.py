"""Random programs that change arrays in place: NumPy's and torch's results, or a TraceError."""

from random import Random

import numpy as np
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster.errors import TraceError
from blockbuster.frontend.array import TracedArray
from tests.frontend.in_place_programs import LIBRARIES, Program, drawn

RANDOM = st.randoms(use_true_random=False)
WAYS = ("examples", "sizes")


def eager(program: Program):
    """What the program returns, and whether its arguments are as they were."""
    given, fresh = program.arguments(), program.arguments()
    found = program.function(*given)
    same = all(np.array_equal(a, b) for a, b in zip(given, fresh, strict=True))
    return [np.asarray(array) for array in found], same


def traced(program: Program, way: str):
    """The same by a traced program; None if it was refused."""
    x, y = program.arguments()
    dims = f"M={program.shape[0]} N={program.shape[1]}"
    described = {"x": x, "y": y} if way == "examples" else {"x": dims, "y": dims}
    try:
        array_program = bb.trace(program.function, **described)
    except TraceError:
        return None
    outputs = array_program.numpy({"x": np.asarray(x), "y": np.asarray(y)})
    return [outputs[output.name] for output in array_program.outputs]


def is_right(program: Program, way: str) -> bool | None:
    """Whether the traced program gives what eager code gives; None if it was refused."""
    expected, same = eager(program)
    found = traced(program, way)
    if found is None:
        return None
    pairs = zip(found, expected, strict=True)
    return same and all(a.shape == b.shape and np.allclose(a, b, equal_nan=True) for a, b in pairs)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("library", LIBRARIES)
@given(random=RANDOM)
def test_a_program_is_right_or_refused(library, way, random):
    program = drawn(random, library)
    note(program.source)

    assert is_right(program, way) in (True, None)


@pytest.mark.parametrize(("way", "share"), [("examples", 0.8), ("sizes", 0.6)])
@pytest.mark.parametrize("library", LIBRARIES)
def test_most_programs_are_accepted(library, way, share):
    found = [is_right(drawn(Random(seed), library), way) for seed in range(100)]

    assert False not in found
    assert found.count(True) >= share * len(found)


@pytest.mark.parametrize("broken", ["__iadd__", "__imul__", "update", "lose"])
def test_programs_show_that_a_part_is_missing(broken, monkeypatch):
    """Without Python's operators, views or kin, some of a hundred programs are silently wrong."""
    from blockbuster.frontend.memory import Memory

    owner = Memory if hasattr(Memory, broken) else TracedArray
    if owner is Memory:
        monkeypatch.setattr(Memory, broken, lambda *_: None)
    else:
        monkeypatch.delattr(TracedArray, broken)

    assert False in [
        is_right(drawn(Random(seed), library), "examples")
        for library in LIBRARIES for seed in range(100)
    ]  # fmt: skip
