"""Where a compiler refuses a snapshot, other forms of it compete with the other snapshots."""

import re
from itertools import pairwise

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.emit.kernel import written
from blockbuster.emit.target.compiler import compiled_entry
from blockbuster.emit.target.load import load_module
from blockbuster.emit.target.shared_base import bases_of_two_swizzles
from blockbuster.emit.target.targets import target_of
from blockbuster.emit.tile.tiling import tiling_of
from blockbuster.emit.tile.uses import SWIZZLED, Uses
from blockbuster.selection.choice import Fused
from blockbuster.selection.contest import best_of
from blockbuster.selection.priors import PRIORS
from tests.compile.functions import normal
from tests.compile.test_refusals import refusing  # noqa: F401  a fixture

NEAR, TRIED = PRIORS.near_programs_factor, PRIORS.schedules_tried

SIZES = {"M": 64, "K": 64, "N": 33, "L": 8}


def chain(dtype="float16", **sizes):
    """``(x @ a) @ w`` with a narrow second result, and how it is considered."""
    dims = {"x": "M K", "a": "K N", "w": "N L"}
    fused = Fused(bb.lower(bb.trace(lambda x, a, w: (x @ a) @ w, **dims)))
    return fused, lambda: fused.consider({**SIZES, **sizes}, dtype, "sm_90")


def all_of(considered):
    return {choice.name: choice for choice in (considered.best, *considered.others)}


def tensors(torch, dtype):
    shapes = (64, 64), (64, 33), (33, 8)
    return [torch.from_numpy(a).to(getattr(torch, dtype)) for a in normal(*shapes)]


# which forms there are -----------------------------------------------------------


def test_nothing_but_snapshots_is_considered_before_a_refusal():
    _, consider = chain()
    considered = consider()

    assert set(all_of(considered)) == {"snapshot 1", "snapshot 2"}
    assert considered.notes == ()


def test_a_refused_snapshot_has_other_forms_and_the_others_have_none():
    fused, consider = chain()
    usual = consider().best
    fused.refuse(usual, "it is wrong")
    found = all_of(consider())

    assert set(found) == {
        "snapshot 1", "snapshot 2 with 8 warps", "snapshot 2 with 64 lanes for L",
    }  # fmt: skip
    more, padded = found["snapshot 2 with 8 warps"], found["snapshot 2 with 64 lanes for L"]
    assert [{n.warps for n in c.scheduled.draft.nests} for c in (more, padded)] == [{8}, {4}]
    assert more.blocks == usual.blocks
    assert padded.blocks == {**usual.blocks, "L": 64}
    assert usual.moved == more.moved == padded.moved  # zeros are not loaded, but computed with
    assert usual.price <= padded.price


def test_warps_are_part_of_the_key():
    fused, consider = chain()
    usual = consider().best
    fused.refuse(usual, "it is wrong")
    more = all_of(consider())["snapshot 2 with 8 warps"]
    fused.refuse(more, "it is wrong, too")

    assert more.key != usual.key
    assert "snapshot 2 with 8 warps" not in all_of(consider())


@pytest.mark.parametrize("rows", [64, 100, 4096])
def test_the_cheapest_form_is_taken(rows):
    fused, consider = chain(M=rows)
    seen = []
    while not seen or seen[-1].snapshot == 2:
        considered = consider()
        assert considered.best is best_of([*all_of(considered).values()])
        seen.append(considered.best)
        fused.refuse(considered.best, "it is wrong")

    costs = [choice.price for choice in seen]
    assert all(later >= cost / NEAR for cost, later in pairwise(costs))
    assert len({choice.key for choice in seen}) == len(seen)


def test_schedules_near_the_default_one_are_tried_before_other_forms():
    fused, consider = chain(M=4096)
    names = []
    while not names or "64 lanes" not in names[-1]:
        best = consider().best
        names.append(best.name)
        fused.refuse(best, "it is wrong")

    assert names[:TRIED] == ["snapshot 2"] * TRIED
    assert len(names) <= 2 * TRIED + 3


def test_warps_cost_nothing_without_dots():
    fused = Fused(bb.lower(bb.trace(lambda x: bb.softmax(x, axis=-1), x="M N")))
    sizes = {"M": 4096, "N": 1000}
    usual = fused.consider(sizes, "float32", "sm_90").best
    fused.refuse(usual, "it is wrong")
    best = fused.consider(sizes, "float32", "sm_90").best

    assert best.key != usual.key
    assert best.moved == usual.moved
    assert best.price == pytest.approx(usual.price, rel=0.05)


def test_all_padded_dots_swizzle_in_one_way():
    """Siblings: a narrow sum, a narrow result, both, and a narrow dim under two names."""
    dims = {"x": "M K", "g": "K R", "h": "R N", "a": "K N", "w": "N L"}
    functions = (
        lambda x, g, h, a, w: (x @ a) * (x @ g)[:, 0:1],
        lambda x, g, h, a, w: x @ a + (x @ g) @ h,
        lambda x, g, h, a, w: bb.layer_norm(x @ a + (x @ g) @ h) @ w,
        lambda x, g, h, a, w: bb.softmax(x @ g, axis=-1)[:, 1:2] * (x @ a) + (x @ g)[:, 0:1],
    )
    sizes = {"M": 176, "K": 88, "R": 8, "N": 132, "L": 20}
    padded = 0
    for function in functions:
        fused = Fused(bb.lower(bb.trace(function, **dims)))
        for _ in range(2):
            considered = fused.consider(sizes, "bfloat16", "sm_90")
            widest = {c.snapshot: c for c in sorted(all_of(considered).values(), key=lanes_of)}
            for choice in (c for c in widest.values() if "64 lanes" in c.name):
                padded += 1
                scheduled = choice.scheduled
                uses = [
                    Uses(nest, tiling_of(scheduled.program, nest))
                    for nest in scheduled.program.nests
                ]
                assert not any(use.dots_of_several_widths() for use in uses), choice.name
            for choice in all_of(considered).values():
                fused.refuse(choice, "it is wrong")
    assert padded > len(functions)


def lanes_of(choice):
    return sum(choice.blocks.values()) if "64 lanes" in choice.name else 0


def test_dims_that_are_summed_are_padded_only_beside_the_others():
    fused = Fused(bb.lower(bb.trace(lambda x, y, z: (x @ y) * ((x @ z) @ y),
                                    x="M K", y="K N", z="K K")))  # fmt: skip
    sizes = {"M": 128, "K": 16, "N": 132}
    usual = next(
        c for c in all_of(fused.consider(sizes, "float16", "sm_90")).values() if c.kernels == 1
    )
    fused.refuse(usual, "it is wrong")
    found = all_of(fused.consider(sizes, "float16", "sm_90"))
    few, more = sorted((c for c in found.values() if "64 lanes" in c.name), key=lanes_of)

    other = [{*c.blocks.items()} - {*usual.blocks.items()} for c in (few, more)]
    assert other[0] < other[1]
    assert few.price <= more.price


def test_exact_dots_are_not_padded():
    fused, consider = chain("float32")
    fused.refuse(consider().best, "it is wrong")

    assert not any("lanes for" in name for name in all_of(consider()))


# what runs -----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_eight_warps_run_where_four_are_refused(refusing, torch, dtype):  # noqa: F811
    launched = refusing(lambda options: options["num_warps"] == 4)
    jitted = bb.jit(lambda x, a, w: (x @ a) @ w, machine="h200", check=False)
    given = tensors(torch, dtype)

    jitted(*given)

    plan = jitted.plan_for(*given)
    assert {options["num_warps"] for options in launched} == {8}
    assert set(re.findall(r"num_warps=(\d+)", plan.source)) == {"8"}
    notes = jitted.report_for(*given).notes
    assert any(re.search(r"no choice: with tiles .* and 4 warps, Triton", note) for note in notes)
    assert notes[-1] == f"taken instead: {plan.files[0].considered.best.name}"
    assert "with 8 warps" in notes[-1]


def test_padded_tiles_run_where_narrow_ones_are_refused(refusing, torch):  # noqa: F811
    def narrow(options):
        return min(n for name, n in options.items() if name.startswith("BLOCK_")) < SWIZZLED

    launched = refusing(narrow)
    jitted = bb.jit(lambda x, a, w: (x @ a) @ w, machine="h200", check=False)
    given = tensors(torch, "float16")

    jitted(*given)

    assert len(launched) == jitted.plan_for(*given).kernels == 1
    assert not narrow(launched[0])
    assert launched[0]["num_warps"] == 4
    assert "64 lanes for D" in jitted.report_for(*given).notes[-1]
    assert "with 64 lanes for D" in jitted.report_for(*given).details.split("note:")[0]


@pytest.mark.interpreter
def test_padded_tiles_give_the_same_numbers():
    fused, consider = chain()
    fused.refuse(consider().best, "it is wrong")
    padded = all_of(consider())["snapshot 2 with 64 lanes for L"]
    kernel = bb.emit(padded.graph, SIZES, "float16", tiles={"L": 64})
    x, a, w = normal((64, 64), (64, 33), (33, 8), dtype="float16")

    assert kernel.tiles["L"] == 64
    wanted = (x.astype(float) @ a) @ w
    np.testing.assert_allclose(kernel(x, a, w), wanted, atol=3e-3 * np.abs(wanted).max())


# what is compiled ----------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_what_is_chosen_shares_no_base(torch, tmp_path, monkeypatch, dtype):
    """What ptxas 12.8 breaks is read from PTX, whatever assembler is there."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    _, consider = chain(dtype)
    best = consider().best

    assert best.kernels == 1
    assert shared_bases(best) == []


def shared_bases(choice):
    """The registers that ptxas 12.8 would lose, of all kernels of a choice."""
    module = load_module(written(choice.scheduled, choice.stable).source)
    made = [compiled_entry(entry, target_of("sm_90"))[0] for entry in module.KERNELS]
    return [base for one in made for base in bases_of_two_swizzles(one.asm["ptx"])]
