"""A jitted function draws random numbers of torch at each call, as the function itself does."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import blockbuster as bb
from blockbuster.frontend.random_numbers import Draws

X = torch.tensor([[1.0, -2.0, 3.0], [0.5, 0.25, -4.0]])
ONES = torch.ones(2, 3)
GRU = nn.GRU(3, 3, 2, dropout=0.5).requires_grad_(False)


def called(function, *given):
    """A function that finds another in its closure, not by its name."""
    return lambda x: x + function(torch.empty(2, 3), *given)


@pytest.mark.parametrize("drawn", [
    lambda x: x + torch.rand(2, 3), lambda x: x + torch.randn(x.shape),
    lambda x: x * torch.rand(()), lambda x: x + torch.randperm(3),
    lambda x: x + torch.normal(0.0, 1.0, (2, 3)), lambda x: x + torch.empty(2, 3).normal_(),
    lambda x: x + torch.zeros(2, 3).uniform_(), lambda x: x @ F.dropout(torch.ones(3, 3), 0.5),
    lambda x: x * torch.dropout(ONES, 0.5, True), lambda x: x + F.gumbel_softmax(ONES, -1),
    lambda x: x + F.rrelu(-ONES, training=True), lambda x: x + torch.rrelu(-ONES, 0.1, 9.0, True),
    lambda x: x + nn.init.trunc_normal_(torch.empty(2, 3)),
    lambda x: x * F.alpha_dropout(ONES, 0.5, training=True),
    lambda x: x * torch.alpha_dropout(ONES, 0.5, True),
    lambda x: x * torch.feature_dropout(torch.ones(2, 3, 1), 0.5, True)[..., 0],
    lambda x: x * F.dropout1d(torch.ones(2, 3, 1), 0.5)[..., 0],
    lambda x: x + GRU(ONES)[0], called(torch.Tensor.normal_), called(torch.Tensor.uniform_, 2, 3),
])  # fmt: skip
def test_random_numbers_of_torch_are_drawn_at_each_call(drawn):
    jitted = bb.jit(drawn)

    for seed in (1, 2, 1):
        torch.manual_seed(seed)
        found = jitted(X)
        torch.manual_seed(seed)
        torch.testing.assert_close(found, drawn(X))
    torch.manual_seed(1)
    other = [jitted(X) for _ in range(9)]  # of one seed, one after the other
    assert any(not torch.equal(found, each) for each in other[1:])
    assert "note: traced again at each call, because it calls " in str(jitted.report_for(X))


class Dropped(nn.Module):
    def __init__(self):
        super().__init__()
        self.dropout, self.rate = nn.Dropout(0.5), 0.5

    def forward(self, x):
        kept = F.dropout(ONES, self.rate, self.training)
        return F.dropout(self.dropout(x) * kept, self.rate, self.training)


def test_what_draws_no_random_numbers_is_not_traced_again():
    module = Dropped().eval()
    jitted = bb.jit(module)
    for x in (X, 2 * X):
        torch.testing.assert_close(jitted(x), x)
    assert "traced again" not in str(jitted.report_for(X))
    module.train()
    with pytest.raises(bb.TraceError, match="draws random numbers"):
        jitted(X)


def test_a_function_that_draws_once_is_watched_from_then_on():
    made = []

    def function(x):
        if not made:
            made.append(F.dropout(torch.ones(2, 3), 0.5))
        return x * made[0]

    jitted = bb.jit(function)
    first = jitted(X)
    assert torch.equal(first, X * made[0])
    assert "traced again" not in str(jitted.report_for(X))
    made[0] = 3 * ONES
    assert torch.equal(jitted(X), 3 * X)


def test_generators_of_gpus_are_asked_once_torch_uses_them(monkeypatch):
    generator = torch.Generator()
    monkeypatch.setattr(torch.cuda, "default_generators", (generator,))
    for used, records, told in ((False, False, False), (True, True, False), (True, False, True)):
        monkeypatch.setattr(torch.cuda, "is_initialized", lambda used=used: used)
        monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda now=records: now)
        draws = Draws()
        assert not draws.reason()
        torch.rand(3, generator=generator)
        assert bool(draws.reason()) == told
