"""Axes that are read from the last element to the first, by Triton's interpreter."""

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.emission import emit
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.trips import bound_sizes
from blockbuster.runtime.launch import run_batch

FUNCTIONS = (
    lambda x, w: x + np.flip(x, -1),
    lambda x, w: np.flip(np.exp(x - x.max(1, keepdims=True)), (0, 1)),
    lambda x, w: np.flip(x, 1) @ w,
    lambda x, w: np.maximum(np.flip(x @ w, 0), 0),
    lambda x, w: x[::-1, 6::-3] * 2,
    lambda x, w: np.flip(x.reshape(x.shape[0], 5, 14), 2).sum(1),
    lambda x, w: np.concatenate([np.flip(x, 1), x[:, ::-2]], 1) + 1,
)


@pytest.mark.parametrize("rows", [1, 37])
def test_what_is_read_backwards(rows):
    """Of small integers sums are exact; 37 rows and 70 columns fill no block."""
    drawn = np.random.default_rng(0)
    shapes = {"x": (rows, 70), "w": (70, 21)}
    arrays = {n: drawn.integers(-4, 5, s).astype("float32") for n, s in shapes.items()}
    jobs = []
    for fn in FUNCTIONS:
        graph = bb.fuse(bb.lower(bb.trace(fn, **arrays))).final
        jobs.append((emit(graph, bound_sizes(lower_to_tiles(graph), shapes), "float32"), arrays))

    for made, fn in zip(run_batch(jobs), FUNCTIONS, strict=True):
        np.testing.assert_allclose(made["out"], fn(**arrays), rtol=1e-6)
