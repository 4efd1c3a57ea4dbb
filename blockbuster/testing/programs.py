"""Random block programs, built so that each is valid and means the same under any blocking.

Every choice is made by a ``random.Random``:
Hypothesis passes one whose draws it can shrink, a fuzzer passes a seeded one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product, repeat
from random import Random

from blockbuster.ir.builder import Builder
from blockbuster.ir.expr import Arg, Expr, call
from blockbuster.ir.graph import Graph, Index, Read, Value
from blockbuster.ir.ops import (
    Accumulate,
    Collect,
    Elementwise,
    Functional,
    Map,
    Reduce,
    Relabel,
    Result,
    Transpose,
)
from blockbuster.ir.types import Dim, Type, fresh_dim
from blockbuster.testing.terms import Level, Make, Term, add_map, adds, multiplies

DIMS = ("M", "N", "K")
BATCH = "B"
SUM_BITS = 3  # a dim has at most five elements
MOST_BITS = 45  # below the 53 that float64 holds exactly
DEEPEST = 4
MOST_INSIDE = 3  # nodes drawn in the body of a map

# functions that keep whole numbers whole, and linear ones among them
LINEAR: tuple[Expr, ...] = (call("neg", Arg(0)), call("mul", Arg(0), 2))
WHOLE: tuple[Expr, ...] = (
    call("relu", Arg(0)),
    call("abs", Arg(0)),
    call("add", Arg(0), 1),
    call("maximum", Arg(0), 1),
)
BOUNDED: tuple[Expr, ...] = (
    call("tanh", Arg(0)),
    call("sigmoid", Arg(0)),
    call("exp", call("neg", call("abs", Arg(0)))),
    call("rsqrt", call("add", call("square", call("tanh", Arg(0))), 1)),
)


class BlockPrograms:
    """A generator of random block programs.

    ``whole`` keeps to functions under which integers stay integers, so that float64 is exact.
    """

    def __init__(self, random: Random, *, whole: bool = True) -> None:
        self.random = random
        self.functions = LINEAR + WHOLE if whole else LINEAR + WHOLE + BOUNDED
        self.single = frozenset({BATCH})
        self.rare = (  # what seldom finds operands is tried first more often
            (self.contract, 8), (self.scale_rows, 5), (self.reduce, 2), (self.sum_rows, 2),
            (self.combine, 1), (self.unary, 1),
        )  # fmt: skip

    def graph(self) -> Graph:
        """One program: 2 to 4 matrices, 3 to 8 nodes, 1 to 3 outputs."""
        level = Level()
        self.inputs(level)
        given = len(level.terms)
        for _ in range(self.random.randint(3, 8)):
            self.grow(level)
        made = level.terms[given:]
        chosen = made[-1:] + self.some(made[:-1], 0, 2)
        builder, values = level.built(chosen, range(given))
        ends = map(self.completed, repeat(builder), values, chosen)
        return builder.finish(*dict.fromkeys(ends))

    def inputs(self, level: Level) -> None:
        """Matrices, some read twice, some with a batch dim; perhaps a vector and an index."""
        batch = (BATCH,) if self.random.random() < 0.15 else ()
        for name in ("X", "Y", "Z", "W")[: self.random.randint(2, 4)]:
            rows, columns = self.random.sample(DIMS, 2)
            if self.random.random() < 0.5:
                rows, columns = self.random.choice(("M", "N")), "K"  # what a dot needs
            if self.random.random() < 0.1:
                columns = f"{rows}'"
            lists = (*(batch if self.random.random() < 0.7 else ()), rows, columns)
            level.given(Type(lists, (rows, columns)), Read(name, lists), name)
            if self.random.random() < 0.15:
                again = (*lists[:-2], f"{rows}'" if columns != f"{rows}'" else f"{rows}''", columns)
                level.given(Type(again, again[-2:]), Read(name, again), name)
        if self.random.random() < 0.5:
            dim = self.random.choice(DIMS)
            level.given(Type((dim,), (dim,)), Read("V", (dim,)), "V")
        if self.random.random() < 0.15:
            dim = self.random.choice(DIMS)
            level.given(Type((dim,), (dim,)), Index(dim), "i")

    def some(self, terms: Sequence[Term], fewest: int, most: int) -> list[Term]:
        """A few of ``terms``, in random order."""
        most = min(most, len(terms))
        count = self.random.randint(min(fewest, most), most)
        if count < 2:  # as below, and faster
            return [self.random.choice(terms)] if count else []
        return self.random.sample(terms, count)

    def grow(self, level: Level) -> None:
        """Add a node, of the first kind in a random order for which there are operands."""
        for kind in self.kinds(level):
            if kind(level):
                return

    def kinds(self, level: Level) -> Iterator[Callable[[Level], bool]]:
        """All kinds of nodes in a random order."""
        random = self.random
        if random.random() < 0.3:
            yield self.nest
        chance = random.random()
        outer = (self.readdress, self.map) if chance < 0.05 else (self.map, self.readdress)
        first = chance < (0.4 if level.local else 0.95)
        if first:
            yield from outer
        for kind, _ in sorted(self.rare, key=lambda kind: random.random() ** kind[1]):
            yield kind
        if not first:
            yield from outer

    # kinds of nodes: each adds one if it finds operands, and says whether it did ------------

    def unary(self, level: Level) -> bool:
        """An elementwise function; only linear ones keep a partial sum a partial sum."""
        terms = [t for t in level.local if not t.partial or t.fold == "+"]
        if not terms:
            return False
        term = self.random.choice(terms)
        expr = self.random.choice(LINEAR if term.partial else self.functions)
        level.add(Elementwise(expr), [term], term.bits + 1, term.fold, term.partial)
        return term.bits < MOST_BITS

    def sum_rows(self, level: Level) -> bool:
        """row_sum or row_max: a fold of the current block."""
        name, fold = self.random.choice((("row_sum", "+"), ("row_sum", "+"), ("row_max", "max")))
        terms = [t for t in level.local if t.type.axes and (not t.partial or t.fold == fold)]
        terms = [t for t in terms if t.bits + SUM_BITS <= MOST_BITS]
        if not terms:
            return False
        term = self.random.choice(terms)
        folded = {term.type.axes[-1]} & {*level.enclosing}
        level.add(Functional(name), [term], term.bits + SUM_BITS, fold, term.partial | folded)
        return True

    def scale_rows(self, level: Level) -> bool:
        """A block and a vector of its rows or columns."""
        blocks = [t for t in level.local if len(t.type.axes) == 2]
        vectors = [t for t in level.local if len(t.type.axes) == 1]
        found = [
            (side, block, vector)
            for block, vector in product(blocks, vectors)
            for side, axis in (("row", 0), ("col", 1))
            if vector.type.axes[0] == block.type.axes[axis]
        ]
        return self.binary(
            level,
            [(f"{side}_scale", a, b) for side, a, b in found if multiplies(a, b)]
            + [(f"{side}_shift", a, b) for side, a, b in found if adds(a, b)],
        )

    def combine(self, level: Level) -> bool:
        """Two terms of one type."""
        pairs = [(a, b) for a, b in product(level.local, repeat=2) if a.type.axes == b.type.axes]
        return self.binary(
            level,
            [(name, a, b) for a, b in pairs if adds(a, b) for name in ("add", "sub")]
            + [("mul", a, b) for a, b in pairs if multiplies(a, b)],
        )

    def contract(self, level: Level) -> bool:
        """dot and outer."""
        found: list[tuple[str, Term, Term]] = []
        for a, b in product(level.local, repeat=2):
            left, right = a.type.axes, b.type.axes
            if not left or len(left) != len(right) or left[0] == right[0]:
                continue
            if left[1:] == right[1:] and multiplies(a, b):
                found.append(("outer" if len(left) == 1 else "dot", a, b))
        return self.binary(level, found)

    def binary(self, level: Level, found: Sequence[tuple[str, Term, Term]]) -> bool:
        """One of the operators found, if any, whose result is small enough."""
        small = [(n, a, b) for n, a, b in found if a.bits + b.bits + SUM_BITS <= MOST_BITS]
        if not small:
            return False
        name, a, b = self.random.choice(small)
        partial = a.partial | b.partial
        if name == "dot":
            partial |= {a.type.axes[1]} & {*level.enclosing}
        level.add(Functional(name), [a, b], a.bits + b.bits + SUM_BITS, "+", partial)
        return True

    def reduce(self, level: Level) -> bool:
        """A list of items folded to one."""
        found = [
            (t, t.type.lists[0], monoid)
            for t in level.terms
            if len(t.type.lists) == 1 and t.bits + SUM_BITS <= MOST_BITS
            for monoid in self.monoids(t, t.type.lists[0])
        ]
        if not found:
            return False
        term, dim, monoid = self.random.choice(found)
        level.add(
            Reduce(dim, monoid), [term], term.bits + SUM_BITS, term.fold, term.partial - {dim}
        )
        return True

    def monoids(self, term: Term, dim: Dim) -> tuple[str, ...]:
        """The monoids under which folding ``term`` over ``dim`` means the same in any blocking."""
        if dim in term.type.axes:
            return ()
        if dim in term.partial:
            return (term.fold,)
        kinds = ("+", "max", "min") if dim in self.single else ("max", "min")
        return tuple(m for m in kinds if not term.partial or m == term.fold)

    def readdress(self, level: Level) -> bool:
        """A transpose, or a relabeled view of a list."""
        terms = [t for t in level.terms if len(t.type.lists) + len(t.type.axes) > 1]
        if not terms:
            return False
        term = self.random.choice(terms)
        lists, axes = list(term.type.lists), list(term.type.axes)
        if lists and self.random.random() < 0.5:
            old = self.random.choice(lists)
            new = fresh_dim(old, (*lists, *axes, *level.enclosing))
            partial = frozenset(new if d == old else d for d in term.partial)
            level.add(Relabel(old, new), [term], term.bits, term.fold, partial)
        else:
            self.random.shuffle(lists)
            self.random.shuffle(axes)
            op = Transpose(tuple(lists), tuple(axes))
            level.add(op, [term], term.bits, term.fold, term.partial)
        return True

    def map(self, level: Level) -> bool:
        """A map over a dim that some term lists outermost."""
        if not level.listed or len(level.enclosing) >= DEEPEST:
            return False
        dim = self.random.choice(level.listed).type.lists[0]
        iterated = self.some([t for t in level.listed if t.type.lists[0] == dim], 2, 3)
        whole = [t for t in level.terms if not t.varies_along(dim)]
        broadcast = [t for t in whole if self.random.random() < (0.4 if t.type.lists else 0.7)]
        body = Level((*level.enclosing, dim))
        for term in iterated:
            body.entered(term, iterated=True)
        for term in broadcast:
            body.entered(term, iterated=False)
        given = len(body.terms)
        for _ in range(self.random.randint(1, MOST_INSIDE)):
            self.grow(body)
        made = body.terms[given:] or body.terms
        results = made[-1:] + self.some(made[:-1], 0, 1)  # most is made for the last
        self.close(level, dim, body, [*iterated, *broadcast], len(iterated), results)
        return True

    def close(
        self,
        level: Level,
        dim: Dim,
        body: Level,
        operands: Sequence[Term],
        iterated: int,
        results: Sequence[Term],
    ) -> None:
        """Add the map with this body, each result collected or, where it may be, accumulated."""
        kinds: list[Result] = []
        for term in results:
            monoids = () if term.type.buffered else self.monoids(term, dim)
            fold = monoids and term.bits < MOST_BITS - SUM_BITS and self.random.random() < 0.5
            kinds.append(Accumulate(self.random.choice(monoids)) if fold else Collect())

        def reads(ports: list[int]) -> list[Value]:
            inputs = body.needed([results[port] for port in ports])[-1]
            return [operands[position].value for position in inputs]

        def make(builder: Builder, ports: list[int], *values: Value) -> Sequence[Value]:
            ends = [results[port] for port in ports]
            inputs = body.needed(ends)[-1]
            inner, made = body.built(ends, inputs)
            flags = tuple([position < iterated for position in inputs])
            chosen = tuple([kinds[port] for port in ports])
            return builder.add(Map(dim, inner.finish(*made), flags, chosen), *values)

        node = level.draw(make, reads)
        for port, (term, kind) in enumerate(zip(results, kinds, strict=True)):
            value, (_, type, bits, folded, partial) = Value(node, port), term
            if isinstance(kind, Collect):
                level.keep(Term(value, type.listed(dim), bits, folded, partial))
            else:
                partial -= {dim}
                level.keep(Term(value, type, bits + SUM_BITS, folded if partial else "", partial))

    def nest(self, level: Level) -> bool:
        """A matmul or a row scale as it is lowered: maps over all lists of two whole terms."""
        whole = [t for t in level.terms if t.type.buffered and t.type.lists == t.type.axes]
        found = [
            (build, a, b)
            for a, b in product(whole, repeat=2)
            if (build := _nest_for(a.type.lists, b.type.lists))
            if a.bits + b.bits + SUM_BITS <= MOST_BITS and multiplies(a, b)
        ]
        if not found:
            return False
        build, a, b = self.random.choice(found)
        axes = a.type.axes if build is _scaled_rows else (a.type.axes[0], b.type.axes[0])
        partial = a.partial | b.partial
        node = level.draw(build, lambda _: [a.value, b.value])
        value, bits = Value(node), a.bits + b.bits + SUM_BITS
        level.keep(Term(value, Type(axes, axes), bits, "+" if partial else "", partial))
        return True

    # outputs -----------------------------------------------------------------------------

    def completed(self, builder: Builder, value: Value, term: Term) -> Value:
        """``term`` as a whole array: folded over the list dims that its items do not carry."""
        loose = [d for d in term.type.lists if d not in term.type.axes and d not in self.single]
        if not loose:
            return value
        kept = [d for d in term.type.lists if d not in loose]
        (value,) = builder.add(Transpose((*kept, *loose), term.type.axes), value)
        return self._folded(builder, value, term, len(kept))

    def _folded(self, builder: Builder, value: Value, term: Term, kept: int) -> Value:
        type = builder.type_of(value)
        dim = type.lists[0]
        fold = term.fold if dim in term.partial else "max"
        if len(type.lists) == 1:
            return builder.add(Reduce(dim, fold), value)[0]
        body = Builder()
        inner = self._folded(body, body.input(type.element()), term, kept - 1)
        kind = Collect() if kept > 0 else Accumulate(fold)
        return builder.add(Map(dim, body.finish(inner), (True,), (kind,)), value)[0]


def _nest_for(left: Sequence[Dim], right: Sequence[Dim]) -> Make | None:
    """How arrays with these axes combine, if they do."""
    if len(left) == 2 and right == left[:1]:
        return _scaled_rows
    if len(left) == len(right) == 2 and left[1] == right[1] and left[0] != right[0]:
        return _product
    return None


def _product(builder: Builder, _: Sequence[int], a: Value, b: Value) -> Sequence[Value]:
    rows, inner = builder.type_of(a).lists
    columns = builder.type_of(b).lists[0]

    def cell(at: Builder, y: Value, x: Value) -> Value:
        products = add_map(at, inner, [x, y], [], _applying("dot"))
        return at.add(Reduce(inner, "+"), products)[0]

    def row(at: Builder, x: Value, y: Value) -> Value:
        return add_map(at, columns, [y], [x], cell)

    return [add_map(builder, rows, [a], [b], row)]


def _scaled_rows(builder: Builder, _: Sequence[int], a: Value, b: Value) -> Sequence[Value]:
    rows, inner = builder.type_of(a).lists

    def row(at: Builder, x: Value, scale: Value) -> Value:
        return add_map(at, inner, [x], [scale], _applying("row_scale"))

    return [add_map(builder, rows, [a, b], [], row)]


def _applying(name: str) -> Callable[..., Value]:
    return lambda at, *operands: at.add(Functional(name), *operands)[0]
