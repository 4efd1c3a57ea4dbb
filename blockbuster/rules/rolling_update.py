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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from blockbuster.ir.builder import Builder
from blockbuster.ir.expr import Arg
from blockbuster.ir.graph import Graph, Value
from blockbuster.ir.ops import Accumulate, Elementwise, Map, Rescale
from blockbuster.rules.base import LocalRule, Match, Note, Refusal, label, name_of, unheard
from blockbuster.rules.beside import without
from blockbuster.rules.by_dim import by_dim
from blockbuster.rules.dependent_folds import Dependent, dependents
from blockbuster.rules.fuse_maps import Joined, padded
from blockbuster.rules.rolling import AS_IT_IS, Rolling, rolling


class RollingUpdate(LocalRule):
    """A map that folds leads, and a fold that waits for them."""

    name = "rolling-update"
    kind = "fusion"
    needs = (Map, Map)

    def matches_at(self, graph: Graph, position: int, note: Note = unheard) -> Iterator[Match]:
        if not isinstance(graph.nodes[position].op, Map):
            return
        for found, each in _sites(graph, position):
            if isinstance(each, Rolling) and isinstance(found, Dependent):
                name = name_of(graph, Value(position, found.port))
                yield Match(self, graph, {"leads": found.first, "fold": position}, name)
                return
            note(Refusal(self, (position,), str(each)))

    def apply(self, match: Match) -> Graph:
        sites = _sites(match.graph, match.nodes["fold"])
        found, each = next((found, each) for found, each in sites if isinstance(each, Rolling))
        assert isinstance(found, Dependent)
        return _Run(match, found, each).graph()

    def describe(self, match: Match) -> str:
        return f"{match.detail} beside what it waits for in {label(match.node('leads'))}"


def _sites(graph: Graph, position: int) -> Iterator[tuple[Dependent | str, Rolling | str]]:
    for found in dependents(graph, position):
        if isinstance(found, str):
            yield found, found
            continue
        each = rolling(graph, found)
        name = name_of(graph, Value(position, found.port))
        yield found, each if isinstance(each, Rolling) else f"{name} {each}"


@dataclass
class _Run:
    """One application: the map ``leads`` folds what waits for it, too."""

    match: Match
    found: Dependent
    rolling: Rolling

    def graph(self) -> Graph:
        """The graph with the fold beside its leads."""
        match, found = self.match, self.found
        first, op = match.node("leads"), match.map("leads")
        edit = match.edit()
        joined = Joined(first, op)
        made = [output.value for output in op.body.outputs]
        params = [joined.operand(match.graph, value) for value in self.rolling.parameters]
        known = dict(zip(match.values("leads"), made, strict=True))
        self._in_loop(joined, known)
        assert isinstance(found.alone.op, Map)
        outputs = [*made, *params, *joined.inline(found.alone, found.alone.op, known)]
        (result,) = found.alone.op.results
        assert isinstance(result, Accumulate)
        ports = (
            *(lead.port for lead in found.leads),
            *range(len(made), len(made) + len(params)),
        )
        results = (
            *op.results,
            *(Accumulate("max") for _ in params),
            Rescale(result.monoid, ports, self.rolling.factor),
        )
        hints = (
            *padded(first.hints, len(made)),
            *("",) * len(params),
            *padded(found.alone.hints, 1),
        )
        new = edit.add(
            joined.map(outputs, results), *joined.operands, hints=hints, origin=match.origin()
        )
        instead = dict(zip(match.values("leads"), new, strict=False))
        own = match.value("fold", found.port)
        leads = [instead[lead] for lead in found.leads]
        instead[own] = self._restored(edit, new[-1], leads)
        instead |= without(match, "fold", found.port, edit, instead)
        edit.redirect_all([*instead], [*instead.values()])
        return edit.finish()

    def _in_loop(self, joined: Joined, known: dict[Value, Value]) -> None:
        """The values on the way from leads to the fold, for the leads of a block."""
        graph, origin = self.match.graph, self.match.origin()
        guarded = {
            lead: joined.add(Elementwise(guard), known[lead], origin)
            if guard != Arg(0)
            else known[lead]
            for lead, guard in zip(self.found.leads, self.rolling.guards, strict=True)
        }
        known.update(guarded)
        for position in self.found.between:
            node = graph.nodes[position]
            operands = [
                known[value] if value in known else joined.operand(graph, value)
                for value in node.operands
            ]
            known[Value(position)] = joined.apply(node, operands)

    def _restored(self, edit: Builder, total: Value, leads: Sequence[Value]) -> Value:
        """The result for the leads themselves, where other numbers stood for some."""
        if all(guard == AS_IT_IS for guard in self.rolling.guards):
            return total
        operands = [total, *leads, *self.rolling.parameters]
        axes = self.found.alone.types[0].axes
        return by_dim(edit, self.rolling.restored, operands, axes, self.match.origin())
