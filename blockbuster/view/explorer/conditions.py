"""The side conditions that a rule checks before it applies, found from the code of ``matches``.

A side condition is a function that returns "" or a reason in words, and whose docstring states the
condition. As they are found in the code, the page cannot fall behind the rules.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from types import CodeType, FunctionType

from blockbuster.rules import Rule, legality, mean_shifts


def conditions(rule: Rule) -> tuple[tuple[str, str], ...]:
    """Names and sentences of the rule's side conditions, in the order in which it asks them.

    >>> from blockbuster.rules import FuseReduction
    >>> [name for name, _ in conditions(FuseReduction())]
    ['first iteration gone']
    """
    found: dict[FunctionType, None] = {}
    todo = [method for name in ("matches_at", "matches") for method in _asked(type(rule), name)]
    for function in todo:  # grows
        for other in _mentioned(function, type(rule)):
            if other not in todo:
                todo.append(other)
            if _is_condition(other, type(rule).__module__):
                found.setdefault(other)
    return tuple((f.__name__.strip("_").replace("_", " "), _sentence(f)) for f in found)


def _asked(rule: type[Rule], name: str) -> Iterator[FunctionType]:
    """A method of a rule, and those of the rules it is made of that it asks by super()."""
    for owner in rule.__mro__:
        method = vars(owner).get(name)
        if isinstance(method, FunctionType) and _is_of_rules(method, rule.__module__):
            yield method
            if "super" not in _names(method.__code__):
                return


def _mentioned(function: FunctionType, owner: type[Rule]) -> Iterator[FunctionType]:
    """The functions of rules, and the owner's methods, that a function mentions, in order."""
    for name in _names(function.__code__):
        value = function.__globals__.get(name, getattr(owner, name, None))
        if isinstance(value, FunctionType) and _is_of_rules(value, function.__module__):
            yield value


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _is_of_rules(function: FunctionType, own: str) -> bool:
    base = sys.modules[Rule.__module__]
    module = function.__module__
    rules = base.__name__.rpartition(".")[0]
    return module != base.__name__ and (module == own or module.startswith(f"{rules}."))


def _is_condition(function: FunctionType, own: str) -> bool:
    shared = function.__module__ in (legality.__name__, mean_shifts.__name__)
    return (
        inspect.signature(function).return_annotation in ("str", str)
        and function.__doc__ is not None
        and (shared or function.__module__ == own or function.__name__.startswith("_"))
    )


def _sentence(function: FunctionType) -> str:
    return " ".join((function.__doc__ or "").split("\n\n")[0].split())
