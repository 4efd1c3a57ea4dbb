"""The mutants of repair-by-law, as data: see ``of_the_paper.py``."""

from __future__ import annotations

from tests.mutants.mutate import Mutant

RULE, OWN, PRODUCTS, ROLLING = (
    "RepairByLaw", "repair_by_law", "separate", "rolling_update",
)  # fmt: skip


def of_the_pattern() -> tuple[Mutant, ...]:
    """Which sums, scales and magnitudes there may be."""
    return (
        Mutant("by magnitude: any fold", RULE, OWN, 'or found.question.monoid != "+"', "",
               "cases"),
        Mutant("by magnitude: of signed values", RULE, OWN, 'if size.fn == "abs" else',
               "if True else", "cases"),
        Mutant("by magnitude: the least", RULE, OWN,
               'folds in ([Accumulate("max")], [Accumulate("+")]) and', "", "cases"),
        Mutant("by magnitude: a peeled map", RULE, "dependent_folds",
               "if reason := apart or first_iteration_gone(graph, first, position):",
               "if reason := apart:", "cases"),
        Mutant("by magnitude: another value", RULE, OWN, "if any(own.get(",
               "if False and any(own.get(", "cases"),
        Mutant("by magnitude: a lesser power", RULE, OWN, "< -power * times", "< times", "cases"),
        Mutant("by magnitude: grows with it", RULE, OWN, "if power >= 0:", "if False:", "cases"),
        Mutant("by magnitude: hidden by where", RULE, OWN,
               'case Call("where", _) if lead in arguments(expr):',
               'case Call("where", _) if False:', "cases"),
        Mutant("by magnitude: any where", RULE, OWN,
               'case Call("where", _) if lead in arguments(expr):', 'case Call("where", _):',
               "cases"),
        Mutant("by magnitude: numbers of all sizes", RULE, OWN,
               "if value and not SMALL < abs(value) < LARGE:", "if False:", "cases"),
        Mutant("by magnitude: a root", RULE, OWN, "if any(power % 1 for", "if any(0 for", "cases"),
        Mutant("by magnitude: an exponential", RULE, OWN, "if factor.exponent:", "if False:",
               "cases"),
    )  # fmt: skip


def of_the_product() -> tuple[Mutant, ...]:
    """What the power of the scale in a function is."""
    return (
        Mutant("by magnitude: two powers", RULE, PRODUCTS,
               "any(each != found[0] for", "any(False for", "cases"),
        Mutant("by magnitude: the square of once", RULE, PRODUCTS, '"square": 2.0',
               '"square": 1.0'),
    )  # fmt: skip


def of_the_scale() -> tuple[Mutant, ...]:
    """What stands for the scale, in the loop and behind it."""
    return (
        Mutant("by magnitude: not restored", RULE, ROLLING,
               "repaired(guards, [AS_IT_IS] * count, 0) if guarded else AS_IT_IS", "AS_IT_IS"),
        Mutant("by magnitude: zero by zero", RULE, OWN,
               '= call("maximum", Arg(0), 1e-30)', "= Arg(0)", "cases"),
        Mutant("by magnitude: from the start", RULE, OWN, "from_the_start = True",
               "from_the_start = False", "cases"),
    )  # fmt: skip


def extrema() -> tuple[Mutant, ...]:
    """Folds of what is chosen at an extremum."""
    rule, folds, table = RULE, "dependent_folds", "laws"
    return (
        Mutant("extremum: any accumulator", rule, folds,
               "if map_at(graph, self.first).results[lead.port] in EXTREMA", "", "cases"),
        Mutant("extremum: another direction", rule, folds,
               "apart = different_dims(graph, first, position)", 'apart = ""', "cases"),
        Mutant("extremum: waits for a sum", rule, table, "if more:", "if False:", "cases"),
        Mutant("extremum: waits through another", rule, folds,
               "between.setdefault(value.node)", "None", "cases"),
        Mutant("extremum: lacks an axis", rule, folds,
               "if not set(self.graph.type_of(lead).axes) <= set(self.alone.types[0].axes):",
               "if False:", "cases"),
        Mutant("extremum: not neutral", rule, table, "if other == neutral:", "if True:"),
        Mutant("extremum: another list", rule, table, "elif test not in alike:", "elif False:",
               "cases"),
        Mutant("extremum: always kept", rule, table,
               'call("where", chosen, _T, neutral), ())', 'call("where", chosen, _T, _T), ())'),
        Mutant("extremum: kept where it is less", rule, table,
               'chosen: Expr = call("eq", ', 'chosen: Expr = call("lt", '),
        Mutant("extremum: NaN does not count", rule, table, "if test in either:", "if False:",
               "cases"),
        Mutant("extremum: infinite ones are guarded", rule, "rolling_update",
               "answer.law.anywhere:", "False:", "cases"),
        Mutant("extremum: folded to the other end", rule, "beside",
               "Rescale(result.monoid,", 'Rescale("max",'),
    )  # fmt: skip


MUTANTS_OF_MAGNITUDES: tuple[Mutant, ...] = (
    *of_the_pattern(),
    *of_the_product(),
    *of_the_scale(),
    *extrema(),
)
