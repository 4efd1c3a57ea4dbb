"""Elements that positions choose: in each row its own, the largest few, and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster.rules import fuse


def nll(x, labels):
    """The usual line of NumPy's users."""
    logs = x - np.log(np.exp(x).sum(1, keepdims=True))
    return -logs[np.arange(len(labels)), labels].mean()


@pytest.mark.parametrize("fn", [
    nll,
    lambda x, labels: x[bb.arange(x.shape[0]), labels] * 2,
    lambda x, labels: (x[:, :, None] * x[:, None])[np.arange(labels.shape[0]), labels],
])  # fmt: skip
def test_one_element_of_each_row(fn):
    rng = np.random.default_rng(0)
    jitted = bb.jit(fn)
    for rows in (7, 4):
        x, labels = rng.standard_normal((rows, 5)), rng.integers(-5, 5, rows)
        np.testing.assert_allclose(jitted(x, labels), fn(x, labels), rtol=1e-6)


def test_positions_may_be_those_of_other_rows():
    x, labels = np.arange(12.0).reshape(4, 3), np.array([0, 2, 1, 1])
    found = bb.jit(lambda x, labels: x[np.arange(4)[::-1], labels])(x, labels)
    np.testing.assert_array_equal(found, x[[3, 2, 1, 0], labels])


def test_positions_have_as_many_axes_as_the_array():
    with pytest.raises(bb.TraceError, match=r"of 2 axes at positions of 1(.|\n)*indices\[:"):
        bb.trace(lambda x, i: bb.take_along_axis(x, i), x="M N", i="int64: M")


def test_a_loss_by_index_is_one_kernel():
    def loss(x, labels):
        return -bb.log_softmax(x)[bb.arange(x.shape[0]), labels]

    assert len(fuse(bb.lower(bb.trace(loss, x="M N", labels="int64: M"))).final.nodes) == 1


@pytest.mark.parametrize("dtype", ["float32", "int8", "int64", "bool"])
def test_take_along_axis_keeps_the_dtype(dtype):
    rng = np.random.default_rng(0)
    x, places = rng.integers(0, 2**6, (4, 6)).astype(dtype), rng.integers(-6, 6, (4, 3))
    x.flat[0] = 1

    found = bb.jit(lambda x, i: np.take_along_axis(x, i, 1))(x, places)
    np.testing.assert_array_equal(found, np.take_along_axis(x, places, 1), strict=True)


def test_infinities_and_nan_are_taken_as_they_are():
    x = np.array([[np.inf, np.nan, 1.0], [-np.inf, 2.0, np.nan]])
    places = np.array([[2, 1], [0, 1]])

    found = bb.jit(lambda x, i: np.take_along_axis(x, i, 1))(x, places)
    np.testing.assert_array_equal(found, np.take_along_axis(x, places, 1))


def gate(x, w, torch):
    return torch.topk(torch.softmax(x @ w, -1), 2)


def test_a_gate_of_two_experts_is_one_kernel(torch):
    program = bb.trace(lambda x, w: gate(x, w, torch), x="M D", w="D N")
    compiled = bb.compile(program, {"M": 4096, "D": 512, "N": 64}, "float16", "h200")

    assert compiled.plan.kernels == 1


@pytest.mark.parametrize("k", [1, 2, 3, 5, 9, 64])
def test_the_largest_and_their_positions(torch, k):
    """Ties and rows of which too few are finite: the first of equal ones comes first."""
    rng = np.random.default_rng(k)
    x = rng.integers(-2, 3, (20, 6 if k < 9 else 70)).astype(np.float32)
    x[rng.random(x.shape) < 0.3] = -np.inf
    order = np.argsort(-x, axis=1, kind="stable")[:, :k]

    for sign, fn in ((1, lambda x: x.topk(k)), (-1, lambda x: torch.topk(x, k, largest=False))):
        found = bb.jit(fn)(torch.from_numpy(sign * x))
        np.testing.assert_array_equal(found.indices.numpy(), order, strict=True)
        np.testing.assert_array_equal(found[0].numpy(), sign * np.take_along_axis(x, order, 1))


def test_many_of_the_largest_are_saved_and_too_many_refused(torch, tmp_path):
    fn = lambda x: torch.topk(x * 2, 9, dim=0, largest=False)  # noqa: E731
    x = np.random.default_rng(0).normal(size=(12, 3)).astype(np.float32)
    program = bb.trace(fn, x="M N")
    bb.compile(program, {"M": 12, "N": 3}, "float32", "cpu").save(tmp_path / "program.json")

    values, places = bb.load(tmp_path / "program.json")(x)
    right = fn(torch.from_numpy(x))
    np.testing.assert_array_equal(values, right.values.numpy())
    np.testing.assert_array_equal(places, right.indices.numpy())
    with pytest.raises(bb.TraceError, match="at most the elements of the axis"):
        bb.jit(fn)(torch.ones(8, 3))


NUMBERS = {
    "float": (np.nan, np.inf, -np.inf, 1.0, 2.0, -3.0, 0.5), "uint": (0, 1, 2, 200, 255),
    "int": (0, 1, 2, 100, -3, -128),
}  # fmt: skip


@given(
    data=st.data(),
    dtype=st.sampled_from(["float16", "float32", "float64", "uint8", "int8", "int32", "int64"]),
    largest=st.booleans(),
)
def test_topk_is_torchs_with_nan_infinities_and_ties(torch, data, dtype, largest):
    """NaN counts as larger than infinity; integers stay integers, and their ends count."""
    numbers = NUMBERS[dtype.rstrip("0123456789")]
    ends = [] if "float" in dtype else [np.iinfo(dtype).min, np.iinfo(dtype).max]
    shape = data.draw(st.tuples(st.integers(1, 3), st.integers(2, 13)), label="shape")
    one = st.sampled_from([*numbers, *ends])
    rows = data.draw(st.lists(one, min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]))
    x = torch.tensor(np.array(rows, dtype).reshape(shape))
    k = data.draw(st.sampled_from([*range(1, min(shape[1], 4)), shape[1]]), label="k")

    values, places = bb.jit(lambda x: torch.topk(x, k, largest=largest))(x)

    right = torch.topk(x, k, largest=largest).values
    assert (values.dtype, places.dtype) == (x.dtype, torch.int64)
    np.testing.assert_array_equal(values.numpy(), right.numpy())
    np.testing.assert_array_equal(x.gather(1, places).numpy(), right.numpy())
    assert all(len({*row}) == k for row in places.tolist())


@pytest.mark.parametrize("shape", [(4, 3), (3, 4), (3, 3), (1, 3), (3, 1)], ids=str)
@pytest.mark.parametrize("offset", [-1, 0, 1])
@pytest.mark.parametrize("dtype", ["float32", "int32", "bool"])
def test_the_diagonal_of_a_matrix_of_any_shape(shape, offset, dtype):
    x = (np.arange(12).reshape(-1)[: shape[0] * shape[1]].reshape(shape) % 5).astype(dtype)
    right = np.diagonal(x, offset)
    if not right.size:
        return  # a slice without elements: refused, in words

    found, total = bb.jit(lambda x: (np.diagonal(x, offset), np.trace(x, offset)))(x)

    np.testing.assert_array_equal(found, right, strict=True)
    assert total == np.trace(x, offset)


def test_the_diagonal_of_unknown_sizes_is_refused():
    with pytest.raises(bb.TraceError, match=r"which axis of \(M, N\) ends the diagonal"):
        bb.trace(lambda x: np.diagonal(x), x="M N")


@pytest.mark.parametrize("positions", [(3, 0), (0, 2)], ids=str)
def test_no_positions_take_no_elements(positions):
    x, i = np.ones((positions[0], 4)), np.zeros(positions, int)

    found = bb.jit(lambda x, i: np.take_along_axis(x, i, 1))(x, i)

    np.testing.assert_array_equal(found, np.take_along_axis(x, i, 1), strict=True)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_on_a_gpu(torch, cuda, dtype):
    made = torch.Generator(device=cuda).manual_seed(0)
    x = torch.randn(300, 64, device=cuda, generator=made).to(getattr(torch, dtype))
    w = torch.randn(64, 16, device=cuda, generator=made).to(x.dtype)
    labels = torch.randint(0, 64, (300,), device=cuda, generator=made)

    for k in (1, 2, 4, 16):
        values, places = bb.jit(lambda x, k=k: torch.topk(x * 1, k))(x)
        assert torch.equal(values, x.topk(k).values)
        assert torch.equal(x.gather(1, places), values)
    chosen = bb.jit(lambda x, i: x.gather(1, i[:, None]))(x, labels)
    assert torch.equal(chosen, x.gather(1, labels[:, None]))
    counted = bb.jit(lambda x, i: x[torch.arange(x.shape[0], device=x.device), i])(x, labels)
    assert torch.equal(counted, chosen[:, 0])
    values, _ = bb.jit(lambda x, w: gate(x, w, torch))(x, w)
    expected = gate(x.float(), w.float(), torch)[0].to(x.dtype)
    torch.testing.assert_close(values, expected, rtol=2e-2, atol=1e-3)
