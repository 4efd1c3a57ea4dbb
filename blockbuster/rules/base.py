"""The base class of rules: a rule finds sites in one graph, and rewrites one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal, TypeGuard

from blockbuster.ir.builder import Builder
from blockbuster.ir.expr import Arg, Call, Expr, show_expr
from blockbuster.ir.graph import Graph, Node, Value
from blockbuster.ir.level import Level
from blockbuster.ir.ops import Elementwise, Functional, Map, Op, Pointwise, Reduce, Scan
from blockbuster.ir.origin import Origin
from blockbuster.ir.uses import results_of

Kind = Literal["fusion", "companion", "extension"]


def unheard(refusal: Refusal) -> None:
    """Ignores refusals."""


class Rule:
    """A substitution rule. A subclass is one file, without options: two of its instances are equal.

    ``matches`` only reads, and yields every site in canonical order; if it refuses a site, it tells
    ``note`` the reason. ``apply`` contains no legality test. A rule sees one graph level: the
    driver descends.
    """

    name: ClassVar[str]
    number: ClassVar[int | None] = None
    kind: ClassVar[Kind] = "fusion"
    needs: ClassVar[tuple[type[Op], ...]] = ()
    """The operators that a graph with a site has at least."""
    of_edges: ClassVar[bool] = False
    """True if a site is one edge between two maps, of whatever dims: where these differ, a refusal
    of such a rule says most about why the value is stored."""

    def matches(self, graph: Graph, note: Note = unheard) -> Iterator[Match]:
        """Every site where the rule applies, in canonical order."""
        raise AssertionError(f"{type(self).__name__} finds no sites")

    def apply(self, match: Match) -> Graph:
        """The rewritten graph."""
        raise AssertionError(f"{type(self).__name__} rewrites nothing")

    def judged(
        self, graph: Graph, nodes: Mapping[str, int], reason: str, note: Note, detail: str = ""
    ) -> Iterator[Match]:
        """The site of ``nodes``; none if there is a reason against it, which ``note`` is told."""
        if reason:
            note(Refusal(self, tuple(nodes.values()), reason))
        else:
            yield Match(self, graph, nodes, detail)

    def match(self, graph: Graph) -> Match | None:
        """The first site, or None."""
        return next(self.matches(graph), None)

    def describe(self, match: Match) -> str:
        """The rewrite in one line."""
        return " -> ".join(label(match.node(role)) for role in match.nodes)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(type(self).__qualname__)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class LocalRule(Rule):
    """A rule whose sites are found from one node each.

    ``matches_at`` may look at the node, its operands and their readers, its own readers, and at
    paths. With ``in_place`` the driver then looks only where something has changed.
    """

    in_place: ClassVar[bool] = False
    """True if the rule also takes a ``Level``, which the driver rewrites, in place of a graph.

    A level has keys for positions, from ``places``, and only a part of what a graph can be asked.
    The rule edits it through ``match.edit()``. A subclass does not inherit this: one that asks for
    more, as any rule of a user may, gets graphs."""

    looks_beside: ClassVar[bool] = True
    """False if ``matches_at`` does not look at what else reads the node's operands: a node that
    many read is then no reason to look at all of them again."""

    def matches(self, graph: Graph, note: Note = unheard) -> Iterator[Match]:
        for position in graph.places():
            yield from self.matches_at(graph, position, note)

    def matches_at(self, graph: Graph, position: int, note: Note = unheard) -> Iterator[Match]:
        """The sites of the node at ``position``, in canonical order."""
        raise AssertionError(f"{type(self).__name__} finds no sites")


class UpstreamRule(LocalRule):
    """A rule whose sites are found from one node each and all its ancestors.

    ``matches_at`` may look at the node, at all its ancestors, and at their readers: the driver
    looks again at all nodes behind a change.
    """


def takes_levels(rule: Rule) -> TypeGuard[LocalRule]:
    """True if the rule's own class says that it works in place."""
    return isinstance(rule, LocalRule) and vars(type(rule)).get("in_place", False)


@dataclass(frozen=True)
class Refusal:
    """A site that has a rule's pattern and fails one of its preconditions.

    ``nodes`` are the positions in question, ``reason`` says which precondition failed, in words.
    """

    rule: Rule
    nodes: tuple[int, ...]
    reason: str


Note = Callable[[Refusal], None]


@dataclass(frozen=True)
class Match:
    """A site: the rule, the graph, the positions of its nodes by role, and a detail in words."""

    rule: Rule
    graph: Graph = field(repr=False)
    nodes: Mapping[str, int]
    detail: str = ""

    def node(self, role: str) -> Node:
        """The node that plays ``role``."""
        return self.graph.nodes[self.nodes[role]]

    def map(self, role: str) -> Map:
        """The map operator of the node that plays ``role``."""
        return map_of(self.node(role))

    def value(self, role: str, port: int = 0) -> Value:
        """A result of the node that plays ``role``."""
        return Value(self.nodes[role], port)

    def values(self, role: str) -> list[Value]:
        """The results of the node that plays ``role``."""
        return results_of(self.graph.nodes, self.nodes[role])

    def edit(self) -> Builder:
        """An edit of the graph."""
        return self.graph if isinstance(self.graph, Level) else Builder(self.graph)

    def origin(self) -> Origin:
        """The origin of the nodes that the rule makes here."""
        return Origin(self.rule.name, tuple(self.node(role).origin for role in self.nodes))


def reasons(rule: Rule, graph: Graph) -> list[str]:
    """Why ``rule`` refuses the sites of ``graph`` that have its pattern, in words."""
    found: list[str] = []
    for _ in rule.matches(graph, lambda refusal: found.append(refusal.reason)):
        pass
    return found


LABEL_WIDTH = 60
LABEL_DEPTH = 8
LABEL_MAPS = LABEL_WIDTH // 2  # a map takes two characters or more, as in "M<"


def label(node: Node, maps: int = LABEL_MAPS) -> str:
    """A short name for a node's computation: ``N<dot exp row_sum>`` is a map over N of three.

    The content of more than ``maps`` nested maps is left out.

    >>> from blockbuster.ir.parse import parse
    >>> graph = parse("graph(X: M[M]) { Y = map M (x in X) { y = exp(x)  yield y } return Y }")
    >>> label(graph.nodes[0])
    'M<exp(x)>'
    """
    match node.op:
        case Map(dim, body, start=start):
            begin = f" from {start}" if start else ""
            return _short(f"{dim}{begin}<{_labels(body, maps - 1) if maps else ''}>")
        case Functional(name):
            return name
        case Scan(monoid):
            return f"scan {monoid}"
        case Reduce(dim, monoid):
            return f"reduce {monoid} {dim}"
        case Elementwise(expr) | Pointwise(expr, _):
            count = max(len(node.operands), 3)
            names = ["x", "y", "z"] + [f"x{i}" for i in range(3, count)]
            return _short(show_expr(_top(expr, LABEL_DEPTH, count), [*names, "..."]))
        case op:
            return type(op).__name__.lower()


def _short(text: str) -> str:
    return text if len(text) <= LABEL_WIDTH else f"{text[: LABEL_WIDTH - 4]}...>"


def _labels(body: Graph, maps: int) -> str:
    """The labels of the nodes, as far as they matter for a label."""
    text = ""
    for inner in body.nodes:
        text += (" " if text else "") + label(inner, maps)
        if len(text) > LABEL_WIDTH:
            break
    return text


def _top(expr: Expr, depth: int, rest: int) -> Expr:
    """The upper part of ``expr``; what is below ``depth`` becomes operand ``rest``."""
    if not isinstance(expr, Call):
        return expr
    return Call(expr.fn, tuple(_top(a, depth - 1, rest) for a in expr.args)) if depth else Arg(rest)


def map_of(node: Node) -> Map:
    """The map operator of a node."""
    assert isinstance(node.op, Map), f"{label(node)} is no map"
    return node.op


def maker_of(graph: Graph, value: Value) -> Node | None:
    """The node that makes a value; None for an input."""
    return graph.nodes[value.node] if value.node >= 0 else None


def hint_of(graph: Graph, value: Value) -> str:
    """The user's word for a value, or ""."""
    node = maker_of(graph, value)
    if node is None:
        return graph.inputs[value.port].hint
    return node.hints[value.port] if value.port < len(node.hints) else ""


def name_of(graph: Graph, value: Value) -> str:
    """A readable name of ``value``: its hint, or the operator that made it."""
    node = maker_of(graph, value)
    return hint_of(graph, value) or (label(node) if node else f"input {value.port}")
