"""Hints about what traced arrays hold, how they change, and what Python asks of them."""

import math

import numpy as np
import torch

import blockbuster as bb
from tests.hints.tried import Tried, traced

MASK = {"x": "bool: M N"}
WHOLE = {"x": "int64: M N"}
OTHER = np.ones(3)
TURNS = np.exp(1j * np.arange(3))


def set_attribute(x):
    x.name = 3
    return x


def copied(x, i, y):
    return x.index_copy(0, i, y)


def change(x):
    x += 1
    return x


def change_a_copy(x):
    x = x.copy()
    x += 1
    return x


def put(value, like=bb.zeros_like):
    def fn(x):
        y = like(x)
        y[0] = value(x) if callable(value) else value
        return y

    return fn


def whole_zeros(x):
    return bb.zeros_like(x).astype(np.int8)


def grow(x):
    y = bb.zeros_like(x)
    y += bb.stack([x, x])
    return y


def add_floats(x):
    y = x + 1
    y += 0.5
    return y


def into_another(x):
    OTHER[:] = x
    return x


def out_of_another(x):
    return np.add(x, 1, out=OTHER)


def broadcast_and_change(x):
    y = bb.broadcast_to(x, (2, *x.shape))
    y += 1
    return y


def broadcast_copy_and_change(x):
    y = bb.broadcast_to(x, (2, *x.shape)).copy()
    y += 1
    return y


def captured_that_changes():
    w = np.ones(30)

    def fn(x):
        y = x + w
        w[0] += 5
        return y

    def copied(x):
        y = x + w.copy()
        w[0] += 5
        return y

    return fn, copied


def changed_list(x, kept):
    kept.append(x)
    return x


def copied_list(x, kept):
    kept = [*kept, x]
    return x, kept[0]


class Foreign:
    """An array of a library that nobody here knows."""

    shape, dtype = (3,), np.dtype("float64")


def squeeze_in_place(x):
    y = x + 0
    y.squeeze_(0)
    return y


def read_after_change(x):
    y = x + 0
    flat = y.reshape(-1)
    y += 1
    return flat, y


def read_before_change(x):
    y = x + 0
    flat = y.reshape(-1) * 1
    y = y + 1
    return flat, y


def number_grows(x):
    s = bb.sum(x)
    s += 0.5
    return s


def masked_heads():
    layer = torch.nn.MultiheadAttention(8, 2, batch_first=True).eval()

    def fn(x, mask):
        return layer(x, x, x, attn_mask=mask > 0, need_weights=False)[0]

    return fn


def attend(x, mask):
    q = x[:, None]
    return torch.nn.functional.scaled_dot_product_attention(q, q, q, attn_mask=mask > 0)


FIRST, COPIED = captured_that_changes()


def of_two_traces():
    held = []
    bb.trace(lambda x: held.append(x) or x, x="M")
    bb.trace(lambda x: x + held[0], x="M")


KINDS = (
    traced("cast to a floating dtype", lambda x: x.astype(np.complex64),
           lambda x: x.astype(np.float32)),
    traced("make integers: mask * 1", lambda x: x << x, lambda x: (x * 1) << (x * 1), **MASK),
    traced("(x > 0) & (y > 0)", lambda x: x & x, lambda x: (x > 0) & (x > 1)),
    traced("use a number, or // and %", lambda x: x & x.shape[0], lambda x: x & 7, **WHOLE),
    traced("from 0 to 255", lambda x: x & 256, lambda x: x & 255, x="uint8: M"),
    traced("cast the array to a wider dtype", lambda x: x & 256,
           lambda x: x.astype(np.int64) & 256, x="uint8: M"),
    traced("use numbers below", lambda x: x & 2**60, lambda x: x & 2**20, x="int64: M"),
    traced("shift the other way", lambda x: x << -1, lambda x: x >> 1, **WHOLE),
    traced("x.astype(np.float64) ** y", lambda x: x**x, lambda x: x.astype(np.float64) ** x,
           **WHOLE),
    traced("1.0 * x", lambda x: x**-1, lambda x: (1.0 * x) ** -1, **WHOLE),
    traced("bb.where(x > 0, x, y)", lambda x: bb.where(x, x, 0), lambda x: bb.where(x > 0, x, 0)),
    traced("use ~mask", lambda x: -x, lambda x: ~x, **MASK),
    traced("mask != other", lambda x: x - x, lambda x: x != x, **MASK),
    traced("/ and bb.floor", lambda x: x // 2.0, lambda x: bb.floor(x / 2.0)),
    traced("bb.trunc(x / y), whose", lambda x: np.fmod(x, 3.0),
           lambda x: x - 3.0 * bb.trunc(x / 3.0)),
    traced("x.astype(np.int64)", lambda x: x + 300, lambda x: x.astype(np.int64) + 300,
           x=np.ones(3, np.int8)),
    traced("floats, bool, int", lambda x: x + 1, x=np.ones(3, np.uint32),
           fixed={"x": np.ones(3, np.int64)}),
    traced("w.real and w.imag are arrays", lambda x: x * x, lambda x, y: (x * x - y * y, 2 * x * y),
           x=TURNS, fixed={"x": TURNS.real, "y": TURNS.imag}),
    traced("positions are integers", lambda x, i: bb.take(x, i, axis=0),
           lambda x, i: bb.take(x, i.astype(np.int64), axis=0), x="M N", i="K"),
    traced("integers in a row", copied, lambda x, i, y: copied(x, i.reshape(-1), y),
           x="M N", i="int64: 2 3", y="6 N"),
    traced("source.to(x.dtype)", copied, lambda x, i, y: copied(x, i, y.to(x.dtype)),
           x="M N", i="int64: 6", y="int64: 6 N"),
    traced("posinf= and neginf=", lambda x: np.nan_to_num(x),
           lambda x: np.nan_to_num(x, posinf=9.0, neginf=-9.0)),
    traced("example arrays", lambda x: np.nan_to_num(x), fixed={"x": np.ones((2, 3))}),
    traced("example arrays", lambda x: x * x.element_size(), fixed={"x": np.ones((2, 3))}),
    traced("reshape, astype and where", set_attribute, lambda x: x.astype(np.float32)),
    traced("leave devices out", lambda x: torch.zeros(3, device=x.device) + x, lambda x: x + 0,
           x="3"),
    traced("take an array of it", lambda x: bb.maximum(x, ("M", "N")), lambda x: bb.maximum(x, x)),
    traced("np.trace(x)", lambda x: x.trace(), lambda x: np.trace(x),
           x="4 4"),
    traced("let fn hold other values", lambda x: bb.custom(np.add, x, 1.0, shape=x.shape),
           lambda x: bb.custom(lambda a: np.add(a, 1.0), x, shape=x.shape)),
)  # fmt: skip

CHANGES = (
    traced("y = y + 1 for y += 1", change, lambda x: x + 1),
    traced("y = x.copy()", change, change_a_copy),
    traced("cast it before", put(1000, whole_zeros), put(100, whole_zeros)),
    traced("one that broadcasts to it", put(lambda x: bb.stack([x, x])), put(lambda x: x[1])),
    traced("y = y + z", grow, lambda x: bb.zeros_like(x) + bb.stack([x, x])),
    traced("y = y + z", add_floats, lambda x: (x + 1) + 0.5, **WHOLE),
    traced("bb.zeros_like(x)", into_another, put(lambda x: x[0]), x="3"),
    traced("bb.zeros_like(x) as out=", out_of_another,
           lambda x: np.add(x, 1, out=bb.zeros_like(x)), x="3"),
    traced("y = x.copy()", broadcast_and_change, broadcast_copy_and_change),
    traced("w.copy()", FIRST, COPIED, x="30"),
    Tried("items = [*items]", lambda: bb.jit(changed_list)(np.ones(3), [np.ones(2)]),
          lambda: bb.jit(copied_list)(np.ones(3), [np.ones(2)])),
    traced("np.asarray(array)", lambda x: x + np.ma.ones(3),
           lambda x: x + np.asarray(np.ma.ones(3)), x="3"),
    traced("x[...] = value", lambda x: bb.sum(x).fill(0), lambda x: put(0)(x)),
    Tried("return", of_two_traces,
          lambda: bb.trace(lambda x, y: x + y, x="M", y="M")),
)  # fmt: skip

PYTHON = (
    traced("bb.where(condition, x, y)", lambda x: x if x > 0 else -x,
           lambda x: bb.where(x > 0, x, -x)),
    traced("(a < x) & (x < b)", lambda x: 0 < x < 1, lambda x: (x > 0) & (x < 1)),
    traced("bb.exp(x) for math.exp(x)", lambda x: math.exp(x), lambda x: bb.exp(x)),
    traced("o = bb.zeros_like(x)", lambda x: np.zeros(3).__setitem__(0, x[0, 0]),
           put(lambda x: x[0])),
    traced("bb.floor(x)", lambda x: int(x), lambda x: bb.floor(x)),
    traced("bb.where(i == position, x, 0)", lambda x: [1, 2][x],
           lambda x: bb.where(bb.arange(x.shape[0]) == 1, x, 0), x="M"),
    traced("x.shape[0]", lambda x: x * len(x), lambda x: x * x.shape[0]),
    traced("bb.any(x == value)", lambda x: 1.0 in x, lambda x: bb.any(x == 1.0)),
    traced("as it is", lambda x: np.asarray(x) + 1, lambda x: x + 1),
    traced("bb.stack([x, y])", lambda x: np.array([x, x]), lambda x: bb.stack([x, x])),
    traced("bb.take(table, x, axis=0)", lambda x: OTHER[x],
           lambda x: bb.take(OTHER, x, axis=0), x="int64: M"),
    traced("bb.concat joins", lambda x: x.__delitem__(0), lambda x: bb.concat([x[:1], x[2:]], 0)),
    traced("print what the jitted", lambda x: f"{x:.3f}", lambda x: x),
    traced("a tuple of them", lambda x: (x, {3}), lambda x: (x, x + 3)),
    traced("one for each axis", lambda x: np.gradient(x, np.arange(3.0), axis=1),
           lambda x: np.gradient(x, 2.0, axis=1), x="M N=3"),
    traced('use "linear"', lambda x: np.quantile(x, 0.5, method="lower"),
           lambda x: np.quantile(x, 0.5), x="M=2 N=3"),
    traced("give a number: 0.5", lambda x: np.quantile(x, x[0, 0]), lambda x: np.quantile(x, 0.5),
           x="M=2 N=3"),
    traced("pad them with 0", lambda x: np.cross(x, x),
           lambda x: np.cross(np.pad(x, ((0, 0), (0, 1))), np.ones(3)), x="M N=2"),
    traced("invert it outside", lambda x: np.linalg.matrix_power(x, -1),
           lambda x: np.linalg.matrix_power(x, 2), x="M M"),
    traced("name the dtype: dtype=", lambda x: x.sum(0, np.float32),
           lambda x: x.sum(0, dtype=np.float32)),
    traced("results show their own sizes", lambda x: (x, x.shape[0]), lambda x: x),
    traced("return the text outside", lambda x: (x, f"{x.shape[0]}"), lambda x: x),
    traced("leave the others out", lambda x: (x, 1), lambda x: x),
    traced("give numbers from 0 to 1", lambda x: np.quantile(x, 1.5),
           lambda x: np.quantile(x, 0.5), x="M=2 N=3"),
    traced("merge them before", lambda x: np.quantile(x, 0.5, axis=(0, 1)),
           lambda x: np.quantile(x.reshape(-1), 0.5, axis=0), x="M=2 N=3"),
    traced("join both: np.cov", lambda x: np.cov(x, x), lambda x: np.cov(np.vstack([x, x]))),
    traced("leave it out", lambda x: np.gradient(x, edge_order=2), lambda x: np.gradient(x)),
    traced('{"mean": m}', lambda x: {"a b": x}, lambda x: {"a_b": x}),
    Tried('bb.trace(fn, x="M N")', lambda: bb.lower(lambda x: x),
          lambda: bb.lower(bb.trace(lambda x: x + 1, x="M N"))),
    Tried("a list or a tuple", lambda: bb.jit(lambda x, k: x)(np.ones(2), {torch.ones(2)}),
          lambda: bb.jit(lambda x, k: x + k[0])(np.ones(2), (np.ones(2),))),
    Tried("a tuple, a number", lambda: bb.jit(lambda x, k: x)(np.ones(2), [{1}]),
          lambda: bb.jit(lambda x, k: x + 1)(np.ones(2), (1,))),
)  # fmt: skip

MORE = (
    Tried("NumPy arrays and torch tensors", lambda: bb.jit(lambda x: x + 1)(Foreign()),
          lambda: bb.jit(lambda x: x + 1)(np.ones(3))),
    traced("give both one name", lambda x, y: x + y, fixed={"y": "M N"}, x="M N", y="M K"),
    traced("None makes a new axis", lambda x: x[True, False], lambda x: x[None]),
    traced("the result of .squeeze", squeeze_in_place, lambda x: (x + 0).squeeze(0), x="1 N"),
    traced("read it before that line", read_after_change, read_before_change),
    traced("y = y + z", number_grows, lambda x: bb.sum(x) + 0.5, x="int64: M"),
    traced("F.scaled_dot_product_attention(q", masked_heads(), attend, x="2 5 8", mask="5 5"),
)  # fmt: skip

CASES = (*MORE, *KINDS, *CHANGES, *PYTHON)
