"""The benefits and costs of a rule or a move, in the words of its own file."""

from __future__ import annotations

import sys

from blockbuster.emit.schedule.base import Move
from blockbuster.rules import Rule


def why(rule: Rule | Move) -> str:
    """The paragraph of the module that begins with what it saves, enables or costs.

    >>> from blockbuster.rules import FuseReduction
    >>> why(FuseReduction())[:28]
    'Saves one buffered edge. Cos'
    """
    paragraphs = _paragraphs(rule)
    told = [p for p in paragraphs[1:] if not p.startswith(("before", "Source", " "))]
    return (told or paragraphs)[0].partition(" Source:")[0]


def lead(rule: Rule | Move) -> str:
    """The sentence that says what the rule or move does, without the name in front.

    >>> from blockbuster.rules import FuseReduction
    >>> lead(FuseReduction())
    'a map whose list is reduced folds it on the fly.'
    """
    return _paragraphs(rule)[0].removeprefix(f"{rule.name}: ")


def _paragraphs(rule: Rule | Move) -> list[str]:
    """Paragraphs on one line each; those of a drawing begin with a blank."""
    text = sys.modules[type(rule).__module__].__doc__ or type(rule).__doc__ or ""
    return [" " * p.startswith(" ") + " ".join(p.split()) for p in text.split("\n\n")]
