"""Functions of whole arrays that a NumPy text defines itself: products and normalizations.

They round as the functions of own_functions.py do, and have an axis along which they run.
"""

from __future__ import annotations

WHOLE: dict[str, str] = {
    "own": (
        "def own(x, other):\n"
        '    """`x`, or a copy if it shares memory with `other`."""\n'
        "    return np.array(x) if np.may_share_memory(x, other) else x\n"
    ),
    "whole_product": (
        "def whole_product(a, b, dtype):\n"
        '    """a @ b: a small one is rounded once, another is summed in parts of 256 terms."""\n'
        "    rows = a.shape[-2] if a.ndim > 1 else 1\n"
        "    columns = b.shape[-1] if b.ndim > 1 else 1\n"
        "    if rows * columns * a.shape[-1] <= 262144:\n"
        "        wide = np.matmul(*(x.astype(np.float64, copy=False) for x in (a, b)))\n"
        "        return wide.astype(dtype)\n"
        "    tall = b if b.ndim > 1 else b[:, None]\n"
        "    made = np.matmul(a[..., :256], tall[..., :256, :])\n"
        "    for k in range(256, a.shape[-1], 256):\n"
        "        made += np.matmul(a[..., k : k + 256], tall[..., k : k + 256, :])\n"
        "    return made if b.ndim > 1 else made[..., 0]\n"
    ),
    "picked": (
        "def picked(x, at, axis, keepdims):\n"
        '    """The elements of `x` at positions along an axis; 0 if there is no such one."""\n'
        "    if not x.size:\n"
        "        return x.sum(axis=axis, keepdims=keepdims)\n"
        "    inside = (at >= 0) & (at < x.shape[axis])\n"
        "    shape = (*x.shape[:axis], 1, *x.shape[axis + 1 :])\n"
        "    places = np.broadcast_to(np.where(inside, at, 0), shape)\n"
        "    made = np.take_along_axis(x, places, axis)\n"
        "    made = np.where(inside, made, np.zeros_like(made))\n"
        "    return made if keepdims else np.squeeze(made, axis)\n"
    ),
    "top_along": (
        "def top_along(x, axis):\n"
        '    """The largest along an axis, 0 where that is infinite."""\n'
        "    top = np.maximum.reduce(x, axis=axis, keepdims=True, initial=-np.inf)\n"
        "    return np.where(np.isfinite(top), top, np.zeros_like(top))\n"
    ),
    "sum_along": (
        "def sum_along(x, axis, dtype):\n"
        '    """The sum along an axis, which stays; it is rounded once."""\n'
        "    return np.add.reduce(x, axis=axis, keepdims=True, dtype=np.float64).astype(dtype)\n"
    ),
    "sum_of_positive": (
        "def sum_of_positive(x, keepdims, dtype):\n"
        '    """The sums of rows of numbers above 0. Sums of 32 lose nothing that counts."""\n'
        "    if x.dtype == np.float32 and x.flags.c_contiguous and x.shape[-1] % 32 == 0:\n"
        "        parts = np.dot(x.reshape(-1, 32), np.ones(32, np.float32))\n"
        "        x = parts.reshape(*x.shape[:-1], x.shape[-1] // 32)\n"
        "    return np.add.reduce(x, axis=-1, keepdims=keepdims, dtype=np.float64).astype(dtype)\n"
    ),
    "whole_softmax": (
        "def whole_softmax(x, dtype, axis):\n"
        '    """exp(x) over its sum along an axis; 0 in a row of only -inf."""\n'
        "    top = np.maximum.reduce(x, axis=axis, keepdims=True, initial=-np.inf)\n"
        "    made = minus(x, top)\n"
        "    made = exp(made, dtype, out=made)\n"
        "    return np.divide(made, divisor(sum_along(made, axis, dtype)), out=made)\n"
    ),
    "whole_log_softmax": (
        "def whole_log_softmax(x, dtype, axis):\n"
        '    """x minus the logarithm of the sum of exp(x) along an axis."""\n'
        "    made = x - top_along(x, axis)\n"
        "    total = log(sum_along(exp(made, dtype), axis, dtype), dtype)\n"
        "    return np.subtract(made, total, out=made)\n"
    ),
    "whole_logsumexp": (
        "def whole_logsumexp(x, dtype, axis, keepdims=False):\n"
        '    """The logarithm of the sum of exp(x) along an axis."""\n'
        "    top = top_along(x, axis)\n"
        "    made = x - top\n"
        "    made = exp(made, dtype, out=made)\n"
        "    made = log(sum_along(made, axis, dtype), dtype) + top\n"
        "    return made if keepdims else np.squeeze(made, axis)\n"
    ),
    "whole_rms_norm": (
        "def whole_rms_norm(x, weight, dtype, eps):\n"
        '    """x over the root of its mean square along the last axis, times `weight`."""\n'
        "    squares = np.add.reduce(np.square(x), axis=-1, keepdims=True, dtype=np.float64)\n"
        "    made = x / np.sqrt(squares / x.shape[-1] + eps).astype(dtype)\n"
        "    return made if weight is None else np.multiply(made, weight, out=made)\n"
    ),
    "whole_layer_norm": (
        "def whole_layer_norm(x, gamma, beta, dtype, eps):\n"
        '    """x with mean 0 and variance 1 along the last axis, times `gamma` plus `beta`."""\n'
        "    count = x.shape[-1]\n"
        "    made = x - sum_along(x, -1, dtype) / count\n"
        "    made -= sum_along(made, -1, dtype) / count  # the mean itself was rounded\n"
        "    squares = np.add.reduce(np.square(made), axis=-1, keepdims=True, dtype=np.float64)\n"
        "    made /= np.sqrt(squares / count + eps).astype(dtype)\n"
        "    if gamma is not None:\n"
        "        made *= gamma\n"
        "    if beta is not None:\n"
        "        made += beta\n"
        "    return made\n"
    ),
}

NEEDED = {
    "whole_softmax": ("exp", "minus", "divisor", "sum_along"),
    "whole_log_softmax": ("exp", "log", "top_along", "sum_along"),
    "whole_logsumexp": ("exp", "log", "top_along", "sum_along"),
    "whole_layer_norm": ("sum_along",),
}
"""The other functions that each of them calls."""
