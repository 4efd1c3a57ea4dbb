"""A plain implementation of the fusion algorithm: the oracle of the driver.

Every step finds the first match anew, rewrites immutable graphs and verifies the whole program.
"""

from __future__ import annotations

from collections.abc import Sequence

from blockbuster.ir.graph import Graph
from blockbuster.ir.verify import verify
from blockbuster.rules.base import Rule
from blockbuster.rules.derivation import Application, Derivation, Path, apply_at


def plain_fuse(graph: Graph, rules: Sequence[Rule]) -> Derivation:
    """The result that ``rules.driver.fuse`` must return, step by step."""
    ordinary = [rule for rule in rules if rule.kind != "extension"]
    extensions = [rule for rule in rules if rule.kind == "extension"]
    programs = [graph]
    done: list[Application] = []
    snapshots: list[int] = []
    visited: list[Graph] = []

    def step(path: Path, rules: Sequence[Rule]) -> Path | None:
        level = programs[-1].at(path)
        found = next((m for rule in rules if (m := rule.match(level))), None)
        if found is None:
            return None
        done.append(Application(found.rule, path, dict(found.nodes), found.rule.describe(found)))
        program, now = apply_at(programs[-1], done[-1])
        verify(program)
        programs.append(program)
        visited.extend([*program.along(now)][:-1])
        return now

    def unvisited() -> Path | None:
        levels = programs[-1].walk()
        return next((p for p, level in levels if all(level is not v for v in visited)), None)

    while True:
        visited.clear()
        while (path := unvisited()) is not None:
            while (at := step(path, ordinary)) is not None:
                path = at
            visited.append(programs[-1].at(path))
        snapshots.append(len(done))
        if not any(step(path, extensions) is not None for path, _ in list(programs[-1].walk())):
            return Derivation(graph, tuple(done), tuple(snapshots), dict(enumerate(programs)))
