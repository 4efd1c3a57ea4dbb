"""Programs under construction: what is known of a value besides its type.

A term knows over which dims it is *partial* (a fold of the current block only, to be completed with
the same monoid) and how many bits its elements may need where inputs are small integers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from blockbuster.ir.builder import Builder
from blockbuster.ir.graph import Index, Read, Value
from blockbuster.ir.ops import Collect, Map, Op
from blockbuster.ir.types import Dim, Type

INPUT_BITS = 2  # elements of inputs lie between -2 and 2


@dataclass(frozen=True)
class Term:
    """A value and what is known of it: the monoid ``fold`` completes it over ``partial``."""

    value: Value
    type: Type
    bits: int = INPUT_BITS
    fold: str = ""
    partial: frozenset[Dim] = frozenset()

    def element(self, value: Value) -> Term:
        """An entry of this list."""
        return Term(value, self.type.element(), self.bits, self.fold, self.partial)

    def depends_on(self, dims: frozenset[Dim]) -> bool:
        """True if elements change along one of ``dims``, or are partial there."""
        return bool(dims & (self.partial | set(self.type.axes)))


@dataclass
class Level:
    """A graph under construction: a program or the body of a map."""

    enclosing: tuple[Dim, ...] = ()
    builder: Builder = field(default_factory=Builder)
    terms: list[Term] = field(default_factory=list)

    def given(self, type: Type, view: Read | Index | None = None, hint: str = "") -> Value:
        """A new input."""
        value = self.builder.input(type, view, hint)
        self.terms.append(Term(value, type))
        return value

    def add(
        self, op: Op, operands: Sequence[Term], bits: int, fold: str, partial: frozenset[Dim]
    ) -> Term:
        """A new node with one result."""
        (value,) = self.builder.add(op, *(t.value for t in operands))
        term = Term(value, self.builder.type_of(value), bits, fold if partial else "", partial)
        self.terms.append(term)
        return term

    @property
    def local(self) -> list[Term]:
        """The items among the terms."""
        return [t for t in self.terms if not t.type.buffered]


def adds(a: Term, b: Term) -> bool:
    """True if a sum of the two is a whole value, or a partial sum over the dims of both."""
    return a.partial == b.partial and (not a.partial or a.fold == b.fold == "+")


def multiplies(a: Term, b: Term) -> bool:
    """True if a product is whole or a partial sum: neither varies where the other is partial."""
    if not a.partial and not b.partial:
        return True
    sums = all(not t.partial or t.fold == "+" for t in (a, b))
    return sums and not a.depends_on(b.partial) and not b.depends_on(a.partial)


def add_map(
    builder: Builder,
    dim: Dim,
    iterated: Sequence[Value],
    broadcast: Sequence[Value],
    body: Callable[..., Value],
) -> Value:
    """A map that collects ``body(inner builder, *its inputs)``."""
    inner = Builder()
    inputs = [inner.input(builder.type_of(v).element()) for v in iterated]
    inputs += [inner.input(builder.type_of(v)) for v in broadcast]
    graph = inner.finish(body(inner, *inputs))
    flags = (True,) * len(iterated) + (False,) * len(broadcast)
    return builder.add(Map(dim, graph, flags, (Collect(),)), *iterated, *broadcast)[0]
