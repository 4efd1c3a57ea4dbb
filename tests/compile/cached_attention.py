"""Attention to a cache and a new token, in the ways in which people write it, on NumPy's arrays."""

import numpy as np

import blockbuster as bb

TOKEN = dict(q="B H M D", past_k="B G S D", past_v="B G S D", k="B G M D", v="B G M D")
ONE = {name: axes.replace("M", "1") for name, axes in TOKEN.items()}
AT = {**ONE, "at": "int64: 1"}


def attention(q, k, v, mask=None):
    """Of one query head to each head of keys, or of several."""
    (b, h, m, d), g = q.shape, k.shape[1]
    heads = q.reshape(b, g, h // g, m, d)
    s = heads @ k[:, :, None].swapaxes(-1, -2) * 0.25
    s = s if mask is None else np.where(mask, s, -np.inf)
    return (bb.softmax(s) @ v[:, :, None]).reshape(b, h, m, d)


def turned(x):
    """Each pair of elements, half a row apart, turned by an angle of its own."""
    half = x.shape[-1] // 2
    at = bb.arange(x.shape[-1])
    angles = np.where(at < half, at, at - half) * 0.25
    swapped = np.concatenate([-x[..., half:], x[..., :half]], axis=-1)
    return x * np.cos(angles) + swapped * np.sin(angles)


def joined(q, past_k, past_v, k, v):
    return attention(q, np.concatenate([past_k, k], 2), np.concatenate([past_v, v], 2))


def joined_turned(q, past_k, past_v, k, v):
    return joined(turned(q), past_k, past_v, turned(k), v)


def joined_causal(q, past_k, past_v, k, v):
    keys, values = np.concatenate([past_k, k], 2), np.concatenate([past_v, v], 2)
    rows, columns = bb.arange(q.shape[2])[:, None], bb.arange(keys.shape[2])
    return attention(q, keys, values, columns <= rows + past_k.shape[2])


def chosen(q, past_k, past_v, k, v, at):
    places = bb.arange(past_k.shape[2])
    here = (places == at)[:, None]
    return attention(q, np.where(here, k, past_k), np.where(here, v, past_v), places <= at)


def written(q, past_k, past_v, k, v, at):
    keys, values = past_k.copy(), past_v.copy()
    keys[:, :, at] = k
    values[:, :, at] = v
    return attention(q, keys, values, bb.arange(keys.shape[2]) <= at)


CASES = {
    "joined": (joined, ONE),
    "joined, turned": (joined_turned, ONE),
    "joined, causal": (joined_causal, TOKEN),
    "chosen": (chosen, AT),
    "written": (written, AT),
}


def inputs(name, heads, groups):
    """The dims of a case's arguments, for numbers of heads of queries and of keys."""
    of_keys = f"G={groups}" if groups != heads else f"H={heads}"
    axes = CASES[name][1]
    return {key: a.replace("H", f"H={heads}").replace("G", of_keys) for key, a in axes.items()}


def arrays(inputs, rng, **sizes):
    """Arguments for a case, of float64."""

    def given(axes):
        if axes == "int64: 1":
            return np.array([rng.integers(sizes["S"])])
        return rng.standard_normal([sizes[a] if a.isalpha() else int(a) for a in axes.split()])

    return {name: given(axes) for name, axes in inputs.items()}


def plain(name, given):
    """The same in float64 and one head at a time, without any function of ours."""
    q, keys, values = given["q"], given["past_k"].copy(), given["past_v"].copy()
    k, v, rows = given["k"], given["v"], given["q"].shape[2]
    if "turned" in name:
        q, k = np.asarray(turned(q)), np.asarray(turned(k))
    if "at" in given:
        (at,) = given["at"]
        keys[:, :, at], values[:, :, at] = k[:, :, 0], v[:, :, 0]
        seen = np.broadcast_to(np.arange(keys.shape[2]) <= at, (rows, keys.shape[2]))
    else:
        past = keys.shape[2]
        keys, values = np.concatenate([keys, k], 2), np.concatenate([values, v], 2)
        later = np.arange(keys.shape[2]) > np.arange(rows)[:, None] + past
        seen = ~later if "causal" in name else np.ones_like(later)
    made, each = np.empty_like(q), q.shape[1] // keys.shape[1]
    for b, h, m in np.ndindex(*q.shape[:3]):
        weights = np.exp(keys[b, h // each] @ q[b, h, m] * 0.25) * seen[m]
        made[b, h, m] = weights / weights.sum() @ values[b, h // each]
    return made
