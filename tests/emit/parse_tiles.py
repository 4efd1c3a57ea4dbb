"""Parses the text form of tile programs: ``parse_tiles(show_tiles(program)) == program``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
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
    Part,
    Slot,
    Words,
    form_of,
    usual,
    written_name,
)
from blockbuster.emit.tile.group import Group
from blockbuster.emit.tile.program import (
    Block,
    Buffer,
    BufferAxis,
    Chunks,
    Fold,
    Let,
    Member,
    Nest,
    Span,
    Stmt,
    Tile,
    TileProgram,
    View,
)
from blockbuster.ir.expr import Arg, Expr, substitute
from blockbuster.ir.lengths import Rule
from blockbuster.ir.ops import MONOIDS, Elementwise, Functional, Op, Pointwise
from blockbuster.ir.phrases import OF_ONE
from blockbuster.ir.signatures import FUNCTIONALS
from blockbuster.ir.types import Dim
from blockbuster.ir.views import AxisView
from tests.emit.tile_forms import JoinedReader, first_words


def parse_tiles(text: str) -> TileProgram:
    """The tile program that ``text`` describes; ``verify_tiles`` says whether it is well-formed.

    Raises ParseError: the line, a caret below the word, and what was expected there.
    """
    reader = _Reader(text)
    program = reader.program()
    reader.expect_end()
    return program


class _Reader(JoinedReader):
    """A text, and what its lines so far have given names to."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._arrays: dict[str, Buffer] = {}
        self._tiles: dict[str, Tile] = {}
        self._cuts: dict[Dim, Block] = {}
        self._axes: tuple[Dim, ...] = ()  # of the tile that was made last

    def program(self) -> TileProgram:
        """The whole text."""
        self._take(PROGRAM)
        self._take("{")
        program: TileProgram = self.read(TileProgram)
        self._take("}")
        return program

    def read(self, kind: type, **other: Any) -> Any:
        """A value of class ``kind``; ``other`` values of fields stand for the usual ones."""
        return kind(**self._fields(kind, form_of(kind), other))

    def _fields(
        self, kind: type, parts: Iterable[Part], other: Mapping[str, Any]
    ) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for part in parts:
            if isinstance(part, Maybe):
                (name,) = part.slot.fields
                first = part.parts[0]
                assert isinstance(first, Words)
                if self._next != first.tokens[0]:
                    plain = other.get(name, usual(kind, name))
                    found[name] = False if part.slot.kind == "flag" else plain
                    continue
                for inner in part.parts:
                    found |= self._part(inner)
            else:
                found |= self._part(part)
        return found

    def _part(self, part: Words | Slot) -> dict[str, Any]:
        if isinstance(part, Words):
            for token in part.tokens:
                self._take(token)
            return {}
        if part.kind == "either":
            return {part.fields[0]: self._either(part.words)}
        value = KINDS[part.kind](self)
        values = value if len(part.fields) > 1 else (value,)
        return dict(zip(part.fields, values, strict=True))

    def _either(self, words: tuple[str, ...]) -> bool:
        if self._next not in words:
            self._refuse_token(f"expected {' or '.join(words)}, found {self._next!r}")
        return self._take() == words[0]

    # programs and nests ----------------------------------------------------------

    def buffers(self, space: str) -> tuple[Buffer, ...]:
        """Arrays that live in ``space`` unless they say another."""
        return self.listed(lambda: self._buffer(space))

    def _buffer(self, space: str) -> Buffer:
        buffer: Buffer = self.read(Buffer, space=space)
        self._arrays[buffer.name] = buffer
        return buffer

    def nests(self) -> tuple[Nest, ...]:
        """Nests, numbered from 1."""
        found: list[Nest] = []
        while self._next == NEST:
            self._take()
            if self._next != str(len(found) + 1):
                self._refuse_token(f"expected {len(found) + 1}: nests are numbered in order")
            self._take()
            self._take("{")
            self._tiles, self._cuts = {}, {}
            found.append(self.read(Nest))
            self._take("}")
        return tuple(found)

    def cuts(self) -> tuple[Block, ...]:
        """How the nest cuts its dims: the lines below have to say the same."""
        found = self.listed(lambda: self.read(Block))
        self._cuts = {block.dim: block for block in found}
        return found

    def body(self) -> tuple[Stmt, ...]:
        """The statements of a loop."""
        self._take("{")
        found = self.statements()
        self._take("}")
        return found

    def statements(self) -> tuple[Stmt, ...]:
        """Statements up to a closing brace."""
        found: list[Stmt] = []
        while self._next != "}":
            if self._next == DECLARED_TILE:
                self._take()
                self.made()
            elif self._next == DECLARED_ARRAY:
                self._take()
                self._buffer("")
            else:
                found.append(self._statement())
        return tuple(found)

    def _statement(self) -> Stmt:
        if self._next in _BEGINNING:
            stmt: Stmt = self.read(_BEGINNING[self._next])
            return stmt
        behind = self._tokens[self._at + 1]
        named = self._is("name") or self._is("string")
        if not named or (behind.kind != "string" and behind.text not in (":", "=", *MONOIDS)):
            begin = ", ".join(_BEGINNING)
            hint = f"a statement begins with the name of a tile, or with {begin}"
            self._refuse_token(f"expected a statement, found {self._next!r}", hint=hint)
        if behind.text in MONOIDS:
            stmt = self.read(Fold)
            return stmt
        target = self.made()
        if self._next != "=":
            self._refuse_token(f"expected =, found {self._next!r}")
        kind = _MAKING.get(self._tokens[self._at + 1].text, Let)
        stmt = kind(target=target, **self._fields(kind, form_of(kind)[1:], {}))
        return stmt

    # what statements hold --------------------------------------------------------

    def listed(self, item: Callable[[], Any]) -> tuple[Any, ...]:
        """Items with commas between them; none before a closing bracket."""
        if self._next == "]":
            return ()
        items = [item()]
        while self._has(","):
            items.append(item())
        return tuple(items)

    def word(self) -> str:
        """A name, or text in quotes."""
        return self._string() if self._is("string") else self._take(kind="name")

    def dim(self) -> Dim:
        """A dim by name."""
        return self._take(kind="name")

    def number(self) -> int:
        """A whole number."""
        return self._whole_number()

    def scalar(self) -> float:
        """A number, infinite perhaps."""
        sign = -1.0 if self._has("-") else 1.0
        text = self._next
        if not self._is("number") and text not in ("inf", "nan"):
            self._refuse_token(f"expected a number, found {text!r}")
        return sign * float(self._take())

    def monoid(self) -> str:
        """How a fold puts two values together."""
        if self._next not in MONOIDS:
            self._refuse_token(f"expected {', '.join(MONOIDS)}, found {self._next!r}")
        return self._take()

    def dtype(self) -> str:
        """A dtype, or none before a bracket."""
        if not self._is("name"):
            return ""
        word = self._take()
        return _DTYPES.get(word, word)

    def block(self) -> Dim:
        """A dim; the lanes of its blocks, if they are said, are those of the nest."""
        at, dim = self._at, self.dim()
        if self._is("number"):
            lanes = self.number()
            ragged = self._has("?")
            cut = self._cuts.get(dim)
            if cut is None or (cut.lanes, cut.ragged) != (lanes, ragged):
                said = "" if cut is None else f": {dim} {cut.lanes}{'?' if cut.ragged else ''}"
                reason = f"blocks of {dim} are not what the nest says{said}"
                self._refuse_token(reason, at, hint="the line `blocks` says how dims are cut")
        return dim

    def tile_name(self) -> tuple[str, str]:
        """The name of a tile that is defined, and the user's word for it."""
        if self._is("string"):
            name = self._string()
            return name, self._string() if self._is("string") else ""
        word = self._take(kind="name")
        found = written_name(word)
        return (word, "") if found is None else (f"t{found['number']}", found["hint"] or "")

    def made(self) -> Tile:
        """A tile where it is made: by name, or with a type where no line has said that."""
        word = self._next
        if self._tokens[self._at + 1].text == "=":
            if word not in self._tiles:
                hint = f"say what it is where it is made: {word}: f32[M] = ..."
                self._refuse_token(f"{word} is not defined before, in this nest", hint=hint)
            made = self.tile()
        else:
            made = self._tiles[word] = self.read(Tile)
        self._axes = made.axes
        return made

    def tile(self) -> Tile:
        """A tile that was defined before."""
        if not (self._is("name") or self._is("string")):
            self._refuse_token(f"expected a tile, found {self._next!r}")
        return self._defined(self._take(), self._at - 1)

    def _defined(self, word: str, at: int) -> Tile:
        if word not in self._tiles:
            known = ", ".join(self._tiles)
            hint = f"defined are {known}" if known else None
            self._refuse_token(f"{word} is not defined before, in this nest", at, hint)
        return self._tiles[word]

    def array(self) -> Buffer:
        """An array of the program."""
        at, name = self._at, self.word()
        if name not in self._arrays:
            known = ", ".join(self._arrays)
            self._refuse_token(f"{name} is no array of the program", at, f"its arrays are {known}")
        return self._arrays[name]

    def axis(self) -> AxisView:
        """An axis of an array: 1 where it has no dim."""
        return None if self._has("1") else self.dim()

    def operator(self) -> tuple[Op, tuple[Tile, ...]]:
        """An operator and its operands."""
        word = self._next
        if word in OF_ONE or word in FUNCTIONALS:
            self._take()
            op = OF_ONE[word](self) if word in OF_ONE else Functional(word)
            return op, self._operands()
        return self._expression()

    def _operands(self) -> tuple[Tile, ...]:
        self._take("(")
        return tuple(self._several(")", self.tile))

    def _expression(self) -> tuple[Op, tuple[Tile, ...]]:
        begin, axes = self._at, self._axes
        op, words = self._scalar(str)
        assert isinstance(op, Elementwise | Pointwise)
        if isinstance(op, Elementwise) and not self._has(ELEMENTWISE):
            op = Pointwise(op.expr, axes)
        if not self._has("of"):
            return op, tuple(self._defined(word, self._position(word, begin)) for word in words)
        args = self._operands()
        formal = {f"x{number}": Arg(number - 1) for number in range(1, len(args) + 1)}
        if strange := [word for word in words if word not in formal]:
            reason = f"{strange[0]} is no operand: {len(args)} stand behind `of`, named x1, x2"
            self._refuse_token(reason, self._position(strange[0], begin))
        return replace(op, expr=substitute(op.expr, [formal[word] for word in words])), args

    def _position(self, word: str, begin: int) -> int:
        """The position of the first token at or behind ``begin`` that is ``word``."""
        places = range(begin, len(self._tokens))
        return next(at for at in places if self._tokens[at].text == word)

    def _prefix(self, leaf: Callable[[str], Expr]) -> Expr:
        return leaf(self._take()) if self._is("string") else super()._prefix(leaf)

    def span(self) -> Span:
        """The bounds of a loop: 0 for the first block, nothing for the last."""
        begin = None if self._has("0") else self.tile()
        return begin, self.tile() if self._has(UP_TO) else None

    def members(self) -> tuple[Member, ...]:
        """The significands behind a fold."""
        found: list[Member] = []
        while self._next == _WITH:
            found.append(self.read(Member))
        return tuple(found)

    def repair(self) -> tuple[tuple[int, ...], Expr]:
        """The leads of a member of a group, and how it is repaired for them."""
        leads: tuple[int, ...] = (0,)
        if self._has("["):
            leads = self.listed(self.number)
            self._take("]")
        return leads, self._factor(len(leads))


_BEGINNING, _MAKING = first_words()
_WITH = next(part.tokens[0] for part in form_of(Member) if isinstance(part, Words))
_DTYPES = {short: dtype for dtype, short in SHORT.items()}

# kind of a slot -> how its fields are read
KINDS: Mapping[str, Callable[[_Reader], Any]] = {
    "word": _Reader.word,
    "words": lambda reader: reader.listed(reader.word),
    "number": _Reader.number,
    "scalar": _Reader.scalar,
    "length": _Reader._length,
    "dtype": _Reader.dtype,
    "dim": _Reader.dim,
    "axis": _Reader.axis,
    "monoid": _Reader.monoid,
    "repair": _Reader.repair,
    "flag": lambda reader: True,
    "dims": lambda reader: reader.listed(reader.dim),
    "axes": lambda reader: reader.listed(reader._axis),
    "tile name": _Reader.tile_name,
    "block": _Reader.block,
    "blocks": lambda reader: reader.listed(reader.block),
    "array": _Reader.array,
    "array axes": lambda reader: reader.listed(lambda: reader.read(BufferAxis)),
    "view": lambda reader: reader.read(View),
    "made": _Reader.made,
    "tile": _Reader.tile,
    "tiles": lambda reader: reader.listed(reader.tile),
    "operator": _Reader.operator,
    "span": _Reader.span,
    "members": _Reader.members,
    "statements": _Reader.statements,
    "body": _Reader.body,
    "cuts": _Reader.cuts,
    "group": lambda reader: reader.read(Group),
    "rules": lambda reader: reader.listed(lambda: reader.read(Rule)),
    "chunks": lambda reader: reader.listed(lambda: reader.read(Chunks)),
    "nests": _Reader.nests,
    "inputs": lambda reader: reader.buffers(SPACES["inputs"]),
    "outputs": lambda reader: reader.buffers(SPACES["outputs"]),
    "workspaces": lambda reader: reader.buffers(SPACES["workspaces"]),
}
