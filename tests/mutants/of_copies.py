"""The mutants of the rules that recompute values, as data: see ``of_the_paper.py``."""

from __future__ import annotations

from tests.mutants.mutate import Mutant


def producers() -> tuple[Mutant, ...]:
    """copy-producer, and what is larger than what it is made from."""
    rule, file, ends = "CopyProducer", "copy_producer", "ends"
    return (
        Mutant("copies: a result", rule, ends,
               "if any(value in leaving or not", "if any(not", "cases"),
        Mutant("copies: as small as an input", rule, ends,
               "return not any(dims <= array for dims in own for array in arrays)",
               "return True", "cases"),
        Mutant("copies: a mask makes scores small", rule, ends, "    if large:\n",
               "    if False:\n", "cases"),
        Mutant("copies: a product is no end", rule, ends,
               "return all(operand <= dims for operand in large for dims in own)",
               "return True", "cases"),
        Mutant("copies: an end is no array", rule, ends,
               "arrays = {dims_of(graph, value, names) for value in results_of(graph.nodes, at)}",
               "pass", "cases"),
        Mutant("copies: one end", rule, file, "if ahead:", "if True:", "cases"),
        Mutant("copies: a reader of several ends", rule, file,
               "if len(ends.get(reader, ())) > 1:", "if False:", "cases"),
        Mutant("copies: for all readers", rule, file,
               "if ends.get(reader, (reader,)) == (first,)]", "]"),
    )  # fmt: skip


def transposes() -> tuple[Mutant, ...]:
    """transpose-producer, and the blocks that it turns."""
    rule, file, turned = "TransposeProducer", "transpose_producer", "turned"
    return (
        Mutant("transpose: read elsewhere", rule, file,
               "used_elsewhere(graph, operand, at)\n                or ", "", "cases"),
        Mutant("transpose: two results", rule, file,
               "or _several_results(graph, operand.node)", "", "cases"),
        Mutant("transpose: more than a nest", rule, file,
               "and len(level.nodes) != 1:", "and False:", "cases"),
        Mutant("transpose: a peeled map", rule, file,
               "if reason := first_iteration_gone(level, position):", "if False:", "cases"),
        Mutant("transpose: the old order of lists", rule, file,
               "over = tuple(dim for dim in order if dim in read_over)", "over = read_over"),
        Mutant("transpose: blocks are not turned", rule, file,
               "type.axes[::-1] if turned else type.axes", "type.axes"),
        Mutant("transpose: operands in their places", rule, turned,
               "return node.op, [(1, False), (0, False)]",
               "return node.op, [(0, False), (1, False)]"),
        Mutant("transpose: a row is shifted by columns", rule, turned,
               '"row_scale": "col_scale", "col_scale"', '"row_scale": "col_shift", "col_scale"'),
        Mutant("transpose: no operand is turned", rule, turned,
               "& {*axes}) > 1 for v", "& {*axes}) > 2 for v"),
        Mutant("transpose: the axes stay", rule, turned,
               "Pointwise(expr, axes[::-1])", "Pointwise(expr, axes)"),
        Mutant("transpose: rescaled sums", rule, turned,
               "if start or isinstance(results[value.port], Rescale):", "if start:", "cases"),
        Mutant("transpose: anything turns", rule, turned,
               'return f"{label(node)} has no transposed form"', "pass", "cases"),
        Mutant("transpose: the first result of a map", rule, turned,
               "output = op.body.outputs[port]", "output = op.body.outputs[0]"),
    )  # fmt: skip


def extensions() -> tuple[Mutant, ...]:
    """extend-map-over-copies."""
    rule, file = "ExtendMapOverCopies", "extend_map_over_copies"
    return (
        Mutant("over copies: nobody else reads it", rule, file,
               "_needed_by_the_map_alone(graph, pulled, position)\n                or ", "",
               "cases"),
        Mutant("over copies: a peeled map", rule, file,
               "or first_iteration_gone(graph, position)", "", "cases"),
        Mutant("over copies: a dim in use", rule, file,
               "cannot_be_taken_in(graph, at, dim)", '""'),
        Mutant("over copies: a result", rule, file,
               "if value.node in pulled and value in graph.output_values:", "if False:", "cases"),
        Mutant("over copies: meets no map", rule, file,
               "or _feeds_no_map_inside(graph, pulled, position)", "", "cases"),
        Mutant("over copies: what stands between stays", rule, "extension",
               "if graph.reaches(n, last)}", "if False}", "cases"),
    )  # fmt: skip


MUTANTS_OF_COPIES: tuple[Mutant, ...] = (*producers(), *transposes(), *extensions())
