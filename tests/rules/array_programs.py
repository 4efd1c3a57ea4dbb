"""Random unfused block programs: what rules 4, 5, 6 and 8 look for.

The generator of blockbuster.testing makes nests of any shape; here are matmuls, norms, softmaxes
and pointwise operators over whole matrices, in the form that lowering gives them.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from blockbuster.ir.builder import Builder
from blockbuster.ir.expr import Arg, Expr, Size, call
from blockbuster.ir.graph import Graph, Read, Value
from blockbuster.ir.ops import Collect, Elementwise, Functional, Map, Op, Reduce
from blockbuster.ir.types import Type

COLUMNS = ("K", "N", "D", "L")
Make = Callable[..., Value]
WHOLE: tuple[Expr, ...] = (
    call("mul", Arg(0), 2), call("add", Arg(0), 1), call("neg", Arg(0)), call("relu", Arg(0)),
)  # fmt: skip
CURVED: tuple[Expr, ...] = (
    call("tanh", Arg(0)), call("sigmoid", Arg(0)), call("silu", Arg(0)), call("neg", Arg(0)),
)  # fmt: skip
VECTOR_WHOLE: tuple[Expr, ...] = (call("neg", Arg(0)), call("add", Arg(0), 2))
VECTOR_CURVED: tuple[Expr, ...] = (
    call("tanh", Arg(0)), call("reciprocal", call("add", call("square", Arg(0)), 1)),
)  # fmt: skip


class ArrayPrograms:
    """Programs over one row dim M; a matrix is a (value, column dim) pair, a vector a value."""

    def __init__(self, random: Random, *, whole: bool = True, exponentials: bool = False) -> None:
        self.random = random
        self.blocks = WHOLE if whole else CURVED
        self.vectors = VECTOR_WHOLE if whole else VECTOR_CURVED
        self.exponentials = exponentials

    def graph(self) -> Graph:
        """One program of 2 to 5 array operators and 1 to 4 outputs."""
        self.builder = Builder()
        self.matrices = [self.given("X", "M", c) for c in self.random.sample(COLUMNS, 2)[:1]]
        self.rows: list[Value] = []
        self.read: list[Value] = []
        steps = [
            self.unary,
            self.unary,
            self.matmul,
            self.norm,
            self.norm,
            self.shift,
            self.shift,
            self.combine,
            self.total,
        ]
        if self.exponentials:
            steps += [self.softmax, self.exponential, self.softmax]
        for _ in range(self.random.randint(2, 5)):
            self.random.choice(steps)()
        made = [value for value, _ in self.matrices[1:]] or [self.unary()]
        ends = [v for v in reversed(made) if v not in self.read][: self.random.randint(1, 3)]
        if self.random.random() < 0.2:
            ends += [v for v in (*self.rows, *made) if v not in ends][:1]
        return self.builder.finish(*ends)

    # array operators -------------------------------------------------------------------

    def unary(self) -> Value:
        """One pointwise function, or two in a row."""
        value = self.pointwise(self.random.choice(self.blocks), self.pick())
        if self.random.random() < 0.6:
            value = self.pointwise(self.random.choice(self.blocks), self.matrices[-1])
        return value

    def exponential(self) -> Value:
        return self.pointwise(call("exp", Arg(0)), self.pick())

    def matmul(self, source: tuple[Value, str] | None = None) -> None:
        matrix, inner = source or self.pick()
        columns = self.random.choice([c for c in COLUMNS if c != inner])
        weights, _ = self.given(f"W{len(self.matrices)}", columns, inner)

        def cell(body: Builder, y: Value, x: Value) -> Value:
            dots = mapped(body, inner, [x, y], [], lambda b, p, q: one(b, Functional("dot"), p, q))
            return one(body, Reduce(inner, "+"), dots)

        product = self.nest(
            [matrix],
            [weights],
            lambda body, x, w: mapped(body, columns, [w], [x], cell),
        )
        self.matrices.append((product, columns))

    def norm(self) -> None:
        """A row scale by a function of the row sums, read by one or two matmuls."""
        matrix = self.pick()
        factor = self.per_row(self.random.choice(self.vectors), self.sums(matrix))
        scaled = self.by_row("row_scale", matrix, factor)
        for _ in range(self.random.randint(0, 3)):
            self.matmul(scaled)

    def shift(self) -> None:
        """A row shift, as in LayerNorm."""
        matrix = self.pick()
        vector = self.per_row(call("neg", Arg(0)), self.sums(matrix))
        shifted = self.by_row("row_shift", matrix, vector)
        if self.random.random() < 0.7:
            self.matmul(shifted)

    def softmax(self) -> None:
        """Unsafe, as lowering makes it."""
        matrix = self.pick()
        self.pointwise(call("exp", call("mul", Arg(0), call("pow", Size(matrix[1]), -0.5))), matrix)
        powers = self.matrices[-1]
        factor = self.per_row(call("div", 1, Arg(0)), self.sums(powers))
        scaled = self.by_row("row_scale", powers, factor)
        if self.random.random() < 0.7:
            self.matmul(scaled)

    def combine(self) -> None:
        """add or mul of two matrices of one shape, if there are."""
        left, columns = self.pick()
        others = [value for value, c in self.matrices if c == columns]
        right, name = self.random.choice(others), self.random.choice(("add", "mul"))
        op = Functional(name)
        value = self.nest(
            [left, right],
            [],
            lambda body, x, y: mapped(body, columns, [x, y], [], lambda b, p, q: one(b, op, p, q)),
        )
        self.matrices.append((value, columns))

    def total(self) -> None:
        self.rows.append(self.sums(self.pick()))

    # parts -----------------------------------------------------------------------------

    def given(self, name: str, rows: str, columns: str) -> tuple[Value, str]:
        lists = (rows, columns)
        return self.builder.input(Type(lists, lists), Read(name, lists), name), columns

    def pick(self) -> tuple[Value, str]:
        """A matrix, rather a late one."""
        return (
            self.matrices[-1] if self.random.random() < 0.6 else self.random.choice(self.matrices)
        )

    def pointwise(self, expr: Expr, matrix: tuple[Value, str]) -> Value:
        value, columns = matrix
        made = self.nest(
            [value],
            [],
            lambda body, x: mapped(
                body, columns, [x], [], lambda b, p: one(b, Elementwise(expr), p)
            ),
        )
        self.matrices.append((made, columns))
        return made

    def sums(self, matrix: tuple[Value, str]) -> Value:
        value, columns = matrix

        def row(body: Builder, x: Value) -> Value:
            parts = mapped(body, columns, [x], [], lambda b, p: one(b, Functional("row_sum"), p))
            return one(body, Reduce(columns, "+"), parts)

        return self.nest([value], [], row)

    def per_row(self, expr: Expr, vector: Value) -> Value:
        return self.nest([vector], [], lambda b, x: one(b, Elementwise(expr), x))

    def nest(self, iterated: list[Value], whole: list[Value], make: Make) -> Value:
        """A map over the rows."""
        self.read += iterated
        return mapped(self.builder, "M", iterated, whole, make)

    def by_row(self, name: str, matrix: tuple[Value, str], vector: Value) -> tuple[Value, str]:
        value, columns = matrix
        op = Functional(name)
        made = self.nest(
            [value, vector],
            [],
            lambda body, x, c: mapped(body, columns, [x], [c], lambda b, p, v: one(b, op, p, v)),
        )
        self.matrices.append((made, columns))
        return made, columns


def one(body: Builder, op: Op, *operands: Value) -> Value:
    """The result of one operator."""
    (value,) = body.add(op, *operands)
    return value


def mapped(
    builder: Builder, dim: str, iterated: list[Value], whole: list[Value], make: Make
) -> Value:
    """A map with one collected result; ``make`` builds its body from its inputs."""
    body = Builder()
    items = [body.input(builder.type_of(v).element()) for v in iterated]
    result = make(body, *items, *(body.input(builder.type_of(v)) for v in whole))
    flags = (True,) * len(iterated) + (False,) * len(whole)
    op = Map(dim, body.finish(result), flags, (Collect(),))
    return one(builder, op, *iterated, *whole)
