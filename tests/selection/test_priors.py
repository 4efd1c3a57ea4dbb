"""priors.toml holds all numbers that decide in selection, each with its source."""

import ast
import re
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

import blockbuster.selection
from blockbuster.selection.priors import PRIORS, Priors, read_priors

PACKAGE = Path(blockbuster.selection.__file__).parent
TEXT = (PACKAGE / "priors.toml").read_text(encoding="utf-8")
MODULES = sorted(PACKAGE.rglob("*.py"))
TEXTS = {path: path.read_text(encoding="utf-8") for path in MODULES}


def test_every_prior_is_used():
    used = {name for text in TEXTS.values() for name in re.findall(r"PRIORS\.(\w+)", text)}
    assert used == {field.name for field in fields(Priors)}


def test_the_file_is_in_the_wheel():
    project = tomllib.loads((PACKAGE.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    files = project["tool"]["setuptools"]["package-data"]["blockbuster.selection"]
    assert files == ["priors.toml"]


def test_priors_cannot_change():
    with pytest.raises(AttributeError):
        PRIORS.usual_warps = 8


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ("[usual_warps]", "[usual_warp]", "unknown usual_warp$"),
        (TEXT[TEXT.index("[usual_warps]") :], "", "missing .*usual_warps"),
        ("\nvalue = 4\n", "\n", "has no value"),
        ('\nmachine = "h200"\n', "\n", "has no machine"),
        ('\ncase = "none recorded"\n', '\ncase = ""\n', "has no case"),
        ('\nmachine = "h200"\n', '\nmachine = "h200"\nwhen = "today"\n', "unknown entry when"),
        ("\nvalue = 4\n", "\nvalue = 4.5\n", r"is 4\.5, not of type int"),
        ("\nvalue = 4\n", "\nvalue = true\n", "is True, not of type int"),
    ],
)
def test_what_is_wrong_is_told(before, after, reason):
    assert before in TEXT
    with pytest.raises(ValueError, match=reason):
        read_priors(TEXT.replace(before, after, 1))


EXCEPTIONS = (
    "candidates/in_range.py FEW",
    "candidates/in_range.py LARGE",
    "library/attention.py MOST_AXES",
    "library/convolutions.py MOST_AXES",
)
"""The first two bound what float64 holds, the last two what torch offers: they choose nothing."""

LAYOUT = "plans/layout.py"
"""The numbers of reports: how much they tell. They choose nothing, either."""

LITERALS = (
    ast.Constant,
    ast.Tuple,
    ast.List,
    ast.Dict,
    ast.BinOp,
    ast.UnaryOp,
    ast.Load,
    ast.operator,
    ast.unaryop,
)


def numbers(text: str) -> list[str]:
    """The names in capitals that a module gives a number, or a tuple or table with one."""
    found = []
    for stmt in ast.parse(text).body:
        if isinstance(stmt, ast.Assign | ast.AnnAssign) and stmt.value is not None:
            nodes = list(ast.walk(stmt.value))
            kinds = [type(node.value) for node in nodes if isinstance(node, ast.Constant)]
            if {int, float}.isdisjoint(kinds) or not all(isinstance(n, LITERALS) for n in nodes):
                continue
            targets = stmt.targets if isinstance(stmt, ast.Assign) else [stmt.target]
            names = (node for target in targets for node in ast.walk(target))
            found += [node.id for node in names if isinstance(node, ast.Name)]
    return [name for name in found if name.isupper()]


def test_numbers_are_found():
    text = "A = 1\nB, C = 2.0, 'x'\nD = {'a': (3,)}\nE: int = 1 << 3\n"
    others = "F = ('a', G)\nh = 1\nI = (('a', True),)\nJ = axis(-1)\n"
    assert numbers(text + others) == ["A", "B", "C", "D", "E"]


def test_no_module_decides_by_a_number_of_its_own():
    found = [
        f"{path.relative_to(PACKAGE).as_posix()} {name}"
        for path, text in TEXTS.items()
        if path.relative_to(PACKAGE).as_posix() != LAYOUT
        for name in numbers(text)
    ]
    assert found == list(EXCEPTIONS)
