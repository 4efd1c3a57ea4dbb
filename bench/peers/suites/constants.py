"""Programs whose weights are declared constant, beside the same without in the other suites.

What ours computes of weights alone is computed before the clock runs: sums of columns, weights with
a factor, weights with padded rows. Peers have their weights as they are: torch.compile folds
constants only where it freezes a module for inference, which is off by default.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from bench.peers.case import Array, Case
from bench.peers.contestants import bound, ours
from bench.peers.suites.matmuls import FFN, NORMED, both, case, ffn, layer_norm_matmul

AFFINE = dict(x="M K", y="K N", g="K", b="K")


def alone(x: Array, y: Array, *_: Array) -> Array:
    return x @ y


def affine(functions: Any, x: Array, y: Array, g: Array, b: Array) -> Array:
    return functions.layer_norm(x, g, b) @ y


def _constant(fn: Callable[..., Any], made: Case, *positions: int) -> Case:
    """A case whose arrays at these positions are constant for ours."""
    mine, _ = both(fn)
    own = ours(mine, tuple(f"arrays_{at}" for at in positions))
    others = tuple(one for one in made.contestants if one.name != own.name)
    return replace(made, contestants=(own, *others), constant=positions)


def _cases() -> Iterator[Case]:
    for m, k, n in ((2048, 4096, 1024), (8192, 4096, 1024), (2048, 1024, 1024), (16, 4096, 4096)):
        sizes, others = dict(M=m, K=k, N=n), (bound("matmul alone", alone),)
        plain = case(
            "constants", "layer norm + matmul", f"layer-{m}x{k}x{n}", layer_norm_matmul, NORMED,
            sizes, others, quick=k == 4096 and m == 2048,
        )  # fmt: skip
        yield _constant(layer_norm_matmul, plain, 1)
        affine_case = case(
            "constants", "layer norm, affine + matmul", f"affine-{m}x{k}x{n}", affine, AFFINE,
            sizes, others,
        )  # fmt: skip
        yield _constant(affine, affine_case, 1, 2, 3)
    for m in (128, 2048, 8192):
        plain = case(
            "constants", "FFN, odd rows", f"odd512-{m}", ffn, FFN, dict(M=m, D=512, K=1365)
        )
        yield _constant(ffn, plain, 1, 2, 3)


CASES = tuple(_cases())
