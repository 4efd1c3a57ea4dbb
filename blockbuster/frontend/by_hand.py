"""Functions that are written by hand, recorded as the functions that they are.

    1 / (1 + exp(-x)), x / (1 + exp(-x))          sigmoid(x), silu(x)
    x * sigmoid(x)                                silu(x)

Kernels compute the functions with fewer operations. A softmax by hand stays as it is typed: it is
what derivations and proofs start from.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from blockbuster.frontend.array import TracedArray, array_at
from blockbuster.frontend.contractions import equation_of
from blockbuster.frontend.kinds import FLOAT
from blockbuster.frontend.program import Equation, Operand
from blockbuster.frontend.sizes import scalar
from blockbuster.ir.expr import Const
from blockbuster.ir.graph import Value

if TYPE_CHECKING:
    from blockbuster.frontend.trace import Trace

ONE = Const(1.0)


def as_function(trace: Trace, op: str, operands: Sequence[Any]) -> TracedArray | None:
    """A quotient or a product of floats as the function that it computes; None for others."""
    first, second = operands
    if op == "mul":
        for x, other in ((first, second), (second, first)):
            equation = equation_of(other)
            if equation is not None and equation.op == "sigmoid" and _is(x, equation.operands[0]):
                return trace.record("silu", (x,))
        return None
    if not isinstance(second, TracedArray) or second.kind != FLOAT:
        return None
    x = _of_logistic(second)
    if x is not None and scalar(first) == ONE:
        return trace.record("sigmoid", (array_at(trace, x),))
    if x is not None and _is(first, x):
        return trace.record("silu", (first,))
    return None


def _is(x: Any, operand: Operand) -> bool:
    return isinstance(x, TracedArray) and x.kind == FLOAT and x.value == operand


def _of_logistic(divisor: TracedArray) -> Value | None:
    """The x of a divisor 1 + exp(-x)."""
    total = equation_of(divisor)
    if total is None or total.op != "add" or ONE not in total.operands:
        return None
    (power,) = (_made_by(divisor, operand) for operand in total.operands if operand != ONE)
    negated = _made_by(divisor, power.operands[0]) if power and power.op == "exp" else None
    x = negated.operands[0] if negated and negated.op == "neg" else None
    return x if isinstance(x, Value) else None


def _made_by(x: TracedArray, operand: Operand) -> Equation | None:
    """The equation of the trace of ``x`` that makes an operand."""
    return equation_of(array_at(x.trace, operand)) if isinstance(operand, Value) else None
