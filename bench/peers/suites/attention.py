"""Attention: full, causal, under other masks and scores, of one position, and small.

A ``Flavour`` says once what happens to a score and which keys a query sees; ours, eager torch,
FlexAttention and the exact result are all made from it. Arrays are q (heads, M, D), or
(heads of keys, group, M, D) where several heads of queries share one of keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from bench.peers.case import EAGER, Array, Case, Contestant, Inputs
from bench.peers.contestants import (
    CUDNN,
    EFFICIENT,
    FLASH,
    by_hand,
    called,
    compiled,
    flex,
    ours,
    sdpa,
)
from bench.torch_functions import TorchFunctions
from blockbuster.frontend import functions as bb

INF = float("inf")
CAP, WINDOW, PREFIX = 50.0, 4096, 1024
ROWS = 1024  # queries of which the exact result is computed at once
Score = Callable[[Any, Array, Array, Array], Array]


@dataclass(frozen=True)
class Flavour:
    """``score(functions, s, distance, slope)`` and ``seen(i, j)`` of positions i and j."""

    name: str
    score: Score | None = None
    seen: Callable[[Array, Array], Array] | None = None
    sloped: bool = False


def _alibi(_: Any, s: Array, distance: Array, slope: Array) -> Array:
    return s - slope * distance


def _capped(functions: Any, s: Array, *_: Array) -> Array:
    return CAP * functions.tanh(s / CAP)


def _causal(i: Array, j: Array) -> Array:
    return i >= j


def _window(i: Array, j: Array) -> Array:
    return (i >= j) & (i - j < WINDOW)


def _prefix(i: Array, j: Array) -> Array:
    return (i >= j) | (j < PREFIX)


FULL, CAUSAL = Flavour("full"), Flavour("causal", seen=_causal)
ALIBI = Flavour("alibi", _alibi, _causal, sloped=True)
SOFT_CAP = Flavour("soft-cap", _capped, _causal)
WINDOWED, PREFIXED = Flavour("window", seen=_window), Flavour("prefix", seen=_prefix)
ONE_ALIBI = Flavour("alibi", _alibi, sloped=True)  # the last position sees all keys
ONE_SOFT_CAP = Flavour("soft-cap", _capped)


def attend(
    functions: Any, flavour: Flavour, q: Array, k: Array, v: Array, slope: Array | None, first: int
) -> Array:
    """Attention of the queries from position ``first`` on, in the functions' arithmetic."""
    s = (q @ k.swapaxes(-1, -2)) * q.shape[-1] ** -0.5
    i, j = functions.arange(q.shape[-2])[:, None] + first, functions.arange(k.shape[-2])
    if flavour.score:
        rate = None if slope is None else slope[:, None, None]
        s = flavour.score(functions, s, i - j, rate)
    if flavour.seen:
        s = functions.where(flavour.seen(i, j), s, -INF)
    return functions.softmax(s, axis=-1) @ v


def program(functions: Any, flavour: Flavour, *, grouped: bool) -> Callable[..., Array]:
    """Attention of whole arrays; the queries are the last positions."""

    def attention(q: Array, k: Array, v: Array) -> Array:
        if grouped:
            k, v = k[:, None], v[:, None]
        return attend(functions, flavour, q, k, v, None, k.shape[-2] - q.shape[-2])

    def sloped(q: Array, k: Array, v: Array, slope: Array) -> Array:
        return attend(functions, flavour, q, k, v, slope, k.shape[-2] - q.shape[-2])

    return sloped if flavour.sloped else attention


def plain(flavour: Flavour, *, grouped: bool) -> Callable[..., Array]:
    """The same by torch's functions, on the device of its arguments."""

    def attention(*arrays: Array) -> Array:
        functions = TorchFunctions(arrays[0].device.type)
        return program(functions, flavour, grouped=grouped)(*arrays)

    return attention


def exact(flavour: Flavour, q: Array, k: Array, v: Array, slope: Array | None = None) -> Array:
    """The result, head by head and some queries at a time: scores of all would not fit."""
    import torch

    functions, out = TorchFunctions(q.device.type), torch.empty_like(q)
    first = k.shape[-2] - q.shape[-2]
    grouped = q.ndim > k.ndim
    for head in range(k.shape[0]):
        for at in range(0, q.shape[-2], ROWS):
            rows = q[head, ..., at : at + ROWS, :]
            rate = None if slope is None else slope[head : head + 1]
            rows = rows if grouped else rows[None]
            part = attend(functions, flavour, rows, k[head], v[head], rate, first + at)
            out[head, ..., at : at + ROWS, :] = part if grouped else part[0]
    return out


# peers ----------------------------------------------------------------------------


def batched(q: Array, k: Array, v: Array) -> tuple[Array, Array, Array]:
    """(batch, heads, positions, depth), with one batch."""
    return q.reshape(1, -1, *q.shape[-2:]), k[None], v[None]


def _sdpa(name: str, backend: str, *, causal: bool) -> Contestant:
    def arguments(q: Array, k: Array, v: Array) -> Any:
        arrays, shared = batched(q, k, v), q.ndim > k.ndim
        return arrays, dict(is_causal=causal) | (dict(enable_gqa=True) if shared else {})

    return sdpa(name, backend, arguments)


def _masked_sdpa(flavour: Flavour) -> Contestant:
    """cuDNN with the mask, or the bias of each score, as an array."""

    def arguments(q: Array, k: Array, v: Array, slope: Array | None = None) -> Any:
        import torch

        at = torch.arange(k.shape[-2], device=q.device)
        i, j = at[-q.shape[-2] :, None], at
        bias = torch.zeros((), dtype=q.dtype, device=q.device)
        if slope is not None:
            bias = (-slope[:, None, None] * (i - j)).to(q.dtype)
        if flavour.seen:
            bias = bias.masked_fill(~flavour.seen(i, j), -INF)
        arrays, more = batched(q, k, v), q.ndim > k.ndim
        mask = bias[None] if bias.ndim == 3 else bias[None, None]
        return arrays, dict(attn_mask=mask) | (dict(enable_gqa=True) if more else {})

    return sdpa("SDPA cuDNN, mask", CUDNN, arguments)


def _flex(flavour: Flavour, *, searched: bool = False) -> Contestant:
    def arguments(q: Array, k: Array, v: Array, slope: Array | None = None) -> Any:
        import torch

        first, mods = k.shape[-2] - q.shape[-2], {}
        if flavour.score:

            def score_mod(s: Array, _: Array, h: Array, i: Array, j: Array) -> Array:
                rate = None if slope is None else slope[h].to(s.dtype)
                return flavour.score(torch, s, i + first - j, rate)

            mods["score_mod"] = score_mod
        if flavour.seen:
            mods["mask_mod"] = lambda _b, _h, i, j: flavour.seen(i + first, j)
        return batched(q, k, v), mods

    return flex(arguments, searched=searched)


def contestants(
    flavour: Flavour, m: int, n: int, *, grouped: bool, more: bool
) -> Iterator[Contestant]:
    """All who compute attention of m queries over n keys; ``more``: those that search, too."""
    naive = plain(flavour, grouped=grouped)
    one = m == 1
    yield ours(program(bb, flavour, grouped=grouped))
    if one or n <= 2048:
        yield called(EAGER, naive)
        yield compiled("torch.compile", naive)
    if more:
        yield _flex(flavour, searched=True)
        if n <= 2048:
            yield compiled("max-autotune", naive, searched=True)
    if not flavour.score and flavour.seen in (None, _causal):
        causal = flavour.seen is not None
        yield _sdpa("SDPA flash", FLASH, causal=causal)
        yield _sdpa("SDPA cuDNN", CUDNN, causal=causal)
        if not grouped and n <= 2048:
            yield _sdpa("SDPA efficient", EFFICIENT, causal=causal)
    elif (flavour.sloped and one) or (flavour.seen and not flavour.score and n <= 8192):
        yield _masked_sdpa(flavour)
    yield _flex(flavour)


# cases ----------------------------------------------------------------------------

HEADS = dict(q="H M D", k="H N D", v="H N D")
GROUPS = dict(q="H G M D", k="H N D", v="H N D")
Sizes = Mapping[str, int]
FEW = dict(H=2, D=16)
FEW_KEYS = {"full": (40, 56), "window": (30, WINDOW + 20), "prefix": (PREFIX + 20, PREFIX + 20)}


def slopes(random: Any, shape: tuple[int, ...]) -> Array:
    """The rates of ALiBi: falling powers of two."""
    import torch

    heads = shape[0]
    at = torch.arange(1, heads + 1, device=random.device)
    return torch.exp2(-8.0 * at / heads)


def case(
    suite: str,
    family: str,
    name: str,
    flavour: Flavour,
    sizes: Sizes,
    *,
    hand: Contestant | None = None,
    more: bool = False,
    **settings: Any,
) -> Case:
    """A case of a flavour; there are groups where the sizes have G."""
    grouped = "G" in sizes
    inputs = dict(GROUPS if grouped else HEADS) | (dict(slope="H") if flavour.sloped else {})
    m, n = (1, 56) if sizes["M"] == 1 else FEW_KEYS.get(flavour.name, (40, 40))
    few = {**FEW, "M": m, "N": n} | (dict(G=3) if grouped else {})
    made = contestants(flavour, sizes["M"], sizes["N"], grouped=grouped, more=more)
    return Case(
        suite, family, name, program(bb, flavour, grouped=grouped), plain(flavour, grouped=grouped),
        inputs, sizes, few, (*made, *([hand] if hand else [])),
        exact=partial(exact, flavour), matrices=(), special=dict(slope=slopes), **settings,
    )  # fmt: skip


def _attention() -> Iterator[Case]:
    for flavour, place in ((FULL, "attention.FULL_FORMS"), (CAUSAL, "attention.CAUSAL_FORMS")):
        for d in (128, 64):
            for n in (4096, 1024, 16384, 2048, 8192):
                yield case(
                    "attention", f"attention {flavour.name}", f"{flavour.name}-{n}-{d}", flavour,
                    dict(H=16, M=n, N=n, D=d), hand=by_hand(place, 1),
                    quick=(n, d) in ((4096, 128), (4096, 64), (1024, 64)),
                    more=(n, d) in ((4096, 128), (1024, 64)),
                )  # fmt: skip
        yield case(
            "attention", f"attention {flavour.name}", f"{flavour.name}-4096-128-bfloat16", flavour,
            dict(H=16, M=4096, N=4096, D=128), dtype="bfloat16",
        )  # fmt: skip


def _masks() -> Iterator[Case]:
    heads, groups = dict(H=32), dict(H=16, G=2)
    for flavour, sizes in (
        (ALIBI, heads), (SOFT_CAP, groups), (WINDOWED, groups), (PREFIXED, heads)
    ):  # fmt: skip
        for n in (2048, 8192, 32768):
            quick = n == 8192 if flavour is WINDOWED else n == 2048
            yield case(
                "masks", f"attention {flavour.name}", f"{flavour.name}-{n}", flavour,
                {**sizes, "M": n, "N": n, "D": 128}, quick=quick, more=n == 2048,
            )  # fmt: skip
    yield case(
        "masks", "attention soft-cap", "soft-cap-2048-bfloat16", SOFT_CAP,
        dict(H=16, G=2, M=2048, N=2048, D=128), dtype="bfloat16",
    )  # fmt: skip


def _grouped_queries(q: Array, k: Array, v: Array) -> Inputs:
    return dict(q=q[:, :, 0] if q.ndim > k.ndim else q, k=k, v=v)


def _decode() -> Iterator[Case]:
    for name, flavour, heads in (
        ("causal", FULL, dict(H=32)), ("gqa", FULL, dict(H=8, G=8)),
        ("alibi", ONE_ALIBI, dict(H=32)), ("soft-cap", ONE_SOFT_CAP, dict(H=16, G=2)),
    ):  # fmt: skip
        for n in (8192, 32768, 512, 2048):
            hand = by_hand("decode.FORMS", 1, _grouped_queries) if flavour is FULL else None
            yield case(
                "decode", f"decode {name}", f"{name}-{n}", flavour,
                {**heads, "M": 1, "N": n, "D": 128}, hand=hand,
                quick=n == 8192 or (n == 32768 and name == "gqa"), more=n == 8192 and name == "gqa",
            )  # fmt: skip
    yield case(
        "decode", "decode gqa", "gqa-8192-bfloat16", FULL,
        dict(H=8, G=8, M=1, N=8192, D=128), dtype="bfloat16",
    )  # fmt: skip


SMALL = {
    "S1": (8, 512, 512, 64), "S2": (12, 512, 512, 64), "S3": (16, 512, 512, 64),
    "S4": (12, 256, 256, 64), "S5": (16, 256, 256, 64), "S6": (16, 256, 256, 80),
    "S7": (1, 512, 256, 64), "S8": (1, 768, 384, 64), "S9": (1, 1024, 512, 64),
}  # fmt: skip


def _self_attention() -> Iterator[Case]:
    for name, sizes in SMALL.items():
        yield case(
            "self_attention", "self-attention", name, FULL,
            dict(zip("HMND", sizes, strict=True)), graph=True,
            quick=name in ("S1", "S6", "S9"), more=name in ("S1", "S9"),
        )  # fmt: skip
    yield case(
        "self_attention", "self-attention", "S1-bfloat16", FULL,
        dict(zip("HMND", SMALL["S1"], strict=True)), graph=True, dtype="bfloat16",
    )  # fmt: skip


CASES = (*_attention(), *_masks(), *_decode(), *_self_attention())
