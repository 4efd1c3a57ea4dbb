"""The choice of a kernel: the snapshot and the schedule that cost least.

Every snapshot of a piece is lowered to tiles for the given sizes. On a GPU, a closed form predicts
the microseconds of each with its default schedule, and the best few compete with the best of nearby
schedules (contest.py). On the CPU the least time of NumPy's calls wins (numpy_price.py). Fewer
kernels, then more fusion, break a tie. If a compiler refuses a snapshot, its other forms
(alternatives.py) compete.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from math import inf

from blockbuster.emit.tile.array_dtypes import Given, given_by, typed_for_cpu, typed_for_gpu
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.lowered import Lowered, lowered
from blockbuster.emit.tile.program import TileProgram
from blockbuster.emit.tile.typed import is_accurate
from blockbuster.errors import EmitError
from blockbuster.ir.garbage import collection_paused
from blockbuster.ir.graph import Graph
from blockbuster.ir.types import Dim, size_class
from blockbuster.machines import Machine
from blockbuster.rules import RULES, Derivation, fuse
from blockbuster.rules.faults import FaultNotes
from blockbuster.selection.candidates.again import Again, AgainWhole, Repeated, repeated
from blockbuster.selection.candidates.alternatives import Form, alternatives
from blockbuster.selection.candidates.apart import LOSES, operands_stored_too, statistics_apart
from blockbuster.selection.candidates.beside import Beside, beside_snapshots
from blockbuster.selection.candidates.candidate import (
    CPU,
    Candidate,
    Choice,
    Key,
    Setting,
    classes_of_equal,
    is_large,
    on_a_gpu,
    on_the_cpu,
)
from blockbuster.selection.candidates.glance import nearest
from blockbuster.selection.candidates.named import UNFUSED, unfused
from blockbuster.selection.candidates.rows_too_wide import rows_too_wide
from blockbuster.selection.candidates.variant import Variant
from blockbuster.selection.candidates.whole import Whole, WholeDims
from blockbuster.selection.considered import Considered, MadeLater, Refusals, as_noun
from blockbuster.selection.contest import at_other_sizes, before_contest, on_equal_program, recorded
from blockbuster.selection.decisions.default_tiles import halved_tiles
from blockbuster.selection.priors import PRIORS


class Fused:
    """A block program, fused once; choices for any sizes, dtype and target.

    What a compiler refuses is remembered and not chosen again. ``derivation``: how the program was
    fused, where somebody has done it. If that was by other rules than ours, or with whole dims, its
    snapshots are all that may be chosen. ``constants``: there are inputs that stay as they are from
    call to call, so that more may be worth storing. ``on_cpu``: choices are for NumPy text alone,
    for which nothing beside the snapshots is considered.
    """

    def __init__(
        self,
        graph: Graph,
        derivation: Derivation | None = None,
        *,
        constants: bool = False,
        on_cpu: bool = False,
    ) -> None:
        self.graph, self._constants, self._on_cpu = graph, constants, on_cpu
        self._given = derivation
        self._lowered: dict[int, Lowered] = {}
        self._refused: dict[Key, str] = {}
        self._whole: dict[int, Whole | Again] = {}
        self.faults = FaultNotes()
        """Notes on rules that failed, and were left out."""

    @cached_property
    def derivation(self) -> Derivation:
        """The derivation of the fused program."""
        return self._given or fuse(self.graph, on_fault=self.faults.keep)

    @cached_property
    def snapshots(self) -> tuple[Graph, ...]:
        """The programs to choose from, least fused first; the unfused program is the last resort.

        Behind those of the derivation stand those ``beside`` them; those with dims in one block
        (whole.py) are for some sizes only.
        """
        return *self.derivation.snapshots, *(one.graph for one in self.beside)

    @cached_property
    def beside(self) -> tuple[Beside, ...]:
        """The candidates beside the snapshots (beside.py)."""
        if self._on_cpu or not self._by_our_rules:
            return ()
        found = self.faults.tried(lambda: beside_snapshots(self.derivation, self.apart)) or ()
        if self._constants:
            more = partial(operands_stored_too, self.derivation, self.apart)
            found += self.faults.tried(more) or ()
        return found

    @cached_property
    def _by_our_rules(self) -> bool:
        if self._given is None:
            return True
        if self._given.rules == RULES:
            return True
        return self._given == fuse(self.graph, on_fault=self.faults.keep)

    @cached_property
    def tiles(self) -> TileProgram:
        """The tile program of the graph as it was written: files check themselves against it."""
        return lower_to_tiles(self.graph)

    @cached_property
    def apart(self) -> tuple[Variant, ...]:
        """Snapshots with statistics apart."""
        return self.faults.tried(lambda: statistics_apart(self.derivation)) or ()

    @cached_property
    def _whole_dims(self) -> WholeDims:
        return WholeDims(self.derivation)

    @cached_property
    def _again_whole(self) -> tuple[AgainWhole, ...]:
        found = (one for one in self.beside if isinstance(one, Again))
        makers = (partial(AgainWhole, one, self.derivation) for one in found)
        return tuple(made for maker in makers if (made := self.faults.tried(maker)))

    def derivation_of(self, choice: Choice) -> Derivation:
        """The derivation that ends with the program of a choice."""
        number, snapshots = choice.snapshot, len(self.derivation.snapshots_after)
        one = self._beside(number) or self._whole.get(number)
        if isinstance(one, Whole):
            return one.derivation.at_snapshot(one.number)
        if one is not None:
            return one.derivation
        if number > snapshots:  # the unfused program
            return unfused(self.graph)
        return self.derivation if number == snapshots else self.derivation.at_snapshot(number)

    def name_of(self, choice: Choice) -> str:
        """The name of a choice's program in a schedule's text: "" for the final one (named.py)."""
        final = choice.snapshot == len(self.derivation.snapshots_after)
        return "" if final else as_noun(self._name(choice.snapshot))

    def refuse(self, choice: Choice, reason: str) -> None:
        """Never choose this again: a compiler does not take it."""
        self._refused[choice.key] = reason

    def at_other_sizes(self, considered: Considered, sizes: Mapping[Dim, int]) -> Considered | None:
        """The same choice at other sizes of its class; None if it has to be made anew there."""
        known = {size_class(dim): size for dim, size in sizes.items()}
        best = at_other_sizes(considered.best, known)
        if best is None or best.key in self._refused:
            return None
        return replace(considered, best=best)

    def like(
        self, considered: Considered, sizes: Mapping[Dim, int], given: Given, target: str | Machine
    ) -> Considered | None:
        """The same choice as for an equal program; None if it has to be made anew."""
        if self._refused or considered.refused or considered.instead:
            return None  # messages have names of the other program
        setting, old = Setting(sizes, given, target, in_chunks=True), considered.best
        found = self._like((old,), setting)
        if not found or not old.scheduled or not found[0].scheduled:
            return None
        dims = classes_of_equal(old.scheduled.start, found[0].scheduled.start)
        blocks = {dims.get(dim, dim): lanes for dim, lanes in considered.blocks.items()}
        later = MadeLater(partial(self._like, considered.others, setting), blocks)
        return replace(considered, best=found[0], others=later)

    def _like(self, choices: Sequence[Choice], setting: Setting) -> list[Choice]:
        """Those of the choices for an equal program that are the same here."""
        found = list[Choice]()
        with collection_paused():
            for choice in choices:
                start = self.start(choice.snapshot, choice.name, setting)
                low = self._lower(choice.snapshot)
                made = start and on_equal_program(replace(choice, lowered=low), start)
                if made and not made.again:
                    found.append(made)
        return found

    def start(self, number: int, name: str, setting: Setting) -> TileProgram | None:
        """The program of a candidate before its schedule, for a GPU; None if none has this name."""
        if number > len(self.derivation.snapshots):  # those beside them need not be made
            self._whole_for(setting)
            if number > max((len(self.snapshots) + 1, *self._whole)):
                return None
        if self._name(number) != name:
            return None
        return typed_for_gpu(self.graph, self._lower(number).program, setting.given)

    def consider(
        self,
        sizes: Mapping[Dim, int],
        dtype: str | Mapping[str, str] | Given,
        target: str | Machine,
        *,
        one_kernel: bool = False,
        limit: float = inf,
    ) -> Considered:
        """The choice for these sizes. ``one_kernel``: one that is a single kernel, if any is.
        Then no loop is run in chunks, since another kernel would have to combine them. ``limit``:
        the microseconds above which its time does not matter.

        ``dtype`` is what ``emit`` takes: of all inputs, or of some arrays by name. ``target``:
        "cpu", or what ``target_of`` takes: the numbers of its machine decide. Where a compiler
        refused a snapshot, other forms of it are considered beside the others; where it refused
        every one, all are considered again with smaller tiles. Raises EmitError if no snapshot,
        nor the unfused program, has a form for the target that compiles.
        """
        assert target == CPU or not self._on_cpu
        setting = Setting(sizes, given_by(dtype), target, in_chunks=not one_kernel)
        with collection_paused():
            return self._considered(setting, one_kernel, limit)

    def _considered(self, setting: Setting, one_kernel: bool, limit: float) -> Considered:
        refusals, found = Refusals(), list[Choice]()
        usual = limit == inf or one_kernel or self._refused
        made = {} if usual else self._least_at_a_glance(setting, refusals)
        for choice in made.values():
            if (least := choice.least / PRIORS.glance_far) > limit:
                rest = partial(self._considered, setting, one_kernel)
                return replace(recorded([choice], refusals, self.faults), rest=rest, least=least)
        for choices in self._rounds(setting, refusals, made):
            alone = any(choice.kernels == 1 for choice in choices)
            found = choices if alone else found or choices
            if alone or (choices and not (one_kernel and self._refused)):
                break
        if not found:
            raise refusals.error if self._refused else next(iter(refusals.errors.values()))
        single = [choice for choice in found if choice.kernels == 1] if one_kernel else []
        default = before_contest(single or found, setting, self._refused, refusals, self.faults)
        return default.within(limit)

    def _least_at_a_glance(self, setting: Setting, refusals: Refusals) -> dict[int, Choice]:
        """The snapshot that takes least at a glance, by its number, if it is a choice."""
        number = nearest(self.derivation.snapshots, setting.known, setting.device.machine)
        return {one.snapshot: one for one in self._usable(setting, number, 0, refusals)}

    def _graph(self, number: int) -> Graph:
        if number <= len(self.derivation.snapshots):  # those beside them need not be made
            return self.derivation.snapshots[number - 1]
        whole = self._whole.get(number)
        return whole.graph if whole else (*self.snapshots, self.graph)[number - 1]

    def _whole_for(self, setting: Setting) -> tuple[int, ...]:
        """The numbers of the snapshots with dims in one block, behind the unfused program's."""
        if not self._by_our_rules:
            return ()
        first = len(self.snapshots) + 2
        whole = self.faults.tried(lambda: self._whole_dims.for_sizes(setting.known)) or {}
        each = 1 + len(self._again_whole)
        numbered: dict[int, Whole | Again] = {first + each * at: one for at, one in whole.items()}
        for kind, beside in enumerate(self._again_whole if setting.target != CPU else (), start=1):
            again = self.faults.tried(partial(beside.for_sizes, setting.known)) or {}
            numbered |= {first + each * at + kind: one for at, one in again.items()}
        self._whole |= numbered
        return tuple(numbered)

    def _rounds(
        self, setting: Setting, refusals: Refusals, made: Mapping[int, Choice]
    ) -> Iterator[list[Choice]]:
        """The snapshots, at smaller tiles too if a compiler refused some; last the unfused program.

        What is no choice is noted in ``refusals``. ``made``: choices that are there already.
        """
        unfused = len(self.snapshots) + 1
        for numbers in ((*range(1, unfused), *self._whole_for(setting)), (unfused,)):
            for halved in range(PRIORS.tiles_halved + 1 if self._refused else 1):
                found: list[Choice] = []
                for number in numbers:
                    extended = (c for c in found if c.again and not self._is_alone(c.snapshot))
                    if number in made:
                        found.append(made[number])
                    elif not self._is_alone(number) or not any(extended):
                        found += self._usable(setting, number, halved, refusals)
                yield found

    def _is_alone(self, number: int) -> bool:
        """True for what stands in for programs that extensions make repeat too much."""
        one = self._beside(number) or self._whole.get(number)
        return isinstance(one, Again) and one.alone

    def _usable(
        self, setting: Setting, number: int, halved: int, refusals: Refusals
    ) -> Iterator[Choice]:
        """A snapshot as usual or, where a compiler refused that, its other forms.

        Smaller tiles have none, so that it is known soon where nothing is right.
        """
        usual = self._formed(setting, number, Form(), refusals)
        if halved and usual and usual.scheduled:
            tiles = halved_tiles(usual.scheduled.start, usual.scheduled.blocks, halved)
            smaller = Form(tiles, words=" at smaller tiles")
            usual = self._formed(setting, number, smaller, refusals)
        if usual is None:
            return
        if usual.key not in self._refused:
            yield usual
            return
        refusals.note_refused(usual, self._refused[usual.key])
        for form in alternatives(usual.scheduled) if usual.scheduled and not halved else ():
            choice = self._formed(setting, number, form, refusals)
            if choice and choice.key in self._refused:
                refusals.note_refused(choice, self._refused[choice.key])
            elif choice:
                yield choice

    def _formed(
        self, setting: Setting, number: int, form: Form, refusals: Refusals
    ) -> Choice | None:
        """A snapshot in some form; None, and noted in ``refusals``, if it has none."""
        try:
            return self._choice(setting, number, form) if self._fits(setting, number) else None
        except EmitError as error:
            refusals.note(f"{self._name(number)}{form.words}", error)
            return None

    def _fits(self, setting: Setting, number: int) -> bool:
        """False for what is beside the snapshots on the CPU, or loses digits where they count."""
        one = self._beside(number)
        if one is None or setting.target == CPU:
            return one is None
        if not isinstance(one, Variant) or LOSES not in one.notes:
            return True
        program = self._lower(number).program
        return not is_accurate(typed_for_gpu(self.graph, program, setting.given))

    def _beside(self, number: int) -> Beside | None:
        at = number - 1 - len(self.derivation.snapshots)
        return self.beside[at] if 0 <= at < len(self.beside) else None

    def _name(self, number: int) -> str:
        one = self._beside(number) or self._whole.get(number)
        if one is not None:
            return one.name
        return f"snapshot {number}" if number <= len(self.derivation.snapshots) else UNFUSED

    def _lower(self, number: int) -> Lowered:
        if number not in self._lowered:
            one = self._beside(number)
            notes = one.notes if isinstance(one, Variant) else ()
            self._lowered[number] = lowered(self._graph(number), notes)
        return self._lowered[number]

    def _choice(self, setting: Setting, number: int, form: Form) -> Choice:
        program = self._lower(number).program
        if setting.target == CPU:
            start = typed_for_cpu(program, setting.given.arithmetic, self.graph)
            found = on_the_cpu(start, setting)
        else:
            start = typed_for_gpu(self.graph, program, setting.given)
            found = on_a_gpu(start, setting, form)
            if number in self._whole and (reason := rows_too_wide(found.program)):
                raise EmitError(reason)
        return self.made(found, number, form)

    def made(self, found: Candidate, number: int, form: Form) -> Choice:
        """The choice that a candidate is, of a snapshot in some form."""
        one = self._beside(number) or self._whole.get(number)
        return Choice(
            **vars(found),
            lowered=self._lower(number),
            snapshot=number,
            name=f"{self._name(number)}{form.words}",
            again=self._again(one, found) if isinstance(one, Again) else None,
            usual=not form.words,
            weight=self._weight(found),
        ).made_as(found)

    def _weight(self, found: Candidate) -> float:
        """How many times the microseconds of a candidate count."""
        if found.scheduled is None or not self._again_whole:
            return 1.0
        return PRIORS.stored_large_factor if is_large(found.program, found.scheduled.sizes) else 1.0

    def _again(self, one: Again, found: Candidate) -> Repeated:
        """What a program that makes values again computes, beside the program as it was written."""
        assert found.scheduled is not None
        once = self._lower(len(self.snapshots) + 1).program
        return repeated(one, found.program, once, found.scheduled.sizes)
