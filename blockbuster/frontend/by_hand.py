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
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import permutations, product
from typing import TYPE_CHECKING, Any

from blockbuster.frontend.array import TracedArray, apply, array_at, reduce_axes
from blockbuster.frontend.contractions import equation_of
from blockbuster.frontend.kinds import FLOAT
from blockbuster.frontend.limits import PIECES_OF_A_CHAIN
from blockbuster.frontend.operation import Operation
from blockbuster.frontend.program import Equation, Operand
from blockbuster.frontend.shapes import broadcast
from blockbuster.frontend.sizes import scalar
from blockbuster.ir.expr import Const
from blockbuster.ir.graph import Value
from blockbuster.ir.lengths import whole

if TYPE_CHECKING:
    from blockbuster.frontend.trace import Trace

ZERO, HALF, ONE = Const(0.0), Const(0.5), Const(1.0)
FOLDED = {"add": "sum", "maximum": "max", "minimum": "min"}
"""The fold of several elements by an operator."""
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
"""An operator with the forms of its operands, a number, ``X`` or another of these words. Products
of three are chains of products, in any order.
"""


def tanh_of_softplus(x: Any) -> Any:
    """tanh(log(1 + exp(x))), which keeps its digits near 0 too.

    With s for sigmoid(x), exp(-softplus(x)) is r = 1 - s, so the tanh is 1 - r^2 = s + s r over
    1 + r^2. As s (2 - s) over 2 - s (2 - s), it would have half more rounding where x is large.
    """
    s = apply("sigmoid", x)
    r = 1.0 - s
    return (s + s * r) / (1.0 + r * r)


_LOGISTIC: Form = ("add", ONE, ("exp", ("neg", X)))
_SAFE: Form = ("add", ("maximum", X, ZERO), ("log1p", ("exp", ("neg", ("abs", X)))))
_SOFTPLUS: tuple[Form, ...] = (
    ("where", ("gt", X, LARGE), X, _SAFE), _SAFE, ("log1p", ("exp", X)),
    ("log", ("add", ONE, ("exp", X))),
)  # fmt: skip
_ERRORS: tuple[Form, ...] = (("erf", ("div", X, ROOT)), ("erf", ("mul", X, HALF_ROOT)))
FORMS: tuple[tuple[tuple[Any, ...], Callable[[TracedArray], TracedArray]], ...] = (
    (("div", ONE, _LOGISTIC), partial(apply, "sigmoid")),
    (("div", X, _LOGISTIC), partial(apply, "silu")),
    (("mul", X, ("sigmoid", X)), partial(apply, "silu")),
    *((("mul", HALF, X, ("add", ONE, error)), partial(apply, "gelu")) for error in _ERRORS),
    *((("tanh", softplus), tanh_of_softplus) for softplus in _SOFTPLUS),
)
"""The forms of functions, and what records each."""
BY_HAND = tuple(dict.fromkeys((*(form[0] for form, _ in FORMS), *FOLDED)))
"""The operators at which functions that are written by hand end."""
_COMMUTE = ("add", "maximum", "mul")

def as_function(asked: Operation) -> TracedArray | None:
    """An operation on floats as the function that it computes; None for others."""
    trace, op = asked.trace, asked.op
    operands = [_operand(x) for x in asked.operands]
    if op in FOLDED:
        return _of_all_pieces(trace, op, operands)
    if op == "div" and operands[1] == Const(2.0):
        op, operands = "mul", [operands[0], HALF]
    for form, function in FORMS:
        x = next(_arrays_in(trace, op, operands, form), None)
        if x is not None:
            return function(array_at(trace, x))
    return None


def _operand(x: Any) -> Operand:
    """An array of floats, or a number, as an operand of an equation; None for others."""
    if isinstance(x, TracedArray):
        return x.value if x.kind == FLOAT else None
    return scalar(x)


def _of_all_pieces(trace: Trace, op: str, operands: Sequence[Operand]) -> TracedArray | None:
    """A chain of one operator over all pieces x[i::k], as the fold of x in groups of k."""
    chain = _terms(trace, op, operands, PIECES_OF_A_CHAIN)
    terms = [term for term in chain if (op, term) != ("add", ZERO)]
    made_by = [_equation(trace, term) for term in terms]
    pieces = [p for p in made_by if p is not None and p.op == "strided" and p.kind == FLOAT]
    if not pieces or len(pieces) < len(terms):
        return None
    (base,), step, axis = (pieces[0].operands, *map(pieces[0].param, ("step", "axis")))
    starts = [p.param("start") for p in pieces if p.operands == (base,)
              and (p.param("step"), p.param("axis")) == (step, axis)]  # fmt: skip
    is_whole = len(starts) == len(pieces) == step and all(whole(n) in starts for n in range(step))
    if not is_whole or not isinstance(base, Value):
        return None
    broadcast(trace.dims, [p.shape for p in pieces])  # which says that they have one length
    x = array_at(trace, base)
    above = equation_of(x)
    if above is not None and above.op == "strided":  # some of the pieces of a window of two axes
        return None
    if trace.dims.length(pieces[0].shape[axis]) * whole(step) != trace.dims.length(x.axes[axis]):
        return None
    groups = x.reshape((*x.shape[:axis], x.shape[axis] // step, step, *x.shape[axis + 1 :]))
    made: TracedArray = reduce_axes(FOLDED[op], groups, (axis + 1,), False)
    return made


def _terms(trace: Trace, op: str, operands: Sequence[Operand], most: int) -> list[Operand]:
    """The operands of a chain of one operator, in any order. Empty for more than ``most``."""
    found, left = list[Operand](), [*operands]
    while left and len(found) <= most:
        term = left.pop()
        made = _equation(trace, term)
        if made is not None and made.op == op:
            left += made.operands
        else:
            found.append(term)
    return [] if left else found


def _equation(trace: Trace, operand: Operand) -> Equation | None:
    return equation_of(array_at(trace, operand)) if isinstance(operand, Value) else None


def _arrays_in(
    trace: Trace, op: str, operands: Sequence[Operand], form: Form
) -> Iterator[Value | None]:
    """The array that stands for ``X`` where an operation has this form; None if it has no X."""
    if not isinstance(form, tuple) or form[0] != op:
        return
    parts = form[1:]
    if len(parts) > len(operands):
        operands = _terms(trace, op, operands, len(parts))
        kinds = [array_at(trace, x).kind for x in operands if isinstance(x, Value)]
        if len(operands) != len(parts) or {*kinds} != {FLOAT}:
            return
    for order in permutations(parts) if op in _COMMUTE else (parts,):
        pairs = zip(operands, order, strict=True)
        for found in product(*(list(_arrays_for_x(trace, *pair)) for pair in pairs)):
            if len(known := {x for x in found if x is not None}) == 1:
                yield known.pop()


def _arrays_for_x(trace: Trace, operand: Operand, form: Form) -> Iterator[Value | None]:
    """The same of an operand."""
    if form == X and isinstance(operand, Value):
        yield operand
    elif isinstance(operand, Const):
        value = operand.value
        is_root = isinstance(form, str) and abs(value / ROOTS.get(form, math.inf) - 1) < TYPED
        if operand == form or (form == LARGE and value >= LINEAR) or is_root:
            yield None
    elif (made := _equation(trace, operand)) is not None:
        yield from _arrays_in(trace, made.op, made.operands, form)
