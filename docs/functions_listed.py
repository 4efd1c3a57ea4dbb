"""The page of functions: the table of functions and what is refused, as Markdown."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Sequence

from blockbuster.frontend.functions.refused import REFUSED
from blockbuster.frontend.functions.row import Row
from blockbuster.frontend.functions.table import TABLE, TORCH
from blockbuster.frontend.no_values import WORDS


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    cells = (" | ".join(str(cell).replace("|", "\\|") for cell in line) for line in lines)
    return "\n".join(f"| {line} |" for line in cells) + "\n"


def functions() -> str:
    """A section for each group of the table, and one for torch's own names."""
    groups = dict.fromkeys(row.group for row in TABLE)
    sections = [_section(group, [r for r in TABLE if r.group == group]) for group in groups]
    theirs = [(_codes(row.torch), _meaning(row)) for row in TORCH]
    return "\n".join((*sections, "## torch's own\n", table(("torch", "what it is"), theirs)))


def _section(group: str, rows: Sequence[Row]) -> str:
    """The functions of a group, in columns of which none is empty."""
    columns = {
        "`bb.`": [f"`{row.name}`" if row.public else "" for row in rows],
        "what it is": [_meaning(row) for row in rows],
        "NumPy": [_codes(row.numpy) for row in rows],
        "methods": [_codes(row.methods) for row in rows],
        "torch": [_codes(row.torch) for row in rows],
    }
    filled = {head: cells for head, cells in columns.items() if any(cells)}
    listed = zip(*filled.values(), strict=True)
    return f"## {group}\n\n{table(tuple(filled), listed)}"


def _meaning(row: Row) -> str:
    """The first line of the function's docstring, and what its row notes."""
    first = inspect.cleandoc(row.function.__doc__ or "").partition("\n")[0]
    is_sentence = row.note.endswith(".")
    told = f"{first.removesuffix('.')} {row.note}." if row.note and not is_sentence else first
    return _code(f"{told} {row.note}" if is_sentence else told)


def _code(text: str) -> str:
    """Docstrings' double backquotes as Markdown's."""
    return re.sub(r"``(.+?)``", r"`\1`", text)


def _codes(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def refused() -> str:
    """What cannot be traced by name, and what of Python's needs values."""
    names = ((_codes(r.names), r.reason, r.instead) for r in REFUSED)
    asked = ((f"`{name}`", reason, hint) for name, (reason, hint) in WORDS.items())
    return "\n".join(
        (
            table(("NumPy's, torch's and methods", "why not", "what to use"), names),
            "## What Python asks of values\n",
            table(("method", "why not", "what to use"), asked),
        )
    )
