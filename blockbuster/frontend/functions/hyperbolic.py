"""Hyperbolic functions and their inverses, of functions that kernels have.

Each keeps its digits where a plain formula cancels, near 0 and for acosh near 1, and is finite
where its value is. W. Kahan, Branch Cuts for Complex Elementary Functions (1987), has the inverses.
"""

from __future__ import annotations

from blockbuster.frontend.array import as_floats
from blockbuster.frontend.functions.pointwise import abs, expm1, log, log1p, sqrt, where
from blockbuster.frontend.functions.row import Array, Row, example


def sinh(x: Array) -> Array:
    """The hyperbolic sine: (exp(x) - exp(-x)) / 2, which is 2 sinh(x / 2) cosh(x / 2)."""
    up, down = _less_one(x)
    return (up + down) * (1.0 + 0.5 * up * down)


def cosh(x: Array) -> Array:
    """The hyperbolic cosine: (exp(x) + exp(-x)) / 2, which is 1 + 2 sinh(x / 2) ** 2."""
    up, down = _less_one(x)
    return 1.0 + 0.5 * (up + down) * (up + down)


def _less_one(x: Array) -> tuple[Array, Array]:
    """exp(x / 2) - 1 and 1 - exp(-x / 2): their sum is 2 sinh(x / 2), and finite where sinh is."""
    half = 0.5 * as_floats(x, alone=True)
    return expm1(half), -expm1(-half)


def asinh(x: Array) -> Array:
    """The inverse of sinh: log(x + sqrt(x * x + 1))."""
    size = abs(as_floats(x, alone=True))
    small = where(size < 1, size, 0.0)
    square = small * small
    near = log1p(small + square / (1.0 + sqrt(1.0 + square)))
    inverse = 1.0 / where(size < 1, 1.0, size)
    far = log(where(size < 1, 1.0, size)) + log1p(sqrt(1.0 + inverse * inverse))
    return _with_sign(where(size < 1, near, far), x)


def acosh(x: Array) -> Array:
    """The inverse of cosh of numbers from 1 on: log(x + sqrt(x * x - 1)); NaN below 1."""
    x = as_floats(x, alone=True)
    above = where(x > 2, 0.0, x - 1.0)
    near = log1p(above + sqrt(above) * sqrt(above + 2.0))
    large = where(x > 2, x, 2.0)
    inverse = 1.0 / large
    far = log(large) + log1p(sqrt((1.0 - inverse) * (1.0 + inverse)))
    return where(x > 2, far, near)


def atanh(x: Array) -> Array:
    """The inverse of tanh: half of log((1 + x) / (1 - x)); NaN outside of -1 to 1."""
    x = as_floats(x, alone=True)
    return 0.5 * (log1p(x) - log1p(-x))


def _with_sign(size: Array, x: Array) -> Array:
    return where(x < 0, -size, size)


_GROUP = "Hyperbolic functions"
_ANY, _ABOVE, _BETWEEN = example("M N"), example("from 1: M N"), example("unit: M N")

ROWS = (
    Row(sinh, _GROUP, ("sinh",), torch=("sinh", "Tensor.sinh"), examples=(_ANY,), public=False),
    Row(cosh, _GROUP, ("cosh",), torch=("cosh", "Tensor.cosh"), examples=(_ANY,), public=False),
    Row(asinh, _GROUP, ("arcsinh", "asinh"), torch=(
        "asinh", "arcsinh", "Tensor.asinh", "Tensor.arcsinh"), examples=(_ANY,), public=False),
    Row(acosh, _GROUP, ("arccosh", "acosh"), torch=(
        "acosh", "arccosh", "Tensor.acosh", "Tensor.arccosh"), examples=(_ABOVE,), public=False),
    Row(atanh, _GROUP, ("arctanh", "atanh"), torch=(
        "atanh", "arctanh", "Tensor.atanh", "Tensor.arctanh"), examples=(_BETWEEN,),
        public=False),
)  # fmt: skip
