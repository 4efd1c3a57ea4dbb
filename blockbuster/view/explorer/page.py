"""The explorer's data as one self-contained HTML page."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from blockbuster.emit.target import disk
from blockbuster.errors import shown

LEVEL = 6  # of compression: more takes twice as long for a fiftieth less
SCRIPTS = (
    "numbers.js", "zoom.js", "picture.js", "texts.js", "details.js", "simulation.js", "plan.js",
    "script.js",
)  # fmt: skip


Data = dict[str, Any]


def page(data: Data, others: Sequence[Data] = (), plan: Data | None = None) -> str:
    """The page as text: template, style and script of this folder, and the data.

    ``others``: derivations that boxes of the ``plan`` open, beside that of ``data``.
    """
    more = [_packed(f"data-{at}", other) for at, other in enumerate(others, 1)]
    more += [_packed("plan", plan)] if plan is not None else []
    parts = {
        "title": escape(shown(f"{data['title']}: derivation")),
        "style": _asset("style.css"),
        "script": _script(),
        "data": "\n".join([_packed("data", data), *more]),
    }
    before, *rest = _asset("template.html").split("[[")
    text = before
    for part in rest:  # never looks into what was put in
        name, _, after = part.partition("]]")
        text += parts[name] + after
    return text


def write_whole(path: Path, text: str) -> Path:
    """Write a file that appears complete or not at all."""
    return disk.write_whole(path, text.encode())


def _script() -> str:
    """The parts of the script in one scope: each uses what stands before it, first the data."""
    parts = "\n".join(map(_asset, SCRIPTS))
    return f'(async () => {{\n"use strict";\n{parts}}})();'


def _asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _packed(name: str, data: Data) -> str:
    return f'<script type="text/plain" id="{name}">{packed(data)}</script>'


def packed(data: Data) -> str:
    """The data as JSON, deflated, in base 64: a tenth of its length, and no markup can be in it."""
    text = json.dumps(data, separators=(",", ":"))
    deflate = zlib.compressobj(LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    return base64.b64encode(deflate.compress(text.encode()) + deflate.flush()).decode("ascii")
