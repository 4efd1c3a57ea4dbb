"""Commands whose reader closes the pipe, or whose output has no room, end quietly."""

import subprocess
import sys
from pathlib import Path

import pytest

from blockbuster.view.cli import main
from blockbuster.view.terminal import PIPE_CLOSED
from tests.parameters import rest_slow

MODEL = "import blockbuster as bb\n\ndef f(x, w):\n    return bb.softmax(x @ w, axis=-1)\n"
PROGRAM = ["{model}:f", "--dims", "x=M K", "w=K N"]
SIZES = ["--sizes", "M=64", "K=64", "N=64"]
COMMANDS = {
    "help": ["--help"],
    "help of a command": ["emit", "--help"],
    "a wrong command": ["nothing"],
    "a refused program": ["fuse", "{model}:g"],
    "fuse": ["fuse", *PROGRAM],
    "explain": ["explain", *PROGRAM],
    "emit": ["emit", *PROGRAM, *SIZES],
    "simulate": ["simulate", *PROGRAM, *SIZES],
    "doctor": ["doctor"],
    "demo": ["demo", "attention"],
}


def started(name, tmp_path, **streams):
    (tmp_path / "model.py").write_text(MODEL)
    words = [word.format(model=tmp_path / "model.py") for word in COMMANDS[name]]
    command = [sys.executable, "-m", "blockbuster", *words]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, **streams)


@pytest.mark.parametrize("name", rest_slow(COMMANDS, ["help", "emit", "demo"]))
def test_a_closed_pipe_ends_a_command_quietly(name, tmp_path):
    with started(name, tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        said = process.stderr.read().decode()

    refused = {"a wrong command": 2, "a refused program": 1}  # all that they say goes to stderr
    assert process.returncode == refused.get(name, PIPE_CLOSED)
    assert "Traceback" not in said
    assert "Broken" not in said


@pytest.mark.parametrize("name", rest_slow(COMMANDS, ["a refused program"]))
def test_so_does_one_whose_messages_go_there_too(name, tmp_path):
    with started(name, tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        process.stdout.close()

    assert process.returncode == PIPE_CLOSED


def test_a_full_disk_is_told(tmp_path):
    with Path("/dev/full").open("w") as full:
        process = started("fuse", tmp_path, stdout=full, stderr=subprocess.PIPE)
    said = process.communicate()[1].decode()

    assert process.returncode == 1
    assert said == "blockbuster: [Errno 28] No space left on device\n"


FAILING = """
def helper(y):
    return undefined_name + y

def nested(x):
    return helper(x * 2)

def divides(x):
    return x / (1 // 0)

def raises(x):
    raise RuntimeError("mine")
"""


@pytest.mark.parametrize(
    ("function", "lines"),
    [
        ("nested", ["NameError: name 'undefined_name' is not defined",
                    "model.py:6: return helper(x * 2)",
                    "model.py:3: return undefined_name + y"]),
        ("divides", ["ZeroDivisionError: ", "model.py:9: return x / (1 // 0)"]),
        ("raises", ["RuntimeError: mine", 'model.py:12: raise RuntimeError("mine")']),
    ],
)  # fmt: skip
def test_a_function_that_fails_is_told_by_its_own_lines(function, lines, tmp_path, capsys):
    (tmp_path / "model.py").write_text(FAILING)

    assert main(["fuse", f"{tmp_path / 'model.py'}:{function}", "--dims", "x=M N"]) == 1
    said = capsys.readouterr().err.splitlines()
    assert len(said) == len(lines)
    for line, words in zip(said, lines, strict=True):
        assert words in line
