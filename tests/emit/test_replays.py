"""Replays: scripts that begin alike are replayed from where they part, with the same result."""

import pytest

from blockbuster.emit.schedule.base import Move
from blockbuster.emit.schedule.replays import Replays
from blockbuster.emit.schedule.scheduled import unscheduled
from blockbuster.emit.schedule.script import replayed
from blockbuster.errors import EmitError, ParseError
from tests.tuning.benches import family_of, product

SCRIPT = ("block M 64, K 64, N 64", "warps 4", "stage nest 1 K 3")


@pytest.fixture(scope="module")
def bare():
    (file,) = family_of(product()).at(dict(M=64, K=8192, N=64)).files
    made = file.considered.best.scheduled
    return unscheduled(made.start, made.known, made.target)


@pytest.fixture
def counted(monkeypatch):
    """The lines that moves were applied for, one by one."""
    lines, tried = [], Move.tried

    def note(self, scheduled, site, **args):
        lines.append(self.name)
        return tried(self, scheduled, site, **args)

    monkeypatch.setattr(Move, "tried", note)
    return lines


def test_a_script_is_replayed_as_its_text_is(bare):
    assert Replays(bare).after(SCRIPT) == replayed(bare, "\n".join(SCRIPT))


def test_a_line_that_differs_is_replayed_with_those_behind_it(bare, counted):
    replays = Replays(bare)
    replays.after(SCRIPT)
    counted.clear()
    other = (*SCRIPT[:2], "stage nest 1 K 4")
    made = replays.after(other)

    assert counted == ["stage"]
    assert made.schedule.splitlines()[-1] == "stage nest 1 K 4"
    counted.clear()
    assert replays.after(other) is made
    assert replays.after(()) is bare
    assert replays.after((SCRIPT[0], "warps 8", SCRIPT[2])).draft.nests[0].warps == 8
    assert counted == ["warps", "stage"]


def test_a_line_that_does_not_apply_says_which_one(bare):
    replays = Replays(bare)
    with pytest.raises(EmitError, match=r"line 3 of the schedule, 'stage nest 1 M 3'"):
        replays.after((*SCRIPT[:2], "stage nest 1 M 3"))
    with pytest.raises(ParseError, match="line 2 of the schedule: unknown move"):
        replays.after((SCRIPT[0], "wraps 4"))
    assert replays.after(SCRIPT) == replayed(bare, "\n".join(SCRIPT))


def test_schedules_that_nobody_asks_for_are_forgotten(bare, counted):
    replays = Replays(bare, most=3)
    replays.after(SCRIPT)
    for stages in (4, 5):
        replays.after((*SCRIPT[:2], f"stage nest 1 K {stages}"))
    counted.clear()
    replays.after(SCRIPT[:2])
    assert counted == []  # it was asked for each time
    replays.after(SCRIPT)
    assert counted == ["stage"]
