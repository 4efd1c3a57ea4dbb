"""Graphviz's SVG, reduced to what the page needs; each element names its node by place."""

from __future__ import annotations

import re

HEAD = re.compile(r"<svg[^>]*viewBox=\"([^\"]*)\"[^>]*>")
DASH = "&#45;"  # how Graphviz writes the dashes of ids
GONE = re.compile(r"<title>.*?</title>\s*|<!--.*?-->\s*", re.DOTALL)
LINK = re.compile(r"<g id=\"a_[^>]*>\s*<a\b[^>]*>(.*?)</a>\s*</g>\s*", re.DOTALL)
UNSEEN = re.compile(r"<g id=\"[^\"]*\" class=\"cluster space\">\s*<polygon[^>]*>\s*</g>\s*")
PLACE = re.compile(r" id=\"n-([\d-]+)\"")
PART = re.compile(r" id=\"k-(\d+)\"")  # a box of a plan
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
    body = LINK.sub(r"\1", GONE.sub("", body.replace(DASH, "-")))
    body = TAG.sub(_tag, UNSEEN.sub("", body))
    box = DIGITS.sub(r"\1", found[1])
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}">{body.strip()}</svg>'


def _tag(found: re.Match[str]) -> str:
    tag = PART.sub(r' data-part="\1"', PLACE.sub(r' data-place="\1"', found[0]))
    tag = OTHER.sub("", tag)
    tag = tag.replace('="black"', '="currentColor"')
    return DIGITS.sub(r"\1", tag)
