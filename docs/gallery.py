"""The gallery of the site: explorer pages of the examples, made whenever the site is built."""

from __future__ import annotations

import inspect
from pathlib import Path

import blockbuster as bb
from blockbuster.examples import ALL, Example

PAGES = Path(__file__).parents[1] / "build" / "gallery"
"""What stands here is copied to the top of the site."""

WORDS = {
    "attention": "Softmax is divided after the product with `v`, so the scores stay on chip.",
    "layernorm-matmul": "The norm is applied after the product, so both read `x` in one loop.",
    "rmsnorm-swiglu": "Three products and a norm become one loop nest; whether that pays depends"
    " on sizes, as its snapshots show.",
}
PROVING = {"attention": True}
"""A proof of each step takes seconds; the others are made without."""


def gallery() -> str:
    """One section for each example: its function, and its explorer page in a frame."""
    return "\n".join(map(_section, ALL))


def _section(example: Example) -> str:
    place = f"gallery/{example.name}.html"
    _write(example, PAGES / place)
    return (
        f"## {example.name}\n\n{WORDS[example.name]}\n\n"
        f"```python\n{inspect.getsource(example.fn)}```\n\n"
        f"```{{raw}} html\n"
        f'<p><a href="../{place}">The explorer page of this derivation</a>, in a frame:</p>\n'
        f'<iframe class="gallery" src="../{place}" title="{example.name}" loading="lazy">'
        f"</iframe>\n"
        f"```\n"
    )


def _write(example: Example, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    derivation = bb.fuse(bb.lower(example.program()))
    derivation.to_html(path, prove=PROVING.get(example.name, False))
