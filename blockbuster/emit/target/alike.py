"""Kernels that differ in names alone: compiled once in a process, and launched for all.

A model of equal layers has equal kernels, whose arrays have other names. Triton compiles each of
them, since its texts differ. Here texts are compared as Python reads them, without comments and
lines, with numbers for the names that a function binds; what it calls is compared likewise.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from textwrap import dedent
from types import ModuleType
from typing import Any
from weakref import WeakValueDictionary

Kernel = Any
"""A function of Triton's."""

FIRST: WeakValueDictionary[str, Kernel] = WeakValueDictionary()
"""In this process: the first of the kernels that are alike, by what they have in common, as long as
somebody launches it."""


@dataclass(frozen=True)
class Shared:
    """The kernel that is compiled for one; ``names``: its parameters by those of the other."""

    function: Kernel
    names: Mapping[str, str]

    def named(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments and options of the other by the names that this one has for them."""
        return {self.names.get(name, name): value for name, value in arguments.items()}


def shared(function: Kernel, constants: Mapping[str, Any], options: Mapping[str, Any]) -> Shared:
    """The first kernel of this process that is like ``function``, which may be itself, and starts
    with such ``constants`` and ``options``: with others it is compiled anew in any case, beside it.
    """
    if not hasattr(function, "src"):  # no text is known of it
        return Shared(function, {})
    common = _in_common(function, [])
    started = [constants.get(name) for name in function.arg_names], sorted(options.items())
    key = f"{common}\n{started}"
    first: Kernel = function if common is None else FIRST.setdefault(key, function)
    return Shared(first, dict(zip(function.arg_names, first.arg_names, strict=True)))


def _in_common(function: Kernel, callers: list[Kernel]) -> str | None:
    """A text that kernels have in common which are alike; None for one that reads other values."""
    if any(function is one for one in callers):
        return None
    tree = ast.parse(dedent(function.src)).body[0]
    assert isinstance(tree, ast.FunctionDef)
    names = _Numbers(tree)
    texts = [ast.dump(names.visit(tree))]
    texts += [f"{one.do_not_specialize} {one.is_constexpr}" for one in function.params]
    for name in names.free:
        found = _value_in_common(function.fn.__globals__.get(name), [*callers, function])
        if found is None:
            return None
        texts.append(f"{name} = {found}")
    return "\n".join(texts)


def _value_in_common(value: Any, callers: list[Kernel]) -> str | None:
    """A text for a value that a kernel reads by name, the same for equal values: a module, a number
    or another kernel; None for others. What its module does not hold is Python's own.
    """
    if value is None or isinstance(value, ModuleType):
        return getattr(value, "__name__", "")
    if isinstance(value, bool | int | float | str):
        return repr(value)
    return _in_common(value, callers) if hasattr(value, "arg_names") else None


class _Numbers(ast.NodeTransformer):
    """Numbers for the names that a function binds, its own among them; ``free``: the others."""

    def __init__(self, tree: ast.FunctionDef) -> None:
        stored = (n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and _binds(n))
        names = (tree.name, *(one.arg for one in tree.args.args), *stored)
        self._numbers = {name: f"_{at}" for at, name in enumerate(dict.fromkeys(names))}
        self.free: dict[str, None] = {}

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """A function without its docstring."""
        body = node.body[1:] if ast.get_docstring(node) is not None else node.body
        made = ast.FunctionDef(
            self._numbers[node.name], node.args, body, [], None, type_comment=None
        )
        self.generic_visit(made)
        return made

    def visit_arg(self, node: ast.arg) -> ast.arg:
        """A parameter."""
        self.generic_visit(node)
        return ast.arg(self._numbers[node.arg], node.annotation)

    def visit_Name(self, node: ast.Name) -> ast.Name:
        """A name where it is read or bound."""
        if node.id not in self._numbers:
            self.free[node.id] = None
        return ast.Name(self._numbers.get(node.id, node.id), node.ctx)


def _binds(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)
