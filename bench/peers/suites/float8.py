"""Inputs of float8: a product with scales and a bias, narrow weights, and narrow keys and values.

The plain forms cast to the dtype of the other arrays first, as torch computes nothing in float8.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bench.peers.case import Array, Case, Contestant, Inputs, Run
from bench.peers.contestants import ours, usual
from blockbuster.frontend import functions as bb

FLOAT8 = "float8_e4m3fn"
DEPTH = 128


def scaled(x: Array, w: Array, rows: Array, columns: Array, b: Array) -> Array:
    return ((x @ w.T) * rows * columns + b).to(b.dtype)


def plain_scaled(x: Array, w: Array, rows: Array, columns: Array, b: Array) -> Array:
    product = x.to(b.dtype) @ w.to(b.dtype).T
    return (product * rows * columns + b).to(b.dtype)


def _scaled_mm(inputs: Inputs) -> Run:
    import torch

    x, w, rows, columns, b = inputs.values()
    scales = {"scale_a": rows, "scale_b": columns, "bias": b, "out_dtype": b.dtype}
    return lambda: torch._scaled_mm(x, w.T, **scales)


def weights(x: Array, w: Array, columns: Array) -> Array:
    return (x @ w.T) * columns


def plain_weights(x: Array, w: Array, columns: Array) -> Array:
    return (x @ w.to(x.dtype).T) * columns


def attend(q: Array, k: Array, v: Array) -> Array:
    return bb.softmax(q @ k.mT * DEPTH**-0.5, axis=-1) @ v


def plain_attend(q: Array, k: Array, v: Array) -> Array:
    import torch

    scores = q @ k.to(q.dtype).mT * DEPTH**-0.5
    return torch.softmax(scores, -1) @ v.to(q.dtype)


def _case(name: str, mine: Any, plain: Any, more: tuple[Contestant, ...] = (), **kept: Any) -> Case:
    contestants = (ours(mine), *usual(plain), *more)
    return Case("float8", "float8", name, mine, plain, contestants=contestants, matrices=(), **kept)


def _cases() -> Iterator[Case]:
    product = dict(x="M K", w="N K", rows="M 1", columns="1 N", b="N")
    own = dict(x=FLOAT8, w=FLOAT8, rows="float32", columns="float32")
    peer = (Contestant("torch._scaled_mm", _scaled_mm),)
    for m, k, n in ((4096,) * 3, (8192,) * 3, (16, 4096, 14336)):
        yield _case(
            f"scaled-{m}x{k}x{n}", scaled, plain_scaled, peer, inputs=product, own=own,
            sizes=dict(M=m, K=k, N=n), few=dict(M=48, K=64, N=32), dtype="bfloat16",
            quick=m == 4096,
        )  # fmt: skip
    yield _case(
        "weights-16x4096x14336", weights, plain_weights, own=dict(w=FLOAT8), dtype="float16",
        inputs=dict(x="M K", w="N K", columns="N"), sizes=dict(M=16, K=4096, N=14336),
        few=dict(M=20, K=64, N=48),
    )  # fmt: skip
    for n in (8192, 32768):
        yield _case(
            f"decode-{n}", attend, plain_attend, own=dict(k=FLOAT8, v=FLOAT8), dtype="float16",
            inputs=dict(q=f"H 1 {DEPTH}", k=f"H N {DEPTH}", v=f"H N {DEPTH}"),
            sizes=dict(H=32, N=n), few=dict(H=2, N=80),
        )  # fmt: skip


CASES = tuple(_cases())
