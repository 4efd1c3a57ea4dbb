"""The pages of the documents, and the blocks between fences in them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for pattern in ("*.md", "docs/**/*.md", "bench/**/*.md")
    for path in ROOT.glob(pattern)
)
FENCE = re.compile(r"^(`{3,})(.*?)\n(.*?)^\1$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """What stands between two fences: its language, the options behind that, its text."""

    language: str
    options: dict[str, str]
    text: str
    line: int
    start: int
    """Where the text begins on its page."""


def blocks_of(page: str) -> Iterator[Block]:
    """The blocks of a page's text, in order."""
    for found in FENCE.finditer(page):
        language, *options = found[2].split() or [""]
        pairs = dict(option.split("=", 1) for option in options if "=" in option)
        line = page.count("\n", 0, found.start()) + 2
        yield Block(language, pairs, found[3], line, found.start(3))
