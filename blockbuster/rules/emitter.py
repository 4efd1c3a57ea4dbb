"""The emitter of pairs: it adds expressions, exponentials and common exponents to a graph level."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from blockbuster.ir.builder import Builder
from blockbuster.ir.expr import Arg, Call, Const, Expr, call, substitute
from blockbuster.ir.graph import Value
from blockbuster.ir.ops import Elementwise, Functional, Op, Pointwise
from blockbuster.ir.origin import Origin
from blockbuster.ir.types import Dim
from blockbuster.rules.by_dim import packed
from blockbuster.rules.formal_sums import Part, cancelled
from blockbuster.rules.pairs import UNIT, Factors, Pair, Product, Terms, joined, product_of
from blockbuster.rules.separate import ANY

NEGATED = Elementwise(call("neg", Arg(0)))

Made = tuple[Op, tuple[Value, ...]]
"""An operator and its operands."""


class Emitter:
    """Adds what pairs need to a graph level: scalar expressions over values, and operators.

    An expression's ``Arg(i)`` stands for ``leaves[i]``; it becomes an operator when emitted, so
    what stays plain stays composed. ``own``: each element of an exponential gets an exponent.
    ``order``: the axes of the result, in whose order those of several operands are put together.
    ``made``: what was made at this level before, which is not made again. ``apart``: values whose
    exponentials have several exponents, the parts that such a value is the sum of. ``signs``: those
    that the first leaves may have.
    """

    def __init__(
        self,
        builder: Builder,
        origin: Origin,
        leaves: tuple[Value, ...] = (),
        *,
        own: bool = False,
        order: tuple[Dim, ...] = (),
        made: dict[Made, Value] | None = None,
        apart: Mapping[Value, tuple[Value, ...]] = MappingProxyType({}),
        signs: Callable[[int], str] = lambda _: ANY,
    ) -> None:
        self.builder = builder
        self.own = own
        self._made = {} if made is None else made
        self._order = order
        self._apart = apart
        self.signs = signs
        self.leaves = list(leaves)
        self._origin = origin

    def axes(self, value: Value) -> tuple[Dim, ...]:
        """The axes of an item of ``value``."""
        return self.builder.type_of(value).axes

    def leaf(self, value: Value) -> Arg:
        """The argument that stands for ``value``."""
        if value not in self.leaves:
            self.leaves.append(value)
        return Arg(self.leaves.index(value))

    def apply(self, op: Op, *operands: Value, hint: str = "") -> Value:
        """One operator with one result."""
        if (op, operands) not in self._made:
            (result,) = self.builder.add(op, *operands, hints=(hint,), origin=self._origin)
            self._made[op, operands] = result
        return self._made[op, operands]

    def joined(self, first: Terms, second: Terms, sign: float = 1.0) -> Terms:
        """The sum (or difference) of two exponents, without what cancels, in parts or whole."""
        return cancelled(self.builder, joined(first, second, sign), self._addend)

    def _addend(self, part: Part) -> Value:
        return self.emit(substitute(part.expr, [self.leaf(value) for value in part.operands]))

    def emit(self, expr: Expr, hint: str = "") -> Value:
        """The value of a scalar expression; operands of different axes are matched by dim."""
        if isinstance(expr, Arg):
            return self.leaves[expr.index]
        local, used = packed(expr)
        operands = [self.leaves[i] for i in used]
        axes = self._joint_axes(operands)
        if operands and all(self.axes(v) == axes for v in operands):
            return self.apply(Elementwise(local), *operands, hint=hint)
        return self.apply(Pointwise(local, axes), *operands, hint=hint)

    def _joint_axes(self, operands: Sequence[Value]) -> tuple[Dim, ...]:
        """The axes of an expression over ``operands``: no axis of a row or a column is lost."""
        longest = max(map(self.axes, operands), key=len, default=())  # () for a plain number
        shown = dict.fromkeys(dim for value in operands for dim in self.axes(value))
        ordered = tuple(dim for dim in self._order if dim in shown)
        return ordered if set(longest) < set(ordered) else longest

    def with_axes(self, value: Value, axes: tuple[Dim, ...]) -> Value:
        """``value`` over ``axes``, which it broadcasts against."""
        return value if self.axes(value) == axes else self.apply(Pointwise(Arg(0), axes), value)

    def over(self, pair: Pair, axes: tuple[Dim, ...]) -> Pair | None:
        """``pair`` over ``axes``: it is broadcast; an axis that is not among them has one element.

        None if elements that share an exponent come to lie in several rows.
        """
        given = self.axes(pair.significand)
        if given == axes:
            return pair
        shared = pair.shared and not set(given[-1:]).isdisjoint(axes)
        moved = self.by_elements(pair) if shared and given[-1] != axes[-1] else pair
        if moved is None:
            return None

        def fitting(value: Value) -> Value:
            return self.with_axes(value, tuple(d for d in self.axes(value) if d in axes))

        significand = self.with_axes(moved.significand, axes)
        made = moved.each(fitting)
        known = made.product.values if made.product else ()
        covered = {dim for value in known for dim in self.axes(value)}
        product = made.product if covered >= set(axes) else None
        shared = shared and moved.shared
        return Pair(significand, made.terms, product, made.counts, shared)

    def exponential(self, x: Value) -> Pair:
        """exp(x): the maximum of each row becomes its exponent, or x itself for each element."""
        shared = len(self.axes(x)) == 2 and not self.own
        top = self.apply(Functional("row_max"), x) if shared else x
        below = self.emit(call("sub0", self.leaf(x), self.leaf(top)))
        significand = self.emit(call("exp", self.leaf(below)))
        if len(self.axes(x)) == 2:
            return Pair(significand, ((1.0, top),), Product((), ((1.0, x),)), shared=shared)
        terms = self._signed(x)
        factors = ((UNIT, significand),)  # 0 or NaN stays, also where x cancels
        return Pair(significand, terms, Product(factors, terms))

    def _signed(self, x: Value) -> Terms:
        """``x`` as terms: -m is m with coefficient -1, a value kept apart is its parts."""
        if x in self._apart:
            return tuple(term for part in self._apart[x] for term in self._signed(part))
        maker = self.builder.maker_of(x)
        if maker is not None and maker.op == NEGATED:
            return tuple((-coefficient, v) for coefficient, v in self._signed(maker.operands[0]))
        return ((1.0, x),)

    def exponent(self, terms: Terms) -> Value:
        """The exponent as one value; the first difference is a sub0, so an absent row stays so.

        Logarithms come last: other terms may be large, and nearly cancel one another.
        """
        total: Expr | None = None
        late = {value for _, value in terms if self._is_logarithm(value)}
        if all(coefficient < 0 or value in late for coefficient, value in terms):
            late = set()  # the first term must not be one that is taken off
        for coefficient, value in sorted(terms, key=lambda term: (term[1] in late, term[0] < 0)):
            size = abs(coefficient)
            leaf = self.leaf(value)
            term: Expr = leaf if size == 1.0 else Call("mul", (leaf, Const(size)))
            if total is None:
                total = term if coefficient > 0 else Call("neg", (term,))
            else:
                total = Call("add" if coefficient > 0 else "sub0", (total, term))
        assert total is not None
        return self.emit(total)

    def _is_logarithm(self, value: Value) -> bool:
        maker = self.builder.maker_of(value)
        while maker is not None and maker.op == NEGATED:
            maker = self.builder.maker_of(maker.operands[0])
        expr = maker.op.expr if maker and isinstance(maker.op, Elementwise) else None
        while isinstance(expr, Call) and expr.fn == "neg":
            expr = expr.args[0]
        return isinstance(expr, Call) and expr.fn == "log"

    def materialized(self, pair: Pair) -> Value:
        """S * exp(t) as a plain value."""
        if not pair.terms:
            return pair.significand
        whole = self._multiplied(pair.product or product_of(pair))
        return self.with_axes(whole, self.axes(pair.significand))

    def moved(self, pair: Pair, t: Value, top: Value) -> Value:
        """The significand of ``pair``, whose exponent is ``t``, under ``top``, which is no less."""
        known = pair.product or Product((("mul", pair.significand),), ((1.0, t),))
        return self.under(known, ((1.0, top),))

    def under(self, product: Product, terms: Terms) -> Value:
        """``product`` over exp of ``terms``."""
        return self._multiplied(replace(product, terms=joined(product.terms, terms, -1.0)))

    def _multiplied(self, product: Product) -> Value:
        terms = self.joined(product.terms, ())
        power: Expr = call("exp", self.leaf(self.exponent(terms))) if terms else Const(1.0)
        factors, units = product.factors, {part for part in product.factors if part[0] == UNIT}
        if len(units) == len(terms) == 1:  # exp of one term is 0 or NaN where its unit is
            factors = tuple(part for part in factors if part not in units)
        return self.emit(self.times(factors, power))

    def times(self, factors: Factors, power: Expr) -> Expr:
        """``power`` times the factors of a product."""
        for at, (fn, factor) in enumerate(factors):
            by = self.leaf(factor) if isinstance(factor, Value) else factor
            name = "div" if fn == "div" else "mul"
            power = Call(name, (by, power) if at == 0 and name == "mul" else (power, by))
        return power

    def on_common_exponent(self, first: Pair, second: Pair) -> tuple[Value, Value, Terms]:
        """Both significands under the larger of the two exponents."""
        if first.terms == second.terms:
            return first.significand, second.significand, first.terms
        a, b = self.exponent(first.terms), self.exponent(second.terms)
        top = self.emit(call("maximum", self.leaf(a), self.leaf(b)))
        return self.moved(first, a, top), self.moved(second, b, top), ((1.0, top),)

    def by_rows(self, pair: Pair) -> Pair:
        """``pair`` with the elements of each row (or of a vector) under one exponent."""
        row = self.axes(pair.significand)[-1]
        if not self.varies(pair, row):
            return pair
        t = self.exponent(pair.terms)
        top = self.apply(Functional("row_max"), t)
        return Pair(self.moved(pair, t, top), ((1.0, top),), shared=True)

    def varies(self, pair: Pair, dim: Dim) -> bool:
        """True if the exponents of ``pair`` differ along ``dim``."""
        return any(dim in self.axes(value) for _, value in pair.terms)

    def by_elements(self, pair: Pair) -> Pair | None:
        """``pair`` with an exponent for each element; None if what it was before is not known."""
        if not pair.shared:
            return pair
        if pair.product is None:
            return None
        power = self.leaf(self.exponent(pair.product.terms))
        unit = self.emit(call("exp", call("sub0", power, power)))  # 0 or NaN where exp is that
        significand = self.emit(self.times(pair.product.factors, self.leaf(unit)))
        return replace(pair, significand=significand, terms=pair.product.terms, shared=False)
