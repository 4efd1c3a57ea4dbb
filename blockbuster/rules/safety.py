"""safe: the numerical-safety pass, the last of the graph passes.

Every value that descends from an exponential is carried as a pair S * exp(t) with one exponent per
row, or one per element if blocks are added up or read by columns. An accumulator of such values
becomes a group: a running maximum, shared by all significands with the same exponent, which are
rescaled as it grows. Fused attention becomes online softmax.

before   e = exp(s)                         after   z = row_max(s)
         r = row_sum(e)                             d = sub0(s, z)
         yield +r                                   e = exp(d)
                                                    r = row_sum(e)
                                                    yield max t = z
                                                    yield +r by t: x * exp(sub0(r, r2))

Each value also keeps its plain form, for consumers that cannot take a pair (an output exp(x), or
1 + exp(x)): there, and in a map without its first iteration, the program stays as written. Values
that nothing reads are dropped when the graph is finished. Before all this, variances are taken
around the mean (centering.py); a program without variances and without exp does not change.
sigmoid, silu and tanh are stable by themselves.
Source: Blockbuster Part 1, appendix.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial

from blockbuster.ir.builder import Builder
from blockbuster.ir.expr import Arg, Expr, call
from blockbuster.ir.graph import Graph, Node, Output, Value
from blockbuster.ir.ops import (
    Accumulate,
    Cast,
    Collect,
    Elementwise,
    Functional,
    Map,
    Pointwise,
    Reduce,
    Relabel,
    Rescale,
    Result,
    Transpose,
)
from blockbuster.ir.origin import Origin
from blockbuster.ir.types import Dim, Type
from blockbuster.ir.verify import check_graph
from blockbuster.rules.array_terms import Number, Terms
from blockbuster.rules.centering import centered
from blockbuster.rules.emitter import Emitter, Made
from blockbuster.rules.exponents import lifted_expression, lifted_functional
from blockbuster.rules.extrema import LARGEST, by_logarithms, extremum
from blockbuster.rules.granularity import by_element, in_body
from blockbuster.rules.halves import halved
from blockbuster.rules.logarithms import Logarithm, logarithm
from blockbuster.rules.overflow import overflowing
from blockbuster.rules.pairs import Counts, Pair
from blockbuster.rules.shifts_back import with_shifts_back
from blockbuster.rules.signs import SignsOfTerms

RESCALED = call("mul", Arg(0), call("exp", call("sub0", Arg(1), Arg(2))))
"""The factor of a significand: x * exp(r - r2), and 0 for a row that is absent (r = -inf)."""

LEFT = -2
"""The node of a map's results while the map is not made yet."""


def safe(graph: Graph, note: Callable[[str], None] = lambda _: None) -> Graph:
    """``graph`` with exponentials as significand-exponent pairs, and variances around the mean.

    The values are the same in exact arithmetic. If exponents per row leave an exponential that can
    overflow, every element gets its own exponent, if that leaves fewer of them; ``overflowing``
    names those that are left. ``note`` is told which variances stay as they are, and why. Raises
    TypeError for an argument that is not a graph.
    """
    check_graph(graph)
    graph = centered(with_shifts_back(graph), note)
    made = _rewritten(graph, by_element(graph, [False] * len(graph.outputs)))
    if overflowing(made):
        made = min(made, _rewritten(graph, None), key=lambda g: len(overflowing(g)))
    return halved(made)


def _rewritten(graph: Graph, own: dict[Value, None] | None) -> Graph:
    level = _Level(Builder(), graph, own, SignsOfTerms(Terms()))
    for port, given in enumerate(graph.inputs):
        level.plain[Value(-1, port)] = level.builder.input(given.type, given.view, given.hint)
    level.run()
    outputs = [Output(level.plain[o.value], o.name, o.axes) for o in graph.outputs]
    return level.builder.finish(*outputs)


@dataclass
class _Level:
    """One graph level being rewritten: for each old value its plain form, and its pair if any.

    ``own`` are the values whose elements need exponents of their own; None: all. ``signs``: of the
    terms of old values; those of a body's inputs are ``given``.
    """

    builder: Builder
    graph: Graph
    own: dict[Value, None] | None
    signs: SignsOfTerms
    given: Callable[[], list[Number]] | None = None

    def __post_init__(self) -> None:
        self.plain: dict[Value, Value] = {}
        self.pairs: dict[Value, Pair] = {}
        self.logs: dict[Value, Logarithm] = {}
        self.made: dict[Made, Value] = {}

    def run(self) -> None:
        """Rewrite every node."""
        for position, node in enumerate(self.graph.nodes):
            loop = node.op
            if isinstance(loop, Reduce) and node.operands[0] in self.pairs:
                loop = _fold_of(loop, self.graph.type_of(node.operands[0]).element())
            if isinstance(loop, Map) and not loop.start:
                self._map(position, node, loop)
                continue
            for port, value in enumerate(self._as_written(node)):
                self.plain[Value(position, port)] = value
            lifted = self._lifted(node, own=self.own is None or Value(position) in self.own)
            if lifted is not None:
                self._bind(Value(position), lifted, node)
            if Value(position) not in self.pairs:
                self._follow_logarithm(Value(position), node)

    def _follow_logarithm(self, value: Value, node: Node) -> None:
        """Add what is added to the logarithm of a significand to its exponent first."""
        known = {i: self.logs[v] for i, v in enumerate(node.operands) if v in self.logs}
        pairs = {i: self.pairs[v] for i, v in enumerate(node.operands) if v in self.pairs}
        if not (known or pairs) or (known and pairs):
            return
        to = self._emitter(node)
        found = logarithm(to, node, known, pairs)
        if found is None:
            return
        self.logs[value] = found
        if found.summed:
            both = to.emit(call("add", to.leaf(found.large), to.leaf(found.small)))
            self.plain[value] = to.with_axes(both, node.types[0].axes)

    def _as_written(self, node: Node) -> tuple[Value, ...]:
        """The node's own results. A result computed before is used again, so that it cancels."""
        operands = tuple(self.plain[v] for v in node.operands)
        known = self.made.get((node.op, operands))
        if known is not None and not node.types[0].buffered:
            return (known,)
        made = self.builder.add(node.op, *operands, hints=node.hints, origin=node.origin)
        if len(made) == 1:
            self.made.setdefault((node.op, operands), made[0])
        return made

    def _bind(self, value: Value, lifted: Pair | Value, node: Node) -> None:
        """Record what a value became; a quotient of exponentials is best materialized."""
        if isinstance(lifted, Value):
            self.plain[value] = lifted
            return
        if not lifted.terms:
            self.plain[value] = lifted.significand
            return
        self.pairs[value] = lifted
        if lifted.is_quotient and not self.graph.type_of(value).buffered:
            self.plain[value] = self._emitter(node).materialized(lifted)

    def _emitter(self, node: Node, *, own: bool = False) -> Emitter:
        leaves = tuple(self.plain[v] for v in node.operands)
        order = node.types[0].axes
        origin = Origin("safe", (node.origin,))
        logs = {self.plain[v]: self.logs[v] for v in node.operands if v in self.logs}
        apart = {v: (log.large, log.small) for v, log in logs.items() if not log.summed}
        builder, made = self.builder, self.made
        return Emitter(
            builder, origin, leaves, own=own, order=order, made=made, apart=apart,
            signs=lambda at: self.signs_of(node.operands[at]),
        )  # fmt: skip

    @cached_property
    def _numbers(self) -> dict[Value, Number]:
        return self.signs.terms.values(self.graph, self.given and self.given())

    def signs_of(self, value: Value) -> str:
        """The signs that elements of an old value may have."""
        return self.signs.of(self._numbers[value])

    def _lifted(self, node: Node, *, own: bool) -> Pair | Value | None:
        """What the node makes of pairs; None if it needs, and gives, plain values."""
        to = self._emitter(node, own=own)
        args = tuple(self.pairs.get(v, self.plain[v]) for v in node.operands)
        if isinstance(node.op, Elementwise | Pointwise):
            return self._expression(to, node, node.op.expr)
        if not any(isinstance(a, Pair) for a in args):
            return None
        match node.op:
            case Functional(name):
                return lifted_functional(to, name, args, node.types[0].axes)
            case Cast() | Relabel() | Transpose():
                return self._readdressed(to, node, args[0])
        return None

    def _expression(self, to: Emitter, node: Node, expr: Expr) -> Pair | Value | None:
        pairs = {i: self.pairs[v] for i, v in enumerate(node.operands) if v in self.pairs}
        part = lifted_expression(to, expr, pairs)
        (type,) = node.types
        if not isinstance(part, Pair):
            return None if part == expr else to.with_axes(to.emit(part), type.axes)
        return to.over(part, type.axes)

    def _readdressed(self, to: Emitter, node: Node, pair: Pair | Value) -> Pair | None:
        """Casts act on the significand, relabels and other orders on both lists."""
        assert isinstance(pair, Pair)
        op = node.op
        if isinstance(op, Cast):
            return replace(pair, significand=to.apply(op, pair.significand), product=None)
        type = to.builder.type_of(pair.significand)
        if isinstance(op, Transpose) and op.axes != type.axes and pair.shared:
            own = None if type.buffered else to.by_elements(pair)
            if own is None:
                return None  # the exponents of its rows would belong to columns
            pair = own
        terms = []
        for coefficient, value in pair.terms:
            given = to.builder.type_of(value)
            if isinstance(op, Transpose):
                axes = op.axes if len(given.axes) == len(op.axes) else given.axes
                lists = tuple(dim for dim in op.lists if dim in given.lists)
                value = to.apply(Transpose(lists, axes), value)
            elif isinstance(op, Relabel) and op.old in given.lists + given.axes:
                value = to.apply(op, value)
            terms.append((coefficient, value))
        made = to.apply(op, pair.significand)
        return Pair(made, tuple(terms), None, pair.counts, pair.shared)

    # maps ----------------------------------------------------------------------

    def _map(self, position: int, node: Node, op: Map) -> None:
        own = None
        if self.own is not None:
            asked = [Value(position, port) in self.own for port in range(len(op.results))]
            own = in_body(op, asked)
        inner = _Level(
            Builder(), op.body, own, self.signs, lambda: [self._numbers[v] for v in node.operands]
        )
        read = _Operands(self, inner)
        given = tuple(zip(node.operands, op.iterated, strict=True))
        for port, (value, walks) in enumerate(given):
            hint = op.body.inputs[port].hint
            inner.plain[Value(-1, port)] = read.added(self.plain[value], walks, hint)
        for port, (value, walks) in enumerate(given):
            seen = partial(read.entered, dim=op.dim if walks else None)
            if value in self.pairs:
                inner.pairs[Value(-1, port)] = self.pairs[value].each(seen)
            if value in self.logs:
                inner.logs[Value(-1, port)] = self.logs[value].each(seen)
        inner.run()
        left = _Results(inner, read, [inner.plain[o.value] for o in op.body.outputs], [*op.results])
        ends = tuple(zip(op.body.outputs, op.results, strict=True))
        pairs = [left.pair(o.value, r) for o, r in ends]
        logs = [left.logarithm(o.value, r) for o, r in ends]
        same = [(inner.plain[output.value], result) for output, result in ends]
        body = inner.builder.finish(*left.outputs)
        safe_op = Map(op.dim, body, tuple(read.iterated), tuple(left.results))
        hints = node.hints
        made = self.builder.add(safe_op, *read.operands, hints=hints, origin=node.origin)

        def here(value: Value) -> Value:
            return made[value.port] if value.node == LEFT else value

        for port, (pair, log) in enumerate(zip(pairs, logs, strict=True)):
            self.plain[Value(position, port)] = made[same.index(same[port])]
            if pair is not None:
                self._bind(Value(position, port), pair.each(here), node)
            if log is not None:
                self.logs[Value(position, port)] = log.each(here)


def _fold_of(op: Reduce, item: Type) -> Map:
    """The map that reduces a list: it folds the items as they are."""
    body = Builder()
    return Map(op.dim, body.finish(body.input(item)), (True,), (Accumulate(op.monoid),))


@dataclass
class _Operands:
    """What a map reads, on both of its sides."""

    outer: _Level
    inner: _Level

    def __post_init__(self) -> None:
        self.operands: list[Value] = []
        self.iterated: list[bool] = []

    def added(self, value: Value, walks: bool, hint: str = "") -> Value:
        """A new operand, as the body sees it."""
        type = self.outer.builder.type_of(value)
        self.operands.append(value)
        self.iterated.append(walks)
        return self.inner.builder.input(type.element() if walks else type, hint=hint)

    def entered(self, value: Value, *, dim: Dim | None) -> Value:
        """A value as the body sees it: an item of a list over ``dim``, else all of it."""
        walks = self.outer.builder.type_of(value).lists[:1] == (dim,)
        pairs = tuple(zip(self.operands, self.iterated, strict=True))
        if (value, walks) in pairs:
            return Value(-1, pairs.index((value, walks)))
        return self.added(value, walks)

    def list_of(self, value: Value) -> Value | None:
        """The operand of which the body's ``value`` is an item, if it is one."""
        return self.operands[value.port] if value.node < 0 and self.iterated[value.port] else None

    def whole_of(self, value: Value) -> Value | None:
        """The operand that the body's ``value`` is, if all iterations read the same."""
        whole = value.node < 0 and not self.iterated[value.port]
        return self.operands[value.port] if whole else None


@dataclass
class _Results:
    """The results of a map, with significands and exponents behind those that it had.

    Seen from outside a result is ``Value(LEFT, port)`` until the map is made.
    """

    level: _Level
    read: _Operands
    outputs: list[Value]
    results: list[Result]

    def __post_init__(self) -> None:
        given = zip(self.outputs, self.results, strict=True)
        top = Accumulate("max")  # an exponent may be a maximum that the program asks for
        self._made = {(v, repr(top)): port for port, (v, r) in enumerate(given) if r == top}
        self._given = tuple(self.outputs)

    def pair(self, value: Value, result: Result) -> Pair | None:
        """The pair of ``value`` outside of the map.

        An exponent that all iterations share stays outside of their fold: added to each of theirs,
        and taken off again, it would cost digits.
        """
        pair = self.level.pairs.get(value)
        if pair is None or isinstance(result, Rescale) or result == Accumulate("prod"):
            return None  # exponents of a product add up, and no maximum is its own
        if isinstance(result, Collect):
            kept = bool(self._not_worth_storing(pair))
            return replace(pair, product=None if kept else pair.product).each(self._list)
        outside = tuple((c, w) for c, v in pair.terms if (w := self.read.whole_of(v)) is not None)
        terms = tuple((c, v) for c, v in pair.terms if self.read.whole_of(v) is None)
        to = Emitter(self.level.builder, Origin("safe"), made=self.level.made)
        asks = result.monoid in LARGEST and (terms or pair.shared)
        own = by_logarithms(to, result.monoid, self.level.signs_of(value), pair) if asks else None
        if own is not None:
            least = self._port(own.terms[0][1], Accumulate("min"))
            return extremum(result.monoid, self._port(own.significand, result), least)
        if not terms:
            total = self._port(pair.significand, result)
            return Pair(total, outside, None, pair.counts, pair.shared)
        lead = self._port(to.exponent(terms), Accumulate("max"))
        significand = self._port(pair.significand, Rescale(result.monoid, (lead.port,), RESCALED))
        counts = Counts(1, pair.counts.reciprocals if outside else 0)
        return Pair(significand, ((1.0, lead), *outside), None, counts, pair.shared)

    def logarithm(self, value: Value, result: Result) -> Logarithm | None:
        """The logarithm in ``value`` outside of the map, if it has yet to be added to something."""
        log = self.level.logs.get(value)
        if log is None or log.summed or not isinstance(result, Collect):
            return None
        return log.each(self._list)

    def _not_worth_storing(self, pair: Pair) -> str:
        """Why the product of a pair does not leave the map, or "".

        x - m is exact only for the x that m is the maximum of, not for one that was rounded.
        """
        values = pair.product.values if pair.product else ()
        stored = [v for v in dict.fromkeys(values) if self.read.list_of(v) is None]
        if any(v in self._given for v in stored):
            return "a part of it is a result, which may be rounded where it is stored"
        axes = self.level.builder.type_of(pair.significand).axes
        if sum(self.level.builder.type_of(v).axes == axes for v in stored) > 1:
            return "more than one block would be stored where its significand is one"
        return ""

    def _list(self, value: Value) -> Value:
        """The list of a body's value, or the value itself where all iterations read the same."""
        known = self.read.list_of(value) or self.read.whole_of(value)
        return self._port(value, Collect()) if known is None else known

    def _port(self, value: Value, result: Result) -> Value:
        key = (value, repr(result))
        if key not in self._made:
            self._made[key] = len(self.outputs)
            self.outputs.append(value)
            self.results.append(result)
        return Value(LEFT, self._made[key])
