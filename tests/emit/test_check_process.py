"""check_kernel: a kernel runs in a process of its own, on copies between guard zones."""

import os
import time
from functools import partial

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.check import kernel as suite
from blockbuster.check.inputs import VARIANTS
from blockbuster.check.kernel import check_kernel
from blockbuster.check.kernel_process import Forked, Served, named
from blockbuster.check.own_process import Alone
from blockbuster.errors import LaunchError
from tests.emit import raw_kernels as raw

RNG = np.random.default_rng(0)
X = RNG.normal(size=(5, 7)).astype(np.float32)


def forked(kernel, limit):
    return Alone(lambda: Forked(kernel), limit)


def served(kernel, limit):
    return Alone(lambda: Served(kernel, interpreted=False, limit=60), limit)


@pytest.fixture(params=[forked, served])
def way(request, monkeypatch):
    """The two ways to a process: the driver is the same."""
    monkeypatch.setattr(
        suite,
        "runner",
        lambda kernel, _, *, own_process, limit: (request.param(kernel, limit), ""),
    )


def check(kernel, x=X, outputs=("out",), **options):
    return check_kernel(kernel, raw.double, {"x": x}, outputs=outputs, **options)


def problems(report, variant="random"):
    (found,) = [run.problems for run in report.runs if run.variant == variant]
    return "; ".join(found)


FORTRAN = np.asfortranarray(X)
REVERSED = X[::-1, ::-1]
BROADCAST = np.broadcast_to(X[:1], (5, 7))
SHAPES = [X, X[:1, :1], X[:0], FORTRAN, REVERSED, BROADCAST, np.array(3, np.float32), X[0]]


@pytest.mark.parametrize("x", SHAPES)
def test_a_right_kernel_passes(x):
    own = x.copy()
    report = check(raw.right, x)

    assert report.passed, str(report)
    assert report.notes == ("the pipeliner's race: no source was given",)
    assert check(raw.right, x, outputs=()).passed
    np.testing.assert_array_equal(x, own)


END = "writes past the end of out: 1 element, the nearest is 1 element after its last"
OUTSIDE = "reads out of bounds, what it has not written, or what the mask of a load leaves out"
WRONG = [
    ("stores_one_past_the_end", END),
    ("stores_what_it_reads_past_the_end", END),
    ("adds_past_the_end", END),
    ("stores_a_block_past_the_end", "past the end of out: 1024 elements, the nearest is 1 element"),
    ("stores_before_the_start", "writes before the start of out: 1 element, the nearest is 1 el"),
    ("stores_past_the_end_of_its_input", "writes past the end of x: 1 element"),
    ("changes_its_input", "changes its input x: 35 of 35 elements; the launcher has to copy"),
    ("reads_one_past_the_end", OUTSIDE),
    ("takes_the_maximum_with_what_is_ahead", OUTSIDE),
    ("takes_the_minimum_with_what_is_behind", OUTSIDE),
    ("leaves_the_tail", "leaves 7 of 35 elements of out as they were before the call"),
    ("adds_to_what_was_there", "leaves 35 of 35 elements of out as they were before the call"),
    ("exits", "ended its process with exit code 7, in the middle of a call, during run 1"),
    ("exits_politely", "the kernel raised SystemExit: enough (raw_kernels.py, line "),
    ("raises", "the kernel raised ValueError: no block for (5, 7) (raw_kernels.py, line "),
    (
        "crashes",
        "by signal 11 (SIGSEGV): most likely it reads or writes out of bounds (raw_kernels.py, l",
    ),
    ("prints_and_crashes", "it printed: the last words"),
    ("leaves_a_child", "ended its process with exit code 9"),
    ("closes_its_files", "ended its process"),
]


@pytest.mark.parametrize(("name", "words"), WRONG)
def test_what_is_wrong_is_named(name, words):
    own = X.copy()
    report = check(getattr(raw, name))

    assert not report.passed
    assert words in problems(report), problems(report)
    np.testing.assert_array_equal(X, own)


@pytest.mark.parametrize("name", ["right", "stores_one_past_the_end", "exits", "crashes", "raises"])
def test_both_ways_say_the_same(way, name):
    report = check(getattr(raw, name), runs=1)

    assert report.passed is (name == "right")
    assert dict(WRONG).get(name, "") in problems(report)
    assert len(report.runs) == len(VARIANTS)


def test_what_the_launcher_allocates_has_guard_zones():
    report = check(raw.stores_one_past_the_end, outputs=())

    assert "past the end of an array of shape (5, 7) that the launcher allocates" in str(report)


def test_a_store_between_rows_shows_in_strided_outputs():
    report = check(raw.stores_between_rows)

    assert problems(report) == ""
    assert "writes into the gaps between the elements of out: 4 bytes" in problems(
        report, "strided"
    )


def test_an_input_that_is_changed_and_returned():
    assert "changes its input x" in problems(check(raw.returns_its_input_changed, outputs=()))
    assert check(lambda x: x * 2, outputs=()).passed
    assert check_kernel(lambda x: x.T, lambda x: x.T, {"x": X}).passed  # a view of its input


@pytest.mark.parametrize("limit", [1.0])
def test_a_kernel_that_hangs_is_ended(way, limit):
    start = time.monotonic()
    report = check(raw.hangs, time_limit=limit)

    assert time.monotonic() - start < 60
    assert len(report.runs) == 1  # nothing more of it
    assert "did not finish within 1 s (time_limit=), during run 1" in str(report)
    assert "6 of 7 runs of configuration 0: it did not finish" in str(report)


def test_what_is_printed_stays_in_its_process(way, capfd):
    assert check(raw.prints, runs=1).passed
    assert capfd.readouterr() == ("", "")


def test_a_crash_is_said_with_its_call_and_others_go_on():
    calls = []

    def crashes_in_draw_1(x, out=None):
        calls.append(0)
        return raw.crashes(x) if len(calls) == 5 else raw.right(x, out)

    report = check(crashes_in_draw_1, eager=raw.double, draws=2)

    assert [run.variant for run in report.runs if run.problems] == list(VARIANTS)
    assert all("(SIGSEGV)" in problem for run in report.runs for problem in run.problems)
    assert "during draw 1" in problems(report)


def test_an_unaligned_array_has_an_unaligned_address():
    def needs_alignment(x, out=None):
        if any(a is not None and a.ctypes.data % 16 for a in (x, out)):
            raise ValueError("misaligned address")
        return raw.right(x, out)

    report = check(needs_alignment)

    assert [run.variant for run in report.runs if run.problems] == ["unaligned"]


def test_the_process_is_left_alone_where_that_is_asked_for():
    seen = []

    def records(x, out=None):
        seen.append(os.getpid())
        return raw.right(x, out)

    report = check(records, own_process=False)

    assert set(seen) == {os.getpid()}
    assert report.passed
    assert "the kernel ran in this process, because own_process=False says so" in str(report)
    assert not check(raw.stores_one_past_the_end, own_process=False).passed
    assert "raised SystemExit: enough" in str(check(raw.exits_politely, own_process=False))


@pytest.mark.parametrize("kernel", [lambda x: x, raw.right, partial(raw.right, out=None)])
def test_a_kernel_may_have_a_name(kernel):
    if "lambda" in str(kernel):
        with pytest.raises(LaunchError, match="another process cannot import it"):
            named(kernel)
    else:
        assert named(kernel)[1] is None


def test_what_the_functions_beside_it_change_is_theirs():
    def spoils(x):
        y = x * 2
        x[...] = 0
        return y

    own = X.astype(np.float64)
    whole = np.arange(6)
    assert check_kernel(spoils, spoils, {"x": own}, eager=spoils).passed is False
    assert check_kernel(raw.double, spoils, {"x": own}, eager=spoils).passed
    assert check_kernel(raw.double, spoils, {"x": whole}, eager=spoils).passed
    np.testing.assert_array_equal(own, X.astype(np.float64))
    np.testing.assert_array_equal(whole, np.arange(6))


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, bool, np.float64, np.float16, ">f4"])
def test_other_dtypes_are_guarded_too(dtype):
    x = (X * 10).astype(dtype)

    def copies(x, out=None):
        out = np.empty_like(x) if out is None else out
        out[...] = x
        return out

    def overruns(x, out=None):
        out = copies(x, out)
        last = out.ctypes.data + sum(
            (n - 1) * s for n, s in zip(out.shape, out.strides, strict=True)
        )
        raw.ctypes.memset(last + out.itemsize, 1, out.itemsize)
        return out

    def leaves_one(x, out=None):
        first = out is None
        out = copies(x, out)
        if not first:
            out[1, 1] = out[1, 2]
        return out

    def copy(x):
        return x

    assert check_kernel(copies, copy, {"x": x}, outputs=["out"], tolerance=0).passed
    report = check_kernel(overruns, copy, {"x": x}, outputs=["out"])
    assert "writes past the end of out: 1 element" in str(report)
    assert not check_kernel(leaves_one, copy, {"x": x}, outputs=["out"]).passed or dtype is bool


def test_an_error_of_our_own_launcher_names_no_line_of_ours():
    torch = pytest.importorskip("torch")
    graph = bb.fuse(bb.lower(bb.trace(raw.double, x="M N"))).final
    kernel = bb.emit(graph, {"M": 5, "N": 7}, "float32")
    report = check_kernel(kernel, raw.double, {"x": torch.from_numpy(X)}, runs=1)

    assert "the kernel raised ValueError: x is on cpu, expected a GPU" in problems(report)
    assert "kernel_process.py" not in problems(report)


# sizes ---------------------------------------------------------------------------


def test_sizes_are_cut_where_axes_have_names():
    seen = {}

    def kernel(x, w):
        seen.setdefault((x.shape, w.shape))
        return x @ w

    x, w = RNG.normal(size=(40, 32)), RNG.normal(size=(32, 8))
    dims = {"x": "M K", "w": "K 8"}
    report = check_kernel(kernel, lambda x, w: x @ w, {"x": x, "w": w}, dims=dims,
                          multiples={"K": 4}, own_process=False)  # fmt: skip

    assert report.passed
    shapes = [(40, 32), (32, 32), (40, 28), (1, 4), (1, 28), (40, 4)]
    assert list(seen) == [((m, k), (k, 8)) for m, k in shapes]
    assert report.runs[len(VARIANTS)].where == "configuration 0, inputs 0, M 32, K 32, random"


def test_a_kernel_that_is_wrong_for_a_cut_size_is_told():
    def whole_blocks(x):
        return np.where(np.arange(x.shape[1]) < x.shape[1] // 16 * 16, x * 2, 0)

    x = RNG.normal(size=(4, 32)).astype(np.float32)
    without = check_kernel(whole_blocks, raw.double, {"x": x[:, :16].repeat(4, 0)})
    report = check_kernel(whole_blocks, raw.double, {"x": x}, dims={"x": "M N"})

    assert without.passed
    assert "sizes that are no multiples of 16: no input has one" in str(without)
    assert "sizes that are no multiples" not in str(report)
    assert {run.sizes for run in report.runs if run.problems} == {
        "M 4, N 31",
        "M 1, N 1",
        "M 1, N 31",
        "M 4, N 1",
    }


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"dims": {"y": "M"}}, "dims names y, which is not among inputs 0"),
        ({"dims": {"x": "M"}}, r"dims has 'M' for x, whose shape is \(5, 7\)"),
        ({"dims": {"x": "M M"}}, "M is 5, but 7 in x of inputs 0"),
        ({"dims": {"x": "5 8"}}, "8 is 8, but 7 in x of inputs 0"),
        ({"multiples": {"M": 2}}, "unknown dim 'M' in multiples"),
        ({"dims": {"x": "M N"}, "multiples": {"N": 2}}, "N is 7 in inputs 0, which is no multiple"),
        ({"time_limit": 0}, "time_limit is 0"),
    ],
)
def test_arguments_that_do_not_fit_are_named(options, words):
    with pytest.raises(ValueError, match=words):
        check(raw.right, **options)
