"""Values of a map's body without a factor that all iterations share.

Node by node, ``Separation`` says which factor a value has. The rest of the value has 1 in place of
the factor, or, within an exponential, 0 in place of the shift:

    value                     factor      rest
    row_scale(x, c)           c           x
    mul(p, g)                 c           mul(x, g)             p = row_scale(x, c)
    where(b, q, 0)            c           where(b, 1, 0)        q is c in all elements
    abs(p)                    |c|         abs(x)
    exp(row_shift(x, c))      exp(c)      exp(x)

Products and sums of blocks, rows and columns are taken as scalar functions over axes that are
matched by dim, so that a rest may have fewer axes than the value, or be one number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from blockbuster.ir.builder import Builder
from blockbuster.ir.expr import Arg, Call, Const, Expr, arguments, call, substitute
from blockbuster.ir.graph import Node, Value
from blockbuster.ir.ops import Functional, Map
from blockbuster.ir.origin import Origin
from blockbuster.ir.uses import results_of
from blockbuster.rules.base import label
from blockbuster.rules.by_dim import by_dim
from blockbuster.rules.element_formulas import scalar_of
from blockbuster.rules.linear_expressions import ONE, ZERO, joined
from blockbuster.rules.separate import Factor, NotSeparableError, Separation

Term = Value | Expr
"""A value of the edited body, or an expression without arguments (one number)."""


@dataclass
class Unscaled:
    """The values of the body of ``op`` with a factor that operand ``port`` makes.

    If ``exponential``, that is the exponential of what the operand adds to exponents: the first
    that is found. ``passed`` are the functions that a factor passes, beside arithmetic.

    ``factors`` and ``rests`` hold what values are products of, made in ``builder``, an edit of the
    body. Other values that depend on such have the reason in ``refused``, as a predicate in which
    "it" is the factor.
    ``axes`` are those of the factor.
    """

    op: Map
    port: int
    origin: Origin
    passed: tuple[str, ...]
    exponential: bool = False
    factors: dict[Value, Factor] = field(default_factory=dict)
    rests: dict[Value, Term] = field(default_factory=dict)
    refused: dict[Value, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        body, own = self.op.body, dict[Expr, float]({Arg(self.port): 1.0})
        self.builder, self.axes = Builder(body), body.inputs[self.port].type.axes
        self.factor = None if self.exponential else Factor(own)
        inputs = [Value(-1, port) for port in range(len(body.inputs))]
        made = (value for at in range(len(body.nodes)) for value in results_of(body.nodes, at))
        self._values = [*inputs, *made]
        self._numbers = {value: at for at, value in enumerate(self._values)}
        walked = zip(inputs, self.op.iterated, strict=True)
        shared = {v.port for v, walks in walked if not walks and not body.type_of(v).buffered}
        varying = {*self._numbers.values()} - shared | {self.port}
        self._shifts: dict[int, Mapping[Expr, float]] = {self.port: own} if self.exponential else {}
        self._unshifted: dict[Value, Term] = {inputs[self.port]: ZERO}
        self._known, self._carrying = dict[int, Factor](), {self.port}
        self._separation = Separation(
            self._carrying, varying, {}, self._known, self._shifts, self._power
        )
        self._put(inputs[self.port], self.factor or Factor(), ONE)
        for position, node in enumerate(body.nodes):
            try:
                self._follow(Value(position), node)
            except NotSeparableError as reason:
                self.refused |= dict.fromkeys(results_of(body.nodes, position), str(reason))

    @property
    def leaving(self) -> Factor | None:
        """The factor that values need to have: behind absolute values, its size."""
        return Factor({call("abs", Arg(self.port)): 1.0}) if "abs" in self.passed else self.factor

    def _follow(self, value: Value, node: Node) -> None:
        """Find the factor of what a node makes, if it has one."""
        for operand in node.operands:
            if operand in self.refused:
                raise NotSeparableError(self.refused[operand])
        expr = scalar_of(node)
        if expr is not None:
            expr = substitute(expr, [Arg(self._numbers[v]) for v in node.operands])
            self._shift(value, node, expr)
            factor = self._separation.factor(expr)
            if factor == Factor():
                return
            rest = self._emitted(self._rest(expr, ONE) or ONE, node)
        elif any(operand in self.factors for operand in node.operands):
            factor, rest = self._folded(node)
        else:
            return
        self._put(value, factor, rest)

    def _put(self, value: Value, factor: Factor, rest: Term) -> None:
        self._known[self._numbers[value]] = factor
        self._carrying.add(self._numbers[value])
        if factor != Factor():
            self.factors[value], self.rests[value] = factor, rest

    # scalar functions -----------------------------------------------------------------

    def _shift(self, value: Value, node: Node, expr: Expr) -> None:
        """Find what is added to a value, and the value without it."""
        terms = self._terms(expr)
        if terms:
            self._shifts[self._numbers[value]] = terms
            self._unshifted[value] = self._emitted(self._rest(expr, ZERO) or ZERO, node)
            self._put(value, Factor(), ONE)

    def _terms(self, expr: Expr) -> Mapping[Expr, float]:
        """What is added to an expression; nothing if that differs from element to element."""
        try:
            return self._separation.shift(expr) if self._shifts else {}
        except NotSeparableError:
            return {}

    def _power(self, exponent: Expr) -> Factor:
        """The factor of an exponential: the first that is found, or none."""
        terms = self._terms(exponent)
        if self.factor is None and terms:
            ports = sorted({index for term in terms for index in arguments(term)})
            shown = [self.op.body.inputs[port].type.axes for port in ports]
            axes = max(shown, key=len)
            if all({*each} <= {*axes} for each in shown):
                self.factor, self.axes = Factor({}, terms), axes
        if terms and self.factor == Factor({}, terms):
            return self.factor
        if self._separation.factor(exponent) != Factor():
            raise NotSeparableError("takes an exponential of it")
        return Factor()

    def _rest(self, expr: Expr, neutral: Const) -> Expr | None:
        """``expr`` without the factor, if ``neutral`` is 1, or without the shift; None for it."""
        if isinstance(expr, Arg):
            value = self._values[expr.index]
            rest = (self.rests if neutral == ONE else self._unshifted).get(value, value)
            if isinstance(rest, Value):
                return Arg(expr.index if neutral == ONE else expr.index + len(self._values))
            return None if rest == neutral else rest
        if not isinstance(expr, Call):
            return expr
        if neutral == ONE and expr.fn == "exp" and self._power(expr.args[0]) != Factor():
            return call("exp", self._rest(expr.args[0], ZERO) or ZERO)
        parts = tuple(self._rest(arg, neutral) for arg in expr.args)
        return joined(expr.fn, parts, neutral)

    def _emitted(self, expr: Expr, node: Node) -> Term:
        given, count = dict[int, Value](), len(self._values)
        for index in arguments(expr):
            value = self._values[index % count]
            rest = (self.rests if index < count else self._unshifted).get(value, value)
            assert isinstance(rest, Value)
            given[index] = rest
        axes = node.types[0].axes
        return by_dim(self.builder, expr, given, axes, self.origin, node.hints) if given else expr

    # folds ----------------------------------------------------------------------------

    def _folded(self, node: Node) -> tuple[Factor, Term]:
        """A fold of rows, or a product of blocks, through which the factor passes."""
        if not isinstance(node.op, Functional) or node.op.name not in self.passed:
            raise NotSeparableError(f"takes {label(node)} of it")
        (value, *more) = [operand for operand in node.operands if operand in self.factors]
        if more:
            raise NotSeparableError("multiplies it by itself")
        name, rest, hints = node.op.name, self.rests[value], node.hints
        whole = self.op.body.type_of(value)
        dim = self.op.body.type_of(node.operands[0]).axes[-1]
        if dim in self.axes:
            raise NotSeparableError(f"is folded along {dim}, along which it changes")
        if not isinstance(rest, Value):
            raise NotSeparableError(f"is one number, folded along {dim}")
        axes = self.builder.type_of(rest).axes
        if axes != whole.axes and (axes != (dim,) if name == "dot" else axes[-1:] != (dim,)):
            raise NotSeparableError(f"has a part that is the same along {dim}")
        operands = [rest if operand == value else operand for operand in node.operands]
        if name == "dot" and axes != whole.axes:  # a row in place of a block
            (plain,) = (operand for operand in node.operands if operand != value)
            add = self.builder.add
            operands = [*add(Functional("col_scale"), plain, rest, origin=self.origin)]
            name = "row_sum"
        made = self.builder.add(Functional(name), *operands, hints=hints, origin=self.origin)
        return self.factors[value], made[0]
