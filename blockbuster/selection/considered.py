"""The record of a choice: the best candidate, the others, those excluded, and the reasons."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, overload

from blockbuster.costs.report import CLOSED_FORM, in_us
from blockbuster.errors import EmitError, message, shown_lines
from blockbuster.ir.types import Dim, size_class
from blockbuster.selection.decisions.packed import told_apart
from blockbuster.selection.nearby.edits import pairs_in
from blockbuster.selection.priors import PRIORS

if TYPE_CHECKING:
    from blockbuster.selection.candidates.candidate import Choice

ON_CPU = "least time predicted for NumPy"
COMPARED = f"{CLOSED_FORM}, in a CUDA graph"
"""By which times candidates are compared: what the host does for a launch is not counted."""

Blocks = Mapping[Dim, tuple[int, ...]]
"""By size class, the numbers of lanes that choices give a dim."""

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


def blocks_of(choices: Iterable[Choice]) -> dict[Dim, tuple[int, ...]]:
    """The numbers of lanes of each size class; kernels have no masks if these divide its size.
    NumPy text never has masks. Besides, what decides whether an array is copied (packed.py), and
    blocks that are taken in pairs (edits.py).
    """
    found: dict[Dim, set[int]] = {}
    for scheduled in (choice.scheduled for choice in choices if choice.scheduled):
        made = [rule.dim for rule in scheduled.made]  # dims that its moves made of others (jam)
        blocks = (block for nest in scheduled.draft.nests for block in nest.blocks)
        own = ((size_class(one.dim), one.lanes) for one in blocks if one.dim not in made)
        for dim, lanes in (*own, *told_apart(scheduled), *pairs_in(scheduled)):
            found.setdefault(dim, set()).add(lanes)
    return {dim: tuple(sorted(n for n in lanes if n > 1)) for dim, lanes in found.items()}


def merged_blocks(each: Iterable[Blocks]) -> dict[Dim, tuple[int, ...]]:
    """All the numbers of lanes of several choices together."""
    found: dict[Dim, set[int]] = {}
    for dim, lanes in (item for blocks in each for item in blocks.items()):
        found.setdefault(dim, set()).update(lanes)
    return {dim: tuple(sorted(lanes)) for dim, lanes in found.items()}


class MadeLater(Sequence["Choice"]):
    """Other choices that are made if asked for: those for a program that is equal to one chosen for
    before, and those beside a choice that was decided earlier.

    Reports ask for them, and a model of 32 equal layers has as many times the others of one layer.
    ``blocks``: by how many lanes they cut dims, by size class.
    """

    def __init__(self, make: Callable[[], Sequence[Choice]], blocks: Blocks) -> None:
        self._make, self.blocks = make, blocks

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


@dataclass(frozen=True)
class Considered:
    """The best choice for some sizes, the others, and why some snapshots were excluded.

    ``refused`` also tells of rules that failed. ``instead``: the best in words, if a compiler
    refused others. ``rest``: looks for other choices, and for the schedules that suit them best, up
    to a limit, if that was left out because it was expected to bring none below ``least``
    microseconds. ``said``: from which measurements the best is known, if it is.
    """

    best: Choice
    others: Sequence[Choice]
    refused: tuple[str, ...]
    instead: str = ""
    rest: Callable[[float], Considered] | None = field(default=None, repr=False, compare=False)
    least: float = field(default=0.0, repr=False, compare=False)
    said: str = ""

    @cached_property
    def blocks(self) -> Blocks:
        """By how many lanes all choices cut dims."""
        others, own = self.others, blocks_of([self.best])
        return merged_blocks(
            [others.blocks if isinstance(others, MadeLater) else blocks_of(others), own]
        )

    def within(self, limit: float) -> Considered:
        """The same with what was left out, if that could take at most so many microseconds."""
        return self if self.rest is None or self.least > limit else self.rest(limit)

    @property
    def reason(self) -> str:
        """Why the best is the best, in words."""
        if self.said:
            return self.said
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
