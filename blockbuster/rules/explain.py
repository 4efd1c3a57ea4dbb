"""Why is this edge still buffered? The nearest rule and the precondition it failed, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from blockbuster.ir.graph import Graph, Value
from blockbuster.ir.ops import Map, Misc, Relabel, Transpose
from blockbuster.rules.base import Refusal, Rule, label, name_of
from blockbuster.rules.derivation import Path, path_in_words

BARRIERS = {
    Misc: "is a function of whole arrays: rules do not look inside it",
    Transpose: "reorders a list that was made in another order: the two loops do not correspond",
    Relabel: "reads the list under another dim: iteration i of one loop needs all of the other",
}


@dataclass(frozen=True)
class Explanation:
    """An interior buffered edge and the reason it is there."""

    path: Path
    producer: str
    consumer: str
    type: str
    rule: Rule | None
    reason: str
    level: str = field(default="/")

    def __str__(self) -> str:
        rule = f"{self.rule.name}: " if self.rule else ""
        return (
            f"{self.level}  {self.producer} ({self.type}) -> {self.consumer}: {rule}{self.reason}"
        )


def explain_with(graph: Graph, rules: Sequence[Rule]) -> tuple[Explanation, ...]:
    """One explanation for each interior buffered edge, at every level, in order."""
    found = []
    for path, value, consumer in graph.buffered_edges():
        level = graph.at(path)
        rule, reason = _nearest(level, value, consumer, rules)
        found.append(
            Explanation(
                path,
                name_of(level, value),
                label(level.nodes[consumer]),
                str(level.type_of(value)),
                rule,
                reason,
                path_in_words(graph, path),
            )
        )
    return tuple(found)


def _nearest(
    level: Graph, value: Value, consumer: int, rules: Sequence[Rule]
) -> tuple[Rule | None, str]:
    """The refusal that speaks of both ends, else of one of them, else of the whole level."""
    for end in (level.nodes[consumer], level.nodes[value.node]):
        if type(end.op) in BARRIERS:
            return None, f"{label(end)} {BARRIERS[type(end.op)]}"
    refusals: list[Refusal] = []
    for rule in rules:
        for match in rule.matches(level, refusals.append):
            if {value.node, consumer} <= set(match.nodes.values()):
                return rule, "applies here: fuse the program"
    both = [r for r in refusals if {value.node, consumer} <= set(r.nodes)]
    one = [r for r in refusals if r.rule.kind == "extension" and consumer in r.nodes]
    one.sort(key=lambda refusal: refusal not in both)  # that of the pair says more
    different = _different_dims(level, value, consumer)
    for refusal in (*one, *both) if different else (*both, *one):
        return refusal.rule, refusal.reason
    return None, different or "no rule has a pattern with these two operators"


def _different_dims(level: Graph, value: Value, consumer: int) -> str:
    first, second = level.nodes[value.node].op, level.nodes[consumer].op
    if isinstance(first, Map) and isinstance(second, Map) and first.dim != second.dim:
        return f"one loop runs over {first.dim}, the other over {second.dim}"
    return ""
