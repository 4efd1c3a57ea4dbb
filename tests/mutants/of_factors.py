"""The mutants of factor-out and factor-out-exp, as data: see ``of_the_paper.py``."""

from __future__ import annotations

from tests.mutants.mutate import Mutant

ADDED = "if not _folds(op.results[port], monoids):"
FOLDS = "isinstance(op.results[port], Accumulate)"
LOST = "first_iteration_gone"
SITE = "(graph, position)"


def shared_factors() -> tuple[Mutant, ...]:
    """factor-out."""
    rule, file = "FactorOut", "shared_factor"
    return (
        Mutant("factor: a peeled map", rule, file, f"{LOST}{SITE} or self.unfit", "self.unfit",
               "cases"),
        Mutant("factor: an input", rule, file, "value.node >= 0 and ", "", "cases"),
        Mutant("factor: nothing shared", rule, file, "if shares_a_pass(graph, position)", "if True",
               "cases"),
        Mutant("factor: a list", rule, file, ADDED,
               ADDED.replace("if", f"if {FOLDS} and")),
        Mutant("factor: a maximum", rule, file, ADDED,
               ADDED.replace("if", f"if not {FOLDS} and")),
        Mutant("factor: leads others", rule, file, "else leads_others(op, port)", 'else ""',
               "cases"),
        Mutant("factor: half a group", rule, file, "in op.group_of(port) if", "in (port,) if",
               "cases"),
        Mutant("factor: leads stay behind", rule, file, "results=results_at(op, free)",
               "results=tuple(op.results[port] for port in free)", "cases"),
        Mutant("factor: nothing waits for the sum", rule, file, "return not read or ", "return ",
               "cases"),
        Mutant("factor: loops run twice", rule, file,
               "return not read or any(isinstance(node.op, Map) for node in op.body.nodes)",
               "return not read", "cases"),
    )  # fmt: skip


def parts() -> tuple[Mutant, ...]:
    """factor-out: the factor of a value, and the rest of it."""
    rule, file, values, law = "FactorOut", "shared_factor", "unscaled", "separate"
    exprs = "linear_expressions"
    return (
        Mutant("factor: a lost axis", rule, file, "if lost else", "if False else", "cases"),
        Mutant("factor: the factor is lost", rule, file, 'call("mul", Arg(-2), factor)',
               "Arg(-2)"),
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
    """factor-out-exp."""
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
        Mutant("exp: a list", rule, "shared_factor", ADDED,
               ADDED.replace("if", f"if {FOLDS} and")),
        Mutant("exp: changes with the sum", rule, file, "if not walks and", "if"),
        Mutant("exp: a difference is a sum", rule, "linear_expressions",
               'return number(call("neg", part))', "return part", "cases"),
    )  # fmt: skip


MUTANTS_OF_FACTORS = (*shared_factors(), *parts(), *shared_exponentials())
