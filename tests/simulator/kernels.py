"""Kernels that are simulated, emitted once each, and machines for them."""

from dataclasses import replace
from functools import cache

import blockbuster as bb
from blockbuster.machines import machine
from blockbuster.simulator import Sized, simulated
from blockbuster.simulator.coefficients import REACHED

INF = float("inf")
WIDE = dict(H=2, M=256, N=256, D=64, L=64, K=192, J=128)
RAGGED = dict(H=3, M=200, N=333, D=64, L=64, K=100, J=77)
IDEAL = replace(
    REACHED, matrix=1.0, apart=1.0, memory=1.0, cache=1.0, issue=1.0, queue=1.0, request=0.0,
    begin=0.0, alone=1.0, dot=0.0, fold=0.0, exchange=0.0, start=0.0, overlap=200.0, spill=0.0,
    streams=200.0, burst=1000.0,
)  # fmt: skip
"""Kernels that reach every rate and wait for nothing."""


def matmul(x, w):
    return x @ w


def attention(q, k, v):
    s = (q @ k.swapaxes(-1, -2)) * q.shape[-1] ** -0.5
    return bb.softmax(s, axis=-1) @ v


def causal(q, k, v):
    s = (q @ k.swapaxes(-1, -2)) * q.shape[-1] ** -0.5
    seen = bb.arange(q.shape[-2])[:, None] >= bb.arange(k.shape[-2])
    return bb.softmax(bb.where(seen, s, -INF), axis=-1) @ v


def window(q, k, v):
    s = (q @ k.swapaxes(-1, -2)) * q.shape[-1] ** -0.5
    distance = bb.arange(q.shape[-2])[:, None] - bb.arange(k.shape[-2])
    return bb.softmax(bb.where((distance >= 0) & (distance < 100), s, -INF), axis=-1) @ v


def layer_norm_matmul(x, y):
    return bb.layer_norm(x) @ y


def softmax(x):
    return bb.softmax(x, axis=-1)


def gelu(x):
    return bb.gelu(x)


def chain(x, w, u):
    return (x @ w) @ u


HEADS = dict(q="H M D", k="H N D", v="H N L")
PROGRAMS = {
    "matmul": (matmul, dict(x="M K", w="K N")),
    "attention": (attention, HEADS),
    "causal": (causal, HEADS),
    "window": (window, HEADS),
    "layer-norm": (layer_norm_matmul, dict(x="M K", y="K N")),
    "softmax": (softmax, dict(x="M N")),
    "gelu": (gelu, dict(x="M N")),
    "chain": (chain, dict(x="M K", w="K N", u="N J")),
}


@cache
def _graph(name):
    fn, dims = PROGRAMS[name]
    return bb.fuse(bb.lower(bb.trace(fn, **dims))).final


@cache
def _emitted(name, sizes, tiles, chunks):
    return bb.emit(_graph(name), dict(sizes), tiles=dict(tiles), chunks=dict(chunks))


def kernel(name, sizes=WIDE, *, tiles=None, chunks=None):
    """The kernel of a program of ``PROGRAMS`` at those of ``sizes`` that it has."""
    dims = {dim for axes in PROGRAMS[name][1].values() for dim in axes.split()}
    known = tuple((dim, size) for dim, size in sizes.items() if dim in dims)
    return _emitted(name, known, tuple((tiles or {}).items()), tuple((chunks or {}).items()))


def run(made, on=None, **options):
    """The report of a kernel, with the options of ``simulated``."""
    sized = Sized(made.tile_program, made.sizes, made.target)
    return simulated([sized], on or machine("h200"), **options)


def h200(*, processors=132, tiers=None, **rates):
    """The H200 with so many processors, each as fast as before, and other tiers."""
    usual = machine("h200")
    share = processors / usual.processors
    compute = {
        unit: {dtype: rate * share for dtype, rate in by_dtype.items()}
        for unit, by_dtype in usual.compute.items()
    }
    changed = {
        tier.name: replace(tier, bandwidth=tier.bandwidth * (1.0 if at < 2 else share))
        for at, tier in enumerate(usual.tiers)
    }
    for name, fields in (tiers or {}).items():
        changed[name] = replace(changed[name], **fields)
    scaled = dict(compute=compute, special=usual.special * share, issue=usual.issue * share)
    tiers_ = tuple(changed.values())
    return replace(usual, processors=processors, tiers=tiers_, **{**scaled, **rates})


def without_latency(on):
    """The machine with tiers that answer at once."""
    return replace(on, tiers=tuple(replace(tier, latency=0.0) for tier in on.tiers))


def lonely(on):
    """The machine with one program at a time on each processor."""
    return replace(on, limits=replace(on.limits, programs_per_processor=1))


def unshared(processors):
    """A machine whose memory and cache never run out, with one program to a processor."""
    endless = {name: {"bandwidth": 1e30, "latency": 0.0} for name in ("hbm", "l2")}
    return lonely(h200(processors=processors, tiers=endless))
