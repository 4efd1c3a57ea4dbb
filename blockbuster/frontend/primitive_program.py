"""A whole primitive program: what an array program is taken apart into."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from blockbuster.frontend.primitives import Opaque, Primitive
from blockbuster.frontend.strips import Strips
from blockbuster.ir.lengths import Length, Rule
from blockbuster.ir.origin import SourceLine
from blockbuster.ir.types import Dim


@dataclass(frozen=True)
class Primitives:
    """A primitive program: its equations, and the values that fill the outputs, with their names.

    ``notes``: one sentence for each copy that a slice or a concatenation costs. ``lengths``: those
    of dims whose size follows from others. ``fixed``: sizes that were fixed when tracing.
    ``asked``: the rules for least sizes and for quotients, with the lines that ask for them.
    """

    primitives: tuple[Primitive, ...]
    outputs: tuple[tuple[str, int, Strips], ...]
    notes: tuple[str, ...]
    lengths: Mapping[Dim, Length]
    fixed: Mapping[Dim, int]
    asked: tuple[Rule, ...] = ()

    @property
    def live(self) -> list[bool]:
        """Which primitives an output needs."""
        live = [False] * len(self.primitives)
        for _, value, _ in self.outputs:
            live[value] = True
        for position in reversed(range(len(live))):
            if live[position]:
                for ref in self.primitives[position].operands:
                    live[ref.value] = True
        return live

    def calls(self, name: str, where: SourceLine | None) -> bool:
        """True if a function of whole arrays, of this name and from this line, is called."""
        pairs = zip(self.primitives, self.live, strict=True)
        ops = (p.op for p, live in pairs if live and p.where == where)
        return any(isinstance(op, Opaque) and op.name == name for op in ops)
