"""The parameters of a traced function: which inputs it takes, and the call with them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from blockbuster.errors import message
from blockbuster.frontend.memory import is_held
from blockbuster.frontend.source import definition, trace_error, user_line
from blockbuster.frontend.trees import Leaf, holds, taken_apart
from blockbuster.frontend.users_frames import called

_MANY = inspect.Parameter.VAR_POSITIONAL


def signature_of(fn: Callable[..., Any]) -> inspect.Signature:
    """The signature of a function. Raises TypeError if it has none that Python knows."""
    try:
        return inspect.signature(fn)
    except ValueError:
        name = getattr(fn, "__name__", "the function")
        hint = f"write a function that calls it: lambda x: {name}(x)"
        what = f"{name} does not say which arguments it takes"
        raise TypeError(message(what, hint=hint)) from None


def parameter_names(fn: Callable[..., Any], inputs: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of the inputs in the order of the function's parameters."""
    signature = signature_of(fn)
    parameters = signature.parameters
    where = user_line() or definition(fn)
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    plain = [p for p in parameters.values() if p.kind is not p.VAR_KEYWORD]
    shown = f"{getattr(fn, '__name__', 'the function')}{signature}"
    known = [p.name for p in plain]
    for name in inputs:
        if name not in known and not takes_any:
            raise trace_error(
                f"{shown} has no parameter {name!r}",
                hint=f"it takes {', '.join(known) or 'nothing'}",
                where=where,
            )
    for parameter in plain:
        needed = parameter.default is parameter.empty and parameter.kind is not _MANY
        if needed and parameter.name not in inputs:
            raise trace_error(
                f"{shown} needs the input {parameter.name!r}",
                hint=f'give its dims or an example: bb.trace(fn, {parameter.name}="M N")',
                where=where,
            )
    if inputs and all(map(_is_shape, inputs.values())):
        name, extents = next(iter(inputs.items()))
        dims = f'{name}="{" ".join(map(str, extents))}"'
        reason = f"input {name}: {tuple(extents)} says no dims, and no input is an array"
        hint = f"write the dims as one text, {dims}, or give an example"
        raise trace_error(reason, hint=hint, where=where)
    return (*(n for n in known if n in inputs), *(n for n in inputs if n not in known))


def _is_shape(given: Any) -> bool:
    return isinstance(given, tuple | list) and bool(given) and all(type(n) is int for n in given)


def bound_to(fn: Callable[..., Any], given: Mapping[str, Any]) -> inspect.BoundArguments:
    """The arguments of a call with these inputs, by the names of parameters."""
    bound = signature_of(fn).bind_partial()
    parameters = bound.signature.parameters
    beside = {name: value for name, value in given.items() if name not in parameters}
    bound.arguments |= {name: given[name] for name in parameters if name in given}
    for name, parameter in parameters.items():
        if parameter.kind is parameter.VAR_POSITIONAL and name in given:
            bound.apply_defaults()  # those before it are given, too
            bound.arguments[name] = tuple(given[name])
    bound.arguments |= {p.name: beside for p in parameters.values() if p.kind is p.VAR_KEYWORD}
    return bound


def result_of(fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """What ``fn`` returns for traced arrays and containers of them.

    Raises TraceError if it changes such a container: it was given a copy of the caller's.
    """
    values = (*args, *kwargs.values())
    before = [_holding(value) for value in values]
    result = called(fn, args, kwargs)
    for known, found in zip(before, map(_holding, values), strict=True):
        if len(known) != len(found) or not all(map(_same, known, found)):
            reason = "the function changes a list, a dict or an object that it is given"
            hint = "change a copy and return it: items = [*items], d = {**d}"
            where = definition(fn)
            raise trace_error(f"{reason}: callers' stay as they are", hint=hint, where=where)
    return result


def _holding(value: Any) -> list[Leaf]:
    """All that a container of traced arrays holds; nothing for other values."""
    return taken_apart(value, lambda _: False)[0] if holds(value, is_held) else []


def _same(one: Leaf, other: Leaf) -> bool:
    return one.shown == other.shown and one.value is other.value


def stand_in(input: Callable[..., Any], name: str, given: Any) -> Any:
    """The stand-in of an input: the result of ``input``, in the containers that were given."""
    held, tree = taken_apart(given, lambda value: isinstance(value, str))
    values = [
        leaf.value
        if leaf.shown and isinstance(leaf.value, int | float | None)
        else input(name + leaf.word, leaf.value, shown=name + leaf.shown)
        for leaf in held
    ]
    return tree.build(iter(values))
