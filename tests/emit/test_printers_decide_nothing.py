"""Printers spell what a program says: no threshold, no machine, no choice of operators."""

import ast
import re
from pathlib import Path

import pytest

import blockbuster
from blockbuster.ir.expr import FUNCTIONS
from blockbuster.ir.signatures import FUNCTIONALS

FOLDER = Path(blockbuster.__file__).parent / "emit" / "print"
FILES = sorted(FOLDER.rglob("*.py"))

COUNTS = (0, 1, 2)
"""Numbers of things (axes, operands, lines) that text is written for; others are thresholds."""

MACHINES = re.compile(r"sm_\d|gfx\d|\b[ahbv]\d00\b|hopper|ampere|nvidia|\bamd\b|ptxas", re.I)

TABLES = {
    "numpy/mixed.py": ("FUNCTIONAL_TEXT",),
    "numpy/own_functions.py": ("HELPERS", "HELPERS_OF", "_ERF"),
    "numpy/spelling.py": (
        "FUNCTIONAL_TEXT", "INTO_TEXT", "INTO_HELPERS", "EXACT_FUNCTIONAL", "WIDE_FUNCTIONAL",
        "DOUBLE_TEXT", "EXACT_CALL_TEXT", "DOUBLE_CALL_TEXT", "CALL_TEXT", "RESERVED", "ROUNDING",
    ),
    "numpy/whole_functions.py": ("WHOLE", "NEEDED"),
    "triton/ops.py": ("_PRODUCT",),
    "triton/scalars.py": (
        "_INFIX", "_COMPARISONS", "_TRUTH", "_BUILTIN", "_OWN", "_POWERS", "_PRODUCTS",
        "_FACTORS", "ACCURATE_CALLS", "_INTEGER_CALLS", "_BITS", "_BY_POWERS",
    ),
}  # fmt: skip
"""Where names of operators and functions belong: beside their spelling."""

SPELLERS = {
    "numpy/mixed.py": {
        "converted": ("and", "or", "not", "whole", "where"),
    },
    "numpy/operators.py": {"_functional": ("dot",)},
    "numpy/spelling.py": {"number": ("pow", "where", "eq", "whole"), "truth": ("and", "or", "not")},
    "triton/ops.py": {"text": ("dot",)},
    "triton/scalars.py": {
        "text": ("pow",),
        "summand": ("pow",),
        "_call": ("not", "where"),
        "_float_call": ("mul", "neg", "div", "reciprocal"),
        "_integer_call": ("whole", "where", "neg", "relu"),
    },
}
"""Functions that spell what is no call and no infix operator, and which names they may say."""

ASKED = ("Uses", "narrow_workspaces", "is_accurate", "takes_matrix_units", "Machine", "Target")
"""What passes and choices ask a program or a machine; a printer finds the answers as facts."""


def constants(tree):
    """Every constant but docstrings, with the names of the tables and functions around it."""
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }

    def walk(node, inside):
        match node:
            case ast.FunctionDef(name=name):
                inside = (*inside, name)
            case ast.Assign(targets=[ast.Name(name)]) | ast.AnnAssign(target=ast.Name(name)):
                inside = inside or (name,)
            case ast.Constant() if id(node) not in docstrings:
                yield node, inside
        for child in ast.iter_child_nodes(node):
            yield from walk(child, inside)

    return walk(tree, ())


def named(file):
    return str(file.relative_to(FOLDER))


def thresholds(text):
    """The comparisons of ``text`` with numbers that count nothing."""
    for node in ast.walk(ast.parse(text)):
        sides = []
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
        elif isinstance(node, ast.MatchValue):
            sides = [node.value]
        for side in sides:
            value = side.operand if isinstance(side, ast.UnaryOp) else side
            number = isinstance(value, ast.Constant) and isinstance(value.value, int | float)
            if number and value.value not in COUNTS:
                yield ast.unparse(node)


def machines(text):
    """The lines of ``text`` that name a machine, what is said in words apart."""
    for node, inside in constants(ast.parse(text)):
        if isinstance(node.value, str) and MACHINES.search(node.value):
            yield inside[0] if inside else str(node.value)
    for node in ast.walk(ast.parse(text)):
        name = getattr(node, "id", getattr(node, "attr", ""))
        if MACHINES.search(name):
            yield name


def strays(file, text):
    """Names of operators and functions outside the tables of ``file``, and where they stand."""
    tables, spellers = TABLES.get(file, ()), SPELLERS.get(file, {})
    for node, inside in constants(ast.parse(text)):
        if node.value in {*FUNCTIONS, *FUNCTIONALS}:
            known = node.value in spellers.get(inside[-1], ()) if inside else False
            if not known and not (inside and inside[0] in tables):
                yield f"{node.value} in {'.'.join(inside) or file}"


def imported(text):
    return {
        alias.name
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


@pytest.mark.parametrize("file", FILES, ids=named)
def test_no_printer_decides(file):
    text = file.read_text(encoding="utf-8")

    assert list(thresholds(text)) == []
    # the text of the check that a file makes of the assembler where a fact asks for it
    assert set(machines(text)) <= ({"ASSEMBLER"} if named(file) == "triton/harness.py" else set())
    assert list(strays(named(file), text)) == []
    assert not imported(text) & {*ASKED}


def test_the_tables_are_there():
    """A table that is gone takes its permission along."""
    for file, tables in TABLES.items():
        tree = ast.parse((FOLDER / file).read_text(encoding="utf-8"))
        inside = {names[0] for node, names in constants(tree) if names}
        assert {*tables} <= inside
        said = {(names[-1], node.value) for node, names in constants(tree) if names}
        for function, words in SPELLERS.get(file, {}).items():
            assert {(function, word) for word in words} <= said


@pytest.mark.parametrize(
    ("find", "text"),
    [
        (thresholds, "def f(block):\n    return block > 64"),
        (thresholds, "def f(block):\n    match block:\n        case 4.0:\n            pass"),
        (thresholds, "wide = -8 < n"),
        (machines, "def f(target):\n    return target == 'sm_90'"),
        (machines, "if is_hopper(target):\n    pass"),
        (lambda text: strays("triton/kernel.py", text), "def f(fn):\n    return fn == 'exp'"),
        (lambda text: strays("triton/scalars.py", text), "def text(fn):\n    return fn == 'exp'"),
        (lambda text: strays("triton/scalars.py", text), "SLOW = {'exp': 3}"),
    ],
)
def test_a_decision_is_found(find, text):
    assert list(find(text))
