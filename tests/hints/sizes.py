"""Hints about sizes, shapes, indices and the dims of inputs."""

import math
from functools import partial

import numpy as np
import torch

import blockbuster as bb
from tests.hints.tried import Tried, traced

XY = {"x": "M N", "y": "K"}


def conv_by_hand(x, w):
    """A convolution along rows, tap by tap: the taps are a loop of Python's."""
    taken = x.shape[1] - w.shape[0] + 1
    total = 0
    for tap in range(w.shape[0]):
        total = total + x[:, tap : tap + taken] * w[tap]
    return total


def deep(x):
    size = x.shape[0]
    for _ in range(5000):
        size = size + x.shape[1] * 2
        size = size / 3
    return x * size


SIZES = (
    traced('"K=8"', lambda x, y: x * (x.shape[0] // y.shape[0]), fixed={"y": "K=8"},
           then="may be no whole number", **XY),
    traced('"K=8"', lambda x, y: x * (x.shape[0] // y.shape[0]), fixed={"x": "M=64 N", "y": "K=8"},
           **XY),
    traced("use /", lambda x, y: x * (x.shape[0] // y.shape[0]),
           lambda x, y: x * (x.shape[0] / y.shape[0]), **XY),
    traced('"M=8" and "K=8"', lambda x, y: x * (x.shape[0] / y.shape[0] // 2),
           fixed={"x": "M=8 N", "y": "K=8"}, **XY),
    traced('"K=8"', lambda x, y: x * (x.shape[0] // (2 * y.shape[0])),
           fixed={"x": "M=64 N", "y": "K=8"}, **XY),
    traced('"M=8"', lambda x: x * (x.shape[0] % 8), fixed={"x": "M=8 N"}),
    traced("/ takes any number", lambda x: x * (x.shape[0] // 2.5),
           lambda x: x * (x.shape[0] / 2.5)),
    traced("at least 1", lambda x: x * (x.shape[0] // 0), lambda x: x * (x.shape[0] / 1)),
    traced('"N=8"', lambda x: x * (100 // x.shape[1]), fixed={"x": "M N=8"}),
    traced("use /", lambda x: x * (100 // x.shape[1]), lambda x: x * (100 / x.shape[1])),
    traced('"N=8"', lambda x: x * (x.shape[1] // 3), fixed={"x": "M N=8"}),
    traced("return an array that has an axis", lambda x: x * (x.shape[1] // 2),
           lambda x: x[:, : x.shape[1] // 2]),
    traced('"K=8"', conv_by_hand, x="M N", w="K", fixed={"w": "K=8"}),
    traced('"M=8"', lambda x: x if x.shape[0] > 4 else -x, fixed={"x": "M=8 N"}),
    traced("an example array", lambda x: x if x.shape[0] > 4 else -x,
           fixed={"x": np.zeros((3, 4))}),
    traced("n ** 0.5", lambda x: x / math.sqrt(x.shape[1]), lambda x: x / x.shape[1] ** 0.5),
    traced('"N=8"', lambda x: x / math.log(x.shape[1]), fixed={"x": "M N=8"}),
    traced("make it an input", lambda x: x + (2**63 - 3), lambda x, n: x + n, x="int64: M",
           fixed={"n": "int64: 1"}),
    traced("compute the number before", deep, lambda x: x * 2.0),
    traced("x[1:-1]", lambda x: bb.pad(x, ((-1, 0), (0, 0))), lambda x: x[1:]),
    traced("from 1 to 2**63 - 1", lambda x: x, fixed={"x": "M D=1"}, x="M D=0"),
    traced("np.zeros((3, 0))", lambda x: x + 1, fixed={"x": np.zeros((3, 0))}, x="M D=0"),
    traced('between dims: "M D"', lambda x: x + 1, fixed={"x": "M D"}, x="M, D"),
    traced("dtypes are", lambda x: x, fixed={"x": "int64: M"}, x="integer: M"),
    Tried("functools.partial", lambda: bb.trace(lambda x, n: x * n, x="M", n=3),
          lambda: bb.trace(partial(lambda x, n: x * n, n=3), x="M")),
    traced("letters, digits and _", lambda **k: k["a b"] + 1, lambda **k: k["a_b"] + 1,
           **{"a b": "M"}, fixed={"a_b": "M"}, then="letters, digits"),
    Tried("it takes x", lambda: bb.trace(lambda x: x + 1, x="M", y="N"),
          lambda: bb.trace(lambda x: x + 1, x="M")),
    Tried('bb.trace(fn, y="M N")', lambda: bb.trace(lambda x, y: x + y, x="M N"),
          lambda: bb.trace(lambda x, y: x + y, x="M N", y="M N")),
)  # fmt: skip

SHAPES = (
    traced("one axis takes", lambda x: x.reshape(-1, -1), lambda x: x.reshape(-1)),
    traced("at least 0", lambda x: x.reshape(-2, 2), lambda x: x.reshape(-1, 2), x="8"),
    traced("write the extent for -1", lambda x, y: x.reshape(x.shape[0] + y.shape[0], -1), **XY,
           fixed={"x": "M=6 N=4", "y": "K=2"}),
    traced('fixed sizes: "M=64"', lambda x, y: x.reshape(y.shape[0], -1), **XY,
           fixed={"x": "M=8 N=4", "y": "K=2"}),
    traced('"N=8" and "M=8"', lambda x: x * (x.shape[1] % x.shape[0]), fixed={"x": "M=8 N=8"}),
    traced('"K=8"', lambda x, y: x * (x.shape[0] // (y.shape[0] + 1)), **XY,
           fixed={"x": "M=64 N", "y": "K=8"}),
    traced("take the extents from x.shape", lambda x: x.reshape(4, 8),
           lambda x: x.reshape(x.shape[1], x.shape[0])),
    traced("give the sizes numbers", lambda x: x.reshape(4, 8), fixed={"x": "M=8 N=4"}),
    traced('x="M 1"', lambda x: x.squeeze(1), fixed={"x": "M 1"}),
    traced("use *", lambda x: x @ bb.sum(x), lambda x: x * bb.sum(x)),
    traced("positive int: 8", lambda x: bb.split_heads(x, 0), lambda x: bb.split_heads(x, 8)),
    traced("bb.arange(x.shape[-1])", lambda x: x + bb.arange(x.shape[0] ** 0.5),
           lambda x: x + bb.arange(x.shape[-1])),
    traced("sizes such as x.shape[0]", lambda x: bb.broadcast_to(x, ("Q", "N")),
           lambda x: bb.broadcast_to(x, x.shape)),
    traced("their products and quotients", lambda x: x.reshape(x.shape[0] / 2.5, -1),
           lambda x: x.reshape(x.shape[0] * x.shape[1] / 2, 2)),
    traced("their products and quotients", lambda x: x.reshape(x.shape[0] / 4, 16),
           lambda x: x.reshape(x.shape[0] / 3, 12), x=np.ones((6, 4))),
    traced("sizes from x.shape", lambda x: bb.custom(np.sort, x, shape=("Q", "N")),
           lambda x: bb.custom(np.sort, x, shape=x.shape)),
    traced("steps are whole", lambda x: x[..., ::0.5], lambda x: x[..., ::2]),
    traced("steps are whole", lambda x: x[..., ::0], lambda x: x[..., ::2]),
    traced("x[0] can be traced", lambda x: x["a"], lambda x: x[0]),
    traced("x[0] can be traced", lambda x: x[0, 0, 0], lambda x: x[0, 0]),
    traced("x[0] can be traced", lambda x: x[: x.shape[0] ** 0.5], lambda x: x[: x.shape[0]]),
    traced("bb.where(mask, x, 0)", lambda x: x[x > 0], lambda x: bb.where(x > 0, x, 0)),
    traced("one after the other", lambda x, i: x[i, None, i], lambda x, i: x[i][:, None],
           x="M N", i="int64: K"),
    traced("as many axes", lambda x, i: np.take_along_axis(x, i, 1),
           lambda x, i: np.take_along_axis(x, i[:, None], 1), x="M N", i="int64: M"),
    traced("of two axes and more", lambda x: bb.diagonal(x), fixed={"x": "M=4 N"},
           then="ends the diagonal is not known", x="M"),
    traced('"M=4 N=3"', lambda x: bb.diagonal(x), fixed={"x": "M=4 N=3"}),
    traced("leave out fewer", lambda x: torch.nn.functional.pad(x, (-3, -2)),
           lambda x: torch.nn.functional.pad(x, (-1, -2)), x="M=8 N=4"),
    traced('give the axis a size, "M=4 N"', lambda x: sum(row for row in x), fixed={"x": "M=4 N"}),
    traced("index it, x[0]", lambda x: next(iter(x)), lambda x: x[0]),
    traced("bb.sum(x, axis=0)", lambda x: sum(row for row in x), lambda x: bb.sum(x, axis=0),
           x="M=5000 N"),
    traced("x.mT", lambda x: x.H, lambda x: x.mT, x=torch.zeros(2, 3, 4)),
    traced("fixed sizes", lambda x, y: bb.concat([x, y], axis=0)[y.shape[0] :],
           x="M N", y="K N", fixed={"x": "M=6 N", "y": "K=4 N"}),
    traced("before they are joined", lambda x, y: bb.concat([x, y], axis=0)[x.shape[0] // 2 :],
           lambda x, y: bb.concat([x[x.shape[0] // 2 :], y], axis=0), x="M N", y="K N"),
    traced('fixed sizes: "M=64"', lambda x: np.roll(x, 1), fixed={"x": "M=64 N=3"}),
)  # fmt: skip

CASES = (*SIZES, *SHAPES)
