"""How often a body waits for its loads, and which of them are asked for before dots."""

import types
from dataclasses import replace
from pathlib import Path

import pytest

import blockbuster as bb
from blockbuster.costs import time_of, waits, work_of
from blockbuster.machines import machine

MEET = "meet"


def walked(*events, of=waits):
    """The waits of a body: ("load", instructions before, of an operand), ("dot", passed), MEET."""
    found = of.Waits()
    for event in events:
        match event:
            case "load", instructions, to_dots:
                found.load(instructions, to_dots=to_dots)
            case "dot", passed:
                found.dot(passed=passed)
            case _:
                found.meet()
    return found.turns, found.late


TOGETHER = ("load", 0, False), ("load", 5, False)
APART = ("load", 0, False), MEET, ("load", 5, False)
BEHIND = ("dot", False), ("load", 7, False), ("load", 9, False)
HIDDEN = ("dot", False), MEET, ("load", 7, False)
OPERAND = ("load", 0, True), ("dot", False), ("load", 7, False)
AGAIN = *BEHIND, MEET, ("dot", False), ("load", 11, False)
PASSED = ("load", 0, False), ("dot", True), ("load", 7, False)


@pytest.mark.parametrize(
    ("events", "turns", "late"),
    [
        (TOGETHER, 1, 0),
        (APART, 2, 0),
        (BEHIND, 0, 7),
        (HIDDEN, 1, 0),
        (OPERAND, 1, 7),
        (PASSED, 1, 7),
        (AGAIN, 0, 7),
        ((("dot", False), ("load", 0, False)), 0, 1),
        ((("load", 0, False), *BEHIND), 1, 0),
    ],
)
def test_loads_arrive_together_unless_warps_meet_between_them(events, turns, late):
    assert walked(*events) == (turns, late)


MUTANTS = [
    ("if not self._asked and self._dotted:", "if self._dotted:", (("load", 0, False), *BEHIND)),
    ("self.late = self.late or max(1, instructions)", "self.late = instructions", AGAIN),
    ("elif not self._asked:", "else:", TOGETHER),
    ("self._arriving |= to_dots", "pass", OPERAND),
    ("if self._arriving or passed:", "if self._arriving:", PASSED),
    ("self._dotted = True", "pass", BEHIND),
    ("self._asked = self._dotted = self._arriving = False", "self._asked = False", HIDDEN),
]


@pytest.mark.parametrize(("text", "other", "events"), MUTANTS)
def test_a_change_is_caught(text, other, events):
    source = Path(waits.__file__).read_text(encoding="utf-8")
    assert text in source
    changed = types.ModuleType(waits.__name__)  # dataclasses look it up
    exec(compile(source.replace(text, other), "changed", "exec"), vars(changed))
    assert walked(*events, of=changed) != walked(*events)


def test_a_program_waits_once_for_all_it_loads():
    """It begins but once, and ``begin`` of the coefficients was fitted to that."""
    found = waits.Waits(turns=2, late=7)
    assert found.of(looped=True) is found
    assert found.of(looped=False) == waits.Waits(turns=1)
    assert waits.Waits(late=7).of(looped=False) == waits.Waits(turns=1)
    assert waits.Waits().of(looped=False) == waits.Waits()


def soft_labels(x, w, target):
    z = x @ w
    return bb.sum(bb.exp(z) * target, axis=-1)


def work_for(text):
    """Of a product whose results meet a matrix that does not run ahead, in a loop over columns."""
    graph = bb.fuse(bb.lower(bb.trace(soft_labels, x="M K", w="K V", target="M V"))).final
    made = bb.emit(graph, dict(M=1024, K=128, V=8192), "float16", schedule=text)
    (work,) = work_of(made.tile_program, made.sizes, made.target)
    return work


def loop_of(text):
    """The loop of that kernel."""
    (phase,) = (phase for phase in work_for(text).phases if phase.dims)
    return phase


@pytest.mark.parametrize(
    ("rows", "stages", "turns", "late"), [(64, 3, 0, True), (64, 0, 1, True), (16, 0, 1, True)]
)
def test_what_meets_a_product_is_asked_for_before_it(rows, stages, turns, late):
    """Its operand, where it does not run ahead, takes a wait of its own."""
    ahead = f"; stage nest 1 V {stages}" if stages else ""
    phase = loop_of(f"block M {rows}, K 128 whole, V 64; warps 4{ahead}")
    assert (phase.waits, phase.late > 0) == (turns, late)


def test_a_tile_that_takes_another_layout_is_exchanged_once_for_each_round():
    assert loop_of("block M 64, K 128 whole, V 32; warps 4; stage nest 1 V 3").exchanges == 2


def test_what_stands_before_a_late_load_hides_it():
    phase = loop_of("block M 64, K 128 whole, V 64; warps 4; stage nest 1 V 3")
    before = phase.late / phase.instructions
    assert 0 < before < 1
    assert phase.exposed(coming=3.0, own=1.0) == pytest.approx(3.0 - before)
    assert phase.exposed(coming=before / 2, own=1.0) == 0
    assert replace(phase, late=0).exposed(coming=3.0, own=1.0) == 0


def test_a_late_load_costs_what_is_not_hidden():
    work = work_for("block M 64, K 128 whole, V 32; warps 4; stage nest 1 V 3")
    none = replace(work, phases=tuple(replace(phase, late=0) for phase in work.phases))
    on = machine("h200")
    assert time_of(work, on).seconds > time_of(none, on).seconds
