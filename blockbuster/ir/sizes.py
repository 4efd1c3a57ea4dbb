"""The sizes of dims, bound in one place: as given, as arrays show them, and as rules complete them.

The oracle, the interpreter, plans of compiled programs and tile programs all bind sizes here. Only
emitted files, which import nothing of ours, check the shapes of their arrays by themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral

from blockbuster.errors import a_kind, message
from blockbuster.ir.lengths import Rule, completed
from blockbuster.ir.reading import LARGEST
from blockbuster.ir.types import Dim, size_class

Axes = Sequence[Dim | int | None]
"""The axes of an array: the dim under which each is read; 1 or None for an axis of extent 1."""

Arrays = Sequence[tuple[str, Axes]]
"""The arrays of a program with their axes; one that is read in several views occurs in each."""


def bind_sizes(
    arrays: Arrays,
    shapes: Mapping[str, Sequence[int]],
    rules: Iterable[Rule] = (),
    given: Mapping[Dim, int] | None = None,
    *,
    given_in: str = "as in sizes",
    needed: Iterable[Dim] = (),
) -> dict[Dim, int]:
    """The size of each size class for ``arrays`` of these ``shapes`` (by name).

    ``given`` are sizes known beforehand; ``given_in`` says in messages where they come from. Raises
    ValueError if sizes disagree with each other or with ``rules``, or if the size of a dim in
    ``needed`` does not follow.

    >>> bind_sizes([("x", ("M", "K")), ("w", ("K", "N"))], {"x": (2, 3), "w": (3, 4)})
    {'M': 2, 'K': 3, 'N': 4}
    >>> bind_sizes([("x", ("M", "K")), ("w", ("K", "N"))], {"x": (2, 3), "w": (5, 4)})
    Traceback (most recent call last):
    ValueError: w has shape (5, 4), expected (K, N) with K = 3 as in x
    """
    bound: dict[Dim, int] = {}
    for dim, size in whole(given or {}).items():
        if bound.setdefault(size_class(dim), size) != size:
            known = bound[size_class(dim)]
            raise ValueError(f"{dim} is {size}, expected {size_class(dim)} = {known} {given_in}")
    for name, axes in arrays:
        shape = tuple(shapes[name])
        if len(shape) != len(axes):
            raise ValueError(f"{name} has shape {shape}, expected the axes {_shown(axes)}")
        for axis, extent in zip(axes, shape, strict=True):
            known = bound.setdefault(size_class(axis), extent) if isinstance(axis, str) else 1
            if known != extent:
                what = f"{name} has shape {shape}, expected {_shown(axes)}"
                if isinstance(axis, str):
                    first = _first(size_class(axis), arrays)
                    where = given_in if size_class(axis) in map(size_class, given or ()) else first
                    what += f" with {axis} = {known} {where}"
                raise ValueError(what)
    bound = completed(bound, rules)
    for dim in map(size_class, needed):
        if dim not in bound:
            raise ValueError(f"the size of {dim} shows in no input: pass sizes={{{dim!r}: ...}}")
    return bound


def whole(numbers: Mapping[Dim, int], what: str = "sizes") -> dict[Dim, int]:
    """``numbers`` of dims as Python's own, which NumPy's integers are not.

    Raises ValueError, which names ``what``, for a number that is not whole, less than 0, or too
    large for an index of 64 bits.

    >>> whole({"M": -1})
    Traceback (most recent call last):
    ValueError: sizes: M is -1, expected a whole number of at least 0
    """
    if not isinstance(numbers, Mapping):
        raise TypeError(message(f"{what} is {a_kind(numbers)}", hint=f"{what}={{'M': 1024}}"))
    for dim, number in numbers.items():
        if isinstance(number, bool) or not isinstance(number, Integral) or number < 0:
            expected = "expected a whole number of at least 0"
            raise ValueError(f"{what}: {dim} is {number!r}, {expected}")
        if number > LARGEST:
            raise ValueError(f"{what}: {dim} is too large, expected less than 2**63")
    return {dim: int(number) for dim, number in numbers.items()}


def _first(dim: Dim, arrays: Arrays) -> str:
    """The first array that shows the size of ``dim``."""
    shown = (
        name for name, axes in arrays for a in axes if isinstance(a, str) and size_class(a) == dim
    )
    return f"as in {next(shown)}"


def _shown(axes: Axes) -> str:
    words = [str(axis or 1) for axis in axes]
    return f"({words[0]},)" if len(words) == 1 else f"({', '.join(words)})"


def example_of_sizes(dims: Iterable[Dim], given: Mapping[Dim, int]) -> str:
    """A hint: sizes for all ``dims`` as they may be written, those that are ``given`` as they are.

    >>> example_of_sizes(("M", "K"), {"K": 64})
    'for example sizes=dict(M=128, K=64), or in a shell --sizes M=128,K=64'
    """
    texts = [f"{dim}={given.get(dim, 128)}" for dim in dims]
    return f"for example sizes=dict({', '.join(texts)}), or in a shell --sizes {','.join(texts)}"
