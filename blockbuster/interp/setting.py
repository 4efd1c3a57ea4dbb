"""The sizes and blocks at which two programs are compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from blockbuster.interp.binding import dims_of, sources
from blockbuster.interp.domains import Domain, dtypes_of
from blockbuster.interp.evaluate import Interpreter
from blockbuster.interp.layout import Array, Layout
from blockbuster.interp.observers import Observer
from blockbuster.interp.positions import far_sizes
from blockbuster.interp.remembering import Remembering
from blockbuster.interp.semantics import Semantics
from blockbuster.ir.fitting import fitted
from blockbuster.ir.graph import Graph
from blockbuster.ir.lengths import Rule
from blockbuster.ir.list_only import list_only
from blockbuster.ir.types import Dim, size_class
from blockbuster.ir.whole_dims import whole_dims

SIZES = (1, 2, 3, 4, 5)
SQUARES = (1, 4)
SMALLEST = (1, 2, 2)  # where a difference is looked for first, so that it can be read


@dataclass(frozen=True)
class Setting:
    """The sizes and block sizes of one trial, by size class."""

    sizes: Mapping[Dim, int]
    block_sizes: Mapping[Dim, int]

    @cached_property
    def key(self) -> tuple[tuple[Dim, int], ...]:
        """Sizes and block sizes as one value that can be looked up."""
        return (*sorted(self.sizes.items()), *sorted(self.block_sizes.items()))

    def shapes(self, graph: Graph) -> dict[str, tuple[int, ...]]:
        """The shape of every source of ``graph``."""
        return {
            name: tuple(1 if d is None else self.sizes[size_class(d)] for d in axes)
            for name, axes in sources(graph).items()
        }

    def domain(self, *graphs: Graph) -> Domain:
        """The shapes and dtypes of the sources of programs that read the same ones."""
        return Domain(self.shapes(graphs[0]), dtypes_of(*graphs))

    def run(
        self, graph: Graph, inputs: Mapping[str, Array], semantics: Semantics
    ) -> dict[str, Array]:
        """The outputs of ``graph``."""
        return Interpreter(self.layout, semantics, Observer()).run(graph, inputs)

    def run_all(
        self, graphs: Sequence[Graph], inputs: Mapping[str, Array], semantics: Semantics
    ) -> list[dict[str, Array]]:
        """The outputs of programs under a semantics of numbers; the parts they share run once."""
        memory = Remembering(self.layout, semantics, inputs)
        return [memory.outputs(graph) for graph in graphs]

    @cached_property
    def layout(self) -> Layout:
        """The layout of blocks, for any program that the setting was made for."""
        return Layout(self.sizes, _Blocks(self))


class _Blocks(dict[Dim, tuple[range, ...]]):
    """The blocks of each dim that was asked for: those of its size class."""

    def __init__(self, setting: Setting) -> None:
        super().__init__()
        self.setting = setting

    def __missing__(self, dim: Dim) -> tuple[range, ...]:
        size, step = (of[size_class(dim)] for of in (self.setting.sizes, self.setting.block_sizes))
        self[dim] = tuple(range(at, min(at + step, size)) for at in range(0, size, step))
        return self[dim]


class DimsAtHand(NamedTuple):
    """The facts about dims on which settings rest, by size class."""

    classes: tuple[Dim, ...]
    single: frozenset[Dim]
    rules: tuple[Rule, ...]
    whole: frozenset[Dim]
    """Those that are one block."""
    far: tuple[tuple[tuple[Dim, int], ...], ...]
    """Sizes of dims whose positions or sizes are compared, at which more outcomes show."""

    def setting(self, sizes: Mapping[Dim, int], steps: Mapping[Dim, int]) -> Setting:
        """These sizes and block sizes, so far as sizes do not follow and dims are not whole."""
        fit = fitted(sizes, self.rules)
        return Setting(fit, {**steps, **{dim: max(fit[dim], 1) for dim in self.whole}})


def dims_at_hand(a: Graph, b: Graph) -> DimsAtHand:
    """The facts about dims of two programs, independent of their order."""
    classes = {*map(size_class, dims_of(a)), *map(size_class, dims_of(b))}
    single = frozenset(list_only(a) + list_only(b))
    rules = tuple(dict.fromkeys(a.size_rules + b.size_rules))
    whole = frozenset(whole_dims(a) + whole_dims(b)) - single
    return DimsAtHand(tuple(sorted(classes)), single, rules, whole, far_sizes(a, b))


def settings(
    a: Graph,
    b: Graph,
    count: int,
    random: np.random.Generator,
    *,
    sizes: Sequence[int] = SIZES,
    smallest_first: bool = False,
) -> Iterator[Setting]:
    """Small sizes and blocks for both programs.

    The first have several blocks, one of them ragged. As far as there are enough sizes, no two dims
    have the same, so that one is not taken for the other. Smallest first: all sizes are 1, then 2,
    before. In the last, positions and sizes get past what they are compared with. What is drawn
    does not depend on the order in which programs name their dims.
    """
    known = dims_at_hand(a, b)
    classes, single = known.classes, known.single
    if smallest_first:
        for size in SMALLEST:
            yield known.setting(dict.fromkeys(classes, size), dict.fromkeys(classes, 1))
    for number in range(count):
        several = [s for s in sizes if s > 2 and (s % 2 or s == sizes[-1])]
        order = random.permutation(sizes if number else several)
        chosen = {d: int(order[at % len(order)]) for at, d in enumerate(classes)}
        steps = {
            d: 1 if d in single else 2 + (s == 4) if not number else int(random.integers(1, s + 1))
            for d, s in chosen.items()
        }
        if number >= count - len(known.far):
            own = known.far[number - count]
            chosen |= own
            steps |= {dim: 1 if dim in single else -(-size // 3) for dim, size in own}
        yield known.setting(chosen, steps)


def enlarged(a: Graph, b: Graph, like: Setting, dim: Dim, sizes: Sequence[int]) -> list[Setting]:
    """``like`` with other sizes of ``dim``, in three blocks each."""
    known = dims_at_hand(a, b)
    steps = [1 if dim in known.single else -(-size // 3) for size in sizes]
    return [
        known.setting({**like.sizes, dim: size}, {**like.block_sizes, dim: step})
        for size, step in zip(sizes, steps, strict=True)
    ]
