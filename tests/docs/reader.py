"""Someone who follows a page of the documents word by word.

```python            is run; all blocks of a page share one folder and one namespace
```python file=NAME  is written to that file of the folder
```text              is what was printed since; ... stands for any text
```console           each line `$ command` is run, and prints the lines below it, if there are any;
                     `exit=1` where the commands end with that code
```sh                is not run, but what it names must exist: make targets, modules, files, extras
``` alone            is a drawing or a form, not code
"""

import doctest
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from blockbuster.view.cli import main
from tests.docs.pages import ROOT, Block

COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
AS_SHOWN = doctest.OutputChecker()


class Reader:
    """A folder, a namespace, and what was printed and not yet read."""

    def __init__(self, name: str, folder: Path, printed: Callable[[], str]) -> None:
        self.folder = folder
        self.module = ModuleType(Path(name).stem)
        self.unread = ""
        self._name = name
        self._printed = printed
        self._ran = False

    def follow(self, block: Block) -> None:
        """Do what a block says. Raises AssertionError where it is not so."""
        if block.language != "text":
            assert not self.unread, f"printed, and not shown: {self.unread}"
        match block.language:
            case "python" if "file" in block.options:
                (self.folder / block.options["file"]).write_text(block.text, encoding="utf-8")
            case "python":
                exec(compile(block.text, self._name, "exec"), self.module.__dict__)
                self.unread, self._ran = self._printed(), True
            case "text":
                assert self._ran, "nothing was run that could have printed this"
                assert_shown(block.text, self.unread)
                self.unread = ""
            case "console":
                self._console(block)
            case "sh":
                for line in block.text.splitlines():
                    assert_exists(line.partition(" #")[0])
            case language:
                drawn = not language or language.startswith("{")
                assert drawn, f"nothing runs a block of {language}"

    def _console(self, block: Block) -> None:
        wanted = int(block.options.get("exit", 0))
        for command, shown in COMMAND.findall(block.text):
            code, printed = self._run(shlex.split(command))
            assert code == wanted, f"{command} ends with {code}: {printed}"
            if shown:
                assert_shown(shown, printed)

    def _run(self, words: list[str]) -> tuple[int, str]:
        if words[0] == "blockbuster":
            return main(words[1:]), self._printed()
        assert words[0] == "python", f"{words[0]} is not run here"
        done = subprocess.run(
            [sys.executable, *words[1:]],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout


def assert_shown(shown: str, printed: str) -> None:
    """What a page shows is what was printed, but for ... and blank lines around it."""
    shown, printed = (text.strip("\n") + "\n" for text in (shown, printed))
    same = AS_SHOWN.check_output(shown, printed, doctest.ELLIPSIS)
    assert same, f"this is shown\n{shown}\nbut this is printed\n{printed}"


def assert_exists(command: str) -> None:
    """What a shell command names exists, though it is not run."""
    words = [word for word in shlex.split(command) if not re.match(r"[A-Z]+=", word)]
    match words:
        case []:
            missing = []
        case ["make", *names]:
            makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
            targets = re.findall(r"^([\w-]+):", makefile, re.MULTILINE)
            missing = [name for name in names if name not in targets]
        case ["pip", "install", *_]:
            project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
            extras = re.findall(r"[\w-]+", command.partition("[")[2].partition("]")[0])
            missing = [name for name in extras if name not in project["optional-dependencies"]]
        case ["python" | "python3", "-m", module, *_]:
            place = ROOT / module.replace(".", "/")
            files = (place.with_suffix(".py"), place / "__main__.py")
            missing = [] if any(file.exists() for file in files) else [module]
        case ["python" | "python3" | "bash", file, *_] | [file, *_]:
            missing = [] if (ROOT / file).exists() else [file]
    assert not missing, f"{command} names {', '.join(missing)}, which is not there"
