"""How a kernel came about: its moves one by one, what each gives, and where it says so."""

import json
from dataclasses import replace
from itertools import pairwise
from math import ceil

import pytest

import blockbuster as bb
from bench.programs import WORKLOADS
from blockbuster.emit.schedule.script import BY_NAME
from blockbuster.emit.schedule.site import EVERYWHERE
from blockbuster.emit.schedule.steps import cost_of
from blockbuster.errors import EmitError
from tests.docs.pages import ROOT
from tests.emit.counting import tile_traffic

SIZES = {"M": 4000, "N": 4096, "D": 64, "L": 64}


def attention(q, k, v):
    return bb.softmax(q @ k.T / 8.0) @ v


FUSED = bb.fuse(bb.lower(bb.trace(attention, q="M D", k="N D", v="N L")))
TEXT = """\
block M 64, N 64, D 64 whole, L 64 whole
chunk nest 1 N 4
warps 4
stage nest 1 N 2
"""


@pytest.fixture(scope="module")
def kernel():
    return bb.emit(FUSED, SIZES, schedule=TEXT)


@pytest.fixture(scope="module")
def steps(kernel):
    return kernel.derivation.steps


def test_the_steps_are_the_lines_of_the_schedule(kernel, steps):
    assert [step.line for step in steps] == kernel.schedule.splitlines()
    assert [step.move.name for step in steps] == ["block", "chunk", "warps", "stage"]


def test_each_step_goes_on_where_the_one_before_ends(kernel, steps):
    assert steps[0].before.moves == ()
    for step, following in pairwise(steps):
        assert following.before == step.after
    assert steps[-1].after.program == kernel.tile_program


def test_it_is_replayed(kernel):
    assert kernel.derivation.replay().draft == kernel.derivation.final.draft


def test_a_replay_that_gives_another_program_is_refused(kernel, steps):
    other = replace(kernel.derivation.final, draft=steps[0].after.draft)

    with pytest.raises(EmitError, match="replaying the moves gives another program"):
        replace(kernel.derivation, final=other).replay()


def test_the_first_half_is_how_the_program_was_fused(kernel):
    assert kernel.derivation.fused is FUSED
    assert bb.emit(FUSED.final, SIZES).derivation.fused is None


def test_of_a_derivation_its_last_snapshot_is_emitted_where_that_costs_least():
    chosen, given = bb.emit(FUSED, SIZES), bb.emit(FUSED.final, SIZES)

    assert chosen.tile_program == given.tile_program
    assert chosen.schedule == given.schedule


def test_it_prints_both_halves_numbered_through(kernel, steps):
    rows = str(kernel.derivation).splitlines()

    assert [int(row.split()[0]) for row in rows] == [*range(1, len(FUSED.steps) + len(steps) + 1)]
    assert rows[0].split()[1] == f"{FUSED.steps[0].rule}:"
    assert rows[-1].split("#")[0].split()[1:] == steps[-1].line.split()


# what each gives ----------------------------------------------------------------------------


def test_nothing_is_counted_before_every_dim_is_cut(steps):
    assert steps[0].costs[0] is None
    assert all(step.costs[1] is not None for step in steps)


def test_programs_are_those_of_the_grids(steps):
    rows = ceil(SIZES["M"] / 64)

    assert steps[0].costs[1].programs == (rows,)
    assert steps[1].costs[1].programs == (4 * rows, rows)


def test_elements_are_those_of_the_traffic(kernel, steps):
    blocks = {"M": 64, "N": 64, "D": 64, "L": 64}
    sizes = {**SIZES, "N_chunk": 4, "N_chunks": 4}
    moved = tile_traffic(kernel.tile_program, sizes, blocks).values()

    assert steps[-1].costs[1].elements == sum(m.elements_loaded + m.elements_stored for m in moved)
    assert steps[1].costs[1].elements > steps[0].costs[1].elements, "what chunks hand on is moved"


def test_nests_that_are_cut_apart_are_counted_apart(steps):
    """A nest of its own blocks: half as many rows in a program, twice as many programs."""
    split = steps[1].after.draft
    halved = replace(
        split.nests[0],
        blocks=tuple(replace(b, lanes=32) if b.dim == "M" else b for b in split.nests[0].blocks),
    )
    other = replace(steps[1].after, draft=replace(split, nests=(halved, *split.nests[1:])))

    assert cost_of(other).programs == (4 * SIZES["M"] // 32, ceil(SIZES["M"] / 64))
    assert cost_of(other).elements > steps[1].costs[1].elements


def test_running_ahead_takes_a_slot_more(steps):
    tile = 64 * 64 * 2
    rows = 64 * 4  # of the second kernel, whose rows change their layout when they are stored
    assert steps[2].costs[1].shared == (2 * tile, rows), "K and V take turns, Q stays"
    assert steps[3].costs[1].shared == (5 * tile, rows), "of K and of V two, Q once"
    deeper = BY_NAME["stage"].apply(steps[3].before, steps[3].applied.site, stages=4)
    assert cost_of(deeper).shared == (9 * tile, rows)


@pytest.mark.parametrize("name", ["attention", "geglu", "grouped-attention", "linear-relu"])
def test_shared_memory_is_what_a_compiler_takes_on_hopper(name):
    """What Triton took when the committed records were made, for whole blocks in float16."""
    golden = json.loads((ROOT / "tests" / "golden" / "targets.json").read_text("utf-8"))
    case = f"{name} timed float16 default"
    (record,) = (r for r in golden["records"] if (r["case"], r["target"]) == (case, "sm_90"))
    workload = WORKLOADS[name]
    program = bb.fuse(bb.lower(bb.trace(workload.fn, **workload.inputs))).final
    kernel = bb.emit(program, workload.sizes_of("timed"), "float16", "sm_90", tiles={})
    ours = kernel.derivation.steps[-1].costs[1].shared

    assert len(ours) == len(record["functions"])
    for estimate, (_, taken, *_) in zip(ours, record["functions"], strict=True):
        assert estimate == taken or max(estimate, taken) <= 2048  # rows that change their layout


# where it is said ---------------------------------------------------------------------------


def test_the_file_says_which_moves_made_it(kernel):
    head = kernel.source.split('"""')[1]

    assert "These moves made it" in head
    assert all(f"\n    {line}\n" in head for line in kernel.schedule.splitlines())


def test_the_lines_in_a_file_replay_to_that_file(kernel):
    head = kernel.source.split('"""')[1]
    lines = head.partition("replays them.\n\n")[2].partition("\n\n")[0]

    assert bb.emit(FUSED, SIZES, schedule=lines).source == kernel.source


def test_equality_and_text_of_a_kernel_do_not_hold_how_it_came_about():
    kernel = bb.emit(FUSED, SIZES)

    assert kernel == replace(kernel, derivation=None, tile_program=None)
    assert "derivation" not in repr(kernel)
    assert "TileProgram" not in repr(kernel)
    assert EVERYWHERE in {step.applied.site for step in kernel.derivation.steps}
