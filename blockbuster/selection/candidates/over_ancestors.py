"""Candidates beside the snapshots: programs whose maps are extended over ancestors only.

Where the paper's rule 6 applies, it comes first, and the map that makes the result takes in the
whole graph: for example two products, of which the second repeats the first for every block of its
columns. A norm before the first would cost far less to take in, but no snapshot takes in the norm
alone: all later ones hold the repeated product. So fusion continues without rule 6 from the
snapshot before it, and new programs are candidates. Which is cheaper depends on sizes, and
choice.py decides.
"""

from __future__ import annotations

from blockbuster.rules import RULES, Derivation, ExtendMap, ExtendMapOverAncestors, fuse
from blockbuster.selection.candidates.variant import Variant


def over_ancestors(derivation: Derivation) -> tuple[Variant, ...]:
    """The first program that ``derivation`` leaves out by extending over whole graphs, if any."""
    by_rule_6 = [
        count
        for count, application in enumerate(derivation.applications)
        if application.rule.name == ExtendMap.name
    ]
    if not by_rule_6:
        return ()
    number = derivation.snapshots_after.index(by_rule_6[0]) + 1
    before = derivation.at_snapshot(number)
    rules = [rule for rule in RULES if rule.name != ExtendMap.name]
    whole = before.followed_by(fuse(before.final, rules))
    known = dict.fromkeys(derivation.snapshots)
    found = (whole.at_snapshot(at) for at in range(2, len(whole.snapshots_after) + 1))
    new = next((made for made in found if made.final not in known), None)
    return () if new is None else (_named(new, number),)


def _named(made: Derivation, number: int) -> Variant:
    """A program whose maps took in ancestors alone since snapshot ``number``, counted from 1."""
    steps = made.applications
    count = sum(step.rule.name == ExtendMapOverAncestors.name for step in steps)
    times = "once" if count == 1 else f"{count} times"
    return Variant(made, f"snapshot {number} extended {times} over ancestors alone")
