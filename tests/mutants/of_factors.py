"""The mutants of factor-out and factor-out-exp, as data: see ``of_the_paper.py``."""

from __future__ import annotations

from tests.mutants.mutate import Mutant

ADDED = "if not _folds(op.results[port], found.monoids):"
FOLDS = "isinstance(op.results[port], Accumulate)"
LOST = "first_iteration_gone"
SITE = "(graph, position)"


def shared_factors() -> tuple[Mutant, ...]:
    """factor-out."""
    rule, file = "FactorOut", "shared_factor"
    return (
        Mutant("factor: a peeled map", rule, file, f"{LOST}{SITE}\n            or self.unfit",
               "self.unfit", "cases"),
        Mutant("factor: an input", rule, file, "value.node >= 0 and ", "", "cases"),
        Mutant("factor: nothing shared", rule, file, "if shares_a_pass(graph, position)", "if True",
               "cases"),
        Mutant("factor: a list", rule, file, ADDED,
               ADDED.replace("if", f"if {FOLDS} and")),
        Mutant("factor: a maximum", rule, file, ADDED,
               ADDED.replace("if", f"if not {FOLDS} and")),
        Mutant("factor: leads others", rule, file, "leads_others(op, port) or", "",
               "cases"),
        Mutant("factor: half a group", rule, file, "in op.group_of(port) if", "in (port,) if",
               "cases"),
        Mutant("factor: leads stay behind", rule, file, "results = results_at(op, free)",
               "results = tuple(op.results[port] for port in free)", "cases"),
        Mutant("factor: others added", rule, file, "if parts.rest is not None:", "if False:",
               "cases"),
        Mutant("factor: nothing waits for the sum", rule, file, "return not read or ", "return ",
               "cases"),
        Mutant("factor: loops run twice", rule, file,
               "return not read or any(isinstance(node.op, Map) for node in op.body.nodes)",
               "return not read", "cases"),
    )  # fmt: skip


def parts() -> tuple[Mutant, ...]:
    """factor-out: the parts of a value with and without the factor."""
    rule, file, values, exprs = "FactorOut", "shared_factor", "affine", "linear_expressions"
    return (
        Mutant("factor: a lost axis", rule, file, "if lost else", "if False else", "cases"),
        Mutant("factor: the factor is lost", rule, file, 'call("mul", Arg(len(given)), factor)',
               "Arg(len(given))"),
        Mutant("factor: along the sum", rule, values, "if dim in self.axes:", "if False:"),
        Mutant("factor: two products", rule, values, "if all(self._is_whole(part, whole) for",
               "if False and all(self._is_whole(part, whole) for", "cases"),
        Mutant("factor: in both operands", rule, values, "if all(given):", "if False:", "cases"),
        Mutant("factor: no weights", rule, values, 'Functional("row_sum"), weighted',
               'Functional("row_sum"), plain'),
        Mutant("factor: squared or below", rule, exprs,
               'if b.slope is not None and (fn == "div" or a.slope is not None):', "if False:"),
        Mutant("factor: a condition", rule, exprs, "if test.slope is not None:", "if False:"),
        Mutant("factor: squares are linear", rule, exprs, '"where": _selected,',
               '"where": _selected, "square": lambda _, parts: parts[0],'),
        Mutant("factor: added, not taken off", rule, exprs,
               'return b if fn == "add" else number(call("neg", b))', "return b"),
        Mutant("factor: chosen from the other side", rule, exprs,
               "first or ZERO, second or ZERO", "second or ZERO, first or ZERO"),
    )  # fmt: skip


def shared_exponentials() -> tuple[Mutant, ...]:
    """factor-out-exp."""
    rule, file = "FactorOutExp", "factor_out_exp"
    return (
        Mutant("exp: any function", rule, file, 'if expr.fn != "exp":',
               'if expr.fn not in ("exp", "sigmoid"):'),
        Mutant("exp: any power", rule, file,
               "if power.slope is None or not self._is_it(power.slope, leaves):",
               "if power.slope is None:"),
        Mutant("exp: another power", rule, file, "return self.by == (by, operands)",
               "return True"),
        Mutant("exp: no exponential is left", rule, file,
               'Parts(None, call("exp", power.rest or ZERO))', "Parts(None, power.rest or ZERO)"),
        Mutant("exp: once, not so often", rule, file,
               "_times(Arg(0), by))", "Arg(0))"),
        Mutant("exp: a list", rule, "shared_factor", ADDED,
               ADDED.replace("if", f"if {FOLDS} and")),
        Mutant("exp: changes with the sum", rule, file,
               "value.node >= 0 or self._op.iterated[value.port] for", "value.node >= 0 for"),
    )  # fmt: skip


MUTANTS_OF_FACTORS = (*shared_factors(), *parts(), *shared_exponentials())
