"""Attention with more masks, biases and other weights than softmax, each in three ways."""

from __future__ import annotations

from bench.outside.spelling import Draw, Spelled, spelled

BY_HAND = "t = np.exp(s - s.max(-1, keepdims=True))\nt = t / t.sum(-1, keepdims=True)\n"
WEIGHTED = f"{BY_HAND}np.einsum('bhqk,bhkd->bhqd', t, v)"


def _heads(draw: Draw) -> tuple[int, int, int, int]:
    return draw.few(1, 2, 4), draw.few(4, 8, 16), draw.size(512, 1024, 2048), draw.few(32, 64, 128)


def large_negative(draw: Draw) -> Spelled:
    """Causal attention whose masked scores are a large negative number."""
    b, h, s, d = _heads(draw)
    shapes, scale = dict.fromkeys("qkv", (b, h, s, d)), d**-0.5
    return spelled(
        shapes,
        f"i = torch.arange({s})\ns = (q @ k.mT * {scale})"
        ".masked_fill(i[:, None] < i, -1e4)\ntorch.softmax(s, -1) @ v",
        (
            f"s = q @ k.mT * {scale}\ntorch.softmax(torch.where(mask == 0, -1e4, s), -1) @ v",
            f"mask = torch.tril(torch.ones({s}, {s})).view(1, 1, {s}, {s})",
        ),
        f"i = np.arange({s})\ns = np.einsum('bhqd,bhkd->bhqk', q, k) * {scale}\n"
        f"s = np.where(i[:, None] >= i[None], s, -1e4)\n{WEIGHTED}",
    )


def capped(draw: Draw) -> Spelled:
    """Causal attention whose scores are capped by a tanh."""
    b, h, s, d = _heads(draw)
    shapes, scale = dict.fromkeys("qkv", (b, h, s, d)), d**-0.5
    return spelled(
        shapes,
        f"s = 30.0 * torch.tanh(q @ k.mT * {scale} / 30.0)\n"
        f"m = torch.ones({s}, {s}, dtype=torch.bool).triu(1)\n"
        "torch.softmax(s.masked_fill(m, float('-inf')), -1) @ v",
        f"s = torch.tanh(torch.einsum('bhqd,bhkd->bhqk', q * {scale}, k) / 30.0) * 30.0\n"
        f"i = torch.arange({s})\n"
        "s = torch.where(i <= i[:, None], s, float('-inf'))\n"
        "torch.einsum('bhqk,bhkd->bhqd', s.softmax(-1), v)",
        f"s = np.tanh(np.matmul(q, np.swapaxes(k, -1, -2)) * {scale / 30.0}) * 30.0\n"
        f"i = np.arange({s})\ns = np.where(i[None] > i[:, None], -np.inf, s)\n{WEIGHTED}",
    )


def biased_scores(draw: Draw) -> Spelled:
    """Attention with a bias for each pair of positions and each head."""
    b, h, s, d = _heads(draw)
    shapes = {**dict.fromkeys("qkv", (b, h, s, d)), "a": (h, s, s)}
    return spelled(
        shapes,
        "F.scaled_dot_product_attention(q, k, v, attn_mask=a)",
        f"torch.softmax(torch.matmul(q, k.transpose(2, 3)) * {d**-0.5} + a.unsqueeze(0), 3) @ v",
        f"s = np.einsum('bhqd,bhkd->bhqk', q, k) * {d**-0.5} + a\n{WEIGHTED}",
    )


def padded_biases(draw: Draw) -> Spelled:
    """Attention with a bias for each key, large and negative where there is none."""
    b, h, s, d = _heads(draw)
    shapes, scale = {**dict.fromkeys("qkv", (b, h, s, d)), "n": (b, s)}, d**-0.5
    return spelled(
        shapes,
        f"s = q @ k.mT * {scale} + (1.0 - (n > 1).to(q.dtype))[:, None, None] * -1e4\n"
        "torch.softmax(s, -1) @ v",
        "a = torch.where(n > 1, 0.0, -1e4).to(q.dtype)[:, None, None, :]\n"
        "F.scaled_dot_product_attention(q, k, v, attn_mask=a)",
        f"s = np.einsum('bhqd,bhkd->bhqk', q, k) * {scale}\n"
        f"s = s + np.where(n[:, None, None] > 1, 0.0, -1e4)\n{WEIGHTED}",
    )


def own_scales(draw: Draw) -> Spelled:
    """Attention with a scale for each head."""
    b, h, s, d = _heads(draw)
    shapes = {**dict.fromkeys("qkv", (b, h, s, d)), "a": (h,)}
    return spelled(
        shapes,
        "torch.softmax(q @ k.mT * a[:, None, None], -1) @ v",
        "F.scaled_dot_product_attention(q * a.view(1, -1, 1, 1), k, v, scale=1.0)",
        f"s = np.einsum('bhqd,bhkd,h->bhqk', q, k, a)\n{WEIGHTED}",
    )


def one_key_head(draw: Draw) -> Spelled:
    """Attention whose heads share all keys."""
    b, h, s, d = _heads(draw)
    shapes, scale = {"q": (b, h, s, d), "k": (b, s, d), "v": (b, s, d)}, d**-0.5
    return spelled(
        shapes,
        f"torch.softmax(q @ k[:, None].mT * {scale}, -1) @ v[:, None]",
        f"k, v = (t.unsqueeze(1).expand({b}, {h}, {s}, {d}) for t in (k, v))\n"
        "F.scaled_dot_product_attention(q, k, v)",
        f"s = np.einsum('bhqd,bkd->bhqk', q, k) * {scale}\n"
        f"{BY_HAND}np.einsum('bhqk,bkd->bhqd', t, v)",
    )


def last_queries(draw: Draw) -> Spelled:
    """Causal attention of the last queries of a sequence."""
    b, h, s, d = _heads(draw)
    t = s // 2
    shapes, scale = {"q": (b, h, t, d), "k": (b, h, s, d), "v": (b, h, s, d)}, d**-0.5
    return spelled(
        shapes,
        f"m = torch.ones({t}, {s}, dtype=torch.bool).tril({s - t})\n"
        f"torch.softmax((q @ k.mT * {scale}).masked_fill(~m, float('-inf')), -1) @ v",
        f"m = torch.arange({s})[None] <= torch.arange({t})[:, None] + {s - t}\n"
        "F.scaled_dot_product_attention(q, k, v, attn_mask=m)",
        f"s = np.einsum('bhqd,bhkd->bhqk', q, k) * {scale}\n"
        f"s = np.where(np.arange({s}) - {s - t} <= np.arange({t})[:, None], s, -np.inf)\n"
        f"{WEIGHTED}",
    )


def every_few(draw: Draw) -> Spelled:
    """Attention to positions at distances that a number divides."""
    b, h, s, d = _heads(draw)
    shapes, scale, n = dict.fromkeys("qkv", (b, h, s, d)), d**-0.5, draw.few(4, 8)
    return spelled(
        shapes,
        f"i = torch.arange({s})\nm = (i[:, None] - i) % {n} == 0\n"
        "F.scaled_dot_product_attention(q, k, v, attn_mask=m)",
        f"i = torch.arange({s}) % {n}\n"
        f"s = torch.where(i[:, None] == i, q @ k.mT * {scale}, float('-inf'))\n"
        "s.softmax(-1) @ v",
        f"i = np.arange({s})\ns = np.einsum('bhqd,bhkd->bhqk', q, k) * {scale}\n"
        f"s = np.where(np.mod(i[:, None] - i[None], {n}) != 0, -np.inf, s)\n{WEIGHTED}",
    )


def sigmoid_weights(draw: Draw) -> Spelled:
    """Attention with sigmoids of scores as weights."""
    b, h, s, d = _heads(draw)
    shapes, scale = dict.fromkeys("qkv", (b, h, s, d)), d**-0.5
    return spelled(
        shapes,
        f"torch.sigmoid(q @ k.mT * {scale}) @ v",
        f"torch.einsum('bhqk,bhkd->bhqd', (torch.einsum('bhqd,bhkd->bhqk', q, k) * {scale})"
        ".sigmoid(), v)",
        f"t = 1 / (1 + np.exp(-({scale} * (q @ np.swapaxes(k, 2, 3)))))\nt @ v",
    )


def positive_features(draw: Draw) -> Spelled:
    """Attention by features that are positive, over their sums."""
    b, h, s, d = _heads(draw)
    return spelled(
        dict.fromkeys("qkv", (b, h, s, d)),
        "q, k = F.elu(q) + 1, F.elu(k) + 1\n(q @ (k.mT @ v)) / (q @ k.sum(2)[..., None])",
        "q, k = (torch.where(t > 0, t + 1, t.exp()) for t in (q, k))\n"
        "s = torch.einsum('bhkd,bhke->bhde', k, v)\n"
        "n = torch.einsum('bhqd,bhd->bhq', q, k.sum(-2))\n"
        "torch.einsum('bhqd,bhde->bhqe', q, s) / n.unsqueeze(-1)",
        "q, k = (np.where(t > 0, t, np.expm1(np.minimum(t, 0))) + 1 for t in (q, k))\n"
        "s = np.swapaxes(k, -1, -2) @ v\n"
        "q @ s / (q * k.sum(-2, keepdims=True)).sum(-1, keepdims=True)",
    )


def mixed_heads(draw: Draw) -> Spelled:
    """Weights of attention that are mixed over heads."""
    b, h, s, d = draw.few(1, 2), draw.few(4, 8), draw.size(512, 1024), draw.few(32, 64)
    return spelled(
        {**dict.fromkeys("qkv", (b, h, s, d)), "w": (h, h)},
        f"t = torch.softmax(q @ k.mT * {d**-0.5}, -1)\ntorch.einsum('bhqk,hg->bgqk', t, w) @ v",
        f"t = torch.softmax(q @ k.mT * {d**-0.5}, -1)\n"
        "(t.permute(0, 2, 3, 1) @ w).permute(0, 3, 1, 2) @ v",
        f"s = np.einsum('bhqd,bhkd->bhqk', q, k) * {d**-0.5}\n{BY_HAND}"
        "t = np.tensordot(t, w, axes=([1], [0])).transpose(0, 3, 1, 2)\n"
        "np.einsum('bhqk,bhkd->bhqd', t, v)",
    )


def cosine_scores(draw: Draw) -> Spelled:
    """Attention of cosines of queries and keys."""
    b, h, s, d = _heads(draw)
    return spelled(
        dict.fromkeys("qkv", (b, h, s, d)),
        "torch.softmax(F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).mT * 10.0, -1) @ v",
        "q, k = (t / t.norm(dim=-1, keepdim=True).clamp(min=1e-12) for t in (q, k))\n"
        "F.scaled_dot_product_attention(q, k, v, scale=10.0)",
        "q, k = (t / np.maximum(np.sqrt((t * t).sum(-1, keepdims=True)), 1e-12) for t in (q, k))\n"
        f"s = 10.0 * np.einsum('bhqd,bhkd->bhqk', q, k)\n{WEIGHTED}",
    )


def by_logarithms(draw: Draw) -> Spelled:
    """Attention whose weights are exponentials of scores less their logsumexp."""
    b, h, s, d = _heads(draw)
    return spelled(
        dict.fromkeys("qkv", (b, h, s, d)),
        f"s = q @ k.mT * {d**-0.5}\ntorch.exp(s - torch.logsumexp(s, -1, keepdim=True)) @ v",
        f"s = q @ k.mT * {d**-0.5}\nF.log_softmax(s, -1).exp() @ v",
        f"s = np.einsum('bhqd,bhkd->bhqk', q, k) * {d**-0.5}\nm = s.max(-1, keepdims=True)\n"
        "t = np.exp(s - (m + np.log(np.exp(s - m).sum(-1, keepdims=True))))\n"
        "np.einsum('bhqk,bhkd->bhqd', t, v)",
    )


def causal_weights(draw: Draw) -> Spelled:
    """Softmaxes of the scores until each position."""
    b, h, s = draw.few(2, 4), draw.few(4, 8), draw.size(512, 1024)
    return spelled(
        {"x": (b, h, s, s)},
        f"m = torch.ones({s}, {s}, dtype=torch.bool).triu(1)\n"
        "F.softmax(x.masked_fill(m, float('-inf')), dim=-1)",
        f"i = torch.arange({s})\n"
        "torch.softmax(torch.where(i[None] <= i[:, None], x, float('-inf')), -1)",
        ("torch.softmax(x + mask, -1)",
         f"mask = torch.full(({s}, {s}), float('-inf'), dtype=torch.float16).triu(1)"),
    )  # fmt: skip


def cut_windows(draw: Draw) -> Spelled:
    """Squares of an image as rows of positions, as attention in windows has them."""
    b, h, w, c = draw.few(4, 8), draw.few(7, 8), 2 if draw.small else draw.few(7, 8), 96
    n = h * w
    return spelled(
        {"x": (b, n, n, c)},
        f"t = x.view({b}, {n // w}, {w}, {n // w}, {w}, {c}).permute(0, 1, 3, 2, 4, 5)\n"
        f"t.reshape(-1, {w * w}, {c}) * 2",
        f"t = x.unfold(1, {w}, {w}).unfold(2, {w}, {w}).permute(0, 1, 2, 4, 5, 3)\n"
        f"2 * t.reshape(-1, {w * w}, {c})",
        f"t = np.swapaxes(x.reshape({b}, {n // w}, {w}, {n // w}, {w}, {c}), 2, 3)\n"
        f"t.reshape({b * (n // w) ** 2}, {w * w}, {c}) * 2.0",
    )


def turned_in_part(draw: Draw) -> Spelled:
    """Rotary positions of the first half of each head."""
    b, h, s, d = _heads(draw)
    r = d // 4
    return spelled(
        {"x": (b, h, s, d), "c": (s, r), "n": (s, r)},
        f"a, b, t = x.split([{r}, {r}, {d - 2 * r}], -1)\n"
        "torch.cat([a * c - b * n, b * c + a * n, t], -1)",
        f"y, t = x[..., :{2 * r}], x[..., {2 * r}:]\na, b = y.chunk(2, -1)\n"
        "y = y * torch.cat([c, c], -1) + torch.cat([-b, a], -1) * torch.cat([n, n], -1)\n"
        "torch.cat([y, t], dim=-1)",
        f"a, b = x[..., :{r}], x[..., {r}:{2 * r}]\n"
        f"np.concatenate([c * a - n * b, n * a + c * b, x[..., {2 * r}:]], axis=-1)",
    )


FAMILIES = (
    large_negative, capped, biased_scores, padded_biases, own_scales, one_key_head, last_queries,
    every_few, sigmoid_weights, positive_features, mixed_heads, cosine_scores, by_logarithms,
    causal_weights, cut_windows, turned_in_part,
)  # fmt: skip
