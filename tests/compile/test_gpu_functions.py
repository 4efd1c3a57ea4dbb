"""Rows of the table of functions as kernels of a GPU, in float32."""

import numpy as np
import pytest

import blockbuster as bb
from tests.frontend.function_examples import CASES
from tests.frontend.test_functions import wanted

pytestmark = pytest.mark.gpu

WIDE = ("float_power",)  # in float64, which kernels do not compute in
FIRST = [case for case in CASES if case.example == case.row.examples[0]]
FIRST = [case for case in FIRST if case.row.name not in WIDE]
ANGLES = np.concatenate([np.linspace(-9, 9, 1000), [1e3, 4096.0, 1e5, 3e7]])
NEAR_ZERO = np.concatenate([np.geomspace(1e-30, 0.9, 500), -np.geomspace(1e-30, 0.9, 500)])


def on_device(torch, cuda, array):
    narrow = array.astype(np.float32) if array.dtype.kind == "f" else array
    return torch.from_numpy(narrow).to(cuda)


@pytest.mark.parametrize("case", FIRST, ids=str)
def test_jitted(torch, cuda, case):
    arrays = {f"x{i}": on_device(torch, cuda, a) for i, a in enumerate(case.arrays())}

    found = bb.jit(lambda **given: case.call(case.row.function, [*given.values()]))(**arrays)

    parts = found if isinstance(found, list | tuple) else [found]
    exact = wanted(case)
    exact = exact if isinstance(exact, list | tuple) else [exact]
    for part, right in zip(parts, exact, strict=True):
        assert part.device == arrays["x0"].device
        np.testing.assert_allclose(part.double().cpu().numpy(), right, rtol=2e-5, atol=2e-5)


def test_what_computes_in_float64_is_refused(torch, cuda):
    with pytest.raises(bb.EmitError, match="float64"):
        bb.jit(lambda x: torch.float_power(x, 2))(torch.ones(4, 5, device=cuda))


@pytest.mark.parametrize(("name", "x"), [
    ("sin", ANGLES), ("cos", ANGLES), ("log1p", NEAR_ZERO), ("expm1", NEAR_ZERO), ("atan", ANGLES),
])  # fmt: skip
def test_accurate_to_a_few_units(torch, cuda, name, x):
    single = x.astype(np.float32)
    found = bb.jit(getattr(bb, name))(torch.from_numpy(single).to(cuda)).cpu().numpy()

    atol = 4e-7 if name in ("sin", "cos") else 0
    exact = getattr(np, name)(single.astype(float))
    np.testing.assert_allclose(found, exact, rtol=4e-6, atol=atol)
