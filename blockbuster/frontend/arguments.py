"""The arguments of a call: arrays, static values, and the structure of the result.

Arrays (NumPy's or torch's) become inputs of a trace under their parameters' names. So do those in
tuples, lists, dicts, named tuples and dataclasses: ``params["w"]`` is the input ``params_w``. All
other values are static: the function is traced with them, so another value is another program.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from types import FunctionType
from typing import Any

import numpy as np

from blockbuster.errors import message
from blockbuster.frontend.array import TracedArray
from blockbuster.frontend.fixed import Same, static
from blockbuster.frontend.parameters import result_of, signature_of
from blockbuster.frontend.program import ArrayProgram
from blockbuster.frontend.results import result_names
from blockbuster.frontend.size_facts import SizeFacts
from blockbuster.frontend.torch import is_tensor
from blockbuster.frontend.trace import trace_reader
from blockbuster.frontend.trees import (
    DEEPEST,
    Container,
    Tree,
    container_of,
    distinct,
    holds,
    result_apart,
    taken_apart,
)
from blockbuster.ir.expr import Call, Const, Size
from blockbuster.ir.lengths import Length

Place = int | str | None
"""Where a call has an argument: its position, its keyword, or nowhere (a default, a constant)."""


@dataclass(frozen=True)
class Leaf:
    """A value of a call. ``parameter`` takes it, under ``index`` where it takes several.

    ``tree`` says how the argument is put together where it is a container; ``steps`` lead from it
    to this value. ``shown`` is what Python calls the value, ``name`` what the program calls it.
    """

    name: str
    parameter: str
    index: int | str | None
    place: Place
    value: Any = field(repr=False)
    shown: str = ""
    tree: Tree | None = None
    steps: tuple[Callable[[Any], Any], ...] = ()

    @property
    def is_array(self) -> bool:
        """True for what is traced."""
        return is_array(self.value)

    def kept(self) -> Leaf:
        """This value as it can be remembered: an array is dropped unless no call gives it."""
        return self if self.place is None else replace(self, value=None)

    def taken(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """The value that a call has in this place."""
        place = self.place
        if place is None:
            return self.value
        found = args[place] if isinstance(place, int) else kwargs[place]
        for step in self.steps:
            found = step(found)
        return found


@dataclass(frozen=True)
class Shape:
    """The structure of a function's results: ``make`` puts them together again.

    ``keys`` are those of a dict; of a ``nested`` result, which ``tree`` tells, its outputs' names.
    """

    kind: str
    make: Callable[[Sequence[Any]], Any] = field(repr=False)
    keys: tuple[Any, ...] = ()
    tree: Tree = field(default=Tree(), repr=False)


_CONTAINERS = (list, dict, set, bytearray, tuple, frozenset)


def is_array(value: object) -> bool:
    """True for NumPy arrays and torch tensors."""
    return isinstance(value, np.ndarray) or is_tensor(value)


def leaves(fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Leaf]:
    """The values of a call's arguments, defaults included, in the order of the parameters.

    Raises TypeError if they do not fit the signature, or if one is neither an array nor a fixed
    value.
    """
    bound = signature_of(fn).bind(*args, **kwargs)
    given = tuple(bound.arguments)
    bound.apply_defaults()
    found: list[Leaf] = []
    position = 0
    for name, parameter in bound.signature.parameters.items():
        value = bound.arguments[name]
        if parameter.kind is parameter.VAR_POSITIONAL:
            for i, one in enumerate(value):
                found += _apart(Leaf(f"{name}_{i}", name, i, position + i, one, f"{name}[{i}]"))
        elif parameter.kind is parameter.VAR_KEYWORD:
            for key, one in value.items():
                found += _apart(Leaf(key, name, key, key, one, key))
        else:
            place: Place = name if name in kwargs else None
            if name in given and place is None:
                place, position = position, position + 1
            found += _apart(Leaf(name, name, None, place, value, name))
    for leaf in found:
        _check(leaf)
    names = distinct(leaf.name for leaf in found)
    return [replace(leaf, name=name) for leaf, name in zip(found, names, strict=True)]


def fixed_values(found: Sequence[Leaf]) -> list[Any]:
    """The parts of a call that are not arrays: fixed values, and the classes of containers."""
    trees = [leaf.tree for leaf in found if leaf.tree is not None]
    classes = (cls for tree in trees for cls in tree.classes())
    return [*dict.fromkeys(classes), *(leaf.value for leaf in found if not leaf.is_array)]


def key_of(value: Any, described: Callable[[Any], Any]) -> Any:
    """An argument that is no array, as part of a key: of a container, what its arrays are.

    ``described`` gives the key of an array, and None for all else.
    """
    found = _held(value)
    if found is None:
        return static(value)
    container, values = found
    keys = static(container.keys)
    return container.cls, keys, tuple([described(v) or key_of(v, described) for v in values])


def kind_key(value: Any, key: Any, kind_of: Callable[[Any, Any], Any]) -> Any:
    """The same without sizes; ``kind_of`` takes an array and what it was described as."""
    if isinstance(value, np.ndarray) or hasattr(value, "data_ptr"):  # at once: every call asks
        return kind_of(value, key)
    found = _held(value)
    if found is None:
        return kind_of(value, key)
    cls, keys, parts = key
    kinds = (kind_key(v, part, kind_of) for v, part in zip(found[1], parts, strict=True))
    return cls, keys, tuple(kinds)


def trace_call(
    fn: Callable[..., Any], found: Sequence[Leaf], *, for_cpu: bool
) -> tuple[ArrayProgram, Shape, SizeFacts]:
    """The array program of ``fn`` for these arguments, how its result is shaped, and for which
    extents of the arrays' axes that is the same.
    """
    shapes: list[Shape] = []

    def call(**arrays: Any) -> Any:
        values = [arrays[leaf.name] if leaf.is_array else leaf.value for leaf in found]
        args, kwargs = _as_given(fn, _put_together(found, values))
        result = result_of(fn, args, kwargs)
        shapes.append(shape_of(result))
        return result

    call.__name__ = re.sub(r"\W", "", getattr(fn, "__name__", "")) or "program"
    examples = {leaf.name: leaf.value for leaf in found if leaf.is_array}
    fixed = {leaf.shown: leaf.value for leaf in found if not leaf.is_array}
    roots = {"": fn, **fixed}
    program, facts = trace_reader(call, examples, roots, one_class=True, for_cpu=for_cpu)
    return program, shapes[-1], facts  # of the last trace, where there were two


def program_key(program: ArrayProgram, shape: Shape) -> tuple[Any, ...]:
    """A key of a traced program: traces that compute the same have the same key.

    Functions of whole arrays made anew by every trace are the same if their code and all that they
    close over are.
    """
    equations = tuple(
        (e.op, e.operands, tuple((k, _param_key(v)) for k, v in e.params), e.shape, e.kind)
        for e in program.equations
    )
    fixed = program.fixed_sizes, program.rules
    return (
        (program.name, program.inputs, equations, program.outputs, *fixed),
        (shape.kind, shape.keys, shape.tree),
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
    """The shape of what a function returned: one array, or a container of them."""
    tree = result_apart(result)[1]
    container = tree.container
    if container is None:
        return Shape("array", _only)
    if not tree.is_flat:
        names = tuple(result_names(tree))
        return Shape("nested", lambda arrays: tree.build(iter(arrays)), names, tree)
    kind = container.cls.__name__ if container.kind == "named" else container.kind
    keys = container.keys if kind == "dict" else ()
    return Shape(kind, container.make, keys, tree)


def shape_again(kind: str, keys: Sequence[Any]) -> Shape:
    """The shape that was of this kind; a named tuple comes back as a tuple."""
    if kind == "dict":
        return shape_of(dict.fromkeys(keys, object()))
    makes: dict[str, Callable[[Sequence[Any]], Any]] = {"array": _only, "list": list}
    return Shape(kind, makes.get(kind, tuple), tuple(keys))


def shape_from_names(names: Sequence[str]) -> Shape:
    """The shape behind the names of a program's outputs: ``out``, ``out0``, ``out1``, or keys."""
    if list(names) == ["out"]:
        return Shape("array", _only)
    if list(names) == [f"out{i}" for i in range(len(names))]:
        return Shape("tuple", tuple)
    return shape_of(dict.fromkeys(names, object()))


def _only(arrays: Sequence[Any]) -> Any:
    (array,) = arrays
    return array


def held_leaves(program: ArrayProgram) -> list[Leaf]:
    """The arrays that a program holds, as values that no call gives."""
    return [Leaf(name, name, None, None, value, name) for name, value in program.held.items()]


def _held(value: Any) -> tuple[Container, tuple[Any, ...]] | None:
    """What an argument holds; None if it is one value: of others than lists and dicts, only those
    that hold arrays are taken apart.
    """
    found = container_of(value)
    if found is None or not (found[0].kind in ("list", "dict") or holds(value, is_array)):
        return None
    return found


def _apart(whole: Leaf) -> list[Leaf]:
    """The leaves of an argument."""
    try:
        held, tree = taken_apart(whole.value, lambda value: is_array(value) or not _held(value))
    except (ValueError, RecursionError):
        raise TypeError(_nested(whole)) from None
    if tree.container is None:
        return [whole]
    return [
        replace(
            whole,
            name=whole.name + leaf.word,
            value=leaf.value,
            shown=whole.shown + leaf.shown,
            tree=tree,
            steps=leaf.steps,
        )
        for leaf in held
    ]


def _put_together(found: Sequence[Leaf], values: Sequence[Any]) -> list[Leaf]:
    """One leaf for each argument, with what stands for its value."""
    pairs = zip(found, values, strict=True)
    whole: list[Leaf] = []
    for _, group in groupby(pairs, lambda pair: (pair[0].parameter, pair[0].index)):
        parts = [*group]
        first = parts[0][0]
        held = iter([value for _, value in parts])
        value = first.tree.build(held) if first.tree else next(held)
        whole.append(replace(first, value=value))
    return whole


def _as_given(fn: Callable[..., Any], values: Sequence[Leaf]) -> tuple[list[Any], dict[str, Any]]:
    """Arguments for ``fn``: positional as far as its parameters allow.

    Its own defaults are left to it where no argument follows: NumPy's functions refuse some.
    """
    args: list[Any] = []
    needed = 0
    kwargs: dict[str, Any] = {}
    parameters = signature_of(fn).parameters
    for leaf in values:
        parameter = parameters[leaf.parameter]
        if parameter.kind not in (parameter.KEYWORD_ONLY, parameter.VAR_KEYWORD):
            args.append(leaf.value)
            needed = needed if leaf.value is parameter.default else len(args)
        elif leaf.value is not parameter.default:
            kwargs[str(leaf.index or leaf.parameter)] = leaf.value
    return args[:needed], kwargs


def _check(leaf: Leaf) -> None:
    if leaf.is_array or isinstance(leaf.value, TracedArray):
        return
    kind = type(leaf.value).__name__
    if hasattr(leaf.value, "shape") and hasattr(leaf.value, "dtype") and np.shape(leaf.value):
        known = "NumPy arrays and torch tensors are known"
        raise TypeError(message(f"the argument {leaf.shown} is a {kind}", hint=known))
    if isinstance(leaf.value, set) and any(map(is_array, leaf.value)):
        hint = "a set has no order: pass a list or a tuple of arrays"
        raise TypeError(message(f"the argument {leaf.shown} is a {kind} of arrays", hint=hint))
    if _is_deep(leaf.value):
        raise TypeError(_nested(leaf))
    try:
        hash(leaf.value)
    except TypeError:
        if not isinstance(leaf.value, _CONTAINERS) or container_of(leaf.value):
            return  # an object is one fixed value, and what it holds is watched
        hint = "a fixed argument is part of the cache's key: pass a tuple, a number, a string"
        raise TypeError(
            message(f"the argument {leaf.shown} is a {kind}, which has no hash", hint=hint)
        ) from None


def _nested(leaf: Leaf) -> str:
    kind = type(leaf.value).__name__
    what = f"the argument {leaf.shown} is a deeply nested {kind}"
    return message(what, hint=f"nest at most {DEEPEST} deep")


def _is_deep(value: Any) -> bool:
    """True for tuples nested deeper than ``DEEPEST``."""
    level = [value]
    for _ in range(DEEPEST + 1):
        level = [v for part in level if isinstance(part, tuple | frozenset) for v in part]
    return bool(level)
