"""The text form of a graph: one equation per line, two-space nesting, ASCII except users' names.

Names exist only here: they are made unique while printing, in print order, across nested bodies.
Buffered operands carry a ``!``, so that global memory is visible in one character.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from blockbuster.errors import quoted, shown
from blockbuster.ir.expr import FUNCTIONS, show_expr
from blockbuster.ir.graph import Graph, Index, Input, Node, Read, Value
from blockbuster.ir.lengths import Rule
from blockbuster.ir.ops import (
    Cast,
    Collect,
    Elementwise,
    Functional,
    Head,
    Map,
    Misc,
    Pointwise,
    Reduce,
    Relabel,
    Rescale,
    Scan,
    Transpose,
)
from blockbuster.ir.regroup import Regroup
from blockbuster.ir.signatures import FUNCTIONALS
from blockbuster.ir.types import Type, whole
from blockbuster.ir.views import AxisView

KEYWORDS = (
    "graph", "map", "in", "yield", "return", "reduce", "transpose", "relabel", "cast", "misc",
    "index", "port", "head", "from", "over", "by", "inf", "nan", "or", "and", "not", "max", "min",
    "prod", "scan", "regroup",
)  # fmt: skip
RESERVED = frozenset((*KEYWORDS, *FUNCTIONALS, *FUNCTIONS))
VIEW_WORDS = ("index", "port")  # an array of such a name is quoted
LEADS = "rsqpuvw"


def factor_names(leads: int) -> tuple[str, ...]:
    """The names in a factor: x, the letters of its leads, and the same for the folded ones.

    >>> factor_names(2)
    ('x', 'r', 's', 'r2', 's2')
    """
    return ("x", *LEADS[:leads], *(f"{letter}2" for letter in LEADS[:leads]))


Path = tuple[int, ...]
Names = dict[Value, str]


def show(graph: Graph, *, types: bool = False, origin: bool = False) -> str:
    """The text of ``graph``; ``types`` adds result types, ``origin`` the rule that made a node.

    >>> from blockbuster.ir.parse import parse
    >>> print(show(parse("graph(X: M[M]) { Y = map M (x in X) { y = exp(x)  yield y } return Y }")))
    graph(X: M[M]) {
      Y = map M (x in !X) {
        y = exp(x)
        yield y
      }
      return Y
    }
    <BLANKLINE>
    """
    return Printer(types=types, origin=origin).print(graph)


class Printer:
    """One printing of one graph; ``line_of`` tells afterwards where each node stands."""

    def __init__(self, *, types: bool = False, origin: bool = False) -> None:
        self._types = types
        self._origin = origin
        self._taken: dict[str, None] = {}
        self._used: dict[str, int] = {}  # the last number behind a word: those before are taken
        self._count = 0
        self._lines: list[str] = []
        self.line_of: dict[tuple[Path, int], int] = {}

    def print(self, graph: Graph) -> str:
        """The text of ``graph``, ending in one newline."""
        names: Names = {}
        for port, given in enumerate(graph.inputs):
            names[Value(-1, port)] = self._unique(given.hint or _source(given) or f"in{port}")
        heads = [_head(names[Value(-1, p)], given) for p, given in enumerate(graph.inputs)]
        self._lines.append(f"graph({', '.join(heads)}) {{")
        self._equations(graph, names, (), "  ")
        self._lines += [f"  return {', '.join(_returns(graph, names))}", "}"]
        return "\n".join(self._lines) + "\n"

    def _equations(self, graph: Graph, names: Names, path: Path, indent: str) -> None:
        for position, node in enumerate(graph.nodes):
            self.line_of[path, position] = len(self._lines)
            left = []
            for port, type in enumerate(node.types):
                hint = node.hints[port] if port < len(node.hints) else ""
                name = names[Value(position, port)] = self._unique(hint)
                left.append(f"{name}: {type}" if self._types else name)
            rule = shown(node.origin.rule) if self._origin else ""
            note = f"  # {rule}" if rule else ""
            operands = [_marked(graph, v, names) for v in node.operands]
            start = f"{indent}{', '.join(left)} = "
            if isinstance(node.op, Map):
                self._map(node, node.op, operands, start, note, (*path, position), indent)
            else:
                self._lines.append(f"{start}{SPELLING[node.op.__class__](node.op, operands)}{note}")

    def _map(
        self,
        node: Node,
        op: Map,
        operands: list[str],
        start: str,
        note: str,
        path: Path,
        indent: str,
    ) -> None:
        inner: Names = {}
        ports = []
        firsts = operands[len(op.iterated) :]
        for port, (operand, iterated) in enumerate(zip(operands, op.iterated, strict=False)):
            hint = op.body.inputs[port].hint or operand.lstrip("!").lower()
            name = inner[Value(-1, port)] = self._unique(hint)
            ports.append(f"{name} {'in' if iterated else '='} {operand}")
        begin = f" from {op.start}" if op.start else ""
        given = f"; {', '.join(firsts)}" if firsts else ""
        self._lines.append(f"{start}map {op.dim}{begin} ({', '.join(ports)}{given}) {{{note}")
        self._equations(op.body, inner, path, indent + "  ")
        leads = {lead: "" for r in op.results if isinstance(r, Rescale) for lead in r.leads}
        for lead in leads:
            leads[lead] = self._unique("t")
        for port, (output, result) in enumerate(zip(op.body.outputs, op.results, strict=True)):
            text = inner[output.value]
            if not isinstance(result, Collect):
                sign = "+" if result.monoid == "+" else f"{result.monoid} "
                text = f"{sign}{leads[port]} = {text}" if port in leads else f"{sign}{text}"
            if isinstance(result, Rescale):
                factor = show_expr(result.factor, factor_names(len(result.leads)))
                text += f" by {', '.join(leads[lead] for lead in result.leads)}: {factor}"
            self._lines.append(f"{indent}  yield {text}")
        self._lines.append(f"{indent}}}")

    def _unique(self, hint: str) -> str:
        base = re.sub(r"_\d+$", "", re.sub(r"\W", "_", hint, flags=re.ASCII))
        if base and not base[0].isdigit():
            count = self._used.get(base, 0)
            name = f"{base}_{count}" if count else base
            while name in self._taken or name in RESERVED:
                count += 1
                name = f"{base}_{count}"
            self._used[base] = count
        else:
            name = ""
            while not name or name in self._taken:
                self._count += 1
                name = f"t{self._count}"
        self._taken[name] = None
        return name


def _source(given: Input) -> str:
    return given.view.source if isinstance(given.view, Read) else ""


def _head(name: str, given: Input) -> str:
    text = f"{name}: {given.type}"
    match given.view:
        case Read(source, axes, dtype):
            if source == name and axes == whole(given.type) and given.type.buffered and not dtype:
                return text
            word = f'"{source}"' if source in VIEW_WORDS else source
            return f"{text} = {word}({_axes(axes)})" + (f" of {dtype}" if dtype else "")
        case Index(dim, extent):
            return f"{text} = index({dim})" + ("" if extent is None else f" of {extent}")
        case None:
            return f"{text} = port" if given.type.buffered else text


def _axes(axes: tuple[AxisView, ...]) -> str:
    return ",".join("1" if axis is None else str(axis) for axis in axes)


def _returns(graph: Graph, names: Names) -> list[str]:
    texts = []
    for output in graph.outputs:
        axes = "" if output.axes is None else f"({_axes(output.axes)})"
        name = f"{output.name} = " if output.name else ""
        texts.append(f"{name}{names[output.value]}{axes}")
    return texts


def _marked(graph: Graph, value: Value, names: Names) -> str:
    return f"{'!' if graph.type_of(value).buffered else ''}{names[value]}"


def _sizes(rules: tuple[Rule, ...]) -> str:
    texts = ", ".join(f"|{rule.dim}| = {rule.length}" for rule in rules)
    return f" with {texts}" if rules else ""


def scan_words(op: Scan) -> str:
    """The words of a scan before its operand."""
    return f"scan {'back ' if op.back else ''}{op.monoid}"


# operator class -> how it is written, given its marked operands
SPELLING: dict[type, Callable[[Any, list[str]], str]] = {
    Functional: lambda op, xs: f"{op.name}({', '.join(xs)})",
    Elementwise: lambda op, xs: show_expr(op.expr, xs),
    Pointwise: lambda op, xs: f"{show_expr(op.expr, xs)} over [{','.join(op.axes)}]",
    Cast: lambda op, xs: f"cast {op.dtype} ({xs[0]})",
    Scan: lambda op, xs: f"{scan_words(op)} ({xs[0]})",
    Transpose: lambda op, xs: f"transpose {Type(op.lists, op.axes)} ({xs[0]})",
    Relabel: lambda op, xs: f"relabel {op.old} -> {op.new} ({xs[0]})",
    Regroup: lambda op, xs: f"{op} ({xs[0]})",
    Reduce: lambda op, xs: f"reduce {op.monoid} {op.dim} ({xs[0]})",
    Head: lambda op, xs: f"head {op.dim} ({xs[0]})",
    Misc: lambda op, xs: (
        f"misc {quoted(op.name)} : {' '.join(map(str, op.results))} "
        f"({', '.join(xs)}){_sizes(op.rules)}"
    ),
}
