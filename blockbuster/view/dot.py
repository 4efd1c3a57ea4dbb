"""The syntax of DOT: statements, clusters and labels, each with one spelling.

Attributes keep the order in which they are given, so equal pictures are equal bytes.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence

from blockbuster.errors import shown, shown_lines

SMALL = 11  # points, as large as is read without effort on a screen

Attributes = Mapping[str, str]


class Html(str):
    """A label with markup, as ``html`` makes it; other texts mean what they say."""

    __slots__ = ()


def node(name: str, label: str, attributes: Attributes) -> str:
    """A node whose id is its name; ``label`` is plain text or ``Html``."""
    return f"{quote(name)} {_list({'label': label, 'id': name, **attributes})};"


def edge(tail: str, head: str, attributes: Attributes) -> str:
    """An edge between two nodes, or between ports made by ``at``."""
    ends = [end if end.startswith('"') else quote(end) for end in (tail, head)]
    return f"{ends[0]} -> {ends[1]} {_list(attributes)};"


def at(name: str, port: str, side: str) -> str:
    """The end of an edge at a cell of a node's label, on one side of it."""
    return f"{quote(name)}:{port}:{side}"


def cluster(name: str, attributes: Attributes, parts: Iterable[str]) -> list[str]:
    """A box around statements; its id is its name."""
    own = [f"{key}={_value(text)};" for key, text in {"id": name, **attributes}.items()]
    inner = [f"  {line}" for line in (*own, *parts)]
    return [f"subgraph {quote('cluster_' + name)} {{", *inner, "}"]


def ranked(rank: str, look: Attributes, parts: Sequence[str]) -> list[str]:
    """Nodes of one look at the near (source) or the far (sink) end of their cluster."""
    inner = [f"rank={rank};", f"node {_list(look)};", *parts]
    return ["{", *(f"  {line}" for line in inner), "}"] if parts else []


def document(defaults: Mapping[str, Attributes], parts: Iterable[str]) -> str:
    """The whole text; ``defaults`` are the attributes of all graphs, nodes and edges."""
    heads = [f"  {kind} {_list(attributes)};" for kind, attributes in defaults.items()]
    return "\n".join(["digraph {", *heads, *(f"  {line}" for line in parts), "}"]) + "\n"


def quote(text: str) -> str:
    """``text`` as a quoted string, line breaks written as DOT writes them.

    >>> print(quote('say "x"'))
    "say \\"x\\""
    """
    plain = "\n".join(shown_lines(text)).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{plain}"'.replace("\n", "\\n")


def lines(first: str, *rest: str) -> Html:
    """A label: one line in bold, the others small below it."""
    small = "".join(f'<br/><font point-size="{SMALL}">{escape(text)}</font>' for text in rest)
    return Html(f"<b>{escape(first)}</b>{small}")


def low(text: str) -> Html:
    """A label in italics, in a cell that is lower than the text: boxes around it nest closely."""
    cell = f'<td fixedsize="true" width="{8 * len(text)}" height="10"><i>{escape(text)}</i></td>'
    return Html(f'<table border="0" cellspacing="0"><tr>{cell}</tr></table>')


def with_operands(text: str, names: Sequence[str]) -> Html:
    """A label with a small cell ``x0``, ``x1``, ... before it for each operand."""
    first, *rest = (
        f'<td port="x{k}"><font point-size="{SMALL}">&#160;{escape(name)}&#160;</font></td>'
        for k, name in enumerate(names)
    )
    label = f'<td rowspan="{len(names)}">{escape(text)}&#160;&#160;</td>'
    rows = "".join(f"<tr>{cell}</tr>" for cell in (first + label, *rest))
    return Html(f'<table border="0" cellborder="0" cellspacing="0" cellpadding="2">{rows}</table>')


def escape(text: str) -> str:
    """``text`` as plain text in HTML: with all that XML forbids shown as an escape."""
    return html.escape(shown(text))


def _list(attributes: Attributes) -> str:
    return "[" + ", ".join(f"{key}={_value(text)}" for key, text in attributes.items()) + "]"


def _value(text: str) -> str:
    return f"<{text}>" if isinstance(text, Html) else quote(text)
