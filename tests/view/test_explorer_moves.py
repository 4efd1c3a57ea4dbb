"""The second half of a derivation on the page: the data of its moves."""

from itertools import pairwise

import pytest

import blockbuster as bb
from blockbuster.emit.schedule.script import MOVES
from blockbuster.view.explorer.data import explorer_data
from blockbuster.view.explorer.moves import CLOSING
from blockbuster.view.explorer.setting import Setting
from blockbuster.view.why import lead, why
from tests.emit.parse_tiles import parse_tiles
from tests.view.explorer_cases import data, kernel_of

NAMES = ("attention", "heads", "residual")


def lines(shown, numbers):
    return [shown["strings"][number] for number in numbers]


def text(shown, state):
    return "\n".join([*lines(shown, state["lines"]), ""])


@pytest.mark.parametrize("name", NAMES)
def test_the_moves_are_those_of_the_kernel(name):
    shown, kernel = data(name)["moves"], kernel_of(name)
    moved = [step for step in shown["steps"] if step["move"] != CLOSING]

    assert [step["line"] for step in moved] == kernel.derivation.final.schedule.splitlines()
    assert len(shown["states"]) == len(shown["steps"]) + 1
    assert all(step["lead"] and step["why"] for step in shown["steps"])


@pytest.mark.parametrize("name", NAMES)
def test_the_texts_are_those_of_the_programs_between_the_moves(name):
    shown, kernel = data(name), kernel_of(name)
    states = shown["moves"]["states"]
    between = [kernel.derivation.start, *(step.after for step in kernel.derivation.steps)]
    for state, scheduled in zip(states, between, strict=False):
        assert parse_tiles(text(shown, state)) == scheduled.draft
    assert parse_tiles(text(shown, states[-1])) == kernel.tile_program


@pytest.mark.parametrize("name", NAMES)
def test_lines_that_go_and_come_are_all_that_differs(name):
    shown = data(name)
    states = shown["moves"]["states"]
    for before, after in pairwise(states):
        old, new = (lines(shown, state["lines"]) for state in (before, after))
        gone = {at for begin, end in before["gone"] for at in range(begin, end)}
        come = {at for begin, end in after["come"] for at in range(begin, end)}
        kept = [[line for at, line in enumerate(found) if at not in marked]
                for found, marked in ((old, gone), (new, come))]  # fmt: skip
        assert gone or come
        assert len(kept[0]) == len(kept[1])


def test_costs_are_those_of_the_steps():
    shown, kernel = data("attention")["moves"], kernel_of("attention")
    assert shown["states"][0]["cost"] is None, "nothing is cut before the first move"
    for state, step in zip(shown["states"][1:], kernel.derivation.steps, strict=False):
        cost = step.costs[1]
        assert state["cost"] == {
            "elements": cost.elements,
            "programs": [*cost.programs],
            "shared": [*cost.shared],
        }


def test_every_move_is_proved_and_so_is_the_lowering():
    moves = data("attention", prove=True)["moves"]
    proofs = [moves["lowered"], *(step["proof"] for step in moves["steps"])]

    assert moves["steps"][-1]["move"] == CLOSING
    assert all(proof["equal"] for proof in proofs)
    assert {proof["tier"] for proof in proofs} <= {"A", "B"}


def test_a_page_without_proofs_has_none_of_moves():
    moves = data("residual")["moves"]

    assert moves["lowered"] is None
    assert all(step["proof"] is None for step in moves["steps"])


def test_a_program_without_a_kernel_has_no_moves():
    def opaque(x, w):
        y = x @ w
        return bb.custom(len, y, shape=y.shape) + 1

    program = bb.fuse(bb.lower(bb.trace(opaque, x="M K", w="K N")))

    assert explorer_data(program, Setting(), prove=False)["moves"]["steps"] == []


@pytest.mark.parametrize("move", MOVES, ids=lambda move: move.name)
def test_every_move_says_what_it_does_and_gives(move):
    """The first sentence of its file, and a paragraph that is none of its drawings."""
    assert lead(move).endswith(".")
    assert why(move)[0].isupper()
    assert why(move).endswith(".")
    assert "before " not in why(move)[:10]
