"""Simulated times beside stored ones: what is chosen, and what is said of it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

import blockbuster as bb
from bench.costs import simulate_check
from bench.costs.measured import records_of
from bench.costs.simulate_check import FIRST, chosen, compared, said

ROOT = Path(__file__).parents[2]
STORED = ROOT / "bench" / "results" / "2026-11-22-h200-costs" / "pairs.jsonl"


@pytest.fixture(scope="module")
def records():
    return list(records_of(STORED).values())


def test_the_first_schedules_of_each_workload_are_compared(records):
    found = chosen(records, FIRST)

    assert len(found) >= 40
    assert {record["part"] for record in found} == {"fit", "judge"}
    assert all(record["number"] < FIRST for record in found)
    assert not any(kernel["spilled"] for record in found for kernel in record["kernels"])


@pytest.mark.parametrize("key", ["chain-G1#1", "softmax-16384#1", "few"])
def test_short_kernels_are_near(records, key):
    """Those that took no part in the fit, and one that did."""
    wanted = "matmul-few-rows#1" if key == "few" else key
    (record,) = (record for record in records if record["key"] == wanted)
    row = compared(record, bb.machine("h200"))

    assert max(map(abs, row.errors)) < 0.3
    assert row.memory > 0
    assert 0 < row.terabytes < 4.8  # what the device's memory can


def test_the_share_that_is_near_is_said(records):
    (record,) = (record for record in records if record["key"] == "chain-G1#1")
    row = compared(record, bb.machine("h200"))
    far = replace(row, cold_simulated=10 * row.cold, part="fit")
    lines = said([row, far]).splitlines()

    assert len(lines) == 1 + 2 + 6
    assert "all    cold: 1 of 2 within 25%" in lines[-2]


def test_a_file_without_times_is_said_to_have_none(tmp_path, monkeypatch, capsys):
    stored, rows = tmp_path / "pairs.jsonl", tmp_path / "rows.csv"
    refused = {"key": "a#0", "state": "refused", "number": 0, "kernels": []}
    stored.write_text(json.dumps(refused) + "\n", encoding="utf-8")
    words = ["simulate_check", "--measured", str(stored), "--csv", str(rows)]
    monkeypatch.setattr("sys.argv", words)

    assert simulate_check.main() == 1
    assert "has no timed schedule to compare" in capsys.readouterr().out
    assert not rows.exists()
