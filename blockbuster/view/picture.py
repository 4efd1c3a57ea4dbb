"""How a block program is drawn: the look of every part, and the walk over the program.

A map is a dotted box with its dim in the corner and its ports as dots on the perimeter: a round dot
if an operand is read item by item, a square one if it is passed whole. A fold is a circled sign.
Buffered edges are red and thick, and those that fusion should remove are the thickest. Source:
Blockbuster Part 1, section 2.1 and its figures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from blockbuster.errors import shown_lines
from blockbuster.ir.graph import Graph, Index, Input, Node, Output, Read, Value
from blockbuster.ir.ops import Collect, Map, Rescale
from blockbuster.ir.show import Path, Printer, factor_names
from blockbuster.ir.types import Type, whole
from blockbuster.view import dot, notation

BUFFERED = "#d6273a"
SITE = "#d99a00"
SITE_FILL = "#ffc10738"
FONT = "Helvetica"

DEFAULTS = {
    "graph": {
        "rankdir": "LR", "bgcolor": "transparent", "fontname": FONT, "fontsize": "12",
        "ranksep": "0.16", "nodesep": "0.14", "pad": "0.1", "outputorder": "edgesfirst",
    },
    "node": {
        "fontname": FONT, "fontsize": "12", "shape": "box", "style": "rounded",
        "margin": "0.09,0.03", "width": "0.3", "height": "0.3",
    },
    "edge": {"fontname": FONT, "fontsize": str(dot.SMALL), "arrowsize": "0.5"},
}  # fmt: skip
MAP = {
    "margin": "0", "peripheries": "1", "labelloc": "b", "labeljust": "r",
    "style": "rounded,dotted", "color": "black", "penwidth": "1.2",
}  # fmt: skip
# A box of margin 0 has its ports on the border. What should be around the ports of a box and inside
# them are boxes that are not seen.
AROUND = {
    "margin": "4", "peripheries": "0", "label": "", "style": "solid", "class": "space",
    "tooltip": " ", "fillcolor": "transparent",
}  # fmt: skip
INSIDE = {**AROUND, "margin": "5"}
SIGN = {"shape": "circle", "width": "0.26", "margin": "0", "fixedsize": "true", "style": "solid"}
# The pen is wider than the node, so the dot lies half inside the box and half outside.
PORT = {
    "width": "0.032", "height": "0.032", "fixedsize": "true", "style": "filled", "penwidth": "4",
}  # fmt: skip


@dataclass(frozen=True)
class Level:
    """The content of one box: its graph, and the source of each of its values."""

    graph: Graph
    path_of: Callable[[int], Path]
    depth: int
    tails: dict[Value, str]


@dataclass
class Picture:
    """One drawing under way. ``depth``, ``highlight`` and ``told`` are those of ``to_dot``."""

    graph: Graph
    highlight: Sequence[Path] = ()
    depth: int | None = None
    prefix: str = ""
    told: bool = True
    _edges: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        printer = Printer()
        self._listing = shown_lines(printer.print(self.graph)) if self.told else []
        self._line_of = printer.line_of

    def statements(self, focus: Path = ()) -> list[str]:
        """The DOT statements of the program, or of the map at ``focus`` alone."""
        level = Level(self.graph, lambda position: (position,), 0, {})
        if focus:
            level = Level(_alone(self.graph, focus), lambda _: focus, 0, {})
        graph = level.graph
        parts = []
        for port, given in enumerate(graph.inputs):
            name = level.tails[Value(-1, port)] = f"{self.prefix}i-{port}"
            label = dot.lines(_name_of(given, port), *_read_as(given))
            parts.append(dot.node(name, label, {"shape": "plain", "class": "input"}))
        parts += self._level(level)
        for port, output in enumerate(graph.outputs):
            name = f"{self.prefix}o-{port}"
            label = dot.lines(graph.output_names[port], *_written_as(graph, output))
            parts.append(dot.node(name, label, {"shape": "plain", "class": "output"}))
            tail, type = level.tails[output.value], graph.type_of(output.value)
            self._edge(tail, name, f"out{port}", type)
        return [*parts, *self._edges]

    def _level(self, level: Level) -> list[str]:
        """The nodes of a level in order, maps with all that is in them."""
        parts = []
        for position, node in enumerate(level.graph.nodes):
            path = level.path_of(position)
            if isinstance(node.op, Map) and (self.depth is None or level.depth < self.depth):
                parts += self._map(level, node, node.op, path)
                tails = self._ports("out", path, len(node.types))
            else:
                parts.append(self._operator(level, node, path))
                tails = [self._id("n", path)] * len(node.types)
            level.tails.update((Value(position, port), tail) for port, tail in enumerate(tails))
        return parts

    def _operator(self, level: Level, node: Node, path: Path) -> str:
        """A node that is no open map, and the edges into it."""
        name = self._id("n", path)
        operands = [level.graph.type_of(value) for value in node.operands]
        told = self._told(node, path)
        ordered = notation.is_ordered(node)
        for k in range(len(operands)):
            self._operand(level, node, path, k, dot.at(name, f"x{k}", "w") if ordered else name)
        if isinstance(node.op, Map):
            look = told | {"style": "rounded,dotted"} | self._class("map collapsed", path)
            return dot.node(name, _collapsed(node.op), look)
        text = notation.label(node, operands)
        look = told | self._class("op", path)
        if ordered:
            names = notation.names(len(operands))
            return dot.node(name, dot.with_operands(text, names), look | {"margin": "0"})
        return dot.node(name, text, _short(text) | look)

    def _map(self, level: Level, node: Node, op: Map, path: Path) -> list[str]:
        """An open map: a box whose near and far ends are its ports, and the body between them."""
        ins = self._ports("in", path, len(node.operands))
        outs = self._ports("out", path, len(node.types))
        near, far = [], []
        for k, (name, value) in enumerate(zip(ins, node.operands, strict=True)):
            square = not op.iterated[k] if k < len(op.iterated) else False
            near.append(_port(name, level.graph.type_of(value), square=square))
            self._operand(level, node, path, k, name)
        for name, type in zip(outs, node.types, strict=True):
            far.append(_port(name, type))
        entering = len(op.iterated)
        tails = {Value(-1, k): name for k, name in enumerate(ins[:entering])}
        inner = Level(op.body, lambda position: (*path, position), level.depth + 1, tails)
        body = self._level(inner)
        body += self._results(inner, op, path, outs, ins[entering:])
        parts = dot.ranked("source", PORT, near)
        parts += dot.cluster(self._id("b", path), INSIDE, body) if body else []
        parts += dot.ranked("sink", PORT, far)
        told = {"label": _corner(op)} | self._told(node, path)
        box = dot.cluster(self._id("n", path), MAP | told | self._class("map", path), parts)
        return dot.cluster(self._id("s", path), AROUND, box)

    def _results(
        self, inner: Level, op: Map, path: Path, outs: Sequence[str], firsts: Sequence[str]
    ) -> list[str]:
        """The folds of a map, and the edges that lead to its results."""
        parts = []
        for k, (output, result) in enumerate(zip(op.body.outputs, op.results, strict=True)):
            tail, type = inner.tails[output.value], op.body.type_of(output.value)
            end = outs[k]
            if not isinstance(result, Collect):
                end = self._fold(path, k)
                parts.append(_sign(end, notation.SIGNS[result.monoid]))
                self._edge(end, outs[k], f"{_joined(path)}-sum{k}", type)
            self._edge(tail, end, f"{_joined(path)}-out{k}", type)
            if firsts:
                self._aside(firsts[k], end, f"{_joined(path)}-first{k}", "of iteration 0")
            if isinstance(result, Rescale):
                factor = notation.formula(result.factor, factor_names(len(result.leads)))
                for at, port in enumerate(result.leads):
                    ident = f"{_joined(path)}-lead{k}" + (f"-{at}" if at else "")
                    self._aside(self._fold(path, port), end, ident, f"rescaled: {factor}")
        return parts

    def _operand(self, level: Level, node: Node, path: Path, k: int, head: str) -> None:
        """The edge into operand ``k`` of a node of this level."""
        value = node.operands[k]
        type = level.graph.type_of(value)
        iterated = isinstance(node.op, Map) and k < len(node.op.iterated) and node.op.iterated[k]
        classes = ["interior"] * (type.buffered and value.node >= 0) + ["iterated"] * iterated
        self._edge(level.tails[value], head, f"{_joined(path)}-{k}", type, classes)

    def _edge(
        self, tail: str, head: str, ident: str, type: Type, classes: Sequence[str] = ()
    ) -> None:
        kind = "buffered" if type.buffered else "local"
        look = {"id": f"{self.prefix}e-{ident}", "class": " ".join((kind, *classes))}
        if type.buffered:
            look |= {"color": BUFFERED, "penwidth": "2.6" if "interior" in classes else "1.5"}
        if "iterated" in classes:
            look["arrowhead"] = "empty"
        elif head.startswith(f"{self.prefix}p-"):
            look["arrowhead"] = "none"
        look |= {"edgetooltip": str(type)} if self.told else {}
        self._edges.append(dot.edge(tail, head, look))

    def _aside(self, tail: str, head: str, ident: str, told: str) -> None:
        """An edge that is no operand: what a fold starts with, or is rescaled by."""
        look = {"id": f"{self.prefix}e-{ident}", "class": "aside", "style": "dashed"}
        look |= {"edgetooltip": told} if self.told else {}
        self._edges.append(dot.edge(tail, head, look))

    def _class(self, name: str, path: Path) -> dict[str, str]:
        if path not in self.highlight:
            return {"class": name}
        style = "rounded,filled,dashed" if name == "map" else "rounded,filled"
        site = {"style": style, "color": SITE, "fillcolor": SITE_FILL, "penwidth": "2"}
        return {"class": f"{name} site", **site}

    def _told(self, node: Node, path: Path) -> dict[str, str]:
        """What a pointer on a node shows: its line of the text form, and where it came from."""
        if not self.told:
            return {}
        line = self._listing[self._line_of[path[:-1], path[-1]]].strip()
        where = ", ".join(map(str, node.origin.lines()))
        return {"tooltip": f"{line}  # {where}" if where else line}

    def _id(self, kind: str, path: Path) -> str:
        return f"{self.prefix}{kind}-{_joined(path)}"

    def _ports(self, side: str, path: Path, count: int) -> list[str]:
        return [f"{self._id('p', path)}-{side}{k}" for k in range(count)]

    def _fold(self, path: Path, k: int) -> str:
        return f"{self._id('a', path)}-{k}"


def _joined(path: Path) -> str:
    return "-".join(map(str, path))


def _alone(graph: Graph, path: Path) -> Graph:
    """The node at ``path`` as a program of its own, operands and results under their names."""
    level = graph.at(path[:-1])
    node = level.nodes[path[-1]]
    given = tuple(dict.fromkeys(node.operands))
    alone = node.reading(tuple(Value(-1, given.index(value)) for value in node.operands))
    outputs = tuple(
        Output(Value(0, port), hint_of(level, Value(path[-1], port)))
        for port in range(len(node.types))
    )
    return Graph(tuple(as_input(level, value) for value in given), (alone,), outputs)


def as_input(level: Graph, value: Value) -> Input:
    """The input of a program that gets a value of a level."""
    return Input(level.type_of(value), None, hint_of(level, value))


def hint_of(level: Graph, value: Value) -> str:
    """The user's word for a value of a level, if there is one."""
    if value.node < 0:
        return level.inputs[value.port].hint
    return dict(enumerate(level.nodes[value.node].hints)).get(value.port, "")


def _name_of(given: Input, port: int) -> str:
    return given.hint or (given.view.source if isinstance(given.view, Read) else "") or f"in{port}"


def _read_as(given: Input) -> list[str]:
    """The type of an input, and the view it reads where that is not the array as it is."""
    texts = [str(given.type)]
    if isinstance(given.view, Index):
        texts.append(f"0, 1, … |{given.view.dim}| − 1")
    if isinstance(given.view, Read) and given.view.axes != whole(given.type):
        axes = ", ".join("1" if axis is None else str(axis) for axis in given.view.axes)
        texts.append(f"{given.view.source}({axes})")
    return texts


def _written_as(graph: Graph, output: Output) -> list[str]:
    texts = [str(graph.type_of(output.value))]
    if output.axes is not None:
        axes = ", ".join("1" if axis is None else str(axis) for axis in output.axes)
        texts.append(f"fills ({axes})")
    return texts


def _corner(op: Map) -> dot.Html:
    return dot.low(op.dim + (f" from {op.start}" if op.start else ""))


def _collapsed(op: Map) -> dot.Html:
    count = notation.operations(op.body)
    inside = f"{count} operation{'s' if count != 1 else ''}"
    return dot.lines(notation.dims(op), inside, notation.summary(op.body))


def _port(name: str, type: Type, *, square: bool = False) -> str:
    color = BUFFERED if type.buffered else "black"
    look = {"shape": "square" if square else "circle", "color": color, "fillcolor": color}
    return dot.node(name, "", look | {"class": "port"})


def _sign(name: str, text: str) -> str:
    look = {**SIGN, "fontsize": str(dot.SMALL), "penwidth": "1.6", "class": "fold"}
    return dot.node(name, text, look | _short(text))


def _short(text: str) -> dict[str, str]:
    """The look of a node with one sign on it: a circle, the sign large."""
    if len(text) > 1:
        return {}
    return {**SIGN, "fontsize": "24" if text == "·" else "14"}
