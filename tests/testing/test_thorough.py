"""The thorough profile: it finds what is wrong, goes on where it was interrupted, and reports."""

import json

import pytest

from bench import thorough
from bench.thorough import Run, main, markdown
from blockbuster.testing.generators import GENERATORS
from blockbuster.testing.sites import Flaw
from tests.random_programs import walks
from tests.random_programs.walks import ORDERED, RANDOM, Tally, walked


def test_a_walk_is_named_by_its_seed_and_number():
    first, again = walked(3, range(10)), walked(3, range(10))

    assert first.steps == again.steps
    assert first.programs == dict.fromkeys(GENERATORS, 2)
    assert first.orders.keys() == {RANDOM, ORDERED}
    assert first.failures == []


def test_a_wrong_step_is_reported_with_its_program(monkeypatch):
    monkeypatch.setattr(walks, "flaw", lambda site, trials: Flaw("other results", "they differ"))
    monkeypatch.setattr(walks, "minimal", lambda failure, seed: failure)

    tally = walked(0, range(5))

    assert tally.failures
    assert "found in program" in tally.failures[0]


def test_the_run_writes_its_report(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(thorough, "CHUNK", 5)
    monkeypatch.setattr(thorough, "ROUND", 2)
    out = tmp_path / "prove"
    arguments = ["--programs", "20", "--steps", "20", "--workers", "1", "--out", str(out)]
    arguments += ["--seed", "1"]  # by seed 0 a product of squares is not settled

    assert main(arguments) == 0
    (report,) = out.glob("*.json")
    data = json.loads(report.read_text())
    assert sum(data["programs"].values()) >= 20
    assert data["failures"] == []
    assert "each checked exactly: 0 wrong." in report.with_suffix(".md").read_text()
    assert not list(out.glob("*.jsonl"))


def test_an_interrupted_run_goes_on(tmp_path, capsys, monkeypatch):
    run = Run(tmp_path, seed=1, programs=50, steps=10)
    line = {"task": 0, "wall": 2.0, "tally": vars(walked(1, range(2)))}
    with run.state.open("a") as file:
        file.write(json.dumps(line) + "\n")

    again = Run(tmp_path, seed=1, programs=50, steps=10)
    assert list(again.done) == [0]
    assert again.tally.programs.total() == 2
    assert "1 tasks are done" in capsys.readouterr().out
    monkeypatch.setattr(thorough, "sources_digest", lambda: "others")
    assert Run(tmp_path, seed=1, programs=50, steps=10).done == {}
    assert "starting anew" in capsys.readouterr().out


def test_failures_stand_in_the_report(tmp_path):
    run = Run(tmp_path, seed=1, programs=50, steps=10)
    run.tally.add(Tally(failures=["other results: ..."]))
    text, data = run.report(1)

    assert "**1 steps were wrong.**" in text
    assert text == markdown(data)


@pytest.mark.parametrize("name", ["--programs", "--steps"])
def test_arguments_have_help(name, capsys):
    with pytest.raises(SystemExit):
        main(["--help"])

    assert name in capsys.readouterr().out
