"""Which kernels leave room in shared memory for later ones."""

from dataclasses import replace
from pathlib import Path

import pytest

from blockbuster.emit.tile import room
from blockbuster.emit.tile.program import Issue, statements
from blockbuster.emit.tile.waits import Wait
from tests.emit.test_overlap import graph, scheduled  # noqa: F401

WAITS, AHEAD = "waits", "ahead"

CASES = (
    ("plain; waits ahead", [True, False]),
    ("waits; waits ahead", [True, False]),
    ("plain; ahead", [False, False]),  # it begins when all before has ended
    ("ahead; waits ahead", [False, False]),  # it has that room for itself
    ("plain; waits", [False, False]),  # that needs none
    ("plain; waits; waits ahead", [True, True, False]),  # or the second would find none
    ("plain; waits; ahead", [False, False, False]),
    ("plain; plain; waits ahead", [False, True, False]),
    ("plain; waits ahead; waits; waits ahead", [True, False, True, False]),
    ("waits ahead", [False]),
)


@pytest.fixture
def nest_of(graph):  # noqa: F811
    program = scheduled(graph, "stage nest 1 K 2").tile_program
    (nest, *_), (load, *_) = program.nests, _issues(program.nests[0])
    parts = {WAITS: Wait(), AHEAD: load}
    return lambda words: replace(nest, body=tuple(parts[w] for w in words.split() if w in parts))


def _issues(nest):
    return [stmt for stmt in statements(nest.body) if isinstance(stmt, Issue)]


def found(nest_of):
    return [[*room.leaving_room([*map(nest_of, words.split("; "))])] for words, _ in CASES]


def test_kernels_without_tiles_ahead_leave_room_for_dependent_ones_with_them(nest_of):
    assert found(nest_of) == [right for _, right in CASES]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("wanted and not ahead", "wanted"),
        ("(ahead or wanted)", "ahead"),
        ("(ahead or wanted)", "wanted"),
        ("is_dependent(nest) and ", ""),
        ("reversed(nests)", "nests"),
    ],
)
def test_a_wrong_rule_is_caught(monkeypatch, nest_of, old, new):
    text = Path(room.__file__).read_text(encoding="utf-8")
    assert old in text
    wrong = {}
    exec(compile(text.replace(old, new), room.__file__, "exec"), wrong)
    monkeypatch.setattr(room, "leaving_room", wrong["leaving_room"])
    assert found(nest_of) != [right for _, right in CASES]
