"""The programs of the schedules here: array code, sizes, hand forms, and the library's call.

A case's schedule is the file NAME.schedule beside this one. Array code is ours; the rest is torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import blockbuster
from blockbuster.frontend import functions as bb
from blockbuster.ir.graph import Graph
from blockbuster.rules.materialize import materialize

Array = Any
INF = float("inf")
HERE = Path(__file__).parent


def attention(q: Array, k: Array, v: Array) -> Array:
    s = (q @ k.swapaxes(-1, -2)) * q.shape[-1] ** -0.5
    return bb.softmax(s, axis=-1) @ v


def grouped_attention(q: Array, k: Array, v: Array) -> Array:
    """Attention of heads in groups, as models write it: each group has keys and values."""
    s = (q @ k[:, None].swapaxes(-1, -2)) * q.shape[-1] ** -0.5
    return bb.softmax(s, axis=-1) @ v[:, None]


def causal_attention(q: Array, k: Array, v: Array) -> Array:
    s = (q @ k.swapaxes(-1, -2)) * q.shape[-1] ** -0.5
    seen = bb.arange(q.shape[-2])[:, None] >= bb.arange(k.shape[-2])
    return bb.softmax(bb.where(seen, s, -INF), axis=-1) @ v


def window_attention(q: Array, k: Array, v: Array) -> Array:
    s = (q @ k.swapaxes(-1, -2)) * q.shape[-1] ** -0.5
    distance = bb.arange(q.shape[-2])[:, None] - bb.arange(k.shape[-2])
    return bb.softmax(bb.where((distance >= 0) & (distance < 1024), s, -INF), axis=-1) @ v


def soft_cap_attention(q: Array, k: Array, v: Array) -> Array:
    s = (q @ k.swapaxes(-1, -2)) * q.shape[-1] ** -0.5
    return bb.softmax(50.0 * bb.tanh(s / 50.0), axis=-1) @ v


def alibi_attention(q: Array, k: Array, v: Array, slopes: Array) -> Array:
    s = (q @ k.swapaxes(-1, -2)) * q.shape[-1] ** -0.5
    distance = bb.arange(q.shape[-2])[:, None] - bb.arange(k.shape[-2])
    s = s - slopes[:, None, None] * distance
    return bb.softmax(bb.where(distance >= 0, s, -INF), axis=-1) @ v


def matmul(x: Array, w: Array) -> Array:
    return x @ w


def layer_norm_matmul(x: Array, y: Array) -> Array:
    return bb.layer_norm(x) @ y


def rms_norm_matmul(x: Array, y: Array) -> Array:
    return bb.rms_norm(x, eps=1e-5) @ y


def gate_up(x: Array, w: Array, v: Array) -> Array:
    return bb.silu(x @ w) * (x @ v)


def chain(x: Array, w: Array, u: Array) -> Array:
    return (x @ w) @ u


def row_lengths(x: Array) -> Array:
    return bb.sqrt(bb.sum(x * x, axis=-1))


def row_softmax(x: Array) -> Array:
    return bb.softmax(x, axis=-1)


@dataclass(frozen=True)
class Case:
    """A program at the sizes that its schedule is for.

    ``snapshot``: which of the fused graphs is scheduled (-1: the last), with the values of the
    names in ``apart`` made by maps of their own. ``hand`` and ``reference``
    name a tuple of forms (none: "") and a function of a module of ``bench.schedules.hand``;
    ``options`` are further arguments of the reference. ``library`` is the best call of torch's.
    ``small``: sizes at which hand forms are tested without a GPU; ``few``: sizes at which the
    schedule is, which as a rule are one or two blocks of it.
    """

    name: str
    fn: Callable[..., Any]
    inputs: Mapping[str, str]
    sizes: Mapping[str, int]
    small: Mapping[str, int]
    hand: str
    reference: str
    library: Callable[..., Any]
    few: Mapping[str, int]
    snapshot: int = -1
    apart: tuple[str, ...] = ()
    options: Mapping[str, Any] | None = None
    small_options: Mapping[str, Any] | None = None

    @property
    def weights(self) -> tuple[str, ...]:
        """The inputs that others are multiplied with: matrices after the first."""
        heads = "q" in self.inputs
        return () if heads else tuple(self.inputs)[1:]

    @property
    def path(self) -> Path:
        return HERE / f"{self.name}.schedule"

    @property
    def text(self) -> str:
        """The schedule."""
        return self.path.read_text(encoding="utf-8")

    def alternatives(self) -> dict[str, str]:
        """Other schedules that are measured, too: the files NAME.WORD.schedule, by their word."""
        found = sorted(HERE.glob(f"{self.name}.*.schedule"))
        return {path.name.split(".")[1]: path.read_text(encoding="utf-8") for path in found}

    def graph(self) -> Graph:
        """The block program that is scheduled."""
        program = blockbuster.trace(self.fn, **self.inputs)
        graph = blockbuster.fuse(blockbuster.lower(program)).snapshots[self.snapshot]
        if self.apart:
            graph = blockbuster.safe(graph)  # the values are those of the safe form
        for name in self.apart:
            graph = materialize(graph, name)
        return graph

    def forms(self) -> tuple[Any, ...]:
        """The hand forms. Imports Triton."""
        return _of(self.hand) if self.hand else ()

    def oracle(self, *, small: bool = False) -> Callable[..., tuple[Array, ...]]:
        """The plain function of whole arrays, in the dtype of its arguments."""
        options = self.small_options if small else self.options
        return partial(_of(self.reference), **(options or {}))

    def shapes(self, sizes: Mapping[str, int]) -> dict[str, list[int]]:
        return {name: [sizes[d] for d in dims.split()] for name, dims in self.inputs.items()}


def _of(place: str) -> Any:
    module, name = place.split(".")
    return getattr(import_module(f"bench.schedules.hand.{module}"), name)


# the library's calls --------------------------------------------------------------


def _sdpa(q: Array, k: Array, v: Array, *, causal: bool = False, window: int = 0) -> Array:
    """cuDNN's attention; torch chooses where a window is wanted, which cuDNN is given as a mask."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    attend = torch.nn.functional.scaled_dot_product_attention
    q, k, v = q[None], k[None], v[None]
    if not window:
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            return attend(q, k, v, is_causal=causal)[0]
    return attend(q, k, v, attn_mask=_window_mask(q.shape[-2], window, q.device))[0]


def _soft_cap(q: Array, k: Array, v: Array) -> Array:
    """Eager: no call of torch's has a soft cap."""
    import torch

    s = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
    return torch.softmax(50.0 * torch.tanh(s / 50.0), dim=-1) @ v


def _alibi(q: Array, k: Array, v: Array, slopes: Array) -> Array:
    """Torch's attention with the bias as a mask that is added."""
    import torch

    at = torch.arange(q.shape[-2], device=q.device)
    distance = at[:, None] - at
    bias = (-slopes[:, None, None] * distance).masked_fill(distance < 0, -INF)
    attend = torch.nn.functional.scaled_dot_product_attention
    return attend(q[None], k[None], v[None], attn_mask=bias[None])[0]


_MASKS: dict[Any, Array] = {}


def _window_mask(n: int, window: int, device: Any) -> Array:
    import torch

    if (n, window) not in _MASKS:
        at = torch.arange(n, device=device)
        distance = at[:, None] - at
        _MASKS[n, window] = (distance >= 0) & (distance < window)
    return _MASKS[n, window]


def _decoding_sdpa(q: Array, k: Array, v: Array) -> Array:
    """q[H, G, 1, D]."""
    return _grouped_sdpa(q[:, :, 0], k, v)[:, :, None]


def _grouped_sdpa(q: Array, k: Array, v: Array) -> Array:
    """q[H, G, D] as one position of H * G heads."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    heads, group, d = q.shape
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        y = torch.nn.functional.scaled_dot_product_attention(
            q.reshape(1, heads * group, 1, d), k[None], v[None], enable_gqa=True
        )
    return y.reshape(heads, group, d)


def _mm(x: Array, w: Array) -> Array:
    return x @ w


def _layer_norm_mm(x: Array, y: Array) -> Array:
    import torch

    return torch.nn.functional.layer_norm(x, x.shape[-1:]) @ y


def _rms_norm_mm(x: Array, y: Array) -> Array:
    import torch

    return torch.nn.functional.rms_norm(x, x.shape[-1:], eps=1e-5) @ y


def _gate_up(x: Array, w: Array, v: Array) -> Array:
    import torch

    return torch.nn.functional.silu(x @ w) * (x @ v)


def _chain(x: Array, w: Array, u: Array) -> Array:
    return x @ w @ u


def _lengths(x: Array) -> Array:
    import torch

    return torch.linalg.vector_norm(x, dim=-1)


def _softmax(x: Array) -> Array:
    return x.softmax(-1)


# the cases ------------------------------------------------------------------------

HEADS = dict(q="H M D", k="H N D", v="H N L")
AT_4096 = dict(H=16, M=4096, N=4096, D=128, L=128)
FEW_HEADS = dict(H=2, M=128, N=128, D=128, L=128)
FEW_ROWS = dict(M=128, K=4096, N=256)
FEW = dict(H=2, M=40, N=40, D=16, L=16)
CASES = (
    Case("attention", attention, HEADS, AT_4096, dict(FEW, N=56),
         "attention.FULL_FORMS", "attention.reference", _sdpa,
         FEW_HEADS),
    Case("causal-attention", causal_attention, HEADS, AT_4096, FEW,
         "attention.CAUSAL_FORMS", "attention.reference", partial(_sdpa, causal=True), FEW_HEADS,
         options=dict(seen=1), small_options=dict(seen=1)),
    Case("window-attention", window_attention, HEADS, AT_4096, dict(FEW, M=70, N=70),
         "attention.WINDOW_FORMS", "attention.reference", partial(_sdpa, window=1024),
         FEW_HEADS,
         options=dict(seen=2, window=1024), small_options=dict(seen=2, window=20)),
    Case("soft-cap-attention", soft_cap_attention, HEADS, AT_4096, dict(FEW, N=56),
         "attention.NO_FORMS", "attention.soft_cap_reference", _soft_cap, FEW_HEADS),
    Case("alibi-attention", alibi_attention, dict(HEADS, slopes="H"), AT_4096, FEW,
         "attention.NO_FORMS", "attention.alibi_reference", _alibi, FEW_HEADS),
    Case("matmul", matmul, dict(x="M K", w="K N"), dict(M=2048, K=4096, N=4096),
         dict(M=40, K=40, N=48), "matmul.FORMS", "matmul.reference", _mm,
         dict(M=128, K=192, N=256)),
    Case("few-rows-matmul", matmul, dict(x="M K", w="K N"), dict(M=16, K=4096, N=4096),
         dict(M=8, K=56, N=40), "split_matmul.FORMS", "split_matmul.reference", _mm,
         dict(M=16, K=1024, N=512)),
    Case("layer-norm-matmul", layer_norm_matmul, dict(x="M K", y="K N"),
         dict(M=2048, K=4096, N=4096), dict(M=24, K=40, N=48),
         "normed_matmul.LAYER_NORM_FORMS", "normed_matmul.layer_norm_matmul", _layer_norm_mm,
         FEW_ROWS, apart=("c, r per M",)),
    Case("layer-norm-stored", layer_norm_matmul, dict(x="M K", y="K N"),
         dict(M=2048, K=4096, N=4096), dict(M=24, K=40, N=48),
         "normed_matmul.LAYER_NORM_FORMS", "normed_matmul.layer_norm_matmul", _layer_norm_mm,
         FEW_ROWS, apart=("y per M, K",)),
    Case("rms-norm-matmul", rms_norm_matmul, dict(x="M K", y="K N"),
         dict(M=2048, K=4096, N=4096), dict(M=24, K=40, N=48),
         "normed_matmul.RMS_NORM_FORMS", "normed_matmul.rms_norm_matmul", _rms_norm_mm,
         FEW_ROWS, snapshot=0),
    Case("gate-up", gate_up, dict(x="M D", w="D K", v="D K"), dict(M=2048, D=2048, K=8192),
         dict(M=24, D=40, K=32), "gate_up.FORMS", "gate_up.reference", _gate_up,
         dict(M=128, D=192, K=128)),
    Case("decode", attention, dict(q="H G D", k="H N D", v="H N L"),
         dict(H=8, G=8, N=32768, D=128, L=128), dict(H=2, G=3, N=70, D=16, L=16),
         "decode.FORMS", "decode.reference", _grouped_sdpa,
         dict(H=2, G=8, N=2048, D=128, L=128)),
    Case("grouped-decode", grouped_attention, dict(q="H G M D", k="H N D", v="H N L"),
         dict(H=8, G=8, M=1, N=32768, D=128, L=128), dict(H=2, G=3, M=1, N=70, D=16, L=16),
         "", "attention.grouped", _decoding_sdpa,
         dict(H=2, G=8, M=1, N=2048, D=128, L=128)),
    Case("attention-80", attention, HEADS, dict(H=16, M=256, N=256, D=80, L=80), FEW,
         "", "attention.reference", _sdpa, dict(FEW_HEADS, D=80, L=80)),
    Case("long-attention-80", attention, HEADS, dict(H=16, M=4096, N=4096, D=80, L=80), FEW,
         "", "attention.reference", _sdpa, dict(FEW_HEADS, D=80, L=80)),
    Case("chain-one-kernel", chain, dict(x="M K", w="K N", u="N H"),
         dict(M=512, K=64, N=256, H=64), dict(M=24, K=24, N=40, H=24),
         "chain.G1_FORMS", "chain.reference", _chain,
         dict(M=32, K=64, N=192, H=64)),
    Case("chain-two-kernels", chain, dict(x="M K", w="K N", u="N H"),
         dict(M=512, K=256, N=512, H=256), dict(M=24, K=40, N=40, H=24),
         "chain.G4_FORMS", "chain.reference", _chain,
         dict(M=128, K=256, N=256, H=64), snapshot=0),
    Case("row-lengths", row_lengths, dict(x="M N"), dict(M=256, N=1 << 17), dict(M=3, N=100),
         "rows.NORM_FORMS", "rows.length", _lengths,
         dict(M=2, N=1 << 17)),
    Case("row-softmax", row_softmax, dict(x="M N"), dict(M=256, N=1 << 14), dict(M=3, N=50),
         "rows.SOFTMAX_FORMS", "rows.softmax", _softmax, dict(M=3, N=1 << 14)),
)  # fmt: skip
BY_NAME = {case.name: case for case in CASES}
