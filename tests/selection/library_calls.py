"""Errors of plans with calls of a library, in Triton's interpreter, as JSON."""

import json
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import torch

import blockbuster as bb
from blockbuster.machines.library import Library
from blockbuster.runtime.run_plan import run_in_interpreter
from blockbuster.selection.priors import PRIORS

F = torch.nn.functional


GIVEN_AWAY = replace(PRIORS, attention_by_host_us=-1e4)


class Generous(Library):
    """A library whose calls give time back, so that they are chosen at any size."""

    rate = 1.0

    def __init__(self):
        pass

    def convolution_us(self, of):
        return -1e4

    def attention_us(self, *_, is_causal, dtype):
        return -1e4


def layer(x, w, b):
    return torch.relu(x @ w + b) * 0.5


def convolution(x, w, b):
    return torch.relu(F.conv2d(x, w, b, padding=1, stride=2))


def turned(x, w):
    y = F.conv_transpose2d(x, w, stride=2, padding=1)
    return F.instance_norm(y)


def separable(x, w, u):
    return F.conv2d(torch.relu(F.conv2d(x, w, padding=1, groups=6)), u)


def batched(x, w):
    return torch.softmax(torch.bmm(x, w.mT), -1)


def queries(x, w, g):
    """A product in front of whose rows an axis of one element stands, for a kernel of its own."""
    q = F.linear(x, w).unflatten(-1, (-1, 96))
    return F.rms_norm(q, (96,), g, eps=1e-3).transpose(1, 2)


def chain(x, w, u):
    y = x @ w
    z = torch.softmax(y, -1)
    return z @ u


def attention(q, k, v):
    return F.scaled_dot_product_attention(q, k, v) * 0.5


CASES = {
    "layer": (layer, ((33, 40), (40, 24), (24,)), 1),
    "convolution": (convolution, ((2, 3, 9, 7), (5, 3, 3, 3), (5,)), 1),
    "turned": (turned, ((2, 4, 5, 7), (4, 3, 3, 3)), 1),
    "separable": (separable, ((2, 6, 5, 7), (6, 1, 3, 3), (4, 6, 1, 1)), 1),
    "attention": (attention, ((2, 33, 16), (2, 40, 16), (2, 40, 24)), 1),
    "batched": (batched, ((3, 33, 40), (3, 24, 40)), 1),
    "chain": (chain, ((33, 40), (40, 24), (24, 16)), 1),
}


def error(fn, shapes, calls):
    """The largest error of a plan with so many calls, over the largest result."""
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype(np.float16) for shape in shapes]
    program = bb.trace(
        lambda **given: fn(*given.values()),
        **{f"a{n}": torch.from_numpy(array) for n, array in enumerate(arrays)},
    )
    given = {f"a{n}": array for n, array in enumerate(arrays)}
    exact = fn(*(torch.from_numpy(array.astype(np.float64)) for array in arrays)).numpy()
    sizes = {
        dim: size
        for one in program.inputs
        for dim, size in zip(one.shape, given[one.name].shape, strict=True)
        if dim != 1
    }
    with (
        patch("blockbuster.selection.plans.call_prices.library_of", lambda _: Generous()),
        patch("blockbuster.selection.plans.forms.library_of", lambda _: Generous()),
        patch("blockbuster.selection.plans.call_prices._product_us", lambda *_: -1e4),
        patch("blockbuster.selection.plans.call_prices.PRIORS", GIVEN_AWAY),
    ):
        plan = bb.select(program, sizes, machine="h100")
    assert len(plan.calls) == calls, [call.name for call in plan.calls]
    (found,) = run_in_interpreter(plan, given)
    return float(np.abs(found - exact).max() / np.abs(exact).max())


def queries_error():
    """The same of a plan that was chosen for larger sizes: its call writes what a kernel reads."""
    program = bb.trace(queries, x="1 S E", w="4032 E", g="96")
    plan = bb.select(program, dict(S=1024, E=4096), machine="h200")
    assert [call.axes[0][0] for call in plan.calls] == [None], plan.calls
    rng = np.random.default_rng(0)
    shapes = dict(x=(1, 5, 24), w=(4032, 24), g=(96,))
    given = {name: rng.standard_normal(s).astype(np.float16) for name, s in shapes.items()}
    exact = queries(*(torch.from_numpy(a.astype(np.float64)) for a in given.values())).numpy()
    (found,) = run_in_interpreter(plan, given)
    return float(np.abs(found - exact).max() / np.abs(exact).max())


if __name__ == "__main__":
    found = {name: error(*case) for name, case in CASES.items()}
    print(json.dumps({**found, "queries": queries_error()}))
