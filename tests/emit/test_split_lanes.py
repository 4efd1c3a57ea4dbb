"""The move split-lanes: a dim of one block in two tiles, and its refusals."""

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.emission import check_schedule, emit
from blockbuster.emit.interpret.proof import prove_tiles
from blockbuster.emit.interpret.sides import Side, cuts
from blockbuster.emit.schedule import split_lanes
from blockbuster.emit.schedule.site import Site
from blockbuster.emit.schedule.split_lanes import Halves, SplitLanes
from blockbuster.errors import EmitError, ParseError
from blockbuster.interp.setting import SIZES as DRAWN
from blockbuster.runtime.launch import run_batch, run_interpreted
from tests.emit.parse_tiles import parse_tiles
from tests.emit.test_group_heads import drawn, graph_of
from tests.emit.test_group_heads import scheduled as scheduled_with
from tests.emit.test_move_mutants import mutated

DIMS = dict(q="H M D", k="H N D", v="H N L")
SIZES = dict(H=2, M=20, N=33, D=80, L=80)
CUT = "block M 16, N 16, D 128 whole, L 128 whole\n"
SPLIT = "split-lanes nest 1 D 64\nsplit-lanes nest 1 L 64\n"
END = "warps 4\nstage nest 1 N 2\n"


def attention(q, k, v):
    s = (q @ k.swapaxes(-1, -2)) * q.shape[-1] ** -0.5
    return bb.softmax(s, axis=-1) @ v


def normed(x, w):
    return bb.softmax(x, axis=-1) @ w


@pytest.fixture(scope="module")
def graph():
    return graph_of(attention, **DIMS)


def test_ragged_heads_are_right_in_the_interpreter():
    program = bb.trace(attention, **DIMS)
    graph = bb.fuse(bb.lower(program)).final
    chunked = f"{CUT}{SPLIT}chunk nest 1 N 2\nwarps 4\n"
    texts = {
        f"{CUT}{SPLIT}{END}": (80, 80),
        f"{CUT}{SPLIT}warps 4\n": (72, 100),
        f"{CUT}{SPLIT}split-lanes nest 1 D_from64 32\n{END}": (112, 70),
        chunked: (80, 80),
        f"{CUT}chunk nest 1 N 2\n{SPLIT.splitlines()[1]}\nsplit-lanes nest 2 L 64\nwarps 4\n": (
            80,
            80,
        ),
    }
    jobs, wanted = [], []
    for text, (d, length) in texts.items():
        sizes = {**SIZES, "D": d, "L": length}
        inputs = drawn(sizes, DIMS)
        jobs.append((emit(graph, sizes, "float32", schedule=text), inputs))
        wanted.append(program.numpy(inputs)["out"])
    for made, right in zip(run_batch(jobs), wanted, strict=True):
        np.testing.assert_allclose(made["out"], right, rtol=1e-4, atol=1e-5)


def test_it_is_proved(graph):
    sizes = {**SIZES, "D": 24, "L": 23}
    text = "block M 16, N 16, D 32 whole, L 32 whole\n"
    text += "split-lanes nest 1 D 16\nsplit-lanes nest 1 L 16\nwarps 4\n"

    assert check_schedule(graph, text, sizes, trials=2).equal


def test_sums_and_maxima_of_a_row_are_those_of_its_parts():
    graph = graph_of(lambda x: x.sum(-1) * x.max(-1) + x.min(-1), x="M N")
    text = "block M 4, N 64 whole\nsplit-lanes nest 1 N 32\nwarps 4"

    assert check_schedule(graph, text, dict(M=9, N=40), "float32", trials=2).equal


def test_no_lane_of_eighty_is_padded(graph):
    kernel = emit(graph, SIZES, schedule=f"{CUT}{SPLIT}{END}")
    blocks = {block.dim: block for block in kernel.tile_program.nests[0].blocks}

    assert (blocks["D_to64"].lanes, blocks["D_from64"].lanes) == (64, 16)
    assert not blocks["D_from64"].ragged
    assert "mask_d" not in kernel.source
    assert parse_tiles(str(kernel.tile_program)) == kernel.tile_program


def test_the_file_refuses_heads_that_it_was_not_written_for(graph):
    kernel = emit(graph, SIZES, "float32", schedule=f"{CUT}{SPLIT}{END}")
    (result,) = run_batch([(kernel, drawn({**SIZES, "D": 96}, DIMS))])

    assert "D_from64 is 32: it has to be 16" in str(result)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("split-lanes nest 2 D 64", "there is no nest 2"),
        ("split-lanes nest 1 K 64", "no tile of K is cut here"),
        ("split-lanes nest 1 N 16", "N is walked in blocks: split what is one block"),
        ("split-lanes nest 1 D 48", "the first part of D is 48, expected a power of two of at"),
        ("split-lanes nest 1 D 8", "the first part of D is 8, expected a power of two of at"),
        ("split-lanes nest 1 D 128", "D has 80 elements: none are left behind 128"),
        ("stage nest 1 N 2\nsplit-lanes nest 1 D 64", "is scheduled already"),
    ],
)
def test_refusals(graph, text, reason):
    with pytest.raises(EmitError, match=reason):
        emit(graph, SIZES, schedule=f"{CUT}{text}\nwarps 4")


def test_the_numbers_of_chunks_have_parts():
    """How many chunks there are no array tells: the file holds it where sizes follow from it."""
    graph = bb.fuse(bb.lower(bb.trace(lambda x: bb.sum(x, axis=1), x="M K"))).final
    text = "block M 16, K 16\nchunk nest 1 K 2 at once\nsplit-lanes nest 2 K_chunks 1\nwarps 1\n"
    kernel = emit(graph, dict(M=20, K=40), "float32", schedule=text)
    (found,) = run_interpreted(kernel, dict(x=np.ones((20, 40), "float32"))).values()

    assert (found == 40).all()


def test_small_sizes_of_proofs_are_multiples_of_full_blocks():
    """One nest holds all of K in two parts, which take 17 elements; another has blocks of 16."""
    graph = bb.lower(bb.trace(lambda x, y: (bb.exp(x), bb.exp(y)), x="M K", y="M K"))
    text = "block nest 1 M 16, K 32 whole\nblock nest 2 M' 16, K' 16\n"
    text += "split-lanes nest 1 K 16\nwarps 4\n"
    kernel = emit(graph, dict(M=16, K=32), "float32", schedule=text)
    for seed in range(4):
        for cut in cuts([Side(kernel.tile_program)], 2, np.random.default_rng(seed), DRAWN):
            assert all(cut.setting.sizes[dim] % n == 0 for (dim, _), n in cut.lanes.items())


def test_other_words_are_no_part(graph):
    with pytest.raises(ParseError, match="expected DIM LANES, got 'D in 64'"):
        emit(graph, SIZES, schedule=f"{CUT}split-lanes nest 1 D in 64")


def test_a_nest_that_counts_elements_of_the_dim_stays():
    graph = graph_of(lambda x: bb.max(x * bb.arange(x.shape[-1]), axis=-1), x="M N")
    with pytest.raises(EmitError, match="holds positions along N"):
        emit(
            graph,
            dict(M=9, N=40),
            schedule="block M 4, N 64 whole\nsplit-lanes nest 1 N 32\nwarps 4",
        )


NEST = """
tiles {
  inputs X: [M, N]
  outputs Y: [M, N], Z: [M]
  nest 1 {
    forall M {
      BODY
    }
  }
}
"""


GROUP = (
    "t1: [M, N] = load X[M, N]",
    "t2: [M] = row_max(t1)",
    "store Z[M] = t2",
    "store Y[M, N] = t1",
)


def test_mutants_of_views_are_caught(monkeypatch):
    old = "whole(self.lanes) if part else ZERO"
    start = scheduled_with(
        parse_tiles(NEST.replace("BODY", "\n      ".join(GROUP))), "block N 64 whole"
    )
    after = SplitLanes().apply(start, Site(1), dim="N", lanes=32)
    assert prove_tiles(start.draft, after.draft, trials=3).equal

    mutated(monkeypatch, split_lanes, old, "ZERO")
    after = SplitLanes().apply(start, Site(1), dim="N", lanes=32)
    assert not prove_tiles(start.draft, after.draft, trials=3).equal


def test_parts_have_names_and_sizes_that_follow():
    halves = Halves("D'", 64)

    assert halves.dims == ("D2_to64", "D2_from64")
    assert [str(rule) for rule in halves.rules] == [
        "|D2_to64| is 64",
        "|D2_from64| is |D| - 64",
    ]
