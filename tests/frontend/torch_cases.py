"""Calls of torch's functions and methods, one or more for each row that has torch's arguments."""

from __future__ import annotations

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


def _on(*functions: Call) -> list[Case]:
    return [Case(function) for function in functions]


def _pair(*functions: Call) -> list[Case]:
    return [Case(function, ((4, 6), (4, 6))) for function in functions]


def _heads(function: Call, *more: tuple[int, ...]) -> Case:
    return Case(function, ((2, 6, 5, 4), (2, 3, 7, 4), *more))


def _classes(*functions: Call) -> list[Case]:
    return [Case(function, ((4, 6), (4,), (6,)), labels=(1,)) for function in functions]


_STEPS = torch.tensor([0.5, 1.0, 1.5, 2.0, 2.5, 3.0], dtype=torch.float64)

CASES: Mapping[str, list[Case]] = {
    "scaled_mm": [],  # torch has it for float8 alone: tests/compile/test_float8_calls.py
    "torch_gelu": _on(lambda x: F.gelu(x, approximate="tanh"), F.gelu),
    "softplus": _on(F.softplus, lambda x: F.softplus(40 * x, 2.0, 1.0)),
    "log_sigmoid": _on(lambda x: F.logsigmoid(30 * x)),
    "leaky_relu": _on(F.leaky_relu, lambda x: F.leaky_relu(x, 0.2)),
    "elu": _on(F.elu, lambda x: F.elu(x, alpha=0.5)),
    "celu": _on(lambda x: F.celu(x, 0.5)),
    "selu": _on(F.selu),
    "hardtanh": _on(F.hardtanh, lambda x: F.hardtanh(x, -0.5, 0.25)),
    "relu6": _on(lambda x: F.relu6(5 * x)),
    "hardsigmoid": _on(lambda x: F.hardsigmoid(3 * x)),
    "hardswish": _on(lambda x: F.hardswish(3 * x)),
    "mish": _on(F.mish),
    "softsign": _on(F.softsign),
    "tanhshrink": _on(F.tanhshrink),
    "dropout": _on(lambda x: F.dropout(x, 0.5, False), lambda x: F.dropout(x, p=0.0)),
    "glu": _on(F.glu, lambda x: F.glu(x, 0)),
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
        *_pair(
            lambda x, y: F.cross_entropy(x, F.softmax(y, -1), label_smoothing=0.1),
            lambda x, y: F.cross_entropy(x, F.softmax(y, -1), reduction="none"),
        ),
        Case(F.cross_entropy, ((2, 6, 3), (2, 3)), labels=(1,)),
    ],
    "mse_loss": _pair(F.mse_loss, lambda x, y: F.mse_loss(x, y, reduction="none")),
    "l1_loss": _pair(lambda x, y: F.l1_loss(x, y, reduction="sum")),
    "huber_loss": _pair(lambda x, y: F.huber_loss(x, y, delta=0.7)),
    "smooth_l1_loss": _pair(
        lambda x, y: F.smooth_l1_loss(x, y, beta=0.5), lambda x, y: F.smooth_l1_loss(x, y, beta=0.0)
    ),
    "kl_div": _pair(
        lambda x, y: F.kl_div(x, F.softmax(y, -1), reduction="batchmean"),
        lambda x, y: F.kl_div(x, F.relu(y), reduction="sum"),
        lambda x, y: F.kl_div(x, y, log_target=True, reduction="none"),
    ),
    "binary_cross_entropy": _pair(
        lambda x, y: F.binary_cross_entropy(x.sigmoid(), y.sigmoid(), reduction="none")
    ),
    "binary_cross_entropy_with_logits": _pair(
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
    "normalize": _on(F.normalize, lambda x: F.normalize(x, 1.0, dim=0)),
    "group_norm": [
        Case(lambda x, w, b: F.group_norm(x, 3, w, b), ((2, 6, 4), (6,), (6,))),
        Case(lambda x, w: F.group_norm(x, 2, w, eps=1e-3), ((2, 6, 3, 2), (6,))),
    ],
    "cdist": [
        Case(torch.cdist, ((4, 3), (5, 3))),
        Case(lambda x, y: torch.cdist(x, y, p=1.0), ((2, 4, 3), (2, 5, 3))),
    ],
    **{
        f"conv{count}d": [
            Case(
                lambda x, w, b, conv=conv: conv(x, w, b, 2, 1),
                ((2, 4, *(5, 6, 3)[:count]), (3, 4, *(3, 2, 1)[:count]), (3,)),
            ),
            Case(
                lambda x, w, conv=conv: conv(x, w, padding="same", dilation=2, groups=2),
                ((4, *(5, 6, 3)[:count]), (6, 2, *(2, 3, 2)[:count])),
            ),
        ]
        for count, conv in ((1, F.conv1d), (2, F.conv2d), (3, F.conv3d))
    },
    **{
        f"conv_transpose{count}d": [
            Case(
                lambda x, w, b, conv=conv: conv(x, w, b, 2, 1, 1),
                ((2, 4, *(5, 4, 3)[:count]), (4, 3, *(3, 2, 4)[:count]), (3,)),
            ),
            Case(
                lambda x, w, conv=conv: conv(x, w, stride=3, groups=4, dilation=2),
                ((4, *(3, 2, 2)[:count]), (4, 1, *(2, 3, 2)[:count])),
            ),
        ]
        for count, conv in (
            (1, F.conv_transpose1d), (2, F.conv_transpose2d), (3, F.conv_transpose3d),
        )
    },
    "avg_pool1d": [
        Case(lambda x: F.avg_pool1d(x, 3), ((2, 4, 6),)),
        Case(lambda x: F.avg_pool1d(x, 3, 2, 1, True, False), ((4, 7),)),
    ],
    "avg_pool2d": [
        Case(lambda x: F.avg_pool2d(x, (2, 3)), ((2, 4, 6),)),
        Case(lambda x: F.avg_pool2d(x, 3, 2, 1, divisor_override=7), ((2, 4, 6),)),
        Case(lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True), ((1, 2, 4, 6),)),
    ],
    "avg_pool3d": [Case(lambda x: F.avg_pool3d(x, 2, 1), ((2, 3, 4, 6),))],
    "max_pool1d": [
        Case(lambda x: F.max_pool1d(x, 2, 2), ((2, 4, 6),)),
        Case(lambda x: F.max_pool1d(x, 3, 2, 1, 2), ((2, 4, 8),)),
    ],
    "max_pool2d": [
        Case(lambda x: F.max_pool2d(x, 2), ((3, 2, 4, 6),)),
        Case(lambda x: F.max_pool2d(x, 3, stride=2, padding=1), ((3, 2, 4, 6),)),
        Case(lambda x: F.max_pool2d(x, (2, 3), 2, ceil_mode=True), ((2, 5, 6),)),
    ],
    "max_pool3d": [Case(lambda x: F.max_pool3d(x, 2, 1, 1), ((2, 3, 4, 3),))],
    "lp_pool1d": [Case(lambda x: F.lp_pool1d(x, 2, 3, 2), ((2, 4, 7),))],
    "lp_pool2d": [Case(lambda x: F.lp_pool2d(x, 2, (2, 3), ceil_mode=True), ((2, 3, 5, 7),))],
    "lp_pool3d": [Case(lambda x: F.lp_pool3d(x, 4, 2), ((2, 3, 5, 4),))],
    "adaptive_avg_pool1d": [
        Case(lambda x: F.adaptive_avg_pool1d(x, 1), ((2, 4, 6),)),
        Case(lambda x: F.adaptive_avg_pool1d(x, 3), ((2, 4, 6),)),
    ],
    "adaptive_avg_pool2d": [
        Case(lambda x: F.adaptive_avg_pool2d(x, (1, 1)), ((3, 2, 4, 6),)),
        Case(lambda x: F.adaptive_avg_pool2d(x, (None, 2)), ((2, 4, 6),)),
    ],
    "adaptive_avg_pool3d": [Case(lambda x: F.adaptive_avg_pool3d(x, 2), ((3, 2, 4, 6),))],
    "adaptive_max_pool1d": [Case(lambda x: F.adaptive_max_pool1d(x, 3), ((2, 4, 6),))],
    "adaptive_max_pool2d": [Case(lambda x: F.adaptive_max_pool2d(x, (1, 3)), ((2, 4, 6),))],
    "adaptive_max_pool3d": [Case(lambda x: F.adaptive_max_pool3d(x, (1, 2, 3)), ((3, 2, 4, 6),))],
    "unfold": [
        Case(lambda x: F.unfold(x, (2, 3), padding=1), ((2, 3, 4, 5),)),
        Case(lambda x: F.unfold(x, 2, 2, 1, 2), ((3, 4, 5),)),
    ],
    "fold": [Case(lambda x: F.fold(x, (4, 6), (2, 3), stride=(2, 3)), ((2, 12, 4),))],
    "torch_unfold": _on(lambda x: x.unfold(1, 3, 2), lambda x: x.unfold(0, 2, 1)),
    "narrow": _on(lambda x: x.narrow(1, 2, 3) + torch.narrow(x, -1, -4, 3)),
    "pixel_shuffle": [
        Case(lambda x: F.pixel_shuffle(x, 2), ((2, 8, 3, 4),)),
        Case(lambda x: torch.pixel_shuffle(x, 3), ((9, 3, 4),)),
    ],
    "pixel_unshuffle": [Case(lambda x: F.pixel_unshuffle(x, 2), ((2, 3, 4, 6),))],
    "channel_shuffle": [Case(lambda x: F.channel_shuffle(x, 3), ((2, 6, 4, 5),))],
    "interpolate": [
        Case(lambda x: F.interpolate(x, scale_factor=2), ((2, 3, 4),)),
        Case(lambda x: F.interpolate(x, size=(8, 5)), ((2, 3, 4, 5),)),
        Case(lambda x: F.interpolate(x, None, (1, 3), "nearest-exact"), ((2, 3, 4, 5),)),
    ],
    "local_response_norm": [
        Case(lambda x: F.local_response_norm(x, 3), ((2, 5, 4),)),
        Case(lambda x: F.local_response_norm(x, 2, 0.1, 0.5, 2.0), ((2, 5, 4, 3),)),
    ],
    "instance_norm": [
        Case(lambda x, w, b: F.instance_norm(x, None, None, w, b), ((2, 5, 4, 3), (5,), (5,))),
        Case(
            lambda x, m, v, w: F.instance_norm(x, m, v.exp(), w, use_input_stats=False),
            ((2, 3, 4), (3,), (3,), (3,)),
        ),
    ],
    "triplet_margin_loss": [Case(F.triplet_margin_loss, ((4, 6),) * 3)],
    "cosine_similarity": _pair(F.cosine_similarity, lambda x, y: F.cosine_similarity(x, y, dim=0)),
    "pairwise_distance": _pair(F.pairwise_distance),
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
    "to": _pair(
        lambda x, y: x.to(y.dtype) + x.to(torch.float32).to(y),
        lambda x, y: x.to(dtype=y.dtype, copy=True) + y.to(x, non_blocking=True),
    ),
    "type_as": _pair(lambda x, y: x.float().type_as(y)),
    "to_float": _on(lambda x: x.float() * 2.0),
    "to_half": _on(lambda x: x.half().double()),
    "to_bfloat16": _on(lambda x: x.bfloat16().double()),
    "to_double": _on(lambda x: x.double()),
    "t": _on(lambda x: x.t() @ x + torch.t(x) @ x, lambda x: x[0].t()),
    "dim": _on(lambda x: x * x.dim() + x.ndimension()),
    "numel": _on(lambda x: x / x.numel() + torch.numel(x)),
    "detach": _on(lambda x: x.detach() + torch.detach(x)),
    "contiguous": _on(lambda x: x.contiguous() + x.clone()),
    "copy_": _pair(lambda x, y: (x * 2).copy_(y) + x),
    "fill_": _on(lambda x: (x * 2).fill_(3.0) + torch.fill_(x * 2, 1.0)),
    "zero_": _on(lambda x: (x * 2).zero_() + torch.zero_(x * 2)),
    "masked_fill": _pair(lambda x, y: x.masked_fill(y > 0, -1.0)),
    "where_of": _pair(lambda x, y: x.where(x > 0, y) + torch.where(x > y, x, 0.0)),
    "add": _pair(lambda x, y: x.add(y, alpha=2) + torch.add(x, 3.0)),
    "sub": _pair(lambda x, y: x.sub(y, alpha=2) - torch.subtract(x, y)),
    "rsub": _pair(lambda x, y: torch.rsub(x, y, alpha=3)),
    "div": _pair(lambda x, y: x.div(2.0) + torch.div(x, y)),
    "addmm": [
        Case(lambda x, a, b: torch.addmm(x, a, b, beta=2, alpha=0.5), ((4, 6), (4, 3), (3, 6))),
        Case(lambda x, a, b: x.addmm(a, b), ((6,), (4, 3), (3, 6))),
    ],
    "addcmul": _pair(lambda x, y: torch.addcmul(x, y, y, value=2)),
    "addcdiv": _pair(lambda x, y: x.addcdiv(y, y * y)),
    "lerp": _pair(lambda x, y: torch.lerp(x, y, 0.3)),
    "clamp_min": _on(lambda x: x.clamp_min(0.1)),
    "clamp_max": _on(lambda x: torch.clamp_max(x, 0.1)),
    "torch_softmax": _on(lambda x: x.softmax(-1) + F.softmax(x, dim=0, dtype=torch.float64)),
    "torch_log_softmax": _on(lambda x: x.log_softmax(-1) + torch.log_softmax(x, dim=0)),
    "torch_sum": _on(lambda x: x.sum(-1, keepdim=True) + x.sum() + torch.sum(x, dim=(0, 1))),
    "torch_mean": _on(lambda x: x.mean(dim=-1, keepdim=True) + torch.mean(x, dim=0)),
    "amax": _on(lambda x: x.amax(1), lambda x: torch.amax(x, (), keepdim=True) + x),
    "amin": _on(lambda x: torch.amin(x, (0, 1)), lambda x: x.amin(dim=())),
    "count": _on(lambda x: (x > 0).count_nonzero(1) + torch.count_nonzero(x)),
    "any_of": _on(lambda x: (x > 1).any(-1, keepdim=True) * x, lambda x: torch.any(x > 0) * x),
    "all_of": _on(lambda x: (x > -1).all(dim=0) * x, lambda x: torch.all(x > 0) * x),
    "torch_max": [
        *_pair(lambda x, y: torch.max(x, y) + x.max() + x.max(dim=1, keepdim=True).values),
        *_on(lambda x: x.max(-1)[0], lambda x: x.amax(1)),
    ],
    "torch_min": _pair(lambda x, y: torch.min(x, y) + x.min() + x.min(0)[0]),
    "permute": _on(lambda x: x.permute(1, 0), lambda x: torch.permute(x[None], (2, 0, 1))),
    "chunk": _on(lambda x: torch.cat(x.chunk(2, dim=-1)[::-1], dim=-1)),
    "split": _on(
        lambda x: sum(x.split(2, dim=1)), lambda x: torch.split(x, [2, 4], 1)[1],
        lambda x: torch.cat(x.split(4, dim=-1)[::-1], -1),
    ),
    "topk": [
        *_on(lambda x: x.topk(3, dim=1)[0] + x.topk(3).indices, lambda x: x.topk(1, 0).values,
             lambda x: torch.topk(x, 2, dim=0, largest=False)[0]),
        Case(lambda x: torch.topk(x, 4).indices.double(), ((2, 3, 7),)),
    ],
    "gather": [
        Case(lambda x, y: x.gather(1, y), ((4, 6), (4, 3)), labels=(1,)),
        Case(lambda x, y: torch.gather(x, 0, y), ((5, 3), (4, 3)), labels=(1,)),
    ],
    "torch_one_hot": [Case(lambda x: F.one_hot(x, 6) * 2.0, ((4, 6),), labels=(0,))],
    "new_zeros": _on(lambda x: x + x.new_zeros(6) + x.new_zeros((4, 1))),
    "new_ones": _on(lambda x: x + x.new_ones(4, 6)),
    "new_full": _on(lambda x: x * x.new_full((6,), 0.5)),
    "torch_ones": _on(lambda x: x + torch.ones(x.shape) + torch.ones((x.shape[0], 1))),
    "torch_zeros": _on(lambda x: x + torch.zeros(x.shape[1], dtype=torch.float64)),
    "torch_full": _on(lambda x: x * torch.full(x.shape, 2.5)),
    "torch_arange": _on(
        lambda x: x + torch.arange(x.shape[1]), lambda x: x + torch.arange(1, 2 * x.shape[1], 2)
    ),
    "torch_eye": _on(lambda x: x + torch.eye(*x.shape), lambda x: x + torch.eye(x.shape[1])[:1]),
    "torch_linspace": _on(lambda x: x * torch.linspace(-1, 1, x.shape[1], dtype=torch.float64)),
    "torch_var": _on(
        lambda x: x.var(-1) + torch.var(x, dim=1, unbiased=False), lambda x: torch.var(x, False),
        lambda x: x.var(dim=0, correction=2, keepdim=True),
    ),
    "torch_std": _on(lambda x: x.std(dim=-1) + x.std(1, correction=0)),
    "torch_norm": _on(
        lambda x: x.norm() + x.norm(dim=-1) + torch.norm(x, p=1, dim=1),
        lambda x: torch.linalg.vector_norm(x, ord=3, dim=0, keepdim=True),
    ),
}  # fmt: skip

OPERATORS: list[Case] = [
    *_on(
        lambda x: _STEPS @ x.mT + 1.0, lambda x: _STEPS - x, lambda x: _STEPS / x.exp(),
        lambda x: 2.0**x * _STEPS, lambda x: torch.cat([_STEPS[None], x], 0),
        lambda x: torch.maximum(_STEPS, x), lambda x: torch.tensor(2.0) * x,
        lambda x: torch.where(x < _STEPS, _STEPS, x), lambda x: F.mse_loss(_STEPS[None], x[:1]),
        lambda x: torch.einsum("ij,j->i", x, _STEPS), lambda x: torch.matmul(_STEPS, other=x.T),
        lambda x: x.size(-1) * x + x.size()[0] + x.shape[1] + x.size(0) ** 0.5,
        lambda x: x.unsqueeze(0).permute(1, 0, 2).reshape(4, 6) + x.view(-1).view(4, 6),
        lambda x: torch.cat(x.chunk(2, dim=-1)[::-1], dim=-1) + x.transpose(0, 1).T,
        lambda x: sum(x.split(2, dim=1)) + x.split([2, 4], dim=1)[0],
        lambda x: x.abs().pow(1.5).sqrt().rsqrt().clamp(0.1, 0.9).square(),
    ),
]  # fmt: skip
"""Operators and methods that mean what they mean in NumPy, beside tensors that are captured."""
