"""The listing: a tile program in the notation of the paper.

A loop is ``forall`` if and only if all its results are collected. An accumulation whose value is
used nowhere else is one line, ``t3 += dot(t4,t5)``. Source: Blockbuster Part 1, section 4.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from blockbuster.emit.tile.dataflow import defined, folded, reads
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.next_block import Next
from blockbuster.emit.tile.pointwise import paper_name
from blockbuster.emit.tile.program import (
    Await,
    BlockOf,
    Fold,
    For,
    Guard,
    Init,
    Iota,
    Issue,
    Let,
    Load,
    Stmt,
    Store,
    Tile,
    TileProgram,
    View,
)
from blockbuster.emit.tile.waits import Release, Wait
from blockbuster.errors import shown
from blockbuster.ir.expr import functions_of, show_expr, show_number
from blockbuster.ir.graph import Graph
from blockbuster.ir.lengths import ONE
from blockbuster.ir.ops import Cast, Functional, Pointwise, Relabel, Scan, Transpose
from blockbuster.ir.origin import Origin
from blockbuster.ir.regroup import Regroup
from blockbuster.ir.show import scan_words
from blockbuster.ir.types import Dim
from blockbuster.ir.views import AxisView, Strided

Line: TypeAlias = tuple[str, Origin]


def listing(program: Graph | TileProgram) -> str:
    """The text of ``program``, one line per statement, ending in one newline.

    >>> from blockbuster.ir.parse import parse
    >>> graph = parse("graph(X: M[M]) { Y = map M (x in X) { y = exp(x)  yield y } return Y }")
    >>> print(listing(graph))
    forall m in range(M):
     t1 = load(X[m])
     t2 = exp(t1)
     store(t2,O[m])
    <BLANKLINE>
    """
    return "\n".join([*(text for text, _ in listing_lines(program)), ""])


def listing_lines(program: Graph | TileProgram) -> Iterator[Line]:
    """The lines of the listing, each with where its statement came from."""
    tiles = lower_to_tiles(program) if isinstance(program, Graph) else program
    for line, origin in _Listing(tiles).lines():
        yield shown(line), origin


class _Listing:
    def __init__(self, program: TileProgram) -> None:
        self._program = program
        taken = {b.name for b in (*program.inputs, *program.workspaces)}
        single = [b.name for b in program.outputs] == ["out"] and "O" not in taken
        self._outputs = {"out": "O"} if single else {}
        self._names: dict[Tile, str] = {}

    def lines(self) -> Iterator[Line]:
        for nest in self._program.nests:
            for depth, dim in enumerate(nest.grid):
                yield " " * depth + _loop(dim, True), Origin()
            yield from self._body(nest.body, nest.grid, len(nest.grid))

    def _body(self, body: tuple[Stmt, ...], loops: tuple[Dim, ...], depth: int) -> Iterator[Line]:
        inlined, indent = _folded_once(body), " " * depth
        for stmt in body:
            if isinstance(stmt, For):
                span = stmt.span and tuple(self._name(tile) if tile else "" for tile in stmt.span)
                head = _loop(stmt.dim, stmt.parallel, stmt.chunk, span, stmt.down)
                if stmt.within:
                    head = f"{stmt.dim.lower()} = the pieces of {stmt.within[0].lower()}:"
                yield indent + head, stmt.origin
                yield from self._body(stmt.body, (*loops, stmt.dim), depth + 1)
            elif isinstance(stmt, Init):
                self._name(stmt.target)
            elif isinstance(stmt, Fold):
                for text, origin in self._fold(stmt, inlined):
                    yield indent + text, origin
            elif isinstance(stmt, Next):
                yield f"{indent}next {stmt.dim.lower()} = {self._name(stmt.value)}", Origin()
            elif isinstance(stmt, Wait | Release):
                yield f"{indent}{type(stmt).__name__.lower()}", Origin()
            elif isinstance(stmt, Issue):
                place = self._place(stmt.view, stmt.tile, loops)
                yield f"{indent}issue {stmt.token} = load({place}), {stmt.ahead} ahead", stmt.origin
            elif isinstance(stmt, Store):
                place = self._place(stmt.view, stmt.value, loops)
                yield f"{indent}store({self._name(stmt.value)},{place})", stmt.origin
            elif defined(stmt) not in inlined:
                text = self._value(stmt, loops)
                yield f"{indent}{self._name(stmt.target)} = {text}", stmt.origin

    def _name(self, tile: Tile) -> str:
        """t1, t2, ... in the order in which tiles appear."""
        return self._names.setdefault(tile, f"t{len(self._names) + 1}")

    def _value(self, stmt: Stmt, loops: tuple[Dim, ...]) -> str:
        match stmt:
            case Load():
                return f"load({self._place(stmt.view, stmt.target, loops)})"
            case Await(token=token):
                return f"await {token}"
            case Iota():
                block = stmt.dim.lower() if stmt.dim in loops else ":"
                return f"{stmt.at or 'index'}({block})"
            case BlockOf():
                return f"block({stmt.dim.lower()},{self._name(stmt.value)})"
            case Guard():
                return f"guard({self._name(stmt.value)},{stmt.dim},{show_number(stmt.fill)})"
            case Let():
                names = [self._name(a) for a in stmt.args]
                if isinstance(stmt.op, Pointwise) and (name := paper_name(stmt.op, stmt.args)):
                    return f"{name}({','.join(names)})"
                return SPELLING[type(stmt.op)](stmt.op, names)
        raise AssertionError(stmt)

    def _fold(self, fold: Fold, inlined: dict[Tile, Let]) -> Iterator[Line]:
        def origin(tile: Tile) -> Origin:
            return inlined[tile].origin if tile in inlined else fold.origin

        lead = self._name(fold.target)
        value = self._operand(fold.value, inlined)
        update = f"{lead} = {value}" if fold.ahead else self._update(lead, fold.monoid, value, "+=")
        if fold.onto is not None:
            onto = self._operand(fold.onto, inlined)
            plain = f"{onto} + {value}" if fold.monoid == "+" else f"{fold.monoid}({onto},{value})"
            update = f"{lead} = {plain}"
        yield update, origin(fold.value)
        targets = folded(fold)
        for member in fold.members:
            value = self._operand(member.value, inlined)
            target = self._name(member.target)
            line = self._update(target, member.monoid, value, "(+)=")
            old = f"{target} is rescaled to the new {lead} before"
            if not member.leads:
                yield self._update(target, member.monoid, value, "+="), origin(member.value)
                continue
            leads = " and ".join(self._name(targets[number]) for number in member.leads)
            by_exponent = "exp" in functions_of(member.factor) and member.leads == (0,)
            new = f"rescaled {'by running exponent' if by_exponent else 'with'} {leads}"
            yield f"{line}   # {old if fold.ahead else new}", origin(member.value)

    def _update(self, target: str, monoid: str, value: str, plus: str) -> str:
        return (
            f"{target} {plus} {value}"
            if monoid == "+"
            else f"{target} = {monoid}({target},{value})"
        )

    def _operand(self, tile: Tile, inlined: dict[Tile, Let]) -> str:
        return self._value(inlined[tile], ()) if tile in inlined else self._name(tile)

    def _place(self, view: View, tile: Tile, loops: tuple[Dim, ...]) -> str:
        """``KT[n,d]``: a view under its own name runs as the item, others as the array lies."""
        name = self._outputs.get(view.buffer.name, view.buffer.name)
        blocks = [axis.dim for axis in view.buffer.axes if axis.per_block]
        texts = {
            dim: dim.lower() if dim in loops else "0" if dim in blocks else ":" for dim in view.runs
        }
        dims = view.dims
        strided = any(isinstance(dim, Strided) for dim in dims)
        if view.hint and view.hint != view.buffer.name and not strided:
            name = view.hint
            dims = (*(d for d in texts if d not in tile.axes), *tile.axes)
        return f"{name}[{','.join(_along(dim, texts) for dim in dims)}]"


def _along(axis: AxisView, texts: Mapping[Dim, str]) -> str:
    """A place along an axis: ``n``, or ``h*(N // 8)+e`` where it is strided."""
    if not isinstance(axis, Strided):
        return "0" if axis is None else texts[axis]
    terms = [axis.start.python(str)] if axis.start.terms else []
    for run in axis.runs:
        step = "" if run.step == ONE else f"*{run.step.python(str)}"
        text = texts[run.dim]
        text = text if run.share is None else f"({run.share.python(text, str)})"
        terms.append(f"{text}{step}")
    return "+".join(terms) or "0"


def _folded_once(body: tuple[Stmt, ...]) -> dict[Tile, Let]:
    """The operators of ``body`` whose value is folded in it and used nowhere else."""
    uses = Counter(reads(body))
    folds = [stmt for stmt in body if isinstance(stmt, Fold)]
    values = {v for f in folds for v in (f.value, *(member.value for member in f.members))}
    return {
        stmt.target: stmt
        for stmt in body
        if isinstance(stmt, Let) and stmt.target in values and uses[stmt.target] == 1
    }


def _loop(
    dim: Dim, parallel: bool, chunk: Dim | None = None, span: tuple[str, ...] | None = None,
    down: bool = False,
) -> str:  # fmt: skip
    blocks = f"range({dim})" if chunk is None else f"chunk {chunk.lower()} of range({dim})"
    if span is not None:
        begin, end = span
        part = f"range({begin or 0}, {end or dim})"
        blocks = part if chunk is None else f"{blocks} in {part}"
    blocks = f"reversed({blocks})" if down else blocks
    return f"{'forall' if parallel else 'for'} {dim.lower()} in {blocks}:"


# operator class -> how it is written, given the names of its operands
SPELLING: dict[type, Callable[[Any, list[str]], str]] = {
    Functional: lambda op, xs: f"{op.name}({','.join(xs)})",
    Scan: lambda op, xs: f"{scan_words(op)} ({xs[0]})",
    Pointwise: lambda op, xs: show_expr(op.expr, xs),
    Cast: lambda op, xs: f"{op.dtype}({xs[0]})",
    Transpose: lambda op, xs: f"transpose({xs[0]})",
    Relabel: lambda op, xs: xs[0],
    Regroup: lambda op, xs: f"{op} ({xs[0]})",
}
