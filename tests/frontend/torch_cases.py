"""Calls of torch's functions and methods, one or more for each row that has torch's arguments."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

Call = Callable[..., Tensor]


@dataclass(frozen=True)
class Case:
    """A function of tensors of these shapes; ``labels`` are whole numbers below 5."""

    function: Call
    shapes: tuple[tuple[int, ...], ...] = ((4, 6),)
    labels: tuple[int, ...] = ()

    def tensors(self) -> list[Tensor]:
        """Reproducible tensors in float64, without ties."""
        drawn = torch.Generator().manual_seed(7)
        made = [torch.randn(shape, generator=drawn, dtype=torch.float64) for shape in self.shapes]
        for place in self.labels:
            made[place] = torch.arange(made[place].numel()).reshape(made[place].shape) % 5
        return made


def on(*functions: Call) -> list[Case]:
    return [Case(function) for function in functions]


def pair(*functions: Call) -> list[Case]:
    return [Case(function, ((4, 6), (4, 6))) for function in functions]


def _heads(function: Call, *more: tuple[int, ...]) -> Case:
    return Case(function, ((2, 6, 5, 4), (2, 3, 7, 4), *more))


def _classes(*functions: Call) -> list[Case]:
    return [Case(function, ((4, 6), (4,), (6,)), labels=(1,)) for function in functions]


_STEPS = torch.tensor([0.5, 1.0, 1.5, 2.0, 2.5, 3.0], dtype=torch.float64)

CASES: Mapping[str, list[Case]] = {
    "scaled_mm": [],  # torch has it for float8 alone: tests/compile/test_float8_calls.py
    "torch_gelu": on(lambda x: F.gelu(x, approximate="tanh"), F.gelu),
    "softplus": on(F.softplus, lambda x: F.softplus(40 * x, 2.0, 1.0)),
    "log_sigmoid": on(lambda x: F.logsigmoid(30 * x)),
    "torch_sign": on(
        torch.sign, lambda x: torch.where(x > 0, x, torch.nan).sgn(), lambda x: (x > 0).sign(),
    ),
    "leaky_relu": on(F.leaky_relu, lambda x: F.leaky_relu(x, 0.2)),
    "elu": on(F.elu, lambda x: F.elu(x, alpha=0.5)),
    "celu": on(lambda x: F.celu(x, 0.5)),
    "selu": on(F.selu),
    "hardtanh": on(F.hardtanh, lambda x: F.hardtanh(x, -0.5, 0.25)),
    "relu6": on(lambda x: F.relu6(5 * x)),
    "hardsigmoid": on(lambda x: F.hardsigmoid(3 * x)),
    "hardswish": on(lambda x: F.hardswish(3 * x)),
    "mish": on(F.mish),
    "softsign": on(F.softsign),
    "tanhshrink": on(F.tanhshrink),
    "dropout": on(lambda x: F.dropout(x, 0.5, False), lambda x: F.dropout(x, p=0.0)),
    "alpha_dropout": on(lambda x: F.alpha_dropout(x) + F.feature_alpha_dropout(x, 0.1)),
    "hardshrink": on(F.hardshrink, lambda x: x.hardshrink(0.3)),
    "softshrink": on(F.softshrink, lambda x: F.softshrink(x, 0.3)),
    "threshold": on(lambda x: F.threshold(x, 0.1, 2.0) + torch.threshold(x, -0.1, 1)),
    "prelu": [
        Case(F.prelu, ((4, 6), (6,))), Case(torch.prelu, ((4, 6), (1,))),
        Case(lambda x, w: x.prelu(w), ((2, 3, 4), (3,))),
    ],
    "rrelu": on(F.rrelu, lambda x: F.rrelu(x, 0.2, 0.3)),
    "functional_softmax": on(
        lambda x: F.softmax(x, 1, _stacklevel=5), lambda x: F.softmax(x, 0, 3, torch.float64),
    ),
    "functional_log_softmax": on(lambda x: F.log_softmax(x, 1, _stacklevel=5)),
    "softmin": on(lambda x: F.softmin(x, dim=1)),
    "glu": on(F.glu, lambda x: F.glu(x, 0)),
    "nll_loss": _classes(
        lambda x, y, w: F.nll_loss(F.log_softmax(x, 1), y),
        lambda x, y, w: F.nll_loss(x, y, w.exp(), ignore_index=1),
    ),
    "cross_entropy": [
        *_classes(
            lambda x, y, w: F.cross_entropy(x, y),
            lambda x, y, w: F.cross_entropy(x, y, ignore_index=2, label_smoothing=0.1),
            lambda x, y, w: F.cross_entropy(x, y, w.exp(), reduction="none"),
            lambda x, y, w: F.cross_entropy(x, y, w.exp(), label_smoothing=0.2, reduction="sum"),
            lambda x, y, w: F.cross_entropy(x[0], y[1]),
        ),
        *pair(
            lambda x, y: F.cross_entropy(x, F.softmax(y, -1), label_smoothing=0.1),
            lambda x, y: F.cross_entropy(x, F.softmax(y, -1), reduction="none"),
        ),
        Case(F.cross_entropy, ((2, 6, 3), (2, 3)), labels=(1,)),
    ],
    "mse_loss": pair(F.mse_loss, lambda x, y: F.mse_loss(x, y, reduction="none")),
    "l1_loss": pair(lambda x, y: F.l1_loss(x, y, reduction="sum")),
    "huber_loss": pair(lambda x, y: F.huber_loss(x, y, delta=0.7)),
    "smooth_l1_loss": pair(
        lambda x, y: F.smooth_l1_loss(x, y, beta=0.5), lambda x, y: F.smooth_l1_loss(x, y, beta=0.0)
    ),
    "kl_div": pair(
        lambda x, y: F.kl_div(x, F.softmax(y, -1), reduction="batchmean"),
        lambda x, y: F.kl_div(x, F.relu(y), reduction="sum"),
        lambda x, y: F.kl_div(x, y, log_target=True, reduction="none"),
    ),
    "binary_cross_entropy": pair(
        lambda x, y: F.binary_cross_entropy(x.sigmoid(), y.sigmoid(), reduction="none")
    ),
    "binary_cross_entropy_with_logits": pair(
        lambda x, y: F.binary_cross_entropy_with_logits(40 * x, y.sigmoid()),
        lambda x, y: F.binary_cross_entropy_with_logits(
            x, y.sigmoid(), weight=y.exp(), pos_weight=x[0].exp()
        ),
    ),
    "linear": [
        Case(F.linear, ((2, 4, 6), (3, 6), (3,))), Case(F.linear, ((4, 6), (6,))),
    ],
    "torch_embedding": [
        Case(lambda x, w: F.embedding(x, w, padding_idx=0), ((2, 3), (5, 4)), labels=(0,))
    ],
    "torch_layer_norm": [
        Case(lambda x, w, b: F.layer_norm(x, (6,), w, b, 1e-3), ((4, 6), (6,), (6,))),
        Case(lambda x, w, b: F.layer_norm(x, (4, 6), w, b), ((3, 4, 6), (4, 6), (4, 6))),
    ],
    "torch_rms_norm": [
        Case(lambda x, w: F.rms_norm(x, (6,), w), ((4, 6), (6,))),
        Case(lambda x, w: F.rms_norm(x, (4, 6), w, 1e-3), ((3, 4, 6), (4, 6))),
    ],
    "batch_norm": [
        Case(
            lambda x, m, v, w, b: F.batch_norm(x, m, v.exp(), w, b, eps=1e-3),
            ((2, 3, 4), (3,), (3,), (3,), (3,)),
        )
    ],
    "normalize": on(F.normalize, lambda x: F.normalize(x, 1.0, dim=0)),
    "group_norm": [
        Case(lambda x, w, b: F.group_norm(x, 3, w, b), ((2, 6, 4), (6,), (6,))),
        Case(lambda x, w: F.group_norm(x, 2, w, eps=1e-3), ((2, 6, 3, 2), (6,))),
    ],
    "cdist": [
        Case(torch.cdist, ((4, 3), (5, 3))),
        Case(lambda x, y: torch.cdist(x, y, p=1.0), ((2, 4, 3), (2, 5, 3))),
    ],
    "triplet_margin_loss": [Case(F.triplet_margin_loss, ((4, 6),) * 3)],
    "cosine_similarity": pair(F.cosine_similarity, lambda x, y: F.cosine_similarity(x, y, dim=0)),
    "pairwise_distance": pair(F.pairwise_distance),
    "scaled_dot_product_attention": [
        _heads(lambda q, k: F.scaled_dot_product_attention(q[:, :3], k, k)),
        _heads(lambda q, k: F.scaled_dot_product_attention(
            q[:, :3], k, k, is_causal=True, scale=0.3)),
        _heads(lambda q, k, m: F.scaled_dot_product_attention(
            q[:, :3], k, k, attn_mask=m), (5, 7)),
        _heads(lambda q, k, m: F.scaled_dot_product_attention(
            q[:, :3], k, k, attn_mask=m > 0), (5, 7)),
        _heads(lambda q, k, m: F.scaled_dot_product_attention(
            q, k, k, attn_mask=m, enable_gqa=True), (5, 7)),
        _heads(lambda q, k: F.scaled_dot_product_attention(
            q, k, k, is_causal=True, enable_gqa=True)),
    ],
    "to": pair(
        lambda x, y: x.to(y.dtype) + x.to(torch.float32).to(y),
        lambda x, y: x.to(dtype=y.dtype, copy=True) + y.to(x, non_blocking=True),
    ),
    "type_as": pair(lambda x, y: x.float().type_as(y)),
    "torch_type": on(lambda x: x.type(torch.float32) * 2.0),
    "to_float": on(lambda x: x.float() * 2.0),
    "to_bool": on(lambda x: x.round().bool() * 2.0),
    "to_byte": on(lambda x: x.abs().byte() * 2.0),
    "to_char": on(lambda x: x.char() * 2.0),
    "to_short": on(lambda x: (30 * x).short() * 2.0),
    "to_int": on(lambda x: (30 * x).int() * 2.0),
    "to_long": on(lambda x: (30 * x).long() * 2.0),
    "is_floating_point": on(lambda x: x * x.is_floating_point() + torch.is_floating_point(x > 0)),
    "is_complex": on(lambda x: x * 3 if not (x.is_complex() or torch.is_complex(x)) else x),
    "is_signed": on(lambda x: x * x.is_signed() + (x > 0).is_signed()),
    "element_size": on(lambda x: x * x.element_size() + x.itemsize + x.float().element_size()),
    "to_half": on(lambda x: x.half().double()),
    "to_bfloat16": on(lambda x: x.bfloat16().double()),
    "to_double": on(lambda x: x.double()),
    "t": on(lambda x: x.t() @ x + torch.t(x) @ x, lambda x: x[0].t()),
    "dim": on(lambda x: x * x.dim() + x.ndimension()),
    "numel": on(lambda x: x / x.numel() + torch.numel(x)),
    "detach": on(lambda x: x.detach() + torch.detach(x), lambda x: torch.positive(x) * 2),
    "contiguous": on(lambda x: x.contiguous() + x.clone()),
    "copy_": pair(lambda x, y: (x * 2).copy_(y) + x),
    "fill_": on(lambda x: (x * 2).fill_(3.0) + torch.fill_(x * 2, 1.0)),
    "fill_diagonal_": on(lambda x: (x @ x.T).fill_diagonal_(3.0)),
    "zero_": on(lambda x: (x * 2).zero_() + torch.zero_(x * 2)),
    "masked_fill": pair(lambda x, y: x.masked_fill(y > 0, -1.0)),
    "where_of": pair(lambda x, y: x.where(x > 0, y) + torch.where(x > y, x, 0.0)),
    "add": pair(lambda x, y: x.add(y, alpha=2) + torch.add(x, 3.0)),
    "sub": pair(lambda x, y: x.sub(y, alpha=2) - torch.subtract(x, y)),
    "rsub": pair(lambda x, y: torch.rsub(x, y, alpha=3)),
    "div": pair(
        lambda x, y: x.div(2.0) + torch.div(x, y), lambda x, y: x.div(y, rounding_mode="trunc")
    ),
    "frac": on(lambda x: x.frac() + torch.frac(3 * x)),
    "torch_heaviside": pair(
        lambda x, y: torch.heaviside(x.round(), y) + x.round().heaviside(y)),
    "xlogy": pair(lambda x, y: torch.xlogy(x.abs().floor(), y.abs()) + x.xlogy(y.abs())),
    "logit": on(lambda x: torch.logit(x.sigmoid()) + x.logit(eps=0.1)),
    "torch_sort": [
        Case(lambda x: torch.sort(x, 1, descending=True)[0] + x.sort(0).values, ((4, 6),)),
        Case(lambda x: (x * 2).round().sort(stable=True).indices, ((4, 6),)),
        Case(lambda x: (x * 2).round().sort(descending=True, stable=True).indices, ((4, 6),)),
    ],
    "torch_argsort": [
        Case(lambda x: torch.argsort(x, 0) - x.argsort(1, descending=True), ((5, 5),)),
    ],
    "msort": [Case(torch.msort, ((4, 6),))],
    "kthvalue": [
        Case(lambda x: x.kthvalue(3, 1).values, ((4, 6),)),
        Case(lambda x: torch.kthvalue(x, 1, keepdim=True).indices, ((4, 6),)),
    ],
    "torch_median": [
        Case(lambda x: torch.median(x) + x.median(1).values, ((4, 6),)),
        Case(lambda x: torch.median(x.log(), 0, keepdim=True)[0], ((5, 6),)),
    ],
    "cummax": [Case(lambda x: torch.cummax(x.log(), 1).values, ((4, 6),)),
               Case(lambda x: x.round().cummax(0).indices, ((4, 6),))],
    "cummin": [Case(lambda x: torch.cummin(x, 1)[0], ((4, 6),)),
               Case(lambda x: x.log().cummin(0)[1], ((4, 6),))],
    "logcumsumexp": [Case(lambda x: torch.logcumsumexp(x * 99, 1)),
                     Case(lambda x: x.log().nan_to_num(-math.inf).logcumsumexp(0))],
    "addmm": [
        Case(lambda x, a, b: torch.addmm(x, a, b, beta=2, alpha=0.5), ((4, 6), (4, 3), (3, 6))),
        Case(lambda x, a, b: x.addmm(a, b), ((6,), (4, 3), (3, 6))),
    ],
    "addbmm": [
        Case(lambda x, a, b: torch.addbmm(x, a, b, beta=0.5, alpha=2),
             ((4, 6), (3, 4, 5), (3, 5, 6))),
    ],
    "baddbmm": [
        Case(lambda x, a, b: torch.baddbmm(x, a, b, beta=0.5) + x.baddbmm(batch1=a, batch2=b),
             ((3, 4, 6), (3, 4, 5), (3, 5, 6))),
    ],
    "addmv": [Case(lambda x, a, v: torch.addmv(x, a, v, alpha=2), ((4,), (4, 6), (6,)))],
    "addr": [Case(lambda x, u, v: x.addr(u, v, beta=0.5), ((4, 6), (4,), (6,)))],
    "mv": [Case(lambda a, v: a.mv(v) + torch.mv(a, v), ((4, 6), (6,)))],
    "chain_matmul": [],  # torch warns of it: test_torch_modules.py
    "multi_dot": pair(lambda x, y: torch.linalg.multi_dot([x, y.T, x])),
    "matrix_norm": [Case(torch.linalg.matrix_norm, ((2, 4, 6),))],
    "bilinear": [
        Case(F.bilinear, ((4, 5), (4, 3), (2, 5, 3), (2,))),
        Case(lambda x, y, w: F.bilinear(x, y, w), ((2, 4, 5), (2, 4, 3), (2, 5, 3))),
    ],
    "addcmul": pair(lambda x, y: torch.addcmul(x, y, y, value=2)),
    "addcdiv": pair(lambda x, y: x.addcdiv(y, y * y)),
    "lerp": pair(lambda x, y: torch.lerp(x, y, 0.3)),
    "clamp_min": on(lambda x: x.clamp_min(0.1)),
    "clamp_max": on(lambda x: torch.clamp_max(x, 0.1)),
    "torch_softmax": on(lambda x: x.softmax(-1) + torch.softmax(x, 0, dtype=torch.float64)),
    "torch_log_softmax": on(lambda x: x.log_softmax(-1) + torch.log_softmax(x, dim=0)),
    "torch_sum": on(lambda x: x.sum(-1, keepdim=True) + x.sum() + torch.sum(x, dim=(0, 1))),
    "torch_mean": on(lambda x: x.mean(dim=-1, keepdim=True) + torch.mean(x, dim=0)),
    "amax": on(lambda x: x.amax(1), lambda x: torch.amax(x, (), keepdim=True) + x),
    "amin": on(lambda x: torch.amin(x, (0, 1)), lambda x: x.amin(dim=())),
    "count": on(lambda x: (x > 0).count_nonzero(1) + torch.count_nonzero(x)),
    "any_of": on(lambda x: (x > 1).any(-1, keepdim=True) * x, lambda x: torch.any(x > 0) * x),
    "all_of": on(lambda x: (x > -1).all(dim=0) * x, lambda x: torch.all(x > 0) * x),
    "torch_max": [
        *pair(lambda x, y: torch.max(x, y) + x.max() + x.max(dim=1, keepdim=True).values),
        *on(lambda x: x.max(-1)[0], lambda x: x.amax(1)),
    ],
    "torch_min": pair(lambda x, y: torch.min(x, y) + x.min() + x.min(0)[0]),
    "permute": on(lambda x: x.permute(1, 0), lambda x: torch.permute(x[None], (2, 0, 1))),
    "torch_chunk": on(lambda x: torch.cat(x.chunk(2, dim=-1)[::-1], dim=-1)),
    "torch_unbind": on(lambda x: torch.stack(x.unbind(1)[::-1]), lambda x: torch.unbind(x)[2]),
    "tensor_split": on(
        lambda x: torch.cat(x.tensor_split(4, 1)[::-1], 1),
        lambda x: torch.cat(torch.tensor_split(x, (1, 4), dim=1)[::-1], 1),
        lambda x: torch.tensor_split(x, (2, 9), dim=0)[1], lambda x: x.tensor_split((-2,), 1)[0],
    ),
    "torch_hsplit": on(
        lambda x: torch.hsplit(x, 2)[1] + x.hsplit([3])[0], lambda x: x[0].hsplit(2)[1]
    ),
    "torch_vsplit": on(lambda x: torch.vsplit(x, 2)[1] + x.vsplit([2])[0]),
    "torch_dsplit": [Case(lambda x: torch.dsplit(x, 2)[1] + x.dsplit([2])[0], ((2, 3, 4),))],
    "torch_gradient": on(lambda x: sum(torch.gradient(x, spacing=0.5))),
    "torch_cross": pair(lambda x, y: torch.cross(x[:, :3], y[:, 3:], dim=1)),
    "torch_cov": on(lambda x: torch.cov(x, correction=0), lambda x: x[:1].cov()),
    "narrow": on(lambda x: x.narrow(1, 2, 3), lambda x: torch.narrow(x, 0, -2, 1)),
    "select": on(lambda x: x.select(1, 2), lambda x: torch.select(x, 0, -1)),
    "expand_as": pair(lambda x, y: x[:1].expand_as(y) * y + x[0].expand_as(y)),
    "view_as": pair(lambda x, y: (x * 1).view_as(y.T) @ y),
    "reshape_as": pair(lambda x, y: x.T.reshape_as(y) * y),
    "sum_to_size": on(
        lambda x: x.sum_to_size(1, 6), lambda x: x.sum_to_size((6,)), lambda x: x.sum_to_size(4, 6),
        lambda x: x[None].sum_to_size(4, 1),
    ),
    "matrix_transpose": on(lambda x: x.adjoint() @ x + x.H @ x + x.mH @ x),
    "broadcast_tensors": on(lambda x: sum(torch.broadcast_tensors(x, x[0], x[:, :1]))),
    "torch_meshgrid": on(
        lambda x: torch.meshgrid(x[0], x[:, 0], indexing="ij")[1],
        lambda x: torch.meshgrid(x[0], x[:, 0], indexing="xy")[0],
    ),
    "diag_embed": on(torch.diag_embed),
    "split": on(
        lambda x: sum(x.split(2, dim=1)), lambda x: torch.split(x, [2, 4], 1)[1],
        lambda x: torch.cat(x.split(4, dim=-1)[::-1], -1),
    ),
    "split_with_sizes": on(
        lambda x: x.split_with_sizes([1, 2, 3], -1)[2],
        lambda x: torch.split_with_sizes(x, split_sizes=[1, 5], dim=1)[1],
    ),
    "topk": [
        *on(lambda x: x.topk(3, dim=1)[0] + x.topk(3).indices, lambda x: x.topk(1, 0).values,
             lambda x: torch.topk(x, 2, dim=0, largest=False)[0]),
        Case(lambda x: torch.topk(x, 4).indices.double(), ((2, 3, 7),)),
    ],
    "gather": [
        Case(lambda x, y: x.gather(1, y), ((4, 6), (4, 3)), labels=(1,)),
        Case(lambda x, y: torch.gather(x, 0, y), ((5, 3), (4, 3)), labels=(1,)),
    ],
    "torch_one_hot": [Case(lambda x: F.one_hot(x, 6) * 2.0, ((4, 6),), labels=(0,))],
    "new_zeros": on(lambda x: x + x.new_zeros(6) + x.new_zeros((4, 1))),
    "new_ones": on(lambda x: x + x.new_ones(4, 6)),
    "new_full": on(lambda x: x * x.new_full((6,), 0.5)),
    "torch_ones": on(lambda x: x + torch.ones(x.shape) + torch.ones((x.shape[0], 1))),
    "torch_zeros": on(lambda x: x + torch.zeros(x.shape[1], dtype=torch.float64)),
    "torch_full": on(lambda x: x * torch.full(x.shape, 2.5)),
    "torch_arange": on(
        lambda x: x + torch.arange(x.shape[1]), lambda x: x + torch.arange(1, 2 * x.shape[1], 2)
    ),
    "torch_eye": on(lambda x: x + torch.eye(*x.shape), lambda x: x + torch.eye(x.shape[1])[:1]),
    "torch_linspace": on(lambda x: x * torch.linspace(-1, 1, x.shape[1], dtype=torch.float64)),
    "torch_var": on(
        lambda x: x.var(-1) + torch.var(x, dim=1, unbiased=False), lambda x: torch.var(x, False),
        lambda x: x.var(dim=0, correction=2, keepdim=True),
    ),
    "torch_std": on(lambda x: x.std(dim=-1) + x.std(1, correction=0)),
    "var_mean": on(
        lambda x: torch.cat(torch.var_mean(x, dim=1)), lambda x: sum(torch.var_mean(x)),
        lambda x: sum(torch.var_mean(x, (0, 1), unbiased=False)),
    ),
    "std_mean": on(lambda x: sum(torch.std_mean(x, 1, keepdim=True, correction=0))),
    "aminmax": on(lambda x: x.aminmax(dim=1).max - torch.aminmax(x)[0]),
    "torch_logsumexp": on(lambda x: torch.logsumexp(x, (0, 1)), lambda x: x.logsumexp(1, True)),
    "dist": pair(lambda x, y: torch.dist(x, y) + x.dist(y, 3)),
    "torch_norm": on(
        lambda x: x.norm(p=1) + torch.linalg.vector_norm(x, math.inf),
        lambda x: torch.linalg.vector_norm(x, 3, dim=(0, 1)) + torch.norm(x, p=0),
        lambda x: x.norm() + x.norm(dim=-1) + torch.norm(x, p=1, dim=1),
        lambda x: torch.linalg.vector_norm(x, ord=3, dim=0, keepdim=True),
    ),
}  # fmt: skip

OPERATORS: list[Case] = [
    *on(
        lambda x: _STEPS @ x.mT + 1.0, lambda x: _STEPS - x, lambda x: _STEPS / x.exp(),
        lambda x: 2.0**x * _STEPS, lambda x: torch.cat([_STEPS[None], x], 0),
        lambda x: torch.maximum(_STEPS, x), lambda x: torch.tensor(2.0) * x,
        lambda x: torch.where(x < _STEPS, _STEPS, x), lambda x: F.mse_loss(_STEPS[None], x[:1]),
        lambda x: x * ((_STEPS > 1) & (x > 0)) + ((_STEPS > 2) | (x > 1)),
        lambda x: x * ((_STEPS > 1) ^ (x > 0)) + ((x > 0) ^ (_STEPS > 2)),
        lambda x: torch.einsum("ij,j->i", x, _STEPS), lambda x: torch.matmul(_STEPS, other=x.T),
        lambda x: x.size(-1) * x + x.size()[0] + x.shape[1] + x.size(0) ** 0.5,
        lambda x: x.unsqueeze(0).permute(1, 0, 2).reshape(4, 6) + x.view(-1).view(4, 6),
        lambda x: torch.cat(x.chunk(2, dim=-1)[::-1], dim=-1) + x.transpose(0, 1).T,
        lambda x: sum(x.split(2, dim=1)) + x.split([2, 4], dim=1)[0],
        lambda x: x.abs().pow(1.5).sqrt().rsqrt().clamp(0.1, 0.9).square(),
    ),
]  # fmt: skip
"""Operators and methods that mean what they mean in NumPy, beside tensors that are captured."""
