"""What messages and pages tell users to install is this package, or a requirement of it."""

import json
import re
import tomllib
from importlib.metadata import PackageNotFoundError

import pytest

from blockbuster import extras
from blockbuster.extras import DISTRIBUTION, install_hint
from tests.test_architecture import ROOT, tracked

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
OPTIONAL = PROJECT["optional-dependencies"]
COMMAND = re.compile(r"(?:pip3?|uv pip) install ([^\n`\"]*)")
OTHER = re.compile(r"\bblockbuster\[(?!dim)|\binstall(?: -\S+)* [\"']?blockbuster(?![-\w./])")
"""The name alone as what is to be installed: on the public index it is another package."""
SETTLED = ("bench/results/", "CHANGELOG.md", "tests/test_extras.py")  # records of what was


def name_of(requirement):
    return re.match(r"[\w.-]+", requirement)[0].lower().replace("_", "-")


REQUIRED = {name_of(r) for group in (PROJECT["dependencies"], *OPTIONAL.values()) for r in group}


def texts():
    for path in tracked():
        name = path.relative_to(ROOT).as_posix()
        if not name.startswith(SETTLED):
            yield name, path.read_text(encoding="utf-8", errors="replace")


def installed(command):
    """The requirements that the words of a pip command name, less options and paths."""
    words, skipped = command.replace("'", " ").split("#")[0].split("|")[0].split(), False
    for word in words:
        if skipped or word in ("-c", "-r", "--index-url"):
            skipped = not skipped
        elif re.match(r"[A-Za-z]", word) and not re.search(r"[{}()$/]", word):
            yield word.rstrip(".,;:")


def test_no_text_names_the_package_of_other_people():
    found = [(n, line) for n, text in texts() for line in text.split("\n") if OTHER.search(line)]

    assert found == []


def test_commands_install_what_this_package_requires():
    named = {
        name_of(word): name
        for name, text in texts() if not name.startswith("tests/docs/")
        for command in COMMAND.findall(text)
        for word in installed(command)
    }  # fmt: skip

    assert "torch" in named
    assert {*named} <= {*REQUIRED, DISTRIBUTION}, named


def test_the_project_has_the_name_that_hints_give():
    assert PROJECT["name"] == DISTRIBUTION
    for group in OPTIONAL.values():
        for requirement in group:
            if "blockbuster" in requirement:
                assert name_of(requirement) == DISTRIBUTION
                assert {*re.findall(r"[\w-]+", requirement.split("[")[1])} <= {*OPTIONAL}


def test_hints_name_extras_that_exist():
    asked = {
        extra
        for name, text in texts() if name.startswith("blockbuster/")
        for extra in re.findall(r"install_hint\(['\"](\w+)", text)
    }  # fmt: skip

    assert {"draw", "plot", "ptxas", "torch"} <= asked <= {*OPTIONAL}


def test_a_checkout_installs_itself():
    assert install_hint("draw") == f"pip install -e '{ROOT}[draw]'"


GIT = {"url": "https://example.org/b.git", "vcs_info": {"vcs": "git", "commit_id": "abc"}}


@pytest.mark.parametrize(
    ("told", "command"),
    [
        (None, f"pip install '{DISTRIBUTION}[draw]'"),
        (GIT, f"pip install '{DISTRIBUTION}[draw] @ git+https://example.org/b.git@abc'"),
        (
            {"url": "file:///a/b.whl", "archive_info": {}},
            f"pip install '{DISTRIBUTION}[draw] @ file:///a/b.whl'",
        ),
    ],
)
def test_an_installation_installs_what_it_came_from(told, command, tmp_path, monkeypatch):
    class Installed:
        @staticmethod
        def read_text(name):
            assert name == "direct_url.json"
            return told and json.dumps(told)

    (tmp_path / "pyproject.toml").write_text('[project]\nname = "another"\n')
    monkeypatch.setattr(extras, "HERE", tmp_path)
    monkeypatch.setattr(extras, "distribution", lambda name: Installed)

    assert install_hint("draw") == command


def test_a_copy_without_metadata_names_the_package(tmp_path, monkeypatch):
    def missing(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(extras, "HERE", tmp_path)
    monkeypatch.setattr(extras, "distribution", missing)

    assert install_hint("draw") == f"pip install '{DISTRIBUTION}[draw]'"
