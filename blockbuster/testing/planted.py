"""Random programs with a planted site of a given rule.

A site is a small program. Its operands are inputs, or made by other nodes; its results are read by
others; one input may have another reader, or two be one array; all of it may stand inside a map,
over a dim that its items have or over a batch dim; a random program may stand beside it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random

from blockbuster.ir.builder import Builder
from blockbuster.ir.expr import Arg, call
from blockbuster.ir.graph import Graph, Index, Input, Read, Value
from blockbuster.ir.ops import Collect, Elementwise, Map
from blockbuster.ir.parse import parse
from blockbuster.ir.types import Dim, Type
from blockbuster.testing.programs import BlockPrograms
from blockbuster.testing.terms import add_map

BATCH = "B"
FUNCTIONS = (
    call("mul", Arg(0), 2), call("add", Arg(0), 1), call("tanh", Arg(0)), call("neg", Arg(0)),
    call("relu", Arg(0)),
)  # fmt: skip


def planted(site: str, random: Random) -> Graph:
    """A random program with the nodes of ``site``, a program in text form, in it."""
    square = random.random() < 0.2
    graph = parse(re.sub(r"\bN\b", "M'", site) if square else site)
    planting = _Planting(random, BATCH if BATCH not in site else f"{BATCH}atch")
    if random.random() < 0.5:
        graph = planting.inside_a_map(graph)
    return planting.surrounded(graph, share=square)


class _Planting:
    def __init__(self, random: Random, batch: Dim) -> None:
        self.random = random
        self.batch = batch

    def inside_a_map(self, graph: Graph) -> Graph:
        """``graph`` as the body of a map over a dim of its items, or over a batch dim."""
        random = self.random
        dims = [d for d in _free_dims(graph) if random.random() < 0.7]
        dim = random.choice(dims) if dims else self.batch
        builder, body = Builder(), Builder()
        operands, iterated, args = [], [], []
        for position, given in enumerate(graph.inputs):
            batched = dim == self.batch and (position == 0 or random.random() < 0.6)
            walks = dim in given.type.axes or batched
            type = given.type.listed(dim) if walks else given.type
            operands.append(builder.input(type, None, given.hint))
            iterated.append(walks)
            args.append(body.input(given.type, hint=given.hint))
        inner = body.finish(*body.inline(graph, args))
        op = Map(dim, inner, tuple(iterated), (Collect(),) * len(inner.outputs))
        return builder.finish(*builder.add(op, *operands))

    def surrounded(self, graph: Graph, *, share: bool) -> Graph:
        """``graph`` among other nodes; with ``share`` it reads alike arrays from one source."""
        random, builder = self.random, Builder()
        extra: list[Value] = []
        known: list[Value] = []
        if random.random() < 0.25:
            beside = BlockPrograms(random, whole=False).graph()
            given = [builder.input(i.type, i.view, i.hint) for i in beside.inputs]
            extra += builder.inline(beside, given)
            read = zip(given, beside.inputs, strict=True)
            known += [v for v, i in read if not isinstance(i.view, Index)] + extra
        taken = [_name(i) for i in builder.finish(*extra).inputs] if extra else []
        args = []
        for given_input in named_apart(graph.inputs, taken, share=share):
            alike = [v for v in known if builder.type_of(v) == given_input.type]
            if alike and random.random() < 0.7:
                args.append(random.choice(alike))
                continue
            value = builder.input(given_input.type, given_input.view, given_input.hint)
            known.append(value)
            made = random.random() < 0.3
            args.append(add_unary(builder, value, random) if made else value)
        results = list(builder.inline(graph, args))
        if random.random() < 0.2:
            extra.append(add_unary(builder, random.choice(args), random))
        for position, value in enumerate(results):
            if random.random() < 0.3:
                extra += [value] * (random.random() < 0.3)
                results[position] = add_unary(builder, value, random)
        return builder.finish(*dict.fromkeys((*results, *extra)))


def add_unary(builder: Builder, value: Value, random: Random) -> Value:
    """An elementwise function of every item of ``value``."""
    expr = random.choice(FUNCTIONS)

    def items(at: Builder, inner: Value) -> Value:
        type = at.type_of(inner)
        if type.buffered:
            return add_map(at, type.lists[0], [inner], [], items)
        return at.add(Elementwise(expr), inner)[0]

    return items(builder, value)


def named_apart(
    inputs: Sequence[Input], taken: Sequence[str] = (), *, share: bool = False
) -> list[Input]:
    """``inputs`` as whole arrays with names of their own; perhaps one array for two views of it."""
    names, found = list(taken), list[Input]()
    shapes: dict[tuple[str, ...], str] = {}
    for given in inputs:
        type, name = given.type, given.hint or "X"
        while name in names:
            name += "_"
        if sorted(type.lists) == sorted(type.axes):
            shape = tuple(d.rstrip("'") for d in type.axes)
            source = shapes.setdefault(shape, name) if share else name
            found.append(Input(type, Read(source, type.axes), name))
        else:
            found.append(Input(type, None, name))
        names.append(name)
    return found


def _name(given: Input) -> str:
    return given.view.source if isinstance(given.view, Read) else given.hint


def _free_dims(graph: Graph) -> list[Dim]:
    """Dims that every result and some input has as an axis, and no list: rows, in most sites."""
    types = [i.type for i in graph.inputs] + [t for n in graph.nodes for t in n.types]
    ends = [graph.type_of(o.value) for o in graph.outputs]
    shown = dict.fromkeys(d for t in types for d in t.axes)
    return [d for d in shown if all(d in t.axes for t in ends) and _unlisted(d, types)]


def _unlisted(dim: Dim, types: Sequence[Type]) -> bool:
    return all(dim not in t.lists for t in types)
