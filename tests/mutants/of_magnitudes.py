"""The mutants of rescale-by-magnitude, as data: see ``of_the_paper.py``."""

from __future__ import annotations

from tests.mutants.mutate import Mutant

RULE, PATTERN, PRODUCTS = "RescaleByMagnitude", "magnitude_groups", "separate"


def of_the_pattern() -> tuple[Mutant, ...]:
    """Which sums, scales and magnitudes there may be."""
    return (
        Mutant("by magnitude: a peeled map", RULE, PATTERN,
               "if gone := first_iteration_gone(graph, position):", "if False:", "cases"),
        Mutant("by magnitude: any accumulator", RULE, PATTERN,
               'if result != Accumulate("+") or', "if not isinstance(result, Accumulate) or",
               "cases"),
        Mutant("by magnitude: of signed values", RULE, PATTERN,
               'or both.lead.fn != "abs":', ":", "cases"),
        Mutant("by magnitude: a scale that is there", RULE, PATTERN,
               "or graph.reaches(first, scale.node):", "or True:", "cases"),
        Mutant("by magnitude: waits for more", RULE, PATTERN,
               "degree = more or", "degree =", "cases"),
        Mutant("by magnitude: other axes", RULE, PATTERN,
               "if graph.type_of(scale) != graph.type_of(lead):", "if False:", "cases"),
        Mutant("by magnitude: another value", RULE, PATTERN,
               "if not shares or min(shares) < found.power:", "if False:", "cases"),
    )  # fmt: skip


def of_the_product() -> tuple[Mutant, ...]:
    """What the power of the scale in a function is."""
    return (
        Mutant("by magnitude: two powers", RULE, PRODUCTS,
               "if any(each != found[0] for each in found[1:]):", "if False:", "cases"),
        Mutant("by magnitude: a sum of elements", RULE, PATTERN,
               "or not reads(base, c):", "or c.index not in arguments(base):", "cases"),
        Mutant("by magnitude: powers cancel", RULE, PATTERN,
               "if not found.power or found.signed * found.unsigned < 0:", "if not found.power:",
               "cases"),
        Mutant("by magnitude: where is a product", RULE, PRODUCTS,
               'if expr.fn == "where" and not self._lacks(expr.args[0], self.producers):',
               "if False:", "cases"),
        Mutant("by magnitude: the sign is kept", RULE, PRODUCTS,
               'call("abs", base) if NEGATIVE in', "base if NEGATIVE in", "cases"),
        Mutant("by magnitude: a root of a sign", RULE, PATTERN,
               "if _takes_root_of_sign(expr, c):", "if False:", "cases"),
        Mutant("by magnitude: the square of once", RULE, PRODUCTS, '"square": 2.0',
               '"square": 1.0'),
    )  # fmt: skip


def of_the_scale() -> tuple[Mutant, ...]:
    """What stands for the scale, in the loop and behind it."""
    return (
        Mutant("by magnitude: rescaled once", RULE, PATTERN,
               'of_elements = call("div", Arg(1), to_power(at_least(Arg(0)), degree.power))',
               'of_elements = call("div", Arg(1), at_least(Arg(0)))'),
        Mutant("by magnitude: the scale is lost", RULE, PATTERN,
               'total = call("mul", total, to_power(base, power))', "pass"),
        Mutant("by magnitude: always divided by", RULE, PATTERN,
               "in_loop = least if degree.divides else", "in_loop ="),
        Mutant("by magnitude: zero by zero", RULE, PATTERN,
               'return call("maximum", magnitude, LEAST)', "return magnitude", "cases"),
    )  # fmt: skip


MUTANTS_OF_MAGNITUDES: tuple[Mutant, ...] = (
    *of_the_pattern(),
    *of_the_product(),
    *of_the_scale(),
)
