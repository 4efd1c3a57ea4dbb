"""The arithmetic of tile programs in closed form equals what a run counts."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blockbuster.emit.interpret.interpreter import run_tiles
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.traffic import Arithmetic, arithmetic
from blockbuster.interp.binding import list_only
from blockbuster.ir.lengths import completed
from blockbuster.ir.types import size_class
from tests.emit.cases import TEXTS, graph_of, pass_chains, sizes_of
from tests.emit.counting import TileCounts
from tests.random_programs.strategies import block_graphs, sizes_and_blocks


class Operators(TileCounts):
    """Counts operators only: folds are what ``arithmetic`` leaves out."""

    def fold(self, stmt, values, real):
        pass


def counted(program, sizes, blocks):
    counts = Operators()
    shapes = {
        b.name: [sizes[size_class(a.dim)] if a.dim else 1 for a in b.axes] for b in program.inputs
    }
    ones = {name: np.ones(shape) for name, shape in shapes.items()}
    run_tiles(program, ones, sizes, blocks, observer=counts)
    return Arithmetic(counts.flops["matrix"], counts.flops["vector"])


@cache
def chain(name):
    """The program after every pass but those that leave entries per lane."""
    return [p for label, p, _ in pass_chains(graph_of(name)) if "defer" not in label]


@given(data=st.data())
def test_of_random_programs(data):
    graph = data.draw(block_graphs(), label="program")
    setting = data.draw(sizes_and_blocks(graph), label="sizes")
    program, sizes, blocks = lower_to_tiles(graph), setting.sizes, setting.block_sizes

    assert arithmetic(program, sizes, blocks) == counted(program, sizes, blocks)


@given(data=st.data())
@pytest.mark.parametrize("name", TEXTS)
def test_after_every_pass(name, data):
    graph = graph_of(name)
    program = data.draw(st.sampled_from(chain(name)), label="program")
    single = list_only(graph)
    sizes = {d: data.draw(st.integers(1, 5), label=f"size of {d}") for d in sizes_of(graph)}
    blocks = {
        d: data.draw(st.integers(1, 4), label=f"block of {d}") for d in sizes if d not in single
    }
    known = completed(sizes, program.rules)

    assert arithmetic(program, known, blocks) == counted(program, known, blocks)


def test_a_product_counts_multiplications_and_additions():
    work = arithmetic(
        chain("attention final")[0], dict.fromkeys("MNDL", 8), dict.fromkeys("MNDL", 2)
    )

    assert work.matrix == 2 * 8**3 * (4 + 1)  # the scores once for each of four blocks of L
    assert work.vector > 0
    assert Arithmetic(1, 2) + Arithmetic(3, 4) == Arithmetic(4, 6)
