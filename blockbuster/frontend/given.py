"""Inputs as a user describes them: a dim string, or an example array."""

from __future__ import annotations

from typing import Any

from blockbuster.errors import a_kind, shown
from blockbuster.frontend.dims import DimTable
from blockbuster.frontend.program import Axis, Shape
from blockbuster.frontend.source import Refused
from blockbuster.ir.dtypes import OWN
from blockbuster.ir.reading import LARGEST

FORM = (
    'write dims as "B M D=64", with sizes from 1 to 2**63 - 1; where an axis has no elements, pass'
    " an example: np.zeros((3, 0))"
)
"""How axes are named, for errors."""


def from_text(dims: DimTable, text: str) -> tuple[Shape, str]:
    """The axes that a dim string names, and the dtype in front of them: "bool: M N".

    The dtype is bool or that of integers; without one the array holds floats, whose dtype is chosen
    when the program is compiled. Raises Refused for another dtype, and for a word that is neither
    a name, ``name=size``, nor a positive integer.
    """
    before, colon, words = text.rpartition(":")
    dtype = before.strip()
    if colon and dtype not in OWN:
        hint = f"dtypes are {', '.join(OWN)}; that of floats is said when compiling"
        raise Refused(f"{dtype!r} in {text!r} is no dtype", hint)
    axes: list[Axis] = []
    for word in words.split():
        name, equals, digits = word.partition("=")
        if (extent := _extent(word)) is not None:
            axes.append(1 if extent == 1 else dims.unnamed(extent, fixed=True))
        elif name.isidentifier() and not equals:
            axes.append(dims.named(name))
        elif name.isidentifier() and (extent := _extent(digits)) is not None:
            axes.append(dims.named(name, extent))
        else:
            what = shown(f"{word!r} in {text!r} is no dim", 160)
            spaced = " ".join(text.replace(",", " ").split())
            between = f'spaces stand between dims: "{shown(spaced, 80)}"'
            raise Refused(what, between if "," in word and spaced else FORM)
    return tuple(axes), dtype


def _extent(digits: str) -> int | None:
    """The extent of an axis that the digits say, if they say one."""
    short = digits.isdecimal() and len(digits) <= len(str(LARGEST))
    return int(digits) if short and 0 < int(digits) <= LARGEST else None


def from_example(dims: DimTable, given: Any) -> tuple[Shape, str]:
    """Fresh dims for the axes of an example array or tensor, and its dtype."""
    if not hasattr(given, "shape") or not hasattr(given, "dtype"):
        raise Refused(
            f"{a_kind(given)} is neither a dim string nor an array",
            "bind other arguments beforehand: functools.partial(fn, option=value)",
        )
    dtype = str(getattr(given.dtype, "name", given.dtype)).removeprefix("torch.")
    return tuple(dims.of_example(int(extent)) for extent in given.shape), dtype
