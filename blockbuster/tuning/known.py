"""Lookup of measured schedules for a program, on every path that chooses kernels.

A result belongs to a program without its names, a class of sizes, a device, and versions of the
compilers. Its schedule is replayed on the given program, and each move checks that it applies. If
one does not apply, or a compiler refused it, the next best schedule takes its place. If no result
is known, the model's choice stays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache

from blockbuster.emit.schedule.scheduled import Scheduled, unscheduled
from blockbuster.emit.schedule.script import checked_complete, replayed
from blockbuster.emit.target.assembler import dotted
from blockbuster.emit.target.compiler import assembler_of
from blockbuster.emit.tile.fingerprint import Fingerprint
from blockbuster.errors import EmitError, ParseError
from blockbuster.selection.candidates.candidate import Choice
from blockbuster.selection.considered import Considered
from blockbuster.selection.plans.asked import Asked, measured, rescheduled
from blockbuster.selection.plans.size_classes import rounded_up
from blockbuster.tuning.entry import Config, Entry, Key, size_class_of
from blockbuster.tuning.store import Store
from blockbuster.version import VERSION


@cache
def versions(target: str) -> tuple[str, str]:
    """The versions of Triton and of the assembler that make kernels for ``target`` here."""
    import triton

    found = assembler_of(target)
    return str(triton.__version__), dotted(found.version) if found else ""


@dataclass(frozen=True)
class KnownResults:
    """The stored results for ``target`` on ``device``: returns choices as ``asked.Known``."""

    device: str
    target: str
    store: Store = field(default_factory=Store)
    versions: Callable[[str], tuple[str, str]] = versions

    def __call__(self, asked: Asked) -> Considered:
        """The choices considered, with the fastest measured one in front if one is known."""
        considered = asked.considered
        entry = self.entry(asked) if considered.best.scheduled else None
        if entry is None or not entry.is_fair:
            return considered
        for config in entry.ranked:
            choice = _choice(asked, config)
            if choice is not None and choice.key not in asked.refused:
                return measured(considered, choice, _said(entry, config))
        return considered

    def entry(self, asked: Asked) -> Entry | None:
        """The measurements of a kernel; None if there are none."""
        key = self.key(asked) if self.store.folder.names() else None
        return self.store.found(key, lambda: self.versions(self.target)) if key else None

    def is_settled(self, asked: Asked, limit: float) -> bool:
        """True if measuring a kernel for ``limit`` seconds would tell no more than is known.

        It would if there was no time for the model's choice.
        """
        entry = self.entry(asked)
        return entry is not None and (entry.is_fair or entry.seconds >= limit)

    def key(self, asked: Asked) -> Key | None:
        """The key of a kernel, without versions of compilers.

        None for a program that has no form before it is fused.
        """
        try:
            sizes, program = asked.program_sizes, asked.subject.unfused.digest
        except EmitError:
            return None
        classes = tuple(size_class_of(size, rounded_up(size)) for size in sizes)
        return Key(program, classes, self.device, "", "", VERSION)

    def with_versions(self, key: Key) -> Key:
        """``key`` with the versions of compilers that are here."""
        triton, assembler = self.versions(self.target)
        return replace(key, triton=triton, assembler=assembler)


def config_of(choice: Choice) -> tuple[str, str]:
    """The written form of a measured choice: its program, and its schedule with numbered dims."""
    assert choice.scheduled is not None, "a choice for a GPU"
    fingerprint = Fingerprint(choice.scheduled.start)
    return fingerprint.digest, fingerprint.numbered(choice.scheduled.schedule)


def _choice(asked: Asked, config: Config) -> Choice | None:
    """The choice that a configuration is for this program and these sizes, if it is one."""
    for choice in asked.choices():
        assert choice.scheduled is not None
        fingerprint = Fingerprint(choice.scheduled.start)
        if fingerprint.digest != config.program:
            continue
        scheduled = _replayed(choice.scheduled, fingerprint.named(config.schedule))
        if scheduled is None or (asked.one_kernel and len(scheduled.program.nests) > 1):
            continue
        return rescheduled(choice, scheduled)
    return None


def _replayed(like: Scheduled, schedule: str) -> Scheduled | None:
    """A schedule of the same program, sizes and target; None if it does not apply."""
    try:
        made = replayed(unscheduled(like.start, like.known, like.target), schedule)
        return checked_complete(made)
    except (EmitError, ParseError):
        return None


def _said(entry: Entry, config: Config) -> str:
    timed = len(entry.ranked)
    usual = entry.usual
    beside = ""
    if usual and usual.us and usual is not config:
        beside = f", where the model's choice took {usual.us:.1f} us"
    elif usual and not usual.us:
        beside = f", where the model's choice has no time: {usual.reason}"
    return (
        f"the fastest of {timed} schedules measured on {entry.key.device}:"
        f" {config.us:.1f} us{beside}"
    )
