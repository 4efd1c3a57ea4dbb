"""The fusion algorithm: rules in order of priority, breadth first over the hierarchy.

``fuse`` is the procedure of section 4 of Blockbuster Part 1, its slips mended: apply fusion and
companion rules to a fixpoint at every level, take a snapshot, extend one map, and again, until
nothing can be extended. It goes by the rules' kinds alone and knows no rule by name.
"""

from __future__ import annotations

from collections.abc import Sequence

from blockbuster.errors import RuleError, VerifyError, message
from blockbuster.ir.graph import Graph
from blockbuster.ir.ops import Map
from blockbuster.ir.verify import verify
from blockbuster.rules.base import Match, Rule
from blockbuster.rules.derivation import Application, Derivation, Path, Positions, splice

CHECKPOINT_EVERY = 16
STEP_LIMIT = 100_000


def fuse(graph: Graph, rules: Sequence[Rule]) -> Derivation:
    """Fuse ``graph`` with ``rules``, the first with the highest priority.

    Raises RuleError where a rule makes an ill-formed graph or the rules loop.
    """
    verify(graph)
    work = _Work(graph)
    ordinary = [rule for rule in rules if rule.kind != "extension"]
    extensions = [rule for rule in rules if rule.kind == "extension"]
    while True:
        _fuse_every_level(work, ordinary)
        work.take_snapshot()
        if not _extend_one(work, extensions):
            return work.derivation()


def _fuse_every_level(work: _Work, rules: Sequence[Rule]) -> None:
    work.pending = [()]
    while work.pending:
        path = work.pending.pop(0)
        while (found := _first_match(rules, work.graph.at(path))) is not None:
            path = work.apply(path, found)
        work.pending += [(*path, at) for at, _ in work.graph.at(path).of_type(Map)]


def _extend_one(work: _Work, rules: Sequence[Rule]) -> bool:
    for path, level in work.graph.walk():
        found = _first_match(rules, level)
        if found is not None:
            work.apply(path, found)
            return True
    return False


def _first_match(rules: Sequence[Rule], graph: Graph) -> Match | None:
    for rule in rules:
        found = rule.match(graph)
        if found is not None:
            return found
    return None


class _Work:
    """The program being rewritten, what was done to it, and the levels still to visit."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.pending: list[Path] = []
        self._start = graph
        self._done: list[Application] = []
        self._snapshots: list[int] = []
        self._checkpoints = {0: graph}
        self._seen = {graph: 0}

    def apply(self, path: Path, found: Match) -> Path:
        """Apply ``found`` to the level at ``path``; returns where that level is now."""
        description = found.rule.describe(found)
        application = Application(found.rule, path, dict(found.nodes), description)
        rewritten = found.rule.apply(found)
        _check(rewritten, found)
        self.graph, moves = splice(self.graph, path, rewritten)
        self._done.append(application)
        count = len(self._done)
        if count % CHECKPOINT_EVERY == 0:
            self._checkpoints[count] = self.graph
        self._watch_for_loops(count)
        self.pending = [_moved(other, path, moves) for other in self.pending]
        return _moved(path, path, moves)

    def take_snapshot(self) -> None:
        """Remember the program as it is now."""
        self._snapshots.append(len(self._done))
        self._checkpoints[len(self._done)] = self.graph

    def derivation(self) -> Derivation:
        """What was done, as data."""
        return Derivation(
            self._start, tuple(self._done), tuple(self._snapshots), dict(self._checkpoints)
        )

    def _watch_for_loops(self, count: int) -> None:
        since = self._seen.setdefault(self.graph, count)
        if since == count and count <= STEP_LIMIT:
            return
        loop = "\n".join(a.description for a in self._done[since:][:20])
        what = "the rules loop" if since < count else f"more than {STEP_LIMIT} steps"
        names = ", ".join(dict.fromkeys(a.rule.name for a in self._done[since:]))
        hint = f"a rule among {names} undoes another: leave one out"
        raise RuleError(
            message(
                f"{what}: step {count} gives the program of step {since}", listing=loop, hint=hint
            )
        )


def _moved(path: Path, changed: Path, moves: tuple[Positions, ...]) -> Path:
    """``path`` after the levels along ``changed`` were renumbered by ``moves``."""
    new = list(path)
    for depth, move in enumerate(moves):
        if len(path) <= depth or path[:depth] != changed[:depth]:
            break
        new[depth] = move[path[depth]]
    return tuple(new)


def _check(graph: Graph, found: Match) -> None:
    """A rule must give a well-formed graph that makes the same results."""
    before = [found.graph.type_of(o.value) for o in found.graph.outputs]
    after = [graph.type_of(o.value) for o in graph.outputs]
    try:
        verify(graph)
        if before != after:
            raise VerifyError(f"the results had types {before} and have {after}")
    except VerifyError as error:
        listing = f"{found.graph.show()}---\n{graph.show()}"
        what = f"{found.rule.name} made an ill-formed graph: {error}"
        raise RuleError(message(what, listing=listing)) from None
