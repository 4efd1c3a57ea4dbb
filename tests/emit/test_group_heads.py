"""The move group-heads: heads of a group as rows of one tile, its refusals, and where it pays."""

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.emission import check_schedule, emit
from blockbuster.emit.interpret.proof import prove_tiles
from blockbuster.emit.schedule import group_heads
from blockbuster.emit.schedule.group_heads import GroupHeads
from blockbuster.emit.schedule.scheduled import unscheduled
from blockbuster.emit.schedule.script import replayed
from blockbuster.emit.schedule.site import EVERYWHERE
from blockbuster.emit.target.targets import target_of
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.errors import EmitError, ParseError
from blockbuster.runtime.launch import run_batch
from tests.emit.parse_tiles import parse_tiles
from tests.emit.test_move_mutants import mutated

DIMS = dict(q="B H G M D", k="B H N D", v="B H N L")
SIZES = dict(B=1, H=2, G=8, M=1, N=70, D=16, L=24)
GROUPED = "group-heads G for M\n"


def attention(q, k, v):
    return attended((q @ k[:, :, None].swapaxes(-1, -2)) * q.shape[-1] ** -0.5, v)


def attended(s, v):
    return bb.softmax(s, axis=-1) @ v[:, :, None]


def causal(q, k, v):
    s = (q @ k[:, :, None].swapaxes(-1, -2)) * q.shape[-1] ** -0.5
    last = bb.arange(q.shape[-2])[:, None] + (k.shape[-2] - q.shape[-2])
    return attended(bb.where(bb.arange(k.shape[-2]) <= last, s, -np.inf), v)


def alibi(q, k, v, slopes):
    s = (q @ k[:, :, None].swapaxes(-1, -2)) * q.shape[-1] ** -0.5
    distance = bb.arange(q.shape[-2])[:, None] - bb.arange(k.shape[-2])
    return attended(s - slopes[:, :, None, None] * distance, v)


def biased(q, k, b):
    return bb.maximum(q @ k.swapaxes(-1, -2) + b[..., None], 0.0).sum(-1)


def graph_of(fn, **dims):
    return bb.fuse(bb.lower(bb.trace(fn, **(dims or DIMS)))).final


@pytest.fixture(scope="module")
def graph():
    return graph_of(attention)


def drawn(sizes, dims=DIMS):
    random = np.random.default_rng(0)
    shapes = {name: [sizes[d] for d in axes.split()] for name, axes in dims.items()}
    return {name: random.normal(size=shape).astype("float32") for name, shape in shapes.items()}


# values ------------------------------------------------------------------------------


def test_heads_of_all_sizes_are_right_in_the_interpreter():
    groups = (
        (causal, DIMS, ((1, 2), (3, 1), (8, 1), (16, 1), (17, 2))),
        (alibi, {**DIMS, "slopes": "H G"}, ((8, 3),)),
    )
    jobs, wanted = [], []
    for fn, axes, shapes in groups:
        program = bb.trace(fn, **axes)
        graph = bb.fuse(bb.lower(program)).final
        for heads, rows in shapes:
            sizes = {**SIZES, "G": heads, "M": rows, "N": 33}
            text = f"{GROUPED}block G 16, N 16, D 16 whole, L 32 whole\nwarps 4"
            inputs = drawn(sizes, axes)
            jobs.append((emit(graph, sizes, "float32", schedule=text), inputs))
            wanted.append(program.numpy(inputs)["out"])
    for made, right in zip(run_batch(jobs), wanted, strict=True):
        np.testing.assert_allclose(made["out"], right, rtol=1e-4, atol=1e-5)


def test_the_schedule_is_proved_down_to_padded_lanes():
    graph = graph_of(biased, q="G M D", k="N D", b="G M")
    sizes = {dim: SIZES[dim] for dim in "GMND"}
    text = f"{GROUPED}block D 16 whole, N 64, G 16\nwarps 4"

    assert check_schedule(graph, text, sizes, trials=2).equal


def test_it_reads_the_keys_of_a_group_once(graph):
    grouped = emit(graph, SIZES)
    apart = emit(graph, SIZES, tiles={"M": 16})

    assert GROUPED not in apart.schedule
    assert 4 * grouped.derivation.steps[-1].costs[1].elements < (
        apart.derivation.steps[-1].costs[1].elements
    )


def test_the_program_reads_back(graph):
    kernel = emit(graph, SIZES)

    assert kernel.tile_program.units == ("B", "H", "M")
    assert parse_tiles(str(kernel.tile_program)) == kernel.tile_program
    assert emit(graph, SIZES, schedule=kernel.schedule).source == kernel.source


# where it pays -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sizes", "pays"),
    [
        (dict(G=8, M=1), True),
        (dict(G=2, M=1), True),
        (dict(G=8, M=4), True),
        (dict(G=17, M=3), True),
        (dict(G=1, M=1), False),
        (dict(G=4, M=4), False),
        (dict(G=8, M=16), False),
        (dict(G=8, M=100), False),
    ],
)
def test_heads_are_rows_where_tiles_of_rows_are_fewer(graph, sizes, pays):
    assert emit(graph, {**SIZES, **sizes}).schedule.startswith(GROUPED) is pays


def test_a_batch_of_single_rows_is_a_matrix():
    graph = graph_of(lambda x, w: x @ w, x="B M K", w="K N")
    text = emit(graph, dict(B=12, M=1, K=64, N=64)).schedule

    assert text.startswith("group-heads B for M\n")


def test_heads_with_keys_of_their_own_stay_apart():
    dims = dict(q="B H M D", k="B H N D", v="B H N L")
    graph = graph_of(lambda q, k, v: bb.softmax(q @ k.swapaxes(-1, -2), axis=-1) @ v, **dims)

    assert "group-heads" not in emit(graph, {d: SIZES[d] for d in "BHMNDL"}).schedule


def test_rows_that_all_heads_share_are_not_taken_apart():
    """What does not differ by heads would be done for one row after the other."""

    def both(q, k, x):
        return q @ k.swapaxes(-1, -2)[:, None], x @ k.swapaxes(-1, -2)

    graph = graph_of(both, q="H G M D", k="H N D", x="H M D")

    assert "group-heads" not in emit(graph, {d: SIZES[d] for d in "HGMND"}).schedule


# refusals ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("group-heads X for M", "no dim X here: B, H, G, M, "),
        ("group-heads M for N", "M is no list-only dim: its blocks have several elements already"),
        ("group-heads G for B", "the blocks of B have one element already"),
        ("group-heads H for M", "would have lanes along|is a dot whose operands both differ by H"),
        ("group-heads G for N", "iterations over N follow each other"),
        ("group-heads G for D", "iterations over D follow each other"),
        ("block M 16, N 16, D 16 whole, L 32 whole\ngroup-heads G for M", "M is cut already"),
        ("chunk nest 1 N 2\ngroup-heads G for M", "loops run in chunks already: group before"),
        ("group-heads G for M\ngroup-heads G for M", "G is no list-only dim"),
    ],
)
def test_refusals(graph, text, reason):
    with pytest.raises(EmitError, match=reason):
        emit(graph, SIZES, schedule=text)


def test_other_words_are_no_pair(graph):
    with pytest.raises(ParseError, match="expected HEADS for ROWS, got 'G M'"):
        emit(graph, SIZES, schedule="group-heads G M")


def reason_of(program, heads="G", rows="M"):
    start = scheduled(program)
    return GroupHeads().why_not(start, EVERYWHERE, heads=heads, rows=rows)


def scheduled(program, text=""):
    sizes = dict.fromkeys("BHGMNDLS", 40)
    return replayed(unscheduled(program, sizes, target_of("sm_90")), text)


def lowered(fn, **dims):
    return lower_to_tiles(bb.fuse(bb.lower(bb.trace(fn, **dims))).final)


def test_dims_of_one_size_stay():
    program = lowered(lambda q, k: q @ k.swapaxes(-1, -2)[:, None], q="H G S D", k="H S D")

    assert reason_of(program, rows="S") == "S and S' have one size: both would change"


def test_sums_over_rows_stay():
    program = lowered(lambda q, k: (q @ k.T).sum(-2), q="G M D", k="N D")

    assert reason_of(program) == "iterations over M follow each other"


def test_sums_over_heads_stay():
    program = lowered(lambda q, k: (q @ k.T).sum(-3), q="G M D", k="N D")

    assert reason_of(program) == "iterations over G follow each other"


NEST = """
tiles {
  inputs X: [G, M, N], U: [G, N], W: [M, N]
  outputs Y: [G, M, N]
  SPACES
  units G
  nest 1 {
    forall G {
      forall M {
        forall N {
          BODY
        }
      }
    }
  }
}
"""


def body(*lines, spaces=""):
    return parse_tiles(NEST.replace("BODY", "\n          ".join(lines)).replace("SPACES", spaces))


BY_COLUMN = body(
    "t1: [N, M] = load X[G, M, N]",
    "t2: [N] = row_max(t1)",
    "t3: [N, M] = t1 - t2",
    "store Y[G, M, N] = t3",
)
SHARED = body("t1: [M, N] = load W[M, N]", "store Y[G, M, N] = t1")
TURNED = body(
    "t1: [N, M] = load X[G, M, N]",
    "t2: [N] = load U[G, N]",
    "t3: [N, M] = t1 * t2",
    "store Y[G, M, N] = t3",
)
PARTS = body(
    "t1: [N] = load U[G, N]",
    "store I1[G, M, N] = t1",
    "t2: [M, N] = load X[G, M, N]",
    "store Y[G, M, N] = t2",
    spaces="workspaces I1: [G, M blocks, N]",
)


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (BY_COLUMN, "t2 is made of all of M"),
        (SHARED, "Y is stored for each of G, and all are the same"),
        (PARTS, "I1 has an entry per block of M"),
        (TURNED, "t2 would have its axes in another order than t3"),
    ],
)
def test_tiles_that_have_no_place_for_other_rows(program, reason):
    assert reason_of(program) == reason


def test_a_broken_predicate_is_caught(monkeypatch):
    mutated(monkeypatch, group_heads, "if value not in found and heads in view.runs:", "if False:")
    start = scheduled(SHARED)
    after = GroupHeads().apply(start, EVERYWHERE, heads="G", rows="M")

    assert not prove_tiles(start.draft, after.draft, trials=4).equal
