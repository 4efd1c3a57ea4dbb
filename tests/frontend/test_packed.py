"""Products with joined arrays along the summed axis: parts that take turns, and groups of parts."""

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.interp.evaluate import evaluate


def interleaved(lo, hi):
    return np.stack([lo, hi], -1).reshape(lo.shape[0], -1)


def in_groups(w, g):
    return (w.reshape(5, 4, 6) * g[..., None]).reshape(5, 24)


PRODUCTS = {
    "interleaved": lambda x, lo, hi, g: x @ interleaved(lo, hi).T,
    "on the left": lambda x, lo, hi, g: interleaved(lo, hi) @ x.T,
    "scaled": lambda x, lo, hi, g: x @ (interleaved(lo, hi) * g[:, :1]).T,
    "of three": lambda x, lo, hi, g: x[:, :9] @ np.stack(
        [lo[:, :3], hi[:, :3], lo[:, 1:4]], -1).reshape(lo.shape[0], -1).T,
    "interleaved, in groups": lambda x, lo, hi, g: x @ in_groups(interleaved(lo, hi), g).T,
    "halves, in groups": lambda x, lo, hi, g: x @ in_groups(np.concatenate([lo, hi], 1), g).T,
    "of computed rows": lambda x, lo, hi, g: (x * 2 - 1) @ interleaved(lo, hi).T,
    "of batches": lambda x, lo, hi, g: np.concatenate([lo[None], hi[None]]) @ np.stack(
        [x[:, :12].T, x[:, 12:].T]),
}  # fmt: skip


@pytest.mark.parametrize("name", PRODUCTS)
def test_no_joined_array_is_stored(name):
    """Every byte of the parts is read once, and the result is NumPy's."""
    rng = np.random.default_rng(0)
    shapes = {"x": (3, 24), "lo": (5, 12), "hi": (5, 12), "g": (5, 4)}
    arrays = {key: rng.integers(-4, 5, shape).astype(float) for key, shape in shapes.items()}
    program = bb.trace(PRODUCTS[name], **arrays)
    graph = bb.lower(program)

    assert not program.notes
    found = bb.jit(PRODUCTS[name])(**arrays)
    np.testing.assert_array_equal(found, PRODUCTS[name](**arrays), strict=True)
    if len(graph.outputs) == 1:
        np.testing.assert_array_equal(evaluate(graph, arrays)["out"], found)


def test_parts_that_end_inside_of_a_group_are_copied():
    def fn(x, lo, hi):
        return x @ np.concatenate([lo, hi], 1).reshape(2, 3, 4).sum(1)

    arrays = {"x": np.ones((2, 2)), "lo": np.ones((2, 5)), "hi": np.ones((2, 7))}
    assert "copy" in bb.trace(fn, **arrays).notes[0]
    np.testing.assert_array_equal(bb.jit(fn)(**arrays), fn(**arrays))
