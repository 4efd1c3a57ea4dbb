"""The program that a schedule is for, found by its name alone.

A schedule's text names a program of a derivation by what made it: "snapshot 2 with statistics
apart". The names are those of the candidates; a pattern for each form reads them back, and only the
program that is named is made. No number in a name depends on how many candidates there are.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from blockbuster.errors import EmitError, RuleError, message, shown_lines
from blockbuster.ir.graph import Graph
from blockbuster.rules import RULES, Derivation
from blockbuster.rules.whole_dim import fuse_with_dims
from blockbuster.selection.candidates.again import values_again
from blockbuster.selection.candidates.apart import apart_from
from blockbuster.selection.candidates.operands_apart import stored_from
from blockbuster.selection.candidates.over_ancestors import over_ancestors
from blockbuster.selection.candidates.variant import Variant

UNFUSED = "the unfused program"


def program_named(name: str, derivation: Derivation) -> Variant:
    """The program of ``derivation`` with this name. Raises EmitError if it has none."""
    for pattern, make in FORMS:
        if (found := re.fullmatch(pattern, name)) is None:
            continue
        if reason := _no_such_snapshot(found.groupdict().get("number"), derivation):
            raise _unknown(name, reason)
        try:
            made = make(derivation, found)
        except RuleError as error:
            raise _unknown(name, shown_lines(str(error))[0]) from error
        if made is None:
            raise _unknown(name, "there is nothing to change for that in this derivation")
        return made
    raise _unknown(name, "no program has such a name")


def unfused(start: Graph) -> Derivation:
    """The derivation without a step."""
    return Derivation(start, (), (0,), {0: start})


def _unknown(name: str, reason: str) -> EmitError:
    what = f"the schedule is for {name!r}, and the derivation has no such program: {reason}"
    hint = "kernel.schedule begins with the name of the kernel's program"
    return EmitError(message(what, hint=hint))


def _no_such_snapshot(number: str | None, derivation: Derivation) -> str:
    count = len(derivation.snapshots_after)
    if number is None or int(number) <= count:
        return ""
    return f"it has snapshots 1 to {count}" if count > 1 else "it has snapshot 1 only"


# forms -----------------------------------------------------------------------------


def _snapshot(derivation: Derivation, found: re.Match[str]) -> Variant:
    number = int(found["number"])
    last = number == len(derivation.snapshots_after)
    return Variant(derivation if last else derivation.at_snapshot(number))


def _unfused(derivation: Derivation, _: re.Match[str]) -> Variant:
    return Variant(unfused(derivation.start))


def _apart(derivation: Derivation, found: re.Match[str]) -> Variant | None:
    number = int(found["number"])
    one = apart_from(derivation, number, stored=bool(found["stored"]))
    same = one.graph == derivation.at_snapshot(number).final
    return None if same else one


def _stored(derivation: Derivation, found: re.Match[str]) -> Variant | None:
    return stored_from(derivation, int(found["number"]))


def _over_ancestors(derivation: Derivation, found: re.Match[str]) -> Variant | None:
    made = (one for one in over_ancestors(derivation) if one.name == found.string)
    return next(made, None)


def _whole(derivation: Derivation, found: re.Match[str]) -> Variant | None:
    made = fuse_with_dims(derivation.start, RULES, _dims(found))
    count = len(made.snapshots_after)
    number = int(found["at"] or 1)
    if number > count or (count > 1 and not found["at"]):
        return None
    return Variant(made.at_snapshot(number))


def _again(derivation: Derivation, found: re.Match[str]) -> Variant | None:
    one = values_again(derivation, _dims(found), alone=bool(found["alone"]))
    return Variant(one.derivation) if one else None


def _dims(found: re.Match[str]) -> tuple[str, ...]:
    return tuple(found["dims"].split(" and ")) if found["dims"] else ()


NUMBER = r"snapshot (?P<number>[1-9]\d{0,8})"
DIMS = r"(?P<dims>\S+(?: and \S+)*)"
STORED = "(?P<stored> and operands of dots stored)?"

FORMS: tuple[tuple[str, Callable[[Derivation, re.Match[str]], Variant | None]], ...] = (
    (NUMBER, _snapshot),
    (UNFUSED, _unfused),
    (f"{NUMBER} with statistics apart{STORED}", _apart),
    (f"{NUMBER} with operands of dots stored", _stored),
    (rf"{NUMBER} extended (?:once|\d+ times) over ancestors alone", _over_ancestors),
    (
        rf"(?:the program|snapshot (?P<at>[1-9]\d{{0,8}})) with {DIMS} (?:each )?in one block",
        _whole,
    ),
    (
        f"the program with larger values(?P<alone> alone)? made again(?:, {DIMS} in one block)?",
        _again,
    ),
)
"""A pattern for the names of each form, and what makes the program."""
