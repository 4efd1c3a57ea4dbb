"""The draws for proofs of tile programs, and the results of programs on them.

The proofs of a derivation's moves draw the same numbers at the same sizes and blocks, as far as the
programs ask nothing else of them (``unrestricting``). So a program is run once though it is
compared with the one before and the one after, and common parts of programs are computed once
(``remembered.py``). An oracle that remembers its results may take a
value for one of another program run in the same draw: the bound of each proof counts them all.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from blockbuster.emit.interpret.remembered import Remembered
from blockbuster.emit.interpret.sides import Program, Side, unrestricting
from blockbuster.emit.tile.program import TileProgram
from blockbuster.emit.tile.verify import verify_tiles
from blockbuster.interp.degree import Bound, Degree


@dataclass(frozen=True)
class Draw:
    """A semantics drawn at random, and what nests gave under it; None where items are objects."""

    semantics: Any
    known: Remembered | None


@dataclass
class Drawn:
    """All programs run in the draws of one cut, with the degrees of those that were asked for."""

    sides: dict[Program, Side] = field(default_factory=dict)
    bounds: dict[Program, Bound] = field(default_factory=dict)
    draws: dict[Hashable, Draw] = field(default_factory=dict)
    degree: Degree = field(default_factory=Degree)

    def __post_init__(self) -> None:
        self.known = Remembered(self.degree.noted)

    def draw(self, key: Hashable, semantics: Any) -> Draw:
        """The draw of this key; ``semantics`` is what is drawn for it."""
        if np.dtype(semantics.dtype).hasobject:
            return Draw(semantics, None)
        if key not in self.draws:
            self.draws[key] = Draw(semantics, Remembered())
        return self.draws[key]


class Draws:
    """The draws of any number of proofs, by where they are made.

    ``programs``: those of the derivation whose steps are proved, in order.
    """

    def __init__(self, programs: Iterable[TileProgram] = ()) -> None:
        self._at: dict[Hashable, Drawn] = {}
        self._sides: dict[Program, Side] = {program: Side(program) for program in programs}
        self._verified: set[TileProgram] = set()

    def side(self, program: Program) -> Side:
        """The side that runs a program, with what is known of it."""
        return self._sides.get(program) or Side(program)

    def verify(self, program: TileProgram) -> None:
        """Raise VerifyError if a program is ill-formed, which is looked at once."""
        if program not in self._verified:
            verify_tiles(program)
            self._verified.add(program)

    def together(self, sides: Sequence[Side]) -> tuple[Side, ...]:
        """The sides for which sizes and blocks are drawn, in the order of the derivation.

        These two, and all others that leave them the same choice.
        """
        drawn = {side.program for side in (*sides, *unrestricting(sides, self._sides.values()))}
        known = [side for program, side in self._sides.items() if program in drawn]
        return (*(side for side in sides if side.program not in self._sides), *known)

    def at(self, key: Hashable) -> Drawn:
        """Those of one cut, and one way to round."""
        return self._at.setdefault(key, Drawn())

    def forget(self) -> None:
        """Forget all of them: a program did not run to its end."""
        self._at.clear()
