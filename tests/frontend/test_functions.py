"""Every row of the table of functions: eager, traced, lowered, fused, jitted, in each spelling."""

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.errors import TraceError
from blockbuster.frontend.functions.table import PUBLIC, TABLE, numpy_function
from blockbuster.interp.binding import dims_of
from blockbuster.ir.list_only import list_only
from blockbuster.ir.types import size_class
from tests.frontend.function_examples import CASES, Case
from tests.parameters import one_in

OF_SIZES = ("arange", "custom", "eye", "full", "ones", "zeros")
IN_PLACE = ("fill", "copyto")  # they return nothing
SPELLED = [(case, name) for case in CASES for name in case.row.numpy]


def wanted(case: Case):
    reference = case.row.reference or numpy_function(case.row.numpy[0])
    return case.call(reference, case.arrays())


def traced(case: Case, function):
    """The program of ``function`` with all arrays of the example as inputs."""
    arrays = {f"x{i}": array for i, array in enumerate(case.arrays())}
    return bb.trace(lambda **given: case.call(function, [*given.values()]), **arrays), arrays


def evaluate(graph, program, arrays):
    """The outputs of a block program in blocks of two, which are ragged on odd sizes."""
    single, known = (set(map(size_class, dims)) for dims in (list_only(graph), dims_of(graph)))
    blocks = {dim: 2 for dim in program.dims if dim in known - single}
    return only(bb.evaluate(graph, arrays, block_sizes=blocks))


def only(outputs):
    """The result of a function, or all of one with several."""
    return outputs["out"] if "out" in outputs else [*outputs.values()]


def same(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_on_numpy_arrays(case):
    found, expected = case.call(case.row.function, case.arrays()), wanted(case)

    same(found, expected)
    assert np.asarray(found).dtype == np.asarray(expected).dtype


@pytest.mark.parametrize("case", CASES, ids=str)
def test_on_tensors(case):
    torch = pytest.importorskip("torch")
    tensors = [torch.from_numpy(array) for array in case.arrays()]
    if case.row.public:
        found = case.call(case.row.function, tensors)

        parts = found if isinstance(found, list | tuple) else [found]
        assert all(isinstance(part, torch.Tensor) for part in parts)
        same(np.reshape([part.numpy() for part in parts], np.shape(wanted(case))), wanted(case))


@pytest.mark.parametrize("case", one_in(2, CASES), ids=str)
def test_traced(case):
    program, arrays = traced(case, case.row.function)

    same(only(program.numpy(arrays)), wanted(case))


@pytest.mark.parametrize("case", one_in(2, CASES, first=1), ids=str)
def test_lowered_and_fused(case):
    program, arrays = traced(case, case.row.function)
    lowered = bb.lower(program)
    fused = bb.safe(bb.fuse(lowered).final)

    for graph in (lowered, fused):
        same(evaluate(graph, program, arrays), wanted(case))


@pytest.mark.parametrize(("case", "name"), SPELLED, ids=str)
def test_numpys_names_mean_the_same(case, name):
    function = numpy_function(name)
    if function is not None:
        assert traced(case, function)[0].listing() == traced(case, case.row.function)[0].listing()


def test_the_stub_names_each_public_function_and_its_module():
    modules = {name: bb._MODULE[name] for name in PUBLIC}

    assert modules == {name: row.function.__module__ for name, row in PUBLIC.items()}


def test_each_row_has_a_sentence_and_examples():
    for row in TABLE:
        first = (row.function.__doc__ or "").splitlines()[0]
        assert first.endswith("."), row.name
        assert row.examples or row.name in OF_SIZES + IN_PLACE, row.name
        assert row.examples == () or row.reference or row.numpy, row.name


def test_no_spelling_means_two_functions():
    for group in ("numpy", "methods", "torch"):
        names = [name for row in TABLE for name in getattr(row, group)]
        assert len(names) == len(set(names)), group


def test_arguments_under_torchs_names():
    program = bb.trace(lambda x: x.sum(dim=-1, keepdim=True), x="M N")

    assert program.equations[0].params == (("axis", -1), ("keepdims", True))


@pytest.mark.parametrize("fn", [
    lambda x: np.var(x, dtype=np.float32),
    lambda x: np.exp(x, where=False),
    lambda x: np.var(x, where=x > 0),
    lambda x: x.sum(start=1),
])  # fmt: skip
def test_arguments_that_mean_something_else_are_refused(fn):
    with pytest.raises(TraceError, match=r"with (dtype|where|start) cannot be traced"):
        bb.trace(fn, x="M N")
