"""On a GPU: what is safe in eager stays safe, equal values cancel, checks take little memory."""

import numpy as np
import pytest

import blockbuster as bb
from tests.random_programs.softmax_contexts import context

pytestmark = pytest.mark.gpu
ROUNDING = {"float32": 1e-5, "float16": 4e-3}


@pytest.mark.parametrize(("dtype", "scale"), [("float32", 1e4), ("float16", 300.0)])
@pytest.mark.parametrize("seed", range(48))
def test_softmax_like_functions_are_as_safe_as_eager(torch, cuda, seed, dtype, scale):
    program = context(seed)
    data = {n: a.astype(dtype) for n, a in program.drawn(scale, seed).items()}
    with np.errstate(all="ignore"):
        eager = np.asarray(program(**data)).astype(float)
        exact = np.asarray(program(**{n: a.astype(float) for n, a in data.items()}))

    tensors = {n: torch.as_tensor(a, device=cuda) for n, a in data.items()}
    found = bb.jit(program)(**tensors).cpu().double().numpy()

    finite = np.isfinite(eager) & np.isfinite(exact)
    assert np.isfinite(found[finite]).all(), str(program)
    allowed = 4 * np.abs(eager - exact)[finite].max(initial=0)
    allowed += ROUNDING[dtype] * np.abs(exact[finite]).max(initial=1)
    assert np.abs(found - exact)[finite].max(initial=0) <= allowed, str(program)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: (x * x) - (x * x),
        lambda x, y: (x * y) - (y * x),
        lambda x, y: (x * y) - (x * y).clone() * 1.0,
        lambda x, y: (x * x - (x * x).amax(-1, keepdim=True)).amax(-1),
        lambda x, y: (x * x - (x * x).amin(-1, keepdim=True)).amin(-1),
        lambda x, y: (bb.silu(x) * y) - bb.silu(x) * y,
    ],
)
def test_a_value_minus_itself_is_0(torch, cuda, function):
    x, y = (torch.randn(64, 300, device=cuda) for _ in "xy")

    assert (bb.jit(function)(x, y) == 0).all()


def norm(x):
    return x.abs().sum(-1)


def test_the_check_of_a_first_result_takes_a_tenth_of_the_free_memory(torch, cuda):
    x = torch.ones(16384, 65535, dtype=torch.float16, device=cuda)  # 2.1 GB
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    free, before = torch.cuda.mem_get_info()[0], torch.cuda.memory_allocated()

    bb.jit(norm)(x)

    assert torch.cuda.max_memory_allocated() - before <= free / 10 + 2**26
