"""The table of laws as pairs of block programs, which ``prove_equal`` compares exactly.

One program folds f_s(x), the other one applies f_s to the fold of x. A choice is made of folds that
are combined with others, p: what is not chosen has no part in these. With the condition of its row
they are equal; without it they are not, so no row claims a condition that it does not need.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from blockbuster.ir import Graph, parse
from blockbuster.ir.expr import Arg, arguments, call, show_expr
from blockbuster.rules.laws import Law, Question, Repaired
from blockbuster.rules.separate import ANY

ROW_FOLDS = {"+": "row_sum", "max": "row_max", "min": "row_min"}
YIELDS = {"+": "+", "max": "max ", "min": "min "}
NEUTRAL = {"+": "0", "max": "-inf", "min": "inf"}
COMBINED = {"+": "add", "max": "maximum", "min": "minimum"}
OTHER = {"+": "+", "max": "min", "min": "max"}
WITH_SIGN = {ANY: "s", "0+": "square(s)", "-0": "-square(s)"}
"""A vector with given signs, made of a vector with any."""


def sides(law: Law, monoid: str) -> tuple[Graph, Graph]:
    """The two programs that a row says are equal."""
    of_x = OTHER[monoid] if law.turns else monoid
    return _sides(law, _shared(law), monoid, of_x, left="t + s * |N|" if law.leaves else "")


def broken_sides(law: Law, monoid: str) -> Iterator[tuple[str, tuple[Graph, Graph]]]:
    """The same without one of the conditions of the row, with its name."""
    of_x = OTHER[monoid] if law.turns else monoid
    if law.signs != ANY:
        yield "any sign", _sides(law, "s", monoid, of_x)
    if law.turns:
        yield "the same fold", _sides(law, _shared(law), monoid, monoid)
    if law.leaves:
        yield "nothing is left", _sides(law, "s", monoid, of_x)
    if reads_neutral(law):
        yield "not the neutral element", _sides(law, _shared(law), monoid, of_x, neutral="2")


def passed_sides(name: str, law: Law, behind: str = "") -> tuple[Graph, Graph]:
    """The fold of a function of scaled elements, and that of the elements, scaled by ``behind``."""
    s = _shared(law)
    return _passed(name, f"x_1 * ({s})", "t"), _passed(name, "x_1 * 1", f"t * ({behind or s})")


def _passed(name: str, inside: str, outside: str) -> Graph:
    folds = {"dot": "f = dot(g, w_1)", "abs": "a = abs(g)\n    f = row_max(a)"}
    monoid = {"row_max": "max ", "row_min": "min ", "abs": "max "}.get(name, "+")
    return parse(f"""graph(x: N[M,N], w: N[L,N], s: [M]) {{
  t = map N (x_1 in !x, w_1 in !w, s = s) {{
    g = {inside} over [M,N]
    {folds.get(name, f"f = {name}(g)")}
    yield {monoid}f
  }}
  h = {outside} over {"[M,L]" if name == "dot" else "[M]"}
  return h
}}
""")


def reads_neutral(law: Law) -> bool:
    """Whether the row holds for the neutral element of its fold, and for no other number."""
    return 2 in arguments(law.function)


def _shared(law: Law) -> str:
    """A vector that s of the row may be."""
    return "s > 0" if law.takes == "choice" else WITH_SIGN[law.signs]


def repair_sides(question: Question, found: Repaired) -> tuple[Graph, Graph]:
    """The fold of g(r', c), and h of the fold of g(r, c): what the table says of a question."""
    names = {index: f"x{index}" for index in question.elements}
    names |= {index: f"s{index}" for index in (*question.producers, *question.parameters)}
    elements = [names[index] for index in question.elements]
    old = [names[index] for index in question.producers]
    new = [f"{name}_new" for name in old]
    vectors = [*old, *new, *(names[index] for index in question.parameters)]
    known = [names.get(index, "") for index in range(max(names) + 1)]
    later = [f"{name}_new" if name in old else name for name in known]
    h = show_expr(found.h, ["t", *vectors])
    monoid = question.monoid
    return (
        _program(elements, vectors, show_expr(question.g, later), monoid, "t"),
        _program(elements, vectors, show_expr(question.g, known), monoid, h),
    )


def _sides(
    law: Law, s: str, monoid: str, of_x: str, left: str = "", neutral: str = ""
) -> tuple[Graph, Graph]:
    given = f"({s})", neutral or NEUTRAL[monoid]
    inside, outside = (show_expr(law.function, (name, *given)) for name in ("x", "t"))
    if law.takes == "choice":
        both = show_expr(call(COMBINED[monoid], Arg(0), Arg(1)), ("t", "p"))
        return (
            _program(["x"], ["s", "p"], inside, monoid, both),
            _program(["x"], ["s", "p"], "x", of_x, f"where({s}, {both}, p)"),
        )
    return (
        _program(["x"], ["s"], inside, monoid, "t"),
        _program(["x"], ["s"], "x", of_x, left or outside),
    )


def _program(
    elements: Sequence[str], vectors: Sequence[str], inside: str, monoid: str, outside: str
) -> Graph:
    """Row by row: the fold t of ``inside``, and ``outside`` of t."""
    inputs = [*(f"{name}: N[M,N]" for name in elements), *(f"{name}: [M]" for name in vectors)]
    operands = [*(f"{n} in !{n}" for n in elements), *(f"{n} = {n}" for n in vectors)]
    return parse(f"""graph({", ".join(inputs)}) {{
  t = map N ({", ".join(operands)}) {{
    g = {inside} over [M,N]
    f = {ROW_FOLDS[monoid]}(g)
    yield {YIELDS[monoid]}f
  }}
  h = {outside} over [M]
  return h
}}
""")
