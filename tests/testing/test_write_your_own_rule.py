"""The page on writing a rule is followed word by word: its code runs, its output is as printed."""

import re
import shlex
import sys
from pathlib import Path

from blockbuster.view.cli import main

PAGE = Path(__file__).parents[2] / "docs" / "write_your_own_rule.md"
FENCE = re.compile(r"^```(\w+)(?: file=(\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_page_works_as_written(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "my_rules", raising=False)
    names: dict[str, object] = {"__name__": "my_notebook"}
    monkeypatch.setitem(sys.modules, "my_notebook", sys)
    done = []
    for language, file, body in FENCE.findall(PAGE.read_text(encoding="utf-8")):
        done.append(language)
        if file:
            (tmp_path / file).write_text(body, encoding="utf-8")
        elif language == "python":
            exec(compile(body, PAGE.name, "exec"), names)
        elif language == "text":
            assert capsys.readouterr().out.rstrip() == body.rstrip()
        else:
            command = shlex.split(body.removeprefix("$ "))
            assert command[0] == "blockbuster"
            assert main(command[1:]) == 1
            assert "a minimal program" in capsys.readouterr().out
    monkeypatch.delitem(sys.modules, "my_rules", raising=False)

    assert done.count("python") >= 5
    assert done.count("text") >= 5
