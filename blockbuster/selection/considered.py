"""The record of a choice: the best candidate, the others, those excluded, and the reasons."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, overload

from blockbuster.costs.report import CLOSED_FORM, in_us
from blockbuster.errors import EmitError, message, shown_lines
from blockbuster.ir.types import Dim
from blockbuster.selection.priors import PRIORS

if TYPE_CHECKING:
    from blockbuster.selection.candidates.candidate import Choice

ON_CPU = "least time predicted for NumPy"
COMPARED = f"{CLOSED_FORM}, in a CUDA graph"
"""By which times candidates are compared: what the host does for a launch is not counted."""

NO_CHOICE = " is no choice: "


def is_tie(best: Choice, other: Choice) -> bool:
    """True if two choices can overflow in as many places, and cost about the same."""
    low, high = sorted((best.price, other.price))
    return len(best.unsafe) == len(other.unsafe) and high <= PRIORS.near_programs_factor * low


def as_noun(name: str) -> str:
    """The name of a program where a noun is needed: "the program with D in one block"."""
    return f"the program {name}" if name.startswith("with ") else name


def in_words(name: str) -> str:
    """The name of a program in a sentence: what it does with large values is said as a clause.

    >>> in_words("the program with larger values made again")
    'the program that computes large values where it reads them'
    """
    for alone, what in ((" alone", "large values alone"), ("", "large values")):
        again = f"the program with larger values{alone} made again"
        name = name.replace(again, f"the program that computes {what} where it reads them")
    return as_noun(name)


def _priced(choice: Choice) -> str:
    unknown = choice.scheduled is not None and choice.cost is None
    time = "of no known time" if unknown else in_us(choice.predicted)
    return f"{in_words(choice.name)}, {time}"


class MadeLater(Sequence["Choice"]):
    """The other choices for a program that is equal to one chosen for before: made if asked for.

    Reports ask for them, and a model of 32 equal layers has as many times the others of one layer.
    ``models``: those of the program before; ``dims``: the names of its dims here, by size class.
    """

    def __init__(
        self,
        make: Callable[[], Sequence[Choice]],
        models: Sequence[Choice],
        dims: Mapping[Dim, Dim],
    ) -> None:
        self._make, self.models, self.dims = make, models, dims

    @cached_property
    def _made(self) -> Sequence[Choice]:
        return self._make()

    @overload
    def __getitem__(self, at: int) -> Choice: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Choice]: ...
    def __getitem__(self, at: int | slice) -> Choice | Sequence[Choice]:
        return self._made[at]

    def __len__(self) -> int:
        return len(self._made)


class Recalled(MadeLater):
    """The other choices beside one that was decided earlier: looked for if asked for.

    ``blocks``: by how many lanes they cut dims, by size class.
    """

    def __init__(
        self, make: Callable[[], Sequence[Choice]], blocks: Mapping[Dim, Sequence[int]]
    ) -> None:
        super().__init__(make, (), {})
        self.blocks = blocks


@dataclass(frozen=True)
class Considered:
    """The best choice for some sizes, the others, and why some snapshots were excluded.

    ``refused`` also tells of rules that failed. ``instead``: the best in words, if a compiler
    refused others. ``rest``: looks for other choices, and for the schedules that suit them best, up
    to a limit, if that was left out because it was expected to bring none below ``least``
    microseconds.
    """

    best: Choice
    others: Sequence[Choice]
    refused: tuple[str, ...]
    instead: str = ""
    rest: Callable[[float], Considered] | None = field(default=None, repr=False, compare=False)
    least: float = field(default=0.0, repr=False, compare=False)

    def within(self, limit: float) -> Considered:
        """The same with what was left out, if that could take at most so many microseconds."""
        return self if self.rest is None or self.least > limit else self.rest(limit)

    @property
    def reason(self) -> str:
        """Why the best is the best, in words."""
        ranked = sorted((self.best, *self.others), key=lambda choice: choice.snapshot)
        if len(ranked) == 1:
            return "no other choice"
        amounts = "; ".join(f"{in_words(choice.name)} {choice.amount}" for choice in ranked)
        fewest = f"of those with {len(self.best.unsafe)} exponentials that can overflow, "
        differ = any(len(c.unsafe) != len(self.best.unsafe) for c in ranked)
        told = self.best.cost
        least = f"least time on {told.machine.name} ({COMPARED})" if told else ON_CPU
        tied = any(is_tie(self.best, c) for c in self.others)
        rest = "; of equals, the one with fewer kernels, then the more fused" if tied else ""
        return f"{fewest if differ else ''}{least}: {amounts}{rest}"

    @property
    def best_alone(self) -> str:
        """The best choice and its predicted time, in words."""
        told = self.best.cost
        by = f" predicted on {told.machine.name} ({CLOSED_FORM})" if told else ""
        return f"{_priced(self.best)}{by}"

    @property
    def short(self) -> str:
        """The best choice, and the cost of the next best, in a few words; empty without others."""
        if not self.others:
            return ""
        second = min(self.others, key=lambda choice: choice.rank)
        told = self.best.cost
        number = len(self.others)
        rest = "the other program" if number == 1 else f"the best of {number} others"
        safer = len(second.unsafe) - len(self.best.unsafe)
        more = f", but {safer} more exponentials can overflow in it" if safer > 0 else ""
        said = f"{self.best_alone}; {rest}, {_priced(second)}{more}"
        if told and second.cost and not safer and second.predicted < self.best.predicted:
            said += f"; {COMPARED}, {in_us(self.best.price)} and {in_us(second.price)}"
        return said

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the user: excluded choices, possible overflows, lost digits."""
        taken = (f"taken instead: {self.instead}",) if self.instead else ()
        return *self.refused, *taken, *self.best.unsafe, *self.best.notes


@dataclass
class Refusals:
    """The excluded choices: errors by their messages, and whether a compiler refused any."""

    errors: dict[str, EmitError] = field(default_factory=dict)
    by_compiler: bool = False

    @property
    def error(self) -> EmitError:
        """All of them as one error, where compilers refused what is left."""
        return EmitError(message("no kernel compiles and is right", origin="\n".join(self.errors)))

    def note(self, name: str, error: EmitError) -> None:
        """``error`` is why ``name`` is no choice."""
        reason = shown_lines(str(error))[0]
        self.errors.setdefault(f"{name}{NO_CHOICE}{reason}", error)

    def note_refused(self, choice: Choice, reason: str) -> None:
        """A compiler refused ``choice``."""
        tiles = ", ".join(f"{dim} {lanes}" for dim, lanes in choice.blocks.items())
        nests = choice.scheduled.draft.nests if choice.scheduled else ()
        counts = dict.fromkeys(str(nest.warps) for nest in nests)
        warps = f" and {' or '.join(counts)} warps" if counts else ""
        self.note(choice.name, EmitError(f"with tiles {tiles}{warps}, {reason}"))
        self.by_compiler = True
