"""A program divided into parts: which parts there are, and which of their plans is best at sizes.

Each part is lowered, fused and scheduled by itself, so an operator's loops are cut as that operator
needs it, whatever the rest of the program does (parts/units.py, parts/partition.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from math import inf
from operator import attrgetter
from typing import Any

from blockbuster.errors import EmitError, TraceError, shown_lines
from blockbuster.frontend import ArrayProgram
from blockbuster.frontend.dtype_names import held_in
from blockbuster.frontend.part import part
from blockbuster.ir.dtypes import OWN
from blockbuster.ir.graph import Value
from blockbuster.ir.types import Dim, size_class
from blockbuster.machines import CPU, Machine
from blockbuster.selection.choice import Fused
from blockbuster.selection.considered import Blocks, Considered, merged_blocks
from blockbuster.selection.parts.better_together import better_together
from blockbuster.selection.parts.bounds import Bounds
from blockbuster.selection.parts.estimates import Estimates
from blockbuster.selection.parts.operand_views import PRODUCT
from blockbuster.selection.parts.overlapping import Making, best_cover, values_of
from blockbuster.selection.parts.partition import AS_GOOD, Price, best_plan
from blockbuster.selection.parts.units import Units, numbers_in, units_of
from blockbuster.selection.plans.array_names import arrays_of, names_of
from blockbuster.selection.plans.asked import Subject
from blockbuster.selection.plans.call_prices import loaded_whole
from blockbuster.selection.plans.effort import EXHAUSTIVE, OVERLAPPING, USUAL
from blockbuster.selection.plans.equal_part import Firsts
from blockbuster.selection.plans.forms import Consider, Forms
from blockbuster.selection.plans.operators import computes
from blockbuster.selection.plans.part import Dtypes, Part
from blockbuster.selection.plans.plan_dtypes import stored_by_eager
from blockbuster.selection.plans.prices import predicted, price
from blockbuster.selection.plans.why_apart import Found
from blockbuster.selection.priors import PRIORS

TOO_LITTLE = "it has too little to do to be worth dividing"
ONE_UNIT = "its operators are one group that stays together"
NO_UNIT = "it computes nothing: its outputs are inputs, views of inputs, or positions"


@dataclass(frozen=True)
class Divided:
    """A plan's parts in order, and what was considered for their pieces.

    ``machine``: the one whose numbers price parts. ``found``: by the search for the parts; where
    there was none, ``why`` says why. ``optimal``: no plan of those that were searched takes less,
    as ``why`` says. ``notes``: which forms of parts were left out, and why. ``bits``: the units of
    each part and the number of its form, if it can be made anew by these. ``search``: looks for the
    parts of a plan that was decided earlier.
    """

    parts: tuple[Part, ...]
    considered: tuple[Considered, ...]
    machine: Machine
    found: Found | None = None
    why: str = ""
    optimal: bool = False
    notes: tuple[str, ...] = ()
    bits: tuple[tuple[int, int], ...] = ()
    search: Callable[[], Divided] | None = field(default=None, repr=False, compare=False)

    @property
    def told(self) -> Divided:
        """The plan with what a search for it finds, which is left out where it was recalled."""
        found = self.search() if self.search else self
        return found if found.bits == self.bits else self

    @property
    def loaded_whole(self) -> dict[Dim, int]:
        """Dims whose extent decides what a call of a library takes: whether so many divide it."""
        found: dict[Dim, int] = {}
        for own in self.parts:
            for call in own.calls:
                for dim, lanes in loaded_whole(own, call):
                    found[dim] = max(lanes, found.get(dim, 1))
        return found

    @property
    def by_part(self) -> Iterator[tuple[Part, tuple[Considered, ...]]]:
        """Each part with what was considered for its pieces."""
        left = iter(self.considered)
        for own in self.parts:
            yield own, tuple(islice(left, len(own.fused)))

    def blocks(self, of: Callable[[Considered], Blocks] = attrgetter("blocks")) -> Blocks:
        """By how many lanes candidates, or those ``of`` each piece, cut dims of the program."""
        return merged_blocks(own.named(of(one)) for own, found in self.by_part for one in found)

    def prices(self, sizes: Mapping[Dim, int]) -> tuple[Price, ...]:
        """What each part takes at ``sizes``."""
        known = {size_class(dim): size for dim, size in sizes.items()}
        return tuple(price(own, found, known, self.machine) for own, found in self.by_part)

    def times(self, sizes: Mapping[Dim, int]) -> tuple[float, ...]:
        """The predicted microseconds of each part at ``sizes``, as they are told."""
        known = {size_class(dim): size for dim, size in sizes.items()}
        return tuple(predicted(own, found, known, self.machine) for own, found in self.by_part)

    @property
    def fused(self) -> tuple[Fused, ...]:
        """The programs of the pieces."""
        return tuple(fused for part in self.parts for fused in part.fused)

    def asked(self, sizes: Mapping[Dim, int]) -> Iterator[tuple[Subject, Mapping[Dim, int]]]:
        """What is asked of those who measure schedules of the pieces, and the sizes of each."""
        for own in self.parts:
            known = own.own(sizes)
            yield from ((subject, known) for subject in own.subjects)


def of_parts(
    parts: tuple[Part, ...], consider: Consider, machine: Machine, **told: Any
) -> Divided:
    """The plan of these parts, with the choices for their pieces. ``told``: how it was found."""
    considered = tuple(one for own in parts for one in consider(own))
    return Divided(parts, considered, machine, **told)


class Division:
    """The parts of a program, each made once."""

    def __init__(
        self, program: ArrayProgram, dtypes: Dtypes, arithmetic: str, *, forms: Forms, effort: str
    ) -> None:
        self.program, self._dtypes, self._arithmetic = program, dtypes, arithmetic
        self.forms, self.effort = forms, effort
        self._parts: dict[tuple[Any, ...], Part] = {}
        alone = dtypes.on_cpu or forms.fusers  # fusers may offer other programs for equals
        self._make: Callable[..., Part] = Part if alone else Firsts().part
        self._names = names_of(program)
        self.arrays = arrays_of(program, self._names)
        """The names of the outputs' arrays: their own, unless an input has that."""
        self._taken: dict[Dim, None] = {}  # dims of what lowering made of parts
        self._written: dict[str, None] = {}  # arrays that parts write beside their outputs
        self._held = held_in(program, dtypes.inputs, dtypes.common)
        self._stored = stored_by_eager(program)

    def kept(self, value: Value) -> str:
        """The dtype in which a value that crosses from part to part is kept.

        That in which eager execution stores it, if it does; else the dtype of the arithmetic.
        """
        dtype = self._held[value]
        stored = dtype in OWN or value.node < 0 or value in self._stored
        return dtype if stored else self._arithmetic

    def divided(
        self, sizes: Mapping[Dim, int], machine: Machine, consider: Consider, whole: Part
    ) -> Divided:
        """The best plan at ``sizes``. Raises EmitError where neither whole nor parts have one."""
        known = {size_class(dim): size for dim, size in sizes.items()}
        units = units_of(self.program, known)
        search = _Search(self, units, known, machine, consider, whole)
        return replace(search.found(), notes=(*self.forms.notes,))

    def part(self, units: Units, bits: int, stored: Sequence[int] | None = None) -> Part:
        """The units in ``bits`` as a part, which stores what others read, or the outputs show.

        ``stored``: the equations of them whose values it stores, where parts may overlap. Others
        can then read these although the units that read them are in this part, too.
        """
        program = self.program
        own_values = dict.fromkeys(units.given(bits) if stored is None else stored)
        shown = {
            self.arrays[output.name]: output.value
            for output in units.shown_by(bits)
            if all(base.node < 0 or base.node in own_values for base in units.bases[output.value])
        }
        inside = bits if stored is None else 0
        cut = {self._names[v]: v for v in map(Value, own_values) if units.crosses(v, inside)}
        outputs = {**{n: v for n, v in cut.items() if n not in shown}, **shown}
        equations = units.with_views(units.equations(bits), [*outputs.values()])
        key = equations, tuple(outputs.items())
        if key not in self._parts:
            own = part(program, equations, outputs, self._names, self._taken)
            names = (*self._names.values(), *self.arrays.values(), *self._written)
            taken = {*names} - {*outputs}
            made = self._make(own, self._part_dtypes(own, outputs), cut, taken)
            self._taken |= dict.fromkeys(rule.dim for rule in made.size_rules)
            self._written |= dict.fromkeys(name for name in made.dtypes if name not in outputs)
            self._parts[key] = made
        return self._parts[key]

    def _part_dtypes(self, own: ArrayProgram, outputs: Mapping[str, Value]) -> Dtypes:
        of_name = {name: value for value, name in self._names.items()}
        between = [one.name for one in own.inputs if of_name[one.name].node >= 0]
        held = {name: self._held[of_name[name]] for name in between}
        return replace(
            self._dtypes,
            inputs={**self._dtypes.inputs, **held},
            read={name: self.kept(of_name[name]) for name in between},
            cut={name: self.kept(value) for name, value in outputs.items()},
        )


class _Search:
    """The search for the best plan of a program at some sizes."""

    def __init__(
        self,
        division: Division,
        units: Units,
        sizes: Mapping[Dim, int],
        machine: Machine,
        consider: Consider,
        whole: Part,
    ) -> None:
        self._division, self._units, self._sizes = division, units, sizes
        self._machine, self._consider, self._whole = machine, consider, whole
        self._all = (1 << len(units)) - 1
        self._made: dict[tuple[int, tuple[int, ...]], tuple[int, Part]] = {}
        """Parts by units and what they store: their forms, each with its number."""
        self._prices: dict[Any, tuple[float, tuple[int, Price] | EmitError]] = {}  # and limits
        self._refused: dict[int, EmitError] = {}
        program = units.program
        values = [Value(-1, port) for port in range(len(program.inputs))]
        values += [Value(at) for at in range(len(program.equations))]
        dtypes = {value: division.kept(value) for value in values}
        usual = Bounds(units, sizes, dtypes, machine)
        self._estimates = Estimates(usual)
        self._bounds = replace(usual, any_work=bool(division.forms.fusers))
        self._together = better_together(program)

    @property
    def _has_too_little(self) -> bool:
        """True if the program takes about as long as its launch, or as its statements."""
        return len(self._units) > 0 and self._estimates.bounds.least(self._all) < self._little

    @property
    def _little(self) -> float:
        """Microseconds below which launches, latencies or statements are most of a time."""
        few = PRIORS.few_us_on_cpu if self._machine.kind == CPU else PRIORS.few_us
        return few + self._bounds.launched(0.0)

    def found(self) -> Divided:
        """The best plan."""
        if len(self._units) < 2:
            times = PRIORS.little_to_do_factor if self._has_too_little else AS_GOOD
            number, _ = self._best_form(self._whole, times)
            return self._undivided(number, ONE_UNIT if len(self._units) else NO_UNIT)
        if self._division.effort == OVERLAPPING:
            return self._overlapping()
        usual = self._division.effort == USUAL
        return (self._with_little() if usual and self._has_too_little else None) or self._best()

    def _with_little(self) -> Divided | None:
        """The program as one part, if that takes little."""
        times = PRIORS.little_to_do_factor
        much = times * self._little if self._machine.kind != CPU else inf
        try:
            self._expect_shared(self._whole)
            number, taken = self._best_form(self._whole, times, much)
        except EmitError:
            return None
        small = not taken.calls and taken.us <= much
        return self._undivided(number, TOO_LITTLE) if small else None

    def _undivided(self, number: int, why: str) -> Divided:
        """The program as one part in the form of this number."""
        part = self._division.forms.of(self._whole, self._machine)[number]
        bits = ((self._all, number),)
        return of_parts((part,), self._consider, self._machine, why=why, bits=bits)

    def _best(self) -> Divided:
        bounds, units = self._bounds, self._units
        # estimates are of one kernel: they say nothing of whole arrays, nor of what fusers offer
        told = self._machine.kind != CPU and not self._division.forms.fusers
        best = best_plan(
            units.before, units.beside, budget=PRIORS.priced_parts,
            bound=bounds.least, estimate=self._estimates.of, calls=self._calls,
            price=self._price if told else lambda part, _: self._price(part),
            far=PRIORS.hopeless_whole_factor if told else inf,
            every=self._division.effort == EXHAUSTIVE,
        )  # fmt: skip
        parts, forms = self._chosen([(bits, units.given(bits)) for bits in best.parts])
        refused = {bits: shown_lines(str(error))[0] for bits, error in self._refused.items()}
        theirs = [bits for (bits, _), (_, own) in self._made.items() if own.by]
        found = Found(units, self._sizes, self._estimates, best, refused, bounds, theirs)
        bits = tuple(zip(best.parts, forms, strict=True))
        return of_parts(parts, self._consider, self._machine, found=found, bits=bits)

    def _chosen(
        self, made: Sequence[tuple[int, tuple[int, ...]]]
    ) -> tuple[tuple[Part, ...], tuple[int, ...]]:
        """The forms of parts, and their numbers. Raises EmitError for a part that was refused."""
        if not made or any(one not in self._made for one in made):
            raise next(iter(self._refused.values()))
        return tuple(self._made[one][1] for one in made), tuple(self._made[one][0] for one in made)

    def _overlapping(self) -> Divided:
        """The best plan whose parts may overlap. Raises ValueError for a program with too many
        arrays, or with an output that is made of positions alone: no unit computes it.
        """
        units, bounds = self._units, self._bounds
        shown = [one.name for one in units.program.outputs if not units.bases[one.value]]
        if shown:
            what = f"{shown[0]} is made of positions alone: parts may overlap where groups compute"
            raise ValueError(f"{what} all outputs")
        values, equations = values_of(units)

        def stored(one: Making) -> tuple[int, ...]:
            return tuple(equations[value] for value in numbers_in(one.stores))

        chosen, prices = best_cover(
            values, units.beside,
            bound=lambda one: bounds.least(one.units, stored(one)),
            price=lambda one: self._price(one.units, chosen=stored(one)),
        )  # fmt: skip
        parts, _ = self._chosen([(one.units, stored(one)) for one in chosen])
        number = "1 part was" if len(prices) == 1 else f"{len(prices)} parts were"
        why = f"parts may overlap: {_again(units, chosen)}; {number} priced"
        return of_parts(parts, self._consider, self._machine, why=why, optimal=True)

    @property
    def _calls(self) -> dict[int, float]:
        """The units that may be calls of a library, or of NumPy, and the microseconds of those
        calls: estimates do not know what they take.
        """
        ops = [one.op for one in self._units.program.equations]
        found: dict[int, float] = {}
        for at, unit in enumerate(self._units.units):
            with suppress(EmitError, TraceError):
                own = {ops[equation] for equation in unit.equations}
                if PRODUCT in own or own >= {"mul", "sum"}:
                    part = self._division.part(self._units, 1 << at)
                    _, *others = self._division.forms.of(part, self._machine)
                    taken = [price(one, (), self._sizes, self._machine).us for one in others]
                    found |= {1 << at: min(taken)} if taken else {}
        return found

    def _price(
        self, bits: int, limit: float = inf, *, chosen: tuple[int, ...] | None = None
    ) -> Price:
        """What a part takes that stores all that others read, or what the equations ``chosen``
        compute. Equal parts are priced once; roughly, if they take far more than ``limit``.
        """
        given = self._units.given(bits)
        stored = given if chosen is None else chosen
        try:
            whole = bits == self._all and stored == given
            own = self._whole if whole else self._division.part(self._units, bits, chosen)
            if bits.bit_count() > 1:
                self._expect_shared(own)
            alone = (bits, stored) if self._division.forms.fusers else ()
            key = own.structure(self._sizes), alone  # fusers may offer other programs for equals
        except (EmitError, TraceError) as error:
            self._refused[bits] = EmitError(str(error))
            return Price(inf)
        most, found = self._prices.get(key, (-inf, None))
        again = found is not None
        if found is None or (most < limit and not isinstance(found, EmitError) and found[1].rough):
            try:
                found = self._best_form(own, AS_GOOD, limit)
            except EmitError as error:
                found = error
            self._prices[key] = limit, found
        if isinstance(found, EmitError):
            self._made[bits, stored], self._refused[bits] = (0, own), found
            return Price(inf, again=again)
        number, taken = found
        self._made[bits, stored] = number, self._division.forms.of(own, self._machine)[number]
        weight = max(taken.weight, self._bounds.weight(bits, stored))
        read = (Value(at) for at in stored if self._units.crosses(Value(at), bits))
        lost = sum(value in self._together for value in read)
        return taken._replace(unsafe=taken.unsafe + lost, weight=weight, again=again)

    def _expect_shared(self, own: Part) -> None:
        """Raise EmitError for a part whose kernels compute much again; whole arrays do not."""
        if self._machine.kind != CPU:
            own.expect_shared()

    def _best_form(self, own: Part, times: float, limit: float = inf) -> tuple[int, Price]:
        """The number of a part's best form, and its price. Raises EmitError if it has none."""
        best = self._division.forms.best
        return best(own, self._consider, self._sizes, self._machine, times, limit)


def _again(units: Units, chosen: Sequence[Making]) -> str:
    """Which units several parts compute, in words."""
    often = [n for n in range(len(units)) if sum(one.units >> n & 1 for one in chosen) > 1]
    equations = units.program.equations
    names = [computes([equations[at] for at in units.own(1 << n)]) for n in often]
    if not names:
        return "none is faster where they do"
    return f"computed by several parts, and not stored for them: {'; '.join(names)}"
