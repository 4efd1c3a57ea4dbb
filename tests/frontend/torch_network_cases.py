"""Calls of torch's functions that networks are made of: cells, heads, pools, images, margins."""

from __future__ import annotations

from collections.abc import Mapping

import torch
import torch.nn.functional as F

from tests.frontend.torch_cases import Case, on, pair

_MATRICES = ((4, 6),) * 3
_CELL = ((3, 5), (3, 7))


def _cell(name: str, gates: int) -> list[Case]:
    weights = ((7 * gates, 5), (7 * gates, 7))
    cell = getattr(torch, name)
    return [
        Case(lambda *given: cell(*given), (*_CELL, *weights, (7 * gates,), (7 * gates,))),
        Case(lambda *given: cell(*given), (*_CELL, *weights)),
    ]


def _layers(kind: str, gates: int, states: int, layers: int, **named: bool) -> Case:
    """A recurrent layer of 5 features and 7 states for 3 rows of 4 steps."""
    ways, biases = 1 + named["bidirectional"], named["has_biases"]
    sizes: list[tuple[int, ...]] = []
    for layer in range(layers):
        width = 7 * ways if layer else 5
        rows = ((7 * gates,),) * 2 * biases
        sizes += [(7 * gates, width), (7 * gates, 7), *rows] * ways

    def run(x: torch.Tensor, h: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
        first = h if states == 1 else (h, h * 2)
        found = getattr(torch, kind)(
            x, first, weights, num_layers=layers, dropout=0.0, train=False, **named
        )
        return torch.cat([each.flatten() for each in found])

    x = (3, 4, 5) if named["batch_first"] else (4, 3, 5)
    return Case(run, (x, (layers * ways, 3, 7), *sizes))


def _recurrent(kind: str, gates: int, states: int = 1) -> list[Case]:
    plain = dict(has_biases=True, bidirectional=False, batch_first=False)
    return [
        _layers(kind, gates, states, 1, **plain),
        _layers(kind, gates, states, 2, **dict(plain, bidirectional=True, batch_first=True)),
        _layers(kind, gates, states, 2, **dict(plain, has_biases=False)),
    ]


def _heads(*, own: bool = False, **named: object) -> Case:
    """Attention of two heads of 4 features; ``own``: of one array with itself."""

    def attention(*given: torch.Tensor) -> torch.Tensor:
        query, key, wi, bi, wo, bo = given
        key = query if own else key
        found, weights = F.multi_head_attention_forward(
            query, key, key, 8, 2, wi, bi, None, None, False, 0.1, wo, bo, training=False, **named
        )  # fmt: skip
        return found if weights is None else torch.cat((found.flatten(), weights.flatten()))

    return Case(attention, ((5, 3, 8), (6, 3, 8), (24, 8), (24,), (8, 8), (8,)))


def _image(function: object, *shape: int) -> Case:
    return Case(function, (shape,))  # type: ignore[arg-type]


def _signed(loss: object, **named: object) -> Case:
    return Case(lambda x, y: loss(x, y.sign(), **named), _MATRICES[:2])  # type: ignore[operator]


NETWORKS: Mapping[str, list[Case]] = {
    "rnn_tanh_cell": _cell("rnn_tanh_cell", 1),
    "rnn_relu_cell": _cell("rnn_relu_cell", 1),
    "gru_cell": _cell("gru_cell", 3),
    "lstm_cell": [
        Case(lambda x, h, *w: torch.cat(torch.lstm_cell(x, (h, h * 2), *w)),
             (*_CELL, (28, 5), (28, 7), (28,), (28,))),
    ],
    "rnn_tanh": _recurrent("rnn_tanh", 1), "rnn_relu": _recurrent("rnn_relu", 1),
    "gru": _recurrent("gru", 3), "lstm": _recurrent("lstm", 4, 2),
    "embedding_bag": [
        Case(lambda x, w: F.embedding_bag(x, w), ((2, 3), (5, 4)), labels=(0,)),
        Case(lambda x, w: F.embedding_bag(x, w, mode="max"), ((3, 2), (5, 4)), labels=(0,)),
        Case(lambda x, w, y: F.embedding_bag(x, w, mode="sum", per_sample_weights=y),
             ((2, 3), (5, 4), (2, 3)), labels=(0,)),
    ],
    "scatter": [
        Case(lambda x, at, y: x.scatter(1, at, y), ((4, 6), (4, 3), (4, 3)), (1,)),
        Case(lambda x, at: torch.scatter(x, 0, at, 2.5), ((5, 3), (2, 3)), (1,)),
        Case(lambda x, at: x.clone().scatter_(1, at, value=1), ((9, 6), (8, 1)), (1,)),
        Case(lambda x, at, y: x.scatter(1, at, y, reduce="add"), ((4, 6), (4, 2), (4, 2)), (1,)),
        Case(lambda x, at, y: x.scatter(0, at[:5], y), ((5, 20), (9, 20), (9, 20)), (1,)),
    ],
    "scatter_add": [
        Case(lambda x, at, y: x.scatter_add(1, at, y), ((4, 6), (4, 3), (5, 3)), (1,)),
        Case(lambda x, at, y: torch.scatter_add(x, 0, at, y), ((5, 3), (20, 3), (20, 3)), (1,)),
    ],
    "index_add": [
        Case(lambda x, at, y: x.index_add(0, at, y), ((5, 3), (9,), (9, 3)), (1,)),
        Case(lambda x, at, y: torch.index_add(x, 1, at, y, alpha=2), ((3, 5), (9,), (3, 9)), (1,)),
    ],
    "multi_head_attention_forward": [
        _heads(need_weights=False), _heads(), _heads(own=True, need_weights=False),
        _heads(average_attn_weights=False),
        _heads(attn_mask=torch.ones(5, 6).triu(1).bool()),
        _heads(attn_mask=torch.ones(5, 6).triu(1).double(), need_weights=False),
        _heads(key_padding_mask=torch.arange(6)[None] > torch.arange(2, 5)[:, None]),
        _heads(own=True, attn_mask=torch.ones(5, 5).triu(1).bool(), is_causal=True,
               need_weights=False),
    ],
    "pixel_shuffle": [_image(lambda x: F.pixel_shuffle(x, 2), 2, 8, 3, 4),
                      _image(lambda x: torch.pixel_shuffle(x, 3), 9, 2, 4)],
    "pixel_unshuffle": [_image(lambda x: F.pixel_unshuffle(x, 2), 2, 3, 4, 6)],
    "channel_shuffle": [_image(lambda x: F.channel_shuffle(x, 3), 2, 6, 3, 4)],
    "interpolate": [
        _image(lambda x: F.interpolate(x, scale_factor=2), 2, 3, 4, 5),
        _image(lambda x: F.interpolate(x, scale_factor=(3, 1), mode="nearest-exact"), 2, 3, 4, 5),
    ],
    "unfold": [_image(lambda x: x.unfold(1, 3, 3), 4, 6), _image(lambda x: x.unfold(0, 2, 3), 8, 2),
               _image(lambda x: x.unfold(1, 4, 4), 4, 6)],
    "torch_unfold": [_image(lambda x: F.unfold(x, 2, stride=2), 2, 3, 4, 6),
                     _image(lambda x: F.unfold(x, (2, 3), stride=(2, 3)), 2, 3, 4, 7)],
    "conv1d": [Case(F.conv1d, ((2, 3, 6), (5, 3, 1), (5,))),
               Case(lambda x, w: F.conv1d(x, w, stride=2), ((3, 7), (5, 3, 2)))],
    "conv2d": [
        Case(lambda x, w, b: F.conv2d(x, w, b, 2), ((2, 3, 6, 4), (5, 3, 2, 2), (5,))),
        Case(lambda x, w: F.conv2d(x, w, stride=2), ((2, 3, 5, 4), (5, 3, 1, 1))),
        Case(lambda x, w: F.conv2d(x, w, stride=(2, 3)), ((2, 3, 5, 7), (5, 3, 2, 3))),
    ],
    "conv3d": [Case(lambda x, w: F.conv3d(x, w, stride=2), ((2, 3, 4, 2, 4), (5, 3, 2, 2, 2)))],
    "avg_pool1d": [
        *(_image(lambda x, given=given: F.avg_pool1d(x, *given), 2, 4, 6)
          for given in ((3,), ((3,), (3,), (0,)), (4,), (2, 3), (2, 2, 1), (1, 2), (4, 4, 2))),
        _image(lambda x: F.avg_pool1d(x, 2, 2, 1, False, False), 2, 4, 6),
        _image(lambda x: F.avg_pool1d(x, 4, ceil_mode=True), 2, 4, 6),
        _image(lambda x: F.avg_pool1d(x, 4, 4, 1, True, False), 4, 6),
    ],
    "avg_pool2d": [
        _image(lambda x: F.avg_pool2d(x, (2, 3)), 2, 4, 6),
        _image(lambda x: F.avg_pool2d(x, 2, divisor_override=3), 2, 4, 6),
    ],
    "avg_pool3d": [_image(lambda x: F.avg_pool3d(x, 2), 2, 3, 4, 6, 2)],
    "max_pool1d": [
        _image(lambda x: F.max_pool1d(x, 2, 2), 2, 4, 6),
        _image(lambda x: F.max_pool1d(x, 4), 4, 6),
        _image(lambda x: F.max_pool1d(x, 4, 4, 1, ceil_mode=True), 2, 4, 7),
        _image(lambda x: F.max_pool1d(x, 2, 2, 1), 2, 4, 7),
    ],
    "max_pool2d": [_image(lambda x: F.max_pool2d(x, 2), 3, 2, 4, 6),
                   _image(lambda x: F.max_pool2d(x, 4), 3, 2, 6, 9)],
    "max_pool3d": [_image(lambda x: F.max_pool3d(x, 2), 2, 3, 4, 6, 2)],
    "lp_pool1d": [_image(lambda x: F.lp_pool1d(x.abs(), 3, 2), 2, 4, 6)],
    "lp_pool2d": [_image(lambda x: F.lp_pool2d(x, 2, 2), 2, 4, 6, 4)],
    "lp_pool3d": [_image(lambda x: F.lp_pool3d(x, 2, 2), 2, 4, 6, 4, 2)],
    "adaptive_avg_pool1d": [_image(lambda x: F.adaptive_avg_pool1d(x, 1), 2, 4, 6),
                            _image(lambda x: F.adaptive_avg_pool1d(x, 6), 2, 4, 6)],
    "adaptive_avg_pool2d": [
        _image(lambda x: F.adaptive_avg_pool2d(x, (1, 1)), 3, 2, 4, 6),
        _image(lambda x: F.adaptive_avg_pool2d(x, (2, 3)), 3, 2, 4, 6),
        _image(lambda x: F.adaptive_avg_pool2d(x, (None, 1)), 3, 2, 4, 6),
    ],
    "adaptive_avg_pool3d": [_image(lambda x: F.adaptive_avg_pool3d(x, 1), 3, 2, 4, 6, 2)],
    "adaptive_max_pool1d": [_image(lambda x: F.adaptive_max_pool1d(x, 2), 2, 4, 6)],
    "adaptive_max_pool2d": [_image(lambda x: F.adaptive_max_pool2d(x, 1), 3, 2, 4, 6)],
    "adaptive_max_pool3d": [_image(lambda x: F.adaptive_max_pool3d(x, 1), 3, 2, 4, 6, 2)],
    "instance_norm": [
        _image(F.instance_norm, 2, 3, 4),
        Case(lambda x, w, b: F.instance_norm(x, weight=w, bias=b, eps=1e-3),
             ((2, 3, 4, 5), (3,), (3,))),
        Case(lambda x, m, v: F.instance_norm(x, m, v.exp(), use_input_stats=False),
             ((2, 3, 4), (3,), (3,))),
    ],
    "cosine_embedding_loss": [
        Case(lambda x, y, s: F.cosine_embedding_loss(x, y, s.sign()), ((4, 6), (4, 6), (4,))),
        Case(lambda x, y, s: F.cosine_embedding_loss(x, y, s.sign(), 0.3, reduction="none"),
             ((4, 6), (4, 6), (4,))),
        Case(lambda x, y: F.cosine_embedding_loss(x[0], y[0], y[0, 0].sign()), _MATRICES[:2]),
    ],
    "hinge_embedding_loss": [_signed(F.hinge_embedding_loss),
                             _signed(F.hinge_embedding_loss, margin=0.5, reduction="sum")],
    "margin_ranking_loss": [
        Case(lambda x, y, s: F.margin_ranking_loss(x, y, s.sign()), _MATRICES),
        Case(lambda x, y, s: F.margin_ranking_loss(x, y, s.sign(), 0.5, reduction="none"),
             _MATRICES),
    ],
    "soft_margin_loss": [_signed(F.soft_margin_loss)],
    "multilabel_soft_margin_loss": [
        *pair(lambda x, y: F.multilabel_soft_margin_loss(x, y.sigmoid())),
        Case(lambda x, y, w: F.multilabel_soft_margin_loss(x, y.sigmoid(), w, reduction="none"),
             ((4, 6), (4, 6), (6,))),
    ],
    "multi_margin_loss": [
        Case(lambda x, y, w: F.multi_margin_loss(x, y), ((4, 6), (4,), (6,)), labels=(1,)),
        Case(lambda x, y, w: F.multi_margin_loss(x, y, 2, 0.5, w, reduction="none"),
             ((4, 6), (4,), (6,)), labels=(1,)),
    ],
    "poisson_nll_loss": [
        *pair(lambda x, y: F.poisson_nll_loss(x, y.abs()),
              lambda x, y: F.poisson_nll_loss(x.exp(), 4 * y.abs(), False, True, reduction="sum")),
    ],
    "gaussian_nll_loss": [
        Case(lambda x, y, v: F.gaussian_nll_loss(x, y, v.exp()), _MATRICES),
        Case(lambda x, y, v: F.gaussian_nll_loss(x, y, v.exp(), True, reduction="none"),
             ((4, 6), (4, 6), (4, 1))),
        Case(lambda x, y, v: F.gaussian_nll_loss(x, y, v.exp()), ((4, 6), (4, 6), (4,))),
    ],
    "triplet_margin_loss": [
        Case(F.triplet_margin_loss, _MATRICES),
        Case(lambda x, y, z: F.triplet_margin_loss(x, y, z, swap=True, p=1), _MATRICES),
    ],
    "triplet_margin_with_distance_loss": [
        Case(F.triplet_margin_with_distance_loss, _MATRICES),
        Case(lambda x, y, z: F.triplet_margin_with_distance_loss(
            x, y, z, distance_function=lambda a, b: 1 - F.cosine_similarity(a, b), swap=True,
            margin=0.4), _MATRICES),
    ],
}  # fmt: skip

ROWS_OF_ARRAYS: list[Case] = [
    *on(
        lambda x: sum(row.exp() for row in x), lambda x: torch.stack([*x][::-1]), lambda x: sum(x),
        lambda x: sum(a @ b for a, b in zip(x, 2 * x, strict=True)), lambda x: next(iter(x)) * 2,
        lambda x: sum(at * row for at, row in enumerate(x)),
    ),
    Case(lambda x: (lambda q, k, v: F.scaled_dot_product_attention(q, k, v))(
        *x.unflatten(-1, (3, 2, -1)).permute(2, 0, 3, 1, 4)), ((2, 5, 12),)),
]  # fmt: skip
"""Loops in Python over the first axis of an array."""
