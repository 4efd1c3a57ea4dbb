"""Functions of whole arrays that a NumPy text defines itself: products and normalizations.

They round as the functions of own_functions.py do, and have an axis along which they run.
"""

from __future__ import annotations

from blockbuster.emit.print.functions import functions_in

WHOLE = functions_in('''
def own(x, other):
    """`x`, or a copy if it shares memory with `other`."""
    return np.array(x) if np.may_share_memory(x, other) else x

def whole_product(a, b, dtype):
    """a @ b: a small one is rounded once, another is summed in parts of 256 terms."""
    rows = a.shape[-2] if a.ndim > 1 else 1
    columns = b.shape[-1] if b.ndim > 1 else 1
    if rows * columns * a.shape[-1] <= 262144:
        wide = np.matmul(*(x.astype(np.float64, copy=False) for x in (a, b)))
        return wide.astype(dtype)
    tall = b if b.ndim > 1 else b[:, None]
    made = np.matmul(a[..., :256], tall[..., :256, :])
    for k in range(256, a.shape[-1], 256):
        made += np.matmul(a[..., k : k + 256], tall[..., k : k + 256, :])
    return made if b.ndim > 1 else made[..., 0]

def picked(x, at, axis, keepdims):
    """The elements of `x` at positions along an axis; 0 if there is no such one."""
    if not x.size:
        return x.sum(axis=axis, keepdims=keepdims)
    inside = (at >= 0) & (at < x.shape[axis])
    shape = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
    places = np.broadcast_to(np.where(inside, at, 0), shape)
    made = np.take_along_axis(x, places, axis)
    made = np.where(inside, made, np.zeros_like(made))
    return made if keepdims else np.squeeze(made, axis)

def top_along(x, axis):
    """The largest along an axis, 0 where that is infinite."""
    top = np.maximum.reduce(x, axis=axis, keepdims=True, initial=-np.inf)
    return np.where(np.isfinite(top), top, np.zeros_like(top))

def sum_along(x, axis, dtype):
    """The sum along an axis, which stays; it is rounded once."""
    return np.add.reduce(x, axis=axis, keepdims=True, dtype=np.float64).astype(dtype)

def sum_of_positive(x, keepdims, dtype):
    """The sums of rows of numbers above 0. Sums of 32 lose nothing that counts."""
    if x.dtype == np.float32 and x.flags.c_contiguous and x.shape[-1] % 32 == 0:
        parts = np.dot(x.reshape(-1, 32), np.ones(32, np.float32))
        x = parts.reshape(*x.shape[:-1], x.shape[-1] // 32)
    return np.add.reduce(x, axis=-1, keepdims=keepdims, dtype=np.float64).astype(dtype)

def whole_softmax(x, dtype, axis):
    """exp(x) over its sum along an axis; 0 in a row of only -inf."""
    top = np.maximum.reduce(x, axis=axis, keepdims=True, initial=-np.inf)
    made = minus(x, top)
    made = exp(made, dtype, out=made)
    return np.divide(made, divisor(sum_along(made, axis, dtype)), out=made)

def whole_log_softmax(x, dtype, axis):
    """x minus the logarithm of the sum of exp(x) along an axis."""
    made = x - np.maximum.reduce(x, axis=axis, keepdims=True, initial=-np.inf)
    total = log(sum_along(exp(made, dtype), axis, dtype), dtype)
    return np.subtract(made, total, out=made)

def whole_logsumexp(x, dtype, axis, keepdims=False):
    """The logarithm of the sum of exp(x) along an axis."""
    top = top_along(x, axis)
    made = x - top
    made = exp(made, dtype, out=made)
    made = log(sum_along(made, axis, dtype), dtype) + top
    return made if keepdims else np.squeeze(made, axis)

def whole_rms_norm(x, weight, dtype, eps):
    """x over the root of its mean square along the last axis, times `weight`."""
    squares = np.add.reduce(np.square(x), axis=-1, keepdims=True, dtype=np.float64)
    made = x / np.sqrt(squares / x.shape[-1] + eps).astype(dtype)
    return made if weight is None else np.multiply(made, weight, out=made)

def whole_layer_norm(x, gamma, beta, dtype, eps):
    """x with mean 0 and variance 1 along the last axis, times `gamma` plus `beta`."""
    count = x.shape[-1]
    made = x - sum_along(x, -1, dtype) / count
    made -= sum_along(made, -1, dtype) / count  # the mean itself was rounded
    squares = np.add.reduce(np.square(made), axis=-1, keepdims=True, dtype=np.float64)
    made /= np.sqrt(squares / count + eps).astype(dtype)
    if gamma is not None:
        made *= gamma
    if beta is not None:
        made += beta
    return made
''')

NEEDED = {
    "whole_softmax": ("exp", "minus", "divisor", "sum_along"),
    "whole_log_softmax": ("exp", "log", "sum_along"),
    "whole_logsumexp": ("exp", "log", "top_along", "sum_along"),
    "whole_layer_norm": ("sum_along",),
}
"""The other functions that each of them calls."""
