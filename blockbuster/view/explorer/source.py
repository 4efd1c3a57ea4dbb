"""The source of the user's function behind a program, found from the lines of its nodes."""

from __future__ import annotations

import ast
import linecache
from collections import Counter
from dataclasses import dataclass

from blockbuster.ir.graph import Graph
from blockbuster.ir.origin import SourceLine


@dataclass(frozen=True)
class Source:
    """The text of a function: its name, the name of its file, its first line and all lines."""

    function: str
    file: str
    first: int
    lines: tuple[str, ...]


def lines_of(graph: Graph) -> tuple[SourceLine, ...]:
    """The user's lines behind a program, in order, each once."""
    nodes = (node for _, level in graph.walk() for node in level.nodes)
    return tuple(dict.fromkeys(line for node in nodes for line in node.origin.lines()))


def source_of(graph: Graph) -> Source | None:
    """The smallest function that holds most of the lines behind ``graph``, or None.

    None if no line is known (a program read from text) or the file is not at hand.
    """
    wanted = lines_of(graph)
    if not wanted:
        return None
    file, _ = Counter(line.file for line in wanted).most_common(1)[0]
    try:
        lines = linecache.getlines(file)
    except ValueError:  # code may name a file that no file system can have
        return None
    numbers = [line.line for line in wanted if line.file == file]
    if max(numbers) > len(lines):
        return None
    try:
        tree = ast.parse("".join(lines))
    except SyntaxError:  # a notebook cell with magic commands
        return None
    functions = [f for f in ast.walk(tree) if isinstance(f, ast.FunctionDef)]
    around = [f for f in functions if all(_holds(f, number) for number in numbers)]
    if not around:
        return None
    found = max(around, key=lambda f: f.lineno)
    end = found.end_lineno or found.lineno
    text = tuple(line.rstrip("\n") for line in lines[found.lineno - 1 : end])
    return Source(found.name, str(SourceLine(file, 0)).rpartition(":")[0], found.lineno, text)


def _holds(function: ast.FunctionDef, number: int) -> bool:
    return function.lineno <= number <= (function.end_lineno or function.lineno)
