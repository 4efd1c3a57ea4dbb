"""The forms of a part: in blocks, on whole arrays, or with calls of a library; and the best one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Protocol

from blockbuster.errors import EmitError, TraceError, shown_lines
from blockbuster.frontend.library_calls import LibraryAttention
from blockbuster.ir.types import Dim
from blockbuster.machines import Machine
from blockbuster.machines.library import library_of
from blockbuster.selection.considered import Considered
from blockbuster.selection.library.program import ALL, LAYERS, library_program
from blockbuster.selection.parts.partition import Price
from blockbuster.selection.plans.equal_part import EqualPart
from blockbuster.selection.plans.fusers import Fuser, Notes, check_fusers, offered
from blockbuster.selection.plans.part import Part
from blockbuster.selection.plans.pieces import Call
from blockbuster.selection.plans.plan_dtypes import stored_by_eager
from blockbuster.selection.plans.prices import price
from blockbuster.selection.plans.whole_part import WholePart, why_not_whole
from blockbuster.selection.priors import PRIORS

BY_LIBRARY = "a library's call"


class Consider(Protocol):
    """The choice for each piece of a part, which is not looked for in full if the part is bound to
    take more microseconds than ``limit``. Raises EmitError where a piece has none.
    """

    def __call__(self, part: Part, limit: float = inf) -> list[Considered]: ...


class Forms:
    """The forms of parts, each made once. ``library``: whether calls of a library may stand;
    ``fusers`` offer programs. ``overlap``: several parts may compute the same. ``notes``: which
    forms were left out, and why.
    """

    def __init__(
        self, *, on_cpu: bool, library: bool, fusers: Sequence[Fuser] = (), overlap: bool = False
    ) -> None:
        check_fusers(fusers)
        self._calls_differ = overlap or bool(fusers)  # from plan to plan
        self._on_cpu, self._library, self.fusers = on_cpu, library, fusers
        self.notes = Notes()
        self._refused: dict[str, str] = {}  # functions of a library, and why
        self._of: dict[Part, tuple[Part, ...]] = {}

    def of(self, part: Part, machine: Machine) -> tuple[Part, ...]:
        """A part in blocks; on whole arrays, for the CPU, if it may be; with a library's calls, if
        there are some and the machine has a table of what they take; and by what fusers offer.
        """
        if part not in self._of and isinstance(part, EqualPart):
            _, *others = self.of(part.first, machine)
            self._of[part] = (part, *map(part.form, others))
        elif part not in self._of:
            whole = _on_whole_arrays(part) if self._on_cpu else None
            calls = self._with_calls(part) if self._library and library_of(machine) else ()
            found = (part, whole, *calls, *offered(part, self.fusers, self.notes))
            self._of[part] = tuple(form for form in found if form is not None)
        return self._of[part]

    def refuse(self, call: Call, reason: str) -> None:
        """Never call this function of a library again, for the reason in words."""
        self._refused[call.name] = reason
        self._of.clear()

    def best(
        self,
        part: Part,
        consider: Consider,
        sizes: Mapping[Dim, int],
        machine: Machine,
        times: float,
        limit: float = inf,
    ) -> tuple[int, Price]:
        """The number of a part's best form, and its price: that of one which takes more than
        ``limit`` may be too high.

        One on whole arrays has to be faster than one in blocks by so many ``times``; one with calls
        by less, unless nothing tells apart what takes so little; one of a fuser's just faster.
        Raises EmitError if no form can be written.
        """
        found: tuple[int, Price] | None = None
        refused: EmitError | None = None
        rough = False
        is_kept = self._on_cpu or times > PRIORS.whole_program_factor
        for number, form in enumerate(self.of(part, machine)):
            try:
                taken = price(form, consider(form, limit), sizes, machine)
            except EmitError as error:
                refused = refused or error
                if number:
                    reason = shown_lines(str(error))[0]
                    self.notes.add(f"{_named(form)} is left out: {reason}", part.program)
                continue
            rough = rough or taken.rough
            if self._calls_differ:
                users = sum(not (call.is_library or call.only_moves) for call in form.calls)
                taken = taken._replace(calls=users)
            ahead = times if is_kept else _ahead(form)
            factor = 1.0 if (found and found[0]) or form.by else ahead
            if found is None or taken.length * factor < found[1].length:
                found = number, taken
        if found is None:
            assert refused is not None, "there is a form in blocks"
            raise refused
        number, taken = found
        return number, taken._replace(rough=rough)

    def _with_calls(self, part: Part) -> list[Part]:
        """The part with all calls; and with those but attention, if that is among them."""
        stored, found = stored_by_eager(part.program), list[Part]()

        def may_call(name: str) -> bool:
            if name in self._refused:
                self.notes.add(f"{BY_LIBRARY} is left out: {self._refused[name]}", part.program)
            return name not in self._refused

        for matchers in (ALL, LAYERS):
            try:
                program = library_program(
                    part.program, part.dtype_given, part.dtype_kept, stored, matchers, may_call
                )
                form = part.as_program(program) if program else None
            except (EmitError, TraceError) as error:
                reason = shown_lines(str(error))[0]
                self.notes.add(f"{BY_LIBRARY} is left out: {reason}", part.program)
            else:
                found += [form] if form is not None else []
                if form is None or not _attends(form):
                    break
        return found


def _on_whole_arrays(part: Part) -> WholePart | None:
    return None if why_not_whole(part.program) else WholePart(part)


def _ahead(form: Part) -> float:
    """By how many times a form with calls of a library has to be faster than one in blocks."""
    return PRIORS.library_attention_factor if _attends(form) else PRIORS.library_factor


def _attends(form: Part) -> bool:
    """True if one of its calls is attention of a library."""
    return any(isinstance(call.fn, LibraryAttention) for call in form.calls)


def _named(form: Part) -> str:
    """A form beside that in blocks, in words."""
    if form.by:
        return f"fuser {form.by}"
    return "NumPy on whole arrays" if isinstance(form, WholePart) else BY_LIBRARY
