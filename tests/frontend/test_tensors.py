"""The array functions on torch tensors: the oracle's results, by torch, on the tensors' device."""

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.frontend import functions
from blockbuster.frontend.functions.table import TABLE
from blockbuster.frontend.torch import POINTWISE, TENSORS

torch = pytest.importorskip("torch")

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(2, 4, 6))
G = RNG.normal(size=6)
MORE = [
    ("transpose", (RNG.normal(size=(2, 3, 4)), (1, 2, 0)), {}),
    ("sum", (X, (0, 1)), {"keepdims": True}),
    ("mean", (X, -1), {"keepdims": True}),
    ("max", (X, 0), {}),
    ("min", (X, ()), {}),
    ("softmax", (X,), {"axis": 0, "safe": True}),
    ("logsumexp", (X,), {"axis": 0, "keepdims": True}),
    ("layer_norm", (X,), {"beta": G, "eps": 0.1}),
    ("rms_norm", (X,), {}),
    ("concat", ([X, Y],), {}),
    ("where", (X > 0, X, Y), {}),
]


def tensors(value):
    if isinstance(value, list):
        return [tensors(item) for item in value]
    return torch.from_numpy(value) if isinstance(value, np.ndarray) else value


def compare(name, args, named):
    function = getattr(functions, name)
    wanted = function(*args, **named)
    found = function(*map(tensors, args), **{key: tensors(v) for key, v in named.items()})

    assert isinstance(found, torch.Tensor)
    assert found.numpy().dtype == wanted.dtype
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("name", "args", "named"), MORE)
def test_axes_and_options_mean_the_same(name, args, named):
    compare(name, args, named)


def test_no_function_of_the_table_is_left_over():
    named = {"cast": "astype", "windows": "sliding_window_view"}

    assert {named.get(op, op) for op in (*TENSORS, *POINTWISE)} <= {row.name for row in TABLE}


def test_results_stay_in_the_dtype_and_on_the_device():
    x = torch.ones(2, 3, dtype=torch.bfloat16, device="meta")

    for result in (bb.softmax(x), bb.where(np.ones(3, bool), x, 0.5), bb.maximum(x, 2.0)):
        assert result.dtype == torch.bfloat16
        assert result.device.type == "meta"


def test_a_row_of_only_minus_infinity_is_zero():
    x = torch.tensor([[-np.inf, -np.inf], [0.0, -np.inf]])

    assert bb.softmax(x).tolist() == [[0, 0], [1, 0]]


def test_a_masked_program_runs_as_written():
    def causal(x):
        seen = bb.arange(x.shape[0])[:, None] >= bb.arange(x.shape[1])
        return bb.softmax(bb.where(seen, x, -np.inf))

    np.testing.assert_allclose(causal(torch.from_numpy(X)).numpy(), causal(X), rtol=1e-12)


def test_a_choice_of_two_numbers_is_of_torchs_usual_dtype():
    found = bb.where(torch.tensor([True, False]), 1.0, -np.inf)

    assert found.dtype == torch.float32
    assert found.tolist() == [1.0, -np.inf]


def test_custom_gets_numpy_arrays_of_any_dtype():
    def flipped(x, times):
        assert isinstance(x, np.ndarray)
        return np.flip(x) * times

    x = torch.arange(6.0).reshape(2, 3).to(torch.bfloat16)
    found = bb.custom(flipped, x, 2.0, shape=(2, 3))

    assert isinstance(found, torch.Tensor)
    assert found.tolist() == [[10, 8, 6], [4, 2, 0]]


def test_gradients_pass():
    x = torch.ones(3, requires_grad=True)
    bb.sum(bb.square(bb.exp(x))).backward()

    np.testing.assert_allclose(x.grad.numpy(), 2 * np.exp(2.0), rtol=1e-6)


def test_heads_that_do_not_fit_are_refused():
    with pytest.raises(bb.TraceError, match="an axis of 6 does not split into 4 heads"):
        bb.split_heads(torch.from_numpy(X), 4)


def test_folds_of_a_tensor_without_axes():
    """Torch takes it for one of one axis; NumPy refuses."""
    number = torch.tensor(2.0)
    for fold in (torch.sum, torch.mean, torch.amax, torch.prod):
        assert torch.equal(bb.jit(lambda x, fold=fold: fold(x, dim=0))(number), number)
    with pytest.raises(bb.TraceError, match="sum: axis 1 is out of range for 0 axes"):
        bb.jit(lambda x: x.sum(1))(number)
    with pytest.raises(bb.TraceError, match="sum: axis 0 is out of range for 0 axes"):
        bb.jit(lambda x: x.sum(axis=0))(np.array(2.0))
