"""What `bb.emit` writes: a graph as it is given, and of a derivation what costs least."""

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.ir.parse import parse
from blockbuster.runtime.launch import run_interpreted
from blockbuster.selection.choice import Fused

SIZES = {"M": 4096, "K": 4096, "F": 11008}


def geglu(x, w, v, o):
    return (bb.gelu(x @ w) * (x @ v)) @ o


def normed(x, w):
    return bb.layer_norm(x) @ w


GEGLU = bb.fuse(bb.lower(bb.trace(geglu, x="M K", w="K F", v="K F", o="F K")))
NORMED = bb.fuse(bb.lower(bb.trace(normed, x="M K", w="K N")))


@pytest.fixture(scope="module")
def kernels():
    return bb.emit(GEGLU, SIZES)


def test_of_a_derivation_what_costs_least_is_written(kernels):
    """The last snapshot makes both products again for every block of the result's columns."""
    mega = bb.emit(GEGLU.final, SIZES)

    assert (kernels.kernels, mega.kernels) == (2, 1)
    assert kernels.cost().time_us * 8 < mega.cost().time_us
    assert kernels.chosen.startswith("snapshot 1, ")
    assert "\n    for snapshot 1\n" in kernels.source
    assert "\n    for snapshot" not in mega.source


def test_it_is_what_jit_chooses(kernels):
    best = Fused(GEGLU.start).consider(SIZES, "float16", "sm_90").best

    assert kernels.schedule == f"for snapshot 1\n{best.scheduled.schedule}"
    assert kernels.tile_program == best.program


def test_its_derivation_ends_with_what_was_chosen(kernels):
    fused = kernels.derivation.fused

    assert fused.final == GEGLU.snapshots[0]
    assert fused.steps[-1].rule == GEGLU.steps[len(fused.steps) - 1].rule
    assert len(fused.steps) < len(GEGLU.steps)


def test_forms_beside_the_snapshots_are_chosen_too():
    kernel = bb.emit(NORMED, {"M": 4096, "K": 8192, "N": 8192})

    assert "statistics apart" in kernel.chosen
    assert kernel.derivation.fused.steps[-1].rule == "materialize"
    assert bb.safe(kernel.derivation.fused.final) == kernel.derivation.graph


def test_its_schedule_replays_on_the_program_that_it_names(kernels):
    again = bb.emit(GEGLU, SIZES, schedule=kernels.schedule)

    assert again.source == kernels.source
    with pytest.raises(bb.EmitError, match="no dim Q") as caught:
        bb.emit(GEGLU, SIZES, schedule="for snapshot 1; block Q 32; warps 4")
    assert "applied to snapshot 1" in caught.value.__notes__[0]


def test_a_schedule_that_names_no_program_is_for_the_final_one(kernels):
    mega = bb.emit(GEGLU.final, SIZES)

    assert bb.emit(GEGLU, SIZES, schedule=mega.schedule).source == mega.source
    with pytest.raises(bb.EmitError, match="no dim Q") as caught:
        bb.emit(GEGLU, SIZES, schedule="block Q 32; warps 4")
    assert "applied to derivation.final" in caught.value.__notes__[0]


def test_tiles_and_chunks_are_for_what_was_chosen(kernels):
    assert bb.emit(GEGLU, SIZES, tiles={"M": 64}).tiles["M"] == 64
    with pytest.raises(ValueError, match="unknown dim 'Z' in tiles"):
        bb.emit(GEGLU, SIZES, tiles={"Z": 64})
    with pytest.raises(ValueError, match="these, not both"):
        bb.emit(GEGLU, SIZES, tiles={"M": 64}, schedule=kernels.schedule)


def test_a_program_that_nothing_fused_is_emitted_from_its_derivation():
    sizes = {"M": 64, "K": 64, "N": 64}
    start = bb.lower(bb.trace(lambda x, w: bb.relu(x @ w), x="M K", w="K N"))
    unfused = bb.fuse(start, rules=())
    kernel = bb.emit(unfused, sizes)

    assert kernel.kernels > 1
    assert bb.emit(unfused, sizes, schedule=kernel.schedule).source == kernel.source


def test_sizes_of_a_derivation_are_judged_like_those_of_a_graph():
    with pytest.raises(ValueError, match="no size given for F"):
        bb.emit(GEGLU, {"M": 64, "K": 64})
    with pytest.raises(ValueError, match="unknown dim 'Z' in sizes"):
        bb.emit(GEGLU, {**SIZES, "Z": 1})


def test_the_size_of_an_axis_that_is_only_read_in_slices_is_known_where_it_was_fixed():
    """No array shows 3 taps: each is read by itself."""

    def taps(x, w):
        return sum(x[i : x.shape[0] - 2 + i] @ w[i] for i in range(3))

    graph = bb.lower(bb.trace(taps, x="T C", w="W=3 C O"))
    sizes = {"T": 34, "C": 16, "O": 16}

    assert bb.emit(graph, sizes).sizes["W"] == 3
    assert bb.parse(graph.show()) == graph
    with pytest.raises(ValueError, match=r"^W is 5, but the function was traced for 3\n") as error:
        bb.emit(graph, {**sizes, "W": 5})
    assert str(error.value).endswith('without a number to emit it for any size: x="W"')
    free = bb.lower(bb.trace(taps, x="T C", w="W C O"))
    assert bb.emit(free, {**sizes, "W": 5}).sizes["W"] == 5


def test_the_head_of_a_file_takes_exponentials_under_the_maximum_that_its_kernel_takes():
    def softmax_sum(x, w):
        return bb.softmax(x) @ w

    derivation = bb.fuse(bb.lower(bb.trace(softmax_sum, x="M N", w="N L")))
    head = bb.emit(derivation.final, {"M": 4096, "N": 8192, "L": 64}).source.split('"""')[1]

    assert "t6 = maximum(t1, t5)" in head
    assert "t7 = sub0(t4, t6)" in head
    assert "# t2 is rescaled to the new t1 before" in head


RELABELED = """
graph(W: M,N[M,N]) {
  E = map M (w in !W) {
    p = map N (a in !w) { r = row_max(a)  yield r }
    q = relabel N -> N' (!p)
    e = reduce max N' (!q)
    yield e
  }
  return E
}
"""


@pytest.mark.parametrize("tiles", [None, {"N": 16}])
@pytest.mark.interpreter
def test_what_is_stored_by_blocks_of_a_dim_is_loaded_by_blocks_of_its_other_name(tiles):
    """Each kernel knows its own name alone."""
    w = np.random.default_rng(0).integers(-9, 9, (20, 40)).astype("float32")

    kernel = bb.emit(parse(RELABELED), {"M": 20, "N": 40}, "float32", tiles=tiles)
    (found,) = run_interpreted(kernel, {"W": w}).values()

    assert kernel.kernels == 2
    assert (found == w.max(1)).all()
