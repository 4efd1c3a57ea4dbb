"""Commands of benchmarks say in one line what they lack, instead of failing case by case."""

import sys

import pytest

pytest.importorskip("torch", reason="torch is not installed: pip install torch")

from bench.costs import judge, measure
from bench.peers import report, run


@pytest.mark.parametrize(
    ("command", "said"), [(run, "--dry-run compares all"), (measure, "--compile and --cpu")]
)
def test_without_a_gpu_a_command_says_what_needs_none(command, said, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(command, "gpu_name", lambda: "")
    monkeypatch.setattr(sys, "argv", ["command", "--out", str(tmp_path / "out")])
    with pytest.raises(SystemExit) as ended:
        command.main()

    assert ended.value.code == 2
    assert f"there is no GPU here; {said}" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (report, "has no cases.jsonl: bench.peers.run writes it"),
        (judge, "has no pairs.jsonl: bench.costs.measure writes it"),
    ],
)
def test_a_folder_without_measurements_is_refused(command, said, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(sys, "argv", ["command", str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        command.main()

    assert ended.value.code == 2
    assert said in capsys.readouterr().err
