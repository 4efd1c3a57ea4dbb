"""Decompositions of array operations: ``ARRAY_OPS`` holds one short function per operation.

The decompositions are the paper's (Table 2 and its appendices). Hand-written normalizations become
the same as the built-in ones: subtracting a vector from a block is a shift by its negation, and
dividing a block by a vector is a scaling by its reciprocal.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from blockbuster.frontend.filled_outputs import ends
from blockbuster.frontend.kinds import FLOAT, INDEX, MASK, POSITION, dtype_of_kind
from blockbuster.frontend.means import sum_behind
from blockbuster.frontend.moves import Flip
from blockbuster.frontend.powers import POWERS
from blockbuster.frontend.primitive_program import Primitives
from blockbuster.frontend.primitives import Apply, Count, Ref, Round, Source
from blockbuster.frontend.program import ArrayProgram, Equation
from blockbuster.frontend.source import Refused, trace_error
from blockbuster.frontend.strips import Cut, Windows
from blockbuster.frontend.views import ViewRecorder
from blockbuster.ir.dtypes import INTEGERS, TRUTH
from blockbuster.ir.expr import (
    FUNCTIONS,
    PREDICATES,
    Arg,
    Call,
    Const,
    Expr,
    Size,
    call,
    substitute,
)
from blockbuster.ir.graph import Value
from blockbuster.ir.lengths import ONE, whole

Term = Ref | Expr | None
"""An operand of an equation being taken apart: an array, a scalar, or left out."""

WIDER = ("neg", "whole")
"""Functions whose integers are computed in a wider dtype than the one they have."""

LARGE = 2.0**24
"""From here on float32 does not hold each whole number."""

LARGEST = 2.0**53
"""From here on float64 does not, so that no text compares integers with such a number."""

Decomposition = Callable[[ViewRecorder, Equation, tuple[Term, ...]], Ref]


def decompose(program: ArrayProgram) -> Primitives:
    """The primitive program of an array program."""
    lengths = {rule.dim: rule.length for rule in program.definitions}
    recorder = ViewRecorder((*program.dims, *program.taken), lengths, program.sizes)
    made: dict[Value, Ref] = {
        Value(-1, port): recorder.source(given.name, given.shape, dtype_of_kind(given.kind))
        for port, given in enumerate(program.inputs)
    }

    def held(value: Value) -> Ref:
        return _held(recorder, made[value], program.kind_of(value))

    def term(equation: Equation, at: int) -> Term:
        operand = equation.operands[at]
        if not isinstance(operand, Value):
            return _whole_scalar(program, equation, operand)
        if equation.op in ("custom", "concat"):
            return held(operand)
        whole = _grows(equation, at, program.kind_of(operand))
        return recorder.unary("whole", made[operand], hint="n") if whole else made[operand]

    for position, equation in enumerate(program.equations):
        recorder.where, start = equation.where, len(recorder.primitives)
        try:
            terms = tuple(term(equation, at) for at in range(len(equation.operands)))
            result = ARRAY_OPS[equation.op](recorder, equation, terms)
        except Refused as refused:
            reason = f"{equation.op}: {refused.reason}"
            raise trace_error(reason, hint=refused.hint, where=equation.where) from None
        if equation.hint and result.value >= start:  # the user's word names what the op computes
            made_last = recorder.primitives[result.value]
            recorder.primitives[result.value] = replace(made_last, hint=equation.hint)
        recorder.stored |= {result.value} if equation.is_stored else set()
        units = (None,) * (len(equation.shape) - len(result.axes))  # of a constant array
        made[Value(position)] = Ref(result.value, (*units, *result.axes))
    outputs = tuple(
        (output.name, value, strips)
        for output in program.outputs
        for value, strips in ends(recorder, held(output.value))
    )
    lengths = {dim: recorder.length(dim) for dim in recorder.lengths}
    notes = tuple(dict.fromkeys(recorder.notes))
    asked = tuple(rule for rule in program.rules if rule.because or not rule.exact)
    return Primitives(tuple(recorder.primitives), outputs, notes, lengths, program.sizes, asked)


def _held(recorder: ViewRecorder, ref: Ref, kind: str) -> Ref:
    """A value as it is stored: integers in their own dtype, whatever computes them."""
    dtype = dtype_of_kind(kind)
    whole = dtype in INTEGERS and recorder.own_dtype(ref) != dtype
    return recorder.round(ref, dtype) if whole else ref


def _grows(equation: Equation, at: int, kind: str) -> bool:
    """True for an index or a mask of which arithmetic makes integers that may be large."""
    number = equation.op in (*FUNCTIONS, "matmul") and not (equation.op == "where" and at == 0)
    return number and equation.kind in INTEGERS and kind in (INDEX, MASK)


def _whole_scalar(program: ArrayProgram, equation: Equation, operand: Expr | None) -> Expr | None:
    """A number or size beside integers: an integer where float32 might not hold it."""
    if operand is None or equation.op not in FUNCTIONS:
        return operand
    if isinstance(operand, Const):
        least = LARGEST if equation.op in PREDICATES else LARGE
        is_large = program.is_integer(equation, operand.value) and abs(operand.value) >= least
        return call("whole", operand) if is_large else operand
    return call("whole", operand) if equation.kind in INTEGERS else operand


def _ref(term: Term) -> Ref:
    assert isinstance(term, Ref), term
    return term


def _scalar_function(recorder: ViewRecorder, equation: Equation, terms: tuple[Term, ...]) -> Ref:
    """Numbers and sizes become part of the expression, arrays its arguments.

    Narrow integers wrap: they are subtracted as they are, and others are cast back.
    """
    refs = [t for t in terms if isinstance(t, Ref)]
    fn = equation.op
    inverts = fn in _INVERSES and equation.kind not in INTEGERS and len(refs) == 2
    if inverts and _is_vector_of(recorder, refs[0], refs[1]):
        inverse, partner = _INVERSES[fn]
        return recorder.binary(partner, refs[0], recorder.unary(inverse, refs[1], hint="r"))
    power = POWERS.get(terms[1]) if fn == "pow" else None
    if power is not None and refs:
        return recorder.apply(power, refs[0], hint=_HINTS.get(power.fn, "y"))
    positions = iter(range(len(refs)))
    args = [Arg(next(positions)) if isinstance(t, Ref) else t for t in terms]
    expr = Call(fn, tuple(a for a in args if a is not None))
    made = recorder.apply(expr, *refs, hint=_HINTS.get(fn, "y"))
    is_wider = fn in WIDER or any(isinstance(t, Call) and t.fn == "whole" for t in terms)
    return _wrapped(recorder, equation, made) if is_wider else made


def _wrapped(recorder: ViewRecorder, equation: Equation, made: Ref) -> Ref:
    """Integers that were computed in a wider dtype, in the dtype that the equation has."""
    narrow = equation.kind in INTEGERS and equation.kind != POSITION
    return recorder.round(made, equation.kind) if narrow else made


_INVERSES = {"sub": ("neg", "add"), "div": ("reciprocal", "mul")}
_HINTS = {"exp": "e", "reciprocal": "r", "rsqrt": "r", "neg": "c", "where": "s"}


def _is_vector_of(recorder: ViewRecorder, block: Ref, vector: Ref) -> bool:
    """True if ``vector`` varies along one of the last two axes only, and ``block`` along both."""
    full = recorder.shape(block)
    tail = (1, 1, *recorder.shape(vector))[-2:]
    fits = len(vector.axes) <= len(block.axes) and len(full) >= 2 and 1 not in full[-2:]
    return fits and tail.count(1) == 1


def _sum(recorder: ViewRecorder, equation: Equation, terms: tuple[Term, ...]) -> Ref:
    monoid = "+" if equation.op == "sum" else equation.op
    x = _ref(terms[0])
    if monoid == "+" and equation.kind in INTEGERS:
        x = recorder.unary("whole", x, hint="n")
    return recorder.fold(x, monoid, equation.param("axis"), keepdims=_keeps(equation))


SCANS = {"cumsum": "+", "cumprod": "prod", "cummax": "max", "cummin": "min"}
"""By operator, the monoid of which it is a scan."""


def _scan(recorder: ViewRecorder, equation: Equation, terms: tuple[Term, ...]) -> Ref:
    x, monoid = _ref(terms[0]), SCANS[equation.op]
    if monoid in ("+", "prod") and equation.kind in INTEGERS:
        x = recorder.unary("whole", x, hint="n")
    return recorder.scan(x, monoid, equation.param("axis") % len(equation.shape))


def _mean(recorder: ViewRecorder, equation: Equation, terms: tuple[Term, ...]) -> Ref:
    axis, x = equation.param("axis"), _ref(terms[0])
    x = recorder.unary("whole", x, hint="n") if recorder.own_dtype(x) == TRUTH else x
    x, mean = sum_behind(recorder, x)
    total = recorder.fold(x, "+", axis, keepdims=_keeps(equation))
    over_all = substitute(_over_all(recorder, terms[0], axis), [mean])
    return recorder.apply(over_all, total, hint="m")


def _keeps(equation: Equation) -> bool:
    return bool(equation.param("keepdims"))


def _over_all(recorder: ViewRecorder, term: Term, axis: int) -> Expr:
    """A sum over the number of elements along an axis.

    Times one over that number, all means would be off by the rounding of one quotient.
    """
    dim = recorder.shape(_ref(term))[axis]
    return call("div", Arg(0), Size(dim) if isinstance(dim, str) else Const(1.0))


def _softmax(recorder: ViewRecorder, equation: Equation, terms: tuple[Term, ...]) -> Ref:
    x, axis = _ref(terms[0]), equation.param("axis")
    if equation.param("safe"):
        x = recorder.binary("sub0", x, recorder.fold(x, "max", axis), hint="d")
    e = recorder.unary("exp", x, hint="e")
    total = recorder.fold(e, "+", axis)
    return recorder.binary("mul", e, recorder.unary("recip0", total, hint="r"), hint="y")


def _logsumexp(recorder: ViewRecorder, equation: Equation, terms: tuple[Term, ...]) -> Ref:
    e = recorder.unary("exp", _ref(terms[0]), hint="e")
    total = recorder.fold(e, "+", equation.param("axis"), keepdims=_keeps(equation))
    return recorder.unary("log", total, hint="z")


def _log_softmax(recorder: ViewRecorder, equation: Equation, terms: tuple[Term, ...]) -> Ref:
    """x less the logarithm of a sum, which is NaN where it is infinite, as inf - inf is."""
    x = _ref(terms[0])
    total = recorder.fold(recorder.unary("exp", x, hint="e"), "+", equation.param("axis"))
    total = recorder.apply(call("recip0", call("recip0", Arg(0))), total, hint="s")
    shift = recorder.unary("neg", recorder.unary("log", total, hint="z"), hint="c")
    return recorder.binary("add", x, shift, hint="y")


def _rms_norm(recorder: ViewRecorder, equation: Equation, terms: tuple[Term, ...]) -> Ref:
    x, weight = _ref(terms[0]), terms[1]
    total = recorder.fold(recorder.unary("square", x, hint="q"), "+", -1)
    mean = _over_all(recorder, x, -1)
    root = recorder.apply(call("rsqrt", call("add", mean, _eps(equation))), total, hint="r")
    y = x if weight is None else _combine(recorder, "mul", x, weight)
    return recorder.binary("mul", y, root, hint="y")


def _layer_norm(recorder: ViewRecorder, equation: Equation, terms: tuple[Term, ...]) -> Ref:
    """Sum and sum of squares of rows that cost nothing to read again, as in the paper.

    ``safe`` sums the squares around the mean, in a second loop (rules/centering.py). Rows that a
    product or a fold computes are summed around their mean as it is written here.
    """
    x, (gamma, beta) = _ref(terms[0]), terms[1:]
    mean = _over_all(recorder, x, -1)
    total = recorder.fold(x, "+", -1)
    shift = recorder.apply(call("neg", mean), total, hint="c")
    centered = recorder.binary("add", x, shift, hint="d")
    if _is_read_again(recorder, x):
        squares = recorder.fold(recorder.unary("square", x, hint="q"), "+", -1)
        variance = call("sub", mean, call("square", Arg(1)))
        clamped = call("add", call("maximum", variance, 0), _eps(equation))
        root = recorder.apply(call("rsqrt", clamped), squares, shift, hint="r")
    else:
        squares = recorder.fold(recorder.unary("square", centered, hint="q"), "+", -1)
        root = recorder.apply(call("rsqrt", call("add", mean, _eps(equation))), squares, hint="r")
    y = recorder.binary("mul", centered, root, hint="y")
    y = y if gamma is None else _combine(recorder, "mul", y, gamma)
    return y if beta is None else _combine(recorder, "add", y, beta)


def _is_read_again(recorder: ViewRecorder, ref: Ref) -> bool:
    """True if an array is made of inputs by scalar functions, and its last axis is one dim."""
    left = [ref.value]
    while left:
        primitive = recorder.primitives[left.pop()]
        if not isinstance(primitive.op, Source | Count | Apply | Round):
            return False
        left += [operand.value for operand in primitive.operands]
    return True


def _combine(recorder: ViewRecorder, fn: str, x: Ref, other: Term) -> Ref:
    """A scalar function of an array and an array or a scalar."""
    if isinstance(other, Ref):
        return recorder.binary(fn, x, other, hint="y")
    assert other is not None
    return recorder.apply(call(fn, Arg(0), other), x, hint="y")


def _eps(equation: Equation) -> Const:
    return Const(float(equation.param("eps")))


def _matmul(recorder: ViewRecorder, equation: Equation, terms: tuple[Term, ...]) -> Ref:
    a, b = _ref(terms[0]), _ref(terms[1])
    if equation.kind == FLOAT:
        return recorder.contract(a, b)
    return _wrapped(recorder, equation, _product_of_wholes(recorder, a, b))


def _product_of_wholes(recorder: ViewRecorder, a: Ref, b: Ref) -> Ref:
    """A product of matrices of integers as a sum: kernels' products round to floats."""
    rows, columns = [*range(len(a.axes))], [*range(len(b.axes))]
    left: list[int | None] = [*rows]
    right: list[int | None] = [*columns[:-2], *reversed(columns[-2:])]
    if len(columns) > 1:  # (..., m, 1, k) beside (..., 1, n, k)
        left.insert(len(left) - 1, None)
    if len(rows) > 1 and len(columns) > 1:
        right.insert(len(right) - 2, None)
    terms = recorder.binary("mul", a.view(left), b.view(right))
    return recorder.fold(terms, "+", -1, keepdims=False)


def _view(_recorder: ViewRecorder, equation: Equation, terms: tuple[Term, ...]) -> Ref:
    return _ref(terms[0]).view(equation.param("axes"))


def _slice(recorder: ViewRecorder, equation: Equation, terms: tuple[Term, ...]) -> Ref:
    axis = equation.param("axis")
    start, length = (recorder.normal(equation.param(name)) for name in ("start", "length"))
    piece = Cut(equation.shape[axis], start, length, equation.param("step", 1))
    return recorder.cut(_ref(terms[0]), axis, piece)


def _windows(recorder: ViewRecorder, equation: Equation, terms: tuple[Term, ...]) -> Ref:
    axis, rank = equation.param("axis"), len(equation.shape) - 1
    outer, inner = equation.shape[axis], equation.shape[-1]
    piece = Windows(
        outer, inner, recorder.length(outer), recorder.length(inner),
        equation.param("step"), equation.param("dilation"), whole(equation.param("before")),
        equation.param("padded"),
    )  # fmt: skip
    made = recorder.windows(_ref(terms[0]), axis, piece)
    return made.view((*range(1, axis + 1), 0, *range(axis + 2, rank + 1), axis + 1))


def _reshape(recorder: ViewRecorder, equation: Equation, terms: tuple[Term, ...]) -> Ref:
    """By the extents that were asked for: other operators may have tied sizes of axes since, or
    have told that an axis has one element.
    """
    asked = zip(equation.shape, equation.param("shape").extents, strict=True)
    extents = [
        ONE if recorder.length(axis) == ONE else recorder.normal(extent) for axis, extent in asked
    ]
    return recorder.reshape(_ref(terms[0]), equation.shape, extents)


def _concat(recorder: ViewRecorder, equation: Equation, terms: tuple[Term, ...]) -> Ref:
    axis = equation.param("axis") % len(equation.shape)
    refs = [_ref(term) for term in terms]
    if len(refs) == 1:
        return refs[0]
    if equation.shape[axis] == 1:
        return _only_element(recorder, refs, axis)
    return recorder.join(refs, axis, equation.shape[axis])


def _only_element(recorder: ViewRecorder, refs: Sequence[Ref], axis: int) -> Ref:
    """Join arrays that have one element along an axis together; the others are empty.

    Only sizes tell which of them has the element, so it is the maximum over all.
    """
    masks = [recorder.own_dtype(ref) == TRUTH for ref in refs]
    numbers = [
        recorder.apply(call("where", Arg(0), 1, 0), ref) if is_mask else ref
        for ref, is_mask in zip(refs, masks, strict=True)
    ]
    largest = [recorder.fold(ref, "max", axis, keepdims=True) for ref in numbers]
    made = functools.reduce(lambda a, b: recorder.binary("maximum", a, b), largest)
    return recorder.apply(call("ne", Arg(0), 0), made) if all(masks) else made


def _cast(recorder: ViewRecorder, equation: Equation, terms: tuple[Term, ...]) -> Ref:
    return recorder.round(_ref(terms[0]), equation.param("dtype"))


def _arange(recorder: ViewRecorder, equation: Equation, _terms: tuple[Term, ...]) -> Ref:
    return recorder.count(equation.shape[0])


def _custom(recorder: ViewRecorder, equation: Equation, terms: tuple[Term, ...]) -> Ref:
    name, fn = equation.param("name"), equation.param("fn")
    if isinstance(fn, Flip) and (made := recorder.turned(_ref(terms[0]), fn.axes)):
        return made
    return recorder.opaque(name, fn, [_ref(t) for t in terms], equation.shape)


ARRAY_OPS: Mapping[str, Decomposition] = {
    **dict.fromkeys(FUNCTIONS, _scalar_function),
    **dict.fromkeys(("sum", "prod", "max", "min"), _sum),
    **dict.fromkeys(SCANS, _scan),
    "mean": _mean, "softmax": _softmax, "logsumexp": _logsumexp, "log_softmax": _log_softmax,
    "rms_norm": _rms_norm, "layer_norm": _layer_norm,
    "matmul": _matmul, "transpose": _view, "expand": _view, "cast": _cast, "arange": _arange,
    "custom": _custom,
    "slice": _slice, "strided": _slice, "windows": _windows, "concat": _concat,
    "reshape": _reshape,
}  # fmt: skip
