"""The kinds of inputs, inferred from their uses: truth values, labels, lengths, divisors.

A file checks itself on random inputs. Normally distributed labels equal no position, so their loss
would be 0 whatever its kernel computes. This module infers what to draw instead.

    labels[:, None] == bb.arange(C)       an index below C
    bb.arange(N) < lengths[:, None]       a count from 1 to N
    bb.take_along_axis(x, i, 1)           an index from -C on, below C
    segments[:, None] == others           one of a few numbers
    bb.where(mask, s, -inf), mask == 0    0 or 1
    x // n, x % n                         a number other than 0
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from blockbuster.emit.tile.dataflow import defined, operands
from blockbuster.emit.tile.program import (
    INPUT,
    OUTPUT,
    Buffer,
    Guard,
    Iota,
    Let,
    Load,
    Stmt,
    Store,
    Tile,
    TileProgram,
    statements,
)
from blockbuster.ir.expr import Arg, Call, Expr, arguments
from blockbuster.ir.ops import Cast, Pointwise, Relabel, Transpose
from blockbuster.ir.regroup import Regroup
from blockbuster.ir.types import Dim, size_class

Kind: TypeAlias = tuple[str, Dim | int]
"""``("index", "C")``, ``("index", 4)``, ``("wrapped", "C")``, ``("count", "N")``, ``("truth", 2)``
or ``("divisor", 0)``: the second says below which number, or up to which one, the values are."""

ANY: Kind = ("any", 0)
"""Of what is compared with a number: any values tell whether that is done right."""
TRUE: Kind = ("truth", 2)
FEW: Kind = ("index", 4)
DIVISOR: Kind = ("divisor", 0)
KEPT = (Relabel, Transpose, Regroup, Cast)
EQUAL, ORDER = ("eq", "ne"), ("lt", "le", "gt", "ge")
LOGIC = ("and", "or", "not")
ARITHMETIC = ("add", "sub", "mul", "neg", "whole")
DIVISORS = {"floordiv": 1, "mod": 1, "div": 1, "reciprocal": 0}
"""Which operand of an operator must not be 0."""
ZERO_AS_BEFORE = ("whole", "neg", "abs")
"""What these give is 0 exactly where their operand is."""


def input_kinds(program: TileProgram) -> dict[str, Kind]:
    """The kinds of the inputs by name; those that are plain numbers are left out."""
    uses = _Uses()
    for nest in program.nests:
        for stmt in statements(nest.body):
            uses.note(stmt)
    found = {buffer.name: uses.kinds(buffer.name) for buffer in program.inputs}
    return {name: kind for name, kinds in found.items() if (kind := _in_common(kinds)) is not None}


def _in_common(kinds: Sequence[Kind | None]) -> Kind | None:
    """One kind for all uses of an input.

    A use as a divisor decides, then a use as a number, then one beside positions.
    """
    if DIVISOR in kinds:
        return DIVISOR
    known = [kind for kind in kinds if kind is not None and kind != ANY]
    if not known or None in kinds:
        return None
    beside_positions = [kind for kind in known if isinstance(kind[1], str)]
    return (beside_positions or sorted(known, reverse=True, key=lambda kind: kind[1]))[0]


@dataclass
class _Uses:
    """What is known of tiles and arrays while the statements of a program are read in order.

    ``sources``: the input that they hold; ``positions``: the dim along which they count.
    ``shifted``: the input to which they add a number; ``wrapped``: the inputs whose negative values
    are counted from the end.
    """

    found: dict[str, list[Kind | None]] = field(default_factory=dict)
    sources: dict[Tile | Buffer, str] = field(default_factory=dict)
    positions: dict[Tile | Buffer, Dim] = field(default_factory=dict)
    shifted: dict[Tile | Buffer, str] = field(default_factory=dict)
    wrapped: dict[str, None] = field(default_factory=dict)

    def kinds(self, name: str) -> list[Kind | None]:
        """The kinds for which the uses of an input ask."""
        found = self.found.get(name, [])
        if name not in self.wrapped:
            return found
        return [("wrapped", kind[1]) if kind and kind[0] == "index" else kind for kind in found]

    def note(self, stmt: Stmt) -> None:
        """Look at the next statement."""
        if isinstance(stmt, Load):
            buffer = stmt.view.buffer
            if buffer.space == INPUT:
                self.sources[stmt.target] = buffer.name
            else:
                self._same(buffer, stmt.target)
        elif isinstance(stmt, Iota):
            self.positions[stmt.target] = stmt.dim
        elif isinstance(stmt, Store) and stmt.view.buffer.space != OUTPUT:
            self._same(stmt.value, stmt.view.buffer)
        elif isinstance(stmt, Guard):
            self._same(stmt.value, stmt.target)
        elif isinstance(stmt, Let) and isinstance(stmt.op, KEPT):
            self._same(stmt.args[0], stmt.target)
        elif isinstance(stmt, Let) and isinstance(stmt.op, Pointwise):
            self._pointwise(stmt, stmt.op.expr)
        else:
            for tile in operands(stmt):
                self._used(tile, None)

    def _same(self, old: Tile | Buffer, new: Tile | Buffer) -> None:
        for known in (self.sources, self.shifted):
            if old in known:
                known[new] = known[old]
        if old in self.positions:
            self.positions[new] = self.positions[old]

    def _used(self, tile: Tile, kind: Kind | None) -> None:
        if tile in self.sources:
            self.found.setdefault(self.sources[tile], []).append(kind)
        elif tile in self.shifted:
            self.found.setdefault(self.shifted[tile], []).append(None)

    def _passed_on(self, target: Tile, expr: Expr, args: Sequence[Tile]) -> bool:
        """True for the steps that wrap a negative index: i + n, where(i < 0, i + n, i)."""
        match expr:
            case Call("add", (Arg(at), other)) if args[at] in self.sources and not arguments(other):
                self.shifted[target] = self.sources[args[at]]
                return True
            case Call("where", (Arg(), Arg(first), Arg(last))):
                name = self.sources.get(args[last])
                if name is None or self.shifted.get(args[first]) != name:
                    return False
                self.sources[target] = name
                self.wrapped[name] = None
                return True
            case Call(fn, (Arg(at),)) if fn in ZERO_AS_BEFORE and args[at] in self.sources:
                self.sources[target] = self.sources[args[at]]
                return True
        return False

    def _pointwise(self, stmt: Let, expr: Expr) -> None:
        if self._passed_on(stmt.target, expr, stmt.args):
            return
        for tile, kind in self._occurrences(expr, stmt.args):
            self._used(tile, kind)
        target, read = defined(stmt), [stmt.args[at] for at in arguments(expr)]
        known = [self.positions[tile] for tile in read if tile in self.positions]
        if target is not None and known and len(known) == len(read) and _counts(expr):
            self.positions[target] = known[0]

    def _occurrences(
        self, expr: Expr, args: Sequence[Tile], kind: Kind | None = None
    ) -> Iterator[tuple[Tile, Kind | None]]:
        """Every operand where it stands in ``expr``, with the kind that its place asks for."""
        if isinstance(expr, Arg):
            yield args[expr.index], kind
        if not isinstance(expr, Call):
            return
        for at, part in enumerate(expr.args):
            asked = None
            if expr.fn in LOGIC or (expr.fn == "where" and at == 0):
                asked = TRUE
            elif expr.fn in (*EQUAL, *ORDER):
                asked = self._compared(expr.fn, expr.args[1 - at], args)
            elif DIVISORS.get(expr.fn) == at:
                asked = DIVISOR
            elif expr.fn in ZERO_AS_BEFORE and kind == DIVISOR:
                asked = kind
            yield from self._occurrences(part, args, asked)

    def _compared(self, fn: str, other: Expr, args: Sequence[Tile]) -> Kind | None:
        """The kind of what is compared with ``other``."""
        read = [args[at] for at in arguments(other)]
        if not read:
            return TRUE if fn in EQUAL else ANY
        dims = [self.positions.get(tile) for tile in read]
        if dims[0] is not None and None not in dims:
            return ("index" if fn in EQUAL else "count", size_class(dims[0]))
        given = all(tile in self.sources for tile in read)
        return FEW if fn in EQUAL and given and isinstance(other, Arg) else None


def _counts(expr: Expr) -> bool:
    """True if positions are only shifted and scaled."""
    if not isinstance(expr, Call):
        return True
    return expr.fn in ARITHMETIC and all(map(_counts, expr.args))


def known_kinds(kinds: Mapping[str, Kind], dims: Sequence[Dim]) -> dict[str, Kind]:
    """``kinds`` without those below the size of a dim that is none of ``dims``."""
    return {n: kind for n, kind in kinds.items() if isinstance(kind[1], int) or kind[1] in dims}
