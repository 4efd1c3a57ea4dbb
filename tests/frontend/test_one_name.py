"""Dims that reshapes to numbers name twice: where they meet, they are one."""

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.interp.evaluate import evaluate
from blockbuster.ir.verify import verify

torch = pytest.importorskip("torch", reason="torch is not installed")


def layers(x, y, w, v):
    """``x + y`` fixes its sizes behind the first reshape, which therefore names them anew."""
    t = x + y
    for _ in range(2):
        s = (t.reshape(-1, 6) @ w).reshape(2, 3, 6)
        seen = torch.arange(3)[:, None] >= torch.arange(3)
        p = torch.where(seen, s @ s.transpose(1, 2), 0) @ s
        t = (p.reshape(6, 6) @ v).reshape(2, 3, 6) + t
    return p


def test_layers_whose_reshapes_cancel():
    draw = torch.Generator().manual_seed(0)
    shapes = {"x": (2, 3, 6), "y": (2, 3, 6), "w": (6, 6), "v": (6, 6)}
    given = {
        name: torch.randint(-1, 2, shape, generator=draw).double() for name, shape in shapes.items()
    }

    program = bb.trace(layers, **given)
    graph = bb.lower(program)
    verify(graph)

    arrays = {name: tensor.numpy() for name, tensor in given.items()}
    for found in (evaluate(graph, arrays), program.numpy(arrays)):
        (made,) = found.values()
        np.testing.assert_array_equal(made, layers(**given))


def test_names_that_users_gave_stay():
    def sums(x, y):
        return x.reshape(2, 3).sum(0), y.reshape(3, 2).sum(1), x * 2, y * 2

    program = bb.trace(sums, x="A=6", y="B=6")
    assert [array.shape for array in program.inputs] == [("A",), ("B",)]
