"""Elements that are repeated along an axis are read where they are held once, if readers can."""

import numpy as np
import pytest

import blockbuster as bb

torch = pytest.importorskip("torch")


def heads(k, count):
    """Each head ``count`` times, as models repeat the heads of keys."""
    b, h, s, d = k.shape
    return bb.broadcast_to(k[:, :, None], (b, h, count, s, d)).reshape(b, h * count, s, d)


def grouped(q, k):
    return q @ heads(k, 2).transpose(0, 1, 3, 2)


def repeated(q, k):
    return q * bb.repeat(k, 2, axis=1)


def stored(q, k):
    return heads(k, 2)


def summed(q, k):
    return heads(k, 2).sum(axis=1)


def contracted(q, k):
    """The repeated axis is summed over by a product."""
    return bb.transpose(q, (0, 2, 3, 1)) @ bb.transpose(bb.repeat(k, 2, axis=1), (0, 2, 1, 3))


ALL = grouped, repeated, stored, summed, contracted


def lowered(fn):
    return bb.lower(bb.trace(fn, q="B=2 H=4 S=3 D=5", k="B=2 K=2 S=3 D=5"))


@pytest.mark.parametrize("fn", [grouped, repeated])
def test_readers_that_show_the_axis_need_no_choice(fn):
    assert "where" not in str(lowered(fn))


@pytest.mark.parametrize("fn", [stored, summed, contracted])
def test_others_repeat_the_elements(fn):
    assert "where" in str(lowered(fn))


X, Y = torch.arange(6.0).reshape(2, 1, 3), torch.arange(12.0).reshape(2, 2, 3)


@pytest.mark.parametrize(
    "fn", [lambda x, y: x.expand_as(y) * y, lambda x, y: y + x[0].expand(y.shape)]
)
def test_functions_beside_arrays_with_the_axes_record_no_repetition(fn):
    program = bb.trace(fn, x=X, y=Y)

    assert not {"where", "arange"} & {one.op for one in program.equations}
    np.testing.assert_array_equal(program.numpy({"x": X, "y": Y})["out"], fn(X, Y))


def test_repetitions_along_axes_that_no_other_operand_has_stay():
    program = bb.trace(lambda x, y: x.expand_as(y) * y[:, :1], x=X, y=Y)

    assert [one.op for one in program.equations].count("where") == 1


def test_a_number_that_is_repeated_keeps_the_weight_of_its_dtype():
    fn = lambda s, y: s.expand_as(y) * y  # noqa: E731
    found = bb.jit(fn)(torch.tensor(1.5), Y.half())

    assert found.dtype == fn(torch.tensor(1.5), Y.half()).dtype == torch.float32


@pytest.mark.parametrize("fn", ALL)
def test_values_are_right(fn):
    rng = np.random.default_rng(0)
    q, k = rng.standard_normal((2, 4, 3, 5)), rng.standard_normal((2, 2, 3, 5))
    (y,) = bb.evaluate(lowered(fn), {"q": q, "k": k}).values()
    np.testing.assert_allclose(y, fn(q, k), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(bb.jit(fn)(q, k), fn(q, k), rtol=1e-12, atol=1e-12)


def test_a_plan_stores_them_once():
    torch = pytest.importorskip("torch")

    def projected(x, w, q):
        k = (x @ w).view(1, 64, 2, 32).transpose(1, 2)
        k = k[:, :, None].expand(1, 2, 8, 64, 32).reshape(1, 16, 64, 32)
        return torch.softmax(q @ k.mT, -1)

    shapes = (64, 4096), (4096, 64), (1, 16, 64, 32)
    arrays = [torch.empty(shape, dtype=torch.float16) for shape in shapes]
    plan = bb.jit(projected, machine="h100").plan_for(*arrays)
    written = [axes for step in (*plan.files, *plan.calls) for axes in step.axes]
    assert len(written) > 1, "else nothing is stored between kernels"
    assert all(len(axes) < 5 for axes in written)
