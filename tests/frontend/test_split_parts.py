"""One place along a part of a split axis is a slice of the axis itself."""

import numpy as np
import pytest

import blockbuster as bb

X = np.arange(48.0).reshape(3, 4, 4)


def ops(fn):
    return {e.op for e in bb.trace(fn, x=X).equations} - {"expand"}


SLICES = {
    "an inner part": (lambda x: x.reshape(3, 4, 2, 2)[..., 1] * 2, "strided"),
    "an outer part": (lambda x: x.reshape(3, 4, 2, 2)[:, :, 1] * 2, "slice"),
    "from behind": (lambda x: x.reshape(3, 4, 2, 2)[..., -1] * 2, "strided"),
    "as an axis": (lambda x: x.reshape(3, 4, 2, 2)[..., 1:] * 2, "strided"),
    "of the first axis": (lambda x: x.reshape(1, 3, 4, 4)[0] * 2, ""),
    "of an axis in the middle": (lambda x: x.reshape(3, 2, 2, 4)[:, :, 0] * 2, "strided"),
}


@pytest.mark.parametrize(("fn", "op"), SLICES.values(), ids=SLICES)
def test_the_axis_is_cut(fn, op):
    if op:
        assert ops(fn) == {op, "mul"}
    np.testing.assert_array_equal(bb.jit(fn)(X), fn(X))


OTHERS = {
    "two places": lambda x: x.reshape(3, 4, 1, 4)[..., 1:3] * 2,
    "an axis in three": lambda x: x.reshape(3, 4, 2, 2, 1)[:, :, :, 1] * 2,
    "axes that merge, too": lambda x: x.reshape(12, 2, 2)[..., 1] * 2,
    "another axis": lambda x: x.reshape(3, 4, 2, 2)[:, 1] * 2,
}


@pytest.mark.parametrize("fn", OTHERS.values(), ids=OTHERS)
def test_others_stay_reshapes(fn):
    assert "reshape" in ops(fn)
    np.testing.assert_array_equal(bb.jit(fn)(X), fn(X))


def test_changes_of_such_views_reach_the_array():
    def change(x):
        y = x * 1
        t = y.reshape(3, 4, 2, 2)
        t[..., 0] += 10
        t[:, :, 1] *= 2
        return y

    np.testing.assert_array_equal(bb.jit(change)(X), change(X))


@pytest.mark.parametrize("way", ["unbind", "chunk", "select"])
def test_tensors(way):
    torch = pytest.importorskip("torch")

    def turn(x):
        t = x.unflatten(-1, (-1, 2))
        a, b = {
            "unbind": lambda: t.unbind(-1), "select": lambda: (t.select(-1, 0), t.select(-1, 1)),
            "chunk": lambda: [one[..., 0] for one in t.chunk(2, -1)],
        }[way]()  # fmt: skip
        return torch.stack((-b, a), -1).flatten(-2)

    x = torch.from_numpy(X)
    assert torch.equal(bb.jit(turn)(x), turn(x))


@pytest.mark.parametrize(("fn", "shape"), [
    (lambda x: x.reshape(6)[2], (6, 1)),
    (lambda x: x.mean(1, keepdims=True).reshape(-1)[0], (4, 5)),
    (lambda x: x.reshape(2, 6)[..., 0], (2, 6, 1)),
    (lambda x: x.reshape(0, 5, 7)[:, 1], (0, 6)),
    (lambda x: x.T.reshape(0, 2, 3)[:, 1], (3, 0)),
])  # fmt: skip
def test_reshapes_that_split_no_axis_are_sliced_as_they_are(fn, shape):
    x = np.arange(float(np.prod(shape))).reshape(shape)

    np.testing.assert_array_equal(bb.jit(fn)(x), fn(x))


@pytest.mark.parametrize("shapes", [((1, 1), (2, 3)), ((1, 1), (1, 2)), ((3, 2), (1, 1))])
def test_an_array_of_one_element_in_a_row_meets_others(shapes):
    x, y = (np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape) for shape in shapes)

    found = bb.jit(lambda x, y: x.reshape(-1) + y.reshape(-1))(x, y)

    np.testing.assert_array_equal(found, x.reshape(-1) + y.reshape(-1))
