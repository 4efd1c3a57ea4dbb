"""The pictures of the documents: programs before and after they are fused.

    make pictures        writes docs/images/*.svg; needs the extra `draw`

They are on white ground with black text, because readers see them in pages of any colour.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import blockbuster as bb
from blockbuster.examples import attention
from blockbuster.frontend import ArrayProgram
from blockbuster.view.draw import draw

IMAGES = Path(__file__).parent / "images"
SIZE = re.compile(r'<svg width="(\d+)pt" height="(\d+)pt"')
MARGIN, TITLE = 12, 24
LARGER = 1.4  # how much the smaller picture may be enlarged


def layer(x: Any, w: Any) -> Any:
    """The function of the tutorial."""
    return bb.relu(bb.rms_norm(x) @ w)


def programs() -> dict[str, ArrayProgram]:
    """What is drawn, by the name of its picture."""
    return {
        "attention": bb.trace(attention, q="M D", k="N D", v="N L"),
        "layer": bb.trace(layer, x="M K", w="K N"),
    }


def place_of(name: str) -> Path:
    """Where a picture is."""
    return IMAGES / f"{name}-before-after.svg"


def titled(derivation: bb.Derivation) -> dict[str, bb.Graph]:
    """A program and its fused form, by what stands above them."""
    steps, edges = len(derivation.steps), len(derivation.start.buffered_edges())
    assert not derivation.final.buffered_edges()
    before = f"Before: what goes through global memory is red, on {edges} edges inside"
    after = f"After {steps} rewrites: one kernel, and nothing inside it goes there"
    return {before: derivation.start, after: derivation.final}


def stacked(pictures: dict[str, str]) -> str:
    """Pictures with titles, one below the other, as one SVG file."""
    sizes = [tuple(map(int, SIZE.findall(svg)[0])) for svg in pictures.values()]
    widest = max(width for width, _ in sizes)
    parts, top = [], MARGIN
    for (title, svg), (width, height) in zip(pictures.items(), sizes, strict=True):
        scale = min(LARGER, widest / width)
        size = f'width="{width * scale:.0f}" height="{height * scale:.0f}"'
        inner = SIZE.sub(f'<svg x="{MARGIN}" y="{top + TITLE}" {size}', svg)
        parts.append(f'<text x="{MARGIN + 4}" y="{top + 14}">{title}</text>')
        parts.append(re.sub(r' id="[^"]*"', "", inner).strip())  # ids of two pictures would collide
        top += TITLE + round(height * scale) + MARGIN
    width = widest + 2 * MARGIN
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {top}" width="{width}"'
        f' height="{top}" font-family="sans-serif" font-size="15" style="color: black">'
    )
    return "\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *parts, "</svg>\n"])


def main() -> None:
    """Draw and write."""
    IMAGES.mkdir(exist_ok=True)
    for name, program in programs().items():
        pictures = titled(bb.fuse(bb.lower(program)))
        text = stacked({title: draw(graph).svg() for title, graph in pictures.items()})
        place_of(name).write_text(text, encoding="utf-8", newline="\n")
        print(f"wrote {place_of(name).relative_to(IMAGES.parents[1])}")


if __name__ == "__main__":
    main()
