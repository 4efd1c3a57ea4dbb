"""The times of looking at a schedule: which schedules are looked at, and a line for each case."""

import json
import sys

import pytest

pytest.importorskip("torch", reason="torch is not installed: pip install torch")

from bench import price_times
from bench.price_times import PARTS, Times, summary


def test_the_command_writes_a_line_for_each_case(tmp_path, monkeypatch, capsys):
    out = tmp_path / "times.jsonl"
    command = ["price_times", "--only", "gemm_chain/G1", "--out", str(out)]
    monkeypatch.setattr(sys, "argv", command)

    assert price_times.main() == 0
    (line,) = map(json.loads, out.read_text(encoding="utf-8").splitlines())
    assert line["key"] == "gemm_chain/G1"
    assert line["schedules"] > 2
    assert line["choice_schedules"] > 10
    assert all(0 < line["milliseconds"][part] < 1000 for part in PARTS)
    assert "1 case, medians" in capsys.readouterr().err


def test_a_summary_has_medians_over_cases():
    parts = [dict.fromkeys(PARTS, number) for number in (1.0, 2.0, 9.0)]
    found = [Times("a/b", 0.5, 10, 4, each) for each in parts]

    assert summary(found).splitlines()[0] == "3 cases, medians of their medians:"
    assert "in all: 2.00 ms, at most 9.00" in summary(found)
    assert "50.0 ms for each of 30 schedules" in summary(found)
