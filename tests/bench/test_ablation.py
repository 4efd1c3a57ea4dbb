"""Schedules with one move left out: what falls with it, what stays, and the table of times."""

import json
from dataclasses import asdict

import pytest

pytest.importorskip("torch", reason="torch is not installed: pip install torch")

from bench.ablation import (
    DESCRIPTORS,
    WHOLE,
    Variant,
    considered,
    table,
    variants,
    without,
)
from bench.peers.cases import BY_KEY
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.script import not_complete

KEY = "decode/causal-8192"


@pytest.fixture(scope="module")
def chosen():
    return considered(BY_KEY[KEY])


def start_of(found):
    scheduled = found.best.scheduled
    return Scheduled(scheduled.start, scheduled.start, scheduled.sizes, scheduled.target)


def test_lines_that_need_the_move_fall_with_it(chosen):
    text = chosen.best.scheduled.schedule
    made, fell = without(start_of(chosen), text, "chunk")

    assert "chunk nest" in text
    assert "chunk" not in made.schedule
    assert any("nest 2" in line for line in fell)  # what combines the chunks is not there
    assert not not_complete(made)


def test_everything_else_stays(chosen):
    text = chosen.best.scheduled.schedule
    made, fell = without(start_of(chosen), text, "stage")

    kept = [line for line in text.splitlines() if not line.startswith("stage")]
    assert made.schedule.splitlines() == kept
    assert not fell
    made, fell = without(start_of(chosen), text, "descriptors")
    assert made.schedule == text.replace(DESCRIPTORS, "")


def test_each_move_is_left_out_once(chosen):
    found = list(variants(KEY, chosen))
    whole, others = found[0], found[1:]

    assert whole.left_out == WHOLE
    assert whole.schedule == chosen.best.scheduled.schedule
    assert {"chunk", "stage"} <= {one.left_out for one in others}
    assert all(bool(one.source) is not bool(one.reason) for one in found)
    assert "warps" not in {one.left_out for one in others}


def test_the_table_has_ratios_and_reasons(tmp_path):
    made = [
        Variant(KEY, WHOLE, estimate=10.0, source="x"),
        Variant(KEY, "stage", estimate=15.0, source="y"),
        Variant(KEY, "chunk", fell=("overlap nest 2",), reason="no | warps"),
    ]
    lines = "".join(json.dumps(asdict(one)) + "\n" for one in made)
    (tmp_path / "variants.jsonl").write_text(lines, encoding="utf-8")
    times = {"key": KEY, "times": {WHOLE: 20.0, "stage": 50.0}, "failed": {"chunk": "none"}}
    (tmp_path / "times.jsonl").write_text(json.dumps(times) + "\n", encoding="utf-8")

    title, _, *lines = table(tmp_path).splitlines()
    rows = lines[2:]
    assert title.startswith("# ")  # a page of the site needs one
    assert rows[0] == f"| {KEY} | {WHOLE} | 10.0 us | 20.0 us |  |"
    assert rows[1] == f"| {KEY} | stage | 1.50 | 2.50 |  |"
    assert rows[2] == f"| {KEY} | chunk | no / warps | none | overlap nest 2 |"
