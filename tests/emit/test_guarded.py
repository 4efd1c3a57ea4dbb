"""Guard zones: arrays lie as they are asked to, and every byte that changes is told, and where."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blockbuster.check.guarded import ALIGN, TURNS, blank, guarded, packed, pattern, unaligned

DTYPES = ("float16", "float32", "float64", "int8", "int32", "bool", ">f4")


@st.composite
def arrays(draw):
    """Views of all kinds: stepped, reversed, transposed, broadcast, empty, without axes."""
    shape = draw(st.lists(st.integers(0, 4), max_size=3))
    steps = [draw(st.sampled_from((1, 2, 3, -1, -2))) for _ in shape]
    wide = np.arange(np.prod([max(4 * abs(s) + n, 1) for n, s in zip(shape, steps, strict=True)]))
    wide = wide.reshape([max(4 * abs(s) + n, 1) for n, s in zip(shape, steps, strict=True)])
    view = wide.astype(draw(st.sampled_from(DTYPES)))
    view = view[(..., *(slice(None, None, s) for s in steps))]
    view = view[(..., *(slice(n) for n in shape))]
    if draw(st.booleans()):
        view = np.broadcast_to(view, (2, *view.shape))
    return view.transpose(draw(st.permutations(range(view.ndim))))


@given(arrays(), st.integers(0, TURNS - 1), st.booleans())
def test_an_array_lies_as_it_did(array, turn, moved):
    shell = unaligned(packed("x", array)) if moved else packed("x", array)
    made = guarded(shell, turn)
    address = made.view.ctypes.data

    np.testing.assert_array_equal(made.view, array)
    assert made.view.dtype == array.dtype
    assert made.view.strides == array.strides
    assert address % ALIGN == (array.itemsize if moved else array.ctypes.data % ALIGN)
    assert list(made.problems()) == list(made.overruns()) == []
    assert made.low >= 2**15
    assert len(made.memory) - made.high >= 2**15


@given(arrays(), st.integers(0, TURNS - 1), st.data())
def test_every_byte_that_changes_is_told(array, turn, data):
    made = guarded(packed("x", array), turn)
    low, high, size = made.low, made.high, array.itemsize
    at = low + data.draw(st.integers(-4 * size, high - low + 4 * size - 1), label="byte")
    made.memory[at] ^= 0x15
    inside = _belongs(made, at)
    (problem,) = made.problems()

    if at < low:
        nearest = (low - 1 - at) // size + 1
        assert problem.startswith("writes before the start of x: 1 element")
        assert f"the nearest is {nearest} element" in problem
    elif at >= high:
        assert problem.startswith("writes past the end of x: 1 element")
        assert f"the nearest is {(at - high) // size + 1} element" in problem
    elif inside:
        assert problem.startswith("changes its input x: ")
    else:
        assert problem == "writes into the gaps between the elements of x: 1 bytes"


@pytest.mark.parametrize(
    ("shape", "strides", "gaps"),
    [((2, 2, 2), (0, 12, 2), [*range(4, 12)]), ((3, 4), (2, 2), []), ((2, 2), (6, -2), [4, 5])],
)
def test_gaps_of_rows_that_repeat_or_overlap(shape, strides, gaps):
    base = np.arange(16, dtype=np.float16)
    view = np.lib.stride_tricks.as_strided(base[4:], shape, strides)
    made = guarded(packed("x", view), 0)
    told = []
    for at in range(made.low, made.high):
        made.memory[at] ^= 0x15
        told += [at - made.low] * any("gaps" in problem for problem in made.problems())
        made.memory[at] ^= 0x15
    assert told == gaps


def _belongs(made, at):
    """Whether a byte belongs to an element, found one element after the other."""
    view = made.view
    starts = (
        made.start + sum(i * step for i, step in zip(index, view.strides, strict=True))
        for index in np.ndindex(view.shape)
    )
    return any(start <= at < start + view.itemsize for start in starts)


@pytest.mark.parametrize("dtype", DTYPES)
def test_patterns_differ_by_turn_and_role(dtype):
    like = packed("x", np.zeros(3, dtype))
    inputs = [pattern(like, "input", turn) for turn in range(TURNS)]
    outputs = [pattern(like, "output", turn) for turn in range(TURNS)]

    assert len(set(inputs)) == (2 if dtype == "bool" else TURNS)
    assert all(one != other for one, other in zip(inputs, outputs, strict=True))
    if like.is_float:
        first, large, small = (np.frombuffer(one, np.dtype(dtype).newbyteorder("<")) for one in
                               inputs)  # fmt: skip
        assert np.isnan(first).all()
        assert (large > 1e4).all()
        assert (small < -1e4).all()
        assert np.isfinite(np.frombuffer(outputs[1], large.dtype)).all()


def test_an_output_is_padded_and_poisoned():
    made = guarded(blank("out", packed("x", np.zeros((3, 4), np.float32)), padding=3), 0)

    assert made.view.strides == (28, 4)
    assert np.isnan(made.view).all()
    assert "leaves 12 of 12 elements of out" in "; ".join(made.problems())
    made.view[...] = np.nan  # a NaN of the kernel's own
    assert list(made.problems()) == []


@pytest.mark.parametrize("name", ["float32", "bfloat16", "int64", "bool"])
def test_tensors(name):
    torch = pytest.importorskip("torch")
    whole = torch.arange(40).reshape(5, 8).to(getattr(torch, name))
    for tensor in (whole, whole.t(), whole[1:, ::3], whole[:1, 2:3], whole[0, 0], whole[:0]):
        made = guarded(unaligned(packed("x", tensor)), 1)

        assert torch.equal(made.view, tensor)
        assert made.view.dtype == tensor.dtype
        assert made.view.stride() == tensor.stride()
        assert made.view.data_ptr() % 16 == tensor.element_size() or not tensor.numel()
        assert list(made.problems()) == []
    made.memory[0] ^= 1
    assert "writes before the start of x" in "; ".join(made.problems())
