"""Pairs of programs: equal by construction, or made different by one edit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random

import numpy as np

from blockbuster.errors import BlockbusterError
from blockbuster.interp.constants import constants_of
from blockbuster.interp.semantics import Float64
from blockbuster.interp.setting import settings
from blockbuster.interp.tiers import CHARACTERS, FREE, ORDERED
from blockbuster.interp.trials import Trials, Unsettled
from blockbuster.ir.builder import Builder
from blockbuster.ir.expr import FUNCTIONS, Call, Const, Expr
from blockbuster.ir.graph import Graph, Value
from blockbuster.ir.ops import (
    FUNCTIONALS,
    MONOIDS,
    Accumulate,
    Elementwise,
    Functional,
    Map,
    Pointwise,
    Reduce,
)
from blockbuster.ir.verify import verify
from blockbuster.rules import RULES, fuse, safe
from blockbuster.rules.derivation import splice
from blockbuster.testing.generators import GENERATORS

Pair = tuple[str, Graph, Graph]
TIERS = {"A": FREE, "B": CHARACTERS, "ordered": ORDERED}


# equal pairs ---------------------------------------------------------------------------


def equal_pair(random: Random) -> Pair:
    """A random program and what the rules, some of the rules, or the safety pass made of it."""
    kind = random.choice(("fused", "some rules", "safe", "fused and safe"))
    graph = GENERATORS[random.choice(list(GENERATORS))](random)
    while kind.endswith("safe") and safe(graph) == graph:
        graph = GENERATORS[random.choice(list(GENERATORS))](random)
    if kind.startswith("fused"):
        made = fuse(graph).final
    elif kind == "some rules":
        made = some_rules(graph, random)
    else:
        made = graph
    return kind, graph, safe(made) if kind.endswith("safe") else made


def some_rules(graph: Graph, random: Random, steps: int = 6) -> Graph:
    """A few random rules at random sites."""
    for _ in range(steps):
        sites = [
            (path, match)
            for path, level in graph.walk()
            for rule in RULES
            for match in rule.matches(level)
        ]
        if not sites:
            return graph
        path, match = random.choice(sites)
        graph, _ = splice(graph, path, match.rule.apply(match))
    return graph


# different pairs -----------------------------------------------------------------------


def different_pair(random: Random, *, safely: bool = False) -> Pair:
    """A random program and a version with one edit, which float64 tells apart.

    ``safely``: the safe form of a program that the safety pass changes.
    """
    while True:
        graph = GENERATORS[random.choice(list(GENERATORS))](random)
        if random.random() < 0.4:
            graph = fuse(graph).final
        if safely:
            graph, unsafe = safe(graph), graph
            if graph == unsafe:
                continue
        found = list(edits(graph, random))
        random.shuffle(found)
        for name, edit in found[:6]:
            try:
                made = edit()
                verify(made)
            except (BlockbusterError, AssertionError):
                continue
            if float64_differs(graph, made, random):
                return name, graph, made


def told_apart(count: int, *, safely: bool) -> dict[str, Counter[str]]:
    """What each tier alone says of so many different pairs, in 8 trials."""
    verdicts = {tier: Counter(differ=0, agree=0, unsettled=0) for tier in TIERS}
    for seed in range(count):
        _, a, b = different_pair(Random(f"apart {seed}"), safely=safely)
        for name, tier in TIERS.items():
            try:
                outcome = Trials(8, seed, tier, constants_of(a, b)).outcome(a, b)
                verdict = "agree" if outcome.difference is None else "differ"
            except Unsettled:
                verdict = "unsettled"
            verdicts[name][verdict] += 1
    return verdicts


def edits(graph: Graph, random: Random) -> Iterator[tuple[str, Callable[[], Graph]]]:
    """Edits of single nodes, at every level; some of them do not type-check."""
    for path, level in graph.walk():
        for position in range(len(level.nodes)):
            for name, change in node_edits(level, position, random):
                yield name, lambda p=path, at=level, c=change: _edited(graph, p, at, c)


def _edited(graph: Graph, path, level: Graph, change: Callable[[Builder], None]) -> Graph:
    builder = Builder(level)
    change(builder)
    return splice(graph, path, builder.finish())[0]


def node_edits(level: Graph, position: int, random: Random):
    """Edits of one node: another operator, other operands, or none of it."""
    node, op = level.nodes[position], level.nodes[position].op
    if isinstance(op, Elementwise | Pointwise):
        for expr in random.sample(found := [*expr_edits(op.expr)], min(3, len(found))):
            yield "expression", lambda b, e=expr: b.replace_op(position, replace(op, expr=e))
    elif isinstance(op, Functional):
        others = [n for n, (arity, _) in FUNCTIONALS.items() if arity == len(node.operands)]
        made = Functional(random.choice(others))
        yield "operator", lambda b: b.replace_op(position, made)
    elif isinstance(op, Reduce):
        monoid = random.choice(MONOIDS)
        yield "monoid", lambda b: b.replace_op(position, Reduce(op.dim, monoid))
    elif isinstance(op, Map):
        for port, result in enumerate(op.results):
            if isinstance(result, Accumulate):
                results = list(op.results)
                results[port] = Accumulate(random.choice(MONOIDS))
                changed = replace(op, results=tuple(results))
                yield "monoid", lambda b, o=changed: b.replace_op(position, o)
    if len(node.operands) > 1:
        yield "swapped", lambda b: b.replace_op(position, op, node.operands[::-1])
    for index, operand in enumerate(node.operands):
        type = level.type_of(operand)
        alike = [v for v in values(level, position) if level.type_of(v) == type and v != operand]
        if alike:
            other = random.choice(alike)
            yield "wiring", lambda b, i=index, v=other: b.set_operand(position, i, v)
        if len(node.types) == 1 and node.types[0] == type:
            yield "dropped", lambda b, v=operand: b.redirect(Value(position), v)


def values(level: Graph, before: int) -> Iterator[Value]:
    """The values that node ``before`` may read."""
    yield from (Value(-1, port) for port in range(len(level.inputs)))
    for position in range(before):
        yield from (Value(position, port) for port in range(len(level.nodes[position].types)))


def expr_edits(expr: Expr) -> Iterator[Expr]:
    """The expression with one function, constant or argument changed."""
    if isinstance(expr, Const):
        yield Const(expr.value + 1)
        yield Const(-expr.value)
    if isinstance(expr, Call):
        yield from (
            Call(fn, expr.args)
            for fn, arity in FUNCTIONS.items()
            if arity == len(expr.args) and fn != expr.fn
        )
        if len(expr.args) == 2:
            yield Call(expr.fn, expr.args[::-1])
        for at, arg in enumerate(expr.args):
            yield arg
            for changed in expr_edits(arg):
                yield Call(expr.fn, (*expr.args[:at], changed, *expr.args[at + 1 :]))


def float64_differs(a: Graph, b: Graph, random: Random) -> bool:
    """True if float64 values differ clearly, with a judgement of its own."""
    if a == b:
        return False
    numbers = np.random.default_rng(random.randrange(2**32))
    for setting in settings(a, b, 4, numbers):
        inputs = {n: numbers.uniform(-2, 2, s) for n, s in setting.shapes(a).items()}
        left, right = setting.run(a, inputs, Float64), setting.run(b, inputs, Float64)
        for name, x in left.items():
            y = right[name]
            finite = np.isfinite(x) & np.isfinite(y) & (np.abs(x) < 1e6) & (np.abs(y) < 1e6)
            if (np.abs(x - y)[finite] > 1e-4 * (1 + np.abs(x[finite]))).any():
                return True
    return False
