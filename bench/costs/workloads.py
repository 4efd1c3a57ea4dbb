"""The workloads to which cost models are fitted, and those that judge them: code, sizes, dtype.

Workloads in ``FIT_WORKLOADS`` may set coefficients; those in ``JUDGED`` take no part in that. Both
hold loops of dots limited by arithmetic, dots limited by memory, and programs that only move data,
short and long ones. Schedules that a search found near the choices for ``NEAR`` and ``ONCE_HELD``
showed which terms the price of a schedule lacked; ``HELD`` judges it by its regret (near.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import blockbuster
from bench import programs
from bench.costs import array_functions as arrays
from bench.programs import eager
from bench.schedules import programs as scheduled
from blockbuster import examples
from blockbuster.ir.graph import Graph

Array = Any
TEXTS = Path(__file__).parents[1] / "schedules"
FIT, JUDGE, SEEN, HELD_BACK = "fit", "judge", "seen", "held back"


@dataclass(frozen=True)
class Workload:
    """A program at one size.

    ``part``: fitted or judged. ``starts``: what schedules are varied from: a snapshot of the fused
    program (-1: the last) with the name of a file of bench/schedules, or "" for the default
    schedule. ``few``: sizes of a few blocks for Triton's interpreter. ``largest``: the relative
    error that a right result has at most.
    """

    name: str
    part: str
    fn: Callable[..., Any]
    inputs: Mapping[str, str]
    sizes: Mapping[str, int]
    few: Mapping[str, int]
    dtype: str = "float16"
    starts: tuple[tuple[int, str], ...] = ((-1, ""),)
    scaled: tuple[str, ...] = field(default=("w", "y", "u"))

    @property
    def largest(self) -> float:
        """The relative error that a right result has at most: a few roundings of its dtype."""
        return {"float16": 2e-3, "bfloat16": 1.5e-2, "float32": 2e-5}[self.dtype]

    def graph(self, snapshot: int) -> Graph:
        """The block program that is scheduled."""
        return _snapshots(self.fn, tuple(self.inputs.items()))[snapshot]

    @property
    def snapshots(self) -> int:
        """How many snapshots its fused program has."""
        return len(_snapshots(self.fn, tuple(self.inputs.items())))

    def shapes(self, sizes: Mapping[str, int]) -> dict[str, list[int]]:
        """The shape of each input."""
        return {name: [sizes[d] for d in dims.split()] for name, dims in self.inputs.items()}

    def drawn(self, sizes: Mapping[str, int], device: str, seed: int) -> dict[str, Array]:
        """Normally distributed tensors; matrices are scaled so that results stay near one."""
        import torch

        random = torch.Generator(device=device).manual_seed(seed)
        made = {}
        for name, shape in self.shapes(sizes).items():
            x = torch.randn(shape, generator=random, device=device, dtype=torch.float32)
            scale = shape[-2] ** -0.5 if name in self.scaled and len(shape) > 1 else 1.0
            made[name] = (x * scale).to(getattr(torch, self.dtype))
        return made

    def reference(self, inputs: Mapping[str, Array]) -> tuple[Array, ...]:
        """The results in float64, by torch's own functions."""
        found = eager(self.fn)(**{name: x.double() for name, x in inputs.items()})
        return found if isinstance(found, tuple) else (found,)


def start_text(name: str) -> str | None:
    """The text of a file of bench/schedules; None (the default schedule) for ""."""
    return (TEXTS / f"{name}.schedule").read_text(encoding="utf-8") if name else None


@cache
def _snapshots(fn: Callable[..., Any], inputs: tuple[tuple[str, str], ...]) -> tuple[Graph, ...]:
    program = blockbuster.trace(fn, **dict(inputs))
    return blockbuster.fuse(blockbuster.lower(program)).snapshots


def _default_and(name: str, snapshot: int = -1) -> tuple[tuple[int, str], ...]:
    return (snapshot, ""), (snapshot, name)


MATMUL = dict(x="M K", w="K N")
NORMED = dict(x="M K", y="K N")
CHAIN = dict(x="M K", w="K N", u="N H")
CHAINS = dict(x="B M K", w="B K N", u="B N H")
HEADS = dict(q="H M D", k="H N D", v="H N L")
DECODE = dict(q="H G D", k="H N D", v="H N L")
FEW = dict(M=48, K=64, N=64, H=32, B=2)
FEW_HEADS = dict(H=2, M=64, N=96, D=64, L=64)
FEW_ROWS = dict(M=20, N=192)


def _few(inputs: Mapping[str, str]) -> dict[str, int]:
    dims = {dim for axes in inputs.values() for dim in axes.split()}
    return {dim: size for dim, size in FEW.items() if dim in dims}


FIT_WORKLOADS = (
    Workload("matmul", FIT, scheduled.matmul, MATMUL, dict(M=2048, K=4096, N=4096), _few(MATMUL),
             starts=_default_and("matmul")),
    Workload("matmul-few-rows", FIT, scheduled.matmul, MATMUL, dict(M=16, K=4096, N=4096),
             _few(MATMUL), starts=_default_and("few-rows-matmul")),
    Workload("matmul-float32", FIT, scheduled.matmul, MATMUL, dict(M=1024, K=1024, N=1024),
             _few(MATMUL), dtype="float32"),
    Workload("gate-up", FIT, scheduled.gate_up, dict(x="M D", w="D K", v="D K"),
             dict(M=1024, D=2048, K=4096), dict(M=48, D=64, K=64), starts=_default_and("gate-up"),
             scaled=("w", "v")),
    Workload("layernorm-matmul", FIT, scheduled.layer_norm_matmul, NORMED,
             dict(M=2048, K=1024, N=1024), _few(NORMED), starts=((0, ""), (-1, ""))),
    Workload("chain-G4", FIT, scheduled.chain, CHAIN, dict(M=512, K=256, N=512, H=256),
             _few(CHAIN), starts=((0, ""), (-1, ""), (0, "chain-two-kernels"))),
    Workload("attention-4096", FIT, scheduled.attention, HEADS,
             dict(H=16, M=4096, N=4096, D=128, L=128), FEW_HEADS, starts=_default_and("attention")),
    Workload("causal-2048", FIT, scheduled.causal_attention, HEADS,
             dict(H=16, M=2048, N=2048, D=64, L=64), FEW_HEADS),
    Workload("decode-32768", FIT, scheduled.attention, DECODE,
             dict(H=8, G=8, N=32768, D=128, L=128), dict(H=2, G=4, N=512, D=32, L=32),
             starts=_default_and("decode")),
    Workload("softmax-16384", FIT, scheduled.row_softmax, dict(x="M N"), dict(M=256, N=16384),
             FEW_ROWS, starts=_default_and("row-softmax")),
    Workload("lengths-131072", FIT, scheduled.row_lengths, dict(x="M N"), dict(M=256, N=1 << 17),
             FEW_ROWS, starts=_default_and("row-lengths")),
    Workload("column-sums", FIT, programs.column_sums, dict(x="M N"), dict(M=4096, N=4096),
             FEW_ROWS),
    Workload("softmax-2048", FIT, programs.softmax_rows, dict(x="M N"), dict(M=4096, N=2048),
             FEW_ROWS),
)  # fmt: skip

JUDGED = (
    Workload("matmul-1024", JUDGE, scheduled.matmul, MATMUL, dict(M=1024, K=1024, N=1024),
             _few(MATMUL), starts=_default_and("matmul")),
    Workload("matmul-bfloat16", JUDGE, scheduled.matmul, MATMUL, dict(M=8192, K=1024, N=1024),
             _few(MATMUL), dtype="bfloat16", starts=_default_and("matmul.four-stages")),
    Workload("matmul-64-rows", JUDGE, scheduled.matmul, MATMUL, dict(M=64, K=2048, N=8192),
             _few(MATMUL), starts=_default_and("few-rows-matmul")),
    Workload("rmsnorm-matmul", JUDGE, scheduled.rms_norm_matmul, NORMED,
             dict(M=2048, K=4096, N=4096), _few(NORMED),
             starts=((0, ""), (-1, ""), (0, "rms-norm-matmul"))),
    Workload("chain-G1", JUDGE, scheduled.chain, CHAIN, dict(M=512, K=64, N=256, H=64),
             _few(CHAIN), starts=((0, ""), (-1, "chain-one-kernel"))),
    Workload("chain-G10", JUDGE, scheduled.chain, CHAIN, dict(M=1024, K=128, N=1024, H=128),
             _few(CHAIN), starts=((0, ""), (-1, ""))),
    Workload("chain-G12", JUDGE, scheduled.chain, CHAINS, dict(B=8, M=1024, K=128, N=1024, H=128),
             _few(CHAINS), starts=((0, ""), (-1, ""))),
    Workload("attention-1024", JUDGE, scheduled.attention, HEADS,
             dict(H=16, M=1024, N=1024, D=64, L=64), FEW_HEADS, starts=_default_and("attention")),
    Workload("window-4096", JUDGE, scheduled.window_attention, HEADS,
             dict(H=16, M=4096, N=4096, D=128, L=128), FEW_HEADS),
    Workload("soft-capped-2048", JUDGE, arrays.soft_capped_attention, HEADS,
             dict(H=8, M=2048, N=2048, D=128, L=128), FEW_HEADS),
    Workload("decode-8192", JUDGE, scheduled.attention, DECODE,
             dict(H=16, G=2, N=8192, D=128, L=128), dict(H=2, G=2, N=512, D=32, L=32),
             starts=_default_and("decode")),
    Workload("logsumexp-8192", JUDGE, programs.logsumexp_of_product, MATMUL,
             dict(M=2048, K=128, N=8192), _few(MATMUL)),
    Workload("cross-entropy", JUDGE, programs.cross_entropy, dict(x="M K", w="K V", target="M V"),
             dict(M=1024, K=128, V=8192), dict(M=48, K=64, V=96)),
    Workload("geglu-bfloat16", JUDGE, programs.geglu, dict(x="M K", w="K N", v="K N"),
             dict(M=2048, K=1024, N=2048), dict(M=48, K=64, N=64), dtype="bfloat16",
             scaled=("w", "v")),
    Workload("layer-norm", JUDGE, programs.layer_norm, dict(x="M K", g="K", b="K"),
             dict(M=8192, K=1024), dict(M=20, K=64)),
    Workload("softmax-131072", JUDGE, scheduled.row_softmax, dict(x="M N"),
             dict(M=32, N=1 << 17), FEW_ROWS),
    Workload("transposed-sum", JUDGE, programs.transposed_sum, dict(x="M N", y="N M"),
             dict(M=4096, N=2048), dict(M=48, N=64), dtype="float32", scaled=()),
    Workload("attention-one-head", JUDGE, examples.attention, dict(q="M D", k="N D", v="N L"),
             dict(M=4096, N=4096, D=64, L=64), dict(M=64, N=96, D=64, L=64)),
)  # fmt: skip

EXPERTS = dict(x="B M K", w="B K N")
LINEAR = dict(x="M K", w="K N", b="N")
NEAR = (
    Workload("group-norm", SEEN, arrays.group_norm, dict(x="M G N"), dict(M=2048, G=16, N=512),
             dict(M=20, G=2, N=64)),
    Workload("instance-norm-odd", SEEN, arrays.group_norm, dict(x="M G N"),
             dict(M=64, G=63, N=3136), dict(M=3, G=2, N=49)),
    Workload("max-of-pieces", SEEN, arrays.largest_of_pieces, dict(x="M G N"),
             dict(M=1024, G=1024, N=8), dict(M=20, G=2, N=8)),
    Workload("middle-sum-odd", SEEN, arrays.middle_sum, dict(x="M N G"),
             dict(M=64, N=511, G=1024), dict(M=3, N=37, G=64)),
    Workload("middle-rms-odd", SEEN, arrays.middle_mean_of_squares, dict(x="M N G"),
             dict(M=128, N=777, G=96), dict(M=3, N=37, G=64)),
    Workload("first-axis-max", SEEN, arrays.first_axis_max, dict(x="M N"), dict(M=4095, N=3000),
             FEW_ROWS),
    Workload("experts", SEEN, scheduled.matmul, EXPERTS,
             dict(B=8, M=256, K=1024, N=2048), dict(B=2, M=48, K=64, N=64)),
    Workload("product-odd", SEEN, scheduled.matmul, MATMUL, dict(M=1000, K=1111, N=999),
             dict(M=48, K=65, N=63)),
    Workload("product-float32", SEEN, scheduled.matmul, MATMUL,
             dict(M=2048, K=2048, N=2048), dict(M=48, K=64, N=64), dtype="float32"),
    Workload("attention-float32", SEEN, scheduled.attention, HEADS,
             dict(H=8, M=1024, N=1024, D=64, L=64), dict(H=2, M=64, N=96, D=64, L=64),
             dtype="float32"),
    Workload("swish-of-linear", SEEN, arrays.swish_of_linear, LINEAR,
             dict(M=1024, K=8192, N=8192), dict(M=48, K=64, N=64)),
    Workload("mish-of-linear", SEEN, arrays.mish_of_linear, LINEAR,
             dict(M=1024, K=2048, N=4096), dict(M=48, K=64, N=64)),
    Workload("matrix-vector", SEEN, programs.matrix_vector, dict(a="M K", x="K"),
             dict(M=8192, K=8192), dict(M=48, K=64), scaled=("a",)),
    Workload("softmax-columns", SEEN, programs.softmax_columns, dict(x="M N"),
             dict(M=2000, N=3000), FEW_ROWS),
    Workload("long-product-few-rows", SEEN, scheduled.matmul, MATMUL,
             dict(M=33, K=11008, N=1536), dict(M=48, K=64, N=64)),
    Workload("batched-small-products", SEEN, scheduled.matmul, EXPERTS,
             dict(B=192, M=128, K=96, N=128), dict(B=2, M=48, K=64, N=64)),
)  # fmt: skip
"""Workloads of other kinds: schedules near their choices showed which terms were missing."""

ONCE_HELD = (
    Workload("group-norm-scaled", SEEN, arrays.scaled_group_norm, dict(x="M G N", w="N"),
             dict(M=512, G=32, N=1024), dict(M=20, G=2, N=64), scaled=()),
    Workload("average-of-pieces", SEEN, arrays.average_of_pieces, dict(x="M G N"),
             dict(M=2048, G=1024, N=4), dict(M=20, G=2, N=4)),
    Workload("middle-softmax", SEEN, arrays.middle_softmax, dict(x="M N G"),
             dict(M=64, N=300, G=256), dict(M=3, N=37, G=64)),
    Workload("middle-max-odd", SEEN, arrays.middle_max, dict(x="M N G"),
             dict(M=96, N=1001, G=200), dict(M=3, N=37, G=64)),
    Workload("row-sums-odd", SEEN, arrays.row_sums, dict(x="M N"), dict(M=3000, N=5001), FEW_ROWS),
    Workload("gated-experts", SEEN, arrays.gated_experts, dict(x="B M K", w="B K N", v="B K N"),
             dict(B=4, M=512, K=1024, N=1408), dict(B=2, M=48, K=64, N=64), scaled=("w", "v")),
    Workload("product-odd-columns", SEEN, scheduled.matmul, MATMUL,
             dict(M=777, K=1536, N=2056), _few(MATMUL)),
    Workload("layer-norm-float32", SEEN, programs.layer_norm, dict(x="M K", g="K", b="K"),
             dict(M=4096, K=2048), dict(M=20, K=64), dtype="float32"),
    Workload("linear-relu-float32", SEEN, programs.linear_relu, dict(x="M K", w="N K", b="N"),
             dict(M=1024, K=512, N=3072), dict(M=48, K=64, N=64), dtype="float32", scaled=()),
    Workload("attention-odd", SEEN, scheduled.attention, HEADS,
             dict(H=12, M=1500, N=1500, D=80, L=80), FEW_HEADS),
    Workload("chain-odd", SEEN, scheduled.chain, CHAIN,
             dict(M=700, K=200, N=904, H=304), _few(CHAIN)),
    Workload("logsumexp-odd", SEEN, programs.logsumexp_of_product, MATMUL,
             dict(M=500, K=304, N=5000), _few(MATMUL)),
    Workload("column-sums-narrow", SEEN, programs.column_sums, dict(x="M N"),
             dict(M=10000, N=504), FEW_ROWS),
    Workload("vector-matrix", SEEN, scheduled.matmul, MATMUL, dict(M=1, K=6000, N=6000),
             dict(M=16, K=64, N=64)),
)  # fmt: skip
"""Workloads that were held back until their schedules showed three more terms."""

HELD = (
    Workload("norm-of-channels", HELD_BACK, arrays.norm_of_channels, dict(x="M G C N"),
             dict(M=256, G=24, C=10, N=196), dict(M=3, G=2, C=3, N=20)),
    Workload("pool-of-squares", HELD_BACK, arrays.pool_of_squares, dict(x="M H P W Q"),
             dict(M=768, H=28, P=2, W=28, Q=2), dict(M=3, H=4, P=2, W=5, Q=2)),
    Workload("max-of-rows", HELD_BACK, arrays.max_of_rows, dict(x="M P N"),
             dict(M=3000, P=3, N=1540), dict(M=5, P=3, N=64)),
    Workload("middle-min-rank4", HELD_BACK, arrays.middle_min, dict(x="B C N G"),
             dict(B=16, C=12, N=197, G=80), dict(B=2, C=3, N=37, G=32)),
    Workload("gelu-experts-odd", HELD_BACK, arrays.gelu_experts,
             dict(x="B M K", w="B K N", v="B K N", b="N"), dict(B=6, M=200, K=776, N=1000),
             dict(B=2, M=48, K=64, N=64), scaled=("w", "v")),
    Workload("product-odd-float32", HELD_BACK, scheduled.matmul, MATMUL,
             dict(M=513, K=1025, N=769), _few(MATMUL), dtype="float32"),
    Workload("rms-norm-odd-float32", HELD_BACK, arrays.scaled_rms_norm, dict(x="M K", g="K"),
             dict(M=3001, K=1537), dict(M=20, K=63), dtype="float32"),
    Workload("batched-products-odd", HELD_BACK, scheduled.matmul, EXPERTS,
             dict(B=48, M=197, K=72, N=205), dict(B=2, M=48, K=63, N=65)),
    Workload("first-axis-log-softmax", HELD_BACK, arrays.first_axis_log_softmax, dict(x="M N"),
             dict(M=500, N=8200), FEW_ROWS),
    Workload("logsumexp-rows", HELD_BACK, arrays.logsumexp_of_rows, dict(x="M N"),
             dict(M=5000, N=3001), FEW_ROWS),
    Workload("unit-columns", HELD_BACK, arrays.unit_columns, dict(x="M N"),
             dict(M=2999, N=1500), FEW_ROWS),
    Workload("cross-entropy-rows", HELD_BACK, arrays.cross_entropy_of_rows,
             dict(x="M V", target="M V"), dict(M=2000, V=5003), dict(M=20, V=97)),
    Workload("short-window-odd", HELD_BACK, arrays.short_window_attention, HEADS,
             dict(H=10, M=1777, N=1777, D=64, L=64), FEW_HEADS),
    Workload("grouped-decode-short", HELD_BACK, scheduled.attention, DECODE,
             dict(H=64, G=6, N=500, D=128, L=128), dict(H=2, G=3, N=96, D=64, L=64)),
    Workload("normed-attention", HELD_BACK, arrays.normed_attention, HEADS,
             dict(H=16, M=1000, N=1000, D=64, L=64), FEW_HEADS),
    Workload("outer-product-norm", HELD_BACK, arrays.outer_product_norm,
             dict(x="M", r="M K", g="K"), dict(M=4100, K=1000), dict(M=20, K=65)),
)  # fmt: skip
"""Of other kinds than those above, to which no term was fitted: norms over two axes, pools, middle
axes, experts, odd sizes, float32, short contexts."""

WORKLOADS = (*FIT_WORKLOADS, *JUDGED)
BY_NAME = {workload.name: workload for workload in (*WORKLOADS, *NEAR, *ONCE_HELD, *HELD)}
