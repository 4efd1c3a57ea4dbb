"""The parts that saved plans and saved array programs share: lengths, rules, opaque functions.

Each value has a form in JSON and a reader (reading.py) that restores it. A function of whole arrays
is saved as its importable name; it is imported when it is first called.
"""

from __future__ import annotations

import dataclasses
import importlib
import math
from collections.abc import Mapping
from fractions import Fraction
from functools import partial
from typing import Any

from blockbuster.errors import LaunchError, message
from blockbuster.ir.expr import DEEPEST
from blockbuster.ir.extents import Lengths
from blockbuster.ir.length_symbols import Clamp, Inverse, Symbol
from blockbuster.ir.lengths import Length, Rule, inverse
from blockbuster.ir.reading import (
    Read,
    Wrong,
    expected,
    flag,
    items,
    maybe,
    number,
    one_of,
    real,
    real_or_whole,
    record,
    row,
    text,
)

Classes = Mapping[str, type[Any]]
"""The callable objects of ours that a file may hold, by the names of their classes."""


@dataclasses.dataclass(frozen=True)
class Imported:
    """A function of whole arrays, known by name: it is imported when it is first called."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"

    def __call__(self, *arrays: Any) -> Any:
        fn = _found(self)
        if fn is None:
            raise LaunchError(f"the saved program calls {self}, which cannot be imported")
        return fn(*arrays)


def _found(place: Imported) -> Any:
    try:
        found: Any = importlib.import_module(place.module) if place.module else None
    except ImportError:
        return None
    for word in place.name.split("."):
        found = getattr(found, word, None)
    return found


# lengths and rules -------------------------------------------------------------------


def rule_to_json(rule: Rule) -> list[Any]:
    """A rule as JSON."""
    return [rule.dim, length_to_json(rule.length), rule.exact]


def read_rule(data: Any) -> Rule:
    """The rule that ``rule_to_json`` wrote."""
    return Rule(*row(data, text, read_length, flag))


def length_to_json(length: Length) -> list[Any]:
    """A length as JSON."""

    def written(symbol: Symbol) -> Any:
        if isinstance(symbol, str):
            return symbol
        of = length_to_json(symbol.of)
        return [of, symbol.rounds] if isinstance(symbol, Clamp) else [of]

    return [
        [[*map(written, symbols)], share.numerator, share.denominator]
        for symbols, share in length.terms
    ]


def read_length(data: Any) -> Length:
    """The length that ``length_to_json`` wrote."""
    return _length(data, DEEPEST)


def _length(data: Any, deepest: int) -> Length:
    if not deepest:
        raise Wrong(f"nests more than {DEEPEST} clamps")

    def symbol(given: Any) -> Symbol:
        if not isinstance(given, list):
            return text(given)
        inside = partial(_length, deepest=deepest - 1)
        if len(given) > 1:
            return Clamp(*row(given, inside, flag))
        (of,) = row(given, inside)
        if not of.dims or inverse(of) != Length((((Inverse(of),), Fraction(1)),)):
            raise Wrong("is no divisor")
        return Inverse(of)

    terms = items(lambda term: row(term, items(symbol), number(-(2**63)), number(1)))(data)
    found = Length(tuple((symbols, Fraction(top, under)) for symbols, top, under in terms))
    if Length.of((tuple(sorted(symbols)), share) for symbols, share in found.terms) != found:
        raise Wrong("is a sum whose terms repeat, or are in another order")
    return found


def lengths_to_json(lengths: Lengths) -> list[Any]:
    """The extents of an array as JSON."""
    return [*map(length_to_json, lengths.extents)]


def read_lengths(data: Any) -> Lengths:
    """The extents that ``lengths_to_json`` wrote."""
    return Lengths(tuple(items(read_length)(data)))


# functions of whole arrays -----------------------------------------------------------


def function_to_json(fn: Any, name: str, classes: Classes) -> Any:
    """A function by its name; one of our own callable objects by its class and fields.

    Raises ValueError, which shows ``name``, for a function that cannot be imported by its name.
    """
    kind = type(fn)
    if classes.get(kind.__name__) is kind:
        values = {}
        for field in dataclasses.fields(kind):
            value = getattr(fn, field.name)
            if isinstance(value, Length):
                value = length_to_json(value)
            elif isinstance(value, Lengths):
                value = lengths_to_json(value)
            elif isinstance(value, float) and not math.isfinite(value):
                value = str(value)  # JSON has no such number
            elif callable(value):
                value = function_to_json(value, name, classes)
            values[field.name] = value
        return {"class": kind.__name__, "fields": values}
    if isinstance(fn, Imported):
        return {"import": [fn.module, fn.name]}
    place = Imported(getattr(fn, "__module__", "") or "", getattr(fn, "__qualname__", ""))
    if place.module == "__main__" or _found(place) is not fn:
        raise ValueError(
            message(
                f"the function {name} cannot be saved: {place} cannot be imported",
                hint="define it at the top of a module that is there when the file is loaded",
            )
        )
    return {"import": [place.module, place.name]}


FIELDS: dict[str, Read[Any]] = {
    "int": number(-(2**63)),
    "str": text,
    "float": real,
    "float | None": maybe(real_or_whole),
    "bool": flag,
    "Dim": text,
    "Length": read_length,
    "Lengths": read_lengths,
    "tuple[int, ...]": items(number(0)),
    "tuple[tuple[int, ...], ...]": items(items(number(0))),
}
"""How the fields of allowed classes are read, by their types; all others are functions."""


def read_function(data: Any, classes: Classes) -> Any:
    """The function that ``function_to_json`` wrote; nothing is imported."""
    if isinstance(data, dict) and "import" in data:
        found = record(data, **{"import": lambda place: row(place, _dotted, _dotted)})
        return Imported(*found["import"])
    known = record(data, **{"class": one_of(tuple(classes)), "fields": lambda given: given})
    kind = classes[known["class"]]
    others = {name: other for name, other in classes.items() if other is not kind}
    function = partial(read_function, classes=others)
    reads = {f.name: FIELDS.get(str(f.type), function) for f in dataclasses.fields(kind)}
    try:
        return kind(**record(known["fields"], **reads))
    except Wrong as wrong:
        raise wrong.inside(".fields") from None
    except ValueError as error:
        raise Wrong(f"is none: {error}", ".fields") from error


def _dotted(data: Any) -> str:
    """A name, or several with dots between them."""
    if not all(word.isidentifier() for word in text(data).split(".")):
        raise expected("a name", data)
    return str(data)
