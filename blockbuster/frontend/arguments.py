"""The arguments of a call: which are arrays, which are fixed values, and how the result is shaped.

Arrays (NumPy's or torch's) become inputs of a trace under their parameters' names. All other values
are static: the function is traced with them, so another value is another program.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import FunctionType
from typing import Any

import numpy as np

from blockbuster.errors import message
from blockbuster.frontend.fixed import Same, static
from blockbuster.frontend.program import ArrayProgram
from blockbuster.frontend.size_facts import SizeFacts
from blockbuster.frontend.torch import is_tensor
from blockbuster.frontend.trace import trace_with_facts
from blockbuster.ir.expr import Call, Const, Size
from blockbuster.ir.lengths import Length

Place = int | str | None
"""Where a call has an argument: its position, its keyword, or nowhere (a default)."""


@dataclass(frozen=True)
class Leaf:
    """One argument. ``parameter`` takes it, under ``index`` where it takes several."""

    name: str
    parameter: str
    index: int | str | None
    place: Place
    value: Any = field(repr=False)

    @property
    def is_array(self) -> bool:
        """True for what is traced."""
        return is_array(self.value)

    def kept(self) -> Leaf:
        """This argument as it can be remembered: an array is dropped unless it is a default."""
        return self if self.place is None else replace(self, value=None)


@dataclass(frozen=True)
class Shape:
    """How a function returns its results: ``make`` puts them together again."""

    kind: str
    make: Callable[[Sequence[Any]], Any] = field(repr=False)
    keys: tuple[Any, ...] = ()


DEEPEST = 200  # tuples in tuples of a fixed argument: keys are made of them by recursion
_CONTAINERS = (list, dict, set, bytearray, tuple, frozenset)


def is_array(value: object) -> bool:
    """True for NumPy arrays and torch tensors."""
    return isinstance(value, np.ndarray) or is_tensor(value)


def leaves(fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Leaf]:
    """The arguments of a call, defaults included, in the order of the parameters.

    Raises TypeError where they do not fit the signature, or where one is neither an array nor a
    fixed value.
    """
    bound = inspect.signature(fn).bind(*args, **kwargs)
    given = tuple(bound.arguments)
    bound.apply_defaults()
    found: list[Leaf] = []
    position = 0
    for name, parameter in bound.signature.parameters.items():
        value = bound.arguments[name]
        if parameter.kind is parameter.VAR_POSITIONAL:
            found += [Leaf(f"{name}{i}", name, i, position + i, v) for i, v in enumerate(value)]
            continue
        if parameter.kind is parameter.VAR_KEYWORD:
            found += [Leaf(key, name, key, key, v) for key, v in value.items()]
            continue
        place: Place = name if name in kwargs else None
        if name in given and place is None:
            place, position = position, position + 1
        found.append(Leaf(name, name, None, place, value))
    for leaf in found:
        _check(leaf)
    return found


def trace_call(
    fn: Callable[..., Any], found: Sequence[Leaf]
) -> tuple[ArrayProgram, Shape, SizeFacts]:
    """The array program of ``fn`` for these arguments, how its result is shaped, and for which
    extents of the arrays' axes that is the same.
    """
    shapes: list[Shape] = []
    names = _names(found)

    def call(**arrays: Any) -> Any:
        values = [
            replace(leaf, value=arrays[names[i]]) if leaf.is_array else leaf
            for i, leaf in enumerate(found)
        ]
        args, kwargs = _as_given(fn, values)
        result = fn(*args, **kwargs)
        shapes.append(shape_of(result))
        return result

    call.__name__ = re.sub(r"\W", "", getattr(fn, "__name__", "")) or "program"
    examples = {names[i]: leaf.value for i, leaf in enumerate(found) if leaf.is_array}
    program, facts = trace_with_facts(call, **examples)
    return program, shapes[0], facts


def program_key(program: ArrayProgram, shape: Shape) -> tuple[Any, ...]:
    """What a traced program is, as a key: two traces that compute the same have the same one.

    Functions of whole arrays made anew by every trace are the same if their code and all that they
    close over are.
    """
    equations = tuple(
        (e.op, e.operands, tuple((k, _param_key(v)) for k, v in e.params), e.shape, e.kind)
        for e in program.equations
    )
    made = None if shape.kind == "dict" else shape.make
    fixed = program.fixed_sizes, program.rules
    return (
        (program.name, program.inputs, equations, program.outputs, *fixed),
        (shape.kind, shape.keys, made),
    )


def _param_key(value: Any) -> Any:
    if isinstance(value, Const | Size | Call | Length):
        return value
    if isinstance(value, FunctionType) and not vars(value):
        held = [cell.cell_contents for cell in value.__closure__ or ()]
        keywords = tuple((value.__kwdefaults__ or {}).items())
        fixed = tuple(map(static, (*held, *(value.__defaults__ or ()), *keywords)))
        return value.__code__, Same(value.__globals__), len(held), fixed
    return static(value)


def shape_of(result: Any) -> Shape:
    """The shape of what a function returned: one array, a tuple, a list or a dict of them."""
    if isinstance(result, Mapping):
        keys = tuple(result)
        return Shape("dict", lambda arrays: dict(zip(keys, arrays, strict=True)), keys)
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        return Shape(type(result).__name__, type(result)._make)  # type: ignore[attr-defined]
    if isinstance(result, list):
        return Shape("list", list)
    return Shape("tuple", tuple) if isinstance(result, tuple) else Shape("array", _only)


def shape_again(kind: str, keys: Sequence[Any]) -> Shape:
    """The shape that was of this kind; a named tuple comes back as a tuple."""
    if kind == "dict":
        return shape_of(dict.fromkeys(keys))
    makes: dict[str, Callable[[Sequence[Any]], Any]] = {"array": _only, "list": list}
    return Shape(kind, makes.get(kind, tuple), tuple(keys))


def shape_from_names(names: Sequence[str]) -> Shape:
    """The shape behind the names of a program's outputs: ``out``, ``out0``, ``out1``, or keys."""
    if list(names) == ["out"]:
        return Shape("array", _only)
    if list(names) == [f"out{i}" for i in range(len(names))]:
        return Shape("tuple", tuple)
    return shape_of(dict.fromkeys(names))


def _only(arrays: Sequence[Any]) -> Any:
    (array,) = arrays
    return array


def _names(found: Sequence[Leaf]) -> list[str]:
    """A name for each argument, no two the same: ``*w`` next to ``w0`` would clash."""
    names: list[str] = []
    for leaf in found:
        name = leaf.name
        while name in names:
            name += "_"
        names.append(name)
    return names


def _as_given(fn: Callable[..., Any], values: Sequence[Leaf]) -> tuple[list[Any], dict[str, Any]]:
    """Arguments for ``fn``: positional as far as its parameters allow.

    Its own defaults are left to it where no argument follows: NumPy's functions refuse some.
    """
    args: list[Any] = []
    needed = 0
    kwargs: dict[str, Any] = {}
    parameters = inspect.signature(fn).parameters
    for leaf in values:
        parameter = parameters[leaf.parameter]
        kind = parameter.kind
        if kind not in (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD):
            args.append(leaf.value)
            needed = needed if leaf.value is parameter.default else len(args)
        elif leaf.value is not parameter.default:
            kwargs[leaf.name] = leaf.value
    return args[:needed], kwargs


def _check(leaf: Leaf) -> None:
    if leaf.is_array:
        return
    kind = type(leaf.value).__name__
    held = leaf.value.values() if isinstance(leaf.value, dict) else leaf.value
    if isinstance(leaf.value, list | tuple | dict | set) and any(map(is_array, held)):
        hint = "pass each array as an argument of its own, *arrays or **arrays"
        raise TypeError(message(f"the argument {leaf.name} is a {kind} of arrays", hint=hint))
    if hasattr(leaf.value, "shape") and hasattr(leaf.value, "dtype") and np.shape(leaf.value):
        known = "NumPy arrays and torch tensors are known"
        raise TypeError(message(f"the argument {leaf.name} is a {kind}", hint=known))
    if _is_deep(leaf.value):
        hint = f"nest at most {DEEPEST} deep"
        raise TypeError(message(f"the argument {leaf.name} is a deeply nested {kind}", hint=hint))
    try:
        hash(leaf.value)
    except TypeError:
        if not isinstance(leaf.value, _CONTAINERS):
            return  # an object is one fixed value, and what it holds is watched
        hint = "a fixed argument is part of the cache's key: pass a tuple, a number, a string"
        raise TypeError(
            message(f"the argument {leaf.name} is a {kind}, which has no hash", hint=hint)
        ) from None


def _is_deep(value: Any) -> bool:
    """True for tuples nested deeper than ``DEEPEST``."""
    level = [value]
    for _ in range(DEEPEST + 1):
        level = [v for part in level if isinstance(part, tuple | frozenset) for v in part]
    return bool(level)
