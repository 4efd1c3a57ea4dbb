"""Writes the lists of the pages that readers find in the repository, too: `make pages`.

    <!-- generated: NAME -->
    what the function NAME of generated.py says
    <!-- end: NAME -->

`python docs/filled_in.py` writes them, and a test says which page is not as it would write it.
A mark without an end is filled in only on the site: such text means nothing outside of it.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = (
    "docs/functions.md",
    "docs/command_line.md",
    "docs/rules.md",
    "docs/text_form.md",
    "docs/results.md",
    "docs/targets_and_machines.md",
    "docs/tile_programs.md",
)
LIST = re.compile(r"^(<!-- generated: (\w+) -->)\n(?:.*?\n)??(<!-- end: \2 -->)$", re.M | re.S)


def filled_in(text: str) -> str:
    """The text of a page with its lists as the code makes them today."""
    import generated

    def current(found: re.Match[str]) -> str:
        made = str(getattr(generated, found[2])()).strip("\n")
        return f"{found[1]}\n\n{made}\n\n{found[3]}"

    return LIST.sub(current, text)


def outdated() -> dict[Path, str]:
    """The pages whose lists are not current, and what they should hold."""
    found = {}
    for path in (ROOT / page for page in PAGES):
        text = path.read_text("utf-8")
        if (now := filled_in(text)) != text:
            found[path] = now
    return found


def main() -> None:
    """Writes the pages that have changed."""
    for path, text in outdated().items():
        path.write_text(text, "utf-8")
        sys.stdout.write(f"wrote {path.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
