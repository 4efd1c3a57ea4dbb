"""Graphviz's SVG without what the page does not need; elements know their node by its place."""

from __future__ import annotations

import re

HEAD = re.compile(r"<svg[^>]*viewBox=\"([^\"]*)\"[^>]*>")
GONE = re.compile(r"<title>.*?</title>\s*|<!--.*?-->\s*|</?a\b[^>]*>\s*", re.DOTALL)
UNSEEN = re.compile(r"<g id=\"[^\"]*b-[\d-]*\" class=\"cluster space\">.*?</g>\s*", re.DOTALL)
PLACE = re.compile(r" id=\"n-([\d-]+)\"")
OTHER = re.compile(r" (?:id|font-family|xml:space)=\"[^\"]*\"")
TAG = re.compile(r"<[^>]*>")
DIGITS = re.compile(r"(\d\.\d)\d+")


def plain_svg(svg: str) -> str:
    """The picture alone: no titles, links, unseen boxes, fonts; black is the color of the text.

    Places are rounded to a tenth of a point, the numbers of labels never.
    """
    found = HEAD.search(svg)
    assert found is not None, "Graphviz writes a view box"
    body = svg[found.end() : svg.rindex("</svg>")]
    body = TAG.sub(_tag, GONE.sub("", UNSEEN.sub("", body)))
    box = DIGITS.sub(r"\1", found[1])
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}">{body.strip()}</svg>'


def _tag(found: re.Match[str]) -> str:
    tag = OTHER.sub("", PLACE.sub(r' data-place="\1"', found[0]))
    tag = tag.replace('="black"', '="currentColor"')
    return DIGITS.sub(r"\1", tag)
