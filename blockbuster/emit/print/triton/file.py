"""The state that the kernels of one emitted file share: names, dtypes in memory, lines of text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from blockbuster.emit.tile.dtypes import Dtype
from blockbuster.emit.tile.names import Names, comment, dim_word
from blockbuster.emit.tile.program import Buffer
from blockbuster.errors import quoted
from blockbuster.ir.lengths import Length
from blockbuster.ir.origin import Origin
from blockbuster.ir.types import Dim, size_class

WIDTH = 100
OVERLAPS = "OVERLAPS"
"""The parameter of kernels that says whether the device has dependent launches."""
EVEN_PARTS = "EVEN_PARTS"
"""The compile-time number that divides all quotients of sizes at which pieces of axes begin."""


@dataclass(frozen=True)
class File:
    """Names and dtypes of one file. ``helpers`` collects the functions its kernels call.

    ``dtype``: what dots take. ``accurate``: results are float32, and so is the accuracy of scalar
    functions. ``sizes``: what the file is written for, by size class.
    """

    dtype: Dtype
    names: Names
    accurate: bool = False
    sizes: Mapping[Dim, int] = field(default_factory=dict)
    helpers: dict[str, None] = field(default_factory=dict)

    def size(self, dim: Dim) -> str:
        """The variable that holds the size of ``dim``."""
        return self.names.of(("size", size_class(dim)), dim_word(size_class(dim)))

    def block(self, dim: Dim) -> str:
        """The compile-time number of lanes along ``dim``."""
        return self.names.of(("block", dim), f"BLOCK_{dim_word(dim).upper()}")

    def even(self, dim: Dim) -> str:
        """The compile-time number that divides the size and the strides of rows along ``dim``."""
        return self.names.of(("even", size_class(dim)), f"EVEN_{dim_word(size_class(dim)).upper()}")

    def part(self, length: Length) -> str:
        """The kernel's variable for a quotient of sizes."""
        word = re.sub(r"\W+", "_", length.python(self.size)).strip("_")
        return self.names.of(("part", length), f"part_{word}".lower())

    def buffer(self, buffer: Buffer) -> str:
        """The variable that holds an array."""
        return self.names.of(("buffer", buffer.name), buffer.name)

    def pointer(self, buffer: Buffer) -> str:
        """The kernel's parameter for an array."""
        return self.names.of(("pointer", buffer.name), f"{self.buffer(buffer)}_ptr")

    def descriptor(self, buffer: Buffer, tile: tuple[int, ...]) -> str:
        """The kernel's parameter for the descriptor of an array, for tiles of this shape."""
        return self.names.of(("descriptor", buffer.name, tile), f"{self.buffer(buffer)}_desc")

    def stride(self, buffer: Buffer, axis: int) -> str:
        """The kernel's parameter for the stride of an axis."""
        word = dim_word(buffer.axes[axis].dim or "").lower()
        return self.names.of(("stride", buffer.name, axis), f"stride_{self.buffer(buffer)}_{word}")


@dataclass
class Parameters:
    """The parameters that a kernel needs, collected while it is printed, in order of first need.

    ``told``: sizes that are constants. ``overlaps``: to know whether the device has dependent
    launches. ``rows``: by size class, arrays whose rows along it are told to be even (even.py).
    ``parts``: quotients of sizes, told as well.
    """

    buffers: dict[Buffer, None] = field(default_factory=dict)
    strides: dict[tuple[Buffer, int], str] = field(default_factory=dict)
    sizes: dict[Dim, str] = field(default_factory=dict)
    told: dict[Dim, str] = field(default_factory=dict)
    blocks: dict[Dim, str] = field(default_factory=dict)
    overlaps: bool = False
    rows: dict[Dim, dict[Buffer, None]] = field(default_factory=dict)
    parts: dict[Length, str] = field(default_factory=dict)
    descriptors: dict[tuple[Buffer, tuple[int, ...]], str] = field(default_factory=dict)


class Lines:
    """The lines of a function's body, indented by ``depth``."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.depth = 1

    def line(self, text: str, origin: Origin | None = None, note: str = "") -> None:
        """One line, and where it came from."""
        words = "; ".join(w for w in (note, came_from(origin)) if w)
        self.text.append(f"{'    ' * self.depth}{text}{comment(words)}")

    def call(self, start: str, args: list[str], end: str, origin: Origin) -> None:
        """A call on one line where it fits, else with one argument per line."""
        text = f"{start}{', '.join(args)}{end}"
        if 4 * self.depth + len(text) <= WIDTH:
            self.line(text, origin)
            return
        self.line(start, origin)
        for arg in args:
            self.line(f"    {arg},")
        self.line(end)


def came_from(origin: Origin | None) -> str:
    """The rule that made a statement and the user's lines behind it."""
    if origin is None:
        return ""
    lines = [str(line) for line in origin.lines()]
    if len(lines) > 2:
        lines = [lines[0], "..."]
    return ", ".join((*([origin.rule] if origin.rule else []), *lines))


def wrapped(items: list[str], indent: int) -> list[str]:
    """Items separated by commas, as many to a line as fit."""
    lines: list[str] = []
    for item in items:
        if lines and len(lines[-1]) + len(item) + 2 <= WIDTH:
            lines[-1] += f" {item},"
        else:
            lines.append(f"{' ' * indent}{item},")
    return lines


def literal(value: object) -> str:
    """A Python literal with double quotes."""
    if isinstance(value, dict):
        items = (f"{literal(key)}: {literal(entry)}" for key, entry in value.items())
        return f"{{{', '.join(items)}}}"
    if isinstance(value, tuple):
        items = (literal(entry) for entry in value)
        return f"({', '.join(items)}{',' if len(value) == 1 else ''})"
    return quoted(value) if isinstance(value, str) else repr(value)
