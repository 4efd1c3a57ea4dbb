"""Well-formedness of graphs: one small function per invariant, each returning reasons in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain

from blockbuster.errors import VerifyError, a_kind, message
from blockbuster.ir.expr import arguments
from blockbuster.ir.graph import Graph, Index, Node, Read, Value
from blockbuster.ir.level import Level
from blockbuster.ir.ops import MONOIDS, Collect, Map, Misc, Relabel, Rescale, Scan
from blockbuster.ir.show import Printer, factor_names
from blockbuster.ir.types import Dim, Type, whole
from blockbuster.ir.views import dims_among


@dataclass(frozen=True)
class Place:
    """A node within its graph."""

    graph: Graph | Level
    position: int

    @property
    def node(self) -> Node:
        """The node itself."""
        return self.graph.nodes[self.position]


NodeCheck = Callable[[Place], Iterator[str]]


INSTEAD = {
    "ArrayProgram": "bb.lower(program) makes one",
    "Derivation": "take derivation.final, or one of derivation.snapshots",
    "str": "bb.parse(text) makes one",
}


@dataclass
class Known:
    """Values that need no second check, by ids: graphs never change."""

    levels: dict[int, Graph] = field(default_factory=dict)
    """Levels that are well-formed with all inside them."""
    nodes: dict[int, Graph] = field(default_factory=dict)
    """Levels that are well-formed but for the bodies of maps."""


def check_graph(value: object) -> None:
    """Raise TypeError where ``value`` is no graph, with what makes one of it."""
    if isinstance(value, Graph):
        return
    hint = INSTEAD.get(
        type(value).__name__, 'bb.lower(bb.trace(fn, x="M N")) makes one of a function'
    )
    raise TypeError(message(f"expected a block program, got {a_kind(value)}", hint=hint))


def verify(graph: Graph, known: Known | None = None) -> None:
    """Check every invariant; raises VerifyError, with a listing window and the node's origin.

    Nodes that are ``known`` to be well-formed are not checked again; newly checked ones are added.
    Raises TypeError for an argument that is not a graph.
    """
    check_graph(graph)
    known = Known() if known is None else known
    if id(graph) not in known.nodes:
        for reason in chain(_missing_outputs(graph), _interface(graph)):
            raise VerifyError(message(reason))
    levels = [*graph.walk(known.levels)]
    for path, level in levels:
        if id(level) in known.nodes:
            continue
        for position, node in enumerate(level.nodes):
            for check in NODE_CHECKS:
                for reason in check(Place(level, position)):
                    raise VerifyError(_explained(graph, path, position, node, reason))
        for reason in _canonical(level):
            raise VerifyError(message(reason))
        for reason in _far_scans(graph, path, level):
            raise VerifyError(message(reason, listing=graph.show()))
    for _, level in reversed(levels):  # inner ones first, whose loops the outer ones then know
        if any(op.dim in op.body.loops for _, op in level.of_type(Map)):
            raise VerifyError(message(next(_nested_dims(graph, ())), listing=graph.show()))
    known.levels |= {id(level): level for _, level in levels}
    known.nodes |= {id(level): level for _, level in levels}


def verify_nodes(graph: Level, keys: Iterable[int]) -> Iterator[str]:
    """The faults of some nodes of a level, without the bodies of maps."""
    for key in keys:
        for check in NODE_CHECKS[1:]:  # but operands_come_before: keys are not positions
            yield from check(Place(graph, key))


def _explained(graph: Graph, path: tuple[int, ...], position: int, node: Node, reason: str) -> str:
    lines = node.origin.lines()
    origin = f"made by {node.origin.rule or 'the program'}"
    if lines:
        origin += f" ({', '.join(map(str, lines))})"
    printer = Printer(types=True)
    try:
        listing = printer.print(graph)
    except (IndexError, KeyError, ValueError):
        return message(reason, origin=origin)  # a graph may be too broken to be printed
    return message(reason, listing=listing, mark=printer.line_of[path, position], origin=origin)


def _exists(graph: Graph | Level, value: Value, before: int) -> bool:
    """True if ``value`` is an input, or a result of a node before position ``before``."""
    if value.node == -1:
        return 0 <= value.port < len(graph.inputs)
    return 0 <= value.node < before and 0 <= value.port < len(graph.nodes[value.node].types)


def _missing_outputs(graph: Graph) -> Iterator[str]:
    """Outputs are values of the graph."""
    nodes, count = graph.nodes, len(graph.nodes)
    for position, output in enumerate(graph.outputs):
        node, port = output.value
        if 0 <= node < count and 0 <= port < len(nodes[node].types):
            continue
        if not _exists(graph, output.value, count):
            yield f"output {position} is {output.value}, which the graph does not have"


def operands_come_before(place: Place) -> Iterator[str]:
    """Operands are results of earlier nodes, or inputs."""
    for index, value in enumerate(place.node.operands):
        if not _exists(place.graph, value, place.position):
            at = place.position
            yield f"operand {index} reads {value}, which does not come before node {at}"


def types_are_stated_right(place: Place) -> Iterator[str]:
    """The stored result types are those the operator gives for its operands."""
    graph, node = place.graph, place.node
    try:
        types = node.op.result_types(graph.types_of(node.operands))
    except VerifyError as error:
        yield str(error)
        return
    if types != node.types:
        yield f"the results are stated as {_shown(node.types)}, the operator gives {_shown(types)}"


def no_dim_twice(place: Place) -> Iterator[str]:
    """A dim never occurs twice among the lists, or twice among the axes, of a type."""
    node = place.node
    for type in {id(type): type for type in node.types}.values():
        if len(set(type.lists)) < len(type.lists) or len(set(type.axes)) < len(type.axes):
            yield f"the type {type} repeats a dim: read one side through a relabeled view"


def dims_have_names(place: Place) -> Iterator[str]:
    """Operators that bring dims of their own into a program give them names."""
    if isinstance(place.node.op, Misc | Relabel):
        for type in place.node.types:
            yield from _no_names((*type.lists, *type.axes))


def _no_names(words: Iterable[str]) -> Iterator[str]:
    """Names are identifiers, and those of dims may carry primes: so every program parses back."""
    for word in words:
        if not word.rstrip("'").isidentifier():
            yield f"{word!r} is no name: write letters, digits and _"


def map_ports_fit_the_body(place: Place) -> Iterator[str]:
    """Iterated operands are lists over the map's dim; body inputs have the types of what enters."""
    graph, node = place.graph, place.node
    op = node.op
    if not isinstance(op, Map):
        return
    entering = op.entering(node.operands)
    if not len(op.body.inputs) == len(op.iterated) == len(entering):
        yield f"a map of {len(entering)} operands has a body of {len(op.body.inputs)} inputs"
        return
    ports = zip(graph.types_of(entering), op.iterated, op.body.inputs, strict=True)
    for index, (type, iterated, given) in enumerate(ports):
        if iterated and type.lists[:1] != (op.dim,):
            yield f"operand {index} is iterated over {op.dim} but has type {type}"
        elif type.axes != given.type.axes or type.lists[iterated:] != given.type.lists:
            yield f"operand {index} of type {type} enters the body as {given.type}"
        elif not iterated and (op.dim in type.axes or op.dim in type.lists):
            yield f"operand {index} of type {type} is passed whole into a map over {op.dim}"
        if given.view is not None:
            yield f"input {index} of the body has a view: only a program's inputs have"


def first_values_fit_the_results(place: Place) -> Iterator[str]:
    """A map that starts at 1 has the first value of each result, of the type the body gives."""
    graph, node = place.graph, place.node
    op = node.op
    if not isinstance(op, Map):
        return
    if op.start not in (0, 1):
        yield f"a map starts at {op.start}: only its first iteration can be peeled off"
    firsts = op.first_values(node.operands)
    if len(firsts) != (len(op.results) if op.start else 0):
        yield f"a map that starts at {op.start} has {len(firsts)} first values"
        return
    for port, (value, output) in enumerate(zip(firsts, op.body.outputs, strict=False)):
        given, made = graph.type_of(value), op.body.type_of(output.value)
        if given != made:
            yield f"the first value of result {port} has type {given}, the others {made}"


def map_results_fit_the_body(place: Place) -> Iterator[str]:
    """Accumulated results are local and no longer carry the map's dim."""
    node = place.node
    op = node.op
    if not isinstance(op, Map):
        return
    if len(op.results) != len(op.body.outputs):
        yield f"the map has {len(op.results)} results and a body of {len(op.body.outputs)} outputs"
        return
    missing = [*_missing_outputs(op.body)]
    if missing:
        yield f"the body is broken: {missing[0]}"
        return
    for port, (output, result) in enumerate(zip(op.body.outputs, op.results, strict=True)):
        if isinstance(result, Collect):
            continue
        type = op.body.type_of(output.value)
        if result.monoid not in MONOIDS:
            yield f"result {port} is accumulated with the unknown monoid {result.monoid!r}"
        if type.buffered:
            yield f"result {port} accumulates a list of type {type}: accumulators are local"
        if op.dim in type.axes:
            yield f"result {port} of type {type} is accumulated over {op.dim} but carries that axis"


def scans_go_one_way(place: Place) -> Iterator[str]:
    """A map scans its dim in one direction, from its first iteration on."""
    op = place.node.op
    if not isinstance(op, Map) or not op.scans:
        return
    if len({scan.back for scan in op.scans}) > 1:
        yield f"the map over {op.dim} scans it in both directions"
    if op.start:
        yield f"the map over {op.dim} starts at {op.start}, but scans from the first iteration on"


def groups_are_well_formed(place: Place) -> Iterator[str]:
    """The leads of a group accumulate, come first, and their axes are among the member's."""
    node = place.node
    op = node.op
    if not isinstance(op, Map):
        return
    for port, result in enumerate(op.results):
        if not isinstance(result, Rescale):
            continue
        if not result.leads:
            yield f"result {port} is rescaled by nothing: accumulate it"
        member = op.body.type_of(op.body.outputs[port].value)
        for at in result.leads:
            if not 0 <= at < port or isinstance(op.results[at], Collect):
                yield f"result {port} is rescaled by {at}, which is no earlier accumulator"
                continue
            lead = op.body.type_of(op.body.outputs[at].value)
            if not set(lead.axes) <= set(member.axes):
                yield f"result {port} of type {member} is rescaled by a lead of type {lead}"
        names = factor_names(len(result.leads))
        if not {*arguments(result.factor)} <= {*range(len(names))}:
            yield f"the factor of result {port} reads more than {', '.join(names)}"


NODE_CHECKS: tuple[NodeCheck, ...] = (
    operands_come_before,
    map_ports_fit_the_body,
    first_values_fit_the_results,
    map_results_fit_the_body,
    groups_are_well_formed,
    scans_go_one_way,
    types_are_stated_right,
    no_dim_twice,
    dims_have_names,
)


def _interface(graph: Graph) -> Iterator[str]:
    """Inputs read each dim of their type once; outputs exist and fill the dims of their value."""
    if not graph.outputs:
        yield "a program returns something, and this one has no outputs"
    yield from _no_names(output.name for output in graph.outputs if output.name)
    for position, given in enumerate(graph.inputs):
        name = given.hint or f"input {position}"
        yield from _no_names((*given.type.lists, *given.type.axes))
        match given.view:
            case Index(dim) if given.type not in (Type((dim,), (dim,)), Type((), (dim,))):
                yield f"{name} is an index over {dim} but has type {given.type}"
            case Read(source, axes):
                yield from _no_names((source,))
                dims = dims_among(axes)
                if sorted(dims) != sorted(whole(given.type)):
                    yield f"{name} of type {given.type} reads {source} with axes {axes}"
        if len(set(given.type.lists)) < len(given.type.lists):
            yield f"{name} has type {given.type}, which repeats a dim: relabel one"
    for position, output in enumerate(graph.outputs):
        filled = [*dims_among(graph.output_axes(position))]
        type = graph.type_of(output.value)
        if sorted(filled) != sorted(whole(type)):
            yield f"output {position} of type {type} fills axes {filled}"


def _far_scans(graph: Graph, path: tuple[int, ...], level: Graph) -> Iterator[str]:
    """What is scanned along a map's dim stands directly in its body."""
    scanned = [level.nodes[at].types[0].axes[-1] for at, _ in level.of_type(Scan)]
    outer = graph
    for position in path[:-1] if scanned else ():
        op = outer.nodes[position].op
        assert isinstance(op, Map)
        if op.dim in scanned:
            yield f"a scan along {op.dim} stands in a map inside the one over {op.dim}"
        outer = op.body


def _nested_dims(graph: Graph, enclosing: tuple[Dim, ...]) -> Iterator[str]:
    """No map runs over a dim that a map around it runs over."""
    for position, op in graph.of_type(Map):
        if op.dim in enclosing:
            yield f"the map at position {position} runs over {op.dim} inside a map over {op.dim}"
        yield from _nested_dims(op.body, (*enclosing, op.dim))


def _canonical(graph: Graph) -> Iterator[str]:
    """Every node is needed, and nodes stand depth-first from the outputs."""
    order: list[int] = []
    seen = {-1}
    stack: list[tuple[Value, bool]] = [(o.value, False) for o in reversed(graph.outputs)]
    while stack:
        value, done = stack.pop()
        if done:
            order.append(value.node)
        elif value.node not in seen:
            seen.add(value.node)
            stack.append((value, True))
            below = graph.nodes[value.node].operands
            stack.extend([(v, False) for v in reversed(below) if v[0] not in seen])
    if order != list(range(len(graph.nodes))):
        yield f"the nodes are not in canonical order: depth-first from the outputs is {order}"


def _shown(types: tuple[Type, ...]) -> str:
    return ", ".join(map(str, types))
