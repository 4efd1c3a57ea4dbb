"""The family of a program: its plans for classes of sizes, kept, and made on demand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from blockbuster.emit.kernel import written
from blockbuster.emit.print.numpy.text import numpy_text
from blockbuster.emit.target.targets import architecture
from blockbuster.emit.tile.array_dtypes import Given
from blockbuster.emit.tile.trips import dims_of
from blockbuster.emit.tile.value_dtypes import casts, result_dtype
from blockbuster.ir.graph import Graph, Input, Read
from blockbuster.ir.lengths import Rule
from blockbuster.ir.types import Dim, size_class
from blockbuster.machines import Machine
from blockbuster.selection.candidates.candidate import CPU, Choice, Key
from blockbuster.selection.candidates.in_range import in_range
from blockbuster.selection.choice import Fused
from blockbuster.selection.considered import Considered
from blockbuster.selection.plans.asked import Asked, Known, Subject
from blockbuster.selection.plans.pieces import Axes, Call, Piece, in_pieces, with_integers
from blockbuster.selection.plans.plan import File, Plan, Sizes, bound
from blockbuster.selection.plans.plan_classes import PlanClasses
from blockbuster.selection.plans.plan_dtypes import kept_dtypes, written_dtypes


class Family:
    """The plans of one program for one dtype and target: fused once, emitted per class of sizes.

    ``target``: "cpu", or what ``target_of`` takes: by the numbers of its machine is chosen.
    ``input_dtypes``: those of inputs that have another dtype than ``dtype``, where all meet.
    ``known``: gives schedules that were measured. ``constants``: inputs that stay as they are from
    call to call, so that what is computed of them alone is kept.
    """

    def __init__(
        self,
        graph: Graph,
        inputs: Mapping[str, Axes],
        *,
        name: str,
        dtype: str,
        target: str | Machine,
        input_dtypes: Mapping[str, str],
        rules: tuple[Rule, ...] = (),
        known: Known | None = None,
        constants: tuple[str, ...] = (),
    ) -> None:
        self.name, self.dtype, self.target, self.inputs = name, dtype, target, inputs
        self.rules = tuple(dict.fromkeys((*rules, *graph.size_rules)))
        self._pieces = in_pieces(graph)
        self._dtypes = written_dtypes(self._pieces, dtype, input_dtypes)
        self._pieces = with_integers(self._pieces, self._dtypes)
        pieces = [step for step in self._pieces.steps if isinstance(step, Piece)]
        self.fused = tuple(
            Fused(piece.graph, constants=bool(constants), on_cpu=target == CPU) for piece in pieces
        )
        exact = target == CPU and "float64" in (dtype, *casts(graph))
        self._arithmetic = "float64" if exact else "float32"
        self._constants = constants
        self._given = self._given_dtypes(input_dtypes)
        self._input_dtypes = dict(input_dtypes)
        self._plans: dict[tuple[Any, ...], Plan] = {}
        self._known, self._refused = known, dict[Key, None]()
        pairs = zip(self.fused, self._given, strict=True)
        self._subjects = tuple(Subject(fused.graph, given) for fused, given in pairs)
        self._classes = PlanClasses(
            self._considered, self._at_other_sizes, self._planned, self.rules
        )

    def _given_dtypes(self, input_dtypes: Mapping[str, str]) -> tuple[Given, ...]:
        """What the kernels of each piece are told of the dtypes of their arrays."""
        steps = self._pieces.steps
        reads = [
            tuple(name for given in step.graph.inputs if (name := _source(given)))
            if isinstance(step, Piece)
            else ()
            for step in steps
        ]
        pairs = list(zip(steps, reads, strict=True))
        kept = kept_dtypes(
            pairs, self._dtypes, common=self.dtype, arithmetic=self._arithmetic, own=input_dtypes
        )
        known = {**dict.fromkeys(self.inputs, self.dtype), **input_dtypes, **kept}
        return tuple(
            Given(
                {name: self._read_as(name, known[name]) for name in sources},
                common=self.dtype,
                results=tuple(kept[name] for name in step.writes),
                arithmetic=self._arithmetic,
                constants=tuple(name for name in sources if name in self._constants),
            )
            for step, sources in pairs
            if isinstance(step, Piece)
        )

    def _read_as(self, name: str, dtype: str) -> str:
        """The dtype in which kernels read an array: of what is computed, truths are numbers."""
        return dtype if name in self.inputs else result_dtype([dtype], self._arithmetic)

    def bind(self, shapes: Mapping[str, Sequence[int]]) -> dict[Dim, int]:
        """The size of every dim for arrays of these shapes; LaunchError if they disagree."""
        return bound(self.inputs, shapes, self.rules)

    def at(self, sizes: Sizes, *, one_kernel: bool = False) -> Plan:
        """The plan chosen for these very sizes: one that is there already, if it is the same."""
        return self._planned(sizes, self._considered(sizes, one_kernel), one_kernel)

    def like(self, sizes: Sizes, *, one_kernel: bool = False) -> Plan:
        """The plan chosen for the class of these sizes (size_classes.py): a known class costs
        microseconds. ``Plan.sizes`` are those for which it was chosen first.
        """
        return self._classes.plan(sizes, one_kernel)

    def asked(self, plan: Plan, file: File, *, one_kernel: bool = False) -> Asked:
        """The choices considered for a file of a plan of this family."""
        assert file.considered is not None, "a plan of this family"
        return self._asked(plan.files.index(file), plan.sizes, file.considered, one_kernel)

    def with_choice(self, plan: Plan, file: File, choice: Choice) -> Plan:
        """``plan`` with another choice for one of its files."""
        chosen = [one.considered for one in plan.files]
        assert all(chosen), "a plan of this family"
        found = [one for one in chosen if one is not None]
        at = plan.files.index(file)
        found[at] = replace(found[at], best=choice)
        return self._plan(plan.sizes, found)

    def forget(self) -> None:
        """Choose anew for every class of sizes: more is known."""
        self._classes.forget()

    def _considered(self, sizes: Sizes, one_kernel: bool) -> list[Considered]:
        found = [
            fused.consider(sizes, given, self.target, one_kernel=one_kernel)
            for fused, given in zip(self.fused, self._given, strict=True)
        ]
        return self._measured(found, sizes, one_kernel)

    def _measured(
        self, found: list[Considered], sizes: Sizes, one_kernel: bool
    ) -> list[Considered]:
        """What was considered, with measured choices in front where some are known."""
        if self._known is None:
            return found
        asked = [self._asked(at, sizes, one, one_kernel) for at, one in enumerate(found)]
        return [*map(self._known, asked)]

    def _asked(self, at: int, sizes: Sizes, considered: Considered, one_kernel: bool) -> Asked:
        return Asked(self._subjects[at], sizes, considered, self._refused, one_kernel)

    def _at_other_sizes(
        self, chosen: Sequence[Considered], sizes: Sizes, one_kernel: bool
    ) -> list[Considered] | None:
        pairs = zip(self.fused, chosen, strict=True)
        found = [fused.at_other_sizes(considered, sizes) for fused, considered in pairs]
        kept = [one for one in found if one is not None]
        return self._measured(kept, sizes, one_kernel) if len(kept) == len(found) else None

    def _planned(self, sizes: Sizes, chosen: Sequence[Considered], one_kernel: bool) -> Plan:
        key = (one_kernel, *(considered.best.key for considered in chosen))
        if key not in self._plans:
            self._plans[key] = self._plan(sizes, chosen)
        return self._plans[key]

    def refuse(self, plan: Plan, files: Sequence[File], reason: str) -> None:
        """Never choose these files of a plan again: a compiler refuses or breaks them."""
        self._classes.forget()
        for file in files:
            assert file.considered is not None, "a plan of this family"
            best = file.considered.best
            self._refused[best.key] = None
            self.fused[plan.files.index(file)].refuse(best, reason)

    def _plan(self, sizes: Sizes, chosen: Sequence[Considered]) -> Plan:
        found = iter(zip(self.fused, chosen, strict=True))
        steps: list[File | Call] = []
        for step in self._pieces.steps:
            steps.append(step if isinstance(step, Call) else self._file(step, *next(found), sizes))
        notes = [note for considered in chosen for note in considered.notes]
        return Plan(
            self.name,
            self.dtype,
            architecture(self.target),
            self.inputs,
            dict(sizes),
            tuple(steps),
            self._pieces.names,
            self._pieces.results,
            self._dtypes,
            self._arithmetic,
            tuple(notes),
            self.rules,
            self._input_dtypes,
        )

    def _file(self, piece: Piece, fused: Fused, considered: Considered, sizes: Sizes) -> File:
        best = considered.best
        program = best.program
        blocks: Mapping[Dim, int] = {}
        own = {dim for chunks in program.chunks for dim in (chunks.number, chunks.lanes)}
        if best.scheduled is None:
            known = {size_class(dim): size for dim, size in sizes.items()}
            text = numpy_text(program, tried=in_range(best, known, fused.graph))
            whole = tuple(map(size_class, program.whole))
            blocks = {d: n for d, n in best.blocks.items() if d not in whole}
        else:
            notes = (*fused.faults, *best.unsafe, *best.notes)
            text = written(
                best.scheduled,
                best.stable,
                reference=fused.graph,
                tiles=best.lowered.program,
                plain=fused.tiles,
                notes=notes,
            ).source
        return File(
            text,
            tuple(buffer.name for buffer in program.inputs),
            piece.writes,
            tuple(
                tuple(None if a.dim is None else size_class(a.dim) for a in b.axes)
                for b in program.outputs
            ),
            tuple(dim for dim in dims_of(program) if dim not in own),
            blocks,
            best.kernels,
            considered,
        )


def _source(given: Input) -> str:
    """The array that an input of a program reads, if any."""
    return given.view.source if isinstance(given.view, Read) else ""
