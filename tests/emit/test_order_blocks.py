"""The move order: only loops of the grid, results as before, longest first where that is known."""

import numpy as np
import pytest

import blockbuster as bb
from bench.everyday import causal, full
from blockbuster.emission import check_schedule, emit
from blockbuster.errors import EmitError, ParseError
from blockbuster.runtime.launch import run_interpreted
from tests.emit.parse_tiles import parse_tiles

SIZES = dict(B=1, H=2, M=130, N=130, D=16, L=16)
DIMS = dict(q="B H M D", k="B H N D", v="B H N L")
ORDERED = "order nest 1 M last first\n"


def graph_of(fn):
    return bb.fuse(bb.lower(bb.trace(fn, **DIMS))).final


@pytest.fixture(scope="module")
def masked():
    return graph_of(causal)


def test_programs_of_later_rows_start_first_under_a_causal_mask(masked):
    kernel = emit(masked, SIZES, "float16")

    assert ORDERED in kernel.schedule
    assert "tl.cdiv(M, BLOCK_M) - 1 - pid %" in kernel.source
    assert kernel.tile_program.nests[0].last_first == ("M",)
    assert parse_tiles(str(kernel.tile_program)) == kernel.tile_program


def test_without_a_mask_blocks_are_taken_as_they_come():
    assert "order" not in emit(graph_of(full), SIZES, "float16").schedule


def test_where_earlier_rows_have_more_to_do_blocks_are_taken_as_they_come():
    def later(q, k, v):
        i, j = bb.arange(q.shape[-2])[:, None], bb.arange(k.shape[-2])
        s = bb.where(i <= j, q @ k.swapaxes(-1, -2), float("-inf"))
        return bb.softmax(s, axis=-1) @ v

    schedule = emit(graph_of(later), SIZES, "float16").schedule

    assert "narrow nest 1 N" in schedule
    assert "order" not in schedule


def test_the_results_are_those_of_the_other_order(masked):
    ordered = emit(masked, SIZES, "float32")
    plain = emit(masked, SIZES, "float32", schedule=ordered.schedule.replace(ORDERED, ""))
    assert plain.source != ordered.source

    arrays = drawn()
    left, right = (run_interpreted(kernel, arrays) for kernel in (ordered, plain))

    for name, found in left.items():
        assert (found == right[name]).all()


def drawn():
    random = np.random.default_rng(0)
    shapes = {name: tuple(SIZES[d] for d in dims.split()) for name, dims in DIMS.items()}
    return {name: random.normal(size=shape).astype("float32") for name, shape in shapes.items()}


@pytest.mark.slow
def test_the_schedule_is_proved(masked):
    text = emit(masked, SIZES, "float16").schedule

    assert check_schedule(masked, text, sizes=SIZES, trials=2)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("order nest 1 N last first", "the loop over N is not on the grid"),
        ("order nest 1 K last first", "there is no nest 1 K"),
        ("order nest 1 M last first\norder nest 1 M last first", "last to the first already"),
    ],
)
def test_refusals(masked, line, reason):
    text = emit(masked, SIZES, "float16").schedule.replace(ORDERED, line + "\n")
    with pytest.raises(EmitError, match=reason):
        emit(masked, SIZES, "float16", schedule=text)


def test_other_words_are_no_order(masked):
    text = emit(masked, SIZES, "float16").schedule.replace("last first", "backwards")
    with pytest.raises(ParseError, match="expected last first, got"):
        emit(masked, SIZES, "float16", schedule=text)
