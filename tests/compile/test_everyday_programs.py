"""Short programs of everyday code: traced, evaluated, fused and jitted, they give what they say."""

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.frontend.torch import on_host
from tests.compile.everyday_programs import IN_NUMPY, in_torch
from tests.parameters import one_in

TORCHS = (
    "focal loss", "contrastive", "group norm", "attention", "rotary", "experts", "quantized",
    "patches", "smoothed", "distances",
)  # fmt: skip


def flat(result):
    parts = result if isinstance(result, tuple | list) else [result]
    return [np.asarray(on_host(part)) for part in parts]


def same(found, expected):
    for one, wanted in zip(found, expected, strict=True):
        assert one.shape == wanted.shape
        assert one.dtype.kind == wanted.dtype.kind
        np.testing.assert_allclose(one, wanted, rtol=2e-4, atol=2e-5)


def evaluated(function, args):
    """The results of the lowered program and of the fused one, in NumPy."""
    named = {f"x{i}": arg for i, arg in enumerate(args)}
    program = bb.trace(lambda **given: function(*given.values()), **named)
    lowered = bb.lower(program)
    arrays = {name: on_host(array) for name, array in {**named, **program.held}.items()}
    for graph in (lowered, bb.safe(bb.fuse(lowered).final)):
        yield list(bb.evaluate(graph, arrays).values())


def judged(function, args):
    expected = flat(function(*args))

    same(flat(bb.jit(function)(*args)), expected)
    if all(hasattr(arg, "shape") for arg in args):
        for results in evaluated(function, args):
            for one, wanted in zip(results, expected, strict=True):
                np.testing.assert_allclose(one, wanted, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", IN_NUMPY)
def test_written_with_numpy(name):
    judged(*IN_NUMPY[name])


@pytest.mark.parametrize("name", one_in(3, TORCHS))
def test_written_with_torch(torch, name):
    judged(*in_torch(torch)[name])


def test_each_is_tried(torch):
    assert [*in_torch(torch)] == [*TORCHS]
