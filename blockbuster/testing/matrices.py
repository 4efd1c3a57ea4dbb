"""Random programs of whole matrices, with sites of rules 4, 5, 6 and 8.

``programs.py`` makes nests of any shape; this module makes matmuls, norms, softmaxes and pointwise
operators over whole matrices, in the form that lowering gives them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple

from blockbuster.ir.builder import Builder
from blockbuster.ir.expr import Arg, Expr, Size, call
from blockbuster.ir.graph import Graph, Read, Value
from blockbuster.ir.ops import Elementwise, Functional, Op, Reduce
from blockbuster.ir.types import Type
from blockbuster.testing.terms import add_map

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


class Matrix(NamedTuple):
    """A matrix with rows M; ``bits`` bound its numbers, so that integers stay exact in float64."""

    value: Value
    columns: str
    bits: int


SUM_BITS = 3  # a dim has at most five elements
SMALL = 18  # the square of such a number, summed, contracted and doubled, has less than 53 bits


class MatrixPrograms:
    """Programs over one row dim M."""

    def __init__(self, random: Random, *, whole: bool = True, exponentials: bool = False) -> None:
        self.random = random
        self.blocks = WHOLE if whole else CURVED
        self.vectors = VECTOR_WHOLE if whole else VECTOR_CURVED
        self.exponentials = exponentials

    def graph(self) -> Graph:
        """One program of 2 to 5 array operators and 1 to 4 outputs."""
        self.builder = Builder()
        columns = self.random.choice(COLUMNS)
        self.matrices = [Matrix(self.given("X", "M", columns), columns, 2)]
        self.rows: list[Value] = []
        self.read: list[Value] = []
        steps: list[Callable[[], object]] = [self.unary, self.matmul, self.combine, self.total]
        steps += [self.unary, self.norm, self.norm, self.shift, self.shift]
        if self.exponentials:
            steps += [self.softmax, self.exponential, self.softmax]
        for _ in range(self.random.randint(2, 5)):
            self.random.choice(steps)()
        made = [matrix.value for matrix in self.matrices[1:]] or [self.unary().value]
        ends = [v for v in reversed(made) if v not in self.read][: self.random.randint(1, 3)]
        if not ends or self.random.random() < 0.2:
            ends += [v for v in (*self.rows, *made) if v not in ends][:1]
        return self.builder.finish(*ends)

    # array operators -------------------------------------------------------------------

    def unary(self) -> Matrix:
        """One pointwise function, or two in a row."""
        made = self.pointwise(self.random.choice(self.blocks), self.pick(40))
        if self.random.random() < 0.6:
            made = self.pointwise(self.random.choice(self.blocks), made)
        return made

    def exponential(self) -> None:
        """exp of what tanh bounds: rounding errors of large numbers would grow with it."""
        bounded = self.pointwise(call("tanh", Arg(0)), self.pick())
        self.pointwise(call("exp", Arg(0)), bounded)

    def matmul(self, source: Matrix | None = None) -> None:
        left = source or self.pick(40)
        inner = left.columns
        columns = self.random.choice([c for c in COLUMNS if c != inner])
        weights = self.given(f"W{len(self.matrices)}", columns, inner)

        def cell(body: Builder, y: Value, x: Value) -> Value:
            dots = of_blocks(body, inner, Functional("dot"), [x, y])
            return body.add(Reduce(inner, "+"), dots)[0]

        product = self.nest(
            [left.value], lambda body, x, w: add_map(body, columns, [w], [x], cell), [weights]
        )
        self.matrices.append(Matrix(product, columns, left.bits + 2 + SUM_BITS))

    def norm(self) -> None:
        """A row scale by a function of the row sums, read by up to three matmuls."""
        matrix = self.pick()
        factor = self.per_row(self.random.choice(self.vectors), self.sums(matrix))
        scaled = self.by_row("row_scale", matrix, factor, 2 * matrix.bits + SUM_BITS + 1)
        for _ in range(self.random.randint(0, 3)):
            self.matmul(scaled)

    def shift(self) -> None:
        """A row shift, as in LayerNorm."""
        matrix = self.pick(36)
        vector = self.per_row(call("neg", Arg(0)), self.sums(matrix))
        shifted = self.by_row("row_shift", matrix, vector, matrix.bits + SUM_BITS + 1)
        if self.random.random() < 0.7:
            self.matmul(shifted)

    def softmax(self) -> None:
        """Unsafe, as lowering makes it; of what tanh bounds."""
        bounded = self.pointwise(call("tanh", Arg(0)), self.pick())
        root = call("pow", Size(bounded.columns), -0.5)
        powers = self.pointwise(call("exp", call("mul", Arg(0), root)), bounded)
        factor = self.per_row(call("div", 1, Arg(0)), self.sums(powers))
        scaled = self.by_row("row_scale", powers, factor, 1)
        if self.random.random() < 0.7:
            self.matmul(scaled)

    def combine(self) -> None:
        """add or mul of two matrices of one shape."""
        left = self.pick()
        columns = left.columns
        alike = [m for m in self.matrices if m.columns == columns and m.bits <= SMALL]
        right, name = self.random.choice(alike), self.random.choice(("add", "mul"))
        value = self.nest(
            [left.value, right.value],
            lambda body, *items: of_blocks(body, columns, Functional(name), items),
        )
        self.matrices.append(Matrix(value, columns, left.bits + right.bits + 1))

    def total(self) -> None:
        self.rows.append(self.sums(self.pick(40)))

    # parts -----------------------------------------------------------------------------

    def given(self, name: str, rows: str, columns: str) -> Value:
        lists = (rows, columns)
        return self.builder.input(Type(lists, lists), Read(name, lists), name)

    def pick(self, most: int = SMALL) -> Matrix:
        """A matrix of at most so many bits, rather the last."""
        small = [matrix for matrix in self.matrices if matrix.bits <= most]
        return small[-1] if self.random.random() < 0.6 else self.random.choice(small)

    def pointwise(self, expr: Expr, matrix: Matrix) -> Matrix:
        value = self.nest(
            [matrix.value], lambda body, x: of_blocks(body, matrix.columns, Elementwise(expr), [x])
        )
        made = matrix._replace(value=value, bits=matrix.bits + 1)
        self.matrices.append(made)
        return made

    def sums(self, matrix: Matrix) -> Value:
        def row(body: Builder, x: Value) -> Value:
            parts = of_blocks(body, matrix.columns, Functional("row_sum"), [x])
            return body.add(Reduce(matrix.columns, "+"), parts)[0]

        return self.nest([matrix.value], row)

    def per_row(self, expr: Expr, vector: Value) -> Value:
        return self.nest([vector], lambda b, x: b.add(Elementwise(expr), x)[0])

    def by_row(self, name: str, matrix: Matrix, vector: Value, bits: int) -> Matrix:
        value = self.nest(
            [matrix.value, vector],
            lambda body, x, c: of_blocks(body, matrix.columns, Functional(name), [x], [c]),
        )
        made = Matrix(value, matrix.columns, bits)
        self.matrices.append(made)
        return made

    def nest(self, iterated: list[Value], make: Make, whole: Sequence[Value] = ()) -> Value:
        """A map over the rows."""
        self.read += iterated
        return add_map(self.builder, "M", iterated, whole, make)


def of_blocks(
    body: Builder, columns: str, op: Op, blocks: Sequence[Value], once: Sequence[Value] = ()
) -> Value:
    """``op`` of every block of a row, and of what the row has once."""
    return add_map(body, columns, blocks, once, lambda b, *items: b.add(op, *items)[0])
