"""The plan of a whole program as data of the explorer's page, and simulations of a sample."""

import re

import pytest

import blockbuster as bb
from blockbuster.frontend import lower
from blockbuster.simulation import simulate
from blockbuster.view.explorer import simulation
from blockbuster.view.explorer.plan import choice_for, choices_of, gains, plan_data, plan_of
from blockbuster.view.explorer.setting import Setting
from blockbuster.view.explorer.simulation import sampled
from blockbuster.view.explorer.steps import SAFE
from blockbuster.view.render import can_render
from tests.view.explorer_cases import NOTHING, data

SIZES = {"M": 4096, "K": 4096, "N": 4096}
SETTING = Setting(sizes=SIZES)


def normed(x, w):
    return bb.layer_norm(x @ w)


@pytest.fixture(scope="module")
def program():
    return bb.trace(normed, x="M K", w="K N")


@pytest.fixture(scope="module")
def divided(program):
    """The plan of a product and a norm that are two kernels."""
    plan, missing = plan_of(program, SIZES, SETTING)
    assert not missing
    return plan


def test_boxes_say_what_the_plan_explains(divided):
    shown = plan_data(divided, [NOTHING] * 3, alone=False)
    explained = " ".join(divided.explain().split())

    assert len(shown["parts"]) == len(divided.divided.parts) == 2
    assert sum(part["us"] for part in shown["parts"]) == pytest.approx(divided.total_us)
    for part in shown["parts"]:
        assert part["computes"] in explained
        assert f"limited by {' and '.join(part['limits'])}" in explained
    for reason in (*shown["stored"], *shown["search"]):
        assert " ".join(reason.split()) in explained
    if can_render("svg"):
        assert re.findall(r'data-part="(\d+)"', shown["picture"]) == ["1", "2"]


def test_each_box_leads_to_the_derivation_of_its_kernels(divided, program):
    parts = plan_data(divided, [NOTHING] * 3, alone=False)["parts"]
    pages = [page for part in parts for page in part["pages"]]

    assert pages == [1, 2], "page 0 is the derivation of the whole program"
    assert choice_for(lower(program), divided) is None
    for fused, choice in choices_of(divided):
        assert choice.considered.best.graph == choice.derivation.final
        assert choice.derivation.start == fused.graph


def test_a_program_in_one_part_is_chosen_once():
    program = bb.trace(lambda x, w: bb.gelu(x @ w), x="M K", w="K N")
    plan, _ = plan_of(program, SIZES, SETTING)
    choice = choice_for(lower(program), plan)

    assert choice is not None
    assert choice.considered is plan.divided.considered[0]
    assert plan_data(plan, [NOTHING], alone=True)["parts"][0]["pages"] == [0]


def test_a_part_tells_what_the_steps_to_its_kernels_gave():
    shown = data("attention")
    steps = shown["steps"]
    gained = gains(3, shown)

    assert [gain["text"] for gain in gained] == [step["born"] for step in steps if step["born"]]
    assert all(gain["page"] == 3 for gain in gained)
    assert all(steps[gain["step"] - 1]["born"] == gain["text"] for gain in gained)


def test_steps_that_lead_to_no_kernel_gave_nothing():
    """Steps 2 and 4 lead on from what was chosen, and past it; step 3 makes it safe."""
    def step(start, born, rule="fuse-maps"):
        return {"from": start, "born": born, "rule": rule}

    steps = [step(0, "first"), step(1, "further"), step(1, "stable", SAFE), step(2, "past")]
    shown = {"steps": steps, "chosen": {"state": 1}}

    assert [gain["text"] for gain in gains(0, shown)] == ["first", "stable"]


def test_a_plan_that_cannot_be_made_says_why(program):
    plan, missing = plan_of(program, {"M": 4}, SETTING)

    assert plan is None
    assert "no plan of the whole program" in missing
    assert "no size given for K, N" in missing


def test_much_to_simulate_is_sampled_from_the_grid(monkeypatch):
    program = bb.trace(lambda x, w: x @ w, x="B M K", w="B K N")
    kernel = bb.emit(bb.fuse(bb.lower(program)).final, {"B": 8, "M": 256, "K": 64, "N": 128})
    whole, none, _ = sampled(kernel)
    assert none == {}
    assert whole == kernel

    monkeypatch.setattr(simulation, "MOST_TILES", 40)
    smaller, shrunk, moved = sampled(kernel)
    assert moved <= 40 * simulation.TILE
    assert shrunk == {"B": 2}
    assert smaller.sizes == {**kernel.sizes, **shrunk}
    shown = simulation.simulation_data(kernel, "h200")
    assert shown["sample"] == [["B", 2, 8]]
    assert shown["shortened"] == []
    assert shown["time"] == pytest.approx(simulate(smaller, launch="graph").time_us, abs=1e-3)

    monkeypatch.setattr(simulation, "MOST_TILES", 0)
    assert "in the fewest programs" in simulation.simulation_data(kernel, "h200")["missing"]


def test_dims_that_programs_loop_over_are_halved_last(monkeypatch):
    def attend(q, k, v):
        return bb.softmax(q @ k.swapaxes(-1, -2)) @ v

    program = bb.trace(attend, q="B S D", k="B S D", v="B S D")
    kernel = bb.emit(bb.fuse(bb.lower(program)).final, {"B": 2, "S": 512, "D": 32})
    alone = {"B": 1}
    whole = sampled(kernel)[2]
    monkeypatch.setattr(simulation, "TILE", whole // 2)
    monkeypatch.setattr(simulation, "MOST_TILES", 1)
    assert sampled(kernel)[1] == alone, "each program does as much as before"

    monkeypatch.setattr(simulation, "TILE", whole // 8)
    smaller, shrunk, moved = sampled(kernel)
    assert shrunk == {**alone, "S": 256}
    assert moved == whole // 8, "a quarter of the scores of one batch"
    shown = simulation.simulation_data(kernel, "h200")
    assert shown["shortened"] == ["S"]
    assert shown["time"] == pytest.approx(simulate(smaller, launch="graph").time_us, abs=1e-3)
