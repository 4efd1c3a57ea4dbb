"""A derivation: the steps that took a program to its fused form, as data that can be replayed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

from blockbuster.errors import RuleError, message
from blockbuster.ir.builder import Builder
from blockbuster.ir.graph import Graph, Value
from blockbuster.ir.ops import Map
from blockbuster.ir.types import Dim
from blockbuster.rules.base import Match, Rule
from blockbuster.rules.faults import applied, check_well_formed, described

if TYPE_CHECKING:
    from blockbuster.interp.report import ProofReport

Path = tuple[int, ...]
SCHEMA = "blockbuster.derivation/1"


@dataclass(frozen=True)
class Application:
    """One use of a rule: on the graph inside the maps of ``path``, at the positions of ``nodes``.

    The path is valid in the program before the step only: positions renumber.
    """

    rule: Rule
    path: Path
    nodes: Mapping[str, int]
    description: str


@dataclass(frozen=True)
class Step:
    """An application seen within its derivation; ``before`` and ``after`` are rebuilt on demand."""

    derivation: Derivation = field(repr=False)
    index: int
    rule: str
    number: int | None
    path: Path
    match: Mapping[str, int]
    description: str

    @property
    def before(self) -> Graph:
        """The whole program before the step."""
        return self.derivation.graph_after(self.index)

    @property
    def after(self) -> Graph:
        """The whole program after the step."""
        return self.derivation.graph_after(self.index + 1)


@dataclass(frozen=True)
class Derivation:
    """The steps from ``start`` by ``applications``, with snapshots before extensions and at the
    end.

    ``checkpoints`` hold the programs after some numbers of steps, so that any other is rebuilt by
    replaying a few. ``rules``: the rule set, if ``fuse`` made all of its steps; what is built of
    derivations, or read from a file, has none.
    """

    start: Graph
    applications: tuple[Application, ...]
    snapshots_after: tuple[int, ...]
    checkpoints: Mapping[int, Graph] = field(repr=False, compare=False)
    rules: tuple[Rule, ...] = field(default=(), repr=False, compare=False)

    def __repr__(self) -> str:
        edges = [len(graph.buffered_edges()) for graph in (self.start, self.final)]
        steps, snapshots = len(self.applications), len(self.snapshots_after)
        return (
            f"Derivation({steps} steps, {snapshots} snapshots, "
            f"{edges[0]} -> {edges[1]} buffered edges)"
        )

    def _repr_html_(self) -> str:
        from blockbuster.view.notebook import derivation_html

        return derivation_html(self)

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The steps in order."""
        return tuple(
            Step(self, i, a.rule.name, a.rule.number, a.path, a.nodes, a.description)
            for i, a in enumerate(self.applications)
        )

    @property
    def snapshots(self) -> tuple[Graph, ...]:
        """The programs that selection may choose from."""
        return tuple(self.graph_after(count) for count in self.snapshots_after)

    @property
    def final(self) -> Graph:
        """The last snapshot."""
        return self.graph_after(self.snapshots_after[-1])

    def graph_after(self, count: int) -> Graph:
        """The program after ``count`` steps."""
        if not 0 <= count <= len(self.applications):
            raise IndexError(f"{count} of {len(self.applications)} steps")
        nearest = max(c for c in self.checkpoints if c <= count)
        graph = self.checkpoints[nearest]
        for application in self.applications[nearest:count]:
            graph = apply_at(graph, application)[0]
        return graph

    def at_snapshot(self, number: int) -> Derivation:
        """The first part of this derivation, up to snapshot ``number``, counted from 1."""
        counts = self.snapshots_after[:number]
        last = counts[-1]
        kept = {count: graph for count, graph in self.checkpoints.items() if count <= last}
        return Derivation(self.start, self.applications[:last], counts, kept)

    def then(self, found: Match) -> Derivation:
        """This derivation with one more step, at a site of the final program, and a last snapshot.

        It applies rules that are in no rule set to a fused program. Raises ValueError for a site of
        another program, RuleError if the rule fails there.
        """
        if found.graph != self.final:
            raise ValueError("the site is not one of the final program: rule.matches(d.final)")
        words = described(found, found.graph)
        step = Application(found.rule, (), dict(found.nodes), words)
        done = (*self.applications[: self.snapshots_after[-1]], step)
        made = applied(found)
        check_well_formed(made, found)
        checkpoints = {**self.checkpoints, len(done): made}
        return Derivation(self.start, done, (*self.snapshots_after, len(done)), checkpoints)

    def followed_by(self, more: Derivation) -> Derivation:
        """This derivation, then ``more``; the snapshots of the whole are those of ``more`` only.

        Raises ValueError if ``more`` does not start from the final program.
        """
        done = self.snapshots_after[-1]
        if more.start != self.final:
            raise ValueError("the second derivation does not start from the final program")
        checkpoints = {count: graph for count, graph in self.checkpoints.items() if count <= done}
        checkpoints |= {done + count: graph for count, graph in more.checkpoints.items()}
        snapshots = tuple(done + count for count in more.snapshots_after)
        applications = (*self.applications[:done], *more.applications)
        return Derivation(self.start, applications, snapshots, checkpoints)

    def replay(self) -> Graph:
        """Apply every step again from the start; raises RuleError if a checkpoint differs."""
        graph = self.start
        for index, application in enumerate(self.applications):
            graph = apply_at(graph, application)[0]
            expected = self.checkpoints.get(index + 1, graph)
            if graph != expected:
                raise RuleError(
                    message(
                        f"replaying step {index + 1} ({application.rule.name}) differs",
                        listing=f"{expected.show()}---\n{graph.show()}",
                    )
                )
        return graph

    def pairs(self) -> Iterator[tuple[str, Graph, Graph]]:
        """The pairs of programs to prove equal: around each step, then the first and the last."""
        width = len(str(len(self.steps)))
        before = self.start
        for step, application in zip(self.steps, self.applications, strict=True):
            after = apply_at(before, application)[0]
            level = path_in_words(before, step.path)
            yield f"step {step.index + 1:{width}} {step.rule} at {level}", before, after
            before = after
        yield "start and final program", self.start, self.final

    def prove(
        self, *, trials: int = 8, seed: int = 0, progress: Callable[[str], None] | None = None
    ) -> ProofReport:
        """A proof of equality for each step, and for the start and the final program.

        ``progress`` is called with the name of each proof before it begins; without it, a terminal
        shows the names once the proofs have taken two seconds.
        """
        from blockbuster.interp.report import prove_pairs
        from blockbuster.view.terminal import telling

        with telling(progress, "proving") as tell:
            return prove_pairs(self.pairs(), trials=trials, seed=seed, progress=tell)

    def bisect(self, holds: Callable[[Graph], bool]) -> Step | None:
        """The first step after which ``holds`` is False, or None; assumes it stays False."""
        low, high = 0, len(self.applications)
        if holds(self.final):
            return None
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if holds(self.graph_after(middle)) else (low, middle)
        return self.steps[low] if self.applications else None

    def show(self) -> str:
        """A table of the steps: rule, level, description, buffered edges before and after."""
        lines = []
        edges = len(self.start.buffered_edges())
        for index, (step, application) in enumerate(
            zip(self.steps, self.applications, strict=True)
        ):
            left = len(step.after.buffered_edges())
            level = path_in_words(step.before, application.path)
            number = "" if step.number is None else f"rule {step.number}"
            snapshot = "  (snapshot)" if index + 1 in self.snapshots_after else ""
            lines.append(
                f"{index + 1:3} {number:7} {step.rule:16} {level:10} {step.description}"
                f"  [{edges} -> {left} buffered]{snapshot}"
            )
            edges = left
        return "\n".join(lines) + "\n" if lines else "no rule applies\n"

    def to_html(
        self,
        path: str | PathLike[str],
        *,
        sizes: Mapping[Dim, int] | None = None,
        blocks: Mapping[Dim, int] | None = None,
        dtype: str = "float16",
        title: str = "",
        prove: bool = True,
        trials: int = 8,
        seed: int = 0,
    ) -> None:
        """Write the derivation explorer: one self-contained HTML page.

        The page opens with these ``sizes`` (elements) and numbers of ``blocks`` of dims, and
        recomputes its numbers for others. By default sizes are realistic (4096, 64 for heads), and
        blocks are those of the cheapest kernels for them. ``dtype`` is that of the kernels. With
        ``prove`` every step is proved (``trials``, ``seed``), which takes most of the time; a
        terminal shows what is being done. Raises ValueError for sizes that do not fit the program,
        DrawError for a derivation too long for one page. The file is written completely or not at
        all.
        """
        from blockbuster.view.explorer.export import write_html
        from blockbuster.view.explorer.setting import Setting
        from blockbuster.view.terminal import telling

        setting = Setting(sizes or {}, blocks or {}, dtype, trials=trials, seed=seed)
        way_out = " (prove=False leaves out the proofs)" if prove else ""
        with telling(None, f"rewriting{way_out}") as tell:
            write_html(
                self, path, setting, title=title, prove=prove,
                progress=lambda what: tell(what + way_out),
            )  # fmt: skip

    def to_json(self) -> str:
        """The derivation as JSON, with text forms and the name of the schema."""
        data: dict[str, Any] = {
            "schema": SCHEMA,
            "start": self.start.show(),
            "final": self.final.show(),
            "snapshots_after": list(self.snapshots_after),
            "steps": [
                {
                    "rule": step.rule,
                    "number": step.number,
                    "path": list(step.path),
                    "match": dict(step.match),
                    "description": step.description,
                }
                for step in self.steps
            ],
        }
        return json.dumps(data, indent=1) + "\n"


def path_in_words(graph: Graph, path: Path) -> str:
    """The dims of the maps along ``path``: ``/M/N``; the top level is ``/``."""
    dims = []
    for depth in range(len(path)):
        op = graph.at(path[:depth]).nodes[path[depth]].op
        assert isinstance(op, Map)
        dims.append(op.dim)
    return "/" + "/".join(dims)


def apply_at(graph: Graph, application: Application) -> tuple[Graph, Path]:
    """The program after the application, and the new place of the level."""
    level = graph.at(application.path)
    rewritten = application.rule.apply(Match(application.rule, level, application.nodes))
    return splice(graph, application.path, rewritten)


def _same_ports(old: Graph, new: Graph) -> bool:
    """Whether a map may have the body ``new`` instead of ``old`` without a look at its ports."""

    def repeats(graph: Graph) -> list[int]:
        first: dict[Value, int] = {}
        return [first.setdefault(o.value, at) for at, o in enumerate(graph.outputs)]

    same = len(old.inputs) == len(new.inputs) and new.reads_inputs_in_order
    return same and repeats(old) == repeats(new)


def splice(graph: Graph, path: Path, inner: Graph) -> tuple[Graph, Path]:
    """``graph`` with the graph inside the maps of ``path`` replaced by ``inner``, and its place.

    A map whose body changes may lose operands or read them in another order; then the level above
    is brought into canonical form, in which nodes have other positions, and maps beside the path
    may lose results that nobody reads any more.
    """
    now: Path = ()
    levels = [graph.at(path[:depth]) for depth in range(len(path))]
    for level, position in zip(reversed(levels), reversed(path), strict=True):
        op = level.nodes[position].op
        assert isinstance(op, Map)
        if _same_ports(op.body, inner):
            inner, at = level.with_op(position, op.around(inner)), position
        else:
            edit = Builder(level)
            edit.replace_op(position, op.around(inner))
            inner = edit.finish()
            at = edit.positions[position]
        now = (at, *now)
    return inner, now
