"""The family of a program: its plans for classes of sizes, kept, and made on demand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import repeat
from math import inf
from typing import Any

from blockbuster.emit.kernel import written
from blockbuster.emit.print.numpy.text import numpy_text
from blockbuster.emit.target.targets import architecture, target_of
from blockbuster.emit.tile.trips import dims_of
from blockbuster.frontend import ArrayProgram
from blockbuster.ir.garbage import collection_paused
from blockbuster.ir.lengths import completed
from blockbuster.ir.types import Dim, size_class
from blockbuster.machines import Machine, built_in
from blockbuster.selection.candidates.candidate import CPU, Choice, Key
from blockbuster.selection.candidates.in_range import in_range
from blockbuster.selection.choice import Fused
from blockbuster.selection.considered import Considered
from blockbuster.selection.decision import Memory
from blockbuster.selection.parts.operand_views import with_shared_copies
from blockbuster.selection.plans.asked import Asked, Known, Subject
from blockbuster.selection.plans.divided import Divided, Division, of_parts
from blockbuster.selection.plans.effort import OVERLAPPING, USUAL
from blockbuster.selection.plans.explanation import divided_of
from blockbuster.selection.plans.forms import Consider, Forms
from blockbuster.selection.plans.fusers import Fuser
from blockbuster.selection.plans.part import Part, dtypes_of
from blockbuster.selection.plans.pieces import Axes, Call, Piece, renamed_axes
from blockbuster.selection.plans.plan import File, Plan, Sizes, bound, whole_file
from blockbuster.selection.plans.plan_classes import PlanClasses
from blockbuster.selection.plans.recalled import decision_of, recalled_plan
from blockbuster.selection.plans.whole_part import WholePart


class Family:
    """The plans of one program for one dtype and target: divided, fused and emitted per class of
    sizes; each part is fused once.

    ``target``: "cpu", or what ``target_of`` takes: by the numbers of its machine is chosen.
    ``input_dtypes``: those of inputs that have another dtype than ``dtype``, where all meet.
    ``known``: gives schedules that were measured. ``constants``: inputs that stay as they are from
    call to call, so that what is computed of them alone is kept. ``library``: whether calls of a
    library may take the place of kernels. ``effort``: how many parts are priced (effort.py).
    ``fusers`` offer programs for parts (fusers.py). ``memory`` keeps what was decided for sizes, so
    that another process need not search.
    """

    def __init__(
        self,
        program: ArrayProgram,
        *,
        dtype: str,
        target: str | Machine,
        input_dtypes: Mapping[str, str],
        known: Known | None = None,
        constants: tuple[str, ...] = (),
        library: bool = True,
        effort: str = USUAL,
        fusers: Sequence[Fuser] = (),
        memory: Memory | None = None,
    ) -> None:
        self.name, self.dtype, self.target = program.name, dtype, target
        self._machine = built_in(CPU) if target == CPU else target_of(target).machine
        self.inputs: Mapping[str, Axes] = {
            given.name: tuple(axis if isinstance(axis, str) else None for axis in given.shape)
            for given in program.inputs
        }
        dtypes = dtypes_of(dtype, target, input_dtypes, constants)
        program = with_shared_copies(program)
        self._whole = Part(program, dtypes)
        arithmetic = self._whole.arithmetic
        overlap = effort == OVERLAPPING
        forms = Forms(on_cpu=dtypes.on_cpu, library=library, fusers=fusers, overlap=overlap)
        self._division = Division(program, dtypes, arithmetic, forms=forms, effort=effort)
        self.rules = tuple(dict.fromkeys((*program.rules, *self._whole.size_rules)))
        self._input_dtypes = dict(input_dtypes)
        self._plans: dict[tuple[Any, ...], Plan] = {}
        self._known, self._refused = known, dict[Key, None]()
        self._memory = memory
        self._classes = PlanClasses(
            self._considered, self._at_other_sizes, self._planned, self.rules,
            () if target == CPU else _along_rows(program),
        )  # fmt: skip

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
        at = plan.files.index(file)
        subject, sizes = [*divided_of(plan).asked(plan.sizes)][at]
        return self._asked(subject, sizes, file.considered, one_kernel)

    def with_choice(self, plan: Plan, file: File, choice: Choice) -> Plan:
        """``plan`` with another choice for one of its files."""
        divided, at = divided_of(plan), plan.files.index(file)
        found = list(divided.considered)
        found[at] = replace(found[at], best=choice)
        return self._plan(plan.sizes, replace(divided, considered=tuple(found)))

    def forget(self) -> None:
        """Choose anew for every class of sizes: more is known."""
        self._classes.forget()

    @collection_paused()
    def _considered(self, sizes: Sizes, one_kernel: bool) -> Divided:
        consider = self._consider(sizes, one_kernel)
        if one_kernel:
            why = "one kernel was asked for"
            found = of_parts((self._whole,), consider, self._machine, why=why)
        else:
            found = self._recalled(sizes) or self._searched(sizes)
        return self._measured(found, sizes, one_kernel)

    def _searched(self, sizes: Sizes) -> Divided:
        consider = self._consider(sizes, one_kernel=False)
        found = self._division.divided(sizes, self._machine, consider, self._whole)
        decision = decision_of(found) if self._memory else None
        if self._memory and decision:
            self._memory.keep(sizes, decision)
        return found

    def _recalled(self, sizes: Sizes) -> Divided | None:
        """What was decided for these sizes earlier, unless a compiler refused kernels since."""
        decision = self._memory.recall(sizes) if self._memory else None
        if decision is None:
            return None
        search, where = partial(self._searched, sizes), (sizes, self._machine, self.target)
        return recalled_plan(decision, self._division, self._whole, *where, search)

    def _consider(self, sizes: Sizes, one_kernel: bool) -> Consider:
        """What considers the pieces of parts at ``sizes``, each part once, and equal ones once."""
        considered: dict[Part, list[Considered]] = {}
        equal: dict[Any, list[Considered]] = {}  # by structure: of the first such part
        classes = {size_class(dim): size for dim, size in sizes.items()}

        def consider(part: Part, limit: float = inf) -> list[Considered]:
            known, first = part.own(sizes), part.first
            if first is not part and known == first.own(sizes):
                return consider(first, limit)
            key = part.structure(classes), len(part.fused)
            if part in considered:  # asked again, perhaps with a higher limit
                considered[part] = [one.within(limit) for one in considered[part]]
            else:
                shared = equal.get(key) if self.target != CPU and not one_kernel else None
                firsts = shared or repeat(None)
                considered[part] = [
                    (first and fused.like(first, known, given, self.target))
                    or fused.consider(known, given, self.target, one_kernel=one_kernel, limit=limit)
                    for fused, given, first in zip(part.fused, part.given, firsts, strict=False)
                ]
            if not any(one.rest for one in considered[part]):
                equal.setdefault(key, considered[part])
            return considered[part]

        return consider

    def _measured(self, found: Divided, sizes: Sizes, one_kernel: bool) -> Divided:
        """What was considered, with measured choices in front where some are known."""
        if self._known is None:
            return found
        pairs = zip(found.asked(sizes), found.considered, strict=True)
        asked = [self._asked(*subject, one, one_kernel) for subject, one in pairs]
        return replace(found, considered=tuple(map(self._known, asked)))

    def _asked(
        self, subject: Subject, sizes: Sizes, considered: Considered, one_kernel: bool
    ) -> Asked:
        return Asked(subject, sizes, considered, self._refused, one_kernel)

    def _at_other_sizes(self, chosen: Divided, sizes: Sizes, one_kernel: bool) -> Divided | None:
        """The same choice at other sizes; None if it cannot be made there, or if a library takes
        longer there.
        """
        if any(sizes[dim] % lanes for dim, lanes in chosen.loaded_whole.items()):
            return None
        made: dict[Any, Considered | None] = {}  # equal parts share theirs
        kept: list[Considered] = []
        for part, considered in chosen.by_part:
            own = part.own(sizes)
            for fused, one in zip(part.fused, considered, strict=True):
                key = fused, id(one), *own.items()
                if key not in made:
                    made[key] = fused.at_other_sizes(one, own)
                if (found := made[key]) is None:
                    return None
                kept.append(found)
        return self._measured(replace(chosen, considered=tuple(kept)), sizes, one_kernel)

    def _planned(self, sizes: Sizes, chosen: Divided, one_kernel: bool) -> Plan:
        best = (considered.best.key for considered in chosen.considered)
        key = (one_kernel, chosen.parts, *best)
        if key not in self._plans:
            self._plans[key] = self._plan(sizes, chosen)
        return self._plans[key]

    def refuse(self, plan: Plan, steps: Sequence[File | Call], reason: str) -> None:
        """Never choose these files of a plan again: a compiler refuses or breaks them; nor calls of
        a library's function that it refuses.
        """
        self._classes.forget()
        if self._memory:  # others search, too, and may find what works there
            self._memory.forget()
            self._memory = None
        for file in steps:
            if isinstance(file, Call):
                self._division.forms.refuse(file, reason)
                continue
            assert file.considered is not None, "a plan of this family"
            best = file.considered.best
            self._refused[best.key] = None
            divided_of(plan).fused[plan.files.index(file)].refuse(best, reason)

    @collection_paused()
    def _plan(self, sizes: Sizes, chosen: Divided) -> Plan:
        found = iter(zip(chosen.fused, chosen.considered, strict=True))
        steps: list[File | Call] = []
        files: dict[tuple[int, int], File] = {}  # of equal pieces, the first one's
        for step in (step for part in chosen.parts for step in part.pieces.steps):
            if isinstance(step, Piece):
                fused, considered = next(found)
                key = id(fused), id(considered)
                if key not in files:
                    files[key] = self._file(fused, considered, sizes)
                steps.append(_of_piece(files[key], step))
            else:
                steps.append(step if isinstance(step, Call) else whole_file(step))
        notes = [note for considered in chosen.considered for note in considered.notes]
        notes += [n for part in chosen.parts if isinstance(part, WholePart) for n in part.notes]
        notes += chosen.notes
        notes = [*dict.fromkeys(notes)]
        results = {name: seen for part in chosen.parts for name, seen in part.results}
        names = self._whole.pieces.names
        whole = [part.program for part in chosen.parts] == [self._whole.program]
        own = (rule for part in chosen.parts for rule in part.size_rules)
        rules = tuple(dict.fromkeys((*self.rules, *own)))
        return Plan(
            self.name,
            self.dtype,
            architecture(self.target),
            self.inputs,
            completed(sizes, rules),
            tuple(steps),
            names,
            tuple(results[name if whole else self._division.arrays[name]] for name in names),
            {name: dtype for part in chosen.parts for name, dtype in part.dtypes.items()},
            self._whole.arithmetic,
            tuple(notes),
            rules,
            self._input_dtypes,
            tuple(name for part in chosen.parts for name in part.rounded),
            divided=chosen,
        )

    def _file(self, fused: Fused, considered: Considered, sizes: Sizes) -> File:
        best = considered.best
        program = best.program
        blocks: Mapping[Dim, int] = {}
        launches = None
        own = {dim for chunks in program.chunks for dim in (chunks.number, chunks.lanes)}
        made = best.scheduled.made if best.scheduled else ()
        joined = {size_class(rule.dim) for rule in made}
        if best.scheduled is None:
            known = {size_class(dim): size for dim, size in sizes.items()}
            text = numpy_text(program, tried=in_range(best, known, fused.graph))
            whole = tuple(map(size_class, program.whole))
            blocks = {d: n for d, n in best.blocks.items() if d not in whole}
        else:
            notes = (*fused.faults, *best.unsafe, *best.notes)
            kernel = written(
                best.scheduled,
                best.stable,
                reference=fused.graph,
                tiles=best.lowered.program,
                plain=fused.tiles,
                notes=notes,
            )
            text, launches = kernel.source, kernel.launches
        return File(
            text,
            tuple(buffer.name for buffer in program.inputs),
            tuple(buffer.name for buffer in program.outputs),
            tuple(
                tuple(None if a.dim is None else size_class(a.dim) for a in b.axes)
                for b in program.outputs
            ),
            tuple(d for d in dims_of(program) if d not in own and size_class(d) not in joined),
            blocks,
            best.kernels,
            launches,
            considered,
        )


def _of_piece(file: File, piece: Piece) -> File:
    """The file of a piece by that of an equal one, whose arrays and dims may have other names."""
    axes = tuple(renamed_axes(one, piece.dims) for one in file.axes)
    reads = tuple(piece.names.get(name, name) for name in file.reads)
    pairs = [(size_class(dim), size_class(name)) for dim, name in piece.dims.items()]
    named = dict(pairs) if any(dim != name for dim, name in pairs) else {}
    return replace(file, reads=reads, writes=piece.writes, axes=axes, named=named)


def _along_rows(program: ArrayProgram) -> tuple[Dim, ...]:
    """The dims along which the rows of a program's arrays lie, by size class."""
    shapes = [given.shape for given in program.inputs]
    shapes += [program.shape_of(output.value) for output in program.outputs]
    dims = (shape[-1] for shape in shapes if len(shape) > 1)
    return tuple(dict.fromkeys(size_class(dim) for dim in dims if isinstance(dim, str)))
