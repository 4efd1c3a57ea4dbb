"""Every place in the package that gives an error a hint, and those that cases come through."""

import ast
import sys
import traceback
from pathlib import Path

import blockbuster
from blockbuster import errors
from blockbuster.errors import BlockbusterError
from blockbuster.frontend.source import Refused

PACKAGE = Path(blockbuster.__file__).parent
MAKERS = ("trace_error", "message", "_refuse", "_refuse_token", "_error")


def sites():
    """File, first line and last line of each statement that gives an error a hint."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Raise | ast.Return):
                if any(_gives_a_hint(part, name) for part in ast.walk(node)):
                    found.append((name, node.lineno, node.end_lineno))
            elif isinstance(node, ast.Expr) and _gives_a_hint(node.value, name):
                found.append((name, node.lineno, node.end_lineno))
    return found


def _gives_a_hint(call, file):
    if not isinstance(call, ast.Call):
        return False
    name = getattr(call.func, "id", getattr(call.func, "attr", ""))
    named = any(word.arg == "hint" for word in call.keywords)
    if name == "Refused" and file.startswith("frontend/"):  # other packages have others
        return named or len(call.args) > 1
    return name in MAKERS and named


def lines_of(work, monkeypatch):
    """Lines of the package that were running when ``work`` made its errors, or their words."""
    seen, words = set(), []

    def noted(self, *args):
        Exception.__init__(self, *args)
        note(sys._getframe(1))

    def note(frame):
        while frame is not None:
            add(frame.f_code.co_filename, frame.f_lineno)
            frame = frame.f_back

    def add(file, line):
        if file.startswith(str(PACKAGE)):
            seen.add((Path(file).relative_to(PACKAGE).as_posix(), line))

    def refused(self, reason, hint=""):
        first(self, reason, hint)
        note(sys._getframe(1))

    def worded(what):
        words.append((what, sys._getframe(2)))
        return lines(what)

    first, lines = Refused.__init__, errors.shown_lines
    with monkeypatch.context() as patched:
        patched.setattr(BlockbusterError, "__init__", noted, raising=False)
        patched.setattr(Refused, "__init__", refused)
        patched.setattr(errors, "shown_lines", worded)
        try:
            work()
        except Exception as error:
            for what, frame in words:
                if what in str(error):
                    add(frame.f_code.co_filename, frame.f_lineno)
            for frame, line in traceback.walk_tb(error.__traceback__):
                add(frame.f_code.co_filename, line)
    return seen
