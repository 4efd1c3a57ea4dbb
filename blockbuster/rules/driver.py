"""The fusion algorithm: rules in order of priority, breadth first over the hierarchy.

``fuse`` is the procedure of section 4 of Blockbuster Part 1, with its errors corrected: apply
fusion and companion rules to a fixpoint at every level, take a snapshot, extend one map, and repeat
until no map can be extended. It depends only on the rules' kinds and knows no rule by name.

A level is rewritten in place. It is put back into the program when it is done or its map must
follow. Tests compare this driver with the plain one of ``tests/rules/plain_driver.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from heapq import heappop, heappush

from blockbuster.errors import FusionError, RuleError, VerifyError, message
from blockbuster.ir.garbage import collection_paused
from blockbuster.ir.graph import Graph
from blockbuster.ir.level import Level
from blockbuster.ir.ops import Map
from blockbuster.ir.types import Type
from blockbuster.ir.verify import Known, verify, verify_nodes
from blockbuster.rules.base import Match, Rule, takes_levels
from blockbuster.rules.derivation import Application, Derivation, Path, apply_at, splice
from blockbuster.rules.faults import (
    OnFault,
    applied,
    check_rewritten,
    check_rules,
    described,
    fault_of,
    hear,
    no_graph,
    raised,
    result_types,
)
from blockbuster.rules.worklist import Worklist

CHECKPOINT_EVERY = 16
DEEPEST = 64
"""Nested maps: comparing programs takes ten calls for each, of the 1000 that Python allows."""
STEP_LIMIT = 100_000


def fuse(graph: Graph, rules: Sequence[Rule], on_fault: OnFault | None = None) -> Derivation:
    """Fuse ``graph`` with ``rules``, the first with the highest priority.

    Raises RuleError if a rule fails or makes an ill-formed graph or the rules loop, FusionError if
    more than 64 maps are nested, TypeError for anything but a graph and a sequence of rules. If
    there is an ``on_fault``, it is told of a rule that fails, and the graph is fused without it.
    """
    check_rules(rules)
    known = Known()
    verify(graph, known)
    if graph.depth > DEEPEST:
        what = f"the program nests {graph.depth} maps, more than {DEEPEST}"
        hint = "run some of its dims as a loop around it, or as axes of larger blocks"
        raise FusionError(message(what, hint=hint))
    left = tuple(rules)
    with collection_paused():
        while True:
            try:
                return _Work(graph, left, known).derivation()
            except RuleError as fault:
                others = tuple(rule for rule in left if rule != fault.rule)
                hear(on_fault if len(others) < len(left) else None, fault)
                left = others  # again from the start: the rule may have stopped half-way


class _Work:
    """The program being rewritten, what was done to it, and what is still to be looked at."""

    def __init__(self, graph: Graph, rules: Sequence[Rule], known: Known) -> None:
        self.graph = graph
        self._rule_set = tuple(rules)
        self._rules = [rule for rule in rules if rule.kind != "extension"]
        self._extensions = [rule for rule in rules if rule.kind == "extension"]
        self._pending: list[tuple[int, Path]] = []
        """The levels still to be visited, by depth and then by place."""
        self._visited: dict[int, Graph] = {}
        """Those that were, since the last extension, by their ids."""
        self._start = graph
        self._done: list[Application] = []
        self._snapshots: list[int] = []
        self._checkpoints = {0: graph}
        self._next_checkpoint = self._next_watch = CHECKPOINT_EVERY
        self._seen = {graph: 0}
        self._worklists: dict[int, Worklist] = {}
        """Those of levels of the program, by the ids of their graphs."""
        self._finished: dict[int, Graph] = {}
        """Levels to which no rule but an extension applies, by their ids."""
        self._settled: dict[int, Graph] = {}
        """Those that are finished with all inside them."""
        self._known = known

    def derivation(self) -> Derivation:
        """What was done until no rule applies, as data."""
        while True:
            self._fuse_every_level()
            self._take_snapshot()
            if not self._extend_one():
                break
        self._check(Known())
        return Derivation(
            self._start,
            tuple(self._done),
            tuple(self._snapshots),
            dict(self._checkpoints),
            self._rule_set,
        )

    def _fuse_every_level(self) -> None:
        """Apply rules to a fixpoint at one level after the other, breadth first."""
        self._visited.clear()
        self._pending = [(0, ())]
        while self._pending:
            _, path = heappop(self._pending)
            path = self._fuse_level(path)
            level = self.graph.at(path)
            self._visited[id(level)] = level
            for at, _ in self._maps_left(level):
                heappush(self._pending, (len(path) + 1, (*path, at)))
        for _, level in reversed([*self.graph.walk(self._settled)]):
            if self._is_settled(level):
                self._settled[id(level)] = level

    def _maps_left(self, level: Graph) -> Iterator[tuple[int, Map]]:
        """The maps of a level, but for those to which no rule applies, at any depth."""
        return ((at, op) for at, op in level.of_type(Map) if id(op.body) not in self._settled)

    def _look_again(self, but: Path) -> None:
        """Find the levels still to be visited, for nodes have moved; not that at ``but``."""
        self._pending.clear()
        around: list[tuple[Path, Graph]] = [((), self.graph)]
        for path, level in around:
            if id(level) in self._visited:
                around += [((*path, at), op.body) for at, op in self._maps_left(level)]
            elif path != but:
                heappush(self._pending, (len(path), path))

    def _is_settled(self, level: Graph) -> bool:
        bodies = (op.body for _, op in level.of_type(Map))
        return id(level) in self._finished and all(id(body) in self._settled for body in bodies)

    def _extend_one(self) -> bool:
        """Apply the first extension of the first level that has one."""
        for path, level in self.graph.walk():
            if id(level) not in self._worklists:
                self._worklists[id(level)] = self._worklist(level)
            found = self._worklists[id(level)].first_extension()
            if found is not None:
                self._put_away(*self._step(path, found, self._worklists.pop(id(level))))
                return True
        return False

    def _fuse_level(self, path: Path) -> Path:
        """Apply rules to the level at ``path`` to a fixpoint; returns where it is then."""
        level = self.graph.at(path)
        if id(level) in self._finished:
            return path
        todo = self._worklists.pop(id(level), None) or self._worklist(level)
        while (found := todo.first()) is not None:
            path, todo = self._step(path, found, todo)
        path = self._put_away(path, todo)
        level = self.graph.at(path)
        self._finished[id(level)] = level
        return path

    def _worklist(self, level: Graph) -> Worklist:
        return Worklist(Level(level), self._rules, self._extensions)

    def _put_away(self, path: Path, todo: Worklist) -> Path:
        """Keep the list of a level for when it, or something near its maps, changes again."""
        path = self._put_back(path, todo.level)
        if self.graph.at(path) is todo.level.graph():  # but for ports that its map has dropped
            self._worklists[id(todo.level.graph())] = todo
        return path

    def _step(self, path: Path, found: Match, todo: Worklist) -> tuple[Path, Worklist]:
        """Apply ``found`` to the level at ``path``; returns where it is now, and its list."""
        if takes_levels(found.rule):
            path = self._edit(path, found, todo)
        else:
            path = self._apply(self._put_back(path, todo.level), found)
            todo = self._worklist(self.graph.at(path))
        return path, todo

    def _apply(self, path: Path, found: Match) -> Path:
        self._seen.setdefault(self.graph, len(self._done))
        self._note(path, found, found.nodes)
        rewritten = self._rewritten(found)
        check_rewritten(rewritten, found, self._known)
        path = self._replace(path, rewritten)
        self._watch_for_loops()
        if len(self._done) >= self._next_checkpoint:
            self._take_checkpoint()
        return path

    def _edit(self, path: Path, found: Match, todo: Worklist) -> Path:
        level = todo.level
        self._note(path, found, {role: level.rank[key] for role, key in found.nodes.items()})
        made: object = self._rewritten(found)
        if made is not level:
            raise no_graph(found.rule, made, self._level_before())
        self._check_edit(level, todo.result_types)
        todo.update()
        if path and level.ports_moved():
            path = self._put_back(path, level)
            todo.move_to(Level(self.graph.at(path)))
        if len(self._done) >= self._next_checkpoint:
            path = self._put_back(path, todo.level)
            self._take_checkpoint()
            self._watch_for_loops()
        return path

    def _note(self, path: Path, found: Match, nodes: Mapping[str, int]) -> None:
        words = described(found, self.graph.at(path))
        self._done.append(Application(found.rule, path, dict(nodes), words))

    def _rewritten(self, found: Match) -> Graph:
        try:
            return found.rule.apply(found)
        except Exception as error:
            raise raised(found.rule, "apply", error, self._level_before()) from error

    def _level_before(self) -> Graph:
        """The level of the last step as it was before: an edit may have stopped half-way."""
        graph = self._start
        for application in self._done[:-1]:
            graph = apply_at(graph, application)[0]
        return graph.at(self._done[-1].path)

    def _put_back(self, path: Path, level: Level) -> Path:
        if level.graph() is self.graph.at(path):
            return path
        return self._replace(path, level.graph())

    def _replace(self, path: Path, inner: Graph) -> Path:
        before = self.graph.along(path)
        self.graph, path = splice(self.graph, path, inner)
        moved = False
        for old, new, position in zip(before, self.graph.along(path), (*path, None), strict=True):
            todo = self._worklists.pop(id(old), None)
            if position is not None and id(old) in self._visited:
                del self._visited[id(old)]
                self._visited[id(new)] = new
            if new is not inner and new.outputs is not old.outputs:
                moved = True
                continue  # more is another than the operator of the map at ``position``
            if self._known.nodes.pop(id(old), None):  # and every step since was checked
                self._known.nodes[id(new)] = new
            if todo and position is not None:
                todo.take_body(new, position)
                self._worklists[id(new)] = todo
        if moved:
            self._look_again(but=path)
        return path

    def _take_snapshot(self) -> None:
        """Remember the program as it is now."""
        self._check(self._known)
        if len(self._done) >= self._next_watch:
            self._watch_for_loops()
        self._snapshots.append(len(self._done))
        self._take_checkpoint()

    def _take_checkpoint(self) -> None:
        # rules keep what a program computes
        self._checkpoints[len(self._done)] = replace(self.graph, meaning=self._start.meaning)
        self._next_checkpoint = self._soon()

    def _soon(self) -> int:
        """The step after which to look at the whole program again, which takes its time."""
        return len(self._done) + CHECKPOINT_EVERY + self.graph.size // 16

    def _check(self, known: Known) -> None:
        try:
            verify(self.graph, known)
        except VerifyError:
            self._blame()

    def _check_edit(self, level: Level, before: Sequence[Type]) -> None:
        """What the last step made must be well-formed; bodies are verified with snapshots."""
        if before == result_types(level) and not any(verify_nodes(level, level.change.new)):
            return
        self._blame()

    def _blame(self) -> None:
        """Find the step that made the program ill-formed, by applying all again."""
        graph = self._start
        for application in self._done:
            level = graph.at(application.path)
            found = Match(application.rule, level, application.nodes)
            check_rewritten(applied(found), found)
            graph = apply_at(graph, application)[0]
        raise AssertionError("the driver, not a rule, made the program ill-formed")

    def _watch_for_loops(self) -> None:
        count = len(self._done)
        self._next_watch = self._soon()
        since = self._seen.setdefault(self.graph, count)
        if since == count and count <= STEP_LIMIT:
            return
        loop = "\n".join(a.description for a in self._done[since:][:20])
        what = "the rules loop" if since < count else f"more than {STEP_LIMIT} steps"
        rules = [*dict.fromkeys(a.rule for a in self._done[since:])]
        names = ", ".join(rule.name for rule in rules)
        hint = f"a rule among {names} undoes another: leave one out"
        text = f"{what}: step {count} gives the program of step {since}"
        raise fault_of(rules[-1], message(text, listing=loop, hint=hint))
