"""Rows of the table of functions as kernels: jitted on the CPU, and run by Triton's interpreter."""

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.emit.target.load import load_module
from blockbuster.emit.tile.value_dtypes import casts
from blockbuster.errors import LaunchError
from blockbuster.frontend.functions.table import TORCH
from blockbuster.runtime.launch import run_batch
from tests.frontend.function_examples import CASES
from tests.frontend.test_functions import only, traced, wanted
from tests.parameters import one_in

FIRST = [case for case in CASES if case.example in case.row.examples[:2]]
THEIRS = {name for row in TORCH for name in row.torch}
SPELLED = [
    (case, name)
    for case in FIRST
    for name in case.row.torch
    if not name.startswith("Tensor.") and name not in THEIRS
]
METHODS = [(case, name) for case in FIRST for name in case.row.methods]
IN_TORCH = {"axis": "dim", "keepdims": "keepdim", "axes": "dims", "ddof": "correction"}


def same(found, expected, tolerance=1e-9):
    pairs = zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]
    for one, other in pairs:
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance / 1000)


@pytest.mark.parametrize("case", one_in(2, FIRST), ids=str)
def test_jitted(case):
    arrays = {f"x{i}": array for i, array in enumerate(case.arrays())}
    jitted = bb.jit(lambda **given: case.call(case.row.function, [*given.values()]))

    found = jitted(**arrays)

    same(tuple(found) if isinstance(found, list | tuple) else found, wanted(case))


def test_interpreted():
    """All rows that are one kernel by themselves, in float32 and one process."""
    jobs, right = [], {}
    for case in (case for case in FIRST if case.example == case.row.examples[0]):
        program, arrays = traced(case, case.row.function)
        graph = bb.safe(bb.fuse(bb.lower(program)).final)
        if "float64" in casts(graph):
            continue  # kernels compute in float32
        if not program.notes and len(program.outputs) == 1 and not graph.buffered_edges():
            sizes = {
                dim: extent
                for given in program.inputs
                for dim, extent in zip(given.shape, arrays[given.name].shape, strict=True)
                if isinstance(dim, str)
            }
            kernel = bb.emit(graph, sizes, "float32")
            if len(load_module(kernel.source).KERNELS) > 1:
                continue
            narrow = {
                k: v.astype(np.float32) if v.dtype.kind == "f" else v for k, v in arrays.items()
            }
            jobs.append((kernel, narrow))
            right[str(case)] = only(
                program.numpy(
                    {k: v.astype(float) if v.dtype.kind == "f" else v for k, v in narrow.items()}
                )
            )

    assert len(jobs) > 60
    for (name, exact), found in zip(right.items(), run_batch(jobs), strict=True):
        assert not isinstance(found, LaunchError), f"{name}: {found}"
        np.testing.assert_allclose(found["out"], exact, rtol=2e-5, atol=2e-5, err_msg=name)


@pytest.mark.parametrize(("case", "name"), METHODS, ids=str)
def test_methods_mean_the_same(case, name):
    def method(x, *others, **named):
        return getattr(x, name)(*others, **named)

    assert traced(case, method)[0].listing() == traced(case, case.row.function)[0].listing()


@pytest.mark.parametrize(("case", "name"), SPELLED, ids=str)
def test_torchs_names_mean_the_same(case, name):
    torch = pytest.importorskip("torch")
    function = torch
    for part in name.split("."):
        function = getattr(function, part)

    def spelled(*arrays, **named):
        return function(*arrays, **{IN_TORCH.get(key, key): v for key, v in named.items()})

    try:
        case.call(spelled, [torch.from_numpy(array) for array in case.arrays()])
    except (TypeError, RuntimeError):
        return  # torch does not take these arguments: what it takes, tests of its own try
    assert traced(case, spelled)[0].listing() == traced(case, case.row.function)[0].listing()


def test_library_calls_are_noted():
    program = bb.trace(lambda x: np.sort(x, axis=-1), x="M N")

    assert any("is opaque: a kernel boundary runs around it" in note for note in program.notes)
