"""centered: variances are summed around the mean.

Sums and sums of squares that one loop takes give a variance as E[x^2] - E[x]^2, which loses digits
with the square of |mean| / deviation. Fusing a LayerNorm makes this. The pass parts the loop into
one for a first mean and one for the sums of the deviations from it; a row that is one block is
summed twice in its place.

before   s, q = map K {                     after   s = map K { yield +row_sum(x) }
           yield +row_sum(x)                        m = -(s * (1 / |K|))
           yield +row_sum(square(x))                u, q = map K (m = m) {
         }                                            d = x + m
         c = -(s * (1 / |K|))                         yield +row_sum(d)
         v = q * (1 / |K|) - square(c)                yield +row_sum(square(d))
                                                    }
                                                    c = m - u * (1 / |K|)
                                                    v = q * (1 / |K|)

Which expressions of s and q may be taken around the mean does not depend on how they are written:
those that do not change if every x is shifted. That is decided in exact arithmetic. Costs: x is
loaded once more. If x is itself the result of a matmul, it would be computed anew: then the program
stays as it is, and ``note`` gets the reason. LayerNorm of such rows is lowered around the mean
(frontend/decompose.py), so that only programs written out as E[x^2] - E[x]^2 are concerned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from blockbuster.ir.builder import Builder
from blockbuster.ir.expr import Arg, Call, Expr, call, calls, rewrite
from blockbuster.ir.graph import Graph, Node, Value
from blockbuster.ir.ops import Accumulate, Functional, Map
from blockbuster.ir.origin import Origin
from blockbuster.ir.types import Dim, size_class
from blockbuster.rules.base import hint_of, maker_of
from blockbuster.rules.element_formulas import scalar_of
from blockbuster.rules.emitter import Emitter
from blockbuster.rules.loop_again import summed_again
from blockbuster.rules.shift_invariance import around_mean, equal, minus_mean

TWICE = (
    "{name} comes of a matmul, which nobody wants to compute twice: its variance along {dim} stays "
    "E[x^2] - E[x]^2, which loses digits where the mean is many deviations"
)
_LARGEST = 100  # function applications of an expression that is looked at


def centered(graph: Graph, note: Callable[[str], None] = lambda _: None) -> Graph:
    """``graph`` with variances summed around the mean; the same values but for rounding."""
    while True:  # a level may have as many sites as the program has norms
        inner = _with_bodies_centered(graph, note)
        made = _with_one_centered(inner, note)
        if made is None:
            return inner
        graph = made


def _with_bodies_centered(graph: Graph, note: Callable[[str], None]) -> Graph:
    edit = Builder(graph)
    for position, node in enumerate(graph.nodes):
        if isinstance(node.op, Map):
            body = centered(node.op.body, note)
            if body is not node.op.body:
                edit.replace_op(position, replace(node.op, body=body))
    inner = edit.finish()
    return graph if inner == graph else inner


def _with_one_centered(graph: Graph, note: Callable[[str], None]) -> Graph | None:
    """``graph`` with the first variance of its own level centered that can be."""
    for sums in _sums(graph):
        made = _Centering(graph, sums).made(note)
        if made is not None:
            return made
    return None


@dataclass(frozen=True)
class _Sums:
    """Values of a level that sum ``elements``, and their squares, along ``dim``.

    ``loop`` is the map whose body has the elements; None if the level itself has them.
    """

    dim: Dim
    total: Value
    squares: Value
    elements: Value
    loop: int | None = None


def _sums(graph: Graph) -> Iterator[_Sums]:
    rows = [Value(at) for at, op in graph.of_type(Functional) if op == Functional("row_sum")]
    for total, squares, elements in _pairs(graph, [(value, value) for value in rows]):
        yield _Sums(graph.type_of(elements).axes[-1], total, squares, elements)
    for position, op in graph.of_type(Map):
        ends = zip(op.body.outputs, op.results, strict=True)
        folded = [
            (Value(position, port), output.value)
            for port, (output, result) in enumerate(ends)
            if result == Accumulate("+") and not op.start
        ]
        for total, squares, elements in _pairs(op.body, folded):
            if op.body.type_of(elements).axes[-1] == op.dim:
                yield _Sums(op.dim, total, squares, elements, position)


def _pairs(
    body: Graph, ends: Sequence[tuple[Value, Value]]
) -> Iterator[tuple[Value, Value, Value]]:
    """Among values and what each is in ``body``: sums of rows, sums of their squares, the rows."""
    totals: dict[Value, Value] = {}
    squares: list[tuple[Value, Value]] = []
    for value, end in ends:
        summed = _row_sum_of(body, end)
        if summed is None:
            continue
        totals.setdefault(summed, value)
        base = _square_of(body, summed)
        if base is not None:
            squares.append((base, value))
    for elements, value in squares:
        if elements in totals:
            yield totals[elements], value, elements


def _row_sum_of(graph: Graph, value: Value) -> Value | None:
    node = maker_of(graph, value)
    return node.operands[0] if node and node.op == Functional("row_sum") else None


def _square_of(graph: Graph, value: Value) -> Value | None:
    node = maker_of(graph, value)
    read = node.operands if node else ()
    match scalar_of(node) if node else None:
        case Call("square", (Arg(at),)):
            return read[at]
        case Call("mul", (Arg(a), Arg(b))) if read[a] == read[b]:
            return read[a] if graph.type_of(value) == graph.type_of(read[a]) else None
    return None


@dataclass
class _Centering:
    """Sums that ``safe`` takes around the mean, and the level in which they are.

    ``known``: values of the level as expressions of ``leaves``, the first three of which are the
    sum of the elements, the sum of their squares, and the place of the squares around the mean.
    """

    graph: Graph
    sums: _Sums

    def __post_init__(self) -> None:
        total, squares = self.sums.total, self.sums.squares
        self.leaves = [total, squares, squares]
        self.known: dict[Value, Expr] = {total: Arg(0), squares: Arg(1)}
        self.size = size_class(self.sums.dim)  # what expressions call the number of elements

    def made(self, note: Callable[[str], None]) -> Graph | None:
        """The level with loops of their own for the sums; None if not needed or not possible."""
        found = dict(self._variances())
        if not found:
            return None
        if self.sums.loop is not None and _holds_matmul(self._body, self.sums.elements):
            name = hint_of(self._body, self.sums.elements) or "x"
            note(TWICE.format(name=name, dim=self.sums.dim))
            return None
        edit = Builder(self.graph)
        to, minus = Emitter(edit, self._origin), minus_mean(self.size)
        to.leaves = [self.sums.total]
        first = to.emit(minus, hint="m")
        to.leaves = [*self.leaves]
        total, to.leaves[2] = self._sums_around(edit, first)
        new = {v: to.emit(e, hint=hint_of(self.graph, v) or "x") for v, e in found.items()}
        to.leaves = [total]
        center = to.emit(call("add", minus, to.leaf(first)), hint="c")
        old = self._center()
        for value, replacement in new.items() if old is None else ({**new, old: center}.items()):
            edit.redirect(value, replacement)
        return edit.finish()

    @property
    def _body(self) -> Graph:
        """The graph that has the elements."""
        loop = self.sums.loop
        op = self.graph.nodes[loop].op if loop is not None else None
        return op.body if isinstance(op, Map) else self.graph

    @property
    def _origin(self) -> Origin:
        return Origin("centered", (self.graph.nodes[self.sums.squares.node].origin,))

    # what depends on the sums ----------------------------------------------------

    def _variances(self) -> Iterator[tuple[Value, Expr]]:
        """Values of this level that are to be made of squares around the mean, and how."""
        for position, node in enumerate(self.graph.nodes):
            expr, value = scalar_of(node), Value(position)
            if expr is None or not any(v in self.known for v in node.operands):
                continue
            whole = self._inlined(expr, node)
            alike = all(self._axes(v) == self._axes(value) for v in node.operands)
            if not alike or calls(whole) > _LARGEST:
                continue
            new = around_mean(whole, self.size, Arg(2))
            self.known[value] = whole
            if new != whole:
                yield value, new

    def _inlined(self, expr: Expr, node: Node) -> Expr:
        """``expr`` of ``node`` as one of ``leaves``."""

        def leaf(part: Expr) -> Expr:
            if not isinstance(part, Arg):
                return part
            value = node.operands[part.index]
            if value not in self.known:
                self.known[value] = Arg(len(self.leaves))
                self.leaves.append(value)
            return self.known[value]

        return rewrite(expr, leaf)

    def _axes(self, value: Value) -> tuple[Dim, ...]:
        return self.graph.type_of(value).axes

    def _center(self) -> Value | None:
        """A value of this level that is minus the mean."""
        minus = minus_mean(self.size)
        found = (v for v, e in self.known.items() if isinstance(e, Call) and e.arguments == (0,))
        return next((v for v in found if equal(self.known[v], minus, self.size)), None)

    # the sums around the mean ----------------------------------------------------

    def _sums_around(self, edit: Builder, center: Value) -> list[Value]:
        """The sum of the elements shifted by ``center``, and of their squares."""
        hints = ("u", hint_of(self.graph, self.sums.squares) or "x")

        def ends(to: Emitter, x: Sequence[Value], given: Sequence[Value]) -> list[Value]:
            d = to.emit(call("add", to.leaf(x[0]), to.leaf(given[0])), hint="d")
            q = to.emit(call("square", to.leaf(d)), hint="q")
            return [
                to.apply(Functional("row_sum"), of, hint=hint)
                for of, hint in zip((d, q), hints, strict=True)
            ]

        if self.sums.loop is None:
            return ends(Emitter(edit, self._origin), [self.sums.elements], [center])
        node, wanted = self.graph.nodes[self.sums.loop], [self.sums.elements]
        return summed_again(edit, node, wanted, [(center, "c")], ends, hints, self._origin)


def _holds_matmul(graph: Graph, value: Value) -> bool:
    """True if a matmul, or a map, is among what ``value`` is made of."""
    seen, stack = {value}, [value]
    while stack:
        node = maker_of(graph, stack.pop())
        if node is None:
            continue
        if isinstance(node.op, Map) or node.op == Functional("dot"):
            return True
        stack += (new := [v for v in node.operands if v not in seen])
        seen.update(new)
    return False
