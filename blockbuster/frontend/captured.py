"""Captured arrays: those that a function reads from a closure, a global or ``self.w``.

Each becomes a hidden input of the program, which holds the array under the function's name for it.
A jitted function passes the very array at each call, so changes in place are seen. Values that the
function computes from it with NumPy or torch itself, say ``w.max()``, are computed during the
trace, so the function is traced again when the array changes. To detect changes, a NumPy array of
up to 64 KB is compared, and a tensor counts its changes (not those through ``.data``). A larger
NumPy array that is not read-only may change unseen: then the function is traced at each call, and
its report says so. On a GPU each trace copies a NumPy array to the device once.

A mask that is a condition on positions, as a triangle is, becomes that condition and no input:
``conditions.py``. Its values count as computed from, so the function is traced again if it changes.
Of another mask it is noted how many blocks hold one value. If that empties many of them, the mask
counts as constant, as if the user had said so, and a kernel finds the others once for each content.
A mask of 0 and -inf, or of 1 and 0, with such blocks is read as truth values. A table of distances
that arithmetic reads is computed from positions, too: ``distances.py``. Zeros that a function joins
to an array are a number around it, as ``pad`` puts there.

An array that changes in place while the function runs would be read with its last value everywhere,
so that is refused.
"""

from __future__ import annotations

import math
import types
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from blockbuster.errors import a_kind
from blockbuster.frontend.conditions import (
    MOST,
    SIDE,
    Ends,
    blocks_of_one_value,
    condition_of,
    truth_of,
)
from blockbuster.frontend.distances import distance_of
from blockbuster.frontend.shapes import ARRAYS_ONLY
from blockbuster.frontend.source import Refused, trace_error, user_line
from blockbuster.frontend.torch import NOT_NUMPYS, is_tensor, on_host, one_element
from blockbuster.frontend.trees import container_of, holds
from blockbuster.ir.dtypes import TRUTH
from blockbuster.ir.origin import SourceLine

if TYPE_CHECKING:
    from blockbuster.frontend.array import TracedArray

Shares = tuple[float, float]
"""Which parts of a mask's blocks are False, and True, throughout."""

NONE = (0.0, 0.0)

UNNAMED = "constant"
"""What an array is called that the function makes itself."""

_NOT_TRACED = "an array that is not traced"

_TABLES = ("_parameters", "_buffers", "_modules")  # where layers of torch hold what they have
_MOST = 4096  # values that are looked at for a name, and positions that are for a slice
_ADDED_OR_MULTIPLIED = ((0.0, -math.inf), (1.0, 0.0))  # numbers of masks
_LEAST = 8  # elements of a mask that is looked at: fewer cost nothing as an input
_OF_TORCH = ("torch", "torch.nn.parameter")  # not fake tensors, which have no elements
_ARITHMETIC = ("add", "sub", "mul", "div", "subtract", "multiply", "divide", "true_divide", "rsub")
"""What reads a table that is no list of positions, by our names and torch's."""
_BENDS = 2  # second differences of a row that are not 0, where an absolute value or 0 begins
_PLACES = "at row i and column j"
_FLOATS = ("float16", "bfloat16", "float32", "float64")
_PLAIN = (np.ndarray, np.memmap)


class Captures:
    """The hidden inputs of a trace: one for each array that its function reads.

    ``roots`` are where names of arrays are looked for. ``add`` makes an input of a name, an array
    and the parts of a mask's blocks that hold one value. ``state`` computes a mask from a condition
    that equals it, or from its truth values, and a table from the distance that equals it.
    """

    def __init__(
        self,
        roots: Mapping[str, Any],
        add: Callable[[str, Any, Shares], TracedArray],
        state: Callable[[Any, Any, Ends], TracedArray | None],
    ) -> None:
        self._roots = roots
        self._add = add
        self._state = state
        self.notes: list[str] = []
        """One sentence for each mask: the condition that it became, or that it stayed an input."""
        self._made: dict[int, tuple[TracedArray, Any, Any, SourceLine | None]] = {}

    def of(self, array: Any, op: str = "") -> TracedArray:
        """The hidden input for ``array``, which the operation ``op`` reads.

        Raises TraceError if it has changed since it was read.
        """
        if id(array) in self._made:
            self._check(id(array))
        else:
            check_capture(array)
            name = word_for(array, self._roots)
            made, one_value = self._as_condition(name, array)
            if made is None and op in _ARITHMETIC:
                made = self._as_distance(name, array)
            if made is None and op == "concat" and name == UNNAMED:  # one with a name may change
                number = _number_in(array)
                made = None if number is None else self._state(array, number, (True, False))
            if made is None:
                made = self._add(name if name.isidentifier() else UNNAMED, array, one_value)
            owner = f"{name}, which the function reads," if name != UNNAMED else _NOT_TRACED
            made.memory.owner = owner
            self._made[id(array)] = made, array, _content(array), user_line()
        return self._made[id(array)][0]

    def _as_condition(self, name: str, array: Any) -> tuple[TracedArray | None, Shares]:
        """A mask computed from positions, where a condition equals it; else which parts of the
        blocks of one of truth values are false, and true, throughout.
        """
        found = _mask_of(array)
        if found is None:
            return None, NONE
        mask, ends = found
        condition = condition_of(mask)
        shown = _shown(name, array, "mask")
        if condition is None:
            low, high, count = blocks_of_one_value(mask)
            why = f"no condition on positions equals it{_in_words(low, high, count)}"
            self.notes.append(f"{shown} stays an input: {why}")
            shares = low / count, high / count
            if ends[0] is True:
                return None, shares
            if shares == NONE or ends not in _ADDED_OR_MULTIPLIED:
                return None, NONE
            truth = self._add(name if name.isidentifier() else UNNAMED, array == ends[0], shares)
            return self._state(array, truth, ends), shares
        self.notes.append(f"{shown} is computed: {condition}, {_PLACES}")
        return self._state(array, condition, ends), NONE

    def _as_distance(self, name: str, array: Any) -> TracedArray | None:
        """A table computed from positions, where a distance equals it."""
        table = _matrix(array)
        found = None if table is None or str(table.dtype) == TRUTH else distance_of(table)
        if found is None:
            return None
        self.notes.append(f"{_shown(name, array, 'table')} is computed: {found}, {_PLACES}")
        return self._state(array, found, (True, False))

    def is_made_here(self, array: Any) -> bool:
        """True for an array that the traced function makes itself, whose elements it decides."""
        can_look = math.prod(array.shape) <= _MOST and looked_at(array) is not None
        return can_look and word_for(array, self._roots) == UNNAMED

    def if_array(self, given: Any, op: str, lists: bool) -> Any:
        """An operand of ``op``; arrays of several elements, and those of products, as inputs.

        ``lists``: lists of numbers are arrays, too.
        """
        given = one_element(of_list(given) if lists else given)
        if not (isinstance(given, np.ndarray) or is_tensor(given)):
            return given
        is_number = not is_tensor(given) and given.size == 1
        is_number = is_number and not (op in ARRAYS_ONLY and given.ndim)
        return given if is_number else self.of(given, op)

    def taken(self, value: Any, op: str = "") -> Any:
        """An argument of torch's function ``op``: tensors, alone or in sequences, as inputs."""
        if isinstance(value, list | tuple):
            join = partial(self.taken, op="concat")
            return type(value)(map(join, value)) if type(value) in (list, tuple) else value
        if not is_tensor(value):
            return value
        number = one_element(value)
        return self.of(value, op) if number is value else number

    def held(self, made: TracedArray) -> Any:
        """The array that a hidden input stands for; None for other traced arrays."""
        return next((array for known, array, *_ in self._made.values() if known is made), None)

    def check(self) -> None:
        """Raise TraceError if an array has changed since it was read."""
        for key in self._made:
            self._check(key)

    def _check(self, key: int) -> None:
        made, array, content, where = self._made[key]
        if _content(array) != content:
            reason = f"{made.memory.owner} changes in place after it was read, at {where}"
            raise trace_error(reason, hint="read a copy: w.copy(), or w.clone() of a tensor")


def _in_words(low: int, high: int, count: int) -> str:
    """What of a mask's blocks holds one value, behind other words."""
    if not (low or high):
        return ""
    whole = f"{low} are False and {high} are True throughout"
    return f"; of its {count} blocks of {SIDE} x {SIDE}, {whole}"


def _content(array: Any) -> Any:
    """What changes whenever the elements of an array do."""
    if is_tensor(array) and not array.is_inference():
        return array.data_ptr(), array._version
    return zlib.crc32(np.ascontiguousarray(on_host(array)).view(np.uint8).data)


def _shown(name: str, array: Any, kind: str) -> str:
    """A mask or a table by its name and its shape."""
    shown = f"the {kind} {name}" if name != UNNAMED else f"a {kind} that the function makes"
    return f"{shown}, {' x '.join(map(str, array.shape))},"


def of_list(value: Any) -> Any:
    """A list of numbers, or of such lists, as NumPy's array of them; anything else as it is."""
    numbers = (list, tuple, bool, int, float, np.generic)
    if not isinstance(value, list) or holds(value, lambda part: not isinstance(part, numbers)):
        return value
    return np.asarray(value)


def _mask_of(array: Any) -> tuple[Any, Ends] | None:
    """The truth values of a mask as a matrix, and its two numbers, if an array is one: of two axes,
    or of more of which all but the last two have one element. None for other arrays.
    """
    if str(array.dtype).removeprefix("torch.") not in (TRUTH, *_FLOATS):
        return None
    matrix = _matrix(array, lambda row: truth_of(row) is not None)
    found = None if matrix is None else truth_of(matrix)
    return None if found and found[1][0] == found[1][1] else found  # as new layers' biases are


def _number_in(array: Any) -> float | None:
    """The number that an array of several floats holds everywhere; None for other arrays."""
    if str(array.dtype).removeprefix("torch.") not in _FLOATS or math.prod(array.shape) < 2:
        return None
    plain = looked_at(array)
    for part in () if plain is None else (plain.reshape(-1)[:_LEAST], plain):
        found = on_host(part)
        is_one = (found == found.flat[0]) & (np.signbit(found) == np.signbit(found.flat[0]))
        if not is_one.all():
            return None
    return None if plain is None else float(found.flat[0])


def _is_straight(row: Any) -> bool:
    """Whether numbers change by one step, or by two, one behind the other."""
    row = row.astype(float)
    return bool(np.isfinite(row).all() and np.count_nonzero(np.diff(row, 2)) <= _BENDS)


def looked_at(array: Any) -> Any:
    """An array whose elements can be looked at, in a dtype of NumPy's; None for others."""
    if not is_tensor(array):
        return array
    if array.requires_grad or array.is_meta or type(array).__module__ not in _OF_TORCH:
        return None
    return array.detach().float() if str(array.dtype) in NOT_NUMPYS else array.detach()


def _matrix(array: Any, begins: Callable[[Any], bool] = _is_straight) -> Any:
    """An array on the host as a matrix: of two axes, or of more of which all but the last two have
    one element. None for other arrays, and for those whose first row does not begin one.
    """
    rows, columns = (1, 1, *array.shape)[-2:]
    number = math.prod(array.shape)
    plain = looked_at(array) if number == rows * columns and _LEAST <= number <= MOST else None
    if plain is None:
        return None
    matrix = plain.reshape(rows, columns)
    if not begins(on_host(matrix[0])):
        return None  # weights, which are large, are not copied from a GPU for this
    return on_host(matrix)


def check_capture(array: Any) -> None:
    """Raise Refused for an array that is not what its memory says."""
    if isinstance(array, np.ndarray) and type(array) not in _PLAIN:
        what = f"{a_kind(array)} is read: plain arrays are needed"
        raise Refused(what, "read np.asarray(array), or array.filled(value) where it is masked")


def word_for(array: Any, roots: Mapping[str, Any]) -> str:
    """The function's name for ``array``; ``roots`` are its arguments, the function itself under
    ``""``.

    >>> w = np.ones(3)
    >>> word_for(w, {"": lambda x: x + w}), word_for(w, {"layers": [{"w": w}]})
    ('w', 'layers_0_w')
    """
    names = dict.fromkeys(name for fn in _functions(roots) for name in _names(fn.__code__))
    ahead = list(roots.items())
    seen: dict[int, Any] = {}
    of_one_memory = UNNAMED
    for word, value in ahead:  # it grows
        if value is array:
            return word
        if of_one_memory == UNNAMED and _memory(value) is _memory(array):
            of_one_memory = word
        if id(value) not in seen and len(seen) < _MOST:
            seen[id(value)] = value
            ahead += _inside(word, value, names)
    return of_one_memory


def _memory(value: Any) -> Any:
    """The array that owns what an array is a view of; another value itself."""
    while isinstance(value, np.ndarray) and value.base is not None:
        value = value.base
    is_view = is_tensor(value) and value._base is not None
    return value._base if is_view else value


def _functions(roots: Mapping[str, Any]) -> Iterator[types.FunctionType]:
    """The functions among the roots, out of methods and partial functions."""
    for value in roots.values():
        while isinstance(value, partial | types.MethodType):
            value = value.func if isinstance(value, partial) else value.__func__
        if isinstance(value, types.FunctionType):
            yield value


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for part in code.co_consts:
        if isinstance(part, types.CodeType):
            yield from _names(part)


def _inside(word: str, value: Any, names: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """What ``value`` holds that code with these names may read, under longer words."""
    found = container_of(value)
    before = f"{word}_" if word else ""
    if found is not None:
        container, parts = found
        pairs = zip(container.keys, parts, strict=True)
        yield from ((before + container.word(key), part) for key, part in pairs)
    elif isinstance(value, types.FunctionType):
        yield from _read_by(value)
    elif isinstance(value, types.MethodType):
        yield from (("self", value.__self__), (word, value.__func__))
    elif isinstance(value, partial):
        yield from (*value.keywords.items(), ("", value.func))
        yield from ((UNNAMED, given) for given in value.args)
    elif isinstance(value, types.ModuleType):
        yield from ((before + n, vars(value)[n]) for n in names if n in vars(value))
    elif not isinstance(value, type):
        yield from ((before + name, part) for name, part in _attributes(value))


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    held = getattr(value, "__dict__", {})
    yield from ((name, part) for name, part in held.items() if name not in _TABLES)
    for table in _TABLES:
        yield from dict(held.get(table) or {}).items()


def _read_by(fn: Callable[..., Any]) -> Iterator[tuple[str, Any]]:
    """The closure and the globals of a function."""
    assert isinstance(fn, types.FunctionType)
    for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # it is not filled yet
            continue
    known = fn.__globals__
    yield from ((name, known[name]) for name in _names(fn.__code__) if name in known)
