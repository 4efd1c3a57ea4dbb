"""Functions that need sizes as numbers: traced again for these sizes alone, with a note."""

import re

import numpy as np
import pytest

import blockbuster as bb


def chosen_scores(x, labels):
    """As many classes as there are columns, counted by NumPy itself."""
    hit = labels[:, None] == np.arange(x.shape[1])
    return (x * hit).sum(1) / len(x)


def triangle(x):
    return np.tril(np.ones((x.shape[0], x.shape[0]), x.dtype)) @ x


def split_by_two_sizes(x, y):
    """A copy whose shape does not follow from that of what is copied."""
    total = (x.reshape(2, -1) + 1).sum(0)
    return total.reshape(x.shape[0] // 2, -1) + y


def first_rows(x):
    rows, columns = x.shape
    return x.reshape(rows * columns)[:rows] * columns


FUNCTIONS = {
    "np.arange of a size, len": (chosen_scores, lambda n: [(n, 3), ("int", (n,))]),
    "np.ones of sizes": (triangle, lambda n: [(n, 3)]),
    "a slice of a merged axis": (first_rows, lambda n: [(n, 3)]),
    "a loop over rows": (
        lambda x: np.stack([x[i] * i for i in range(x.shape[0])]), lambda n: [(n, 3)]),
    "the size of all": (lambda x: x / np.float32(x.size), lambda n: [(n, 3)]),
    "a reshape": (split_by_two_sizes, lambda n: [(2 * n, 3), (n, 3)]),
}  # fmt: skip


def arrays(shapes):
    rng = np.random.default_rng(0)
    return [
        rng.integers(0, 3, shape[1]) if "int" in shape
        else rng.standard_normal(shape).astype(np.float32)
        for shape in shapes
    ]  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_size_has_a_program_of_its_own(name):
    function, shapes = FUNCTIONS[name]
    jitted = bb.jit(function)
    for rows in (4, 6, 1, 4):
        given = arrays(shapes(rows))
        np.testing.assert_allclose(jitted(*given), function(*given), rtol=1e-5, atol=1e-6)


def test_the_program_says_so():
    (x,) = arrays([(4, 3)])
    program = bb.trace(triangle, x=x)

    assert {**program.sizes, "A": 4, "B": 3} == program.sizes
    assert re.match("known sizes are fixed, .* alone: the size .4. is not known", program.notes[0])
    with pytest.raises(ValueError, match="A"):
        program.numpy({"x": x[:3]})


def test_sizes_that_words_say_are_numbers_too():
    program = bb.trace(lambda x: x * np.arange(x.shape[1]), x="M 3")

    assert program.inputs[0].shape[0] == "M"
    np.testing.assert_array_equal(
        program.numpy({"x": np.ones((2, 3))})["out"], [[0, 1, 2], [0, 1, 2]])


def test_sizes_that_nothing_says_are_refused():
    with pytest.raises(bb.TraceError, match=r"(?s)the size .M.* is not known while tracing"):
        bb.trace(triangle, x="M N")
    with pytest.raises(bb.TraceError, match="the length of a traced array is not known"):
        bb.trace(lambda x: x / len(x), x="M N")
    with pytest.raises(bb.TraceError, match="a traced array has no device"):
        bb.trace(lambda x: x.to(x.device), x="M N")


def test_what_fails_for_other_reasons_fails_still():
    with pytest.raises(bb.TraceError, match="nanmedian cannot be traced"):
        bb.jit(lambda x: np.nanmedian(x) / len(x))(np.ones((3, 4)))
    with pytest.raises(TypeError, match="sequence item 0: expected str"):
        bb.jit(lambda x: x + len(" ".join([len(x)])))(np.ones((3, 4)))


def test_torch_counts_too(torch):
    def contrastive(x, y):
        scores = x @ y.t() / 0.07
        labels = torch.arange(x.shape[0], device=x.device)
        return torch.nn.functional.cross_entropy(scores.to(x.device), labels)

    jitted = bb.jit(contrastive)
    for rows in (8, 5):
        x, y = torch.randn(rows, 6), torch.randn(rows, 6)
        torch.testing.assert_close(jitted(x, y), contrastive(x, y))
