"""Choices as files, which of two sets differ, and the table of their times."""

import json
from dataclasses import replace

import pytest

pytest.importorskip("torch", reason="torch is not installed: pip install torch")

from bench.choices import Chosen, asked_for, chosen, differing, lines_of, main, make, read, table
from bench.peers.cases import BY_KEY, CASES

KEY = "gemm_chain/G1"


@pytest.fixture(scope="module")
def g1():
    return chosen(KEY, "sm_90")


def test_a_choice_is_a_file_with_its_schedule(g1):
    assert g1.key == KEY
    assert g1.schedule.startswith("block ")
    assert "def launch(" in g1.source
    assert 1 < g1.estimate < 20


def test_what_has_no_file_says_why():
    found = chosen("float8/decode-8192", "sm_80")

    assert (found.schedule, found.source) == ("", "")
    assert found.reason


def test_inputs_that_a_case_declares_constant_are():
    key = "constants/odd512-128"

    assert "def prepare(" in chosen(key, "sm_90").source


def test_choices_are_kept_and_made_once(tmp_path, g1, monkeypatch):
    path = tmp_path / "choices.jsonl"
    make(path, [KEY], "sm_90", workers=1)
    first = path.read_text(encoding="utf-8")

    make(path, [KEY], "sm_90", workers=1)

    assert path.read_text(encoding="utf-8") == first
    assert read(path) == {KEY: g1}


def test_cases_are_asked_for_by_suite_or_name():
    assert asked_for(["gemm_chain/G1"]) == ["gemm_chain/G1"]
    assert asked_for(["gemm_chain"]) == [key for key in BY_KEY if key.startswith("gemm_chain/")]
    assert asked_for([]) == [case.key for case in CASES]


def test_only_other_schedules_or_files_differ(g1):
    before = {KEY: g1, "a": Chosen("a"), "gone": Chosen("gone")}
    after = {KEY: replace(g1, estimate=9.0), "a": Chosen("a", "block M 64\n")}

    assert [(one.key, two.schedule) for one, two in differing(before, after)] == [
        ("a", "block M 64\n")
    ]


def test_a_table_has_medians_their_ratios_and_failures(tmp_path):
    path = tmp_path / "times.jsonl"
    one = {
        "key": "a", "warm": {"before": [1.0, 2.0, 9.0], "after": [1.0]}, "estimates": [4.0, 3.0],
        "cold": {"before": [4.0], "after": [8.0, 8.0]}, "failed": {},
    }  # fmt: skip
    other = {**one, "key": "b", "warm": {}, "cold": {}, "failed": {"after": "error 1|2"}}
    path.write_text("".join(f"{json.dumps(line)}\n" for line in (other, one)), encoding="utf-8")

    lines = table(lines_of(path)).splitlines()

    assert "| a | 2.0 | 1.0 | 0.50 | 4.0 | 8.0 | 2.00 | 0.75 |  |" in lines
    assert "| b |  |  |  |  |  |  | 0.75 | after: error 1/2 |" in lines
    assert lines[-1] == "Geometric means of ratios: by graph 0.500, cold 2.000."
    assert lines_of(tmp_path / "none") == []


@pytest.mark.parametrize("what", ["make", "measure"])
def test_it_says_where_results_belong(what, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["choices", what, "a", "b"])

    with pytest.raises(SystemExit):
        main()
    assert f"{what} needs --out" in capsys.readouterr().err
