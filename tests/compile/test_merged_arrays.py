"""Calls whose arrays are viewed with merged axes: strides decide, results are as ever."""


import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes

import blockbuster as bb
from blockbuster.errors import LaunchError
from blockbuster.runtime import compiled
from blockbuster.runtime.merged_arrays import merged_extents
from tests.compile.stand_ins import starts


def linear(x, w):
    return x @ w


def centered(x):
    return x - x.mean((1, 2), keepdims=True), x.sum((1, 2))


def drawn(*shape):
    return np.random.default_rng(len(shape)).integers(-3, 4, shape).astype(float)


X, W = drawn(3, 4, 5), drawn(5, 2)
LAYOUTS = {
    "rows": (X, (12, 5)),
    "another array": (drawn(2, 6, 5), (12, 5)),
    "columns first": (np.asfortranarray(X), None),
    "turned": (drawn(4, 3, 5).transpose(1, 0, 2), None),
    "part of the columns": (drawn(3, 4, 9)[..., 1:6], (12, 5)),
    "every second row": (drawn(3, 8, 5)[:, ::2], (12, 5)),
    "part of the rows": (drawn(3, 6, 5)[:, 1:5], None),
    "backwards": (X[::-1, ::-1], (12, 5)),
    "backwards along one": (X[:, ::-1], None),
    "repeated": (np.broadcast_to(X[:1, :1], X.shape), (12, 5)),
    "repeated along one": (np.broadcast_to(X[:1], X.shape), None),
    "one in front": (X[:1, ::-1], (4, 5)),
    "one behind": (X[:, :1], (3, 5)),
    "nothing": (X[:0, ::-1], (0, 5)),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_strides_decide(name):
    array, wanted = LAYOUTS[name]

    assert merged_extents((2, 1), array.shape, array.strides) == wanted


@given(array_shapes(min_dims=3, max_dims=4, max_side=3, min_side=0), st.data())
def test_what_is_said_to_merge_is_viewed_without_a_copy(shape, data):
    order = data.draw(st.permutations(range(len(shape))), label="order")
    steps = [slice(None, None, data.draw(st.sampled_from((1, 2, -1)))) for _ in shape]
    array = np.zeros([2 * shape[i] for i in order])[tuple(steps)].transpose(np.argsort(order))
    first = data.draw(st.integers(0, len(shape) - 2), label="first")
    groups = (1,) * first + (2,) + (1,) * (len(shape) - first - 2)

    extents = merged_extents(groups, array.shape, array.strides)

    axes = array.shape[first] * array.shape[first + 1]
    wanted = (*array.shape[:first], axes, *array.shape[first + 2 :])
    copied = not np.shares_memory(array.reshape(wanted), array) and array.size > 0
    assert extents == (None if copied else wanted)


@pytest.mark.parametrize("name", LAYOUTS)
def test_results_of_any_layout(name):
    jitted, of_two = bb.jit(linear), bb.jit(centered)
    array, wanted = LAYOUTS[name]

    for _ in range(3):  # traced, found, ready
        np.testing.assert_array_equal(jitted(array, W), array @ W)
        for result, expected in zip(of_two(array), centered(array), strict=True):
            assert result.shape == expected.shape
            np.testing.assert_allclose(result, expected, atol=1e-12)
    assert len(jitted.plan_for(array, W).inputs["x"]) == (3 if wanted is None else 2)


def test_arrays_of_one_shape_may_have_other_strides():
    """NumPy's strides are no part of the key of a call: the runner itself compares them."""
    jitted = bb.jit(linear)

    for array in (X, np.asfortranarray(X), X, X[::-1, ::-1], X[:, ::-1], X):
        np.testing.assert_array_equal(jitted(array, W), array @ W)


def test_no_array_is_copied(monkeypatch):
    jitted = bb.jit(linear)
    jitted(X, W)
    seen = []
    returned = compiled.Viewed.returned

    def noted(self, made):
        seen.append(made[0])
        return returned(self, made)

    monkeypatch.setattr(compiled.Viewed, "returned", noted)

    result = jitted(X, W)

    assert seen[0].shape == (12, 2)
    assert np.shares_memory(seen[0], result)


def test_tensors_of_any_layout(torch):
    jitted = bb.jit(centered)
    x = torch.from_numpy(X)

    for one in (x, x.transpose(0, 1), x.flip(0), x[:, ::2], x.expand(3, 4, 5), x[:, 1:], x[:0]):
        for _ in range(3):
            for result, wanted in zip(jitted(one), centered(one.numpy()), strict=True):
                np.testing.assert_allclose(result.numpy(), wanted, atol=1e-12)
    for one, axes in ((x, 2), (x[:, 1:], 2), (x.transpose(0, 1), 3), (x.transpose(1, 2), 3)):
        assert len(jitted.plan_for(one).inputs["x"]) == axes


def test_arrays_that_cannot_be_viewed_are_not_copied(monkeypatch):
    jitted = bb.jit(linear)
    jitted(X, W)
    viewed = []
    returned = compiled.Viewed.returned
    monkeypatch.setattr(
        compiled.Viewed, "returned", lambda self, made: viewed.append(1) or returned(self, made)
    )

    for array, count in ((X, 1), (np.asfortranarray(X), 1), (X[:, ::-1], 1), (X[::-1, ::-1], 2)):
        jitted(array, W)
        assert len(viewed) == count


def test_new_sizes_need_no_trace(monkeypatch):
    jitted = bb.jit(linear)
    jitted(X, W)
    monkeypatch.setattr(jitted, "_traced_call", None)

    for rows in (4, 7, 9, 4):
        x = drawn(3, rows, 5)
        np.testing.assert_array_equal(jitted(x, W), x @ W)


def test_sizes_that_the_original_refuses():
    fast = bb.jit(lambda x, y: (x + y).sum((1, 2))).compiled_for(X, X)

    with pytest.raises(LaunchError, match="B = 4"):
        fast(X, X.reshape(3, 10, 2))


def test_a_compiled_program_takes_arrays_as_they_are(tmp_path):
    fast = bb.jit(linear).compiled_for(X, W)

    assert fast.plan.inputs["x"] == ("AB", "C")
    for array in (X, np.asfortranarray(X), drawn(2, 2, 5)):
        np.testing.assert_array_equal(fast(array, W), array @ W)
        np.testing.assert_array_equal(fast(x=array, w=W), array @ W)
        np.testing.assert_array_equal(fast.pinned(array, W)(), array @ W)
    assert "AB = 12" in str(bb.jit(linear).report_for(X, W))


def test_the_original_program_is_saved(tmp_path):
    file = bb.jit(linear).compiled_for(X, W).save(tmp_path / "linear.bb")

    loaded = bb.load(file)

    assert loaded.plan.inputs["x"] == ("A", "B", "C")
    for array in (X, np.asfortranarray(X)):
        np.testing.assert_array_equal(loaded(array, W), array @ W)


def test_an_operator_of_torch(torch):
    fast = bb.jit(linear).compiled_for(torch.from_numpy(X), torch.from_numpy(W))
    operator = fast.as_custom_op("blockbuster_tests::merged_linear")

    made = operator(torch.from_numpy(X), torch.from_numpy(W))

    np.testing.assert_array_equal(made.numpy(), X @ W)


def test_captured_arrays():
    jitted = bb.jit(lambda x: x @ W + X[..., :2])

    np.testing.assert_array_equal(jitted(X), X @ W + X[..., :2])
    assert len(jitted.plan_for(X).inputs["x"]) == 2


def test_constants_are_not_viewed():
    jitted = bb.jit(lambda x, y: x * y, constant=["y"])

    np.testing.assert_array_equal(jitted(X, X), X * X)
    assert len(jitted.plan_for(X, X).inputs["y"]) == 3


def test_repeated_calls_on_a_gpu_start_with_the_addresses_of_their_arrays(torch, on_gpu):
    """Views have the addresses of their arrays, so kernels are started without them."""
    jitted = bb.jit(linear, machine="h100")
    jitted(torch.zeros(3, 40, 64), torch.zeros(64, 32))
    on_gpu.clear()

    calls = [(torch.zeros(3, 40, 64), torch.zeros(64, 32)) for _ in range(3)]
    results = [jitted(*arrays) for arrays in calls]

    taken = [start[9:12] for start in on_gpu]
    expected = [
        tuple(one.data_ptr() for one in (*arrays, out))
        for arrays, out in zip(calls, results, strict=True)
    ]
    assert taken == expected
    assert {tuple(out.shape) for out in results} == {(3, 40, 32)}


def test_a_result_that_is_an_input_has_its_own_axes(torch, on_gpu):
    jitted = bb.jit(lambda x, w: (x, x @ w), machine="h100")
    x, w = torch.zeros(3, 40, 64), torch.zeros(64, 32)

    shapes = [[tuple(one.shape) for one in jitted(x, w)] for _ in range(3)]

    assert shapes == [[(3, 40, 64), (3, 40, 32)]] * 3


def test_a_gpu_starts_what_it_starts_for_merged_arrays(torch, on_gpu):
    x, w = torch.zeros(3, 40, 64), torch.zeros(64, 32)

    def started(*arrays):
        jitted = bb.jit(linear, machine="h100")
        jitted(*arrays)
        on_gpu.clear()
        result = jitted(*arrays)
        return starts(on_gpu), tuple(result.shape)

    merged, shape = started(x, w)
    flat, _ = started(x.view(120, 64), w)
    apart, _ = started(torch.zeros(40, 3, 64).transpose(0, 1), w)

    assert shape == (3, 40, 32)
    assert merged == flat
    assert merged != apart
