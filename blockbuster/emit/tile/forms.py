"""The text form of tile programs, as a table with one entry for each kind of part.

``show.py`` prints by this table, and the reader of the tests reads by it, so a text reads back as
an equal program, and a new field of a statement is a few words in its line. Docs: tile_text.md.

``{field:kind}`` is a field, written as its kind says; ``{a,b:kind}`` are two fields in one phrase.
``~...~`` is left out if its field has its default value. Other words stand for themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import MISSING, dataclass, fields
from functools import cache
from typing import Any, TypeAlias

from blockbuster.emit.tile.group import Group
from blockbuster.emit.tile.next_block import Next
from blockbuster.emit.tile.program import (
    INPUT,
    OUTPUT,
    WORKSPACE,
    Await,
    Block,
    BlockOf,
    Buffer,
    BufferAxis,
    Chunks,
    Fold,
    For,
    Guard,
    Init,
    Iota,
    Issue,
    Let,
    Load,
    Member,
    Nest,
    Store,
    Tile,
    TileProgram,
    View,
)
from blockbuster.emit.tile.waits import Release, Wait
from blockbuster.ir.dtypes import FLOAT8
from blockbuster.ir.lengths import Rule

STATEMENTS: dict[type, str] = {
    Load: "{target:made} = load {view:view}~ columns{columns:flag}~",
    Issue: "issue {token:word} {ahead:number} ahead of {slots:number}: "
    "{tile:made} = load {view:view}~ by descriptor{described:flag}~",
    Await: "{target:made} = await {token:word}~ columns{columns:flag}~",
    Iota: "{target:made} = index {dim:dim}~ at {at:word}~",
    BlockOf: "{target:made} = block {dim:dim} of {value:tile}",
    Store: "store {view:view} = {value:tile}",
    Let: "{target:made} = {op,args:operator}~ into {into:tile}~~ apart {apart:word}~"
    "~ split{split:flag}~~ beside{beside:flag}~",
    Guard: "{target:made} = guard {value:tile} along {dim:dim} with {fill:scalar}",
    Init: "{target:made} = init {monoid:monoid}",
    Fold: "{target:tile} {monoid:monoid}= {value:tile}~ onto {onto:tile}~~ ahead{ahead:flag}~"
    "~ apart {apart:word}~{members:members}",
    Wait: "wait",
    Release: "release",
    Next: "next {dim:dim} at {value:tile}",
    For: "{parallel:either forall for} {dim:block}~ in chunk {chunk:dim}~~ from {span:span}~"
    "~ within {within:dims}~~ full{full:flag}~~ flat{flat:flag}~~ down{down:flag}~"
    "~ settled {settled:tiles}~ {body:body}",
}

FORMS: dict[type, str] = STATEMENTS | {
    Member: "with {target:tile} {monoid:monoid}= {value:tile} by {leads,factor:repair}",
    Tile: "{name,hint:tile name}: {dtype:dtype}[{axes:blocks}]~ lanes {per_lane:dims}~",
    View: "{buffer:array}[{dims:axes}]~ as {hint:word}~~ paired{paired:flag}~",
    Buffer: "{name:word}: {dtype:dtype}[{axes:array axes}]~ pitch {pitch:number}~"
    "~ in {space:word}~",
    BufferAxis: "{dim:axis}~ blocks{per_block:flag}~",
    Block: "{dim:dim} {lanes:number}~?{ragged:flag}~~ whole{whole:flag}~",
    Chunks: "{dim:dim} in {count:number} as {number:dim} and {lanes:dim}",
    Rule: "|{dim:dim}| {exact:either = >=} {length:length}",
    Group: "{blocks:number} {dim:dim}",
    Nest: "~\nblocks {blocks:cuts}~~\ngrid {grid:blocks}~~ warps {warps:number}~"
    "~\nlast first {last_first:dims}~~\ngroups of {group:group}~"
    "~\nat most {programs:number} programs~~ in {stages:number} stages~~\noverlaps{overlaps:flag}~"
    "~\naccurate {accurate:words}~{body:statements}",
    TileProgram: "~\ndots in {dtype:dtype}~~\ninputs {inputs:inputs}~~\noutputs {outputs:outputs}~"
    "~\nworkspaces {workspaces:workspaces}~~\nunits {units:dims}~~\nwhole {whole:dims}~"
    "~\nsizes {rules:rules}~~\nchunks {chunks:chunks}~~\nconstant {constants:words}~{nests:nests}",
}

UNWRITTEN = ("origin",)
"""Fields that a text does not say: they are no part of what a program is."""

SPACES = {"inputs": INPUT, "outputs": OUTPUT, "workspaces": WORKSPACE}
"""The space of the arrays of a list, if they do not say another."""

SHORT = {
    "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64",
    FLOAT8: "f8",
    "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
}  # fmt: skip
"""How dtypes are written; others as they are."""

PROGRAM, NEST, ELEMENTWISE = "tiles", "nest", "elementwise"
UP_TO = "to"
DECLARED_TILE, DECLARED_ARRAY = "tile", "array"
"""Lines that say what a tile or an array is that no line before does: the program is ill-formed."""


@dataclass(frozen=True)
class Words:
    """Words and signs that stand for themselves."""

    text: str

    @property
    def tokens(self) -> tuple[str, ...]:
        """The words and signs one by one."""
        return tuple(re.findall(r"\w+|[^\w\s]", self.text))


@dataclass(frozen=True)
class Slot:
    """A place for fields, written as ``kind`` says; ``words`` are those of the kind "either"."""

    fields: tuple[str, ...]
    kind: str
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Maybe:
    """Parts that are left out where the field of their slot has its usual value."""

    parts: tuple[Words | Slot, ...]

    @property
    def slot(self) -> Slot:
        """The place of its field."""
        return next(part for part in self.parts if isinstance(part, Slot))


Part: TypeAlias = Words | Slot | Maybe


def form_of(kind: type) -> tuple[Part, ...]:
    """The text form of values of class ``kind``."""
    return _PARTS[kind]


def usual(kind: type, name: str) -> Any:
    """The value of a field whose words are left out."""
    default = next(f.default for f in fields(kind) if f.name == name)
    return () if default is MISSING else default


def written_name(word: str) -> re.Match[str] | None:
    """A tile's name in text, taken apart: ``t6``, or ``k_6`` for the tile t6 that is called k."""
    return re.fullmatch(r"(?:t|(?P<hint>.+)_)(?P<number>0|[1-9]\d*)", word)


@cache
def reserved() -> frozenset[str]:
    """The words of the text form: a tile of such a name is quoted."""
    words = {PROGRAM, NEST, ELEMENTWISE, DECLARED_TILE, DECLARED_ARRAY, UP_TO}
    for kind in FORMS:
        for part in form_of(kind):
            for inner in part.parts if isinstance(part, Maybe) else (part,):
                words.update(inner.tokens if isinstance(inner, Words) else inner.words)
    return frozenset(word for word in words if word.isalpha())


def _parts(template: str) -> Iterator[Part]:
    for number, text in enumerate(template.split("~")):
        if number % 2:
            yield Maybe(tuple(_pieces(text)))
        else:
            yield from _pieces(text)


def _pieces(text: str) -> Iterator[Words | Slot]:
    for names, kind, words in re.findall(r"\{([\w,]+):([^}]+)\}|([^{]+)", text):
        if words:
            yield Words(words)
        else:
            either = kind.split()[1:] if kind.startswith("either ") else ()
            yield Slot(tuple(names.split(",")), "either" if either else kind, tuple(either))


_PARTS = {kind: tuple(_parts(template)) for kind, template in FORMS.items()}
