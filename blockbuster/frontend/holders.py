"""Objects that hold values a function can read: the kinds that are known, and how to watch them.

Objects of other kinds, such as iterators, files and C functions of libraries, may return another
value at any time.
"""

from __future__ import annotations

import enum
import functools
import types
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from operator import is_
from typing import Any

import numpy as np

from blockbuster.frontend.functions.table import SPELLINGS
from blockbuster.frontend.torch import state_of

ABSENT = object()
"""What is found where nothing is."""

Check = Callable[[Any, Any], Any]

_STATELESS = (
    "builtins", "math", "cmath", "operator", "_operator", "functools", "itertools", "typing",
    "collections", "abc", "enum", "dataclasses", "numbers", "fractions", "decimal", "types",
    "numpy", "blockbuster",
)  # fmt: skip
"""Packages whose functions give the same for the same arguments. numpy.random is not meant."""
_OF_TORCH = ("torch.nn.", "torch.functional", "torch.fx.")
_RECORDS = ("torch.fx.", "torch._dynamo.", "torch._guards")
"""Where torch has the classes of its records of a graph, which the graph's code does not read."""
_LEAVES = (range, slice, np.dtype, np.ufunc, types.CodeType, type(NotImplemented))
_ITEMS = (list, tuple, set, frozenset, deque)
_TABLES = (dict, OrderedDict, defaultdict, types.MappingProxyType)
_LARGE = 2**16  # bytes that comparing costs less than tracing again: some 5 us
_SMALL = 2**12  # the same of tensors


class Unknown(Exception):
    """The values that a function reads cannot be determined; the message says why."""


def is_stateless(module: str) -> bool:
    """True for modules whose functions depend on their arguments alone, and on what these hold."""
    if module.startswith(_OF_TORCH):
        return True
    return module.split(".")[0] in _STATELESS and not module.startswith("numpy.random")


def is_leaf(value: Any) -> bool:
    """True for values in which nothing changes: dtypes, ranges, functions of known libraries."""
    if isinstance(value, type):
        in_c = value.__module__ == "torch" and not _in_python(value)
        return in_c or is_stateless(value.__module__)
    if isinstance(value, _LEAVES):
        return True
    kind = type(value)
    if isinstance(value, types.BuiltinFunctionType):
        if "torch" in str(getattr(value, "__module__", "")):
            return SPELLINGS.torch_row(value) is not None  # others may draw random numbers
        owner = value.__self__
        return is_stateless(owner.__name__) if isinstance(owner, types.ModuleType) else False
    if kind.__module__.startswith(_RECORDS) and not is_layer(value):
        return True
    if kind.__module__ == "torch":
        return kind.__name__ in ("dtype", "device", "layout", "memory_format", "Size")
    return kind.__module__ == "numpy" and not isinstance(value, np.ndarray)


def is_layer(value: Any) -> bool:
    """True for modules of torch's: what they hold is in dicts, their code is ``forward``."""
    return any(cls.__module__ == "torch.nn.modules.module" for cls in type(value).__mro__)


def known_class(cls: type) -> bool:
    """True for classes written in Python on top of ``object`` or a known container."""
    return cls not in (*_ITEMS, *_TABLES, *_PARTS) and not is_array_class(cls)


def is_array_class(cls: type) -> bool:
    """True for the classes of arrays and tensors."""
    return issubclass(cls, np.ndarray) or hasattr(cls, "data_ptr")


def user_classes(value: Any) -> Iterator[type]:
    """The classes among the bases of ``value`` whose code is followed."""
    if isinstance(value, type):
        for cls in value.__mro__:
            if not is_stateless(cls.__module__):
                if not _in_python(cls):
                    raise Unknown(f"it reads a {value.__name__}")
                yield cls


def _in_python(cls: type) -> bool:
    """True if a class statement made ``cls``: nothing of it is hidden in C."""
    hidden = types.MethodDescriptorType, types.GetSetDescriptorType
    slots = "__slots__" in vars(cls)
    return "__module__" in vars(cls) and not any(
        (isinstance(value, hidden) and name not in ("__dict__", "__weakref__"))
        or (isinstance(value, types.MemberDescriptorType) and not slots)
        for name, value in vars(cls).items()
    )


_PARTS: Mapping[type, tuple[str, ...]] = {
    types.MethodType: ("__func__", "__self__"),
    types.BuiltinMethodType: ("__self__",),
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
    property: ("fget",),
    functools.cached_property: ("func",),
    functools.partial: ("func", "args", "keywords"),
    types.MemberDescriptorType: (),
    types.WrapperDescriptorType: (),
    types.MethodDescriptorType: (),
    types.GetSetDescriptorType: (),
    types.MethodWrapperType: ("__self__",),
    types.SimpleNamespace: ("__dict__",),
    types.GenericAlias: (),
    types.UnionType: (),
    type(vars(namedtuple("_", "field"))["field"]): (),
}


def inside(value: Any) -> Iterator[Any]:
    """The values that ``value`` is made of. Raises Unknown for kinds that may hold more."""
    kind = type(value)
    if kind is types.BuiltinMethodType and isinstance(value.__self__, types.ModuleType):
        raise Unknown(f"it calls {value.__self__.__name__}.{value.__name__}")
    if is_layer(value):
        yield vars(value)
    elif kind in _PARTS:
        yield from (getattr(value, name) for name in _PARTS[kind])
    elif isinstance(value, _TABLES):
        yield from chain.from_iterable(value.items())
    elif isinstance(value, _ITEMS):
        yield from value
    elif isinstance(value, enum.Enum):
        yield value.value
    elif is_array_class(kind):
        if _content_of(value) is None:
            raise Unknown(_unwatched(value))
    elif is_stateless(kind.__module__) and _in_python(kind) and hasattr(value, "__wrapped__"):
        yield value.__wrapped__  # a jitted function
    elif _solid(kind) is not object:
        raise Unknown(f"it can read a {kind.__name__}, which may change unseen")


def has_attributes_only(value: Any) -> bool:
    """True for instances of Python's classes: all that they hold is in their ``__dict__``."""
    kind = type(value)
    known = known_class(kind) and not is_stateless(kind.__module__) and _solid(kind) is object
    return known and hasattr(value, "__dict__") and not isinstance(value, enum.Enum)


def _solid(cls: type) -> type:
    """The last base that no class statement made."""
    while cls is not object and _in_python(cls):
        cls = cls.__base__ or object
    return cls


def snapshot(value: Any) -> tuple[Check, Any, Any] | None:
    """A check that a container or an array holds what it holds now; None for other values."""
    if isinstance(value, _TABLES):
        items = [*value, *value.values()]
        return truth(lambda: _same([*value, *value.values()], items))
    if isinstance(value, _ITEMS) and not isinstance(value, tuple | frozenset):
        items = [*value]
        return truth(lambda: _same(value, items))
    if is_array_class(type(value)):
        content = _content_of(value)
        return truth(lambda: _content_of(value) == content)
    return None


def truth(holds: Callable[[], bool]) -> tuple[Check, Any, Any]:
    """The check that ``holds()`` stays true."""
    return lambda _key, _missing: holds(), "", True


def _same(now: Any, items: list[Any]) -> bool:
    return len(now) == len(items) and all(map(is_, now, items))


def form_of(array: Any) -> tuple[Check, Any, Any]:
    """A check of an array's shape, strides and dtype, which its elements are no part of."""

    def form() -> tuple[Any, ...]:
        strides = array.strides if isinstance(array, np.ndarray) else array.stride()
        return tuple(array.shape), strides, array.dtype

    before = form()
    return truth(lambda: form() == before)


def _content_of(array: Any) -> tuple[Any, ...] | None:
    """All of a small array on the CPU; else what changes with it. None if nothing tells.

    A large NumPy array is known to stay as it is if it is read-only, as all that it is a view of.
    """
    if not isinstance(array, np.ndarray):
        small = array.device.type == "cpu" and array.numel() * array.element_size() <= _SMALL
        state = state_of(array)
        return (repr(array.tolist()), (state or ())[:-1]) if small else state
    if array.dtype.hasobject:
        return None
    if array.nbytes <= _LARGE:
        return array.shape, array.dtype, array.tobytes()
    return (array.shape, array.strides, array.dtype) if _is_frozen(array) else None


def _is_frozen(array: Any) -> bool:
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
            return False
        array = array.base
    return array is None


def _unwatched(array: Any) -> str:
    if not isinstance(array, np.ndarray):
        return "it can read a tensor of inference mode, whose changes are not counted"
    reason = f"it can read an array of {array.nbytes / 1e6:.2g} MB that may change unseen"
    return f"{reason}: make it an input, or read-only (array.flags.writeable = False)"


def cell_reader(cell: Any) -> Check:
    """Reads a closure cell under the name ``cell_contents``; one that is empty may be filled."""
    try:
        _ = cell.cell_contents
    except ValueError:
        return lambda name, missing: _filled(cell, name, missing)
    return functools.partial(getattr, cell)


def _filled(cell: Any, name: Any, missing: Any) -> Any:
    try:
        return getattr(cell, name, missing)
    except ValueError:
        return missing


def class_reader(cls: type) -> Check:
    """Reads an attribute of a class as it is stored, from the first base that has it."""

    def read(name: Any, missing: Any) -> Any:
        for base in cls.__mro__:
            if name in base.__dict__:
                return base.__dict__[name]
        return missing

    return read
