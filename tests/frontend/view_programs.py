"""Array programs with slices, heads, concatenations: name -> (function, dim strings)."""

import numpy as np

import blockbuster.frontend as bb


def attention(q, k, v):
    return bb.softmax((q @ k.mT) * q.shape[-1] ** -0.5) @ v


def multi_head_attention(x, wq, wk, wv, wo):
    q, k, v = (bb.split_heads(x @ w, 2) for w in (wq, wk, wv))
    return bb.merge_heads(attention(q, k, v)) @ wo


def grouped_heads(x, wq, wk, wv):
    """Four heads of queries read two heads of keys and values."""
    q = bb.split_heads(bb.split_heads(x @ wq, 2), 2)  # H G M D
    k, v = (bb.split_heads(x @ w, 2)[:, None] for w in (wk, wv))
    return bb.merge_heads(bb.merge_heads(attention(q, k, v)))


def rope(x, cos, sin):
    half = x.shape[-1] // 2
    a, b = x[..., :half], x[..., half:]
    return bb.concat([a * cos - b * sin, b * cos + a * sin], axis=-1)


def rotated(x, cos, sin):
    half = x.shape[-1] // 2
    return x * cos + np.concatenate([-x[..., half:], x[..., :half]], axis=-1) * sin


def rope_in_pairs(x, cos, sin):
    a, b = x[..., ::2], x[..., 1::2]
    return np.stack([a * cos - b * sin, a * sin + b * cos], axis=-1).reshape(x.shape)


def rotated_in_pairs(x, cos, sin):
    turned = np.stack([-x[..., 1::2], x[..., ::2]], axis=-1).reshape(x.shape)
    return x * cos + turned * sin


def rope_attention(q, k, v, c, s):
    return attention(rope(q, c, s), rope(k, c, s), v)


def rotated_attention(q, k, v, c, s):
    return attention(rotated(q, c, s), rotated(k, c, s), v)


def projected_rope(x, wq, wk, c, s):
    q, k = (rotated(bb.split_heads(x @ w, 2), c, s) for w in (wq, wk))
    return bb.softmax(q @ k.mT)


def gated(x, w):
    h = x @ w
    return h[..., :4] * bb.silu(h[..., 4:])


def gated_halves(x, w):
    h, k = x @ w, w.shape[-1] // 2
    return h[..., :k] * bb.silu(h[..., k:])


def packed(x, w):
    h = x @ w
    n = h.shape[-1] // 3
    q, k, v = (bb.split_heads(h[..., i * n : (i + 1) * n], 2) for i in range(3))
    return bb.merge_heads(attention(q, k, v))


def cached(q, past, new):
    k = np.concatenate([past, new], axis=-2)
    return attention(q, k, k)


def shifted_causal(x):
    n = bb.arange(x.shape[0])
    return bb.where(n[1:][:, None] >= n[:-1], x[1:, :-1], 0)


def gram(x):
    return x.T @ x


FREE = {
    "key-value cache": (cached, dict(q="M D", past="N D", new="P D")),
    "key-value cache of heads": (cached, dict(q="B H M D", past="B H N D", new="B H P D")),
    "key-value cache and one token": (cached, dict(q="B H 1 D", past="B H N D", new="B H 1 D")),
    "joined keys, first": (
        lambda q, past, new: bb.concat([past, new], -2) @ q.swapaxes(-1, -2),
        dict(q="H M D", past="H N D", new="H P D"),
    ),
    "multi-head attention": (
        multi_head_attention,
        dict(x="B S D", wq="D N", wk="D N", wv="D P", wo="P D"),
    ),
    "grouped heads": (grouped_heads, dict(x="S D", wq="D N", wk="D P", wv="D P")),
    "rope": (rope, dict(x="B S D", cos="S E", sin="S E")),
    "rotated": (rotated, dict(x="H S D", cos="S D", sin="S D")),
    "rope attention": (
        rope_attention,
        dict(q="B H S D", k="B H S D", v="B H S L", c="S E", s="S E"),
    ),
    "rotated attention": (
        rotated_attention,
        dict(q="H S D", k="H S D", v="H S L", c="S D", s="S D"),
    ),
    "rope in pairs": (rope_in_pairs, dict(x="B S D", cos="S E", sin="S E")),
    "rotated in pairs": (rotated_in_pairs, dict(x="H S D", cos="S D", sin="S D")),
    "attention of rope in pairs": (
        lambda q, k, v, c, s: attention(rope_in_pairs(q, c, s), rope_in_pairs(k, c, s), v),
        dict(q="H S D", k="H S D", v="H S L", c="S E", s="S E"),
    ),
    "projected rope": (projected_rope, dict(x="S D", wq="D N", wk="D N", c="S E", s="S E")),
    "gated slices": (gated, dict(x="M D", w="D 8")),
    "gated halves": (gated_halves, dict(x="M D", w="D N")),
    "packed heads": (packed, dict(x="B S D", w="D N")),
    "rows": (lambda x: bb.exp(x[:3]).sum(0), dict(x="M D")),
    "rows and columns": (lambda x: bb.softmax(x[-3:, 1:-1]), dict(x="M D")),
    "slice of a batch": (lambda x, y: (x @ y)[1:], dict(x="B M D", y="B D N")),
    "slice in the middle": (lambda x: x[:, 1:3] * 2, dict(x="M B D")),
    "slice of rows of a product": (lambda x, y: (x @ y)[1:3], dict(x="M D", y="D N")),
    "slice of what is summed": (lambda x, y: x[:, :2] @ y[:2], dict(x="M D", y="K N")),
    "slice of a softmax": (lambda x: bb.softmax(x)[:, 1:3], dict(x="M D")),
    "slice of a slice": (lambda x: x[:, 1:][:, :-1][1:] + 1, dict(x="M D")),
    "every other row of a product": (lambda x, y: (x @ y)[1::2] + 1, dict(x="M D", y="D N")),
    "every third position": (
        lambda x: bb.where(bb.arange(x.shape[0])[1::3] > 2, x[::3, 0], 0),
        dict(x="M D"),
    ),
    "steps of steps": (lambda x: bb.softmax(x[1::2][:, ::3][::2]), dict(x="M D")),
    "steps of what is summed": (lambda x, y: x[:, ::2] @ y[1::2], dict(x="M D", y="D N")),
    "slices of index vectors": (shifted_causal, dict(x="M M")),
    "positions": (lambda x: x[:, 0] * x[0] + x[-1, 1], dict(x="M M")),
    "position of a product": (lambda x, w: (x @ w)[:, -1], dict(x="B S D", w="D N")),
    "one column": (lambda x: x - x[:, 0:1], dict(x="M D")),
    "split input": (lambda x: bb.split_heads(x, 2).sum(-1), dict(x="S D")),
    "split, normalized": (
        lambda x, g: bb.rms_norm(bb.split_heads(x, 2), g),
        dict(x="B S D", g="E"),
    ),
    "split with a bias": (
        lambda x, w, b: bb.split_heads(x @ w + b, 2) * 2,
        dict(x="S D", w="D N", b="N"),
    ),
    "split of a softmax": (
        lambda x, w: bb.split_heads(bb.softmax(x @ w), 2),
        dict(x="S D", w="D N"),
    ),
    "some heads": (lambda x: bb.split_heads(x, 4)[1:3] * 2, dict(x="S D")),
    "part of every head": (lambda x: bb.split_heads(x, 2)[..., 1:], dict(x="S D")),
    "split bias alone": (
        lambda b: bb.split_heads(b[None], 2).sum(-1),
        dict(b="N"),
    ),
    "merged": (lambda x: bb.merge_heads(bb.exp(x)), dict(x="B H S D")),
    "merged and added": (
        lambda x, y: bb.rms_norm(bb.merge_heads(x) + y),
        dict(x="H S D", y="S N"),
    ),
    "merged softmax": (lambda x: bb.softmax(bb.merge_heads(x)), dict(x="H S D")),
    "merged and split": (
        lambda x: bb.split_heads(bb.merge_heads(x), 2) + 1,
        dict(x="H=2 S D"),
    ),
    "split in other factors than merged": (
        lambda x: bb.split_heads(bb.merge_heads(x), 2) + 1,
        dict(x="H=4 S D"),
    ),
    "gram of merged": (lambda x: gram(bb.merge_heads(x)), dict(x="H S D")),
    "joined rows": (lambda x, y: bb.concat([bb.exp(x), y], 0), dict(x="M D", y="N D")),
    "joined columns": (lambda x, y: bb.concat([bb.exp(x), y]) + 1, dict(x="M D", y="M E")),
    "joined inputs": (
        lambda x, y, z: bb.concat([x, y, z[None]], 0),
        dict(x="M D", y="N D", z="D"),
    ),
    "maximum of joined": (lambda x, y: bb.max(bb.concat([x, y]), 1), dict(x="M D", y="M E")),
    "norm of joined": (
        lambda x, y, g: bb.rms_norm(bb.concat([x, y]), g),
        dict(x="M D", y="M E", g="F"),
    ),
    "softmax of joined": (lambda x, y: bb.softmax(bb.concat([x, y])), dict(x="M D", y="M E")),
    "product of joined": (
        lambda x, y, w: bb.concat([x, y]) @ w,
        dict(x="M D", y="M E", w="F N"),
    ),
    "joined to itself": (lambda x: bb.concat([x, x]) @ bb.concat([x, x]).T, dict(x="M D")),
    "joined, then sliced": (
        lambda x, y: bb.concat([x, y])[:, 3:] * bb.concat([x, y])[:, :3],
        dict(x="M 3", y="M 3"),
    ),
    "joined and merged": (
        lambda x, y: bb.merge_heads(bb.concat([x, y], 0)),
        dict(x="H S D", y="G S D"),
    ),
    "merged and joined": (
        lambda x, y: bb.concat([bb.merge_heads(x), y], 1),
        dict(x="H S D", y="S E"),
    ),
}
COPIED = {
    "joined tokens": (
        lambda x, y, w: bb.concat([x, y], 1) @ w,
        dict(x="B 1 D", y="B M D", w="D N"),
    ),
    "many joined keys": (
        lambda q, k: q @ bb.concat([k[n : n + 1] ** n for n in range(9)], 0).T,
        dict(q="M D", k="9 D"),
    ),
    "slice of sorted": (lambda x: np.sort(x @ x.T, axis=0)[:, 1:3] + 1, dict(x="M D")),
    "heads of sorted": (lambda x: bb.split_heads(np.sort(x), 2) + 1, dict(x="M D")),
    "merged, sorted": (lambda x: np.sort(bb.merge_heads(x), axis=0), dict(x="H M D")),
    "joined, sorted": (lambda x, y: np.sort(bb.concat([x, y])), dict(x="M D", y="M E")),
    "joined batches": (
        lambda x, y, w: bb.concat([x, y], 0) @ w,
        dict(x="A M D", y="B M D", w="D N"),
    ),
    "every other of sorted": (lambda x: np.sort(x)[:, 1::2] + 1, dict(x="M D")),
    "every other across a join": (lambda x, y: bb.concat([x, y])[:, ::2], dict(x="M 2", y="M 2")),
    "slice across a join": (lambda x, y: bb.concat([x, y], 0)[1:], dict(x="M=3 D", y="N D")),
    "split other than merged": (
        lambda x: bb.split_heads(bb.merge_heads(x), 2) + 1,
        dict(x="H=3 S D"),
    ),
}
