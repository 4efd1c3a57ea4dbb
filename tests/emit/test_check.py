"""check_kernel: passes what is right, and finds each way of being wrong."""

import json

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.emit.check import VARIANTS, check_kernel
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
    report = bb.check_kernel(kernel, attention, inputs, eager=attention, runs=2)  # a process each

    assert report.passed, str(report)
    assert report.notes == ()
