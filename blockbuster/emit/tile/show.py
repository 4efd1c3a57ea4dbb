"""Prints a tile program: loops, blocks, dtypes, masks and loads under way, on one screen.

``forms.py`` defines how each part is written; ``parse.py`` reads the text back.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from blockbuster.emit.tile.forms import (
    DECLARED_ARRAY,
    DECLARED_TILE,
    ELEMENTWISE,
    NEST,
    PROGRAM,
    SHORT,
    SPACES,
    UP_TO,
    Maybe,
    Slot,
    Words,
    form_of,
    reserved,
    usual,
    written_name,
)
from blockbuster.emit.tile.program import Block, Buffer, Nest, Span, Stmt, Tile, TileProgram, View
from blockbuster.errors import quoted
from blockbuster.ir.expr import Expr, arguments, show_expr, show_number
from blockbuster.ir.ops import Elementwise, Op, Pointwise
from blockbuster.ir.show import RESERVED, SPELLING, factor_names
from blockbuster.ir.types import Dim

WIDTH = 100
"""Longer lines are continued on the next, where they have no text in quotes."""


def show_tiles(program: TileProgram) -> str:
    """The text of ``program``, ending in one newline.

    Ill-formed programs have a text, too.

    >>> from blockbuster.emit.tile.lower import lower_to_tiles
    >>> from blockbuster.ir.parse import parse
    >>> graph = parse("graph(X: M[M]) { Y = map M (x in X) { y = exp(x)  yield y } return Y }")
    >>> print(show_tiles(lower_to_tiles(graph)))
    tiles {
      inputs X: [M]
      outputs out: [M]
      nest 1 {
        forall M {
          x_1: [M] = load X[M]
          y_2: [M] = exp(x_1)
          store out[M] = y_2
        }
      }
    }
    <BLANKLINE>
    """
    lines = _Printer().program(program).split("\n")
    return "\n".join([part for line in lines for part in _fitted(line)]) + "\n"


def _fitted(line: str) -> list[str]:
    if len(line) <= WIDTH or '"' in line:
        return [line]
    deeper = " " * (len(line) - len(line.lstrip()) + 4)
    return textwrap.wrap(
        line, WIDTH, subsequent_indent=deeper, break_long_words=False, break_on_hyphens=False
    )


class _Printer:
    """One printing of one program: the names that its lines so far have given to things."""

    def __init__(self) -> None:
        self.arrays: dict[str, Buffer] = {}
        self.tiles: dict[str, Tile] = {}
        self.words: dict[Tile, str] = {}
        self.cuts: dict[Dim, Block] = {}
        self.axes: tuple[Dim, ...] = ()  # of the tile that was made last
        self.declared: list[str] = []

    def program(self, program: TileProgram) -> str:
        """The whole text but for its last newline."""
        return _braces(PROGRAM, self.written(program))

    def written(self, value: Any, **other: Any) -> str:
        """``value`` as its form says; ``other`` values of fields stand for the usual ones."""
        texts = []
        for part in form_of(type(value)):
            if isinstance(part, Maybe):
                (name,) = part.slot.fields
                plain = other.get(name, usual(type(value), name))
                if getattr(value, name) == (False if part.slot.kind == "flag" else plain):
                    continue
                texts += [self._part(inner, value) for inner in part.parts]
            else:
                texts.append(self._part(part, value))
        return "".join(texts)

    def _part(self, part: Words | Slot, value: Any) -> str:
        if isinstance(part, Words):
            return part.text
        if part.kind == "either":
            return part.words[0 if getattr(value, part.fields[0]) else 1]
        return KINDS[part.kind](self, *(getattr(value, name) for name in part.fields))

    # programs and nests ----------------------------------------------------------

    def buffers(self, buffers: tuple[Buffer, ...], space: str) -> str:
        """Arrays that live in ``space`` unless they say another."""
        self.arrays |= {buffer.name: buffer for buffer in buffers}
        return ", ".join(self.written(buffer, space=space) for buffer in buffers)

    def nests(self, nests: tuple[Nest, ...]) -> str:
        """Nests by number; names of tiles hold inside one."""
        texts = []
        for number, nest in enumerate(nests, start=1):
            self.tiles, self.words = {}, {}
            self.cuts = {block.dim: block for block in nest.blocks}
            texts.append("\n" + _braces(f"{NEST} {number}", self.written(nest)))
        return "".join(texts)

    def statements(self, body: tuple[Stmt, ...]) -> str:
        """Statements, each on lines of its own, behind what it takes that no line has defined."""
        lines = []
        for stmt in body:
            text = self.written(stmt)
            lines += [*self.declared, text]
            self.declared = []
        return "".join(f"\n{line}" for line in lines)

    # what statements hold --------------------------------------------------------

    def block(self, dim: Dim) -> str:
        """A dim with the lanes of its blocks: ``N 64?`` where the last may be short."""
        cut = self.cuts.get(dim)
        return dim if cut is None else f"{dim} {cut.lanes}{'?' if cut.ragged else ''}"

    def made(self, tile: Tile) -> str:
        """A tile where it is made: its name and, where that is new, its dtype and axes."""
        self.axes = tile.axes
        word = self.words.setdefault(tile, _word(tile.name, tile.hint))
        if self.tiles.get(word) == tile:
            return word.split(" ")[0]
        self.tiles[word] = tile
        return self.written(tile)

    def tile(self, tile: Tile) -> str:
        """A tile that was defined before, by name."""
        word = self.words.get(tile)
        if word is None or self.tiles[word] != tile:
            around = self.axes
            self.declared.append(f"{DECLARED_TILE} {self.made(tile)}")
            self.axes = around
        return self.words[tile].split(" ")[0]  # without the user's word behind a name in quotes

    def view(self, view: View) -> str:
        """An array and the place in it; its name for the access, if that is another."""
        if self.arrays.get(view.buffer.name) != view.buffer:
            self.arrays[view.buffer.name] = view.buffer
            self.declared.append(f"{DECLARED_ARRAY} {self.written(view.buffer)}")
        return self.written(view, hint=view.buffer.name if view.hint else "")

    def span(self, span: Span) -> str:
        """``t3 to t4``; ``0 to t4`` from the first block on, ``t3`` up to the last."""
        first, last = (None if tile is None else self.tile(tile) for tile in span)
        return f"{first or 0}{f' {UP_TO} {last}' if last else ''}"

    def operator(self, op: Op, args: tuple[Tile, ...]) -> str:
        """An operator and its operands; ``x1 - x2 of (t5, t5)`` where their order does not show.

        An expression over the axes of the tile that is made does not say them.
        """
        words = [self.tile(arg) for arg in args]
        if not isinstance(op, Elementwise | Pointwise):
            return SPELLING[type(op)](op, words)
        in_order = arguments(op.expr) == tuple(range(len(args))) and len(set(args)) == len(args)
        names = words if in_order else [f"x{number}" for number in range(1, len(args) + 1)]
        text = show_expr(op.expr, names)
        if isinstance(op, Elementwise):
            text = f"{text} {ELEMENTWISE}"
        elif op.axes != self.axes:
            text = f"{text} over [{', '.join(op.axes)}]"
        return text if in_order else f"{text} of ({', '.join(words)})"

    def each(self, values: Iterable[Any]) -> str:
        """Values of one class, with commas."""
        return ", ".join(map(self.written, values))


def _braces(head: str, inner: str) -> str:
    """``head { ... }`` around lines, each with a newline before it."""
    return f"{head} {{{inner.replace(chr(10), chr(10) + '  ')}\n}}"


def _word(name: str, hint: str = "") -> str:
    """A tile's name and the user's word for it: ``k_6``; in quotes where that would mislead."""
    found = written_name(name)
    if found and not found["hint"] and (not hint or hint.isidentifier()):
        return f"{hint}_{found['number']}" if hint else name
    plain = name.isidentifier() and not found and name not in (*RESERVED, *reserved())
    if plain and not hint:
        return name
    return f"{_literal(name)} {_literal(hint)}" if hint else _literal(name)


def _literal(text: str) -> str:
    """Text in quotes without a space in it."""
    return quoted(text).replace(" ", r"\x20")


def _plain(word: str) -> str:
    """A name as it is, or in quotes."""
    return word if word.isidentifier() else quoted(word)


def _repair(leads: tuple[int, ...], factor: Expr) -> str:
    """How a member of a group is repaired, behind the numbers of its leads unless that is 0."""
    text = show_expr(factor, factor_names(len(leads)))
    return text if leads == (0,) else f"[{', '.join(map(str, leads))}] {text}"


def _axes(axes: Iterable[Any]) -> str:
    return ", ".join("1" if axis is None else str(axis) for axis in axes)


# kind of a slot -> the text of its fields
KINDS: Mapping[str, Callable[..., str]] = {
    "word": lambda _, word: _plain(word),
    "words": lambda _, words: ", ".join(map(_plain, words)),
    "number": lambda _, number: str(number),
    "scalar": lambda _, number: show_number(number),
    "length": lambda _, length: str(length),
    "dtype": lambda _, dtype: str(SHORT.get(dtype, dtype)),
    "dim": lambda _, dim: str(dim),
    "axis": lambda _, dim: _axes([dim]),
    "monoid": lambda _, monoid: monoid,
    "repair": lambda _, leads, factor: _repair(leads, factor),
    "flag": lambda _, flag: "",
    "dims": lambda _, dims: ", ".join(dims),
    "axes": lambda _, axes: _axes(axes),
    "tile name": lambda _, name, hint: _word(name, hint),
    "block": _Printer.block,
    "blocks": lambda printer, dims: ", ".join(map(printer.block, dims)),
    "array": lambda _, buffer: _plain(buffer.name),
    "array axes": _Printer.each,
    "view": _Printer.view,
    "made": _Printer.made,
    "tile": _Printer.tile,
    "tiles": lambda printer, tiles: ", ".join(map(printer.tile, tiles)),
    "operator": _Printer.operator,
    "span": _Printer.span,
    "members": lambda printer, members: "".join(f"\n  {printer.written(m)}" for m in members),
    "statements": _Printer.statements,
    "body": lambda printer, body: _braces("", printer.statements(body)).lstrip(),
    "cuts": _Printer.each,
    "group": _Printer.written,
    "rules": _Printer.each,
    "chunks": _Printer.each,
    "nests": _Printer.nests,
    "inputs": lambda printer, buffers: printer.buffers(buffers, SPACES["inputs"]),
    "outputs": lambda printer, buffers: printer.buffers(buffers, SPACES["outputs"]),
    "workspaces": lambda printer, buffers: printer.buffers(buffers, SPACES["workspaces"]),
}
