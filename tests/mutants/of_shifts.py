"""The mutants of rules that take shifts out of products, as data: see ``of_the_paper.py``.

In exact arithmetic these mutants are right: only golden cases show that digits would cancel.
"""

from __future__ import annotations

from tests.mutants.mutate import Mutant

FOUND = 'found = [terms.known("fold +", (at,), dim) for s in squares if (at := terms.known(*s))]'


def of_means() -> tuple[Mutant, ...]:
    """What a shift must be: minus the mean of a row whose squares are summed."""
    rule, file = "SwapMeanDot", "mean_shifts"
    return (
        Mutant("mean: no variance is taken", rule, file, "mean and any(found) and", "mean and",
               "cases"),
        Mutant("mean: the variance of another row", rule, file, FOUND,
               'found = [1 for term in terms.terms if term.fn == "square"]', "cases"),
        Mutant("mean: squares are no products", rule, file,
               '(("square", (elements,)), ("mul", (elements, elements)))',
               '(("square", (elements,)),)', "cases"),
        Mutant("mean: of another row, or along another dim", rule, file, "if number == total:",
               'if terms[number].fn == "fold +":', "cases"),
        Mutant("mean: any function of the sum", rule, file,
               "equal(mean, minus_mean(size_class(dim)), size_class(dim))", "True", "cases"),
        Mutant("mean: over another size", rule, file, "size_class(str(term.leaf))",
               "size_class(str(terms[total].leaf))", "cases"),
        Mutant("mean: with what is added", rule, file,
               "if term.fn not in ARITHMETIC or len(known) < len(parts):",
               "if term.fn not in ARITHMETIC or not known:", "cases"),
    )  # fmt: skip


def of_sites() -> tuple[Mutant, ...]:
    """Every rule on shifts asks for it."""
    columns = "fold_columns"
    return (
        Mutant("swap: any shift", "SwapMeanDot", "swap_mean_dot", "reason, note)", '"", note)',
               "cases"),
        Mutant("linearity: any shift", "LocalLinearity", "local_linearity",
               "or shift_would_cancel(graph, position, inner)", "", "cases"),
        Mutant("linearity: only scales", "LocalLinearity", "local_linearity",
               'if operator.op != Functional("row_shift"):', "if False:", "cases"),
        Mutant("columns: any shift", "FoldColumns", columns,
               "or _shift_would_cancel(graph, position, inner)", "", "cases"),
        Mutant("columns: rows that are scaled", "FoldColumns", columns,
               'return f"{label(body.nodes[inner])} shifts rows', 'return "" and f"{inner} rows',
               "cases"),
        Mutant("columns: rows that are shifted", "FoldColumns", columns,
               "return shift_would_cancel(graph, position, at)", 'return ""', "cases"),
        Mutant("columns: nothing but shifts", "FoldColumns", columns,
               'if body.nodes[inner].op != Functional("col_shift"):', "if False:", "cases"),
    )  # fmt: skip


MUTANTS_OF_SHIFTS: tuple[Mutant, ...] = (*of_means(), *of_sites())
