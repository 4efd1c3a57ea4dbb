"""The table of laws: which functions of a value commute with which folds.

A function f_s, where s is the same in every iteration, commutes with a fold if

    fold_i f_s(x_i) = f_s(fold_i x_i)

A law has three uses. *Move out*: what all iterations share is applied after the fold
(``factor_out.py``; ``passes`` says through which functions it comes that far). *Repair*: a
fold runs in the loop of the reduction that s comes from; when that one goes from r to r', the
partial result t becomes h(t, r, r') = f_s'(f_s^-1(t)). *Combine*: two partial results, each with a
reduction of its own, are taken to the common one by the same h, and folded.

``repaired`` gives h for a function g(r, c) of which ``separate.py`` says that it is f_s(x), with an
s of the producers r and an x of the elements c. It takes microseconds. ``repair.py`` asks here
first, and solves for the functions that do not come apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Literal

from blockbuster.ir.expr import Arg, Call, Const, Expr, arguments, call, rewrite
from blockbuster.ir.ops import IDENTITY
from blockbuster.rules.separate import (
    ANY,
    POSITIVE,
    ZERO,
    Factor,
    NotSeparableError,
    Separation,
    Signs,
    product_of_signs,
    signs_of,
)


@dataclass(frozen=True)
class Law:
    """A row: ``function`` of x, argument 0, and s, argument 1, commutes with folds by ``monoids``.

    Argument 2 is the neutral element of the fold.
    ``takes`` says how s is found: as a "factor" of x, as a "shift" of it, or as the "choice" of x.
    ``signs`` are those that s may have.
    With ``turns``, the fold of x is by the other one of max and min.
    ``leaves`` names what the fold leaves beside f_s(fold x); such a law repairs nothing.
    ``passes`` are the functions of a body that s passes on its way to the fold, beside arithmetic.
    ``anywhere``: its h is right for all producers, also infinite ones, and if nothing is folded.
    If s moves out of a fold of floats, it is one of ``made_by``, or its reciprocal is: any, if that
    is empty. ``exponential``: s is the exponential of what is added to exponents.
    """

    name: str
    function: Expr
    takes: Literal["factor", "shift", "choice"]
    monoids: tuple[str, ...]
    signs: str = ANY
    turns: bool = False
    leaves: str = ""
    passes: tuple[str, ...] = ()
    anywhere: bool = False
    made_by: tuple[str, ...] = ()
    exponential: bool = False


_T: Expr = Arg(0)
_SCALED, _SHIFTED = call("mul", Arg(1), Arg(0)), call("add", Arg(0), Arg(1))

_LINEAR = ("row_sum", "dot")

SCALES = (
    Law("scale", _SCALED, "factor", ("+",), passes=_LINEAR),
    Law(
        "scale, s >= 0", _SCALED, "factor", ("max", "min"), "0+", passes=("row_max", "row_min"),
        made_by=("exp", "recip0", "reciprocal"),
    ),
    Law("scale, s <= 0", _SCALED, "factor", ("max", "min"), signs="-0", turns=True),
)  # fmt: skip
"""Proofs do not decide the signs of other products that may be positive, too."""

AT_EXTREMA = (
    Law("choice", call("where", Arg(1), _T, Arg(2)), "choice", ("+", "max", "min"), anywhere=True),
)
"""s says whether an extremum that x waits for is the final one."""

LAWS = (
    *SCALES,
    Law("shift", _SHIFTED, "shift", ("max", "min")),
    Law("shift of a sum", _SHIFTED, "shift", ("+",), leaves="s times the number of elements"),
    *AT_EXTREMA,
)
"""What repairs and combines. The tests prove each row, and refute it without its condition."""

MOVES = (
    *SCALES[:2],
    Law(
        "size of a scale", call("mul", call("abs", Arg(1)), Arg(0)), "factor", ("max",),
        passes=("abs", "row_max"), made_by=("sqrt", "rsqrt"),
    ),
)  # fmt: skip
"""What moves out of folds, in the order in which it is tried. Values without a root as their factor
are in the range of floats, too: it has half their exponents."""

EXPONENTIALS = (
    Law(
        "exponential of a shift", call("mul", call("exp", Arg(1)), Arg(0)), "factor", ("+",),
        passes=_LINEAR, exponential=True,
    ),
)  # fmt: skip
"""What moves out of sums when nothing else does: it undoes exponentials for their factor, which may
be what keeps another factor in range."""


@dataclass(frozen=True)
class Repaired:
    """What the table knows: by ``law``, t becomes ``h``.

    ``h`` reads t as argument 0, then the producers, then their new values, then parameters, each
    in the order in which they were given. It divides by each of ``divisors``.
    """

    law: Law
    h: Expr
    divisors: tuple[Expr, ...]


@dataclass(frozen=True)
class Unrepaired:
    """Why the table gives no h. ``certain``: no h exists, whatever may be solved for."""

    reason: str
    certain: bool = False


@dataclass(frozen=True)
class Question:
    """A fold of ``g`` by ``monoid``: argument numbers of ``producers``, ``elements``, the rest.

    ``extrema`` are the producers that are maxima or minima, and of which elements they are.
    """

    g: Expr
    producers: tuple[int, ...]
    elements: tuple[int, ...]
    monoid: str
    signs: Signs
    extrema: Mapping[int, Expr] = field(default_factory=dict)

    @property
    def parameters(self) -> tuple[int, ...]:
        """The arguments that are the same throughout, and no producers."""
        held = {*self.producers, *self.elements}
        return tuple(sorted(index for index in arguments(self.g) if index not in held))


def repaired(question: Question, laws: Sequence[Law] = LAWS) -> Repaired | Unrepaired:
    """The repair function of a fold by the first of ``laws`` that gives one, or why none does."""
    separation = Separation(
        frozenset(question.producers), frozenset(question.elements), question.signs
    )
    reasons: list[Unrepaired] = []
    ways = {"factor": _by_factor, "shift": _by_shift, "choice": _by_choice}
    for law in laws:
        if question.monoid in law.monoids:
            ask = ways[law.takes]
            try:
                found = ask(question, law, separation)
            except NotSeparableError as reason:
                found = Unrepaired(f"it {reason}")
            if isinstance(found, Repaired):
                return found
            reasons.append(found)
    return next((each for each in reasons if each.certain), reasons[0])


def _by_factor(question: Question, law: Law, separation: Separation) -> Repaired | Unrepaired:
    factor = separation.factor(question.g)
    if not {*signs_of_factor(factor, question.signs)} <= {*law.signs}:
        return Unrepaired("its factor may have another sign when the producers have changed")
    powers = [_ratio(question, base, power) for base, power in factor.powers.items()]
    change = _change(question, factor.exponent)
    scales: list[Expr] = [*powers, *([call("exp", change)] if change is not None else [])]
    divisors = tuple(
        _renamed(question, base, new=power < 0)
        for base, power in factor.powers.items()
        if ZERO in signs_of(base, question.signs)
    )
    h = reduce(lambda product, each: call("mul", product, each), scales, _T)
    return Repaired(law, h, divisors)


def _by_shift(question: Question, law: Law, separation: Separation) -> Repaired | Unrepaired:
    change = _change(question, separation.shift(question.g))
    if law.leaves and change is not None:
        return Unrepaired(f"a changed shift s leaves {law.leaves}, which h is not given", True)
    return Repaired(law, _T if change is None else call("add", _T, change), ())


def _by_choice(question: Question, law: Law, _: Separation) -> Repaired | Unrepaired:
    """An element is x where it is the extremum, and NaN may count as that; else it is neutral.

    No element so far was at the new extremum, unless that is the old one.
    """
    neutral, (lead, *more) = Const(IDENTITY[question.monoid]), question.producers
    of, r = question.extrema.get(lead), Arg(lead)
    if more:
        return Unrepaired("it waits for more than one extremum")
    if of is None:
        return Unrepaired("it waits for what is no extremum")
    match question.g:
        case Call("where", (test, _, other)) if other == neutral:
            alike, missing = [call("eq", of, r), call("eq", r, of)], call("ne", of, of)
            either = [call("or", *p) for e in alike for p in ((e, missing), (missing, e))]
            chosen: Expr = call("eq", Arg(1), Arg(2))
            if test in either:
                chosen = call("or", chosen, call("ne", Arg(1), Arg(1)))
            elif test not in alike:
                return Unrepaired("it compares what the extremum is not of")
            return Repaired(law, call("where", chosen, _T, neutral), ())
    return Unrepaired(f"it is not {neutral.value:g} where it is not at the extremum")


def signs_of_factor(factor: Factor, signs: Signs) -> str:
    """The signs that a factor may have."""
    found = POSITIVE
    for base, power in factor.powers.items():
        own = signs_of(base, signs)
        found = product_of_signs(found, own if power % 2 else own.replace("-", POSITIVE))
    return found


def _ratio(question: Question, base: Expr, power: float) -> Expr:
    """(new / old) ** power, with a positive power; roots apart: proofs know nothing of them."""
    old, new = (_renamed(question, base, new=new) for new in (False, True))
    if abs(power) == 0.5:
        old, new, power = call("sqrt", old), call("sqrt", new), 2 * power
    ratio = call("div", new, old) if power > 0 else call("div", old, new)
    return to_power(ratio, abs(power))


def to_power(base: Expr, power: float) -> Expr:
    """A power, as few functions."""
    short = {1.0: base, 2.0: call("square", base)}
    return short.get(power) or call("pow", base, power)


def _change(question: Question, terms: Mapping[Expr, float]) -> Expr | None:
    """What a sum of terms grows by; None for nothing. Exponents become such as r - r'."""
    total: Expr | None = None
    for term, times in terms.items():
        old, new = (_renamed(question, term, new=new) for new in (False, True))
        each = call("sub", new, old) if times > 0 else call("sub", old, new)
        each = each if abs(times) == 1 else call("mul", abs(times), each)
        total = each if total is None else call("add", total, each)
    return total


def _renamed(question: Question, expr: Expr, *, new: bool) -> Expr:
    """``expr`` with the argument numbers of h: of old producers, or of new ones."""
    count, first = len(question.producers), 1
    at = {p: first + i + (count if new else 0) for i, p in enumerate(question.producers)}
    at |= {p: first + 2 * count + i for i, p in enumerate(question.parameters)}
    return rewrite(expr, lambda leaf: Arg(at[leaf.index]) if isinstance(leaf, Arg) else leaf)
