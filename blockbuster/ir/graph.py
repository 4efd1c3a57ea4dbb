"""The block program: a short list of equations that a person can read.

``nodes`` is a tuple in canonical order (depth-first from the outputs, operands left to right, dead
nodes absent). Operands are positions ``(node, port)``; node -1 is the graph's inputs. Graphs never
change; ``Builder`` makes them. Equality is structural: hints and origins take no part in it.
Source: Blockbuster Part 1, section 2.1.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from blockbuster.ir.lengths import Length, Rule
from blockbuster.ir.meaning import Meaning
from blockbuster.ir.mentions import Mentions, mentions
from blockbuster.ir.ops import Map, Misc, Op
from blockbuster.ir.origin import Origin
from blockbuster.ir.types import Dim, Type, size_class, whole
from blockbuster.ir.views import AxisView, rules_of

if TYPE_CHECKING:
    import networkx

OpT = TypeVar("OpT", bound=Op)


class Value(NamedTuple):
    """Result ``port`` of node ``node``; node -1 stands for the graph's inputs."""

    node: int
    port: int = 0


@dataclass(frozen=True)
class Read:
    """A view of a source array: ``axes[i]`` is the dim under which axis i is read.

    None stands for an axis of extent 1; a slice or a split axis is ``Strided``. None of this costs
    anything; two views of one source are one tensor for traffic. ``dtype`` is that of masks and
    integers; that of floats is chosen when a kernel is written.
    """

    source: str
    axes: tuple[AxisView, ...]
    dtype: str = ""


@dataclass(frozen=True)
class Index:
    """The index vector 0, 1, ... along a dim: no memory behind it, so no traffic.

    ``extent`` is the size of a dim that follows from others. The copy that the dim comes from may
    not be in the program, where nothing reads its elements: then this alone says the size.
    """

    dim: Dim
    extent: Length | None = None


@dataclass(frozen=True)
class Input:
    """A graph input. ``view`` says what it reads; the inputs of a map's body have none."""

    type: Type
    view: Read | Index | None = None
    hint: str = field(default="", compare=False)


@dataclass(frozen=True)
class Output:
    """A graph output. ``axes`` are the axes of the array it fills; None is an axis of extent 1.

    Without axes they are the value's list dims in order, then axes of its items that no list runs
    over; without a name it is "out", or "out0", "out1", ... among several. Outputs of one name fill
    parts of one array.
    """

    value: Value
    name: str = ""
    axes: tuple[AxisView, ...] | None = None

    def of(self, value: Value) -> Output:
        """The same output for another value of the same type."""
        return self if value == self.value else Output(value, self.name, self.axes)


@dataclass(frozen=True, init=False)
class Node:
    """One equation: an operator applied to operands. ``types`` are the types of its results."""

    op: Op
    operands: tuple[Value, ...]
    types: tuple[Type, ...]
    hints: tuple[str, ...] = field(default=(), compare=False)
    origin: Origin = field(default=Origin(), compare=False, repr=False)

    def __init__(
        self,
        op: Op,
        operands: tuple[Value, ...],
        types: tuple[Type, ...],
        hints: tuple[str, ...] = (),
        origin: Origin = Origin(),
    ) -> None:
        fields = vars(self)  # a third of the time of a frozen dataclass's own: nodes are many
        fields["op"] = op
        fields["operands"] = operands
        fields["types"] = types
        fields["hints"] = hints
        fields["origin"] = origin

    def reading(self, operands: tuple[Value, ...]) -> Node:
        """The same equation with other operands of the same types."""
        return Node(self.op, operands, self.types, self.hints, self.origin)

    def computing(self, op: Op) -> Node:
        """The same equation with another operator, whose results have the same types."""
        node = Node(op, self.operands, self.types, self.hints, self.origin)
        vars(node)["makers"] = self.makers
        return node

    @cached_property
    def makers(self) -> tuple[int, ...]:
        """The nodes whose results are read, each once."""
        return tuple(node for node in dict.fromkeys(map(itemgetter(0), self.operands)) if node >= 0)

    @cached_property
    def _hash(self) -> int:
        return hash((self.op, self.operands))

    def __hash__(self) -> int:
        return self._hash


@dataclass(frozen=True)
class Graph:
    """A block program, or the body of a map. ``meaning``: the function it was lowered from."""

    inputs: tuple[Input, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[Output, ...]
    meaning: Meaning | None = field(default=None, compare=False, repr=False)

    @cached_property
    def _hash(self) -> int:
        return hash((len(self.inputs), self.nodes, self.outputs))

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        return self.show()

    def type_of(self, value: Value) -> Type:
        """The type of ``value``."""
        return (
            self.inputs[value.port].type
            if value.node < 0
            else self.nodes[value.node].types[value.port]
        )

    def types_of(self, values: Iterable[Value]) -> tuple[Type, ...]:
        """The types of ``values``."""
        inputs, nodes = self.inputs, self.nodes
        return tuple([inputs[p].type if n < 0 else nodes[n].types[p] for n, p in values])

    @property
    def output_names(self) -> tuple[str, ...]:
        """The names under which results are returned."""
        if len(self.outputs) == 1:
            return (self.outputs[0].name or "out",)
        return tuple(o.name or f"out{i}" for i, o in enumerate(self.outputs))

    def output_axes(self, position: int) -> tuple[AxisView, ...]:
        """The axes of the array that output ``position`` fills; None is an axis of extent 1."""
        output = self.outputs[position]
        return whole(self.type_of(output.value)) if output.axes is None else output.axes

    @cached_property
    def size_rules(self) -> tuple[Rule, ...]:
        """The facts about sizes implied by views of inputs and outputs, and by misc operators."""
        found: dict[Rule, None] = {}
        for view in (given.view for given in self.inputs):
            match view:
                case Read(axes=axes):
                    found.update(dict.fromkeys(rules_of(axes)))
                case Index(dim, Length() as extent):
                    found[Rule(size_class(dim), extent)] = None
        for output in self.outputs:
            found.update(dict.fromkeys(rules_of(output.axes or ())))
        for node in self.nodes:
            match node.op:
                case Misc(rules=rules):
                    found.update(dict.fromkeys(rules))
                case Map(body=body):  # an extension may move a misc operator into a body
                    found.update(dict.fromkeys(body.size_rules))
        return tuple(found)

    @cached_property
    def mentions(self) -> Mentions:
        """The dims and misc operators that occur at any level."""
        return mentions(self)

    @cached_property
    def uses(self) -> dict[Value, tuple[tuple[int, int], ...]]:
        """For each value its uses as (node, operand position); outputs do not count as uses."""
        found: dict[Value, list[tuple[int, int]]] = {}
        for position, node in enumerate(self.nodes):
            for index, operand in enumerate(node.operands):
                found.setdefault(operand, []).append((position, index))
        return {value: tuple(places) for value, places in found.items()}

    def grown(
        self, inputs: Iterable[Input], nodes: Iterable[Node], outputs: Iterable[Output]
    ) -> Graph:
        """The graph with more inputs, more nodes behind its own, and these outputs.

        Bodies of fused maps grow by a few nodes at a time, so known facts about the nodes are kept.
        """
        more = tuple(nodes)
        graph = Graph((*self.inputs, *inputs), self.nodes + more, tuple(outputs))
        kept = vars(graph)  # where cached properties keep what they found
        kept["_read_by_nodes"] = self._read_by_nodes | _inputs_read(more)
        kept["several_results"] = self.several_results or any(len(n.types) > 1 for n in more)
        return graph

    def with_op(self, position: int, op: Op) -> Graph:
        """The graph with another operator at ``position``; operands and result types stay."""
        node = self.nodes[position].computing(op)
        nodes = (*self.nodes[:position], node, *self.nodes[position + 1 :])
        graph = Graph(self.inputs, nodes, self.outputs)
        kept = vars(graph)
        kept["_read_by_nodes"] = self._read_by_nodes
        kept["reads_inputs_in_order"] = self.reads_inputs_in_order
        return graph

    @cached_property
    def several_results(self) -> bool:
        """True if some node has several results."""
        return any(len(node.types) > 1 for node in self.nodes)

    @cached_property
    def _read_by_nodes(self) -> dict[int, None]:
        return _inputs_read(self.nodes)

    @cached_property
    def inputs_by_first_use(self) -> tuple[int, ...]:
        """The inputs that are used, in order of first use."""
        leaving = [output.value.port for output in self.outputs if output.value.node < 0]
        return tuple(self._read_by_nodes | dict.fromkeys(leaving))

    @cached_property
    def reads_inputs_in_order(self) -> bool:
        """True if all inputs are used, in order: then a map around it keeps its operands."""
        return self.inputs_by_first_use == (*range(len(self.inputs)),)

    @cached_property
    def output_values(self) -> frozenset[Value]:
        """The values that leave the graph."""
        return frozenset(output.value for output in self.outputs)

    def places(self) -> Iterable[int]:
        """The positions of the nodes in canonical order."""
        return range(len(self.nodes))

    @property
    def rank(self) -> Sequence[int]:
        """The place of each node in canonical order."""
        return range(len(self.nodes))

    def uses_of(self, value: Value) -> tuple[tuple[int, int], ...]:
        """The uses of ``value`` as (node, operand position), in order; outputs do not count."""
        return self.uses.get(value, ())

    def consumers(self, value: Value) -> tuple[int, ...]:
        """Positions of the nodes that read ``value``, each once."""
        return tuple(dict.fromkeys(node for node, _ in self.uses.get(value, ())))

    def readers_before(self, position: int) -> tuple[int, ...]:
        """Positions before ``position`` of the nodes that share an operand with it, in order."""
        operands = dict.fromkeys(self.nodes[position].operands)
        found = {n for value in operands for n, _ in self.uses_of(value) if n < position}
        return tuple(sorted(found))

    @cached_property
    def _ancestors(self) -> tuple[int, ...]:
        """For each node a bit set of the nodes it depends on."""
        sets: list[int] = []
        for node in self.nodes:
            bits = 0
            for operand in node.operands:
                if operand.node >= 0:
                    bits |= sets[operand.node] | 1 << operand.node
            sets.append(bits)
        return tuple(sets)

    def reaches(self, producer: int, consumer: int) -> bool:
        """True if ``consumer`` depends on ``producer``, directly or through others."""
        return producer < consumer and bool(self._ancestors[consumer] >> producer & 1)

    def of_type(self, kind: type[OpT]) -> Iterator[tuple[int, OpT]]:
        """Positions and operators of the nodes whose operator is a ``kind``, in order."""
        if kind is Map:
            return iter(cast("tuple[tuple[int, OpT], ...]", self._maps))
        return ((at, node.op) for at, node in enumerate(self.nodes) if isinstance(node.op, kind))

    @cached_property
    def _maps(self) -> tuple[tuple[int, Map], ...]:
        return tuple([(at, n.op) for at, n in enumerate(self.nodes) if isinstance(n.op, Map)])

    def at(self, path: tuple[int, ...]) -> Graph:
        """The graph inside the maps at the positions of ``path``."""
        *_, inner = self.along(path)
        return inner

    def along(self, path: tuple[int, ...]) -> Iterator[Graph]:
        """This graph and those inside the maps at the positions of ``path``, outermost first."""
        graph = self
        yield graph
        for position in path:
            op = graph.nodes[position].op
            assert isinstance(op, Map), f"no map at position {position} of path {path}"
            graph = op.body
            yield graph

    def walk(self, but: Container[int] = ()) -> Iterator[tuple[tuple[int, ...], Graph]]:
        """This graph and all inner graphs with their paths, breadth first.

        Graphs whose ids are in ``but`` are left out, with all graphs inside them.
        """
        queue: list[tuple[tuple[int, ...], Graph]] = [] if id(self) in but else [((), self)]
        for path, graph in queue:
            yield path, graph
            queue += [((*path, at), op.body) for at, op in graph._maps if id(op.body) not in but]

    @cached_property
    def loops(self) -> frozenset[Dim]:
        """Every dim that a map inside runs over, at any depth."""
        inner = [op for _, op in self._maps]
        return frozenset([op.dim for op in inner]).union(*[op.body.loops for op in inner])

    @cached_property
    def size(self) -> int:
        """The number of nodes at all levels."""
        return len(self.nodes) + sum([op.body.size for _, op in self._maps])

    @cached_property
    def depth(self) -> int:
        """The largest number of nested maps."""
        return max(len(path) for path, _ in self.walk())

    def buffered_edges(self) -> tuple[tuple[tuple[int, ...], Value, int], ...]:
        """Interior buffered edges at all levels: (path, producer's value, consuming node).

        One edge per buffered value and consuming operand; edges from inputs and to outputs are not
        interior.
        """
        return tuple(
            (path, operand, position)
            for path, graph in self.walk()
            for position, node in enumerate(graph.nodes)
            for operand in node.operands
            if operand.node >= 0 and graph.type_of(operand).buffered
        )

    def show(self, *, types: bool = False, origin: bool = False) -> str:
        """The text form; ``blockbuster.parse`` inverts the plain one."""
        from blockbuster.ir.show import show

        return show(self, types=types, origin=origin)

    def listing(self) -> str:
        """The program as loops, loads and stores, in the notation of the paper."""
        from blockbuster.emit.tile.listing import listing

        return listing(self)

    def to_networkx(self) -> networkx.MultiDiGraph[Any]:
        """The program as networkx graphs, one per level; ``ir/export.py`` has their attributes."""
        from blockbuster.ir.export import to_networkx

        return to_networkx(self)

    def __repr__(self) -> str:
        return f"Graph({len(self.inputs)} inputs, {self.size} nodes, {len(self.outputs)} outputs)"

    def _repr_svg_(self) -> str | None:
        """What Jupyter shows: a picture, if Graphviz is installed."""
        from blockbuster.view.draw import draw

        return draw(self)._repr_svg_()


def _inputs_read(nodes: tuple[Node, ...]) -> dict[int, None]:
    """The inputs that the nodes read, in order of first use."""
    return dict.fromkeys(port for node in nodes for at, port in node.operands if at < 0)
