"""How often a run of a body waits for loads that do not run ahead.

A compiler asks for a tile as early as it can: at the place where the warps of a program met last.
So loads between two such places arrive together, and a load behind dots whose operands lay ready is
asked for before these dots. Warps meet where something passes through shared memory (operands of
dots that were not loaded ahead, sums across warps, tiles that take another layout) and at loops.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Waits:
    """The waits of a body while its statements are walked.

    ``turns``: how often it waits, one wait after the other. ``late``: instructions of statements
    that stand before the first load which is asked for before a dot; 0 if there is none.
    """

    turns: int = 0
    late: int = 0
    _asked: bool = False  # a load since the warps met
    _dotted: bool = False  # a dot since they met
    _arriving: bool = False  # operands of dots that pass through registers

    def of(self, *, looped: bool) -> Waits:
        """Those of a loop's body; a program, which begins but once, waits for all it loads once."""
        return self if looped else Waits(turns=int(self.turns > 0 or self.late > 0))

    def load(self, instructions: int, *, to_dots: bool) -> None:
        """A load behind so many instructions; ``to_dots``: of an operand of dots."""
        if not self._asked and self._dotted:
            self.late = self.late or max(1, instructions)
        elif not self._asked:
            self.turns += 1
        self._asked = True
        self._arriving |= to_dots

    def dot(self, *, passed: bool) -> None:
        """A dot; ``passed``: an operand that was computed passes through shared memory."""
        if self._arriving or passed:
            self.meet()
        self._dotted = True

    def meet(self) -> None:
        """A place where no warp goes on before all others have come."""
        self._asked = self._dotted = self._arriving = False
