"""centered: variances are summed around the mean, and rows are normalized before a dot, not after.

If one loop takes sums and sums of squares, a variance is E[x^2] - E[x]^2, which loses digits with
the square of |mean| / deviation; and x W - mean 1 W loses them with |mean| / deviation. Fusing a
LayerNorm with its readers makes both. This pass splits the loop again: into one for a first mean,
one for the sums of the deviations from it, and one for the dots.

before   s, q, p, t = map K {               after   s = map K { yield +row_sum(x) }
           yield +row_sum(x)                        m = -(s * (1 / |K|))
           yield +row_sum(square(x))                u, q = map K (m = m) {
           yield +dot(x, w)                           d = x + m
           yield +row_sum(w)                          yield +row_sum(d)
         }                                            yield +row_sum(square(d))
         c = -(s * (1 / |K|))                       }
         v = q * (1 / |K|) - square(c)              c = m - u * (1 / |K|)
         y = add(outer(c, t), p)                    v = q * (1 / |K|)
         z = row_scale(y, rsqrt(v))                 r = rsqrt(v)
                                                    z = map K (c = c, r = r) {
                                                      yield +dot((x + c) * r, w)
                                                    }

Which expressions of s and q may be taken around the mean does not depend on how they are written:
those that do not change if every x is shifted. That is decided in exact arithmetic. The dot reads
the normalized value, as the original program does: in float16, x + c alone would be rounded alike
in many elements, and such errors add up. Costs: x is loaded three times. No dot shares its loop
with sums of its operands, so that it can be pipelined. If x is itself the result of a matmul, it
would be computed anew each time: then the program stays as it is, and ``note`` gets the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from blockbuster.ir.builder import Builder
from blockbuster.ir.expr import Arg, Call, Expr, call, calls, rewrite
from blockbuster.ir.graph import Graph, Node, Output, Value
from blockbuster.ir.ops import Accumulate, Elementwise, Functional, Map, Pointwise
from blockbuster.ir.origin import Origin
from blockbuster.ir.types import Dim, size_class
from blockbuster.rules.emitter import Emitter
from blockbuster.rules.shift_invariance import around_mean, equal, minus_mean

TWICE = (
    "{name} comes of a matmul, which nobody wants to compute twice: its variance along {dim} stays "
    "E[x^2] - E[x]^2, which loses digits where the mean is many deviations"
)
_LARGEST = 100  # function applications of an expression that is looked at
_SCALAR = ("add", "sub", "mul", "div")


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
    for position, node in enumerate(graph.nodes):
        if isinstance(node.op, Map) and not node.op.start:
            for sums in _sums(node.op):
                made = _Centering(graph, position, node.op, sums).made(note)
                if made is not None:
                    return made
    return None


@dataclass(frozen=True)
class _Sums:
    """Ports of a map that sum ``elements`` of its body, and their squares, along the map's dim."""

    elements: Value
    total: int
    squares: int


def _sums(op: Map) -> Iterator[_Sums]:
    totals: dict[Value, int] = {}
    squares: list[tuple[Value, int]] = []
    for port, (output, result) in enumerate(zip(op.body.outputs, op.results, strict=True)):
        summed = _row_sum_of(op.body, output.value)
        if result == Accumulate("+") and summed and op.body.type_of(summed).axes[-1] == op.dim:
            totals.setdefault(summed, port)
            base = _square_of(op.body, summed)
            if base is not None:
                squares.append((base, port))
    for value, port in squares:
        if value in totals:
            yield _Sums(value, totals[value], port)


def _row_sum_of(graph: Graph, value: Value) -> Value | None:
    node = _node(graph, value)
    return node.operands[0] if node and node.op == Functional("row_sum") else None


def _square_of(graph: Graph, value: Value) -> Value | None:
    node = _node(graph, value)
    expr = _expr(node) if node else None
    match expr:
        case Call("square", (Arg(at),)):
            return node.operands[at] if node else None
        case Call("mul", (Arg(a), Arg(b))) if node and node.operands[a] == node.operands[b]:
            return node.operands[a]
    return None


def _node(graph: Graph, value: Value) -> Node | None:
    return graph.nodes[value.node] if value.node >= 0 else None


def _expr(node: Node) -> Expr | None:
    match node.op:
        case Elementwise(expr) | Pointwise(expr):
            return expr
        case Functional(name) if name in _SCALAR:
            return call(name, Arg(0), Arg(1))
    return None


@dataclass(frozen=True)
class _NormedDot:
    """``result`` = outer(minus the mean, sum of rows of ``factor``) + sum of elements . factor.

    Its rows are multiplied by ``scale``, if that is not None.
    """

    result: Value
    factor: Value
    scale: Value | None
    hint: str


@dataclass
class _Centering:
    """One map whose sums are to be taken around the mean, in the level that it stands in.

    ``known``: values of the level as expressions of ``leaves``, the first three of which are the
    sum of the elements, the sum of their squares, and the place of the squares around the mean.
    """

    graph: Graph
    position: int
    op: Map
    sums: _Sums

    def __post_init__(self) -> None:
        self.total = Value(self.position, self.sums.total)
        self.squares = Value(self.position, self.sums.squares)
        self.leaves = [self.total, self.squares, self.squares]
        self.known: dict[Value, Expr] = {self.total: Arg(0), self.squares: Arg(1)}
        self.size = size_class(self.op.dim)  # what expressions call the number of elements

    def made(self, note: Callable[[str], None]) -> Graph | None:
        """The level with the loop parted; None if that is not called for, or not possible."""
        found = dict(self._variances())
        if not found:
            return None
        if _holds_matmul(self.op.body, self.sums.elements):
            name = _hint(self.op.body, self.sums.elements)
            note(TWICE.format(name=name, dim=self.op.dim))
            return None
        edit = Builder(self.graph)
        to, minus = Emitter(edit, self._origin), minus_mean(self.size)
        to.leaves = [self.total]
        first = to.emit(minus, hint="m")
        to.leaves = [*self.leaves]
        total, to.leaves[2] = self._sums_around(edit, first)
        new = {v: to.emit(e, hint=_hint(self.graph, v)) for v, e in found.items()}
        to.leaves = [total]
        center = to.emit(call("add", minus, to.leaf(first)), hint="c")
        old = self._center()
        dots = self._normed_dots(old, new)
        for dot, product in zip(dots, self._products(edit, center, dots, new), strict=True):
            edit.redirect(dot.result, product)
        for value, replacement in new.items() if old is None else ({**new, old: center}.items()):
            edit.redirect(value, replacement)
        return edit.finish()

    @property
    def _origin(self) -> Origin:
        return Origin("centered", (self.graph.nodes[self.position].origin,))

    # what depends on the sums ----------------------------------------------------

    def _variances(self) -> Iterator[tuple[Value, Expr]]:
        """Values of this level that are to be made of squares around the mean, and how."""
        for position, node in enumerate(self.graph.nodes):
            expr, value = _expr(node), Value(position)
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

    def _normed_dots(self, center: Value | None, new: dict[Value, Value]) -> list[_NormedDot]:
        """Dots of the elements to which what the shift makes of them is added afterwards."""
        found: list[_NormedDot] = []
        for position, node in enumerate(self.graph.nodes):
            if node.op != Functional("add"):
                continue
            for shift, dot in (node.operands, node.operands[::-1]):
                outer = _node(self.graph, shift)
                if outer and outer.op == Functional("outer") and outer.operands[0] == center:
                    columns = self._summed(outer.operands[1], "row_sum")
                    if columns and self._summed(dot, "dot") == (self.sums.elements, *columns):
                        result, scale = self._scaled(Value(position), new)
                        hint = _hint(self.graph, dot)
                        found.append(_NormedDot(result, columns[0], scale, hint))
        return found

    def _scaled(self, value: Value, new: dict[Value, Value]) -> tuple[Value, Value | None]:
        """``value`` times a vector made of the variance, where nothing else reads ``value``."""
        readers = [p for p, node in enumerate(self.graph.nodes) if value in node.operands]
        leaves = any(output.value == value for output in self.graph.outputs)
        if len(readers) == 1 and not leaves:
            node = self.graph.nodes[readers[0]]
            if node.op == Functional("row_scale") and node.operands[1] in new:
                return Value(readers[0]), node.operands[1]
        return value, None

    def _summed(self, value: Value, name: str) -> tuple[Value, ...] | None:
        """The operands of the functional that the map adds up to ``value``."""
        if value.node != self.position or self.op.results[value.port] != Accumulate("+"):
            return None
        node = _node(self.op.body, self.op.body.outputs[value.port].value)
        return node.operands if node and node.op == Functional(name) else None

    # the other loops -------------------------------------------------------------

    def _sums_around(self, edit: Builder, center: Value) -> list[Value]:
        """The sum of the elements shifted by ``center``, and of their squares."""

        def ends(to: Emitter, x: Value, given: Sequence[Value]) -> list[Value]:
            d = to.emit(call("add", to.leaf(x), to.leaf(given[0])), hint="d")
            q = to.emit(call("square", to.leaf(d)), hint="q")
            return [to.apply(Functional("row_sum"), d), to.apply(Functional("row_sum"), q)]

        hints = ("u", _hint(self.graph, self.squares))
        return self._loop(edit, [center], (), ends, hints)

    def _products(
        self, edit: Builder, center: Value, dots: list[_NormedDot], new: dict[Value, Value]
    ) -> list[Value]:
        """The ``dots`` of normalized elements."""
        scales = list(dict.fromkeys(dot.scale for dot in dots if dot.scale is not None))

        def ends(to: Emitter, x: Value, given: Sequence[Value]) -> list[Value]:
            shifted = call("add", to.leaf(x), to.leaf(given[0]))
            by = dict(zip(scales, map(to.leaf, given[1:]), strict=False))
            normed = {s: to.emit(call("mul", shifted, leaf), hint="y") for s, leaf in by.items()}
            plain = to.emit(shifted, hint="d")  # dropped where nothing reads it
            rows = [plain if dot.scale is None else normed[dot.scale] for dot in dots]
            pairs = zip(rows, given[1 + len(scales) :], strict=True)
            return [to.apply(Functional("dot"), row, factor) for row, factor in pairs]

        if not dots:
            return []
        vectors = [center, *(new[scale] for scale in scales)]
        factors = [dot.factor for dot in dots]
        return self._loop(edit, vectors, factors, ends, tuple(dot.hint for dot in dots))

    def _loop(
        self,
        edit: Builder,
        vectors: Sequence[Value],
        wanted: Sequence[Value],
        ends: Callable[[Emitter, Value, Sequence[Value]], list[Value]],
        hints: tuple[str, ...],
    ) -> list[Value]:
        """A map over the same lists, and ``vectors``, that adds up ``ends``.

        ``ends`` is given the elements, the vectors, and the ``wanted`` values of the old body.
        """
        node, body = self.graph.nodes[self.position], Builder()
        inputs = [body.input(i.type, hint=i.hint) for i in self.op.body.inputs]
        names = [edit.type_of(v) for v in vectors]
        whole = [body.input(t, hint="c" if at == 0 else "r") for at, t in enumerate(names)]
        outputs = tuple(map(Output, (self.sums.elements, *wanted)))
        x, *others = body.inline(replace(self.op.body, outputs=outputs), inputs)
        made = ends(Emitter(body, self._origin), x, [*whole, *others])
        results = (Accumulate("+"),) * len(made)
        iterated = (*self.op.iterated, *(False for _ in vectors))
        op = Map(self.op.dim, body.finish(*made), iterated, results)
        return list(edit.add(op, *node.operands, *vectors, hints=hints, origin=self._origin))


def _holds_matmul(graph: Graph, value: Value) -> bool:
    """True if a matmul, or a map, is among what ``value`` is made of."""
    seen, stack = {value}, [value]
    while stack:
        node = _node(graph, stack.pop())
        if node is None:
            continue
        if isinstance(node.op, Map) or node.op == Functional("dot"):
            return True
        stack += (new := [v for v in node.operands if v not in seen])
        seen.update(new)
    return False


def _hint(graph: Graph, value: Value) -> str:
    """The user's word for a value, or x."""
    node = _node(graph, value)
    return (node.hints[value.port] if node else graph.inputs[value.port].hint) or "x"
