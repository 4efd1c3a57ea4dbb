"""Shrinks a program that shows a flaw to a small one that still shows it.

Every candidate is a smaller program made by one cut: the body of a map as a program of its own,
fewer results, a node replaced by an input or by one of its operands, one input less.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from blockbuster.errors import BlockbusterError
from blockbuster.ir.builder import Builder
from blockbuster.ir.graph import Graph, Output, Value
from blockbuster.ir.ops import Map
from blockbuster.ir.parse import parse
from blockbuster.ir.ports import with_inputs
from blockbuster.ir.verify import verify
from blockbuster.rules.derivation import splice
from blockbuster.testing.planted import named_apart

MOST_ATTEMPTS = 400


def smallest(graph: Graph, fails: Callable[[Graph], bool], attempts: int = MOST_ATTEMPTS) -> Graph:
    """A program no cut of which still ``fails``, or the best after so many attempts."""
    found = True
    while found:
        found = False
        for candidate in candidates(graph):
            if size(candidate) >= size(graph) or not is_sound(candidate):
                continue
            attempts -= 1
            if fails(candidate):
                graph, found = candidate, True
                break
            if attempts <= 0:
                return graph
    return graph


def size(graph: Graph) -> tuple[int, int]:
    """The size that shrinks: nodes, results and inputs at all levels; then the text."""
    parts = sum(len(g.nodes) + len(g.outputs) + len(g.inputs) for _, g in graph.walk())
    return parts, len(graph.show())


def is_sound(graph: Graph) -> bool:
    """True if the candidate is a well-formed program that prints and parses back."""
    try:
        verify(graph)
        return parse(graph.show()) == graph
    except BlockbusterError:
        return False


def candidates(graph: Graph) -> Iterator[Graph]:
    """Programs with one cut, the deepest cuts first."""
    for cut in (_bodies, _single_outputs, _promoted, _cut_nodes, _bypassed, _merged_operands):
        for candidate in cut(graph):
            if candidate.outputs and candidate.nodes:
                yield candidate


def program(graph: Graph) -> Graph:
    """``graph`` as a program: inputs that are read only, under names of their own."""
    read = {v for node in graph.nodes for v in node.operands} | graph.output_values
    kept = [port for port in range(len(graph.inputs)) if Value(-1, port) in read]
    builder = Builder()
    given = [graph.inputs[port] for port in kept]
    if any(i.view is None for i in given):
        given = named_apart(given)
    args = [builder.input(new.type, new.view, new.hint) for new in given]
    return builder.finish(*dict.fromkeys(builder.inline(with_inputs(graph, kept), args)))


def _bodies(graph: Graph) -> Iterator[Graph]:
    for path, level in graph.walk():
        if path:
            yield program(level)


def _with_outputs(graph: Graph, values: Sequence[Value]) -> Graph:
    return program(Builder(graph).finish(*map(Output, values)))


def _single_outputs(graph: Graph) -> Iterator[Graph]:
    values = [output.value for output in graph.outputs]
    if len(values) > 1:
        yield from (_with_outputs(graph, [value]) for value in values)
        for at in range(len(values)):
            yield _with_outputs(graph, values[:at] + values[at + 1 :])


def _promoted(graph: Graph) -> Iterator[Graph]:
    """What the node of a result reads becomes results instead."""
    values = [output.value for output in graph.outputs]
    for at, value in enumerate(values):
        if value.node >= 0:
            read = [v for v in graph.nodes[value.node].operands if v.node >= 0]
            if read:
                yield _with_outputs(graph, [*values[:at], *read, *values[at + 1 :]])


def _cut_nodes(graph: Graph) -> Iterator[Graph]:
    """A node becomes inputs."""
    for position in reversed(range(len(graph.nodes))):
        node = graph.nodes[position]
        builder = Builder(graph)
        for port, type in enumerate(node.types):
            hint = node.hints[port] if port < len(node.hints) else ""
            builder.redirect(Value(position, port), builder.input(type, hint=hint))
        yield program(builder.finish())


def _bypassed(graph: Graph) -> Iterator[Graph]:
    """A node, at any level, is replaced by one of its operands of the same type."""
    for path, level in graph.walk():
        for position, node in enumerate(level.nodes):
            for operand in dict.fromkeys(node.operands):
                if node.types != (level.type_of(operand),):
                    continue
                builder = Builder(level)
                builder.redirect(Value(position), operand)
                yield program(splice(graph, path, builder.finish())[0])


def _merged_operands(graph: Graph) -> Iterator[Graph]:
    """A map of the top level loses one of its operands: its body reads another of that type."""
    for position, op in graph.of_type(Map):
        kinds = list(zip((i.type for i in op.body.inputs), op.iterated, strict=True))
        for port, kind in enumerate(kinds):
            first = kinds.index(kind)
            if first == port:
                continue
            body = Builder(op.body)
            body.redirect(Value(-1, port), Value(-1, first))
            builder = Builder(graph)
            builder.replace_op(position, replace(op, body=body.finish()))
            yield program(builder.finish())
