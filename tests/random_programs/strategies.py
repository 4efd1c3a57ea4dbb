"""Hypothesis strategies: programs, sizes and inputs. They build valid values and filter none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from blockbuster.interp.binding import dims_of
from blockbuster.interp.equal import Setting
from blockbuster.interp.layout import Array
from blockbuster.ir.fitting import fitted
from blockbuster.ir.graph import Graph
from blockbuster.ir.list_only import list_only
from blockbuster.ir.types import size_class
from blockbuster.ir.whole_dims import whole_dims
from blockbuster.testing.arrays import ArrayFunction, random_array_function
from blockbuster.testing.generators import GENERATORS
from blockbuster.testing.planted import planted
from blockbuster.testing.planted_sites import SITES
from blockbuster.testing.programs import BlockPrograms

MOST_BLOCKS = 3


def block_graphs(*, whole: bool = True) -> st.SearchStrategy[Graph]:
    """Random block programs; ``whole`` ones keep integers integers, so that floats are exact."""
    return st.randoms(use_true_random=False).map(
        lambda random: BlockPrograms(random, whole=whole).graph()
    )


def array_functions() -> st.SearchStrategy[ArrayFunction]:
    """Random array programs, to be called or traced: ``trace(f, **f.inputs)``."""
    return st.randoms(use_true_random=False).map(random_array_function)


def programs(kind: str) -> st.SearchStrategy[Graph]:
    """Random programs of one of the kinds of ``GENERATORS``."""
    return st.randoms(use_true_random=False).map(GENERATORS[kind])


@st.composite
def programs_with_site(draw: st.DrawFn, rule: str, examples: Sequence[str] = ()) -> Graph:
    """Random programs with a planted site of the rule of that name, or one of ``examples``."""
    site = draw(st.sampled_from((*SITES.get(rule, ()), *examples)), label="planted site")
    return planted(site, draw(st.randoms(use_true_random=False), label="surroundings"))


@st.composite
def sizes_and_blocks(draw: st.DrawFn, *graphs: Graph) -> Setting:
    """Sizes from 1 to 5 and block sizes that make 1 to 3 blocks, the last perhaps ragged."""
    single = {dim for graph in graphs for dim in list_only(graph)}
    dims = dict.fromkeys(size_class(d) for graph in graphs for d in dims_of(graph))
    drawn = {dim: draw(st.integers(1, 5), label=f"size of {dim}") for dim in dims}
    sizes = fitted(drawn, [rule for graph in graphs for rule in graph.size_rules])
    steps = {
        dim: 1 if dim in single else draw(st.integers(-(-size // MOST_BLOCKS), size))
        for dim, size in sizes.items()
    }
    whole = {dim for graph in graphs for dim in whole_dims(graph)} - single
    return Setting(sizes, steps | {dim: sizes[dim] for dim in whole})


@st.composite
def inputs_for(
    draw: st.DrawFn, graph: Graph, setting: Setting, *, whole: bool = True
) -> dict[str, Array]:
    """Arrays for every source: integers from -2 to 2 as floats, or bounded floats."""
    seed = draw(st.integers(0, 2**32 - 1), label="seed of the inputs")
    return random_inputs(graph, setting, np.random.default_rng(seed), whole=whole)


def random_inputs(
    graph: Graph, setting: Setting, random: np.random.Generator, *, whole: bool = True
) -> dict[str, Array]:
    """Arrays for every source: integers from -2 to 2 as floats, or floats between them.

    Arrays of masks and integers hold numbers of their dtypes.
    """

    def draw(shape: tuple[int, ...]) -> Any:
        return (
            random.integers(-2, 3, shape).astype(float) if whole else random.uniform(-2, 2, shape)
        )

    domain = setting.domain(graph)
    return domain.nearest({name: draw(shape) for name, shape in domain.shapes.items()})
