"""The fusion algorithm: rules in order of priority, breadth first over the hierarchy.

``fuse`` is the procedure of section 4 of Blockbuster Part 1, its slips mended: apply fusion and
companion rules to a fixpoint at every level, take a snapshot, extend one map, and again, until
nothing can be extended. It goes by the rules' kinds alone and knows no rule by name.

A level is rewritten in place, and put back into the program when it is done or its map must follow.
Tests compare this driver with the plain one of ``testing/plain_driver.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from blockbuster.errors import FusionError, RuleError, VerifyError, message
from blockbuster.ir.garbage import collection_paused
from blockbuster.ir.graph import Graph
from blockbuster.ir.level import Level
from blockbuster.ir.ops import Map
from blockbuster.ir.types import Type
from blockbuster.ir.verify import verify, verify_nodes
from blockbuster.rules.base import LocalRule, Match, Rule
from blockbuster.rules.derivation import (
    Application,
    Derivation,
    Path,
    apply_at,
    moved,
    splice,
)
from blockbuster.rules.worklist import Worklist, result_types

CHECKPOINT_EVERY = 16
DEEPEST = 64
"""Nested maps: comparing programs takes ten calls for each, of the 1000 that Python allows."""
STEP_LIMIT = 100_000


def fuse(graph: Graph, rules: Sequence[Rule]) -> Derivation:
    """Fuse ``graph`` with ``rules``, the first with the highest priority.

    Raises RuleError where a rule makes an ill-formed graph or the rules loop, FusionError where
    more than 64 maps are nested.
    """
    verify(graph)
    if graph.depth > DEEPEST:
        what = f"the program nests {graph.depth} maps, more than {DEEPEST}"
        hint = "run some of its dims as a loop around it, or as axes of larger blocks"
        raise FusionError(message(what, hint=hint))
    work = _Work(graph)
    ordinary = [rule for rule in rules if rule.kind != "extension"]
    extensions = [rule for rule in rules if rule.kind == "extension"]
    with collection_paused():
        while True:
            _fuse_every_level(work, ordinary)
            work.take_snapshot()
            if not _extend_one(work, extensions):
                return work.derivation()


def _fuse_every_level(work: _Work, rules: Sequence[Rule]) -> None:
    work.pending = [()]
    while work.pending:
        path = work.fuse_level(work.pending.pop(0), rules)
        work.pending += [(*path, at) for at, _ in work.graph.at(path).of_type(Map)]


def _extend_one(work: _Work, rules: Sequence[Rule]) -> bool:
    for path, level in work.graph.walk():
        for rule in rules:
            found = rule.match(level)
            if found is not None:
                work.apply(path, found)
                return True
    return False


class _Work:
    """The program being rewritten, what was done to it, and the levels still to visit."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.pending: list[Path] = []
        self._start = graph
        self._done: list[Application] = []
        self._snapshots: list[int] = []
        self._checkpoints = {0: graph}
        self._next_checkpoint = CHECKPOINT_EVERY
        self._seen = {graph: 0}
        self._finished: dict[int, Graph] = {}
        self._well_formed: dict[int, Graph] = {}

    def fuse_level(self, path: Path, rules: Sequence[Rule]) -> Path:
        """Apply rules to the level at ``path`` to a fixpoint; returns where it is then."""
        if id(self.graph.at(path)) in self._finished:
            return path  # no rule applied before, and the graph is the same
        todo = Worklist(Level(self.graph.at(path)), rules)
        while (found := todo.first()) is not None:
            if isinstance(found.rule, LocalRule):
                path = self._edit(path, found, todo)
            else:
                path = self.apply(self._put_back(path, todo.level), found)
                todo = Worklist(Level(self.graph.at(path)), rules)
        path = self._put_back(path, todo.level)
        level = self.graph.at(path)
        self._finished[id(level)] = level
        return path

    def apply(self, path: Path, found: Match) -> Path:
        """Apply ``found`` to the level at ``path``; returns where that level is now."""
        self._seen.setdefault(self.graph, len(self._done))
        self._note(path, found, found.nodes)
        rewritten = found.rule.apply(found)
        check_rewritten(rewritten, found)
        path = self._replace(path, rewritten)
        self._watch_for_loops()
        if len(self._done) >= self._next_checkpoint:
            self._take_checkpoint()
        return path

    def _edit(self, path: Path, found: Match, todo: Worklist) -> Path:
        level = todo.level
        self._note(path, found, {role: level.rank[key] for role, key in found.nodes.items()})
        found.rule.apply(found)
        self._check_edit(level, todo.result_types)
        todo.update()
        if level.ports_moved():
            path = self._put_back(path, level)
            todo.move_to(Level(self.graph.at(path)))
        if len(self._done) >= self._next_checkpoint:
            path = self._put_back(path, todo.level)
            self._take_checkpoint()
            self._watch_for_loops()
        return path

    def _note(self, path: Path, found: Match, nodes: Mapping[str, int]) -> None:
        description = found.rule.describe(found)
        self._done.append(Application(found.rule, path, dict(nodes), description))

    def _put_back(self, path: Path, level: Level) -> Path:
        if level.graph() is self.graph.at(path):
            return path
        return self._replace(path, level.graph())

    def _replace(self, path: Path, inner: Graph) -> Path:
        self.graph, moves = splice(self.graph, path, inner)
        if any(moves):
            self.pending = [moved(other, path, moves) for other in self.pending]
        return moved(path, path, moves)

    def take_snapshot(self) -> None:
        """Remember the program as it is now."""
        try:
            verify(self.graph, self._well_formed)
        except VerifyError:
            self._blame()
        self._snapshots.append(len(self._done))
        self._take_checkpoint()

    def derivation(self) -> Derivation:
        """What was done, as data."""
        return Derivation(
            self._start, tuple(self._done), tuple(self._snapshots), dict(self._checkpoints)
        )

    def _take_checkpoint(self) -> None:
        self._checkpoints[len(self._done)] = self.graph
        self._next_checkpoint = len(self._done) + CHECKPOINT_EVERY + self.graph.size // 16

    def _check_edit(self, level: Level, before: Sequence[Type]) -> None:
        """What the last step made must be well-formed; snapshots are verified as a whole."""
        if before == result_types(level) and not any(verify_nodes(level, level.change.new)):
            return
        self._blame()

    def _blame(self) -> None:
        """Find the step that made the program ill-formed, by applying all again."""
        graph = self._start
        for application in self._done:
            level = graph.at(application.path)
            found = Match(application.rule, level, application.nodes)
            check_rewritten(application.rule.apply(found), found)
            graph = apply_at(graph, application)[0]
        raise AssertionError("the driver, not a rule, made the program ill-formed")

    def _watch_for_loops(self) -> None:
        count = len(self._done)
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


def check_rewritten(graph: Graph, found: Match) -> None:
    """A rule must give a well-formed graph that makes the same results."""
    before, after = result_types(found.graph), result_types(graph)
    try:
        verify(graph)
        if before != after:
            raise VerifyError(f"the results had types {before} and have {after}")
    except VerifyError as error:
        listing = f"{found.graph.show()}---\n{graph.show()}"
        what = f"{found.rule.name} made an ill-formed graph: {error}"
        raise RuleError(message(what, listing=listing)) from None
