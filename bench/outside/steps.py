"""What people put behind a linear layer: operators on its result, by name.

A step takes the rows (M, N) that came before it, and arrays of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F

from bench.peers.case import Array

SAME, FEWER, ONE = "as many columns", "fewer columns", "one column"


@dataclass(frozen=True)
class Step:
    """An operator: ``apply`` it to rows and to arrays with these dims, by name.

    ``leaves``: how many columns its result has.
    """

    name: str
    kind: str
    apply: Callable[..., Array]
    arrays: Mapping[str, str] = field(default_factory=dict)
    leaves: str = SAME


def _batch_norm(y: Array, mean: Array, var: Array, g: Array, h: Array) -> Array:
    return F.batch_norm(y, mean, var, g, h, training=False)


def _batch_norm_by_hand(y: Array, mean: Array, var: Array, g: Array, h: Array) -> Array:
    return (y - mean) / torch.sqrt(var + 1e-5) * g + h


def _instance_norm(y: Array) -> Array:
    return F.instance_norm(y.unsqueeze(1)).squeeze(1)


def _rms_by_hand(y: Array, g: Array) -> Array:
    return y * torch.rsqrt((y * y).mean(-1, keepdim=True) + 1e-6) * g


def _layer_norm_by_hand(y: Array, g: Array, h: Array) -> Array:
    centered = y - y.mean(-1, keepdim=True)
    return centered / torch.sqrt((centered**2).mean(-1, keepdim=True) + 1e-5) * g + h


def _norm_of_pieces(piece: int) -> Callable[[Array], Array]:
    def norm(y: Array) -> Array:
        pieces = y.reshape(y.shape[0], -1, piece)
        scaled = pieces * torch.rsqrt(pieces.pow(2).mean(-1, keepdim=True) + 1e-6)
        return scaled.reshape(y.shape)

    return norm


def _max_pool(piece: int) -> Callable[[Array], Array]:
    return lambda y: F.max_pool1d(y.unsqueeze(1), piece).squeeze(1)


def _avg_pool(piece: int) -> Callable[[Array], Array]:
    return lambda y: F.avg_pool1d(y.unsqueeze(1), piece).squeeze(1)


def _max_of_pieces(piece: int) -> Callable[[Array], Array]:
    return lambda y: y.view(y.shape[0], y.shape[1] // piece, piece).amax(-1)


AFFINE = dict(g="N", h="N")
ACTIVATION, ARITHMETIC, NORM, POOL, FOLD = "activation", "arithmetic", "norm", "pool", "fold"

ACTIVATIONS = (
    Step("relu", ACTIVATION, torch.relu),
    Step("gelu", ACTIVATION, F.gelu),
    Step("gelu-tanh", ACTIVATION, lambda y: F.gelu(y, approximate="tanh")),
    Step("swish", ACTIVATION, lambda y: y * torch.sigmoid(y)),
    Step("silu", ACTIVATION, F.silu),
    Step("mish", ACTIVATION, F.mish),
    Step("mish-by-hand", ACTIVATION, lambda y: y * torch.tanh(F.softplus(y))),
    Step("tanh", ACTIVATION, torch.tanh),
    Step("sigmoid", ACTIVATION, torch.sigmoid),
    Step("hardswish", ACTIVATION, F.hardswish),
    Step("hardtanh", ACTIVATION, lambda y: F.hardtanh(y, -2.0, 2.0)),
    Step("elu", ACTIVATION, F.elu),
    Step("leaky-relu", ACTIVATION, lambda y: F.leaky_relu(y, 0.1)),
    Step("softplus", ACTIVATION, F.softplus),
    Step("clamp", ACTIVATION, lambda y: torch.clamp(y, min=-0.5, max=0.5)),
)
ARITHMETICS = (
    Step("scale", ARITHMETIC, lambda y: y * 0.5),
    Step("divide", ARITHMETIC, lambda y: y / 10.0),
    Step("subtract-multiply", ARITHMETIC, lambda y: (y - 2.0) * 1.5),
    Step("add-bias", ARITHMETIC, lambda y, c: y + c, dict(c="N")),
    Step("residual", ARITHMETIC, lambda y, r: y + r, dict(r="M N")),
    Step("gate", ARITHMETIC, lambda y, r: y * torch.sigmoid(r), dict(r="M N")),
    Step("scale-rows", ARITHMETIC, lambda y, c: y * c, dict(c="M 1")),
)
NORMS = (
    Step("layer-norm", NORM, lambda y, g, h: F.layer_norm(y, y.shape[-1:], g, h), AFFINE),
    Step("layer-norm-by-hand", NORM, _layer_norm_by_hand, AFFINE),
    Step("rms-norm", NORM, lambda y, g: F.rms_norm(y, y.shape[-1:], g), dict(g="N")),
    Step("rms-norm-by-hand", NORM, _rms_by_hand, dict(g="N")),
    Step("group-norm-16", NORM, lambda y, g, h: F.group_norm(y, 16, g, h), AFFINE),
    Step("group-norm-2", NORM, lambda y, g, h: F.group_norm(y, 2, g, h), AFFINE),
    Step("batch-norm", NORM, _batch_norm, dict(mean="N", var="N", **AFFINE)),
    Step("batch-norm-by-hand", NORM, _batch_norm_by_hand, dict(mean="N", var="N", **AFFINE)),
    Step("instance-norm", NORM, _instance_norm),
    Step("norm-of-64", NORM, _norm_of_pieces(64)),
    Step("norm-of-256", NORM, _norm_of_pieces(256)),
    Step("normalize", NORM, lambda y: F.normalize(y, dim=1)),
    Step("softmax", NORM, lambda y: torch.softmax(y, dim=1)),
    Step("log-softmax", NORM, lambda y: F.log_softmax(y, dim=-1)),
)
POOLS = (
    Step("max-pool-2", POOL, _max_pool(2), leaves=FEWER),
    Step("max-pool-4", POOL, _max_pool(4), leaves=FEWER),
    Step("avg-pool-4", POOL, _avg_pool(4), leaves=FEWER),
    Step("avg-pool-16", POOL, _avg_pool(16), leaves=FEWER),
    Step("max-of-8", POOL, _max_of_pieces(8), leaves=FEWER),
)
FOLDS = (
    Step("sum", FOLD, lambda y: torch.sum(y, dim=1, keepdim=True), leaves=ONE),
    Step("mean", FOLD, lambda y: y.mean(dim=-1, keepdim=True), leaves=ONE),
    Step("max", FOLD, lambda y: torch.max(y, dim=1, keepdim=True).values, leaves=ONE),
    Step("min", FOLD, lambda y: torch.min(y, dim=1, keepdim=True)[0], leaves=ONE),
    Step("amax", FOLD, lambda y: y.amax(-1, keepdim=True), leaves=ONE),
    Step("logsumexp", FOLD, lambda y: torch.logsumexp(y, dim=1, keepdim=True), leaves=ONE),
    Step("length", FOLD, lambda y: y.norm(dim=-1, keepdim=True), leaves=ONE),
)
COLUMNS = (
    Step("mean-of-columns", FOLD, lambda y: y.mean(dim=0), leaves=ONE),
    Step("max-of-columns", FOLD, lambda y: y.amax(dim=0), leaves=ONE),
    Step("sum-of-columns", FOLD, lambda y: torch.sum(y, dim=0), leaves=ONE),
    Step("logsumexp-of-columns", FOLD, lambda y: torch.logsumexp(y, 0), leaves=ONE),
    Step("softmax-of-columns", FOLD, lambda y: torch.softmax(y, dim=0), leaves=ONE),
)
STEPS = (*ACTIVATIONS, *ARITHMETICS, *NORMS, *POOLS, *FOLDS, *COLUMNS)
BY_NAME = {step.name: step for step in STEPS}
