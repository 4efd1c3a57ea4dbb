"""Small functions that a NumPy text defines itself, so that it imports nothing but NumPy.

Functions with a parameter ``out`` write their result there, as NumPy's do. Functions that round are
told the dtype of their result: an operand's own may be another, and rounding to it may truncate.
"""

from __future__ import annotations

from blockbuster.emit.print.functions import functions_in
from blockbuster.emit.print.numpy.whole_functions import NEEDED, WHOLE


def _near(name: str, over: str) -> str:
    return (
        f"def near_{name}(x, dtype, out=None):\n"
        f'    """{name}, which is {over} / (1 + exp(-x)), rounded once from double precision."""\n'
        "    wide = np.exp(np.negative(x), dtype=np.float64)\n"
        "    wide += 1\n"
        "    if out is None:\n"
        f"        return np.divide({over}, wide).astype(dtype)\n"
        f'    return np.divide({over}, wide, out=out, casting="same_kind")\n'
    )


def _nearest(name: str) -> str:
    return (
        f"def {name}(x, dtype, out=None):\n"
        f'    """np.{name}, rounded once: in float32 NumPy\'s own is off by up to three units."""\n'
        "    if out is None:\n"
        f"        return np.{name}(x, dtype=np.float64).astype(dtype)\n"
        f'    return np.{name}(x, out=out, dtype=np.float64, casting="same_kind")\n'
    )


_ERF = '''\
AT = np.arange(3073) / 512
ERF_AT = np.array([math.erf(at) for at in AT])
SLOPE_AT = 2 / math.sqrt(math.pi) * np.exp(-AT * AT)


def erf(x, dtype):
    """The error function, by Taylor's series at the nearest of 3073 points: up to 2 units off."""
    wide = np.asarray(x, np.float64).ravel()
    made = np.empty(wide.size)
    if wide.size <= 128:
        made[:] = [math.erf(one) for one in wide.tolist()]
    for k in range(0, 0 if wide.size <= 128 else wide.size, 4096):
        far = np.minimum(np.abs(wide[k : k + 4096]), 6)
        near = np.rint(far * 512)
        number = near.astype(np.intp)
        near /= 512
        far -= near
        square = near * near
        series = ((4 * square - 12) * square + 3) * far / 30 - (2 * square - 3) * near / 6
        series = ((series * far + (2 * square - 1) / 3) * far - near) * far + 1
        series *= far * SLOPE_AT.take(number, mode="clip")
        series += ERF_AT.take(number, mode="clip")
        np.copysign(series, wide[k : k + 4096], out=made[k : k + 4096])
    return made.reshape(np.shape(x)).astype(dtype)
'''

HELPERS: dict[str, str] = {
    **WHOLE,
    **{name: _nearest(name) for name in ("exp", "log", "tanh")},
    "near_sigmoid": _near("sigmoid", "1"),
    "near_silu": _near("silu", "x"),
    "erf": _ERF,
    **functions_in('''
def near_gelu(x, dtype):
    """gelu, rounded once from double precision."""
    return gelu(np.asarray(x, np.float64)).astype(dtype)

def near_power(x, y, dtype):
    """x ** y, rounded once: an exponent in float32 would cost the digits of large x."""
    return (np.asarray(x, np.float64) ** np.asarray(y, np.float64)).astype(dtype)

def row_sum(x, dtype):
    """The sums of rows, rounded once: NumPy adds up float32 columns one by one."""
    return np.add.reduce(x, axis=-1, dtype=np.float64).astype(dtype, copy=False)

def wide_row_sum(x):
    """The sums of rows, not rounded: NumPy adds up float32 columns one by one."""
    return np.add.reduce(x, axis=-1, dtype=np.float64)

def product(a, b, out=None):
    """a @ b.T in float32: parts of 256 terms err less than a chain of them all."""
    made = np.matmul(a[..., :256], b[..., :256].T, out=out)
    for k in range(256, a.shape[-1], 256):
        made += np.matmul(a[..., k : k + 256], b[..., k : k + 256].T)
    return made

def dot(a, b, dtype, out=None):
    """a @ b.T; a small one is rounded once: in float32, libraries differ most there."""
    if a.size * b.size > 262144 * a.shape[-1]:
        return product(a, b, out)
    wide = a.astype(np.float64, copy=False) @ b.T.astype(np.float64, copy=False)
    if out is None:
        return wide.astype(dtype, copy=False)
    out[...] = wide
    return out

def wide_dot(a, b):
    """a @ b.T as a part of a sum; a small one is not rounded."""
    if a.size * b.size > 262144 * a.shape[-1]:
        return product(a, b)
    return a.astype(np.float64, copy=False) @ b.T.astype(np.float64, copy=False)

def replaced(x, old, new):
    """`x` with `new` where it is `old`."""
    made = np.array(x)
    if old != 0 or np.count_nonzero(made) < made.size:
        made[made == old] = new
    return made

def whole(x):
    return np.asarray(x).astype(np.int64)

def reciprocal(x):
    return 1 / x

def rsqrt(x):
    return 1 / np.sqrt(x)

def relu(x):
    return np.maximum(x, 0)

def sigmoid(x):
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + small), small / (1 + small))

def silu(x):
    return x * sigmoid(x)

def gelu(x):
    scaled = x * math.sqrt(0.5)
    return x * (1 + erf(scaled, scaled.dtype)) / 2

def sub0(x, z):
    """x - z, and x where it is infinite, even if z is, too."""
    return np.where(np.isinf(x), x, x - z)

def minus(x, z, out=None):
    """sub0: x - z, and x where it is infinite, even if z is, too."""
    if math.isfinite(np.vdot(z, z)):
        return np.subtract(x, z, out=out)
    made = np.where(np.isinf(x), x, x - z)
    if out is None:
        return made
    out[...] = made
    return out

def chunk(steps, number, count):
    """Of ``count`` chunks of equally many ``steps``, the one with a number."""
    each = -(-len(steps) // count)
    return steps[number * each : (number + 1) * each]

def within(steps, begin, end):
    """The steps to the blocks with begin <= number < end; None is no bound."""
    first = steps.start if begin is None else max(steps.start, int(begin) * steps.step)
    stop = steps.stop if end is None else min(steps.stop, int(end) * steps.step)
    return range(first, stop, steps.step)

def block_of(x, lanes):
    """The numbers of the blocks that hold the positions `x`; NaN lies before all."""
    near = np.clip(np.where(np.isnan(x), -np.inf, x), -(2**30), 2**30)
    return np.floor(near / lanes).astype(int)

def recip0(x):
    """1 / x, 0 where x is 0, and NaN where it is infinite."""
    return 1 / divisor(x)

def divisor(x):
    """`x`, infinite where it is 0 and NaN where it is infinite, to divide by."""
    made = np.array(x)
    if not math.isfinite(np.vdot(made, made)):
        made[np.isinf(made)] = np.nan
    if np.count_nonzero(made) < made.size:
        made[made == 0] = np.inf
    return made

def rounded(x, to):
    """The nearest numbers that the dtype `to` holds, ties to even."""
    if to != "bfloat16":
        return np.asarray(x).astype(to)
    bits = np.asarray(x, np.float32).view(np.uint32)
    nearest = (bits + 0x7FFF + (bits >> 16 & 1)) & np.uint32(0xFFFF0000)
    return np.where(np.isfinite(x), nearest.view(np.float32), np.asarray(x, np.float32))

def with_zeros(x, places):
    """`x` at `places`, an array for each axis; 0 where one lies outside."""
    pairs = [*zip(places, x.shape, strict=True)]
    if not x.size:
        return np.zeros(np.broadcast_shapes(*map(np.shape, places)), x.dtype)
    inside = math.prod((np.asarray(at) >= 0) & (at < n) for at, n in pairs)
    near = tuple(np.clip(at, 0, n - 1) for at, n in pairs)
    return np.where(inside, x[near], x.dtype.type(0))
'''),
}
HELPERS_OF = {
    **NEEDED,
    "silu": ("sigmoid",), "gelu": ("erf",), "near_gelu": ("erf", "gelu"),
    "dot": ("product",), "wide_dot": ("product",), "recip0": ("divisor",),
}  # fmt: skip
