"""The mutants of the paper's rules, as data: each must be caught, or the suite has a hole.

Some preconditions only give a better reason than the one behind them, as different dims do for
fuse-maps: no list over M is iterated over N. Golden cases, which hold reasons, kill those mutants.
Preconditions that no well-formed program can break are not listed: the type rules stand in for
them.
"""

from __future__ import annotations

from tests.mutants.mutate import Mutant

RIGHT = "if op.iterated[left.port] and not op.iterated[right.port]:"
SUMMED = 'body.nodes[1].op == Reduce(loop.dim, "+")'
RUNNING = 'loop.results == (Accumulate("+"),)'
ANY_RUNNING = "not isinstance(loop.results[0], Collect)"
ONE_DOT = (
    'if len(dots) != 1 or dots[0].op != Functional("dot") '
    "or loop.body.outputs[0].value != Value(0):"
)
SOME_DOT = 'if not dots or dots[0].op != Functional("dot"):'
VARYING, CONSTANT = "if op.iterated[vector.port]:", "if not op.iterated[block.port]:"
COLLECTED = "return op.results == (Collect(),) and not op.start"
ELSEWHERE = "used_elsewhere(graph, Value(position), consumer)"
PAIR, SIBLINGS = "(graph, producer, position)", "(graph, first, position)"


def rule_1() -> tuple[Mutant, ...]:
    """fuse-maps."""
    rule, file = "FuseMaps", "fuse_maps"
    return (
        Mutant("1 maps of different dims", rule, file, f"different_dims{PAIR}", '""', "cases"),
        Mutant("1 not item by item", rule, file, f"edge_not_item_by_item{PAIR}", '""'),
        Mutant("1 an accumulated result", rule, "legality",
               "if not isinstance(results[value.port], Collect):", "if False:", "cases"),
        Mutant("1 an indirect path", rule, file, f"indirect_path{PAIR}", '""'),
        Mutant("1 an operand confused", rule, file,
               "known[value] if value in known", "next(iter(known.values())) if value in known"),
        Mutant("1 reads the first result only", rule, file,
               'dict(zip(match.values("producer"), made, strict=True))',
               'dict.fromkeys(match.values("producer"), made[0])'),
        Mutant("1 results mixed up", rule, file,
               'old += match.values("consumer")', 'old = match.values("consumer") + old'),
        Mutant("1 the list computed twice", rule, file,
               "redirect_all(old, new)", "redirect_all(old[len(kept):], new[len(kept):])", "cases"),
        Mutant("1 groups lose their leads", rule, file,
               "moved_leads(second.results, len(kept))", "second.results", "cases"),
    )  # fmt: skip


def rule_2() -> tuple[Mutant, ...]:
    """fuse-siblings."""
    rule, file = "FuseSiblings", "fuse_siblings"
    return (
        Mutant("2 siblings of different dims", rule, file, f"different_dims{SIBLINGS}", '""'),
        Mutant("2 dependent siblings", rule, file, f"dependent{SIBLINGS}", '""'),
        Mutant("2 nothing shared", rule, file,
               "graph.readers_before(position)", "range(position)", "cases"),
        Mutant("2 the first twice", rule, file, "*joined.inline(nodes[1], ops[1], {})",
               "*made"),
        Mutant("2 groups lose their leads", rule, file,
               "moved_leads(ops[1].results, len(ops[0].results))", "ops[1].results", "cases"),
    )  # fmt: skip


def rule_3() -> tuple[Mutant, ...]:
    """fuse-reduction."""
    rule, file = "FuseReduction", "fuse_reduction"
    return (
        Mutant("3 always a sum", rule, file, "Accumulate(fold.monoid)", 'Accumulate("+")'),
        Mutant("3 folds the first result", rule, file,
               "op.body.outputs[reduction.operands[0].port]", "op.body.outputs[0]"),
        Mutant("3 the list is overwritten", rule, file,
               "outputs=(*op.body.outputs, folded)", "outputs=(folded, *op.body.outputs)"),
        Mutant("3 any list will do", rule, file,
               "isinstance(graph.nodes[source.node].op, Map)", "True"),
        Mutant("3 the list computed twice", rule, file,
               'redirect_all(match.values("map") + match.values("reduction"), new)',
               'redirect_all(match.values("reduction"), new[-1:])', "cases"),
    )  # fmt: skip


def matmuls(number: int, rule: str) -> tuple[Mutant, ...]:
    """The matmul, and the scale or shift before it, that rules 4 and 5 require."""
    return (
        Mutant(f"{number} the vector varies", rule, "patterns", VARYING, "if False:"),
        Mutant(f"{number} the block does not vary", rule, "patterns", CONSTANT, "if False:"),
        # The prototype's survivor: with coinciding dims it type-checked. Fresh dims forbid that.
        Mutant(f"{number} the right operand", rule, "patterns", RIGHT,
               f"left, right = (right, left) if op.iterated[left.port] else (left, right)\n"
               f"    {RIGHT}"),
        Mutant(f"{number} a maximum of dots", rule, "patterns", SUMMED,
               "isinstance(body.nodes[1].op, Reduce)"),
        Mutant(f"{number} a running maximum of dots", rule, "patterns", RUNNING, ANY_RUNNING),
        Mutant(f"{number} more than a dot", rule, "patterns", ONE_DOT, SOME_DOT),
        Mutant(f"{number} a sum of the results", rule, "patterns", COLLECTED,
               "return not op.start"),
        Mutant(f"{number} other readers", rule, "swap_scale_dot", ELSEWHERE, '""', "cases"),
    )  # fmt: skip


def rules_4_and_5() -> tuple[Mutant, ...]:
    """swap-scale-dot and swap-shift-dot."""
    shift = "swap_shift_dot"
    return (
        *matmuls(4, "SwapScaleDot"),
        *matmuls(5, "SwapShiftDot"),
        Mutant("4 shifts instead of scaling", "SwapScaleDot", "swap_scale_dot",
               'edit, match, "row_scale",', 'edit, match, "row_shift",'),
        Mutant("5 the largest row sum", "SwapShiftDot", shift,
               'Reduce(product.contraction, "+")', 'Reduce(product.contraction, "max")'),
        Mutant("5 forgets the product", "SwapShiftDot", shift,
               "(shifts, True), (unshifted, True)", "(shifts, True), (shifts, True)"),
    )  # fmt: skip


def rules_6_8_and_9() -> tuple[Mutant, ...]:
    """extend-map, duplicate-scale and fuse-elementwise."""
    extend, scale, unary = "extend_map", "duplicate_scale", "fuse_elementwise"
    return (
        Mutant("6 a result from elsewhere", "ExtendMap", extend,
               "if output.value.node != position:", "if False:", "cases"),
        Mutant("6 iterates a made list", "ExtendMap", extend,
               "if iterated and value.node >= 0:", "if False:", "cases"),
        Mutant("6 a dim in use", "ExtendMap", extend,
               "_not_all_taken_in(graph, position)", '""'),
        Mutant("8 one reader", "DuplicateScale", scale,
               "len(consumers) < 2", "len(consumers) < 1"),
        Mutant("8 a result of the program", "DuplicateScale", scale,
               "if made in graph.output_values:", "if False:", "cases"),
        Mutant("8 readers that are no matmuls", "DuplicateScale", scale,
               "if isinstance(found, str):", "if False:", "cases"),
        Mutant("8 the vector varies", "DuplicateScale", "patterns", VARYING, "if False:", "cases"),
        Mutant("9 several readers", "FuseElementwise", unary,
               "used_elsewhere(graph, value, position)", '""', "cases"),
        Mutant("9 operands confused", "FuseElementwise", unary,
               "Arg(len(operands) + at)", "Arg(at)"),
        Mutant("9 the second's operands confused", "FuseElementwise", unary,
               "args.append(Arg(len(operands)))", "args.append(Arg(0))"),
        Mutant("9 the first function is lost", "FuseElementwise", unary,
               "Elementwise(substitute(second.op.expr, args))", "second.op"),
    )  # fmt: skip


MUTANTS: tuple[Mutant, ...] = (
    *rule_1(),
    *rule_2(),
    *rule_3(),
    *rules_4_and_5(),
    *rules_6_8_and_9(),
)
