"""Listings: goldens of the paper's programs, and the rules of the notation."""

import pytest

from blockbuster.emit.closing.bind import bind
from blockbuster.emit.closing.hoist import hoist
from blockbuster.emit.schedule.drop_unit_loops import drop_unit_loops
from blockbuster.emit.schedule.split_nests import split_nests
from blockbuster.emit.tile.listing import listing
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.ir.parse import parse
from tests.emit.cases import PORTS, TEXTS, graph_of

LINES = {"attention final": 14, "layer norm final": 16, "swiglu final": 19, "attention safe": 18}


@pytest.mark.parametrize("name", TEXTS)
def test_golden(name, golden):
    golden(f"listings/{name.replace(' ', '_')}.txt", graph_of(name).listing())


@pytest.mark.parametrize("name", LINES)
def test_as_many_lines_as_the_paper(name):
    assert len(graph_of(name).listing().splitlines()) == LINES[name]


def test_views_outputs_and_index_vectors(golden):
    golden("listings/ports.txt", listing(parse(PORTS)))


def test_scheduled(golden):
    program = drop_unit_loops(lower_to_tiles(graph_of("attention final")), ("D", "L"))

    golden("listings/attention_scheduled.txt", listing(hoist(bind(program))))


def test_split(golden):
    golden(
        "listings/attention_split.txt",
        listing(split_nests(lower_to_tiles(graph_of("attention first")))),
    )


def test_batch_dims_come_first(golden):
    golden("listings/causal_batched.txt", listing(graph_of("causal batched")))
