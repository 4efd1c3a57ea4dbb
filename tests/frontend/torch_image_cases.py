"""Calls of torch's functions of images: convolutions, pools, patches and pixels."""

from __future__ import annotations

from collections.abc import Mapping

import torch
import torch.nn.functional as F

from tests.frontend.torch_cases import Case, on

IMAGES: Mapping[str, list[Case]] = {
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
    "avg_pool3d": [
        Case(lambda x: F.avg_pool3d(x, 2, 1), ((2, 3, 4, 6),)),
        Case(lambda x: F.avg_pool3d(x, 3, 1, 1, False, False), ((2, 3, 4, 6),)),
    ],
    "max_pool1d": [
        Case(lambda x: F.max_pool1d(x, 2, 2), ((2, 4, 6),)),
        Case(lambda x: F.max_pool1d(x, 3, 2, 1, 2), ((2, 4, 8),)),
    ],
    "max_pool2d": [
        Case(lambda x: F.max_pool2d(x, 2), ((3, 2, 4, 6),)),
        Case(lambda x: F.max_pool2d(x, 3, stride=2, padding=1), ((3, 2, 4, 6),)),
        Case(lambda x: F.max_pool2d(x, (2, 3), 2, ceil_mode=True), ((2, 5, 6),)),
        Case(lambda x: F.max_pool2d(x, (3, 7), (2, 1), (1, 3), (2, 1)), ((2, 7, 9),)),
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
    "torch_unfold": on(lambda x: x.unfold(1, 3, 2), lambda x: x.unfold(0, 2, 1)),
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
        Case(lambda x: F.interpolate(x, None, (3, 2), "bilinear"), ((2, 3, 4, 5),)),
        Case(lambda x: F.interpolate(x, (6, 8, 3), mode="trilinear"), ((1, 2, 3, 4, 3),)),
        Case(lambda x: F.interpolate(x, (5, 4), mode="bilinear", align_corners=True),
             ((2, 3, 4, 7),)),
        Case(lambda x: F.interpolate(x, None, 1.5, "bilinear"), ((2, 3, 4, 5),)),
        Case(lambda x: F.interpolate(x, (3, 9), mode="bicubic"), ((2, 3, 4, 5),)),
        Case(lambda x: F.interpolate(x, None, 0.7, "area"), ((2, 3, 7),)),
        Case(lambda x: F.interpolate(x, None, (0.5, 1.3)), ((2, 3, 4, 5),)),
        Case(lambda x: F.interpolate(x, 29), ((1, 2, 53),)),
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
}
