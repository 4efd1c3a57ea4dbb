"""The mutants of factor-out, as data: see ``of_the_paper.py``."""

from __future__ import annotations

from tests.mutants.mutate import Mutant

RULE = "FactorOut"
ADDED = "if not folds(op.results[port], law):"
FOLDS = "isinstance(op.results[port], Accumulate)"


def shared_factors() -> tuple[Mutant, ...]:
    """Which factors leave, and of which folds."""
    rule, file = RULE, "shared_factor"
    return (
        Mutant("factor: a peeled map", rule, file,
               "first_iteration_gone(graph, position) or _in_an_extremum", "_in_an_extremum",
               "cases"),
        Mutant("factor: an input", rule, file, "if value.node >= 0 and not graph", "if not graph",
               "cases"),
        Mutant("factor: nothing shared", rule, file,
               "if not any(True for _ in sharing(graph, position)):", "if False:", "cases"),
        Mutant("factor: a list", rule, file, ADDED,
               ADDED.replace("if", f"if {FOLDS} and")),
        Mutant("factor: a maximum", rule, file, ADDED,
               ADDED.replace("if", f"if not {FOLDS} and")),
        Mutant("factor: leads others", rule, file, "else leads_others(op, port)", 'else ""',
               "cases"),
        Mutant("factor: half a group", rule, file, "in op.group_of(port) if", "in (port,) if",
               "cases"),
        Mutant("factor: leads stay behind", rule, "factor_out", "results=results_at(op, free)",
               "results=tuple(op.results[port] for port in free)", "cases"),
        Mutant("factor: nothing waits for the sum", rule, file, "return not read or ", "return ",
               "cases"),
        Mutant("factor: loops run twice", rule, file,
               "return not read or any(isinstance(node.op, Map) for node in op.body.nodes)",
               "return not read", "cases"),
    )  # fmt: skip


def parts() -> tuple[Mutant, ...]:
    """The factor of a value, and the rest of it."""
    rule, file, values, law = RULE, "shared_factor", "unscaled", "separate"
    exprs = "linear_expressions"
    return (
        Mutant("factor: a lost axis", rule, file, "if lost else", "if False else", "cases"),
        Mutant("factor: the factor is lost", rule, "factor_out",
               'call("mul", Arg(-2), factor)', "Arg(-2)"),
        Mutant("factor: along the sum", rule, values, "if dim in self.axes:", "if False:"),
        Mutant("factor: in both operands", rule, values, "if more:", "if False:", "cases"),
        Mutant("factor: no weights", rule, values, "plain, rest, origin", "plain, plain, origin",
               "cases"),
        Mutant("factor: squared or below", rule, file,
               "if found.factors[value] != found.leaving:", "if False:"),
        Mutant("factor: a condition", rule, law, "if not free:", "if False:", "cases"),
        Mutant("factor: others added", rule, law,
               "any(each != found[0] for", "any(False for"),
        Mutant("factor: taken of a root", rule, law, "self.known and all(", "self.known or all(",
               "cases"),
        Mutant("factor: added as 0", rule, exprs, '("mul" | "div", (part, None)) if',
               '("mul" | "div" | "add", (part, None)) if', "cases"),
        Mutant("factor: 0 in place of 1", rule, exprs, "neutral if part is None else part",
               "ZERO if part is None else part", "cases"),
    )  # fmt: skip


def shared_exponentials() -> tuple[Mutant, ...]:
    """Exponentials of shifts."""
    rule, file = "FactorOutExp", "unscaled"
    return (
        Mutant("exp: any function", rule, "separate", 'case Call("exp", (a,)):',
               'case Call("exp" | "sigmoid", (a,)):'),
        Mutant("exp: another power", rule, file,
               "if terms and self.factor == Factor({}, terms):", "if terms:"),
        Mutant("exp: no exponential is left", rule, file,
               'return call("exp", self._rest(expr.args[0], ZERO) or ZERO)',
               "return self._rest(expr.args[0], ZERO) or ZERO"),
        Mutant("exp: of an exponential", rule, file,
               "if self._separation.factor(exponent) != Factor():", "if False:", "cases"),
        Mutant("exp: once, not so often", rule, "separate",
               'else call("mul", term, by)', "else term"),
        Mutant("exp: put on, not taken off", rule, "separate",
               'else call("neg", term) if', "else term if"),
        Mutant("exp: of a logarithm", rule, "separate", 'case Call("log", (a,)) if not self.known:',
               'case Call("log", (a,)):', "cases"),
        Mutant("exp: changes with the sum", rule, file, "if not walks and", "if"),
        Mutant("exp: a difference is a sum", rule, "linear_expressions",
               'return number(call("neg", part))', "return part", "cases"),
    )  # fmt: skip


def scaled_extrema() -> tuple[Mutant, ...]:
    """Maxima and minima."""
    rule, own = RULE, "shared_factor"
    return (
        Mutant("scaled: may be negative", rule, own, "if law.signs != ANY and NEGATIVE in",
               "if False and NEGATIVE in", "cases"),
        Mutant("scaled: by anything", rule, own,
               "if not isinstance(expr, Call) or expr.fn not in law.made_by:", "if False:",
               "cases"),
        Mutant("scaled: any sum is positive", rule, "separate", "return _ordered(_SUMS.get(",
               "return a or _ordered(_SUMS.get(", "cases"),
        Mutant("scaled: differences are positive", rule, "separate",
               'second = b if fn == "add" else', "second = b if True else", "cases"),
        Mutant("scaled: waits all the same", rule, own, "if not kept:", "if True:", "cases"),
    )  # fmt: skip


def scaled_magnitudes() -> tuple[Mutant, ...]:
    """Largest absolute values."""
    rule, file, values, rows = RULE, "shared_factor", "unscaled", "for law in rows:"

    def with_row(changed: str) -> str:
        return f"for law in (*rows, replace(rows[2], {changed})):"

    return (
        Mutant("magnitude: signed", rule, values,
               'return Factor({call("abs", Arg(self.port)): 1.0}) if "abs" in self.passed else',
               "return self.factor if False else", "cases"),
        Mutant("magnitude: the factor's sign", rule, "separate",
               'key = call("abs", base) if', "key = base if", "cases"),
        Mutant("magnitude: the smallest", rule, "factor_out", rows,
               with_row('monoids=("max", "min")'), "cases"),
        Mutant("magnitude: another fold", rule, values, "or node.op.name not in self.passed:",
               ":", "cases"),
        Mutant("magnitude: any factor", rule, "factor_out", rows,
               with_row('made_by=("reciprocal",)'), "cases"),
        Mutant("magnitude: an exponential", rule, "factor_out", rows,
               with_row('made_by=("exp",)'), "cases"),
        Mutant("magnitude: hidden by where", rule, file,
               'return "where can hide it, and it may be infinite" if hides else ""',
               'return ""', "cases"),
        Mutant("magnitude: any where", rule, file,
               "if any(v in found.factors for v in node.operands))", ")", "cases"),
        Mutant("magnitude: another loop", rule, file,
               "if not _waits(graph, node.operands[port], other):", "if False:", "cases"),
        Mutant("magnitude: waits for the sum", rule, file,
               " or (value.node == other and not op.iterated[at])", "", "cases"),
        Mutant("magnitude: waits for a list", rule, file,
               "value.node == other and not op.iterated[at]", "value.node == other", "cases"),
    )  # fmt: skip


MUTANTS_OF_FACTORS = (
    *shared_factors(),
    *parts(),
    *shared_exponentials(),
    *scaled_extrema(),
    *scaled_magnitudes(),
)
