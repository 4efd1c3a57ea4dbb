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
from dataclasses import replace
from typing import ClassVar

from blockbuster.ir.expr import Arg, Expr, arguments, call, substitute
from blockbuster.ir.graph import Graph, Value
from blockbuster.ir.ops import IDENTITY, Accumulate, Map
from blockbuster.rules.base import LocalRule, Match, Note, Refusal, label, name_of, unheard
from blockbuster.rules.beside import AS_IT_IS, Waiting, run_beside
from blockbuster.rules.bounded import bounded
from blockbuster.rules.dependent_folds import Dependent, dependents
from blockbuster.rules.laws import LAWS, Law, Repaired
from blockbuster.rules.legality import map_at
from blockbuster.rules.separate import NEGATIVE, POSITIVE, ZERO


class RollingUpdate(LocalRule):
    """A map that folds leads, and a fold that waits for them."""

    name = "rolling-update"
    needs = (Map, Map)
    never_zero: ClassVar[Expr] = call("where", call("eq", Arg(0), 0.0), 1.0, Arg(0))
    """What stands for a lead that h divides by, and that is 0 if all that it is made of is."""
    from_the_start: ClassVar[bool] = False
    """Whether it stands for all such leads, also where nothing is folded into one yet."""

    def laws_for(self, graph: Graph, found: Dependent) -> Sequence[Law] | str | None:
        """The laws that may repair a fold; only beside all of them, h is solved for.

        Else why the rule leaves it to others, as a predicate; None if it has nothing to say.
        """
        return LAWS

    def matches_at(self, graph: Graph, position: int, note: Note = unheard) -> Iterator[Match]:
        known = set[int]()
        for found in self._waiting(graph, position):
            if isinstance(found, str):
                note(Refusal(self, (position,), found))
            elif found.fold.first not in known:
                known.add(found.fold.first)
                places = {"leads": found.fold.first, "fold": position}
                yield Match(self, graph, places, name_of(graph, Value(position, found.fold.port)))

    def apply(self, match: Match) -> Graph:
        found = self._waiting(match.graph, match.nodes["fold"])
        first = match.nodes["leads"]
        sites = (each for each in found if isinstance(each, Waiting) and each.fold.first == first)
        return run_beside(match, next(sites))

    def describe(self, match: Match) -> str:
        return f"{match.detail} beside what it waits for in {label(match.node('leads'))}"

    def _waiting(self, graph: Graph, position: int) -> Iterator[Waiting | str]:
        """The folds of the map at ``position`` that wait, or why they cannot run in the loop."""
        op = graph.nodes[position].op
        for found in dependents(graph, position) if isinstance(op, Map) else ():
            if isinstance(found, str):
                yield found
                continue
            laws = self.laws_for(graph, found)
            if laws is None:
                continue
            each = laws if isinstance(laws, str) else self._rolling(graph, found, laws)
            if isinstance(each, str):
                each = f"{name_of(graph, Value(position, found.port))} {each}"
            yield each

    def _rolling(self, graph: Graph, found: Dependent, laws: Sequence[Law]) -> Waiting | str:
        """How a fold is repaired in the loop of its leads, or why it cannot be, as a predicate."""
        op, question = map_at(graph, found.first), found.question
        monoids = {
            number: result.monoid
            for number, lead in zip(question.producers, found.leads, strict=True)
            if isinstance(result := op.results[lead.port], Accumulate)
        }
        folded = dict(zip(question.producers, found.folded, strict=True))
        asked = bounded(question, {number: (m, folded[number]) for number, m in monoids.items()})
        answer, guarded = asked.repaired(laws), dict[int, str]()
        if isinstance(answer, Repaired) and answer.law.anywhere:
            return _placed(found, answer.h, [AS_IT_IS], [AS_IT_IS])
        if self.from_the_start or not isinstance(answer, Repaired) or answer.divisors:
            guarded = {
                number: POSITIVE
                for number in monoids
                if ZERO in (signs := question.signs[number]) and NEGATIVE not in signs
            }
            known = {**asked.question.signs, **guarded}
            asked = replace(asked, question=replace(asked.question, signs=known))
            answer = asked.repaired(laws)
        if not isinstance(answer, Repaired):
            return f"cannot be repaired: {answer.reason}"
        if answer.divisors:
            return "cannot be repaired: h divides by what may be 0 before the last element"
        guards: list[Expr] = []
        starts: list[Expr] | None = [] if question.monoid == "+" else None
        for number in question.producers:
            monoid, signs = monoids.get(number), question.signs[number]
            guards.append(self.never_zero if number in guarded else _guard(monoid, signs))
            start = self._start(monoid, signs, number in guarded)
            starts = None if starts is None or start is None else [*starts, start]
        return _placed(found, answer.h, guards, starts)

    def _start(self, monoid: str | None, signs: str, guarded: bool) -> Expr | None:
        """What stands for a lead that nothing is folded into yet, too; None if nothing does."""
        if guarded:
            return self.never_zero if self.from_the_start else None
        if monoid == "max" and NEGATIVE not in signs:
            return call("maximum", Arg(0), 0.0)
        return AS_IT_IS if monoid == "+" else None


def _guard(monoid: str | None, signs: str) -> Expr:
    """What stands for a lead in the loop, where it may be infinite as all elements are."""
    if monoid == "min" or (monoid == "max" and NEGATIVE in signs):
        return call("where", call("eq", Arg(0), IDENTITY[monoid]), 0.0, Arg(0))
    return AS_IT_IS


def _placed(
    found: Dependent, h: Expr, guards: Sequence[Expr], starts: Sequence[Expr] | None
) -> Waiting:
    """The fold with ``h`` as its factor: ``guards``, or ``starts`` of nothing, stand for leads.

    Without ``starts``, what nothing is folded into yet stays as it is.
    """
    count, question = len(found.leads), found.question
    places = [index - 1 - 2 * count for index in sorted(arguments(h)) if index > 2 * count]
    values = [found.leaves[question.parameters[place]] for place in places]
    both, x = count + len(places), Arg(0)
    held = {place: at for at, place in enumerate(places)}

    def repaired(stand_ins: Sequence[Expr], of_new: Sequence[Expr], base: int) -> Expr:
        old = [substitute(each, (Arg(1 + at),)) for at, each in enumerate(stand_ins)]
        new = [substitute(each, (Arg(1 + base + at),)) for at, each in enumerate(of_new)]
        given = [
            Arg(1 + base + count + held[at]) if at in held else x
            for at in range(len(question.parameters))
        ]
        return substitute(h, (x, *old, *new, *given))

    start = IDENTITY[question.monoid]
    if starts is not None:
        factor = repaired(starts, starts, both)
    else:
        factor = call("where", call("eq", x, start), x, repaired(guards, guards, both))
    parameters = tuple(value for value in values if value is not None)
    assert len(parameters) == len(values)
    guarded = any(guard != AS_IT_IS for guard in guards)
    restored = repaired(guards, [AS_IT_IS] * count, 0) if guarded else AS_IT_IS
    return Waiting(found, tuple(guards), parameters, factor, restored)
