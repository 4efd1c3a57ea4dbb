"""The explorer's data as one HTML page that needs nothing beside itself."""

from __future__ import annotations

import base64
import json
import re
import zlib
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from blockbuster.emit.target import disk
from blockbuster.errors import shown

HIDDEN = re.compile(r"[^ -;=-~]")  # what may have to be escaped in a script
LEVEL = 6  # of compression: more takes twice as long for a fiftieth less
SCRIPTS = ("numbers.js", "picture.js", "texts.js", "details.js", "simulation.js", "script.js")


def page(data: dict[str, Any]) -> str:
    """The page as text: template, style and script of this folder, and the data."""
    pictures = data["pictures"]
    svgs = json.dumps(pictures["svgs"], ensure_ascii=False, separators=(",", ":"))
    packed = {**data, "pictures": {**pictures, "svgs": _packed(svgs)}}
    parts = {
        "title": escape(shown(f"{data['title']}: derivation")),
        "style": _asset("style.css"),
        "script": _script(),
        "data": _in_script(packed),
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
    """The parts of the script in one scope: each uses what stands before it."""
    parts = "\n".join(map(_asset, SCRIPTS))
    return f'(() => {{\n"use strict";\n{parts}}})();'


def _asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _in_script(data: dict[str, Any]) -> str:
    """JSON that ends no script element, starts no comment in it and holds no hidden characters."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return HIDDEN.sub(lambda found: _escaped(found[0]), text)


def _escaped(character: str) -> str:
    plain = character.isprintable() and character != "<"
    return character if plain else json.dumps(character)[1:-1].replace("<", "\\u003c")


def _packed(text: str) -> str:
    """Deflated and in base 64: the page unpacks its pictures when the first is looked at."""
    deflate = zlib.compressobj(LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    return base64.b64encode(deflate.compress(text.encode()) + deflate.flush()).decode("ascii")
