"""The cost of a scalar function on a processor: operations, special functions, instructions.

The tables state what the texts of ``emit/print/triton/functions.py`` compile to for NVIDIA GPUs.
Parts of an expression that read no element (powers of a size, products of constants) are computed
once and cost nothing.
"""

from __future__ import annotations

import math
from collections.abc import Container
from dataclasses import dataclass
from functools import lru_cache

from blockbuster.ir.expr import Arg, Call, Const, Expr, arguments, substitute

SPECIAL: dict[str, int] = {
    "exp": 1, "sqrt": 1, "rsqrt": 1, "div": 1, "reciprocal": 1, "recip0": 1, "pow": 1,
    "tanh": 2, "sigmoid": 2, "silu": 2, "gelu": 1, "erf": 1,
    "expm1": 1, "atan": 1,
}  # fmt: skip
"""Operations of special-function units: ex2, rcp, rsq. Logarithms are polynomials."""

INSTRUCTIONS: dict[str, int] = {
    "exp": 5, "log": 26, "sqrt": 2, "rsqrt": 2, "div": 9, "reciprocal": 9, "recip0": 10, "pow": 33,
    "tanh": 12, "sigmoid": 9, "silu": 10, "gelu": 13, "erf": 29, "sub0": 4,
    "floordiv": 8, "mod": 8, "shl": 5, "shr": 5,
    "round": 12, "sin": 45, "cos": 45, "log1p": 24, "expm1": 14, "atan": 29,
}  # fmt: skip
"""Instructions of a lane, those of special units included, of functions that take more than one:
what an element more takes in machine code of sm_90 (``python -m bench.costs.functions``).
Sines are those of small angles: large ones take another path, which branches.
"""

ACCURATE: dict[str, int] = {"tanh": 35, "sigmoid": 26, "silu": 26, "gelu": 31}
"""The same where results are float32, whose quotients are exact: counted by hand in machine code of
sm_90 without the branches that such a quotient takes for very large and very small numbers.
"""
_OF_FLOAT32 = {**INSTRUCTIONS, **ACCURATE}


@dataclass(frozen=True)
class Scalar:
    """The cost of one element: ``calls`` of functions, ``special`` ones, and ``instructions``."""

    calls: int = 0
    special: int = 0
    instructions: int = 0

    def __add__(self, other: Scalar) -> Scalar:
        return Scalar(
            self.calls + other.calls,
            self.special + other.special,
            self.instructions + other.instructions,
        )


def scalar(expr: Expr, made: Container[Expr] = (), *, accurate: bool = False) -> Scalar:
    """The cost of one evaluation of ``expr``, its parts that are ``made`` already apart.

    ``accurate``: its results are float32.

    >>> from blockbuster.ir.expr import Arg, Size, call
    >>> scalar(call("exp", call("mul", Arg(0), call("pow", Size("D"), -0.5))))
    Scalar(calls=2, special=1, instructions=6)
    """
    instructions = _OF_FLOAT32 if accurate else INSTRUCTIONS
    found, stack = Scalar(), [expr]
    while stack:
        top = stack.pop()
        if top in made:
            continue
        if isinstance(top, Call) and top.fn == "pow" and top.args[0] == Const(2.0):
            found += Scalar(1, 1, 1)  # ex2
            stack.extend(top.args)
        elif isinstance(top, Call) and _shifts(top):
            found += Scalar(1, 0, 1)
            stack.extend(top.args)
        elif isinstance(top, Call) and arguments(top):
            found += Scalar(1, SPECIAL.get(top.fn, 0), instructions.get(top.fn, 1))
            stack.extend(top.args)
    return found


def _shifts(expr: Call) -> bool:
    """True for a shift by a known number of bits, and division by a power of two, which is one."""
    match expr:
        case Call("shl" | "shr", (_, Const())):
            return True
        case Call("floordiv" | "mod", (_, Const(by))):
            return by > 1 and math.frexp(by)[0] == 0.5
    return False


@lru_cache(maxsize=1024)  # the same statements are in all schedules of a program
def alone(expr: Expr, accurate: bool) -> Scalar:
    """The same with nothing made before."""
    return scalar(expr, accurate=accurate)


@lru_cache(maxsize=1024)
def of_numbered(expr: Expr, numbers: tuple[int, ...]) -> Expr:
    """``expr`` of operands with other numbers, by which they are known in a whole nest."""
    return substitute(expr, [Arg(number) for number in numbers])
