"""Small functions that a NumPy text defines itself, so that it imports nothing but NumPy.

Functions with a parameter ``out`` write their result there, as NumPy's do. Functions that round are
told the dtype of their result: an operand's own may be another, and rounding to it may truncate.
"""

from __future__ import annotations

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
    "exp": _nearest("exp"),
    "log": _nearest("log"),
    "tanh": _nearest("tanh"),
    "near_sigmoid": _near("sigmoid", "1"),
    "near_silu": _near("silu", "x"),
    "near_gelu": (
        "def near_gelu(x, dtype):\n"
        '    """gelu, rounded once from double precision."""\n'
        "    return gelu(np.asarray(x, np.float64)).astype(dtype)\n"
    ),
    "near_power": (
        "def near_power(x, y, dtype):\n"
        '    """x ** y, rounded once: an exponent in float32 would cost the digits of large x."""\n'
        "    return (np.asarray(x, np.float64) ** np.asarray(y, np.float64)).astype(dtype)\n"
    ),
    "row_sum": (
        "def row_sum(x, dtype):\n"
        '    """The sums of rows, rounded once: NumPy adds up float32 columns one by one."""\n'
        "    return np.add.reduce(x, axis=-1, dtype=np.float64).astype(dtype, copy=False)\n"
    ),
    "wide_row_sum": (
        "def wide_row_sum(x):\n"
        '    """The sums of rows, not rounded: NumPy adds up float32 columns one by one."""\n'
        "    return np.add.reduce(x, axis=-1, dtype=np.float64)\n"
    ),
    "product": (
        "def product(a, b, out=None):\n"
        '    """a @ b.T in float32: parts of 256 terms err less than a chain of them all."""\n'
        "    made = np.matmul(a[..., :256], b[..., :256].T, out=out)\n"
        "    for k in range(256, a.shape[-1], 256):\n"
        "        made += np.matmul(a[..., k : k + 256], b[..., k : k + 256].T)\n"
        "    return made\n"
    ),
    "dot": (
        "def dot(a, b, dtype, out=None):\n"
        '    """a @ b.T; a small one is rounded once: in float32, libraries differ most there."""\n'
        "    if a.size * b.size > 262144 * a.shape[-1]:\n"
        "        return product(a, b, out)\n"
        "    wide = a.astype(np.float64, copy=False) @ b.T.astype(np.float64, copy=False)\n"
        "    if out is None:\n"
        "        return wide.astype(dtype, copy=False)\n"
        "    out[...] = wide\n"
        "    return out\n"
    ),
    "wide_dot": (
        "def wide_dot(a, b):\n"
        '    """a @ b.T as a part of a sum; a small one is not rounded."""\n'
        "    if a.size * b.size > 262144 * a.shape[-1]:\n"
        "        return product(a, b)\n"
        "    return a.astype(np.float64, copy=False) @ b.T.astype(np.float64, copy=False)\n"
    ),
    "replaced": (
        "def replaced(x, old, new):\n"
        '    """`x` with `new` where it is `old`."""\n'
        "    made = np.array(x)\n"
        "    if old != 0 or np.count_nonzero(made) < made.size:\n"
        "        made[made == old] = new\n"
        "    return made\n"
    ),
    "whole": "def whole(x):\n    return np.asarray(x).astype(np.int64)\n",
    "reciprocal": "def reciprocal(x):\n    return 1 / x\n",
    "rsqrt": "def rsqrt(x):\n    return 1 / np.sqrt(x)\n",
    "relu": "def relu(x):\n    return np.maximum(x, 0)\n",
    "sigmoid": (
        "def sigmoid(x):\n"
        "    small = np.exp(-np.abs(x))\n"
        "    return np.where(x >= 0, 1 / (1 + small), small / (1 + small))\n"
    ),
    "silu": "def silu(x):\n    return x * sigmoid(x)\n",
    "erf": _ERF,
    "gelu": (
        "def gelu(x):\n"
        "    scaled = x * math.sqrt(0.5)\n"
        "    return x * (1 + erf(scaled, scaled.dtype)) / 2\n"
    ),
    "sub0": (
        "def sub0(x, z):\n"
        '    """x - z, and x where it is infinite, even if z is, too."""\n'
        "    return np.where(np.isinf(x), x, x - z)\n"
    ),
    "minus": (
        "def minus(x, z, out=None):\n"
        '    """sub0: x - z, and x where it is infinite, even if z is, too."""\n'
        "    if math.isfinite(np.vdot(z, z)):\n"
        "        return np.subtract(x, z, out=out)\n"
        "    made = np.where(np.isinf(x), x, x - z)\n"
        "    if out is None:\n"
        "        return made\n"
        "    out[...] = made\n"
        "    return out\n"
    ),
    "chunk": (
        "def chunk(steps, number, count):\n"
        '    """Of ``count`` chunks of equally many ``steps``, the one with a number."""\n'
        "    each = -(-len(steps) // count)\n"
        "    return steps[number * each : (number + 1) * each]\n"
    ),
    "within": (
        "def within(steps, begin, end):\n"
        '    """The steps to the blocks with begin <= number < end; None is no bound."""\n'
        "    first = steps.start if begin is None else max(steps.start, int(begin) * steps.step)\n"
        "    stop = steps.stop if end is None else min(steps.stop, int(end) * steps.step)\n"
        "    return range(first, stop, steps.step)\n"
    ),
    "block_of": (
        "def block_of(x, lanes):\n"
        '    """The numbers of the blocks that hold the positions `x`; NaN lies before all."""\n'
        "    near = np.clip(np.where(np.isnan(x), -np.inf, x), -(2**30), 2**30)\n"
        "    return np.floor(near / lanes).astype(int)\n"
    ),
    "recip0": (
        "def recip0(x):\n"
        '    """1 / x, 0 where x is 0, and NaN where it is infinite."""\n'
        "    return 1 / divisor(x)\n"
    ),
    "divisor": (
        "def divisor(x):\n"
        '    """`x`, infinite where it is 0 and NaN where it is infinite, to divide by."""\n'
        "    made = np.array(x)\n"
        "    if not math.isfinite(np.vdot(made, made)):\n"
        "        made[np.isinf(made)] = np.nan\n"
        "    if np.count_nonzero(made) < made.size:\n"
        "        made[made == 0] = np.inf\n"
        "    return made\n"
    ),
    "rounded": (
        "def rounded(x, to):\n"
        '    """The nearest numbers that the dtype `to` holds, ties to even."""\n'
        '    if to != "bfloat16":\n'
        "        return np.asarray(x).astype(to)\n"
        "    bits = np.asarray(x, np.float32).view(np.uint32)\n"
        "    nearest = (bits + 0x7FFF + (bits >> 16 & 1)) & np.uint32(0xFFFF0000)\n"
        "    return np.where(np.isfinite(x), nearest.view(np.float32), np.asarray(x, np.float32))\n"
    ),
    "padded": (
        "def padded(x, shape):\n"
        '    """`x` with zeros behind it, up to `shape`."""\n'
        "    return np.pad(x, [(0, to - n) for n, to in zip(x.shape, shape, strict=True)])\n"
    ),
    "with_zeros": (
        "def with_zeros(x, places):\n"
        '    """`x` at `places`, an array for each axis; 0 where one lies outside."""\n'
        "    pairs = [*zip(places, x.shape, strict=True)]\n"
        "    if not x.size:\n"
        "        return np.zeros(np.broadcast_shapes(*map(np.shape, places)), x.dtype)\n"
        "    inside = math.prod((np.asarray(at) >= 0) & (at < n) for at, n in pairs)\n"
        "    near = tuple(np.clip(at, 0, n - 1) for at, n in pairs)\n"
        "    return np.where(inside, x[near], x.dtype.type(0))\n"
    ),
}
HELPERS_OF = {
    **NEEDED,
    "silu": ("sigmoid",), "gelu": ("erf",), "near_gelu": ("erf", "gelu"),
    "dot": ("product",), "wide_dot": ("product",), "recip0": ("divisor",),
}  # fmt: skip
