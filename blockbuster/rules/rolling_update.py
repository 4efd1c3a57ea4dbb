"""rolling-update: a fold runs in the loop of the results that it waits for, and is repaired there.

before   m = map N (x in !X) {            after   m, s = map N (x in !X) {
           a = abs(x)                               a = abs(x)
           m = row_max(a)                           m = row_max(a)
           yield max m                              r = reciprocal(m + 1)
         }                                          z = row_scale(a, r) ** 1.5
         r = reciprocal(m + 1)                      s = row_sum(z)
         s = map N (x in !X, r = r) {               yield max t = m
           z = row_scale(abs(x), r) ** 1.5          yield +s by t: x * ((r + 1) / (r2 + 1)) ** 1.5
           s = row_sum(z)                         }
           yield +s
         }

Each block is folded with its own results r. Before two partial results are folded, each is taken
from its r to the common one by a function h(x, r, r2), which is derived: ``laws.py`` says what must
hold for it, and ``repair.py`` how it is found where the table of laws has none. No normalizer is
known by name, and a fold may wait for one to three results.

Conditions, for a fold of g(r, c) over elements c:

- There is an h: h(g(r, c), r, r2) = g(r2, c), and it distributes over the fold.
- Between the loops stand scalar functions of leads and parameters, which all iterations share. A
  parameter that h reads is folded, too: the largest of equal numbers is that number.
- h divides by nothing that may be 0 before the last element. A magnitude may be 0, but then so is
  all that it is made of: such a block is folded with 1 in its place. A block whose maximum is -inf,
  or whose minimum is inf, is folded with 0.
- The fold's own start stays as it is: nothing was folded into it, whatever the leads are.

Behind the loop, h takes the result from the number that stood for a lead to the lead itself, so
rows in which that is 0 or infinite get what the program as written gives them.
Saves a pass over the elements, and storing them if they are computed. Costs h per row and block.
Termination: each application makes one fold fewer wait for another loop over the dim, and no rule
makes one wait.
Source: Neptune's rolling update, over blocks.
"""

from __future__ import annotations

from collections.abc import Iterator

from blockbuster.ir.graph import Graph, Value
from blockbuster.rules.base import name_of
from blockbuster.rules.beside import RunBeside, Wait
from blockbuster.rules.dependent_folds import dependents
from blockbuster.rules.rolling import rolling


class RollingUpdate(RunBeside):
    """A map that folds leads, and a fold that waits for them."""

    name = "rolling-update"
    roles = ("leads", "fold")
    words = "what it waits for"

    def waiting(self, graph: Graph, position: int) -> Iterator[Wait]:
        for found in dependents(graph, position):
            each = found if isinstance(found, str) else rolling(graph, found)
            if isinstance(each, str) and not isinstance(found, str):
                each = f"{name_of(graph, Value(position, found.port))} {each}"
            yield (position,), each
