"""Everyday code for torch, traced and jitted as it is, gives torch's results."""

import inspect

import numpy as np
import pytest

import blockbuster as bb

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from tests.compile.torch_code import (  # noqa: E402
    PreNormBlock,
    SwiGLU,
    VitBlock,
    grouped_attention,
    masked_loss,
)
from tests.parameters import one_in  # noqa: E402

LAYERS = {
    "pre-norm block": (PreNormBlock, 16),
    "SwiGLU": (SwiGLU, 16),
    "ViT block": (VitBlock, 12),
    "sequence": (lambda: nn.Sequential(nn.Linear(8, 12), nn.ReLU(), nn.Linear(12, 4)), 8),
}


@pytest.fixture(autouse=True)
def inference():
    torch.manual_seed(3)
    with torch.no_grad():
        yield


def close(found, wanted):
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", one_in(4, LAYERS, first=1))
def test_a_layer_jitted_as_it_is(name):
    make, width = LAYERS[name]
    layer = make().eval()
    x = torch.randn(2, 6, width)
    jitted = bb.jit(layer)
    close(jitted(x), layer(x))
    assert "traced again" not in str(jitted.report_for(x))


def test_changes_of_a_layer_are_seen():
    layer = SwiGLU().eval()
    jitted = bb.jit(layer)
    for batch in (2, 3):
        x = torch.randn(batch, 6, 16)
        close(jitted(x), layer(x))
    layer.gate.weight.mul_(1.1)  # as an optimizer does
    close(jitted(x), layer(x))
    layer.up.weight.data.mul_(0.9)
    close(jitted(x), layer(x))
    layer.down = nn.Linear(24, 16)
    close(jitted(x), layer(x))
    layer.up.register_forward_hook(lambda module, args, result: result * 2.0)
    close(jitted(x), layer(x))


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_traced_from_dims(name):
    make, width = LAYERS[name]
    layer = make().eval()
    x = torch.randn(2, 6, width)

    (name,) = inspect.signature(layer.forward).parameters
    program = bb.trace(layer.forward, **{name: f"B T C={width}"})
    close(torch.tensor(program.numpy({name: x.numpy()})["out"]), layer(x).double())


def test_dropout_in_training_is_refused():
    with pytest.raises(bb.TraceError, match=r"draws random numbers(.|\n)*model.eval"):
        bb.jit(PreNormBlock())(torch.randn(2, 6, 16))


def test_grouped_attention_with_rotary_positions():
    x, wq, wk, wv = (torch.randn(*s) for s in ((2, 5, 12), (32, 12), (16, 12), (16, 12)))
    angles = torch.outer(torch.arange(5.0), 10000.0 ** -(torch.arange(8.0) % 4 / 4))
    arguments = x, wq, wk, wv, angles.cos(), angles.sin()

    close(bb.jit(grouped_attention)(*arguments), grouped_attention(*arguments))
    program = bb.trace(
        grouped_attention, x="B T C", wq="I=32 C", wk="J=16 C", wv="J=16 C", cos="T E", sin="T E"
    )
    names = [given.name for given in program.inputs]
    found = program.numpy({n: a.numpy() for n, a in zip(names, arguments, strict=True)})
    close(torch.tensor(found["out"]), grouped_attention(*arguments).double())


def test_a_loss_of_labels_and_a_mask():
    logits, labels = torch.randn(6, 5), torch.tensor([0, 4, 2, 1, 2, 3])
    mask = torch.tensor([True, True, False, True, True, False])
    wanted = masked_loss(logits, labels, mask)

    found = bb.jit(masked_loss)(logits, labels, mask)
    assert [*found] == [*wanted]
    close([*found.values()], [*wanted.values()])
    arrays = logits.numpy(), labels.numpy(), mask.numpy()
    of_numpy = bb.jit(masked_loss)(*arrays)
    assert all(isinstance(value, np.ndarray | np.generic) for value in of_numpy.values())
    pairs = zip(of_numpy.values(), wanted.values(), strict=True)  # NumPy makes float64 of masks
    close([torch.tensor(value, dtype=one.dtype) for value, one in pairs], [*wanted.values()])


def test_an_embedding_and_its_logits():
    table = nn.Embedding(11, 8, padding_idx=0)
    head = nn.Linear(8, 11, bias=False)
    head.weight = table.weight
    tokens = torch.tensor([[1, 5, 0], [10, 2, 2]])
    function = lambda tokens: head(torch.tanh(table(tokens)))  # noqa: E731

    close(bb.jit(function)(tokens), function(tokens))


class ByName(nn.Module):
    """Many layers, found by names that the code puts together."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count, self.last = count, "relu"
        for at in range(count):
            self.add_module(f"layer{at}", nn.Linear(4, 4))

    def forward(self, x):
        for at in range(self.count):
            x = getattr(self, f"layer{at}")(x)
        return getattr(nn.functional, self.last)(x)


def again(jitted, x):
    return "traced again" in str(jitted.report_for(x))


def test_layers_that_are_found_by_name_are_watched():
    layers, x = ByName(30).eval(), torch.randn(2, 4)
    jitted = bb.jit(layers)
    close(jitted(x), layers(x))
    assert not again(jitted, x)
    layers.layer7 = nn.Linear(4, 4)
    close(jitted(x), layers(x))
    layers.last = "silu"
    close(jitted(x), layers(x))
    jitted = bb.jit(lambda x: getattr(torch, layers.last)(x))
    layers.last = "exp"
    close(jitted(x), x.exp())
    assert again(jitted, x)


def test_graphs_of_torchs_are_watched():
    layers = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3)).eval()
    graph, x = torch.fx.symbolic_trace(layers), torch.randn(2, 4)
    assert 'getattr(self, "0")' in graph.code
    jitted = bb.jit(graph)
    close(jitted(x), layers(x))
    assert not again(jitted, x)
    layers[0].weight.mul_(2.0)
    close(jitted(x), layers(x))
    graph.register_module("0", nn.Linear(4, 6))
    close(jitted(x), graph(x))
    (output,) = (node for node in graph.graph.nodes if node.op == "output")
    with graph.graph.inserting_before(output):
        output.args = (graph.graph.call_function(torch.exp, output.args),)
    graph.recompile()
    close(jitted(x), graph(x))
