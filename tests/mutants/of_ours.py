"""The mutants of our own rules and of rule 7, as data: see ``of_the_paper.py``."""

from __future__ import annotations

from tests.mutants.mutate import Mutant
from tests.mutants.of_copies import MUTANTS_OF_COPIES
from tests.mutants.of_factors import MUTANTS_OF_FACTORS
from tests.mutants.of_magnitudes import MUTANTS_OF_MAGNITUDES
from tests.mutants.of_shifts import MUTANTS_OF_SHIFTS

OUTPUTS = "if value in op.body.output_values:"
READERS = 'if body.nodes[reader].op != Functional("dot"):'
SUMMED = 'op.results[port] != Accumulate("+") for'
NOT_FOLDED = "not isinstance(op.results[port], Accumulate) for"
LOST = "first_iteration_gone"
SITE = "(graph, position)"


def local_linearity() -> tuple[Mutant, ...]:
    """local-linearity."""
    rule, file = "LocalLinearity", "local_linearity"
    return (
        Mutant("linearity: the vector varies", rule, file,
               "vector_varies(op, inner)\n            or", ""),
        Mutant("linearity: the block leaves itself", rule, "legality", OUTPUTS, "if False:"),
        Mutant("linearity: other readers", rule, "legality", READERS, "if False:"),
        Mutant("linearity: the right operand", rule, "legality", "if index != 0:", "if False:"),
        Mutant("linearity: a maximum", rule, "legality", SUMMED, NOT_FOLDED),
        Mutant("linearity: the dot is read", rule, "legality", "body.uses.get(made) or any(",
               "any("),
        Mutant("linearity: a peeled map", rule, file,
               f"{LOST}{SITE} or self.stays", "self.stays"),
        Mutant("linearity: the largest of the row", rule, file,
               'body.add(Functional("row_sum"), right', 'body.add(Functional("row_max"), right'),
        Mutant("linearity: forgets the product", rule, file,
               'Functional("add"), shift, total', 'Functional("add"), shift, shift'),
    )  # fmt: skip


def ancestors() -> tuple[Mutant, ...]:
    """extend-map-over-ancestors."""
    rule, file = "ExtendMapOverAncestors", "extend_map_over_ancestors"
    return (
        Mutant("ancestors: a result", rule, file,
               "if value in graph.output_values:", "if False:", "cases"),
        Mutant("ancestors: read elsewhere", rule, file,
               "if reader not in users:", "if False:", "cases"),
        Mutant("ancestors: a dim in use", rule, file,
               "or cannot_be_taken_in(graph, other, dim)", ""),
    )  # fmt: skip


def columns() -> tuple[Mutant, ...]:
    """fold-columns."""
    rule, file = "FoldColumns", "fold_columns"
    return (
        Mutant("columns: nothing waits", rule, file,
               "_hides_no_row_operator(op, inner)\n            or ", "", "cases"),
        Mutant("columns: other readers", rule, "legality", READERS, "if False:", "cases"),
        Mutant("columns: a maximum", rule, "legality", SUMMED, NOT_FOLDED, "cases"),
        Mutant("columns: the scale is lost", rule, file,
               "body.set_operand(reader, 1, scaled)", "body.set_operand(reader, 1, right)"),
        Mutant("columns: the weights are lost", rule, file,
               'Functional("row_sum"), scaled', 'Functional("row_sum"), right'),
    )  # fmt: skip


def peeled() -> tuple[Mutant, ...]:
    """peel-first-iteration, and the paper's rules on maps that were peeled."""
    rule, file = "PeelFirstIteration", "peel_first_iteration"
    return (
        Mutant("7 peels again", rule, file, f"{LOST}{SITE} or", ""),
        Mutant("7 the extent does not show", rule, file,
               f"or first_extent_unseen{SITE}", "", "cases"),
        Mutant("7 the second block too", rule, file,
               "replace(op, start=1)", "replace(op, start=2)"),
        Mutant("7 forgets which comes first", rule, file, "*firsts, hints", "*firsts[::-1], hints"),
        Mutant("1 a peeled map", "FuseMaps", "fuse_maps",
               f"{LOST}(graph, producer, position)", '""'),
        Mutant("2 a peeled map", "FuseSiblings", "fuse_siblings",
               f"{LOST}(graph, first, position)", '""'),
        Mutant("3 a peeled map", "FuseReduction", "fuse_reduction",
               f"{LOST}(graph, source.node)", '""'),
    )  # fmt: skip


def apart() -> tuple[Mutant, ...]:
    """materialize."""
    rule, found = "Materialize", "statistics"
    return (
        Mutant("materialize: a peeled map", rule, found,
               "_inside_a_peeled_map(graph, path)\n        or", "", "cases"),
        Mutant("materialize: a group", rule, found, "or in_a_group(part)", "", "cases"),
        Mutant("materialize: a matmul twice", rule, found, "or holds_matmul(part)", "", "cases"),
        Mutant("materialize: an exponential", rule, found,
               "or holds_exponential(part)", "", "cases"),
        Mutant("materialize: a block out of sight", rule, found,
               "or spread_over_blocks(graph, path, part)", "", "cases"),
        Mutant("materialize: nothing gets smaller", rule, found,
               "or no_smaller(graph, part)", "", "cases"),
        Mutant("materialize: again and again", rule, found,
               "already_stored(graph, path, part) if part", '"" if part'),
        Mutant("materialize: folded is stored", rule, found, "if lists and all", "if all", "cases"),
        Mutant("materialize: every sum is stored", rule, found,
               "return elsewhere or value in level.output_values", "return True", "cases"),
        Mutant("materialize: results are not needed", rule, found,
               "return elsewhere or value in level.output_values", "return elsewhere", "cases"),
        Mutant("materialize: lists are sums", rule, found,
               "return not isinstance(node.op.results[port], Collect)", "return True", "cases"),
        Mutant("materialize: the first iteration's", rule, found,
               "return any(map_of(node)", "return all(map_of(node)"),
        Mutant("materialize: values confused", rule, "materialize",
               "edit.redirect_all(values, given)", "edit.redirect_all(values, given[::-1])"),
        Mutant("materialize: another result of the node", rule, "materialize",
               "Value(node, int(port or 0))", "Value(node, 0)", "cases"),
        *operands(rule),
    )  # fmt: skip


def operands(rule: str) -> tuple[Mutant, ...]:
    """materialize, where a loop computes its operands again."""
    file = "operands"
    return (
        Mutant("materialize: an operand of any slice", rule, file,
               "why_not_apart(graph, path, part)\n        or ", "", "cases"),
        Mutant("materialize: sums of blocks", rule, file,
               "or sums_a_block(graph, path, value, part)", "", "cases"),
        Mutant("materialize: sums of what is no block", rule, file,
               "if whole.axes[-1] in part.rate:", "if True:", "cases"),
        Mutant("materialize: rows and columns combined", rule, file,
               "or larger(graph, part)", "", "cases"),
        Mutant("materialize: items as they come", rule, file,
               "if not computes(own):", "if False:", "cases"),
        Mutant("materialize: readers change as often", rule, file,
               "theirs and not ours for", "theirs for", "cases"),
        Mutant("materialize: all readers change more often", rule, file,
               "any(theirs", "all(theirs", "cases"),
        Mutant("materialize: operands of all rates", rule, file,
               "if parts[v].rate == rate)", "if True)", "cases"),
        Mutant("materialize: refusals twice", rule, file, "if refusal not in told", "if True",
               "cases"),
    )  # fmt: skip


def remade() -> tuple[Mutant, ...]:
    """remake."""
    rule, file = "Remake", "making"
    return (
        Mutant("remake: an accumulated value", rule, file,
               "if not isinstance(op.results[port], Collect) or op.start:", "if op.start:",
               "cases"),
        Mutant("remake: dots", rule, file,
               "scalar_of(node) is not None or isinstance(node.op, Cast)", "True", "cases"),
        Mutant("remake: an exponential", rule, file, "if made.exponential:", "if False:", "cases"),
        Mutant("remake: any work", rule, file, "if made.work > MOST_WORK:", "if False:", "cases"),
        Mutant("remake: less work", rule, file, "if made.work > MOST_WORK:",
               "if made.work >= MOST_WORK:", "cases"),
        Mutant("remake: every function is plain", rule, file,
               "1 if fn in PLAIN else OTHER_WORK", "1", "cases"),
        Mutant("remake: two lists for one", rule, file, "if len(large) > 1:", "if False:", "cases"),
        Mutant("remake: a list in every iteration", rule, file,
               "if large and read.again:", "if False:", "cases"),
        Mutant("remake: rounded lists", rule, file,
               "if large and made.rounds:", "if False:", "cases"),
        Mutant("remake: rounded masks, too", rule, file,
               "if large and made.rounds:", "if made.rounds:", "cases"),
        Mutant("remake: vectors count", rule, file,
               "if few_vectors(graph, value, made, read):", "if False:", "cases"),
        Mutant("remake: vectors beside nothing", rule, file,
               "return beside and len(", "return len(", "cases"),
        *remade_where_it_is_read(rule),
    )  # fmt: skip


def remade_where_it_is_read(rule: str) -> tuple[Mutant, ...]:
    """remake: what its readers must do, and what is put into them."""
    file, joined = "making", "fuse_maps"
    return (
        Mutant("remake: the whole list leaves", rule, file,
               "if value in body.output_values:\n        return f", "if False:\n        return f",
               "cases"),
        Mutant("remake: stored in every iteration", rule, file,
               "if isinstance(node.op, Reduce) and", "if not isinstance(node.op, Map) or", "cases"),
        Mutant("remake: no list is folded", rule, file,
               "if isinstance(node.op, Reduce) and", "if False and", "cases"),
        Mutant("remake: a dropped axis", rule, file,
               "if dim in graph.type_of(operand).axes:", "if False:", "cases"),
        Mutant("remake: a peeled reader", rule, "remake",
               "reason = first_iteration_gone(graph, reader)", 'reason = ""', "cases"),
        Mutant("remake: another reader keeps it", rule, "remake",
               "reason = _not_here(graph, value, made, also)", 'reason = ""', "cases"),
        Mutant("remake: a result beside its source", rule, "remake",
               "if value in graph.output_values and large[0].node >= 0:", "if False:", "cases"),
        Mutant("remake: results are never made again", rule, "remake",
               "if value in graph.output_values and large[0].node >= 0:",
               "if value in graph.output_values:", "cases"),
        Mutant("remake: another result", rule, joined,
               "self.inline(node, op, {})[value.port]", "self.inline(node, op, {})[0]"),
        Mutant("remake: another list", rule, joined,
               "origin=node.origin)[value.port]", "origin=node.origin)[-1]"),
        Mutant("remake: operands confused", rule, joined, "self._body.add(op, *args,",
               "self._body.add(op, *args[::-1],"),
    )  # fmt: skip


MUTANTS_OF_OURS: tuple[Mutant, ...] = (
    *local_linearity(),
    *ancestors(),
    *columns(),
    *MUTANTS_OF_FACTORS,
    *peeled(),
    *apart(),
    *remade(),
    *MUTANTS_OF_COPIES,
    *MUTANTS_OF_MAGNITUDES,
    *MUTANTS_OF_SHIFTS,
)
