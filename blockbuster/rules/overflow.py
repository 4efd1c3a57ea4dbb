"""Exponentials that can overflow although the results made of them do not.

    exp(x) / (1 + exp(x))        inf / inf for large x; the result is 1
    log(1 + exp(x))              inf; the result is x

``safe`` removes those it can. The others are named here, and reported with every kernel. An
exponential that only makes its result grow, as a sum of exponentials does, is not named: there the
result itself is too large for a float. Nor is one of what cannot be large (upper_bounds.py). Every
value carries the exponentials that it grows with and those that it shrinks with; they may not meet
in one product, quotient or difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from blockbuster.ir.graph import Graph, Value
from blockbuster.ir.verify import check_graph
from blockbuster.rules.array_terms import Number, Term, Terms, below
from blockbuster.rules.upper_bounds import Bounds


@dataclass(frozen=True)
class Size:
    """The exponentials with which a value grows, and those with which it vanishes."""

    large: tuple[Number, ...] = ()
    small: tuple[Number, ...] = ()

    @property
    def inverse(self) -> Size:
        """The size of one over the value."""
        return Size(self.small, self.large)


MODERATE = Size()


def overflowing(graph: Graph) -> tuple[str, ...]:
    """A sentence for each exponential of ``graph`` that can overflow although its use does not.

    >>> from blockbuster.ir.parse import parse
    >>> text = "graph(X: M[M]) { Y = map M (x in X) { y = log(1 + exp(x))  yield y } return Y }"
    >>> overflowing(parse(text))
    ('exp can overflow: log takes it as it is written',)
    """
    return tuple(_sizes(graph)[0].found)


def infinite_between(graph: Graph) -> tuple[str, ...]:
    """The outputs that grow with an exponential that meets what vanishes elsewhere in ``graph``.

    Whoever stores such a value stores infinity where the whole has a number. Not what is divided by
    the same exponentials again, as the results of a softmax.
    """
    sizes, made = _sizes(graph)
    found = []
    for name, output in zip(graph.output_names, graph.outputs, strict=True):
        size = sizes.sizes[made[output.value]]
        if any(n in sizes.met and n not in size.small for n in size.large):
            found.append(name)
    return tuple(found)


def _sizes(graph: Graph) -> tuple[_Sizes, Mapping[Value, Number]]:
    """The sizes of all terms of a graph, and the terms of its values."""
    check_graph(graph)
    terms = Terms()
    made = terms.values(graph)
    sizes = _Sizes(terms)
    for number in range(len(terms.terms)):
        sizes.add(number)
    return sizes, made


@dataclass
class _Sizes:
    """The sizes of terms in their order: the operands of a term come before it."""

    terms: Terms
    sizes: list[Size] = field(default_factory=list)
    found: dict[str, None] = field(default_factory=dict)
    met: dict[Number, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.bounds = Bounds(self.terms)

    def add(self, number: Number) -> None:
        """Find the size of the next term, and whether large and small factors meet in it."""
        term = self.terms[number]
        args = [self.sizes[arg] for arg in term.args]
        self.sizes.append(self._size(number, term, args))

    def _size(self, number: Number, term: Term, args: list[Size]) -> Size:
        match term.fn:
            case "exp":
                bounded = self.bounds.is_bounded(term.args[0])
                return MODERATE if bounded else Size(large=(number,))
            case "log" | "log1p" | "sqrt":
                self._meet(number, args[0].large, args[0].small if term.fn == "log" else ())
                return MODERATE
            case "reciprocal" | "recip0" | "rsqrt":
                return args[0].inverse
            case "sub" | "sub0":
                if args[0].large and args[1].large:
                    self._meet(number, args[0].large, args[1].large)
            case "mul" | "div":
                other = args[1].inverse if term.fn == "div" else args[1]
                return self._product(number, args[0], other)
        if term.fn in MODERATE_ALWAYS:
            return MODERATE
        chosen = term.fn == "where"
        parts = args[1:] if chosen else args
        large = dict.fromkeys(name for part in parts for name in part.large)
        vanishing = parts if chosen or len(args) == 1 else []  # a sum with what vanishes does not
        small = dict.fromkeys(name for part in vanishing for name in part.small)
        return Size(tuple(large), tuple(small))

    def _product(self, number: Number, first: Size, second: Size) -> Size:
        """The size of a product; what grows may not meet what vanishes, whichever way round."""
        if (first.large and second.small) or (first.small and second.large):
            self._meet(number, first.large, second.large)
        for one in first.large:
            for other in second.large:
                if self._opposite(one, other):
                    self._meet(number, (one, other))
        return Size(_both(first.large, second.large), _both(first.small, second.small))

    def _opposite(self, first: Number, second: Number) -> bool:
        """True if what makes one grow makes the other vanish, as in exp(x) and exp(-max(x))."""
        signs: list[dict[Number, float]] = []
        for number in (first, second):
            found: dict[Number, float] = {}
            for (part, _), by in self.bounds.sum_of(self.terms[number].args[0]).items():
                found |= dict.fromkeys(below(self.terms, part), by)
            signs.append(found)
        return any(by * signs[1].get(part, 0.0) < 0 for part, by in signs[0].items())

    def _meet(self, number: Number, *exponentials: tuple[Number, ...]) -> None:
        taker = self._named(number)
        self.met |= dict.fromkeys(one for some in exponentials for one in some)
        for name in (self._named(one) for some in exponentials for one in some):
            self.found[f"{name} can overflow: {taker} takes it as it is written"] = None

    def _named(self, number: Number) -> str:
        fn, node = self.terms[number].fn, self.terms.nodes[number]
        lines = ", ".join(map(str, node.origin.lines()[:1])) if node else ""
        return f"{fn} ({lines})" if lines else fn


def _both(first: tuple[Number, ...], second: tuple[Number, ...]) -> tuple[Number, ...]:
    return tuple(dict.fromkeys((*first, *second)))


MODERATE_ALWAYS = (
    "tanh", "sigmoid", "erf", "atan", "sin", "cos", "lt", "le", "gt", "ge", "eq", "ne", "and", "or",
    "not", "input", "number", "size", "operator",
)  # fmt: skip
