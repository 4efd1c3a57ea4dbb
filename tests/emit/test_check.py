"""check_kernel: passes what is right, and finds each way of being wrong."""

import json
from pathlib import Path

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.check.inputs import VARIANTS
from blockbuster.check.kernel import check_kernel
from tests.emit.test_lint import DEFAULT, LOOP

RNG = np.random.default_rng(0)
X = RNG.normal(size=(33, 20)).astype(np.float32)
SETS = [{"x": X}, {"x": X[:1, :3]}]


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def right(x, out=None):
    result = softmax(x)
    if out is None:
        return result
    out[...] = result
    return out


def leaves_a_row(x, out=None):
    out = np.zeros_like(x) if out is None else out
    out[:-1] = softmax(x)[:-1]
    return out


def overflows(x):
    with np.errstate(all="ignore"):
        e = np.exp(x)
        return e / e.sum(-1, keepdims=True)


def ignores_strides(x):
    flat = np.lib.stride_tricks.as_strided(x, x.shape, (4 * x.shape[1], 4))
    return softmax(flat)


class Racing:
    def __init__(self):
        self.calls = 0

    def __call__(self, x):
        self.calls += 1
        return softmax(x) * np.float32(1 + 1e-6 * self.calls)


def inexact(x):
    return softmax(x.astype(np.float16)).astype(np.float32)


def test_a_right_kernel_passes():
    report = check_kernel(right, softmax, SETS, eager=softmax, outputs=["out"])

    assert report.passed, str(report)
    assert len(report.runs) == 2 * len(VARIANTS)
    assert json.loads(report.to_json())["passed"] is True
    assert report.notes == ("the pipeliner's race: no source was given",)


@pytest.mark.parametrize(
    ("kernel", "names", "variant", "problem"),
    [
        (leaves_a_row, ["out"], "random", "elements are not finite: not written"),
        (overflows, [], "extreme", "elements are not finite"),
        (ignores_strides, [], "strided", "not finite|eager's"),
        (Racing(), [], "random", "results differ from run to run"),
        (inexact, [], "random", "times eager's"),
    ],
)
def test_finds_what_is_wrong(kernel, names, variant, problem):
    report = check_kernel(kernel, softmax, {"x": X}, eager=softmax, outputs=names)

    assert not report.passed
    (bad,) = [run for run in report.runs if run.variant == variant]
    with pytest.raises(AssertionError, match=problem):
        assert not bad.problems, "; ".join(bad.problems)
    assert str(report).startswith("FAILED")


def test_without_an_eager_function_a_tolerance_holds():
    assert check_kernel(right, softmax, SETS).passed
    assert not check_kernel(inexact, softmax, SETS).passed
    assert check_kernel(inexact, softmax, {"x": X[:3]}, tolerance=1.0).passed


class Counting:
    def __init__(self, change=lambda y, _: y):
        self.seen, self.change = [], change

    def __call__(self, x):
        self.seen.append(x)
        return self.change(softmax(x), x)


def test_inputs_are_drawn_anew_beside_eager():
    kernel = Counting()
    report = check_kernel(
        kernel, softmax, {"x": X}, eager=softmax, runs=2, draws=4, own_process=False
    )

    assert report.passed
    assert len(kernel.seen) == (2 + 4) * len(VARIANTS)
    again, *drawn = kernel.seen[2:6]
    np.testing.assert_array_equal(again, X)
    for x in drawn:
        assert x.dtype == X.dtype
        assert ((x / X > 0.74) & (x / X < 1.26)).all()
    assert len({float(x[0, 0]) for x in kernel.seen[2:6]}) == 4


def test_masks_and_zeros_stay_what_they_are():
    x = np.array([[0.0, -np.inf, 2.0], [1.0, 0.0, -np.inf]], np.float32)
    kernel = Counting()
    check_kernel(kernel, softmax, {"x": x}, eager=softmax, own_process=False)

    assert kernel.seen
    for given in kernel.seen:
        np.testing.assert_array_equal(np.isinf(given), np.isinf(x))
        np.testing.assert_array_equal(given == 0, x == 0)


def test_an_excess_in_every_draw_fails_and_luck_in_one_does_not():
    def worse(y, _):
        return y * np.float32(1 + 2e-6)

    def unlucky(y, x):
        return y * np.float32(1 + 2.5e-7) if np.array_equal(x, X) else y

    assert not check_kernel(Counting(worse), softmax, {"x": X}, eager=softmax).passed
    report = check_kernel(Counting(unlucky), softmax, {"x": X}, eager=softmax)
    assert report.runs[0].ratio_max < 1.5
    assert not check_kernel(Counting(unlucky), softmax, {"x": X}, eager=softmax, draws=1).passed


def test_an_element_that_is_wrong_in_one_draw_fails():
    draws = []

    def wrong(y, x):
        draws.append(x)
        if len(draws) == 9:
            y[0, 0] += 1e-4
        return y

    report = check_kernel(Counting(wrong), softmax, {"x": X}, eager=softmax)

    assert [run.variant for run in report.runs if run.problems] == ["random"]
    assert "over all draws" in str(report)


@np.errstate(all="ignore")
def overflown(x, out=None):
    """Eager in float32; exact in float64 up to exp(709)."""
    result = np.exp(x) / np.exp(x).sum(-1, keepdims=True)
    return result if out is None else np.copyto(out, result)


def test_elements_that_say_nothing_are_counted_and_said():
    x = np.array([[1.0, 2.0], [200.0, 0.0]], np.float32)
    report = check_kernel(overflown, overflown, {"x": x}, eager=overflown, draws=3, outputs=["out"])
    run = report.runs[0]

    assert run.problems == ()
    assert (run.judged, run.spared) == ((9,), (3,))  # inf / inf
    left = "3 of 12 elements of output 0 (configuration 0, inputs 0, random): eager or the"
    assert f"  not checked: {left} reference gives no number there" in str(report)
    assert json.loads(report.to_json())["runs"][0]["spared"] == [3]


def test_an_output_of_which_nothing_is_judged_has_not_passed():
    x = np.array([[100.0, 90.0], [100.0, 110.0]], np.float32)

    def nothing(x, out=None):
        """Writes nothing: poison looks like what eager gives."""
        return np.full_like(x, np.nan) if out is None else out

    report = check_kernel(nothing, overflown, {"x": x}, eager=overflown, draws=2, outputs=["out"])

    assert not report.passed
    assert "none of the 8 elements of an output is judged: eager or the reference" in str(report)
    assert json.loads(report.to_json())["passed"] is False


def test_an_output_without_elements_passes():
    assert check_kernel(softmax, softmax, {"x": X[:0]}).passed


def test_a_number_where_eager_and_the_reference_have_none_is_wrong():
    x = np.array([[1.0, 2.0], [-np.inf, -np.inf]], np.float32)
    report = check_kernel(masked_to_zero, softmax_with_nan, {"x": x}, eager=softmax_with_nan)

    assert not report.passed
    text = "30 elements are finite, but neither near the reference nor what eager gives"
    assert text in str(report)
    assert check_kernel(masked_to_zero, masked_to_zero, {"x": x}, eager=masked_to_zero).passed


def softmax_with_nan(x):
    with np.errstate(all="ignore"):
        return softmax(x)


def masked_to_zero(x):
    return np.nan_to_num(softmax_with_nan(x))


@pytest.mark.parametrize("fewer", [{"runs": 0}, {"draws": 0}])
def test_nothing_is_checked_in_no_run(fewer):
    x = {"x": np.ones(3, np.float32)}
    with pytest.raises(ValueError, match="at least one"):
        check_kernel(lambda x, out: out, lambda x: x, x, outputs=["out"], **fewer)


def test_every_configuration_is_checked():
    report = check_kernel([right, overflows], softmax, SETS)

    assert {run.configuration for run in report.runs if run.problems} == {1}


def test_the_source_is_linted():
    report = check_kernel(right, softmax, SETS, source=LOOP.format(**DEFAULT))

    assert not report.passed
    assert "pipeliner" in str(report)


@pytest.mark.interpreter
def test_our_own_kernel():
    def attention(q, k, v):
        return bb.softmax(q @ k.T * 0.25) @ v

    program = bb.trace(attention, q="M D", k="N D", v="N L")
    final = bb.fuse(bb.lower(program)).final
    sizes = dict(M=21, N=35, D=16, L=9)
    shapes = {"q": (21, 16), "k": (35, 16), "v": (35, 9)}
    inputs = {n: RNG.normal(size=s).astype(np.float32) for n, s in shapes.items()}

    kernel = bb.emit(final, sizes, "float32")
    # a process for each run
    report = bb.check_kernel(kernel, attention, inputs, eager=attention, runs=2, draws=3)

    assert report.passed, str(report)
    assert report.notes == ()


def two(x):
    return softmax(x), x.max(-1)


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"inputs": []}, ValueError, "inputs is empty: nothing would be checked"),
        ({"kernel": []}, ValueError, "no kernel is given"),
        ({"inputs": X}, TypeError, "inputs is a value of type ndarray(.|\n)*by name"),
        ({"inputs": (X, X)}, TypeError, "inputs 0 is a value of type ndarray(.|\n)*by name"),
        ({"inputs": [{"x": X}, {"x": 3.0}]}, TypeError, "input x is a value of type float"),
        ({"inputs": {"x": X.astype(object)}}, TypeError, "the input x holds Python objects"),
        ({"kernel": lambda x: x * 1j}, TypeError, "the kernel returned an array of dtype complex"),
        ({"kernel": lambda x: None}, TypeError, "the kernel returned None(.|\n)*new arrays"),
        ({"kernel": lambda x: 1.5}, TypeError, "the kernel returned a value of type float"),
        ({"reference": lambda x: "y"}, TypeError, "the reference returned a value of type str"),
        ({"eager": lambda x: None}, TypeError, "the eager function returned None"),
        ({"reference": two}, ValueError, "the kernel gives 1 result, the reference 2 results"),
        ({"kernel": two}, ValueError, "the kernel gives 2 results, the reference 1 result"),
        ({"eager": two}, ValueError, "the eager function gives 2 results, the reference 1 result"),
        ({"outputs": ["out", "m"]}, ValueError, "outputs names out, m, but .* gives 1 result"),
        ({"tolerance": -1}, ValueError, "tolerance is -1"),
        ({"tolerance": float("nan")}, ValueError, "tolerance is nan"),
        ({"source": "def kernel(:"}, ValueError, r"source is not valid Python: .*line 1"),
        ({"source": Path("kernel.py")}, TypeError, r"source=path.read_text\(\)"),
    ],
)
def test_arguments_that_do_not_fit_are_named(changes, error, words):
    arguments = {"kernel": softmax, "reference": softmax, "inputs": {"x": X}} | changes

    with pytest.raises(error, match=words):
        check_kernel(**arguments, runs=1)


def test_a_tolerance_of_zero_is_no_default():
    assert not check_kernel(right, softmax, {"x": X}, tolerance=0).passed
    assert check_kernel(lambda x: x, lambda x: x, {"x": X}, tolerance=0).passed


def test_results_may_be_numbers_of_numpy_and_lists():
    exact = {"x": np.arange(8, dtype=np.float32)}

    assert check_kernel(lambda x: [x.sum(), -x], lambda x: (x.sum(), -x), exact).passed


def test_the_reference_of_tensors_takes_tensors():
    torch = pytest.importorskip("torch")
    inputs = {"x": torch.from_numpy(X)}

    def of_tensors(x):
        return torch.softmax(x, -1)

    assert check_kernel(of_tensors, of_tensors, inputs).passed
    words = "the reference fails on torch tensors: (.|\n)*hint: (.|\n)*write it in torch"
    with pytest.raises(TypeError, match=words):
        check_kernel(of_tensors, softmax, inputs)
