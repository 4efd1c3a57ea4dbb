"""Random convolutions and pools give what torch gives, and refuse what torch refuses."""

import numpy as np
import pytest
from hypothesis import given

import blockbuster as bb

torch = pytest.importorskip("torch")

from tests.frontend.random_images import Call, convolutions, pools, transposed  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:Using padding='same'")  # torch's, of its own copy


def check(call: Call) -> None:
    """In float64 by the oracle, and in float32 as tensors and as arrays through ``bb.jit``."""
    tensors = call.tensors()
    names = [f"x{place}" for place in range(len(tensors))]
    traced = lambda **arrays: call.function(*arrays.values())  # noqa: E731
    try:
        wanted = call.function(*tensors)
        is_right = 0 not in wanted.shape[2:]  # torch takes empty batches for results of no places
    except RuntimeError as error:
        if "smaller than kernel size" in str(error):
            return  # a pool of three axes may not reach beyond its input, and others may
        is_right = False
    if not is_right:
        with pytest.raises(bb.TraceError, match=r"random_images\.py:"):
            bb.jit(call.function)(*tensors)
        return
    program = bb.trace(traced, **dict(zip(names, tensors, strict=True)))
    arrays = {name: tensor.numpy() for name, tensor in zip(names, tensors, strict=True)}
    found = program.numpy(arrays)["out"]
    np.testing.assert_allclose(found, wanted.numpy(), rtol=1e-9, atol=1e-9)
    for single in ([t.float() for t in tensors], [t.float().numpy() for t in tensors]):
        made = np.asarray(bb.jit(call.function)(*single))
        np.testing.assert_allclose(made, wanted.numpy(), rtol=1e-3, atol=1e-4)


@given(convolutions())
def test_convolutions(call):
    check(call)


@given(transposed())
def test_transposed_convolutions(call):
    check(call)


@given(pools())
def test_pools(call):
    check(call)
