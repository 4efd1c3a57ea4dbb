"""Comparisons of positions and sizes: their possible outcomes, and the sizes at which they show.

Small sizes do not show what ``(j - 40) > 40`` or ``|N| > 6`` select. So every comparison of numbers
that are made only of index vectors, sizes and constants is written as a term of one position per
dim. Its thresholds are solved for: along each dim, the positions between which its sign changes,
with the others at positions of interest, however far. The *joint* outcomes at such positions are
compared with those at the sizes tried; outcomes that are missing there have not been tested.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from blockbuster.interp.binding import dims_of, sources
from blockbuster.interp.constants import FARTHEST, expressions_of
from blockbuster.interp.evaluate import Interpreter
from blockbuster.interp.laurent import unknowns
from blockbuster.interp.layout import Array, Layout
from blockbuster.interp.observers import Observer
from blockbuster.interp.places import UNSEEN, Outcome, Place, Sizes, outcomes, places
from blockbuster.interp.ranges import Ranges, affine_signs, straight
from blockbuster.interp.terms import DECIDING, Term, Terms, TooLarge, below
from blockbuster.ir.expr import sizes_in
from blockbuster.ir.fitting import fitted
from blockbuster.ir.graph import Graph, Index
from blockbuster.ir.lengths import Rule
from blockbuster.ir.list_only import list_only
from blockbuster.ir.ops import Collect, Map, Reduce
from blockbuster.ir.types import Dim, size_class

LOGIC = ("lt", "eq", "not", "and", "or")
SMALL = (1, 2, 3, 4, 5, 6, 7, 8, 16, 32)
FAR = (FARTHEST + 2, 100, 1000, 2**12, 2**16, 2**20, 2**31)  # where outcomes are looked for, too
MOST = FARTHEST + 2  # the largest size that trials have
MOST_FAR = 3  # of the sizes that are chosen for what the others do not show
COMMON, FEW = 3, 11  # a size that trials have, or a larger one; sizes that cost little


@dataclass(frozen=True)
class Comparison:
    """Two terms of positions and sizes that are compared; ``places`` are its unknowns.

    Equal for all programs that compare the same, as ``text`` says.
    """

    text: tuple[object, ...]
    places: tuple[Place, ...]
    left: Term = field(compare=False)
    right: Term = field(compare=False)

    @property
    def classes(self) -> frozenset[Dim]:
        """The size classes that it has to do with."""
        return frozenset(size_class(place[0]) for place in self.places)


class Noting(Terms):
    """Terms anywhere, whose comparisons are noted: ``pairs``."""

    def __init__(self) -> None:
        self.pairs: dict[tuple[Term, Term], None] = {}
        super().__init__(anywhere=True)

    def term(self, fn: str, *args: Any) -> Term:
        if fn in ("lt", "eq"):
            if args[0] is not args[1]:  # x != x asks for NaN, and has one outcome here
                self.pairs.setdefault((args[0], args[1]))
        elif fn in ("max", "min"):
            for pair in product(*(a.args if a.fn == fn else (a,) for a in args)):
                self.pairs.setdefault(pair)
        elif fn in ("where", "not", "and", "or"):
            for arg in args[:1] if fn == "where" else args:
                if arg.fn not in LOGIC:
                    self.pairs.setdefault((arg, self.constant(0.0)))
        return super().term(fn, *args)


class Collapsed(Noting):
    """The same where all that reads data is one unknown: comparisons of the rest are left."""

    def __init__(self) -> None:
        self.data: Term | None = None
        super().__init__()
        self.data = super().term("input", ("",))

    def term(self, fn: str, *args: Any) -> Term:
        if self.data is not None and any(arg is self.data for arg in args):
            zero = fn == "mul" and any(arg.value == 0 for arg in args)
            return self.number(Fraction(0)) if zero else self.data
        return super().term(fn, *args)

    def inputs(self, shapes: Mapping[str, Sequence[int]]) -> dict[str, Array]:
        return {name: np.full(shape, self.data, object) for name, shape in shapes.items()}


def mentions_positions(*graphs: Graph) -> bool:
    """True if a program reads index vectors, or computes with sizes."""
    return bool(read_positions(*graphs) or read_sizes(*graphs))


def read_positions(*graphs: Graph) -> tuple[Dim, ...]:
    """The size classes of the index vectors that programs read."""
    views = [given.view for graph in graphs for given in graph.inputs]
    return tuple(dict.fromkeys(size_class(v.dim) for v in views if isinstance(v, Index)))


def read_sizes(*graphs: Graph) -> tuple[Dim, ...]:
    """The size classes whose sizes programs compute with."""
    dims = (dim for expr in expressions_of(graphs) for dim in sizes_in(expr))
    return tuple(dict.fromkeys(map(size_class, dims)))


@lru_cache(maxsize=512)
def comparisons(graph: Graph) -> tuple[Comparison, ...]:
    """The comparisons of positions and sizes in a program that show without looking at data."""
    if not mentions_positions(graph):
        return ()
    terms = Collapsed()
    try:
        elements(graph, terms, once=alike(graph))
    except TooLarge:
        return ()
    return _alike_once((x, y, None) for x, y in terms.pairs)


@lru_cache(maxsize=64)
def all_comparisons(graph: Graph) -> tuple[Comparison, ...]:
    """All of them: those too in which data cancel. Raises TooLarge."""
    terms = Noting()
    elements(graph, terms)
    dims = frozenset(d for dim in dims_of(graph) for d in (dim, size_class(dim)))
    return _alike_once((x, y, dims) for x, y in terms.pairs if not _of_data(x, y, dims))


def _of_data(x: Term, y: Term, dims: frozenset[Dim]) -> bool:
    """Whether x - y depends on data, whatever the comparisons in it give."""
    held = [t for t in below(x, y) if t.fn == "input" and t.args[0][0] not in dims]
    if not held:
        return False
    free = {t.number: t for t in below(x, y) if t.fn in DECIDING}
    found = straight(x, y, free)
    if found is None:
        return True
    names, p = found
    numbers, reached = [*unknowns(p)], set[int]()
    while numbers:
        number = numbers.pop()
        if number in reached:
            continue
        reached.add(number)
        fn, *args = names.kinds[number]
        if fn == "input" and args[0][0] not in dims:
            return True
        if fn == "term" and any(t in held for t in below(free[args[0]])):
            return True
        if fn not in ("input", "term"):
            inner = [dict(arg) for arg in args if not isinstance(arg, float)]
            numbers += [n for p in inner for n in unknowns(p)]
    return False


def _alike_once(
    compared: Iterable[tuple[Term, Term, frozenset[Dim] | None]],
) -> tuple[Comparison, ...]:
    found: dict[object, Comparison] = {}
    for x, y, dims in compared:
        read = [t.args[0] for t in below(x, y) if t.fn == "input"]
        held = [place for place in read if dims is None or place[0] in dims]
        folds = any(t.fn == "fold" for t in below(x, y))
        if _first(held) if held else dims is not None and folds:
            made = Comparison(_text(x, y), tuple(sorted(dict.fromkeys(held))), x, y)
            found.setdefault(made.text, made)
    return tuple(found.values())


def alike(graph: Graph) -> frozenset[Dim]:
    """The size classes of loops whose iterations differ in nothing but the data that they read.

    Batch and heads are such loops: their blocks have one element, no index vector counts them, and
    nothing is folded over them.
    """
    if graph.mentions.miscs:
        return frozenset()
    folds: dict[Dim, None] = {}
    for _, level in graph.walk():
        for node in level.nodes:
            match node.op:
                case Reduce(dim=dim):
                    folds.setdefault(size_class(dim))
                case Map(dim=dim, results=results) if not all(
                    isinstance(result, Collect) for result in results
                ):
                    folds.setdefault(size_class(dim))
    apart = {*folds, *read_positions(graph)}
    return frozenset(dim for dim in list_only(graph) if dim not in apart)


def elements(graph: Graph, terms: Terms, *, once: Container[Dim] = ()) -> list[Term]:
    """The terms of all elements of a program's outputs, at sizes of 2.

    ``once``: size classes of which only the first element is computed.
    """
    classes = tuple(dict.fromkeys(map(size_class, dims_of(graph))))
    sizes = fitted(dict.fromkeys(classes, 2), graph.size_rules)
    single = list_only(graph)
    blocks = {}
    for dim in dims_of(graph):
        size = sizes[size_class(dim)]
        step = 1 if size_class(dim) in single else max(size, 1)
        starts = range(0, size, step)[:1] if size_class(dim) in once else range(0, size, step)
        blocks[dim] = tuple(range(n, n + step) for n in starts)
    shapes = {
        name: tuple(1 if d is None else sizes[size_class(d)] for d in axes)
        for name, axes in sources(graph).items()
    }
    made = Interpreter(Layout(sizes, blocks), terms, Observer()).run(graph, terms.inputs(shapes))
    computed = (term for array in made.values() for term in array.ravel().tolist())
    return [term for term in computed if term is not None]


def _text(*terms: Term) -> tuple[object, ...]:
    """What terms are, whatever else their program is made of."""
    numbers = {term.number: at for at, term in enumerate(below(*terms))}
    return tuple(
        (t.fn, *((numbers[p.number] for p in t.parts) if t.parts else t.args))
        for t in (*below(*terms), *terms)
    )


def _first(read: Sequence[Place]) -> bool:
    """False for what has a twin at position 0: comparisons look the same at all positions."""
    by_dim: dict[Dim, set[int]] = {}
    for dim, *at in read:
        by_dim.setdefault(dim, set()).update(at)
    return all(len(found) > 1 or found <= {0} for found in by_dim.values())


# which sizes, and what they leave out --------------------------------------------------


def _groups(found: Iterable[Comparison]) -> list[tuple[Comparison, ...]]:
    """Comparisons that have size classes in common, directly or through others."""
    groups: list[tuple[set[Dim], list[Comparison]]] = []
    for one in found:
        touching = [group for group in groups if group[0] & one.classes]
        groups = [group for group in groups if not group[0] & one.classes]
        classes = set(one.classes).union(*(group[0] for group in touching))
        groups.append((classes, [*(c for group in touching for c in group[1]), one]))
    return [tuple(sorted(set(held), key=lambda c: repr(c.text))) for _, held in groups]


@lru_cache(maxsize=512)
def _anywhere(group: tuple[Comparison, ...], rules: tuple[Rule, ...]) -> frozenset[Outcome]:
    """The outcomes that comparisons have together, at any sizes that were thought of."""
    classes = _classes(group)
    made: set[Outcome] = set()
    for size in (*SMALL, *FAR):
        for sizes in _size_maps(classes, size, rules):
            made |= outcomes(group, sizes, places(group, sizes))
    return frozenset(made)


@lru_cache(maxsize=4096)
def _seen(group: tuple[Comparison, ...], sizes: tuple[tuple[Dim, int], ...]) -> frozenset[Outcome]:
    """The outcomes at all positions that there are at these sizes."""
    return frozenset(outcomes(group, dict(sizes), None))


def _classes(group: Iterable[Comparison]) -> list[Dim]:
    return sorted(frozenset[Dim]().union(*(one.classes for one in group)))


def _size_maps(classes: Sequence[Dim], size: int, rules: tuple[Rule, ...]) -> Iterator[Sizes]:
    yield fitted(dict.fromkeys(classes, size), rules)
    if len(classes) > 1:
        for one in classes:
            yield fitted({c: size if c == one else 2 for c in classes}, rules)


def far_sizes(a: Graph, b: Graph) -> tuple[tuple[tuple[Dim, int], ...], ...]:
    """Sizes of size classes at which outcomes of comparisons show that size 3 does not show.

    Several, where one does not show them all; empty if there are none.
    """
    rules = tuple(dict.fromkeys(a.size_rules + b.size_rules))
    groups = _groups((*comparisons(a), *comparisons(b)))
    found = [(_classes(group), _far(group, rules)) for group in groups]
    many = max((len(sizes) for _, sizes in found), default=0)
    return tuple(
        tuple(sorted((c, sizes[at % len(sizes)]) for classes, sizes in found if sizes
                     for c in classes))
        for at in range(many)
    )  # fmt: skip


@lru_cache(maxsize=512)
def _far(group: tuple[Comparison, ...], rules: tuple[Rule, ...]) -> tuple[int, ...]:
    """A few sizes, the least that show what no smaller ones do."""
    classes, wanted = _classes(group), _anywhere(group, rules)

    def seen(size: int) -> frozenset[Outcome]:
        found = fitted(dict.fromkeys(classes, size), rules)
        return _seen(group, tuple((c, found[c]) for c in classes))

    left = wanted - seen(COMMON)
    low, high = COMMON, MOST
    while left and high - low > 1:
        middle = (low + high) // 2
        fewer = len(left & seen(middle)) >= len(left & seen(MOST))
        low, high = (low, middle) if fewer else (middle, high)
    tried = sorted({*range(1, FEW), high - 1, high, min(high + 1, MOST)})
    chosen: list[int] = []
    while left and len(chosen) < MOST_FAR:
        size = max(tried, key=lambda n: (len(left & seen(n)), -n))
        if not left & seen(size):
            break
        chosen.append(size)
        left -= seen(size)
    return tuple(sorted(chosen))


def unseen(a: Graph, b: Graph, tried: Iterable[Sizes]) -> str:
    """The outcomes of position and size comparisons that no tried size shows; "" if all show.

    Raises TooLarge.
    """
    tried = list(tried)
    rules = tuple(dict.fromkeys(a.size_rules + b.size_rules))
    dims = frozenset([*dims_of(a), *dims_of(b), *map(size_class, (*dims_of(a), *dims_of(b)))])
    found = (*all_comparisons(a), *all_comparisons(b))
    if any(t.fn == "fold" for one in found for t in below(one.left, one.right)):
        return "a comparison depends on how long rows are: no size tried gets to all outcomes"
    for group in _groups(found):
        keys = [tuple((c, sizes[c]) for c in _classes(group)) for sizes in tried]
        seen = frozenset[Outcome]().union(*(_seen(group, key) for key in keys))
        if UNSEEN in seen:
            return "a comparison of positions or sizes is of what is not computed"
        for at, one in enumerate(group):
            left = _possible(one, dims) - {outcome[at] for outcome in seen}
            if left:
                return f"no size tried gets to where {_shown(one, min(left, key=abs))}"
        for outcome in sorted(_anywhere(group, rules) - seen):
            said = " and ".join(_shown(one, s) for one, s in zip(group, outcome, strict=True))
            return f"no size tried gets to where {said}"
    return ""


def _possible(one: Comparison, dims: frozenset[Dim]) -> frozenset[int]:
    """The signs that the difference may have at any sizes, and perhaps more."""
    found = straight(one.left, one.right)
    if found is not None:
        exact = affine_signs(*found, dims)
        if exact is not None:
            return exact
    return Ranges(dims, None).compared(one.left, one.right)


def _shown(one: Comparison, sign: int) -> str:
    found = straight(one.left, one.right)
    text = found[0].show(found[1]) if found else "the difference of two positions or sizes"
    return f"{text} {'<=>'[sign + 1]} 0"
