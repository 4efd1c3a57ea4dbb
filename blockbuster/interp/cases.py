"""Do two programs agree for all outcomes of their comparisons? Case by case, at small sizes.

Each element of the outputs is written out as a term (``terms.py``), and the two terms of an element
are unfolded together: whenever a comparison may have several outcomes, each outcome that exact
arithmetic does not exclude is a case of its own (``cells.py``). In a case no comparison is left,
and the terms are polynomials in the inputs, their reciprocals and other functions. Either they are
equal as polynomials, or the case must be shown to be empty, or a point in it is searched, on which
the programs are run. A case that is neither shown empty nor has a known point is named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from blockbuster.interp.binding import dims_of
from blockbuster.interp.cells import Cell, Solver
from blockbuster.interp.laurent import minus
from blockbuster.interp.proof import Counterexample
from blockbuster.interp.ranges import Ranges
from blockbuster.interp.setting import Setting, dims_at_hand
from blockbuster.interp.terms import DECIDING, Term, Terms, TooLarge, below
from blockbuster.interp.unfold import Element, Undecided, Unfolding, ZeroDivisor
from blockbuster.interp.unknowns import Unknowns
from blockbuster.interp.work import Work
from blockbuster.ir.graph import Graph
from blockbuster.ir.types import Dim, size_class

SIZES = (1, 2, 3)
MOST_CASES = 500  # of two programs at one size
MOST_WORK = 7e5  # at all sizes: some seconds
MOST_NAMED = 3

Search = Callable[[Setting, Unknowns, Cell, Solver], Counterexample | None]
"""Looks for inputs in a case on which the programs differ."""


@dataclass(frozen=True)
class Cases:
    """The result of going through all cases."""

    equal: bool | None
    reason: str
    counterexample: Counterexample | None = None
    settings: tuple[Setting, ...] = ()
    """At which sizes all cases are settled."""
    any_size: bool = False
    """Whether they are, whatever numbers stand for sizes in expressions."""


def compare(a: Graph, b: Graph, *, laws: bool, search: Search) -> Cases:
    """Two programs case by case at small sizes.

    ``laws``: exp, log and sqrt follow theirs; without, nothing is known of them.
    """
    settled: list[Setting] = []
    work = Work(MOST_WORK)
    for setting in _settings(a, b):
        try:
            found = _at(a, b, setting, work, laws=laws, search=search)
        except TooLarge as reason:
            if len(settled) < 2:
                return Cases(None, str(reason), settings=tuple(settled))
            break
        if found is not None:
            return found
        settled.append(setting)
    if grows := _growing(a, b, settled[-1]):
        return Cases(None, grows, settings=tuple(settled))
    try:
        found = _at(a, b, settled[1], Work(MOST_WORK), laws=laws, search=_nothing, sized=True)
    except TooLarge as reason:
        found = Cases(None, str(reason))
    reached = tuple(settled)
    return Cases(True, "the programs agree in every case", settings=reached, any_size=found is None)


def _nothing(setting: Setting, names: Unknowns, cell: Cell, solver: Solver) -> None:
    """A search where no inputs are of use."""


def _settings(a: Graph, b: Graph) -> list[Setting]:
    """Small sizes, with several blocks, and at last sizes that get past thresholds of positions."""
    known = dims_at_hand(a, b)
    classes, single = known.classes, known.single
    found = []
    for more in [dict.fromkeys(classes, size) for size in SIZES] + [dict(own) for own in known.far]:
        sizes = dict.fromkeys(classes, 2) | more
        steps = {d: 1 if d in single else max(1, -(-2 * n // 3)) for d, n in sizes.items()}
        found.append(known.setting(sizes, steps))
    return found


def _growing(a: Graph, b: Graph, setting: Setting) -> str:
    """A comparison that has more outcomes in longer rows than in those tried; "" if none has."""
    terms = Terms(anywhere=True)
    dims = frozenset(d for g in (a, b) for dim in dims_of(g) for d in (dim, size_class(dim)))
    small = min(setting.sizes.values(), default=1)
    try:
        outputs = terms_of((a, b), setting, terms)
    except TooLarge as reason:
        return str(reason)
    anywhere, here = Ranges(dims, None), Ranges(dims, small)
    for term in below(*(t for made in outputs for array in made.values() for t in array.ravel())):
        pairs = combinations(term.args, 2) if term.fn in ("lt", "eq", "max", "min") else ()
        for x, y in pairs:
            if not _of_data(x, y, dims=dims):
                continue  # of positions alone: positions.py
            if anywhere.compared(x, y) != here.compared(x, y):
                return "a comparison has outcomes that only longer rows than those tried show"
    return ""


def _of_data(*terms: Term, dims: frozenset[Dim]) -> bool:
    return any(t.fn == "input" and t.args[0][0] not in dims for t in below(*terms))


def terms_of(graphs: tuple[Graph, ...], setting: Setting, terms: Terms) -> list[dict[str, Any]]:
    """The outputs of programs as terms."""
    inputs = terms.inputs(setting.shapes(graphs[0]))
    return [setting.run(graph, inputs, terms) for graph in graphs]


def pairs_of(a: Graph, b: Graph, setting: Setting, terms: Terms) -> Iterator[tuple[Term, Term]]:
    """The two terms of each element of which they are not one; alike ones once."""
    left, right = terms_of((a, b), setting, terms)
    seen = set()
    for name, array in left.items():
        if array.shape != right[name].shape:
            raise TooLarge("outputs have different shapes")
        for x, y in zip(array.ravel().tolist(), right[name].ravel().tolist(), strict=True):
            if x is not y and (alike := _signature(x, y)) not in seen:
                seen.add(alike)
                yield x, y


def _signature(*terms: Term) -> tuple[object, ...]:
    """The same for terms that differ in which elements they read only."""
    numbers = {term.number: at for at, term in enumerate(below(*terms))}
    made: list[object] = [numbers[t.number] for t in terms]
    for term in below(*terms):
        own = term.args if term.fn == "number" else ()
        name = term.args[0][0] if term.fn == "input" else ""
        made.append((term.fn, name, own, tuple(numbers[part.number] for part in term.parts)))
    return tuple(made)


def _at(
    a: Graph,
    b: Graph,
    setting: Setting,
    work: Work,
    *,
    laws: bool,
    search: Search,
    sized: bool = False,
) -> Cases | None:
    """What shows at one setting, if all its cases are not settled as equal."""
    tree = _Tree(MOST_CASES, laws, work)
    for x, y in pairs_of(a, b, setting, Terms(sized=sized)):
        free = _shared(x, y)
        if free and next(tree.different(x, y, free), None) is None:
            continue
        unsettled = []
        for names, solver, cell in tree.different(x, y, {}):
            found = search(setting, names, cell, solver)
            if found is not None:
                return Cases(False, "the programs differ where " + cell.show(names), found)
            unsettled.append(cell.show(names) or "all inputs")
            if len(unsettled) == MOST_NAMED:
                break
        if unsettled:
            return Cases(None, "not reached: " + "; ".join(unsettled))
    return None


def _shared(x: Term, y: Term) -> dict[int, Term]:
    """What both terms contain that makes decisions: it may be anything, as it is one in both."""
    there = {term.number for term in below(y)}
    found: dict[int, Term] = {}
    stack = [x]
    seen: set[int] = set()
    while stack:
        term = stack.pop()
        if term.number in seen:
            continue
        seen.add(term.number)
        if term.number in there:
            if any(part.fn in DECIDING for part in below(term)):
                found[term.number] = term
        else:
            stack.extend(term.parts)
    return found


@dataclass
class _Tree:
    """Cases split into cases; how many there may still be, and how much work."""

    left: int
    laws: bool
    work: Work

    def different(
        self, x: Term, y: Term, free: Mapping[int, Term]
    ) -> Iterator[tuple[Unknowns, Solver, Cell]]:
        """The cases in which two terms are different polynomials. Raises TooLarge."""
        names = Unknowns(laws=self.laws)
        solver = Solver(names, self.work)
        stack = [Cell({})]
        while stack:
            cell = stack.pop()
            self.left -= 1
            if self.left < 0:
                raise TooLarge("there are too many ways in which comparisons may go together")
            unfolding = Unfolding(names, cell, free, self.work)
            try:
                same = _same(unfolding, x, y)
            except Undecided as undecided:
                parts = [cell.with_signs(undecided.atom, way) for way in undecided.ways]
                stack += [part for part in parts if solver.possible(part, undecided.atom)]
                continue
            if same:
                continue
            if cell.open:  # a border, on which they may agree, is a case of its own
                atom, signs = cell.open
                parts = [cell.with_signs(atom, frozenset((sign,))) for sign in sorted(signs)]
                stack += [part for part in parts if solver.possible(part, atom)]
            elif solver.point(cell) is not None:
                yield names, solver, cell


def _same(unfolding: Unfolding, x: Term, y: Term) -> bool:
    """Whether two terms are one polynomial in a cell, or have no value there.

    Raises TooLarge where a denominator is zero for more than single values of the inputs.
    """
    made: list[Element | None] = []
    for term in (x, y):
        try:
            made.append(unfolding(term))
        except ZeroDivisor:
            made.append(None)
    left, right = made
    if left is None or right is None:
        signs, equations = unfolding.cell.signs, unfolding.cell.equations
        if not signs or not (equations or left is right):
            raise TooLarge("a denominator is zero")
        return True
    if isinstance(left, float) or isinstance(right, float):
        return left == right
    return unfolding.zero(minus(left, right))
