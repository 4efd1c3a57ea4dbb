"""Functions that Triton lacks, or has without NaN handling; an emitted file defines those it calls.

Triton's division, sqrt and exp are the GPU's approximations: off by a unit in the last place of
float32, exp by up to 63 (measured; the error grows with the argument). Tanh and gelu of ``HELPERS``
are off by up to 7e-6 of their value (gelu below -5.6 by more, where it is 1e-7 and less), and take
half of the instructions that digits of float32 would: behind a product nothing hides them. These
errors do not show in results in float16, nor in bfloat16 but for such tiny ones; for float32
results, ``ACCURATE`` holds the replacements.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from blockbuster.emit.print.functions import functions_in

CALL = re.compile(r"(?<!def )\b_\w+(?=\()")


HELPERS = functions_in('''
def _within(place, size):
    """True from 0 to below size, in one comparison: unsigned, what is negative is large."""
    return place.to(tl.uint32 if place.dtype == tl.int32 else tl.uint64) < size

def _block_of(x, lanes):
    """The number of the block with the element at x, rounded down: Triton's // rounds to 0."""
    return tl.where(x < 0, -1 - (-1 - x) // lanes, x // lanes)

def _block_at(x, lanes):
    """The same, x being no index: up to 2**30 from 0; NaN lies before all."""
    above = tl.where(x > -1073741824.0, x, -1073741824.0)
    near = tl.where(above < 1073741824.0, above, 1073741824.0)
    return tl.floor(near * (1.0 / lanes)).to(tl.int32)

def _maximum(a, b):
    """The larger; NaN if either is NaN."""
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)

def _minimum(a, b):
    """The smaller; NaN if either is NaN."""
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)

def _product(a, b):
    return a * b

def _sum(a, b):
    return a + b

def _sums(a, b, c, d):
    """Two sums at once."""
    return a + c, b + d

def _relu(x):
    return _maximum(x, 0.0)

def _square(x):
    return x * x

def _sigmoid(x):
    """1 / (1 + exp(-x)), without overflow, and 1/2 at 0."""
    small = tl.exp2(tl.abs(x) * -1.4426950408889634)
    whole = 1.0 + small
    root = tl.rsqrt(whole)  # it takes fewer instructions than a quotient, with a Newton step, too
    near = root * root
    share = tl.fma(near, tl.fma(-whole, near, 1.0), near)
    return tl.where(x >= 0.0, share, small * share)

def _silu(x):
    return x * _sigmoid(x)

# the polynomial: a fit of log2(erfc(a / sqrt(2))) / a up to 5.6, where h is 1e-8: its largest
# error is 7e-6 of h there. Beyond, digits are lost of numbers for which a formula with erf has
# 0. tl.erf takes 29 instructions, most of them to choose coefficients
def _gelu(x):
    """x times the normal distribution function, which is h below 0 and 1 - h above."""
    a = tl.abs(x)
    p = -0.000919088430237025 + a * (6.009291246300563e-05 + a * -1.7561918639330543e-06)
    p = -0.4585549533367157 + a * (-0.05387135222554207 + a * (0.008464083075523376 + a * p))
    h = tl.exp2(a * (-1.1512115001678467 + a * p) - 1.0)
    return x * tl.where(x < 0.0, h, 1.0 - h)

# the polynomial: a fit of (tanh(x)/x - 1)/x^2 with the least largest error of tanh, 5e-7 of it
def _tanh(x):
    """tanh, also near 0: 1 - 2 / (1 + exp(2 x)) would lose digits there."""
    s = x * x
    near = x * (1.0 + s * (-0.3332456946372986 + s * 0.1287640780210495))  # -0 stays -0
    root = tl.rsqrt(1.0 + tl.exp2(x * 2.8853900817779268))
    return tl.where(tl.abs(x) < 0.25, near, 1.0 - 2.0 * root * root)

def _round(x):
    """The nearest whole number, the even one of two."""
    below = tl.floor(x)
    odd = below - 2.0 * tl.floor(0.5 * below) == 1.0
    up = (x - below > 0.5) | ((x - below == 0.5) & odd)
    return tl.where(up, below + 1.0, below)

# 1 + x is a power of two times 1 + t, with t between -1/3 and 1/3; the polynomial: a fit of
# (log(1 + t) - t + t^2/2) / t^3 with the least largest relative error, 2e-7 with rounding
def _log1p(x):
    """log(1 + x) to float32 accuracy, also near 0."""
    u = 1.0 + x
    power = (u.to(tl.int32, bitcast=True) - 0x3F2AAAAB) >> 23
    scale = ((129 - power) << 23).to(tl.float32, bitcast=True)  # 4 / 2**power: no subnormal number
    t = tl.fma(0.25 * x, scale, tl.fma(scale, 0.25, -1.0))
    p = 0.14042310416698456 + t * (-0.15122179687023163 + t * 0.13820229470729828)
    p = 0.20007918775081635 + t * (-0.1647232621908188 + t * p)
    p = 0.3333326578140259 + t * (-0.2500423789024353 + t * p)
    near = tl.fma(t * t, t * p - 0.5, t)
    made = tl.fma(power.to(tl.float32), 0.6931471805599453, near)
    below = tl.where(u == 0.0, float("-inf"), float("nan"))
    return tl.where(u > 0.0, tl.where(u < float("inf"), made, u), below)

# the polynomial: (exp(x) - 1 - x) / x^2 for |x| < 1/2, interpolated at Chebyshev nodes: its
# largest error is 3e-7 of the result, with rounding. Beyond, that of exp decides
def _expm1(x):
    """exp(x) - 1, also near 0."""
    p = 0.041666179895401 + x * (0.008395552635192871 + x * 0.0013966609258204699)
    p = 0.5 + x * (0.1666627675294876 + x * p)
    return tl.where(tl.abs(x) < 0.5, x * tl.fma(x, p, 1.0), tl.exp(x) - 1.0)

# the polynomial: a fit of (atan(t)/t - 1)/t^2 for t up to 1: its error is 8e-8 with rounding. The
# angles of a and of 1 / a add up to a right one
def _atan(x):
    """The angle of a tangent, to float32 accuracy."""
    a = tl.abs(x)
    t = tl.where(a > 1.0, 1.0 / a, a)
    s = t * t
    p = 0.04321181401610375 + s * (-0.016367899253964424 + s * 0.0029206846375018358)
    p = -0.14211055636405945 + s * (0.10666003078222275 + s * (-0.07552210241556168 + s * p))
    p = -0.33333152532577515 + s * (0.19993773102760315 + s * p)
    near = tl.fma(t * s, p, t)
    angle = tl.where(a > 1.0, 1.5707963267948966 - near, near)
    return tl.where(x < 0.0, -angle, angle)

def _power(x, y):
    """x ** y; NaN where x is negative and finite and y is not whole."""
    size = tl.where(tl.abs(x) == 1.0, 1.0, tl.exp2(y * tl.log2(tl.abs(x))))
    odd = tl.floor(y * 0.5) * 2.0 != y
    other = tl.where(x == -float("inf"), size, float("nan"))
    below = tl.where(tl.floor(y) == y, tl.where(odd, -size, size), other)
    return tl.where(y == 0.0, 1.0, tl.where(x < 0.0, below, size))

def _chunk(size, block, count, number):
    """Where, of ``count`` chunks of equally many blocks, the one with a number starts and stops."""
    blocks = tl.cdiv(size, block)
    each = tl.cdiv(blocks, count)
    first = tl.minimum(number * each, blocks)
    return first * block, tl.minimum(first + each, blocks) * block

def _sub0(x, z):
    """x - z, and x where it is infinite, even if z is too."""
    return tl.where(tl.abs(x) == float("inf"), x, x - z)

def _recip0(x):
    """1 / x, 0 where x is 0, and NaN where it is infinite."""
    near = tl.where(tl.abs(x) == float("inf"), float("nan"), 1.0 / x)
    return tl.where(x == 0.0, 0.0, near)

def _mod(x, y):
    """The rest of integers, with the sign of y: Triton's % has that of x."""
    rest = x % y
    return tl.where((rest != 0) & ((rest < 0) != (y < 0)), rest + y, rest)

def _floordiv(x, y):
    """The quotient of integers, rounded down: Triton's // rounds to 0."""
    rest = x % y  # no difference that overflows narrow integers
    return x // y - ((rest != 0) & ((rest < 0) != (y < 0)))

def _shl(x, y):
    """x with its bits moved up; 0 where that is by less than 0, or by more bits than x has."""
    inside = (y >= 0) & (y < x.dtype.primitive_bitwidth)
    return tl.where(inside, x << tl.where(inside, y, 0), x * 0)

def _shr(x, y):
    """x with its bits moved down; 0, or -1 of negative ones, where no bits of x are left."""
    inside = (y >= 0) & (y < x.dtype.primitive_bitwidth)
    moved = x >> tl.where(inside, y, x.dtype.primitive_bitwidth - 1)
    return tl.where(inside, moved, moved >> 1)

def _finite(x):
    """x, and the largest finite number of its sign where it is infinite."""
    return _maximum(_minimum(x, 3.4028234663852886e+38), -3.4028234663852886e+38)
''')

ACCURATE = functions_in('''
# exp2 of a rounded product would lose the digits of a large x
def _exp(x):
    """e ** x to float32 accuracy."""
    t = x * 1.4426950408889634
    lost = tl.fma(x, 1.4426950408889634, -t) + x * 1.925963033500112e-08
    power = tl.exp2(t)
    return tl.where(tl.abs(t) < 127.0, tl.fma(power, lost * 0.6931471805599453, power), power)

def _sigmoid(x):
    """1 / (1 + exp(-x)), without overflow."""
    small = _exp(-tl.abs(x))
    return tl.div_rn(tl.where(x >= 0.0, 1.0, small), 1.0 + small)

def _silu(x):
    """x / (1 + exp(-x)), without overflow."""
    small = _exp(-tl.abs(x))
    return tl.div_rn(tl.where(x >= 0.0, x, x * small), 1.0 + small)

def _gelu(x):
    return 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))

# the polynomial: a least-squares fit of (tanh(x)/x - 1)/x^2, relative error 8e-8 with rounding
def _tanh(x):
    """tanh to float32 accuracy, also near 0."""
    s = x * x
    p = -0.053688019478743985 + s * (0.020469410104041776 + s * -0.005515154677742939)
    near = x + x * s * (-0.3333325984546392 + s * (0.13330830291283585 + s * p))
    far = 1.0 - tl.div_rn(2.0, _exp(2.0 * tl.abs(x)) + 1.0)
    return tl.where(tl.abs(x) < 0.625, near, tl.where(x < 0.0, -far, far))

def _expm1(x):
    """exp(x) - 1 to float32 accuracy, also near 0."""
    p = 0.041666179895401 + x * (0.008395552635192871 + x * 0.0013966609258204699)
    p = 0.5 + x * (0.1666627675294876 + x * p)
    return tl.where(tl.abs(x) < 0.5, x * tl.fma(x, p, 1.0), _exp(x) - 1.0)

def _recip0(x):
    """1 / x, 0 where x is 0, and NaN where it is infinite."""
    near = tl.where(tl.abs(x) == float("inf"), float("nan"), tl.div_rn(1.0, x))
    return tl.where(x == 0.0, 0.0, near)
''')
"""The same to float32 accuracy: within two units of CUDA's own functions."""


def helper_sources(names: Iterable[str], accurate: bool) -> list[str]:
    """The sources of ``names`` and of what they call, callees first."""
    known = {**HELPERS, **ACCURATE} if accurate else HELPERS
    found: dict[str, str] = {}

    def visit(name: str) -> None:
        for called in CALL.findall(known[name]):
            visit(called)
        found.setdefault(name, f"@triton.jit\n{known[name]}")

    for name in sorted(names):
        visit(name)
    return list(found.values())
