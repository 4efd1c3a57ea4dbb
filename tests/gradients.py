"""Backward passes as array code, which need values larger than inputs and outputs several times."""

import numpy as np

import blockbuster as bb


def swap(x):
    return x.swapaxes(-1, -2)


def scores(q, k):
    return (q @ swap(k)) * q.shape[-1] ** -0.5


def masked(q, k):
    rows, columns = bb.arange(q.shape[-2])[:, None], bb.arange(k.shape[-2])
    return bb.where(rows >= columns, scores(q, k), -np.inf)


def products(p, dp, q, k, do):
    """dq, dk and dv from the probabilities and what comes back to them."""
    ds = p * (dp - (dp * p).sum(-1, keepdims=True)) * q.shape[-1] ** -0.5
    return ds @ k, swap(ds) @ q, swap(p) @ do


def attention(q, k, v, do):
    return products(bb.softmax(scores(q, k), axis=-1), do @ swap(v), q, k, do)


def causal(q, k, v, do):
    return products(bb.softmax(masked(q, k), axis=-1), do @ swap(v), q, k, do)


def grouped(q, k, v, do):
    dq, dk, dv = causal(q, k[..., None, :, :], v[..., None, :, :], do)
    return dq, dk.sum(-3), dv.sum(-3)


def biased(q, k, v, do, bias):
    p = bb.softmax(scores(q, k) + bias, axis=-1)
    return products(p, do @ swap(v), q, k, do)


def with_dropout(q, k, v, do, keep):
    p = bb.softmax(scores(q, k), axis=-1)
    dp = (do @ swap(v)) * keep
    ds = p * (dp - (dp * p).sum(-1, keepdims=True)) * q.shape[-1] ** -0.5
    return ds @ k, swap(ds) @ q, swap(p * keep) @ do


def with_statistics(q, k, v, do, lse, delta):
    p = np.exp(scores(q, k) - lse[..., None])
    ds = p * (do @ swap(v) - delta[..., None]) * q.shape[-1] ** -0.5
    return ds @ k, swap(ds) @ q, swap(p) @ do


def cross_entropy(x, w, t):
    z = x @ w
    hot = bb.where(bb.arange(z.shape[-1]) == t[:, None], 1.0, 0.0)
    dz = bb.softmax(z, axis=-1) - hot
    return dz @ w.T, x.T @ dz


def gated(x, w1, w3, w2, dy):
    a, b = x @ w1, x @ w3
    gate = 1 / (1 + np.exp(-a))
    dh = dy @ w2.T
    da = dh * b * gate * (1 + a * (1 - gate))
    db = dh * a * gate
    return da @ w1.T + db @ w3.T, x.T @ da, x.T @ db, (a * gate * b).T @ dy


HEADS = dict(q="B H M D", k="B H N D", v="B H N D", do="B H M D")
GROUPS = dict(HEADS, q="B H G M D", do="B H G M D")
ATTENTION = {
    "one head": (attention, dict(q="M D", k="N D", v="N L", do="M L")),
    "attention": (attention, HEADS),
    "self": (attention, dict.fromkeys(HEADS, "B H S D")),
    "causal": (causal, HEADS),
    "grouped": (grouped, GROUPS),
    "biased": (biased, dict(HEADS, bias="H M N")),
    "dropout": (with_dropout, dict(HEADS, keep="B H M N")),
    "statistics": (with_statistics, dict(HEADS, lse="B H M", delta="B H M")),
}
PROGRAMS = {
    **ATTENTION,
    "cross-entropy": (cross_entropy, dict(x="T D", w="D V", t="T")),
    "gated": (gated, dict(x="T D", w1="D F", w3="D F", w2="F D", dy="T D")),
}
LARGE = dict(B=2, H=8, G=4, M=2048, N=2048, S=2048, D=128, L=128, T=2048, V=32768, F=4096)
SMALL = dict(B=1, H=2, G=2, M=37, N=45, S=41, D=18, L=20, T=37, V=45, F=50)


def traced(name):
    function, inputs = PROGRAMS[name]
    return bb.trace(function, **inputs)


def sized(program, sizes):
    return {dim: size for dim, size in sizes.items() if dim in map(str, program.dims)}


def drawn(name, dtype, *, wide=1.0, seed=0):
    """Arrays at small sizes; queries and keys are ``wide`` times as large."""
    _, inputs = PROGRAMS[name]
    draw = np.random.default_rng(seed)
    arrays = {}
    for array, dims in inputs.items():
        shape = [SMALL[dim] for dim in dims.split()]
        arrays[array] = draw.standard_normal(shape) * (wide if array in ("q", "k", "x") else 1)
    if "t" in arrays:
        arrays["t"] = np.arange(SMALL["T"]) % SMALL["V"]
    if "keep" in arrays:
        arrays["keep"] = (arrays["keep"] > -1) / 0.75
    if "lse" in arrays:
        s = arrays["q"] @ swap(arrays["k"]) * SMALL["D"] ** -0.5
        top = s.max(-1)
        arrays["lse"] = np.log(np.exp(s - top[..., None]).sum(-1)) + top
    return _cast(arrays, dtype)


def _cast(arrays, dtype):
    return {name: array.astype(dtype) for name, array in arrays.items()}
