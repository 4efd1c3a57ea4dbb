"""Training by ``torch.compile``: values and gradients are eager torch's, and nothing runs eagerly.

Random functions with views, changes in place, and random numbers; then what people train with.
"""

from random import Random

import pytest
import torch.nn.functional as F
from torch import nn

import blockbuster as bb

torch = pytest.importorskip("torch", reason="torch is not installed")

from tests.torch_graphs.test_backend import assert_same, compiled  # noqa: E402
from tests.torch_graphs.test_random_graphs import apart  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")

AT = torch.tensor([[2], [0], [3], [3]])


@pytest.fixture(autouse=True)
def _nothing_captured():
    torch._dynamo.reset()


def changed(x, change):
    y = x.clone()
    change(y)
    return y


STEPS = {
    "exp": lambda x: (x * 0.3).exp(),
    "softmax": lambda x: x.softmax(-1),
    "norm": lambda x: F.layer_norm(x, (4,)),
    "turn": lambda x: x.t(),
    "row": lambda x: x[1:2].expand(4, 4),
    "halves": lambda x: torch.cat(x.split(2, 1)[::-1], 1),
    "every second": lambda x: x[:, ::2].repeat(1, 2),
    "column": lambda x: x[:, 2:3] * x,
    "item": lambda x: x[:, -1] + x,
    "diagonal": lambda x: x.diagonal() * x,
    "maximum": lambda x: x - x.max(1, keepdim=True)[0],
    "deviation": lambda x: x * x.std(0),
    "looked up": lambda x: x.gather(1, AT) - x,
    "sums": lambda x: x.cumsum(0) * 0.5,
    "bounded": lambda x: x.clamp(-0.5, 1),
    "chosen": lambda x: torch.where(x > 0.3, x * 2, x.sin()),
    "rounded": lambda x: x + (x.round() - x).detach(),
    "dropped": lambda x: F.dropout(x, 0.3),
    "sorted": lambda x: x.sort(-1)[0],
    "row set": lambda x: changed(x, lambda y: y[1].copy_(x[0] * 2)),
    "column scaled": lambda x: changed(x, lambda y: y[:, 1].mul_(3)),
    "view shifted": lambda x: changed(x, lambda y: y.view(-1)[2:9].add_(1)),
}
OF_TWO = {
    "add": torch.add,
    "product": lambda x, y: x @ y * 0.3,
    "stack": lambda x, y: torch.stack((x, y)).mean(0),
    "part copied": lambda x, y: changed(x, lambda z: z[:2].copy_(y[2:])),
    "multiplied": lambda x, y: changed(x, lambda z: z.mul_(y)),
}


def drawn(seed):
    """A random function of two arrays of 4 x 4, with several results."""
    random = Random(seed)
    steps = [random.choice([*STEPS, *OF_TWO]) for _ in range(6)]
    places = [(random.randrange(at + 2), random.randrange(at + 2)) for at in range(len(steps))]
    results = [len(steps) + 1, *random.sample(range(len(steps) + 2), 2)]

    def function(x, y):
        values = [x, y]
        for step, (one, other) in zip(steps, places, strict=True):
            args = [values[one]] if step in STEPS else [values[one], values[other]]
            values.append((STEPS.get(step) or OF_TWO[step])(*args))
        return [values[place] for place in results]

    return function


def trained(function, count=2):
    """The results of a function of ``count`` arrays of 4 x 4; and the arrays' gradients."""
    random = torch.Generator().manual_seed(0)
    given = [torch.randn(4, 4, generator=random, requires_grad=True) for _ in range(count)]
    torch.manual_seed(1)
    results = function(*given)
    sum(one.square().sum() for one in results).backward()
    return results, given, [one.grad for one in given if one.grad is not None]


@pytest.mark.parametrize("seed", range(2))
def test_random_functions_divided(seed, monkeypatch):
    """Their pieces run as torch's functions here."""
    monkeypatch.setattr("blockbuster.torch_graphs.backend.compiled_piece", apart)
    ours = torch.compile(drawn(seed), backend=bb.torch_backend)
    assert_same(trained(ours), trained(drawn(seed)))


@pytest.mark.parametrize("seed", range(2, 26))
def test_random_functions_compiled(seed):
    ours, _ = compiled(drawn(seed))
    assert_same(trained(ours), trained(drawn(seed)))


def contrasted(x, y):
    near = F.normalize(x, dim=-1) @ F.normalize(y, dim=-1).t() * 10
    at = torch.arange(4)
    return [F.cross_entropy(near, at) + F.cross_entropy(near.t(), at)]


def gated(x, y):
    return [F.rms_norm(x, (4,)) * F.silu(y[:, :2]).repeat(1, 2) + F.dropout(F.gelu(y), 0.1)]


def smoothed(x, y):
    return [F.cross_entropy(x.t() + F.dropout(y, 0.2), AT[:, 0], label_smoothing=0.1)]


@pytest.mark.parametrize("function", [contrasted, gated, smoothed])
def test_each_graph_is_one_piece(function):
    ours, told = compiled(function, strict=True)
    assert_same(trained(ours), trained(function))
    graphs = [text for text in told if text.startswith("captured graph")]
    assert len(graphs) == 2
    assert all("in 1 compiled piece" in text for text in graphs)


OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "adamw": lambda p: torch.optim.AdamW(p, 0.01, foreach=False),
    "adamw of lists": lambda p: torch.optim.AdamW(p, 0.01, foreach=True),
    "rmsprop of lists": lambda p: torch.optim.RMSprop(p, 0.01, momentum=0.5, foreach=True),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_step(name):
    def steps(compile_step):
        torch.manual_seed(0)
        model = nn.Linear(4, 3)
        optimizer = OPTIMIZERS[name](model.parameters())
        step = compile_step(optimizer.step)
        for factor in (1.0, 3.0):
            (model(torch.ones(2, 4)) * factor).square().sum().backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            step()
            optimizer.zero_grad()
        return [one.detach() for one in model.parameters()]

    assert_same(steps(lambda step: compiled(step, strict=True)[0]), steps(lambda step: step))
