"""The parser of the text form: ``parse(graph.show()) == graph``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from blockbuster.errors import VerifyError, message
from blockbuster.ir.builder import Builder
from blockbuster.ir.dtypes import OWN
from blockbuster.ir.expr import Expr
from blockbuster.ir.garbage import collection_paused
from blockbuster.ir.graph import Graph, Index, Output, Read, Value
from blockbuster.ir.lengths import Rule
from blockbuster.ir.ops import (
    MONOIDS,
    Accumulate,
    Collect,
    Functional,
    Head,
    Map,
    Misc,
    Op,
    Reduce,
    Rescale,
    Result,
)
from blockbuster.ir.phrases import OF_ONE, PhraseReader
from blockbuster.ir.signatures import FUNCTIONALS
from blockbuster.ir.types import Dim, whole
from blockbuster.ir.verify import verify
from blockbuster.ir.views import dims_among

_MOST_MAPS = 64  # as many as fusion takes; comparing deeper programs would be a deep recursion

Functions = Mapping[str, Callable[..., Any]]


def parse(text: str, functions: Functions | None = None) -> Graph:
    """The graph that ``text`` describes; ``functions`` gives the misc operators' functions by name.

    Raises ParseError (with the place and the expected token) or VerifyError (operands do not fit).

    >>> parse("graph(a: [M,K]) { s = row_sum(a) return s }").nodes[0].types
    (Type(lists=(), axes=('M',)),)
    """
    reader = _Reader(text, functions or {})
    with collection_paused():
        graph = reader.graph()
        reader.expect_end()
        verify(graph)
    return graph


@dataclass
class _Scope:
    """A graph being read: its builder and the values that names stand for."""

    builder: Builder
    values: dict[str, Value] = field(default_factory=dict)


class _Reader(PhraseReader):
    def __init__(self, text: str, functions: Functions) -> None:
        super().__init__(text)
        self._functions = functions

    def graph(self) -> Graph:
        self._take("graph")
        scope = _Scope(Builder())
        self._take("(")
        self._several(")", lambda: self._input(scope))
        self._take("{")
        while not self._has("return"):
            self._equation(scope)
        outputs = [self._output(scope)]
        while self._has(","):
            outputs.append(self._output(scope))
        self._take("}")
        return scope.builder.finish(*outputs)

    def _input(self, scope: _Scope) -> None:
        name = self._take(kind="name")
        self._take(":")
        type = self._type()
        view: Read | Index | None = Read(name, whole(type)) if type.buffered else None
        if self._has("="):
            quoted = self._is("string")
            source = self._string() if quoted else self._take(kind="name")
            if not source.rstrip("'").isidentifier():
                self._refuse(f"{source!r} is no name of an array")
            if source == "port" and not quoted:
                view = None
            else:
                self._take("(")
                axes = tuple(self._several(")", self._axis))
                index = source == "index" and not quoted
                said = self._has("of")
                extent = self._length() if index and said else None
                dtype = self._dtype() if said and not index else ""
                dim = "".join(dims_among(axes))
                view = Index(dim, extent) if index else Read(source, axes, dtype)
        scope.values[name] = scope.builder.input(type, view, _hint(name))

    def _dtype(self) -> str:
        """The dtype of masks or integers."""
        dtype = self._take(kind="name")
        if dtype not in OWN:
            self._refuse(f"{dtype!r} is no dtype of an input", hint=f"known: {', '.join(OWN)}")
        return dtype

    def _output(self, scope: _Scope) -> Output:
        label, name = "", self._take(kind="name")
        if self._has("="):
            label, name = name, self._take(kind="name")
        axes = tuple(self._several(")", self._axis)) if self._has("(") else None
        return Output(self._value(scope, name), label, axes)

    def _value(self, scope: _Scope, name: str) -> Value:
        if name not in scope.values:
            known = ", ".join(scope.values)
            self._refuse(
                f"{name} is not defined here", hint=f"defined are {known}" if known else None
            )
        return scope.values[name]

    def _operand(self, scope: _Scope) -> Value:
        marked = self._has("!")
        value = self._value(scope, self._take(kind="name"))
        if marked and not scope.builder.type_of(value).buffered:
            self._refuse("a local value is marked ! as if it were buffered")
        return value

    def _equation(self, scope: _Scope) -> None:
        names = [self._take(kind="name")]
        while self._has(","):
            names.append(self._take(kind="name"))
        self._take("=")
        line = self._tokens[self._at].line
        op, operands = self._right_side(scope)
        try:
            values = scope.builder.add(op, *operands, hints=tuple(map(_hint, names)))
        except VerifyError as error:
            raise VerifyError(message(str(error), listing=self._text, mark=line)) from None
        if len(values) != len(names):
            self._refuse(f"{len(names)} names for {len(values)} results", line)
        for name, value in zip(names, values, strict=True):
            if name in scope.values:
                self._refuse(f"{name} is defined twice", line)
            scope.values[name] = value

    # operators ---------------------------------------------------------------

    def _right_side(self, scope: _Scope) -> tuple[Op, list[Value]]:
        word = self._next
        if word in _FORMS:
            self._take()
            return _FORMS[word](self, scope)
        if word in OF_ONE:
            self._take()
            op = OF_ONE[word](self)
            return op, self._operands(scope)
        if word in FUNCTIONALS:
            self._take()
            return Functional(word), self._operands(scope)
        return self._scalar(lambda name: self._value(scope, name))

    def _operands(self, scope: _Scope) -> list[Value]:
        self._take("(")
        return self._several(")", lambda: self._operand(scope))

    def _map(self, scope: _Scope) -> tuple[Op, list[Value]]:
        dim = self._take(kind="name")
        self._maps += 1
        self._limit(self._maps, _MOST_MAPS, "the maps nest")
        inner = _Scope(Builder())
        operands: list[Value] = []
        iterated: list[bool] = []
        start = self._whole_number() if self._has("from") else 0
        self._take("(")
        while self._next not in (")", ";"):
            if operands:
                self._take(",")
            self._port(scope, inner, dim, operands, iterated)
        firsts: list[Value] = []
        if start:
            self._take(";")
            firsts = self._several(")", lambda: self._operand(scope))
        else:
            self._take(")")
        self._take("{")
        while self._next not in ("yield", "}"):
            self._equation(inner)
        outputs, results = self._yields(inner)
        self._take("}")
        self._maps -= 1
        body = inner.builder.finish(*map(Output, outputs))
        return Map(dim, body, tuple(iterated), tuple(results), start), operands + firsts

    def _port(
        self, scope: _Scope, inner: _Scope, dim: Dim, operands: list[Value], iterated: list[bool]
    ) -> None:
        name = self._take(kind="name")
        walks = self._take() == "in"
        value = self._operand(scope)
        type = scope.builder.type_of(value)
        if walks and type.lists[:1] != (dim,):
            self._refuse(f"{name} iterates over {dim}, but the operand has type {type}")
        inner.values[name] = inner.builder.input(
            type.element() if walks else type, hint=_hint(name)
        )
        operands.append(value)
        iterated.append(walks)

    def _yields(self, scope: _Scope) -> tuple[list[Value], list[Result]]:
        outputs: list[Value] = []
        results: list[Result] = []
        leads: dict[str, int] = {}
        pending: list[tuple[int, str, list[str], Expr]] = []
        while self._has("yield"):
            monoid = self._take() if self._next in MONOIDS else ""
            name = self._take(kind="name")
            if monoid and self._has("="):
                leads[name] = len(outputs)
                name = self._take(kind="name")
            outputs.append(self._value(scope, name))
            results.append(Accumulate(monoid) if monoid else Collect())
            if self._has("by"):
                names = [*self._several(":", lambda: self._take(kind="name"))]
                pending.append((len(outputs) - 1, monoid, names, self._factor(len(names))))
        for port, monoid, names, factor in pending:
            for lead in names:
                if lead not in leads:
                    self._refuse(f"{lead} is not a lead: write `yield max {lead} = ...`")
            results[port] = Rescale(monoid, tuple(leads[lead] for lead in names), factor)
        return outputs, results

    def _reduce(self, scope: _Scope) -> tuple[Op, list[Value]]:
        monoid = self._take()
        return Reduce(self._take(kind="name"), monoid), self._operands(scope)

    def _head(self, scope: _Scope) -> tuple[Op, list[Value]]:
        return Head(self._take(kind="name")), self._operands(scope)

    def _misc(self, scope: _Scope) -> tuple[Op, list[Value]]:
        name = self._string()
        if name not in self._functions:
            hint = "pass it: parse(text, {name: function})"
            self._refuse(f"unknown function {name!r}", hint=hint)
        self._take(":")
        types = []
        while self._next != "(":
            types.append(self._type())
        operands = self._operands(scope)
        rules: list[Rule] = []
        while self._has("," if rules else "with"):
            dim = self._size()
            self._take("=")
            rules.append(Rule(dim, self._length()))
        return Misc(name, self._functions[name], tuple(types), tuple(rules)), operands


def _hint(name: str) -> str:
    """What a name says of a value: the count that made it unique is not part of it."""
    plain = re.sub(r"_\d+$", "", name)
    return "" if re.fullmatch(r"t\d+", plain) else plain


_FORMS: dict[str, Callable[[_Reader, _Scope], tuple[Op, list[Value]]]] = {
    "map": _Reader._map,
    "reduce": _Reader._reduce,
    "head": _Reader._head,
    "misc": _Reader._misc,
}
