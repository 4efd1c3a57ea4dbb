"""Array programs that lowering must get right: name -> (function, dim strings)."""

from functools import partial

import numpy as np

import blockbuster.frontend as bb
from blockbuster.ir.fitting import fitted
from tests.frontend import view_programs


def attention(q, k, v):
    return bb.softmax((q @ k.T) * q.shape[-1] ** -0.5, axis=-1) @ v


def causal(q, k, v):
    s = (q @ k.mT) * q.shape[-1] ** -0.5
    mask = bb.arange(q.shape[-2])[:, None] >= bb.arange(k.shape[-2])
    return bb.softmax(bb.where(mask, s, -np.inf), axis=-1, safe=True) @ v


def self_attention(x, wq, wk, wv):
    return causal(x @ wq, x @ wk, x @ wv)


def decoder(x, g, wq, wk, wv, wo):
    h = bb.rms_norm(x, g)
    x = x + self_attention(h, wq, wk, wv) @ wo
    return x + bb.silu(bb.rms_norm(x, g) @ wo.T) @ wo


def two_layers(x, w):
    for _ in range(2):
        x = x + bb.softmax(x @ w @ x.T) @ x
    return x


def grouped_query_attention(q, k, v):
    s = bb.matmul(q, k[:, :, None].mT)
    return bb.softmax(s) @ v[:, :, None]


def by_heads(x, y):
    return bb.transpose(bb.softmax(x.transpose(0, 2, 1, 3) @ y.transpose(0, 2, 3, 1)), (0, 2, 1, 3))


def hand_written_layer_norm(x, g, b):
    c = x - x.mean(-1, keepdims=True)
    return c / bb.sqrt(np.mean(c**2, axis=-1, keepdims=True) + 1e-5) * g + b


def strictly_causal(q, k):
    mask = bb.arange(q.shape[-2])[:, None] > bb.arange(k.shape[-2])
    return bb.softmax(bb.where(mask, q @ k.T, -np.inf), safe=True)


def every_scalar_function(x):
    y = bb.abs(x) + 0.5
    found = [bb.log(y), bb.sqrt(y), bb.rsqrt(y), bb.reciprocal(y), y**x, -x, abs(x), x**2, 2**x]
    for fn in (bb.exp, bb.tanh, bb.sigmoid, bb.silu, bb.gelu, bb.relu, bb.erf, bb.square):
        found.append(fn(x))
    return (*found, bb.maximum(x, 0.5), bb.minimum(x, y), bb.where(x != y, x, 1 / y))


def alibi(q, k):
    distance = bb.arange(q.shape[0])[:, None] - bb.arange(k.shape[0])[None, :]
    return bb.softmax(q @ k.T - 0.1 * bb.abs(distance))


def sorted_rows(x, w):
    return np.sort(x @ w, axis=0) @ w.T


def masks(x, y):
    inside = (x > 0) & ~(y < 0.5) | (x == y)
    return bb.where(inside, x, np.maximum(y, 0.1) ** 2)


def rolled(x):
    return bb.custom(lambda a: np.roll(a, 1, axis=1), x[:, None], shape=(x.shape[0], 1, x.shape[1]))


def along(fn, axis, x):
    return fn(x, axis)


PROGRAMS = {
    "attention": (attention, dict(q="M D", k="N D", v="N L")),
    "causal": (causal, dict(q="M D", k="N D", v="N L")),
    "strictly causal": (strictly_causal, dict(q="M D", k="N D")),
    "every scalar function": (every_scalar_function, dict(x="M N")),
    "causal batched": (causal, dict(q="B H M D", k="B H N D", v="B H N L")),
    "self attention": (self_attention, dict(x="M D", wq="D E", wk="D E", wv="D F")),
    "self attention batched": (self_attention, dict(x="B M D", wq="D E", wk="D E", wv="D F")),
    "attention over one array": (causal, dict(q="M D", k="M D", v="M D")),
    "decoder": (decoder, dict(x="M D", g="D", wq="D E", wk="D E", wv="D E", wo="E D")),
    "decoder batched": (decoder, dict(x="B M D", g="D", wq="D E", wk="D E", wv="D E", wo="E D")),
    "two layers": (two_layers, dict(x="M D", w="D D")),
    "grouped query": (grouped_query_attention, dict(q="B H G M D", k="B H N D", v="B H N L")),
    "by heads": (by_heads, dict(x="B M H D", y="B N H D")),
    "layer norm matmul": (lambda x, y: bb.layer_norm(x) @ y, dict(x="M K", y="K N")),
    "layer norm affine": (bb.layer_norm, dict(x="M K", gamma="K", beta="K")),
    "layer norm beta": (lambda x, b: bb.layer_norm(x, None, b), dict(x="M K", b="K")),
    "hand-written layer norm": (hand_written_layer_norm, dict(x="M K", g="K", b="K")),
    "rms norm weight": (bb.rms_norm, dict(x="M K", weight="K")),
    "rms norm batched weight": (bb.rms_norm, dict(x="B M K", weight="K")),
    "rms norm vector": (bb.rms_norm, dict(x="K", weight="K")),
    "x @ x.T": (lambda x: x @ x.T, dict(x="M D")),
    "gram": (lambda x: x.T @ x, dict(x="M D")),
    "gram of computed": (lambda x: bb.exp(x).T @ bb.exp(x), dict(x="M D")),
    "x @ x.T of computed": (lambda x, w: (lambda h: h @ h.T)(x @ w), dict(x="M D", w="D E")),
    "square power": (lambda x: x @ x @ x, dict(x="M M")),
    "x + x.T": (lambda x: x + x.T, dict(x="M M")),
    "h + h.T": (lambda x: (lambda h: h + h.T)(bb.exp(x)), dict(x="M M")),
    "h @ h + h.T": (lambda x: (lambda h: h @ h + h.T)(bb.tanh(x @ x)), dict(x="M M")),
    "chain": (lambda a, b, c, d: a @ b @ c @ d, dict(a="M K", b="K L", c="L N", d="N P")),
    "transposed product": (lambda a, b: bb.exp((a @ b).T) @ a, dict(a="M K", b="K N")),
    "alibi": (alibi, dict(q="M D", k="N D")),
    "alibi self": (alibi, dict(q="M D", k="M D")),
    "masks": (masks, dict(x="M N", y="N")),
    "sort": (sorted_rows, dict(x="M D", w="D N")),
    "custom with unit axis": (rolled, dict(x="M N")),
    "sum 0": (lambda x: x.sum(0), dict(x="M N")),
    "sum 1": (lambda x: x.sum(1), dict(x="M N")),
    "sum all": (lambda x: x.sum(), dict(x="M N")),
    "max keepdims": (lambda x: x - x.max(0, keepdims=True), dict(x="M N")),
    "min vector": (lambda x: bb.min(x), dict(x="N")),
    **{
        f"{fn.__name__} {axis} of 3": (partial(along, fn, axis), dict(x="B M N"))
        for fn in (bb.sum, bb.mean, bb.max, bb.softmax, bb.log_softmax, bb.logsumexp)
        for axis in (0, 1, -1)
    },
    "sums of exp": (lambda x: bb.exp(x).sum(1) / bb.exp(x).sum(1).sum(0), dict(x="B M N")),
    "softmax 0": (lambda x: bb.softmax(x, axis=0) * 2, dict(x="M N")),
    "softmax 0 safe": (lambda x: bb.softmax(x, axis=0, safe=True), dict(x="M N")),
    "softmax both": (lambda x: bb.softmax(bb.softmax(x, axis=0), axis=1), dict(x="M N")),
    "softmax vector": (lambda x: bb.softmax(x), dict(x="N")),
    "mat @ vec": (lambda a, x: a @ x, dict(a="M K", x="K")),
    "vec @ mat": (lambda x, a: x @ a, dict(a="K N", x="K")),
    "vec @ vec": (lambda x, y: x @ y, dict(x="K", y="K")),
    "batched mat @ vec": (lambda a, x: a @ x, dict(a="B M K", x="K")),
    "vec @ batched mat": (lambda x, a: x @ a, dict(a="B K N", x="K")),
    "unit row": (lambda x, w: bb.silu(x @ w), dict(x="1 D", w="D N")),
    "unit column": (lambda x, w: x @ w, dict(x="M D", w="D 1")),
    "unit contraction": (lambda x, w: x @ w, dict(x="M 1", w="1 N")),
    "outer": (lambda x, y: x[:, None] * y, dict(x="M", y="N")),
    "outer transposed": (lambda x, y: y * x[:, None], dict(x="M", y="N")),
    "outer of one": (lambda x: x[:, None] * x, dict(x="M")),
    "distances": (lambda x, y: bb.abs(x[:, None] - y[None, :]).sum(-1), dict(x="M D", y="N D")),
    "decode attention": (attention, dict(q="1 D", k="N D", v="N L")),
    "leading unit": (lambda x, y: x @ y + x.mean(-1, keepdims=True), dict(x="1 M K", y="B K N")),
    "weight over batch": (lambda x, w: x * w[:, None], dict(x="B M D", w="B D")),
    "batch embedding": (lambda x, e, w: x + (e @ w)[:, None], dict(x="B M D", e="B K", w="K D")),
    "computed becomes batch": (
        lambda x, w, g: (x @ w)[:, None, :] * g,
        dict(x="M K", w="K N", g="L N"),
    ),
    "reduced batch": (lambda x, w: x.mean(1) @ w, dict(x="B M D", w="D N")),
    "batch as contraction": (lambda x, y: x.sum(-1).T @ y, dict(x="B M D", y="B N")),
    "batch as columns": (lambda x, y: bb.exp(x.sum(-1)) @ y.T, dict(x="B M D", y="B M")),
    "scalar times": (lambda x: x / x.sum() + x.shape[0], dict(x="M N")),
    "reflected": (lambda x: 1 - 2 / (1 + x * x) ** 0.5, dict(x="M N")),
    "column vector": (lambda x, c: (x - c) / (1 + c * c), dict(x="M N", c="M 1")),
    "row vector": (lambda x, g: (g - x) / g + (x - g) / (1 + g * g), dict(x="M N", g="N")),
    "cast": (lambda x: bb.astype(bb.astype(x, "float16"), "bfloat16") + 1, dict(x="M N")),
    "two outputs": (lambda x, w: (bb.exp(x @ w), (x @ w).sum(0)), dict(x="M K", w="K N")),
    "dict outputs": (lambda x: {"a": x.T, "b": bb.tanh(x), "c": x}, dict(x="M N")),
    "output is input": (lambda x: x, dict(x="M N")),
    "output is an index": (lambda x: bb.arange(x.shape[0]) + x.sum(1), dict(x="M N")),
    "fixed sizes": (lambda x, w: x @ w, dict(x="M 4", w="4 N=3")),
    "swapped twice": (lambda x: (x.T * 2).T @ x.T, dict(x="M N")),
    "both orders": (lambda x: bb.exp(x).sum(0) @ bb.exp(x).T, dict(x="M N")),
    **view_programs.FREE,
    **view_programs.COPIED,
}  # fmt: skip


OPAQUE = ("sort", "custom with unit axis", *view_programs.COPIED)
"""Programs with functions of whole arrays."""


def inputs_for(program, extents, seed=0):
    """Random arrays for a program: dims have their fixed size, that in ``extents``, or 5.

    Sizes that slices and heads do not allow are larger.
    """
    rng = np.random.default_rng(seed)
    sizes = {d: program.sizes.get(d, extents.get(d, 5)) for d in program.dims}
    sizes = fitted(sizes, (*program.rules, *bb.lower(program).size_rules))
    return {
        i.name: rng.normal(size=[sizes[a] if isinstance(a, str) else a for a in i.shape])
        for i in program.inputs
    }


def without_line(error, file):
    """What an error says beside the line of ``file`` that it shows, where a test has its pattern.

    Fails where it shows none.
    """
    lines = str(error).splitlines()
    said = [line for line in lines if f"{file}:" not in line]
    assert len(said) == len(lines) - 1, error
    return "\n".join(said)
