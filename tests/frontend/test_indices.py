"""Arrays, lists, numbers of libraries and truth values as indices, as NumPy and torch take them."""

import operator

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.errors import TraceError
from blockbuster.frontend.trace import trace_with_facts
from blockbuster.selection.plans.pieces import Seen
from blockbuster.selection.plans.plan import shown

X = np.arange(6.0).reshape(2, 3)
IDS = np.array([1, 0, 1])
ROWS = np.arange(2)

NUMPY = {
    "a number of NumPy's": lambda x, i: x[np.int64(1)] * 2,
    "an array without axes": lambda x, i: x[np.array(1)] * 2,
    "ends of a slice": lambda x, i: x[np.int32(1) : np.array(3)] * 2,
    "a list": lambda x, i: x[[1, 0]] * 2,
    "a list of truth values": lambda x, i: x[:, [True, False, True]] * 2,
    "an empty list": lambda x, i: x[:, []].sum(1),
    "rows": lambda x, i: x[i] * 2,
    "columns": lambda x, i: x[..., i] * 2,
    "rows from the last": lambda x, i: x[i - 2] * 2,
    "rows in a matrix": lambda x, i: x[i[:, None]] * 2,
    "rows beside a slice": lambda x, i: x[i, ::2] * 2,
    "rows behind a new axis": lambda x, i: x[None, i] * 2,
    "a position, then an array": lambda x, i: x[0, i] * 2,
    "an array, then a position": lambda x, i: x[i, 0] * 2,
    "positions around an array": lambda x, i: x[None][0, i, 1] * 2,
    "an element of an array": lambda x, i: x[i[0]] * 2,
    "where the maximum is": lambda x, i: x[np.argmax(x[:, 0])] * 2,
    "one column of each row": lambda x, i: x[ROWS, i[:2]] * 2,
    "two arrays": lambda x, i: x[i, i + 1] * 2,
    "two arrays that broadcast": lambda x, i: x[i[:, None], i - 2] * 2,
    "two arrays behind a slice": lambda x, i: (x * x[:, :1, None])[:, i, IDS] * 2,
    "two arrays behind all others": lambda x, i: x[None, ..., i, [0, -1, 1]] * 2,
    "two arrays behind a position": lambda x, i: x[None][0, i, IDS] * 2,
    "an array of the closure": lambda x, i: x[IDS] * 2,
    "true": lambda x, i: x[True] * 2,
    "false": lambda x, i: x[False] * 2,
    "false, behind all": lambda x, i: x[..., np.bool_(False)] * 2,
    "true, between": lambda x, i: x[:, True] * 2,
    "new axes and all others": lambda x, i: x[None, ..., None, 0] * 2,
    "nothing": lambda x, i: x[()] * 2,
    "all": lambda x, i: x[...] * 2,
    "nothing of a number": lambda x, i: x.sum()[()] * 2,
    "all axes": lambda x, i: x[1, 2],
    "all axes, turned": lambda x, i: x[1, 2].T * 2,
    "take, by a list": lambda x, i: np.take(x, [0, 0]),
    "take, by a list along an axis": lambda x, i: np.take(x, [0, 0], axis=1),
    "take, by a tuple": lambda x, i: np.take(x, (1, 0), axis=0),
    "take, by a number": lambda x, i: np.take(x, 1, axis=0),
    "take, by a number, of all": lambda x, i: np.take(x, 4),
    "take, by a matrix": lambda x, i: np.take(x, [[0, 1], [1, 0]], axis=0),
    "take, by nothing": lambda x, i: np.take(x, [], axis=1).sum(1),
    "take as a method": lambda x, i: x.take([0, 4]),
    "along an axis, nothing": lambda x, i: np.take_along_axis(x, np.zeros((2, 0), int), 1).sum(1),
    "upper triangle of a vector": lambda x, i: np.triu(x[0]),
    "lower triangle of a vector": lambda x, i: np.tril(x[0], -1),
}


@pytest.mark.parametrize("name", NUMPY)
def test_as_numpy_takes_them(name):
    expected = NUMPY[name](X, IDS)
    found = bb.jit(NUMPY[name])(X, IDS)

    assert np.shape(found) == np.shape(expected)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
@pytest.mark.parametrize("behind", [np.s_[:], np.s_[:, None]])
def test_positions_in_narrow_dtypes(dtype, behind):
    """Places in the merged axes are up to 8999: they would overflow in 8 bits."""
    x = np.arange(9000, dtype=np.float32).reshape(100, 90)
    rows, columns = (np.array(at, dtype) for at in ([99, 0, 57], [0, 89, 44]))
    function = lambda x, i, j: x[i[behind], j] * 2  # noqa: E731
    found, expected = bb.jit(function)(x, rows, columns), function(x, rows, columns)

    np.testing.assert_array_equal(found, expected, strict=True)
    if dtype != "uint8":
        found = bb.jit(function)(x, ~rows, ~columns)
        np.testing.assert_array_equal(found, function(x, ~rows, ~columns), strict=True)


@pytest.mark.parametrize("place", [(5, 0), (0, 6), (0, 7), (-6, 0), (0, -7), (5, -6)])
@pytest.mark.parametrize("shape", [(5, 6), (2, 5, 6)])
def test_positions_outside_of_their_axis(place, shape):
    """Each lies inside of both axes merged, or one of them could put the other right."""
    x = np.arange(np.prod(shape, dtype=float)).reshape(shape)
    function = lambda x, i, j: x[..., i, j] * 2  # noqa: E731
    row, column = (np.array([0, at], np.int8) for at in place)

    with pytest.raises(IndexError):
        function(x, row, column)
    with pytest.raises(IndexError):
        bb.jit(function)(x, row, column)
    ends = np.array([4, -5]), np.array([5, -6])
    np.testing.assert_array_equal(bb.jit(function)(x, *ends), function(x, *ends), strict=True)


@pytest.mark.parametrize("name", ["x[5]", "x[:, -4]", "x[1.0]", "x['a']", "x[0, 0, 0]"])
def test_what_numpy_refuses(name):
    place = {"x[5]": 5, "x[:, -4]": np.s_[:, -4], "x[1.0]": 1.0, "x['a']": "a"}.get(name, (0, 0, 0))

    with pytest.raises(IndexError):
        operator.getitem(X, place)
    with pytest.raises(TraceError, match=r"test_indices\.py"):
        bb.jit(lambda x: x[place])(X)


def test_what_would_be_put_together():
    with pytest.raises(TraceError, match="an array beside other positions"):
        bb.jit(lambda x, i: x[None][0, :, i])(X, IDS)
    with pytest.raises(TraceError, match=r"a mask as an index[\s\S]*bb.where"):
        bb.jit(lambda x: x[x > 1])(X)


def test_as_torch_takes_them():
    torch = pytest.importorskip("torch")
    ids = torch.tensor([1, 0, 1])
    functions = (
        lambda t, i: t[torch.arange(2)] * 2,
        lambda t, i: t[:, torch.arange(2)] * 2,
        lambda t, i: t[torch.tensor([1, 0], dtype=torch.int32)] * 2,
        lambda t, i: t[torch.arange(2), torch.tensor([2, 0])] * 2,
        lambda t, i: t[torch.tensor(1)] * 2,
        lambda t, i: t[torch.tensor(0) : torch.tensor(1)] * 2,
        lambda t, i: t[ids] * 2,
        lambda t, i: t[i] * 2,
        lambda t, i: t[i[1]] * 2,
        lambda t, i: t[[1, 0]] * 2,
        lambda t, i: t[None][0, :, i] * 2,
        lambda t, i: t[torch.argmax(t[:, 0])] * 2,
        lambda t, i: t[True] * 2,
        lambda t, i: torch.take(t, i),
        lambda t, i: torch.index_select(t, 1, i),
        lambda t, i: torch.gather(t, 1, torch.zeros((2, 0), dtype=torch.int64)).sum(1),
        lambda t, i: torch.nn.functional.pad(t, (-1, 2)),
        lambda t, i: torch.nn.functional.pad(t, (-1, -1)),
        lambda t, i: t[1, 2] * 2,
    )
    t = torch.arange(6.0).reshape(2, 3)

    for function in functions:
        torch.testing.assert_close(bb.jit(function)(t, ids), function(t, ids))
    with pytest.raises(TraceError, match="pad leaves out 2 and 2 of 3 elements"):
        bb.jit(lambda t: torch.nn.functional.pad(t, (-2, -2)))(t)


@pytest.mark.parametrize("shape", [(1,), (1, 1)])
def test_a_function_reads_an_array_without_its_axes(shape):
    """Where NumPy indexes away all axes it gives a number, which has no ``transpose``."""

    def function(x):
        return bb.custom(lambda a: a + 1, x.reshape(()), shape=())

    assert bb.jit(function)(np.ones(shape)) == 2
    assert shown(np.ones(shape), Seen("x", ())).shape == ()


STEPS = {
    "backwards": (lambda x: x[:, np.arange(3, -1, -1)], ["custom"]),
    "every second": (lambda x: x[:, [0, 2]] * 2, ["strided", "mul"]),
    "one": (lambda x: x[[1]], ["slice"]),
    "of all": (lambda x: np.take(x, np.arange(5, 9)), ["reshape", "slice"]),
    "in no steps": (lambda x: x[:, [0, 1, 3]], ["custom"]),
    "twice": (lambda x: x[:, [1, 1]], ["custom"]),
    "from the end": (lambda x: x[:, [-2, -1]], ["custom"]),
}


@pytest.mark.parametrize("name", STEPS)
def test_positions_in_equal_steps_are_a_slice(name):
    fn, ops = STEPS[name]
    x = np.arange(12.0).reshape(3, 4)

    program, _ = trace_with_facts(fn, x=x)

    assert [equation.op for equation in program.equations if equation.op != "slice"] == [
        op for op in ops if op != "slice"
    ]
    np.testing.assert_array_equal(bb.jit(fn)(x), fn(x))


def test_one_element_of_each_row_is_chosen_for_one_class_of_sizes():
    """Of fewer rows than there are, each is looked up."""
    x, n = np.arange(12.0).reshape(3, 4), np.array([3, 0, 1])

    def chosen(x, n):
        return x[[*range(n.shape[0])], n]

    for rows, looked_up in ((3, 0), (2, 1)):
        program, _ = trace_with_facts(chosen, x=x, n=n[:rows])
        assert [equation.op for equation in program.equations].count("custom") == looked_up
    jitted = bb.jit(chosen)
    for rows in (3, 2, 1):
        np.testing.assert_array_equal(jitted(x, n[:rows]), chosen(x, n[:rows]))


def test_positions_that_others_may_change_are_looked_up():
    at = np.array([0, 1, 2])
    jitted = bb.jit(lambda x: x[:, at] * 2)
    x = np.arange(12.0).reshape(3, 4)
    jitted(x)

    at[:] = 2, 1, 0

    np.testing.assert_array_equal(jitted(x), x[:, 2::-1] * 2)


def test_elements_at_positions_are_a_copy():
    def changed(x):
        y = x[:, np.arange(0, 4, 2)]
        y += 1
        return y.sum() - x.sum()

    x = np.arange(12.0).reshape(3, 4)
    assert bb.jit(changed)(x) == changed(x.copy())


MASKS = {
    "one beside a block": lambda x: np.where((x[0, 0] > 0) & (x > 2), x, 0.0),
    "a sum beside a block": lambda x: np.where((np.sum(x) > 99) | (x > 2), x, 0.0),
    "not one": lambda x: np.where(~(x[0, 0] > 3) & (x > 2), x, 0.0),
    "one that is stored": lambda x: (x[0, 0] > 0) & (x > 3),
    "tiled": lambda x: np.where(np.tile(x > 1, (2, 1)), 1.0, 2.0),
    "repeated": lambda x: np.repeat(x[:, -1:], 3, axis=1) + 0.0,
    "ones": lambda x: np.ones_like(x[:1]) * 2.0,
    "triangle": lambda x: np.tril(x),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("dims", ["A B", "1 B", "A 1", "1 1"])
def test_masks_of_one_element_in_emitted_kernels(name, dims):
    """Triton's interpreter repeats a comparison of one float as floats."""
    shape = [1 if dim == "1" else extent for dim, extent in zip(dims.split(), (2, 3), strict=True)]
    x = np.arange(float(np.prod(shape))).reshape(shape) + 1.0
    graph = bb.lower(bb.trace(MASKS[name], x=dims))
    sizes = {dim: extent for dim, extent in zip(dims.split(), shape, strict=True) if dim != "1"}

    for form in (graph, bb.fuse(graph).final):
        found = bb.emit(form, sizes, "float32")(x.astype(np.float32))
        np.testing.assert_allclose(found, MASKS[name](x))
