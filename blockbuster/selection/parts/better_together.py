"""Values that lose what one kernel keeps, if they are stored between two.

    e = exp(x); y = e / sum(e)                  e may be infinite where y is a number
    d = mean(x * x) - square(mean(x))           means rounded to float32 lose the digits of d

A kernel that computes all of it takes exponents apart and variances around the mean. So a plan that
stores such a value is taken only where none does without.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from itertools import permutations

from blockbuster.frontend import ArrayProgram, lower
from blockbuster.frontend.kinds import FLOAT, MOVES
from blockbuster.frontend.program import ArrayOutput, Equation
from blockbuster.ir.graph import Value
from blockbuster.rules.overflow import infinite_between
from blockbuster.selection.parts.operand_views import PRODUCT

LINEAR = ("add", "sub", "mul", "div", "neg", "sum", "mean", "where", "cast", *MOVES)
"""Operators through which a difference of large numbers may come about."""

EXPONENTIALS = ("exp", "expm1")


def better_together(program: ArrayProgram) -> frozenset[Value]:
    """The values of ``program`` that one kernel should not leave to another."""
    return frozenset((*_infinite(program), *cancelling(program)))


def _infinite(program: ArrayProgram) -> Iterator[Value]:
    """Values that grow with an exponential that something else divides by, or takes a log of."""
    exponentials = [one for one in program.equations if one.op in EXPONENTIALS]
    if not exponentials:
        return
    floats = [Value(at) for at, one in enumerate(program.equations) if one.kind == FLOAT]
    names = {f"v{value.node}": value for value in floats}
    shown = tuple(ArrayOutput(name, value) for name, value in names.items())
    graph = lower(replace(program, outputs=shown))
    yield from (names[name] for name in infinite_between(graph))


def cancelling(program: ArrayProgram, *, products: bool = False) -> frozenset[Value]:
    """The means and sums that meet in a difference of a sum of squares and a square of a sum.

    That is how variances are written that lose digits where the mean is many deviations.
    A sum times numbers that it was not made of is no square, but a multiple of it: a batch norm
    behind a convolution. The two are different operands of one difference: the sum
    mean(square(x - mean(x))) + 1e-5 contains both kinds in one operand, and loses no digits.
    ``products``: those of matrices may be such sums of squares, too.
    """
    linear = (*LINEAR, PRODUCT) if products else LINEAR
    folds = ("sum", "mean", PRODUCT) if products else ("sum", "mean")
    folded, squares, squared = set[Value](), set[Value](), set[Value]()
    found, made_of = set[Value](), _Origins()
    for at, one in enumerate(program.equations):
        value, reads = Value(at), [o for o in one.operands if isinstance(o, Value)]
        is_square = _is_square(one, reads, folds)
        if not is_square and one.op not in linear:
            continue
        made_of.note(value, reads)
        sums = folded.intersection(reads)
        if is_square and all(read in sums or made_of.meet(read, sums) for read in reads):
            (squared if sums else squares).add(value)
        for kind in (folded, squares, squared):
            if kind.intersection(reads):
                kind.add(value)
        if one.op in folds:
            folded.add(value)
        met = ((a, b) for a, b in permutations(reads, 2) if a in squares and b in squared)
        if one.op in ("add", "sub") and any(met):
            found |= _behind(program, value) & (folded | squares | squared)
    return frozenset(found)


class _Origins:
    """What values are sums and products of: inputs, and results of other operators."""

    def __init__(self) -> None:
        self._known: dict[Value, frozenset[Value]] = {}

    def note(self, value: Value, reads: Iterable[Value]) -> None:
        """``value`` is a sum or a product of what it reads."""
        self._known[value] = frozenset().union(*map(self._of, reads))

    def _of(self, value: Value) -> frozenset[Value]:
        return self._known.get(value, frozenset((value,)))

    def meet(self, value: Value, sums: Collection[Value]) -> bool:
        """True if ``value`` shares something with one of ``sums``, or there are none."""
        return not sums or any(self._of(value) & self._of(other) for other in sums)


def _is_square(one: Equation, reads: list[Value], folds: tuple[str, ...]) -> bool:
    product = one.op == "mul" or (one.op == PRODUCT and PRODUCT in folds)
    return one.op in ("square", "pow") or (product and len(reads) > 1)


def _behind(program: ArrayProgram, value: Value) -> set[Value]:
    """What a value is computed of."""
    return {Value(at) for at in program.needed([value]) if at != value.node}
