"""What a rule saves and costs, in the words of its own file."""

from __future__ import annotations

import sys

from blockbuster.rules import Rule


def why(rule: Rule) -> str:
    """The paragraph of the rule's module that begins with what it saves, enables or costs.

    >>> from blockbuster.rules import FuseReduction
    >>> why(FuseReduction())[:28]
    'Saves one buffered edge. Cos'
    """
    text = sys.modules[type(rule).__module__].__doc__ or type(rule).__doc__ or ""
    paragraphs = [" ".join(p.split()) for p in text.split("\n\n")]
    told = [p for p in paragraphs[1:] if not p.startswith(("before", "Source"))]
    return (told or paragraphs)[0].partition(" Source:")[0]
