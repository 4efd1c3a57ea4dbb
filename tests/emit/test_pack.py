"""The move pack, and rows of workspaces that begin where wide copies can."""

import re

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.emission import check_schedule, emit
from blockbuster.emit.closing import pad_pitches
from blockbuster.emit.schedule.pack import Pack
from blockbuster.emit.schedule.site import Site
from blockbuster.errors import EmitError
from blockbuster.runtime.launch import run_interpreted
from tests.emit.test_group_heads import attention, graph_of

NETWORK = dict(x="M D", w="D K", v="D K", u="K N")
SIZES = dict(M=20, D=24, K=37, N=40)
BLOCKS = "block M 16, D 16, K 16, N 16\nsplit\n"
PACKED = "pack nest 1 @7\nblock nest 1 D 16, K 16\n"
FIT = "warps 4\n"


def network(x, w, v, u):
    return (bb.relu(x @ w) * (x @ v)) @ u


def inverse(x, w, v, u):
    return bb.reciprocal((x @ w) * (x @ v)) @ u


def unfused(fn):
    return bb.fuse(bb.lower(bb.trace(fn, **NETWORK))).snapshots[0]


@pytest.fixture(scope="module")
def graph():
    return unfused(network)


def numbers(sizes=SIZES):
    random = np.random.default_rng(0)
    shapes = {name: [sizes[d] for d in dims.split()] for name, dims in NETWORK.items()}
    return {name: random.integers(1, 4, shape).astype("float32") for name, shape in shapes.items()}


def run(graph, text, sizes=SIZES):
    kernel = emit(graph, sizes, "float32", schedule=text)
    return run_interpreted(kernel, numbers(sizes))["out"]


# the move --------------------------------------------------------------------------------


def test_arrays_that_are_loaded_together_are_copied_together(graph):
    kernel = emit(graph, SIZES, schedule=BLOCKS + PACKED + FIT)
    first, second, _ = kernel.source.split("@triton.jit")[-3:]

    assert len(kernel.tile_program.nests) == 3
    assert "v_ptr" in first
    assert "w_ptr" in first
    assert "v_ptr" not in second
    assert "w_ptr" not in second


def test_results_are_the_same_as_without_copies(graph):
    x, w, v, u = numbers().values()

    made = run(graph, BLOCKS + PACKED + FIT)
    np.testing.assert_array_equal(made, (np.maximum(x @ w, 0) * (x @ v)) @ u)


def test_it_is_proved(graph):
    text = BLOCKS + PACKED + FIT

    assert check_schedule(graph, text, SIZES, "float32", trials=3).equal


def test_loads_under_way_are_of_the_copy(graph):
    text = f"{BLOCKS}stage nest 1 D 3\npack nest 1 @7\nblock nest 1 D 16, K 16\n{FIT}"
    kernel = emit(graph, SIZES, schedule=text)

    assert re.search(r"issue v .*load I\d", str(kernel.tile_program)) is not None
    assert check_schedule(graph, text, SIZES, "float16", trials=2).equal


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("pack nest 4 @1", "there is no nest 4 @1"),
        ("pack nest 1 @1", "it loads nothing"),
        ("pack nest 2 @5", "I1 is no array of the caller"),
    ],
)
def test_refusals(graph, text, reason):
    with pytest.raises(EmitError, match=reason):
        emit(graph, SIZES, schedule=f"{BLOCKS}{text}\n{FIT}")


def test_arrays_with_heads_stay():
    start = emit(graph_of(attention), dict(B=1, H=2, G=1, M=20, N=20, D=16, L=16))
    reasons = {Pack().why_not(start.derivation.final, Site(1, statement=at)) for at in range(1, 40)}

    assert any("is not read in blocks of two axes" in reason for reason in reasons)
    assert not any(site.nest == 1 for site in Pack().sites(start.derivation.final))


# rows --------------------------------------------------------------------------------------


def test_rows_that_dots_read_are_padded(graph):
    source = emit(graph, SIZES, schedule=BLOCKS + FIT).source

    assert "I1 = empty((M, triton.cdiv(K, 16) * 16), " in source
    assert source.count("mask=mask_m[:, None] & mask_k_padded[None, :]") == 2


def test_the_table_says_which_strides_are_multiples_of_sixteen(graph):
    source = emit(graph, SIZES, schedule=BLOCKS + FIT).source
    multiples = re.findall(r"divisible_by_16=\[(.*?)\]", source, re.DOTALL)

    assert all('"stride_I1_m"' in found for found in multiples)
    assert not any('"stride_w_d"' in found for found in multiples)


def test_full_blocks_need_no_padding(graph):
    source = emit(graph, {**SIZES, "K": 48}, schedule=BLOCKS + FIT).source

    assert "I1 = empty((M, K), " in source
    assert "_padded" not in source


def test_rows_that_no_dot_reads_stay():
    def soft(x, w):
        return bb.softmax(x @ w, axis=-1)

    graph = bb.fuse(bb.lower(bb.trace(soft, x="M D", w="D K"))).snapshots[0]
    source = emit(graph, dict(M=20, D=24, K=37)).source

    assert "_padded" not in source


def test_a_workspace_of_one_number_has_no_rows():
    vector = bb.fuse(bb.lower(bb.trace(lambda x: bb.softmax(x, axis=0), x="N"))).snapshots[0]
    made = emit(vector, dict(N=64), "float32", schedule="block N 16\nwarps 4\n")

    assert any(not buffer.axes for buffer in made.tile_program.workspaces)
    assert all(buffer.pitch == 1 for buffer in made.tile_program.workspaces)




def test_what_lies_behind_a_row_is_zero(monkeypatch):
    graph, (x, w, v, u) = unfused(inverse), numbers().values()
    exact = (1 / ((x @ w) * (x @ v))) @ u
    made = run(graph, BLOCKS + FIT)
    monkeypatch.setattr(pad_pitches, "guarded_stores", lambda program: program)
    spoiled = run(graph, BLOCKS + FIT)

    np.testing.assert_allclose(made, exact, rtol=1e-5)
    assert not np.isfinite(spoiled).all()  # infinity times the zeros of the other operand


@pytest.mark.parametrize("size", [1, 15, 16, 17, 31, 33, 48, 63])
def test_any_number_of_columns(graph, size):
    sizes = {**SIZES, "K": size}
    x, w, v, u = numbers(sizes).values()

    made = run(graph, BLOCKS.replace("K 16", "K 32") + PACKED + FIT, sizes)
    np.testing.assert_array_equal(made, (np.maximum(x @ w, 0) * (x @ v)) @ u)
