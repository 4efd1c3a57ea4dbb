"""Proofs about integers and masks: inputs, of counterexamples too, are numbers of their dtypes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster.interp import domains, evidence
from blockbuster.interp.domains import Domain, exact_in, nearest, wrapped
from blockbuster.interp.native import Native
from blockbuster.interp.ordered import Ordered
from blockbuster.interp.semantics import Float64, rounded_to
from blockbuster.ir.dtypes import INTEGERS, OWN
from tests.interp.integers import DTYPES, FALSE, TRUE, VECTORS, equal_pairs, traced


def proved(left, right):
    return bb.prove_equal(bb.lower(left), bb.lower(right))


def check_counterexample(found, left, right, dtype):
    """Its inputs have their dtypes, and NumPy gives different results for them."""
    for name, array in found.inputs.items():
        assert array.dtype == ("float64" if name == "f" else dtype)
    with np.errstate(all="ignore"):
        made = [program.numpy(found.inputs)["out"] for program in (left, right)]
    assert not np.array_equal(*made)


@pytest.mark.parametrize(("dtype", "left", "right", "dims"), TRUE)
def test_equal_programs_are_never_called_different(dtype, left, right, dims):
    proof = proved(traced(left, dtype, dims), traced(right, dtype, dims))

    assert proof.equal is not False
    assert proof.counterexample is None


@pytest.mark.parametrize(("dtype", "left", "right", "dims"), FALSE)
def test_different_programs_have_a_counterexample_in_their_dtypes(dtype, left, right, dims):
    programs = traced(left, dtype, dims), traced(right, dtype, dims)

    proof = proved(*programs)

    assert proof.equal is False
    check_counterexample(proof.counterexample, *programs, dtype)


@given(pair=equal_pairs(), dtype=st.sampled_from(DTYPES))
def test_identities_of_integers_refute_nothing(pair, dtype):
    left, right = (traced(f"0 * x + 0 * y + {side}", dtype) for side in pair)

    assert proved(left, right).equal is not False


@given(one=equal_pairs(), other=equal_pairs(), dtype=st.sampled_from(("uint8", "int32", "int64")))
def test_a_verdict_is_what_numpy_says(one, other, dtype):
    left, right = (traced(f"0 * x + 0 * y + {side[0]}", dtype) for side in (one, other))

    proof = proved(left, right)

    if proof.equal is False:
        check_counterexample(proof.counterexample, left, right, dtype)
    elif proof.equal:
        x, y = (array.ravel() for array in np.mgrid[0:12, 0:12] - 6 * (dtype != "uint8"))
        made = [program.numpy({"x": x, "y": y})["out"] for program in (left, right)]
        np.testing.assert_array_equal(*made)


def fractions(dtype, random, shape, *, lowest, parts):  # as if every array held floats
    return random.integers(lowest, 9, tuple(shape)) / parts


def test_inputs_that_are_drawn_as_floats_would_be_noticed(monkeypatch):
    monkeypatch.setattr(domains, "small", fractions)
    monkeypatch.setattr(Domain, "nearest", lambda self, inputs: inputs)

    with pytest.raises(AssertionError, match="x is no int64"):
        proved(traced("(x + 1) // 2", "int64"), traced("x // 2 + x % 2", "int64"))


def test_what_overflow_alone_shows_is_no_counterexample():
    ends = {"x": np.array([127, -128], np.int8)}
    left, right = traced("x + 1 > x", "int8"), traced("x == x", "int8")

    assert not np.array_equal(*(program.numpy(ends)["out"] for program in (left, right)))
    assert proved(left, right).equal is not False


def test_what_overflow_hides_is_no_counterexample(monkeypatch):
    left, right = traced("(x * 0 + 100) * 2 > 0", "int8"), traced("x != x", "int8")
    numbers = {"x": np.arange(5, dtype=np.int8)}

    assert np.array_equal(*(program.numpy(numbers)["out"] for program in (left, right)))
    assert proved(left, right).equal is None  # 200 is -56 in int8

    monkeypatch.setattr(evidence, "dtypes_of", lambda *graphs: {})
    assert proved(left, right).equal is False


def test_a_counterexample_is_code_with_dtypes(capsys):
    found = proved(traced("x // 2 * y", "int32"), traced("x * y // 2", "int32")).counterexample

    exec(str(found), {})

    shown = capsys.readouterr().out.splitlines()
    assert len(shown) == 2
    assert shown[0] != shown[1]
    assert "'int32')" in str(found)
    assert all(isinstance(n, int) for n in np.ravel(found.to_data()["inputs"]["x"]).tolist())


def test_a_proof_about_integers_says_what_it_leaves_out():
    whole = proved(traced("x + y", "int32"), traced("y + x", "int32"))
    floats = proved(traced("f + 1", "int32"), traced("1 + f", "int32"))

    assert any("no integer overflows" in said for said in whole.assumptions)
    assert not any("no integer overflows" in said for said in floats.assumptions)


def test_programs_that_read_an_array_in_two_dtypes_are_not_compared():
    with pytest.raises(ValueError, match="read x as int8 and as int64: give it one dtype"):
        proved(traced("x + 1", "int8"), traced("x + 1", "int64"))


# dtypes --------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", OWN)
def test_the_nearest_numbers_of_a_dtype_are_numbers_of_it(dtype):
    given = np.array([-1e30, -300.2, -1.75, -0.0, 0.4, 0.6, 1.0, 127.5, 1e30, np.inf, -np.inf])

    made = nearest(dtype, given)

    assert made.dtype == dtype
    np.testing.assert_array_equal(nearest(dtype, made.astype(float))[1:7], made[1:7])
    if dtype in INTEGERS:
        info = np.iinfo(dtype)
        assert (made[0], made[-3]) == (info.min, info.max)
        assert made[6] == 1


@pytest.mark.parametrize("dtype", OWN)
def test_casts_mean_one_thing_in_every_semantics(dtype):
    numbers = [-1000, -129, -128, -3, -1, 0, 1, 2, 127, 128, 255, 256, 1000]
    expected = np.array(numbers).astype(dtype).astype(float)

    assert [wrapped(dtype, n) for n in numbers] == expected.tolist()
    np.testing.assert_array_equal(rounded_to(dtype, np.array(numbers, float)), expected)
    for semantics in (Float64, Ordered(), Native()):
        item = semantics.item(np.array(numbers, float))
        np.testing.assert_array_equal(semantics.cast(item, dtype).astype(float), expected)
    low, high = exact_in(dtype)
    assert all(wrapped(dtype, n) == n for n in range(low, high + 1))


def test_fractions_are_cut_off_by_casts():
    assert [wrapped("int8", x) for x in (-1.75, 1.75)] == [-1, 1]
    assert rounded_to("int8", np.array([-1.75, 1.75, np.nan])).tolist()[:2] == [-1, 1]


@given(pair=equal_pairs(), dtype=st.sampled_from(DTYPES), seed=st.integers(0, 99))
def test_native_runs_are_numpy(pair, dtype, seed):
    program = traced(f"0 * x + 0 * y + {pair[0]}", dtype)
    numbers = np.random.default_rng(seed).integers(0, 20, (2, 3))
    inputs = dict(zip(VECTORS, numbers.astype(dtype), strict=False))

    made = bb.evaluate(bb.lower(program), inputs, semantics=Native())

    np.testing.assert_array_equal(made["out"], program.numpy(inputs)["out"])
