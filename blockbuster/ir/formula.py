"""Integer formulas compiled to Python functions, because every new size evaluates them.

Evaluating a list of terms one by one takes microseconds each time; a compiled function takes a
fraction. Texts of formulas hold integers and generated letters only, no name that a user gave.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import CodeType, FunctionType
from typing import Any


def function_of(text: str, what: str) -> Callable[..., Any]:
    """The function that ``text``, a lambda expression, is; ``what`` names it in tracebacks.

    It reads nothing but its arguments.

    >>> function_of("lambda a, b: a * b + 1", "a formula")(3, 4)
    13
    """
    constants = compile(text, f"<{what}>", "eval").co_consts
    (code,) = [constant for constant in constants if isinstance(constant, CodeType)]
    return FunctionType(code, {})


def sum_of(terms: Sequence[str]) -> str:
    """The sum of ``terms``, in parentheses. Python reads a long chain of additions as deep as it is
    long, and refuses thousands; so halves are added.

    >>> sum_of(["a", "b", "c * d"])
    '(a + (b + c * d))'
    """
    if len(terms) < 2:
        return terms[0] if terms else "0"
    half = len(terms) // 2
    return f"({sum_of(terms[:half])} + {sum_of(terms[half:])})"


def product_of(times: int, factors: Sequence[str]) -> str:
    """A whole multiple of a product.

    >>> product_of(1, ["a", "b"]), product_of(-2, ["a"]), product_of(1, [])
    ('a * b', '-2 * a', '1')
    """
    return " * ".join(factors if times == 1 and factors else [f"{times:d}", *factors])
