"""Functions that are written by hand, recorded as the functions that they are.

    1 / (1 + exp(-x)), x / (1 + exp(-x))          sigmoid(x), silu(x)
    x * sigmoid(x)                                silu(x)
    0.5 * x * (1 + erf(x / sqrt(2)))              gelu(x)
    tanh(log(1 + exp(x))), tanh(softplus(x))      t / (2 - t) with t = s (2 - s), s = sigmoid(x)
    x[:, 0::2] + x[:, 1::2]                       x.reshape(m, n // 2, 2).sum(2)

Kernels compute the functions with fewer operations, and read an array once instead of each of its
strided pieces. A softmax by hand stays as it is typed: derivations and proofs start from it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import permutations, product
from typing import TYPE_CHECKING, Any

from blockbuster.frontend.array import TracedArray, apply, array_at, reduce_axes
from blockbuster.frontend.contractions import equation_of
from blockbuster.frontend.kinds import FLOAT
from blockbuster.frontend.program import Operand
from blockbuster.frontend.shapes import broadcast
from blockbuster.frontend.sizes import scalar
from blockbuster.ir.expr import Const
from blockbuster.ir.graph import Value
from blockbuster.ir.lengths import whole

if TYPE_CHECKING:
    from blockbuster.frontend.trace import Trace

ZERO, ONE = Const(0.0), Const(1.0)
FOLDED = {"add": "sum", "maximum": "max", "minimum": "min"}
"""The fold of several elements by an operator."""
BY_HAND = ("div", "mul", "tanh", *FOLDED)
"""The operators at which functions that are written by hand end."""
LINEAR = 15.0
"""From here on x is its softplus up to 4e-7, and the tanh of both is 1 up to 1e-12."""
X, LARGE, ROOT, HALF_ROOT = "x", "large", "root", "half root"
"""In a form: any array, the same one wherever it stands; any number from ``LINEAR`` on; the root of
2, and that of 1/2, as people write them.
"""
ROOTS = {ROOT: 2**0.5, HALF_ROOT: 0.5**0.5}
TYPED = 1e-7
"""How far such a number may be from the root that it stands for, relative to it."""
Form = str | Const | tuple[Any, ...]
"""An operator with the forms of its operands, a number, ``X`` or another of these words."""
_LOGISTIC: Form = ("add", ONE, ("exp", ("neg", X)))
_SAFE: Form = ("add", ("maximum", X, ZERO), ("log1p", ("exp", ("neg", ("abs", X)))))
_SOFTPLUS: tuple[Form, ...] = (
    ("where", ("gt", X, LARGE), X, _SAFE), _SAFE, ("log1p", ("exp", X)),
    ("log", ("add", ONE, ("exp", X))),
)  # fmt: skip
_ERRORS: tuple[Form, ...] = (
    ("add", ONE, ("erf", ("div", X, ROOT))), ("add", ONE, ("erf", ("mul", X, HALF_ROOT))),
)  # fmt: skip
_COMMUTE = ("add", "maximum", "mul")
MOST_PIECES = 16
"""Terms of a chain that are looked at: a chain of thousands would be walked for each of them."""


def as_function(trace: Trace, op: str, operands: Sequence[Any]) -> TracedArray | None:
    """An operation on floats as the function that it computes; None for others."""
    if op in FOLDED:
        return _of_all_pieces(trace, op, operands)
    if op == "tanh":
        operand = operands[0].value
        found = next((x for form in _SOFTPLUS for x in _arrays_for_x(trace, operand, form)), None)
        return None if found is None else tanh_of_softplus(array_at(trace, found))
    first, second = operands
    if op == "mul":
        for x, other in ((first, second), (second, first)):
            equation = equation_of(other)
            if equation is not None and equation.op == "sigmoid" and _is(x, equation.operands[0]):
                return trace.record("silu", (x,))
        return _gelu(trace, operands)
    if scalar(second) == Const(2.0):
        return _gelu(trace, (first, 0.5))
    if not isinstance(second, TracedArray) or second.kind != FLOAT:
        return None
    x = next(_arrays_for_x(trace, second.value, _LOGISTIC), None)
    if x is not None and scalar(first) == ONE:
        return trace.record("sigmoid", (array_at(trace, x),))
    if x is not None and _is(first, x):
        return trace.record("silu", (first,))
    return None


def tanh_of_softplus(x: Any) -> Any:
    """tanh(log(1 + exp(x))), which keeps its digits near 0 too.

    With s for sigmoid(x), exp(-softplus(x)) is r = 1 - s, so the tanh is 1 - r^2 = s + s r over
    1 + r^2. As s (2 - s) over 2 - s (2 - s), it would have half more rounding where x is large.
    """
    s = apply("sigmoid", x)
    r = 1.0 - s
    return (s + s * r) / (1.0 + r * r)


def _gelu(trace: Trace, operands: Sequence[Any]) -> TracedArray | None:
    """The product of an array, 1/2 and 1 + erf of the array over the root of 2, in any order."""
    terms = _terms("mul", operands)
    arrays = [term for term in terms if isinstance(term, TracedArray) and term.kind == FLOAT]
    others = [term for term in terms if not isinstance(term, TracedArray)]
    numbers = [term if isinstance(term, Const) else scalar(term) for term in others]
    if len(arrays) != 2 or len(terms) != 3 or numbers != [Const(0.5)]:
        return None
    for x, other in permutations(arrays):
        if any(x.value in _arrays_for_x(trace, other.value, form) for form in _ERRORS):
            return trace.record("gelu", (x,))
    return None


def _of_all_pieces(trace: Trace, op: str, operands: Sequence[Any]) -> TracedArray | None:
    """A chain of one operator over all pieces x[i::k], as the fold of x in groups of k."""
    terms = _terms(op, operands)
    made_by = [equation_of(term) for term in terms]
    pieces = [p for p in made_by if p is not None and p.op == "strided" and p.kind == FLOAT]
    if not pieces or len(pieces) < len(terms):
        return None
    (base,), step, axis = (pieces[0].operands, *map(pieces[0].param, ("step", "axis")))
    starts = [p.param("start") for p in pieces if p.operands == (base,)
              and (p.param("step"), p.param("axis")) == (step, axis)]  # fmt: skip
    is_whole = len(starts) == len(pieces) == step and all(whole(n) in starts for n in range(step))
    if not is_whole or not isinstance(base, Value):
        return None
    broadcast(trace.dims, [term.axes for term in terms])  # which says that they have one length
    x = array_at(trace, base)
    above = equation_of(x)
    if above is not None and above.op == "strided":  # some of the pieces of a window of two axes
        return None
    if trace.dims.length(terms[0].axes[axis]) * whole(step) != trace.dims.length(x.axes[axis]):
        return None
    groups = x.reshape((*x.shape[:axis], x.shape[axis] // step, step, *x.shape[axis + 1 :]))
    made: TracedArray = reduce_axes(FOLDED[op], groups, (axis + 1,), False)
    return made


def _terms(op: str, operands: Sequence[Any]) -> list[Any]:
    """The operands of a chain of one operator, in any order; 0 adds nothing. Empty for more than
    ``MOST_PIECES``.
    """
    found: list[Any] = []
    left = [*operands]
    while left and len(found) <= MOST_PIECES:
        term = left.pop()
        equation = equation_of(term)
        if equation is not None and equation.op == op:
            parts = equation.operands
            left += [array_at(term.trace, o) if isinstance(o, Value) else o for o in parts]
        elif op != "add" or isinstance(term, TracedArray) or ZERO not in (term, scalar(term)):
            found.append(term)
    return [] if left else found


def _is(x: Any, operand: Operand) -> bool:
    return isinstance(x, TracedArray) and x.kind == FLOAT and x.value == operand


def _arrays_for_x(trace: Trace, operand: Operand, form: Form) -> Iterator[Value | None]:
    """The array that stands for ``X`` where an operand has this form; None if the form has no X."""
    if form == X and isinstance(operand, Value):
        yield operand
    elif isinstance(operand, Const):
        value = operand.value
        is_root = isinstance(form, str) and abs(value / ROOTS.get(form, math.inf) - 1) < TYPED
        if operand == form or (form == LARGE and value >= LINEAR) or is_root:
            yield None
    elif isinstance(form, tuple):
        made = equation_of(array_at(trace, operand)) if isinstance(operand, Value) else None
        if made is not None and made.op == form[0]:
            for parts in permutations(form[1:]) if made.op in _COMMUTE else (form[1:],):
                pairs = zip(made.operands, parts, strict=True)
                for found in product(*(list(_arrays_for_x(trace, *pair)) for pair in pairs)):
                    if len(known := {x for x in found if x is not None}) == 1:
                        yield known.pop()
