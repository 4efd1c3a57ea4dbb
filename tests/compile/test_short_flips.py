"""Arrays that are read backwards, and are empty or shorter than what is asked of them."""

import numpy as np
import pytest

import blockbuster as bb

torch = pytest.importorskip("torch")

FUNCTIONS = {
    "all": lambda x: x[::-1], "flip": lambda x: np.flip(x, 0), "both": lambda x: x[::-1, ::-1] + 1,
    "sum": lambda x: x[::-1].sum(0), "product": lambda x: x @ x[::-1].T,
    "added": lambda x: x + x[::-1], "joined": lambda x: np.concatenate([x[::-1], x], 0),
    "from place 4": lambda x: x[4:1:-1], "from the end": lambda x: x[-1:-3:-1] * 2,
    "in steps": lambda x: x[-2::-3], "of some": lambda x: x[1:][::-2],
    "some of it": lambda x: x[::-1][1:3], "differences": lambda x: x[1:][::-1] - x[:-1][::-1],
    "half": lambda x: x[: x.shape[0] // 2][::-1], "scanned": lambda x: np.cumsum(x[::-1], 0)[::-1],
}  # fmt: skip
THEIRS = {
    "flip": lambda x: torch.flip(x, (0,)), "sum": lambda x: x.flip(0).sum(0),
    "product": lambda x: x @ torch.flip(x, [0]).T, "some of it": lambda x: x.flip(0)[1:3] * 2,
    "differences": lambda x: x[1:].flip(0) - x[:-1].flip(0),
}  # fmt: skip


def rows(count):
    """Rows of small numbers."""
    return np.arange(4.0 * count).reshape(count, 4) + 1


@pytest.mark.parametrize("name", FUNCTIONS)
def test_numpys_flips_of_few_rows(name):
    function = FUNCTIONS[name]
    jitted = bb.jit(function)
    for count in (5, 0, 1, 2, 3):
        right = function(rows(count))
        np.testing.assert_array_equal(jitted(rows(count)), right, strict=True)
        np.testing.assert_array_equal(bb.jit(function)(rows(count)), right, strict=True)


@pytest.mark.parametrize("name", THEIRS)
def test_torchs_flips_of_few_rows(name):
    function = THEIRS[name]
    jitted = bb.jit(function)
    for count in (5, 0, 1, 2):
        right = function(torch.tensor(rows(count))).numpy()
        np.testing.assert_array_equal(jitted(torch.tensor(rows(count))).numpy(), right, strict=True)


LEAST = {
    "sum": 1, "product": 1, "added": 1, "scanned": 1, "from the end": 1, "in steps": 2,
    "differences": 2, "of some": 2, "half": 2, "some of it": 2, "from place 4": 3,
}  # fmt: skip
"""The least rows for which text for the CPU in one block, which must have elements, has some."""


@pytest.mark.parametrize("name", [*FUNCTIONS])
def test_a_class_of_sizes_has_few_rows_too(name):
    function = FUNCTIONS[name]
    program = bb.trace(function, x="M N")
    compiled = bb.compile(program, {"M": 200, "N": 4}, "float64", machine="cpu")
    for count in (0, 2, 6, 8):
        if count >= LEAST.get(name, 0):
            np.testing.assert_array_equal(compiled(rows(count)), function(rows(count)), strict=True)
