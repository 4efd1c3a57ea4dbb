"""Modules of ``torch.nn`` that ask tensors for attributes, or call functions of torch in C."""

import numpy as np
import pytest

import blockbuster as bb

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

DOUBLE = torch.float64
MASK = torch.ones(5, 5).triu(1).bool()


def attention(x, *, heads, **named):
    return heads(x, x, x, **named)[0]


LAYERS = {
    "RNNCell": (nn.RNNCell(5, 7), (3, 5)),
    "GRUCell of one": (nn.GRUCell(5, 7), (5,)),
    "LSTMCell": (nn.LSTMCell(5, 7), (3, 5)),
    "InstanceNorm2d": (nn.InstanceNorm2d(3, affine=True), (2, 3, 5, 4)),
    "InstanceNorm1d of one": (nn.InstanceNorm1d(3, track_running_stats=True), (3, 5)),
    "BatchNorm2d without statistics": (nn.BatchNorm2d(3, track_running_stats=False), (2, 3, 5, 4)),
    "Softmax2d": (nn.Softmax2d(), (2, 3, 4, 5)),
    "Softmin": (nn.Softmin(1), (4, 6)),
    "AvgPool1d": (nn.AvgPool1d(3), (2, 4, 7)),
    "AdaptiveMaxPool2d": (nn.AdaptiveMaxPool2d((2, 1)), (2, 3, 4, 6)),
    "PixelShuffle": (nn.PixelShuffle(2), (2, 8, 3, 4)),
    "Upsample": (nn.Upsample(scale_factor=2), (2, 3, 4, 5)),
    "patches": (nn.Conv2d(3, 5, 2, 2), (2, 3, 6, 5)),
    "Dropout2d": (nn.Sequential(nn.Dropout2d(), nn.PReLU(), nn.AlphaDropout()), (2, 3, 4, 5)),
    "TransformerEncoderLayer": (nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), (2, 5, 8)),
    "TransformerEncoder": (
        nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, norm_first=True), 2,
                              enable_nested_tensor=False), (5, 2, 8)),
}  # fmt: skip

HEADS = {
    "tokens first": (dict(), (5, 2, 8), {}),
    "batch first": (dict(batch_first=True), (2, 5, 8), dict(need_weights=False)),
    "one": (dict(bias=False), (5, 8), {}),
    "with a token": (dict(add_bias_kv=True, add_zero_attn=True), (5, 2, 8), dict(attn_mask=MASK)),
    "causal": (dict(batch_first=True), (2, 5, 8),
               dict(attn_mask=MASK, is_causal=True, need_weights=False)),
    "padded": (dict(batch_first=True), (2, 5, 8),
               dict(key_padding_mask=torch.arange(5)[None] > torch.tensor([[4], [2]]))),
    "a mask of each head": (dict(batch_first=True), (2, 5, 8),
                            dict(attn_mask=torch.arange(100.0, dtype=DOUBLE).reshape(4, 5, 5))),
}  # fmt: skip


def close(function, *shape):
    x = torch.randn(shape, dtype=DOUBLE, generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        program = bb.trace(lambda x: function(x), x=x)
        wanted = function(x)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    for found, right in zip(program.numpy({"x": x.numpy()}).values(), wanted, strict=True):
        np.testing.assert_allclose(found, right.numpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", LAYERS)
def test_a_module_is_torchs(name):
    module, shape = LAYERS[name]
    close(module.double().eval(), *shape)


@pytest.mark.parametrize("name", HEADS)
def test_attention_of_heads_is_torchs(name):
    made, shape, asked = HEADS[name]
    heads = nn.MultiheadAttention(8, 2, **made).double().eval()
    close(lambda x: attention(x, heads=heads, **asked), *shape)


@pytest.mark.parametrize(("function", "message"), [
    (lambda h, x: h(x, x, x, attn_mask=x[0, :, :5])[0], "asks whether its mask is a tensor"),
    (lambda h, x: h.train()(x, x, x)[0], "draws random numbers"),
    (lambda h, x: h(x, x[..., :4], x[..., :4])[0], "4 and 8 differ|8 and 4 differ"),
    (lambda h, x: h(x, x, x, attn_mask=MASK[:1])[0], "a mask of one row or column"),
    (lambda h, x: h(x[..., :4], x, x)[0], "attention of 4 features, 2 heads, made for 8"),
])  # fmt: skip
def test_attention_that_is_refused(function, message):
    heads = nn.MultiheadAttention(8, 2, dropout=0.1, batch_first=True).eval()
    with pytest.raises(bb.TraceError, match=message):
        bb.trace(lambda x: function(heads, x), x=torch.ones(2, 5, 8))


@pytest.mark.filterwarnings("ignore:Implicit dimension choice", "ignore:torch.chain_matmul")
def test_calls_that_torch_warns_of():
    close(lambda x: (nn.Softmax()(x), nn.LogSoftmax()(x), nn.Softmin()(x)), 4, 6)
    close(nn.Softmax(), 2, 3, 4)
    close(lambda x: torch.chain_matmul(x, x.T, x), 4, 6)


def test_attributes_of_tensors():
    def asked(x):
        plain = not (x.is_nested or x.is_sparse or x.is_quantized or x.is_cuda or x.is_complex())
        assert plain
        assert x.is_cpu
        assert x.layout == torch.strided
        return x * x.itemsize + x.shape.numel()

    close(asked, 2, 3)
    with pytest.raises(bb.TraceError, match=r"x\.H is for matrices"):
        bb.trace(lambda x: x.H, x=torch.ones(2, 3, 4))


def test_a_loop_over_rows_asks_for_their_number():
    message = r"loop over: how many rows \(M, N\) has is not known(.|\n)*M=4 N"
    with pytest.raises(bb.TraceError, match=message):
        bb.trace(lambda x: sum(x), x="M N")
    with pytest.raises(bb.TraceError, match="a loop in Python over 1025 rows"):
        bb.trace(lambda x: sum(x), x="M=1025 N")
    with pytest.raises(TypeError, match="no axes"):
        bb.trace(lambda x: [*x.sum()], x="M N")
    a, b = bb.jit(lambda x: (lambda a, b: (a + b, a - b))(*x))(np.array([[1.0, 2.0], [3.0, 5.0]]))
    np.testing.assert_array_equal((a, b), [[4.0, 7.0], [-2.0, -3.0]])


def test_changes_of_rows_in_a_loop_show():
    def changed(x):
        y = x * 1.0
        for at, row in enumerate(y):
            row += at
        return y

    close(changed, 3, 2)
