"""Integers, masks and the floats made of them: jit gives the library's values and dtypes."""

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.errors import TraceError

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")

INTS = np.array([[2, -2, -2], [-3, 1, 2], [5, 5, -1]])
BYTES = np.array([[2, 5, 0], [1, 0, 2], [3, 1, 0]], np.uint8)
MASK = np.array([True, False, True])
HALF = np.array([0.5, 1.5, 2.0], np.float16)


def check(function, *arrays):
    """Values and dtypes of all results are those of the function itself."""
    with np.errstate(all="ignore"):
        wanted = function(*arrays)
    found = bb.jit(function)(*arrays)
    results = (r if isinstance(r, tuple) else (r,) for r in (found, wanted))
    for ours, right in zip(*results, strict=True):
        assert ours.dtype == right.dtype
        np.testing.assert_allclose(np.asarray(ours), np.asarray(right), rtol=1e-6)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: (np.flip(np.diagonal(x), -1) // ((x @ x.T) % np.diagonal(x)), y),
        lambda x, y: (np.flip(x.sum(0)) // (x.sum(1) // 7), y),
        lambda x, y: (np.argmin(np.diff(y @ y, axis=-2), axis=0), np.diff(y @ y, axis=-2)),
        lambda x, y: np.abs(np.diff(np.take(y, [0, 1, 0], axis=-2), axis=-1)).astype("int64"),
        lambda x, y: (-y).astype("int64") + (y @ y),
        lambda x, y: ((y + 1) // 2 > y[::-1] - 3, y[:, 0] @ y),
    ],
)
def test_integers_between_steps_stay_integers_and_wrap(function):
    check(function, INTS, BYTES)


@pytest.mark.parametrize("beside", [HALF, HALF.astype("float32"), HALF.astype("float64")])
@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: (np.exp(x), y),
        lambda x, y: (x / 2, np.sqrt(abs(x)) * y),
        lambda x, y: (np.mean(x, -1), np.linalg.norm(x, axis=-1), x.std(0) + y),
        lambda x, y: (np.linalg.norm(np.count_nonzero(y) + x, axis=-1), y),
    ],
)
def test_functions_of_integers_have_a_dtype_of_their_own(function, beside):
    check(function, INTS, beside)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_torchs_functions_of_integers_are_float32(dtype):
    x, y = torch.tensor(INTS), torch.tensor(HALF).to(dtype)

    check(lambda x, y: (torch.exp(x), x / 2, torch.exp(x) * y), x, y)


def test_positions_take_the_dtype_of_what_they_meet():
    assert bb.jit(lambda x: x + bb.arange(x.shape[0]) * 0.5)(HALF).dtype == np.float16
    assert bb.jit(lambda x: x * (bb.arange(x.shape[0]) * 2 / 3))(HALF).dtype == np.float16


@pytest.mark.parametrize("power", [0, 1, 2, 3, 9, 41])
def test_powers_of_integers_are_integers(power):
    for array in (INTS, BYTES, MASK, torch.tensor(INTS), torch.tensor(MASK)):
        check(lambda x: x**power, array)


def test_truth_values_as_exponents():
    check(lambda x: 3**x, MASK)
    check(lambda x: (x + 1) ** (x > 0), INTS)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: x**-1, "power of -1"),
        (lambda x: x**65, "power of 65"),
        (lambda x: 2**x, "raised to numbers only"),
        (lambda x: (x > 0) & 1.0, "& takes masks or integers, not floats"),
        (lambda x: x >> -1, "a shift by -1"),
        (lambda x: x[0].astype(np.int8) & 240, "240 is no number of int8"),
    ],
)
def test_what_would_be_no_integers_is_refused_with_the_line(function, words):
    with pytest.raises(TraceError, match=words) as refused:
        bb.jit(function)(INTS)

    assert "test_integers_as_eager.py" in str(refused.value)


def test_quotients_of_masks_are_small_integers():
    check(lambda m: (m // m[::-1], m % m[::-1]), MASK)


@pytest.mark.parametrize("join", [np.concatenate, np.stack, lambda pair: np.where(MASK, *pair)])
def test_integers_beside_floats_of_masks_are_not_cut(join):
    check(lambda x: join([x[0], (x[1] > 0) * 0.5]), INTS)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "int64"])
def test_masks_joined_to_integers_have_their_dtype(dtype):
    check(lambda x: np.stack([x > 0, x])[::-1] % np.stack([x, x > 1]), INTS.astype(dtype))


def test_a_piece_of_joined_integers_and_floats_is_of_floats():
    check(lambda x, y: np.stack([x, y])[0] / 2, INTS, INTS / 3)
    assert bb.jit(lambda x, y: np.stack([x, y])[0])(INTS, INTS / 3).dtype == np.float64


def test_torch_wraps_integers_that_are_compared():
    y = torch.tensor(BYTES)

    check(lambda y: (y <= -1, y == 258, y + 256), y)
    check(lambda y, z: y > z, y, torch.tensor(-2, dtype=torch.int32))


def test_joined_arrays_of_one_element_are_broadcast():
    check(lambda x: np.concatenate([x[5:, 0], x[:1, 0]]) * x, INTS)
    check(lambda x: np.roll(x, -1, axis=0).reshape((1, 1)) + x, np.array([7]))
    check(lambda x: np.concatenate([x[1:] > 0, x[:1] > 0]) * np.ones(3), np.array([7.0]))


def test_sizes_that_follow_from_each_other_are_no_circle():
    x = np.zeros((5, 0))

    check(lambda x: (x[::-1, ::-2] - x, 2 - x.reshape((0,))), x)


def test_an_array_without_axes_that_may_be_a_number_keeps_no_dtype_in_silence():
    def added(x, y):
        made = x.astype("int32")
        made += y * -1
        return made

    with pytest.raises(TraceError, match="stays int32, a number becomes int64"):
        bb.jit(added)(np.array(3), np.array(4))


@pytest.mark.parametrize("cast", [lambda x, y: x.astype(y.dtype), lambda x, y: x.to(y.dtype)])
def test_a_cast_to_the_dtype_of_an_array_of_dims_gives_the_programs_floats(cast):
    inputs = {"x": np.array([1, 7, 200], np.uint8), "y": np.array([0.5, 2.0, 3.0])}
    program = bb.trace(lambda x, y: (cast(x, y) - 8) * y, x="uint8: M", y="M")

    (found,) = program.numpy(inputs).values()
    np.testing.assert_array_equal(found, (inputs["x"].astype(float) - 8) * inputs["y"])
    assert len(bb.trace(lambda x, y: cast(x, y) * y, x="M", y="M").equations) == 1
