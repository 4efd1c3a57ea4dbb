"""The documentation site.

Sphinx reads the repository itself, not a folder of copies: README.md is the first page, and a link
that works in a checkout works on the site. `<!-- generated: NAME -->` in a page is filled in by the
function of that name in generated.py, unless the page holds the list already (filled_in.py).
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parent))

import gallery
import generated

import blockbuster

project = "Blockbuster"
author = copyright = "The Blockbuster authors"
version = release = blockbuster.__version__

root_doc = "README"
include_patterns = [
    "*.md",
    "docs/**.md",
    "bench/results/**.md",
    "bench/schedules/*.md",
    "bench/costs/*.md",
    "bench/peers/*.md",
    "bench/outside/*.md",
    "notebooks/*.ipynb",
]
exclude_patterns = [".*", "**/.*", "build", "dist", "tests", "blockbuster", "*.egg-info"]

extensions = ["myst_nb", "sphinx.ext.autodoc"]
nb_execution_mode = "off"  # notebooks come with their outputs; CI runs them on their own
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_type_aliases = {name: name for name in ("Array", "ArrayLike", "Dim")}
add_module_names = False

highlight_language = "none"  # of blocks that name no language

html_theme = "furo"
html_title = "Blockbuster"
html_additional_pages = {"index": "index.html"}  # leads to README.html
html_static_path = ["static"]
html_extra_path = [str(gallery.PAGES)]  # filled while pages are read
html_css_files = ["site.css"]
templates_path = ["templates"]
html_show_sourcelink = False
html_copy_source = False

PLACE = re.compile(r"^<!-- generated: (\w+) -->$(?!\n.*?^<!-- end: \1 -->$)", re.M | re.S)
"""Marks whose lists are not in the page already: filled_in.py writes those."""


gallery.PAGES.mkdir(parents=True, exist_ok=True)


def fill_in(_: Sphinx, page: str, source: list[str]) -> None:
    """What code says, in place of the marks of a page."""
    source[0] = PLACE.sub(lambda found: getattr(generated, found[1])(), source[0])
    if page == root_doc:
        source[0] += generated.contents()


def setup(app: Sphinx) -> None:
    """Sphinx calls this."""
    app.connect("source-read", fill_in)
