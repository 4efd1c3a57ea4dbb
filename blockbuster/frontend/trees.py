"""Nested containers: tuples, lists, dicts, named tuples and dataclasses, taken apart and rebuilt.

A value is taken apart into its leaves, and its tree puts other leaves together in the same way.
This is done with the arguments and results of functions; any value that is not a container is a
leaf.
"""

from __future__ import annotations

import dataclasses
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter, itemgetter
from typing import Any

DEEPEST = 200  # containers in containers: they are taken apart by recursion
_DICTS = (dict, OrderedDict)


@dataclass(frozen=True)
class Container:
    """A container with values under ``keys``; ``kind`` is tuple, list, dict, named or fields."""

    kind: str
    cls: type
    keys: tuple[Any, ...]

    def make(self, values: Iterable[Any]) -> Any:
        """Such a container of these values, which are in the order of the keys."""
        if self.kind in ("tuple", "list"):
            return self.cls(values)
        if self.kind == "named":
            return self.cls._make(values)  # type: ignore[attr-defined]
        pairs = zip(self.keys, values, strict=True)
        if self.kind == "dict":
            return self.cls(pairs)
        made: Any = object.__new__(
            self.cls
        )  # __init__ may judge values that traced arrays do not have
        for name, value in pairs:
            object.__setattr__(made, name, value)
        return made

    def step(self, key: Any) -> Callable[[Any], Any]:
        """Reads what such a container holds under ``key``."""
        return attrgetter(key) if self.kind == "fields" else itemgetter(key)

    def shown(self, key: Any) -> str:
        """The step as Python writes it: ``['w']``, ``[0]``, ``.w``."""
        return f"[{key!r}]" if self.kind in ("tuple", "list", "dict") else f".{self.word(key)}"

    def word(self, key: Any) -> str:
        """The key as a part of a name."""
        name = self.cls._fields[key] if self.kind == "named" else key  # type: ignore[attr-defined]
        return re.sub(r"[^0-9A-Za-z_]", "_", str(name))


@dataclass(frozen=True)
class Tree:
    """The nesting of leaves in containers; without a container it is a leaf."""

    container: Container | None = None
    parts: tuple[Tree, ...] = ()

    def build(self, leaves: Iterator[Any]) -> Any:
        """The value whose leaves are these, in order."""
        if self.container is None:
            return next(leaves)
        return self.container.make([part.build(leaves) for part in self.parts])

    @property
    def is_flat(self) -> bool:
        """True for a leaf, and for a container of nothing but leaves."""
        return all(type(part) is Tree and part.container is None for part in self.parts)

    def classes(self) -> Iterator[type]:
        """The classes of its containers."""
        if self.container is not None:
            yield self.container.cls
            for part in self.parts:
                yield from part.classes()

    def constants(self) -> Iterator[str]:
        """Its values that are no leaves, as text."""
        for part in self.parts:
            yield from part.constants()


@dataclass(frozen=True)
class Constant(Tree):
    """A value that is no leaf: it is built as it is. Two with the same ``text`` are the same."""

    text: str = ""
    value: Any = dataclasses.field(default=None, compare=False)

    def build(self, leaves: Iterator[Any]) -> Any:
        return self.value

    def constants(self) -> Iterator[str]:
        yield self.text


@dataclass(frozen=True)
class Leaf:
    """A value at the end of a path through containers.

    ``word`` is the path as a part of a name, ``shown`` as Python writes it.
    """

    value: Any = dataclasses.field(repr=False)
    word: str = ""
    shown: str = ""
    steps: tuple[Callable[[Any], Any], ...] = ()


def container_of(value: Any) -> tuple[Container, tuple[Any, ...]] | None:
    """The container that ``value`` is, and what it holds; None for all other values."""
    kind = type(value)
    if kind in (tuple, list):
        return Container(kind.__name__, kind, tuple(range(len(value)))), tuple(value)
    if kind in _DICTS:
        return Container("dict", kind, tuple(value)), tuple(value.values())
    if isinstance(value, tuple) and hasattr(kind, "_fields"):
        return Container("named", kind, tuple(range(len(value)))), tuple(value)
    if dataclasses.is_dataclass(kind):
        names = tuple(field.name for field in dataclasses.fields(kind))
        beside = [name for name in getattr(value, "__dict__", ()) if name not in names]
        if all(hasattr(value, name) for name in names) and not beside:
            return Container("fields", kind, names), tuple(getattr(value, n) for n in names)
    return None


def taken_apart(
    value: Any, is_leaf: Callable[[Any], bool], constants: tuple[type, ...] = ()
) -> tuple[list[Leaf], Tree]:
    """The leaves of ``value`` in order, and how it is put together of them.

    A value for which ``is_leaf`` is true is not looked into, an empty container neither. Values of
    the types ``constants`` are no leaves inside of a container. Raises ValueError for containers
    nested deeper than ``DEEPEST``.
    """
    leaves: list[Leaf] = []

    def walk(here: Leaf, depth: int) -> Tree:
        if depth < DEEPEST and type(here.value) in constants:
            return Constant(text=repr(here.value), value=here.value)
        found = None if is_leaf(here.value) else container_of(here.value)
        if found is None or not found[1]:
            leaves.append(here)
            return Tree()
        if depth == 0:
            raise ValueError("containers are nested too deep")
        container, values = found
        parts = [
            Leaf(
                part,
                f"{here.word}_{container.word(key)}",
                here.shown + container.shown(key),
                (*here.steps, container.step(key)),
            )
            for key, part in zip(container.keys, values, strict=True)
        ]
        return Tree(container, tuple(walk(part, depth - 1) for part in parts))

    tree = walk(Leaf(value), DEEPEST)
    return leaves, tree


def result_apart(result: Any) -> tuple[list[Leaf], Tree]:
    """A function's result, taken apart: other mappings count as dicts, other tuples as tuples.

    None and Python's numbers beside arrays are results as they are: sizes make none unless known.
    """
    if isinstance(result, Mapping) and type(result) not in _DICTS:
        result = dict(result)
    for kind in (tuple, list):
        if isinstance(result, kind) and not hasattr(result, "_fields"):
            result = kind(result)
    constants = (type(None), bool, int, float, complex)
    return taken_apart(result, lambda value: container_of(value) is None, constants)


def holds(value: Any, wanted: Callable[[Any], bool]) -> bool:
    """True if ``value``, or one that it holds at any depth, is wanted."""
    seen: dict[int, Any] = {}
    ahead = [value]
    while ahead:
        part = ahead.pop()
        if wanted(part):
            return True
        found = None if id(part) in seen else container_of(part)
        if found is not None:
            seen[id(part)] = part
            ahead += found[1]
    return False


def distinct(words: Iterable[str]) -> list[str]:
    """The words, those that stood before with ``_`` behind them.

    >>> distinct(["w0", "w", "w0"])
    ['w0', 'w', 'w0_']
    """
    names: dict[str, None] = {}
    for word in words:
        while word in names:
            word += "_"
        names[word] = None
    return list(names)
