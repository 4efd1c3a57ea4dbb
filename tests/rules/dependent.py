"""Random reductions that depend on others, and a rolling fold that tells if a repair is right."""

from dataclasses import dataclass
from random import Random

import mpmath
import sympy as sp

C = sp.symbols("c1:3", real=True)
R = sp.symbols("r1:4", positive=True)
P = sp.Symbol("p", positive=True)
FOLD = {"+": sum, "max": max, "min": min}
TABLE, SOLVER, NONE, UNKNOWN = "by the table", "solved", "refused", "unknown"


@dataclass(frozen=True)
class Dependent:
    """A fold of ``g`` by ``f``, and what has to be found for it."""

    kind: str
    g: sp.Expr
    producers: tuple[sp.Symbol, ...]
    elements: tuple[sp.Symbol, ...]
    f: str

    def __str__(self):
        return f"{self.f} of {self.g}, waiting for {self.producers}: {self.kind}"


def dependents(count, seed=0):
    """Reductions of all kinds in turn; refused ones take turns themselves."""
    random = Random(seed)
    return [KINDS[at % len(KINDS)](random, at // len(KINDS)) for at in range(count)]


def _elements(random, shift=0):
    """A function of one element or of both."""
    c, d = C if random.random() < 0.5 else C[::-1]
    k = random.choice((2, 3))
    single = [c, c**k, sp.exp(k * c), sp.tanh(c), sp.Max(c, 0), sp.sqrt(c**2 + 1), sp.sin(c), k * c]
    value = random.choice(single)
    return value * d if random.random() < 0.3 else value + shift


def _of(r, random):
    """A positive function of a producer."""
    k = random.choice((1, 2, 3))
    return random.choice((r**k, r**-k, sp.exp(-k * r), sp.exp(r), 1 / sp.sqrt(r + P), sp.sqrt(r)))


def _producers(random, least=1):
    return R[: random.randint(least, 3)]


def _factors(random, _turn):
    producers = _producers(random)
    g = _elements(random) * sp.Mul(*(_of(r, random) for r in producers))
    if random.random() < 0.3:
        g = g * sp.exp(random.choice(C) - producers[0])
    return Dependent(TABLE, g, producers, C, random.choice(("+", "+", "max", "min")))


def _shifts(random, _turn):
    producers = _producers(random)
    g = _elements(random) - sum(random.choice((r, r**2, sp.log(r), P * r)) for r in producers)
    return Dependent(TABLE, g, producers, C, random.choice(("max", "min")))


def _sums_of_factors(random, _turn):
    """Terms that have the elements' part in common, but no two the same producer's."""
    producers = _producers(random)
    factor = sum(_of(r, random) for r in producers) + random.choice((1, P))
    elements = random.choice((C[0], C[0] ** 2, C[0] * C[1], sp.exp(C[1])))
    return Dependent(
        SOLVER, sp.expand(factor * elements), producers, C, random.choice(("+", "max"))
    )


def _rising(random, _turn):
    """A rising function of elements and producers together: for extrema."""
    producers = _producers(random)
    x = random.choice(C)
    inner = x * _of(producers[0], random) + sum(_of(r, random) for r in producers[1:]) - P
    outer = random.choice((sp.tanh, sp.atan, sp.sinh, sp.exp, lambda e: e**3))
    g = outer(inner) * random.choice((1, P)) + producers[-1]
    return Dependent(SOLVER, g, producers, (x,), random.choice(("max", "min")))


def _no_factor(random, turn):
    """Sums of functions in which producers and elements do not come apart."""
    producers, (c, d) = _producers(random), C
    r = sum(producers)
    functions = (
        sp.exp(c * r), (c - r) ** 2, sp.tanh(c - r), c + r, sp.sqrt(c**2 + r), sp.cos(c - r),
        1 / (c**2 + r), c * r + d, sp.exp(c * r - d), sp.exp(c - r * d), sp.log(c**2 + r),
        sp.Abs(c - r), sp.Max(c, r), d * sp.exp(c - r) + c, c**2 * r + c * producers[0] ** 2,
        sp.Piecewise((c, r < 2), (1, True)),
    )  # fmt: skip
    g = functions[turn % len(functions)]
    return Dependent(NONE, g, producers, C, "+")


def _order(random, turn):
    """Extrema of functions whose order depends on producers."""
    producers, (c, d) = _producers(random), C
    r = sum(producers)
    functions = (
        sp.Abs(c - r), (c - r) ** 2, c * r + d, sp.sin(c - r), c * (r - 2), sp.exp(c * r - d),
        c**2 * r - c, sp.Max(c - r, 0), sp.Max(c, r), d - c * sp.exp(-r), c * sp.log(r),
    )  # fmt: skip
    g = functions[turn % len(functions)]
    return Dependent(NONE, g, producers, C, random.choice(("max", "min")))


def undecided():
    """Functions that numbers do not tell from others, for which an answer has to be "unknown"."""
    c, r = sp.symbols("c r", positive=True)
    nearly = c * r + sp.exp(r) * c**2 / 10**30
    flat = sp.tanh(20 * c / (1 + c * r))
    return (
        Dependent(UNKNOWN, nearly, (r,), (c,), "+"),
        Dependent(UNKNOWN, flat, (r,), (c,), "max"),
    )


KINDS = (_factors, _sums_of_factors, _no_factor, _shifts, _rising, _order)


def rolled(case, found, seed=0, facts=()):
    """Two numbers: a fold in three chunks, each with other producers, and the fold at the end.

    None if that is not a number.
    """
    random = Random(seed)
    parameters = sorted(case.g.free_symbols - {*case.producers, *case.elements}, key=str)
    given = {symbol: _number(symbol, random) for symbol in parameters}
    before = (found.t, *case.producers, *found.changed, *parameters)
    h = sp.lambdify(before, found.h, modules="mpmath")
    g = sp.lambdify((*case.producers, *case.elements, *parameters), case.g, modules="mpmath")
    fold, total, seen, old = FOLD[case.f], None, [], ()
    with mpmath.workdps(40):
        for _ in range(3):
            new = [_number(symbol, random) for symbol in case.producers]
            chunk = [[_number(symbol, random) for symbol in case.elements] for _ in range(4)]
            for fact in facts:  # the one producer is the largest element so far
                assert fact == sp.Le(case.elements[0], case.producers[0])
                new = [max(each[0] for each in (*seen, *chunk))]
            parts = [g(*new, *each, *given.values()) for each in chunk]
            if total is not None:
                parts.append(h(total, *old, *new, *given.values()))
            total, old = fold(parts), new
            seen += chunk
        return total, fold([g(*old, *each, *given.values()) for each in seen])


def _number(symbol, random):
    """An eighth from the domain of a symbol, and not 0."""
    eighths = random.randint(1, 12)
    return mpmath.mpf(eighths if symbol.is_nonnegative else random.choice((-eighths, eighths))) / 8


def wrong(case, answer, seeds=range(3)):
    """Why an answer to ``case`` is wrong, or ""."""
    found = answer(case.g, case.producers, case.elements, case.f)
    if case.kind == UNKNOWN:
        return "" if found.answer == "unknown" else f"not unknown: {found}"
    if case.kind == NONE:
        return "" if found.answer == "no" and shown(case, found) else f"not refuted: {found}"
    if not found.ok or (case.kind == TABLE) != found.reason.startswith("by the law"):
        return f"not {case.kind}: {found} ({found.reason})"
    for seed in seeds:
        total, expected = rolled(case, found, seed)
        if abs(total - expected) > mpmath.mpf("1e-20") * (1 + abs(expected)):
            return f"{found} gives {total} instead of {expected}"
    return ""


def shown(case, found):
    """Whether the points of a refusal show that no h can be right."""
    if len(found.points) != 2:
        return False
    later = dict(zip(case.producers, found.changed, strict=True))
    before = [float(case.g.subs(point)) for point in found.points]
    after = [float(case.g.xreplace(later).subs(point)) for point in found.points]
    if case.f == "+":
        return abs(after[0] * before[1] - after[1] * before[0]) > 1e-9
    return before[1] - before[0] > -1e-12 and after[0] - after[1] > 1e-9
