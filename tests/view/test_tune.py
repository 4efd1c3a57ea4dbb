"""The commands `tune` and `cache`, as a shell would call them."""

import json

import pytest

from blockbuster.tuning.store import Store
from blockbuster.view.cli import main
from tests.tuning.test_store import ENTRY

PROGRAM = "def product(x, w):\n    return x @ w\n"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache of the test's own, with one kernel measured."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    Store().write(ENTRY)
    return Store()


def test_list(cache, capsys):
    assert main(["cache", "list"]) == 0
    heads, line = capsys.readouterr().out.rstrip("\n").split("\n")
    assert heads.split() == (
        ["kernel", "sizes", "device", "model", "us", "best", "us", "ratio", "measured", "seconds"]
    )
    assert line.split("  ")[0] == "matmul: out"
    assert "9.5" in line
    assert "7.2" in line
    assert "1.31" in line
    assert "2 of 3" in line


def test_list_as_json(cache, capsys):
    assert main(["cache", "list", "--json"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)
    assert [one["us"] for one in entry["found"]] == [9.5, 7.25, None]


def test_path_and_clear(cache, capsys):
    assert main(["cache", "path"]) == 0
    assert capsys.readouterr().out.rstrip("\n") == str(cache.folder.path)
    assert main(["cache", "clear"]) == 0
    assert main(["cache", "list"]) == 0
    assert capsys.readouterr().out == "no kernel has been measured yet\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["export"], "cache export needs a FILE"),
        (["list", "more.json"], "cache list takes no FILE"),
    ],
)
def test_files_where_they_belong(cache, arguments, said, capsys):
    assert main(["cache", *arguments]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    "sizes", [["M=64 K=64 N=64"], ["M=64", "K=64", "N=64"], ["M=64,K=64,N=64"]]
)
def test_tune_without_a_gpu(tmp_path, capsys, sizes):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    command = ["tune", f"{path}:product", "--dims", "x=M K", "w=K N", "--sizes", *sizes]
    assert main(command) == 1
    assert "needs a GPU, and there is none here" in capsys.readouterr().err
    assert main([*command, "--limit", "0"]) == 2


def test_tune_needs_sizes(capsys):
    with pytest.raises(SystemExit):
        main(["tune", "program.py:product"])
    assert "--sizes" in capsys.readouterr().err
