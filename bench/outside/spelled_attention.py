"""Attention with masks, heads and softmax, each in three ways."""

from __future__ import annotations

from bench.outside.spelling import Draw, Spelled, spelled

BY_HAND = "t = np.exp(s - s.max(-1, keepdims=True))\nt = t / t.sum(-1, keepdims=True)\n"


def _heads(draw: Draw) -> tuple[int, int, int, int]:
    return draw.few(1, 2, 4), draw.few(4, 8, 16), draw.size(512, 1024, 2048), draw.few(32, 64, 128)


def _masked(draw: Draw, by_arange: str, by_torch: str, captured: str) -> Spelled:
    """Attention under a mask: computed from positions, made by torch, and held as an array.

    ``by_arange`` is of ``i`` and ``j``; the others make an array of {s} x {s}.
    """
    b, h, s, d = _heads(draw)
    scale = d**-0.5
    shapes = dict.fromkeys("qkv", (b, h, s, d))
    return spelled(
        shapes,
        f"i, j = np.arange({s})[:, None], np.arange({s})\n"
        f"s = np.einsum('bhqd,bhkd->bhqk', q, k) * {scale}\n"
        f"s = np.where({by_arange}, s, -np.inf)\n{BY_HAND}np.einsum('bhqk,bhkd->bhqd', t, v)",
        f"mask = {by_torch.format(s=s)}\n"
        f"s = (q @ k.transpose(-1, -2) * {scale}).masked_fill(~mask, float('-inf'))\n"
        "torch.softmax(s, -1) @ v",
        (
            f"torch.softmax(q @ k.transpose(-1, -2) * {scale} + bias, -1) @ v",
            f"bias = torch.zeros({s}, {s}, dtype=torch.float16)\n"
            f"bias = bias.masked_fill(~({captured.format(s=s)}), float('-inf'))",
        ),
    )


def causal(draw: Draw) -> Spelled:
    """Causal attention."""
    tril = "torch.ones({s}, {s}, dtype=torch.bool).tril()"
    return _masked(draw, "j <= i", tril, tril)


def window(draw: Draw) -> Spelled:
    """Attention in a band."""
    w = draw.size(128, 256)
    ones = "torch.ones({s}, {s}, dtype=torch.bool)"
    band = f"{ones}.tril() & {ones}.triu({1 - w})"
    return _masked(draw, f"(j <= i) & (j > i - {w})", band, band)


def prefix(draw: Draw) -> Spelled:
    """Causal attention behind a prefix that all see."""
    p = draw.size(128, 256)
    by_torch = (
        "torch.ones({s}, {s}, dtype=torch.bool).tril() | (torch.arange({s}) < " + str(p) + ")"
    )
    return _masked(draw, f"(j <= i) | (j < {p})", by_torch, by_torch)


def blocks(draw: Draw) -> Spelled:
    """Attention in blocks."""
    n = 2 if draw.small else draw.few(128, 256)
    by_torch = f"(torch.arange({{s}}) // {n})[:, None] == torch.arange({{s}}) // {n}"
    return _masked(draw, f"i // {n} == j // {n}", by_torch, by_torch)


def plain(draw: Draw) -> Spelled:
    """Attention without a mask, over heads behind positions."""
    b, h, s, d = _heads(draw)
    shapes = dict.fromkeys("qkv", (b, s, h, d))
    return spelled(
        shapes,
        f"s = np.einsum('bqhd,bkhd->bhqk', q, k) * {d**-0.5}\n{BY_HAND}"
        "np.einsum('bhqk,bkhd->bqhd', t, v)",
        "q, k, v = (x.transpose(1, 2) for x in (q, k, v))\n"
        f"(torch.softmax(q @ k.transpose(-1, -2) * {d**-0.5}, -1) @ v).transpose(1, 2)",
        "q, k, v = (x.transpose(1, 2) for x in (q, k, v))\n"
        "F.scaled_dot_product_attention(q, k, v).transpose(1, 2)",
    )


def split_heads(draw: Draw) -> Spelled:
    """Attention of heads that are split from columns and joined again."""
    b, h, s, d = _heads(draw)
    shapes = dict.fromkeys("qkv", (b, s, h * d))
    heads = f"({b}, {s}, {h}, {d})"
    joined = f".reshape({b}, {s}, {h * d})"
    return spelled(
        shapes,
        f"q, k, v = (x.reshape{heads} for x in (q, k, v))\n"
        f"s = np.einsum('bqhd,bkhd->bhqk', q, k) * {d**-0.5}\n{BY_HAND}"
        f"np.einsum('bhqk,bkhd->bqhd', t, v){joined}",
        f"q, k, v = (x.view{heads}.transpose(1, 2) for x in (q, k, v))\n"
        f"(torch.softmax(q @ k.mT * {d**-0.5}, -1) @ v).transpose(1, 2){joined}",
        f"q, k, v = (x.unflatten(-1, ({h}, {d})).permute(0, 2, 1, 3) for x in (q, k, v))\n"
        f"F.scaled_dot_product_attention(q, k, v).permute(0, 2, 1, 3).flatten(2)",
    )


def grouped(draw: Draw) -> Spelled:
    """Groups of queries that share keys and values."""
    b, h, s, d = _heads(draw)
    g = draw.few(2, 4)
    shapes = {"q": (b, h * g, s, d), "k": (b, h, s, d), "v": (b, h, s, d)}
    rows, scale = f"({b}, {h}, {g}, {s}, {d})", d**-0.5
    wide = f"[:, :, None].expand{rows}.reshape({b}, {h * g}, {s}, {d})"
    return spelled(
        shapes,
        f"s = np.einsum('bhgqd,bhkd->bhgqk', q.reshape{rows}, k) * {scale}\n{BY_HAND}"
        f"np.einsum('bhgqk,bhkd->bhgqd', t, v).reshape({b}, {h * g}, {s}, {d})",
        f"k, v = k{wide}, v{wide}\ntorch.softmax(q @ k.mT * {scale}, -1) @ v",
        f"s = q.view{rows} @ k[:, :, None].mT * {scale}\n"
        f"(torch.softmax(s, -1) @ v[:, :, None]).reshape({b}, {h * g}, {s}, {d})",
    )


def lengths(draw: Draw) -> Spelled:
    """Attention to the first keys of each sequence: as many as an array says."""
    b, h, s, d = _heads(draw)
    shapes = {**dict.fromkeys("qkv", (b, h, s, d)), "n": (b, 1)}
    scale = d**-0.5
    return spelled(
        shapes,
        f"s = np.einsum('bhqd,bhkd->bhqk', q, k) * {scale}\n"
        f"s = np.where((np.arange({s}) < n)[:, None, None], s, -np.inf)\n"
        f"{BY_HAND}np.einsum('bhqk,bhkd->bhqd', t, v)",
        f"mask = (torch.arange({s}) >= n)[:, None, None]\n"
        f"torch.softmax((q @ k.mT * {scale}).masked_fill(mask, float('-inf')), -1) @ v",
        f"mask = (torch.arange({s}) < n)[:, None, None]\n"
        "F.scaled_dot_product_attention(q, k, v, attn_mask=mask)",
    )


def linear_attention(draw: Draw) -> Spelled:
    """Products of keys and values first."""
    b, h, s, d = _heads(draw)
    shapes = dict.fromkeys("qkv", (b, h, s, d))
    return spelled(
        shapes,
        "np.einsum('bhqd,bhde->bhqe', q, np.einsum('bhkd,bhke->bhde', k, v))",
        "q @ (k.transpose(-1, -2) @ v)",
        "torch.matmul(q, torch.matmul(v.mT, k).mT)",
    )


FAMILIES = (
    causal, window, prefix, blocks, plain, split_heads, grouped, lengths, linear_attention,
)  # fmt: skip
