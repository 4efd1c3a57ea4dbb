"""Elements in order by counting how many come before each: in kernels, never on the CPU by jit."""

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.runtime.launch import run_batch

NUMBERS = {
    "float": (np.nan, np.inf, -np.inf, 1.0, 2.0, -3.0, 0.5),
    "uint": (0, 1, 2, 200, 255),
    "int": (0, 1, 2, 100, -3, -128, 127),
}


def rows(dtype, shape):
    """Rows with ties; of floats, some with NaN and some of infinities alone."""
    rng = np.random.default_rng(shape[-1])
    x = rng.choice(NUMBERS[dtype.rstrip("0123456789")], shape).astype(dtype)
    if dtype not in ("float32", "float16", "float64"):
        x.flat[:2] = np.iinfo(dtype).min, np.iinfo(dtype).max
    return x


def ordered(x, largest=False):
    """Rows in order, and where their elements stood: of equal ones the first comes first."""

    def key(value):
        is_last = (value != value) != largest
        return is_last, 0 if value != value else -value if largest else value

    keys = [[key(value) for value in row] for row in x.tolist()]
    order = np.array([sorted(range(len(row)), key=row.__getitem__) for row in keys])
    return np.take_along_axis(x, order, 1), order


def by_counting(dtype, largest, k=9, n=11):
    """The program of both, and what it gives for rows in blocks of ``dtype``."""

    def fn(x):
        return (*bb.topk(x, k, largest=largest), bb.sort(x), np.argsort(x))

    program = bb.trace(fn, x=f"{dtype}: M N={n}" if "int" in dtype else f"M N={n}")
    assert not [one for one in program.equations if one.op == "custom"]
    return program


def is_right(found, x, largest, k=9):
    first, right = ordered(x, largest), ordered(x)
    for one, other in zip(found, (first[0][:, :k], first[1][:, :k], *right), strict=True):
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype or other.dtype.kind == "f"


@pytest.mark.parametrize("largest", [True, False])
def test_ties_nan_infinities_and_ends_of_integers(largest):
    for dtype in ("float64", "uint8", "int8", "int64"):
        x = rows(dtype, (200, 11))

        is_right(by_counting(dtype, largest).numpy({"x": x}).values(), x, largest)


def test_in_kernels():
    """In Triton's interpreter, with rows that fill no block."""
    largest = bb.trace(lambda x: bb.topk(x, 9), x="M N=11")
    order = bb.trace(np.argsort, a="int8: M N=11")
    x, whole = rows("float32", (5, 11)), rows("int8", (5, 11))
    jobs = [
        (bb.emit(bb.fuse(bb.lower(program)), {"M": 5}, "float32"), {program.inputs[0].name: given})
        for program, given in ((largest, x), (order, whole))
    ]

    (values, places), (found,) = (one.values() for one in run_batch(jobs))

    np.testing.assert_array_equal(values, ordered(x, True)[0][:, :9])
    np.testing.assert_array_equal(places, ordered(x, True)[1][:, :9])
    np.testing.assert_array_equal(found, ordered(whole)[1])


def test_along_other_axes_of_few_rows_and_of_one_element():
    x = np.random.default_rng(0).integers(-2, 3, (2, 12, 3)).astype(float)
    order = np.argsort(-x, 1, "stable")

    for given, fn, right in (
        (x, lambda x: bb.topk(x, 10, axis=1)[1], order[:, :10]),
        (x[:0], lambda x: bb.topk(x, 10, axis=-2)[0], np.empty((0, 10, 3))),
        (x[:, :0], lambda x: bb.sort(x, 1), np.empty((2, 0, 3))),
        (x[:, :1], lambda x: np.argsort(x, 1), np.zeros((2, 1, 3), int)),
        (x > 0, lambda x: bb.sort(x, axis=1), np.sort(x > 0, 1)),
    ):
        (found,) = bb.trace(lambda x, fn=fn: fn(x), x=given).numpy({"x": given}).values()
        np.testing.assert_array_equal(found, right, strict=True)


@pytest.mark.parametrize("k", [3, 9])
def test_more_than_there_are_is_refused(k):
    words = "at most the elements of the axis"
    with pytest.raises(bb.TraceError, match=words):
        bb.trace(lambda x: bb.topk(x, k), x="M N=2")
    with pytest.raises(bb.TraceError, match=words):
        bb.jit(lambda x: bb.topk(x, k))(np.ones((3, 2)))
    with pytest.raises(ValueError, match="topk of"):
        bb.topk(np.ones((3, 2)), k)
    for dims in ("M N", np.ones((3, 12))):
        program = bb.trace(lambda x: bb.topk(x, k), x=dims)
        with pytest.raises(ValueError, match=f"size 2, but .* is at least {k}"):
            program.numpy({"x": np.ones((3, 2))})


def test_a_library_is_called_on_the_cpu_and_for_long_rows():
    torch = pytest.importorskip("torch")
    gate = lambda x: torch.topk(torch.softmax(x, -1), 9)  # noqa: E731
    short, long = torch.ones(4, 64), torch.ones(4, 65)

    for x, machine, calls in ((short, "h100", 0), (long, "h100", 2), (short, "auto", 2)):
        plan = bb.jit(gate, machine=machine).plan_for(x)
        assert len(plan.calls) == calls


def test_more_operators_than_a_part_may_have_are_one_kernel_where_that_wins():
    """A fold and its choices for each of eight elements: 25 groups of operators, divided 55 us."""
    plan = bb.select(bb.trace(lambda x: bb.topk(x, 8), x="M N=128"), {"M": 4096}, machine="h100")

    assert plan.kernels == 1
    assert plan.total_us < 20


def test_all_but_the_largest_are_masked_in_one_kernel():
    def masked(x):
        return bb.where(x >= bb.topk(x, 16)[0][..., -1:], x, -np.inf)

    program = bb.trace(masked, x="M N=64")
    assert bb.compile(program, {"M": 4096}, "float16", "h100").plan.kernels == 1
