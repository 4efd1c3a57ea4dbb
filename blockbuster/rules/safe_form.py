"""safe: the numerical-safety pass (safety.py) as one step of a derivation.

before   e = exp(s)                         after   z = row_max(s)
         r = row_sum(e)                             d = sub0(s, z)
         yield +r                                   e = exp(d)
                                                    r = row_sum(e)
                                                    yield max t = z
                                                    yield +r by t: x * exp(sub0(r, r2))

Every kernel is made of the safe form of a program. Some programs are rewritten after that, so that
rows are normalized before a product, or that operands of dots are stored: their derivations hold
this step, and begin at the user's program like all others.
Saves nothing; costs a maximum for each row that is exponentiated. Equal in exact arithmetic.
A site is the whole program, and no rule set for fusion holds it: it comes after fusion.
Source: Blockbuster Part 1, appendix.
"""

from __future__ import annotations

from collections.abc import Iterator

from blockbuster.ir.graph import Graph
from blockbuster.rules.base import Match, Note, Rule, unheard
from blockbuster.rules.derivation import Derivation
from blockbuster.rules.safety import safe


class SafeForm(Rule):
    """The safe form of a program. Its only site has no nodes: it is the whole program."""

    name = "safe"
    kind = "companion"

    def matches(self, graph: Graph, note: Note = unheard) -> Iterator[Match]:
        if safe(graph) != graph:
            yield Match(self, graph, {})

    def apply(self, match: Match) -> Graph:
        return safe(match.graph)

    def describe(self, match: Match) -> str:
        return "exponentials under a running maximum, variances around the mean"


def made_safe(derivation: Derivation) -> Derivation:
    """``derivation`` with the safe form of its final program as one more step, if that differs."""
    final = derivation.final
    made = derivation.then(Match(SafeForm(), final, {}))
    return made if made.final != final else derivation
