"""The programs that a derivation passes, and where each step takes place in them."""

from __future__ import annotations

from dataclasses import dataclass

from blockbuster.ir.graph import Graph
from blockbuster.rules import Derivation, safe
from blockbuster.rules.derivation import Path, apply_at


@dataclass(frozen=True)
class Frame:
    """One step: the paths of the nodes it took in ``before`` and of those it made in ``after``.

    ``roles`` says what each node that was taken is to the rule. Without ``index`` it is the last
    step, which is no rule's: the numerically safe form.
    """

    before: Graph
    after: Graph
    index: int | None
    roles: tuple[tuple[str, Path], ...]
    made: tuple[Path, ...]


def frames(derivation: Derivation) -> tuple[Frame, ...]:
    """Every step up to the last snapshot, and the numerically safe form where it differs."""
    found = []
    before = derivation.start
    for index in range(derivation.snapshots_after[-1]):
        application = derivation.applications[index]
        after, moves = apply_at(before, application)
        path = application.path
        roles = tuple((role, (*path, at)) for role, at in application.nodes.items())
        level = moves.now
        made = _new_nodes(before.at(path), after.at(level), level)
        found.append(Frame(before, after, index, roles, made))
        before = after
    stable = safe(before)
    if stable != before:
        made = tuple(_by_the_pass(stable))
        found.append(Frame(before, stable, None, (), made))
    return tuple(found)


def _new_nodes(before: Graph, after: Graph, level: Path) -> tuple[Path, ...]:
    """The nodes of a level with an origin that none had before: each rule application makes one."""
    old = {id(node.origin) for node in before.nodes}
    return tuple((*level, at) for at, node in enumerate(after.nodes) if id(node.origin) not in old)


def _by_the_pass(graph: Graph) -> list[Path]:
    """The nodes that the numerical-safety pass wrote, at any depth."""
    return [
        (*at, position)
        for at, level in graph.walk()
        for position, node in enumerate(level.nodes)
        if node.origin.rule == "safe"
    ]
