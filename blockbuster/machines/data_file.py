"""The text form of a machine: a TOML file with its numbers and the source of each."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, fields, replace
from decimal import Decimal
from typing import Any, TypeVar

from blockbuster.errors import message, shown
from blockbuster.machines.machine import (
    MEMORY_TIERS,
    WHOLE,
    Choice,
    Launch,
    Limits,
    Machine,
    Tier,
    why_no_number,
)

Table = Mapping[str, Any]
_Part = TypeVar("_Part", Tier, Launch, Limits, Choice)

GPU_TIERS = ("hbm", "l2", "shared")
"""The tiers that every GPU has, from global memory on: models tell them by where they stand."""

KINDS = ("gpu", "cpu")
TEXTS = ("name", "kind", "target")
NUMBERS = ("processors", "clock", "special", "issue")
TABLES = ("tiers", "compute", "launch", "limits")
OPTIONAL = ("devices", "choice", "sources")


class _Wrong(Exception):
    """Why a table describes no machine; ``read_machine`` says in which file."""


def read_machine(text: str, file: str) -> Machine:
    """The machine that ``text`` describes; ``file`` is its name in messages.

    Raises ValueError for text that is not TOML, for missing or unknown entries, for numbers out of
    range, and for sources of numbers that do not exist.
    """
    try:
        table = tomllib.loads(text)
    except ValueError as error:  # no TOML, or a number of thousands of digits
        raise ValueError(message(f"{shown(file)} is not TOML: {error}")) from None
    return _machine_from(table, file)


def _machine_from(table: Table, file: str) -> Machine:
    try:
        return _machine(table)
    except _Wrong as wrong:
        hint = "the built-in files, blockbuster/machines/data/*.toml, have every entry"
        raise ValueError(message(f"{shown(file)}: {wrong}", hint=hint)) from None


def machine_text(machine: Machine) -> str:
    """The file of a machine, which ``read_machine`` reads back."""
    lines = [f"{key} = {_quoted(getattr(machine, key))}" for key in TEXTS]
    lines.append(f"devices = [{', '.join(map(_quoted, machine.devices))}]")
    table = ""
    for path, value in numbers_of(machine).items():
        parent, _, key = path.rpartition(".")
        if parent != table:
            table = parent
            lines += ["", f"[{table}]"]
        lines.append(f"{key} = {_number_text(value)}")
    if machine.sources:
        lines += ["", "[sources]"]
        for path, text in machine.sources.items():
            key = path if path.isidentifier() and path.isascii() else _quoted(path)
            lines.append(f"{key} = {_quoted(text)}")
    return "\n".join(lines) + "\n"


def numbers_of(machine: Machine) -> dict[str, int | float]:
    """Every number of a machine, by its path in the data file: "tiers.hbm.bandwidth".

    Default numbers (one part, nothing reserved) are left out.
    """
    found: dict[str, int | float] = {key: getattr(machine, key) for key in NUMBERS}
    for tier in machine.tiers:
        found |= _named(tier, f"tiers.{tier.name}")
    for unit, rates in machine.compute.items():
        found |= {f"compute.{unit}.{dtype}": rate for dtype, rate in rates.items()}
    found |= _named(machine.launch, "launch") | _named(machine.limits, "limits")
    return found | (_named(machine.choice, "choice") if machine.choice else {})


def sources_of(machine: Machine) -> dict[str, str]:
    """The source of each number, by its path: its own source, or that of a table around it."""
    found = {}
    for path in numbers_of(machine):
        table = path
        while table and table not in machine.sources:
            table = table.rpartition(".")[0]
        if table:
            found[path] = machine.sources[table]
    return found


def with_numbers(
    machine: Machine, numbers: Mapping[str, int | float], sources: Mapping[str, str]
) -> Machine:
    """``machine`` with other numbers at these paths, and with their sources.

    Raises ValueError for a path that no file has, and for numbers out of range.
    """
    table = tomllib.loads(machine_text(replace(machine, sources={})))
    for path, number in numbers.items():
        *tables, key = path.split(".")
        inner = table
        for name in tables:
            inner = inner.setdefault(name, {})
        inner[key] = number
    table["sources"] = sources_of(machine) | dict(sources)
    return _machine_from(table, machine.name)


def _named(part: Tier | Launch | Limits | Choice, path: str) -> dict[str, int | float]:
    values = {field: getattr(part, field.name) for field in fields(part) if field.name != "name"}
    return {f"{path}.{f.name}": value for f, value in values.items() if value != f.default}


def _number_text(number: int | float) -> str:
    """As people write it: 65_536, 4.3e12."""
    if isinstance(number, int):
        return f"{number:_}" if number >= 10_000 else str(number)
    if number == 0:
        return "0.0"
    digits, exponent = f"{Decimal(repr(number)).normalize():e}".split("e")
    return f"{digits}e{int(exponent)}"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


# from a table to a machine -----------------------------------------------------------


def _machine(table: Table) -> Machine:
    _check_keys(table, "", (*TEXTS, *NUMBERS, *TABLES), OPTIONAL)
    for key in TEXTS:
        _check(isinstance(table[key], str), f"{key} is a text in quotes, not {table[key]!r}")
    kind = table["kind"]
    _check(kind in KINDS, f"kind is {' or '.join(map(_quoted, KINDS))}, not {kind!r}")
    tiers = _tiers(_table(table, "tiers"))
    first = tuple(tier.name for tier in tiers[: len(GPU_TIERS)])
    wanted = ", ".join(GPU_TIERS)
    _check(
        kind != "gpu" or first == GPU_TIERS,
        f"the first tiers of a gpu are {wanted}, in this order, not {', '.join(first)}",
    )
    machine = Machine(
        **{key: table[key] for key in TEXTS},
        **{key: _number(table[key], key, whole=key in WHOLE) for key in NUMBERS},
        tiers=tiers,
        compute=_compute(_table(table, "compute")),
        launch=_part(Launch, table, "launch"),
        limits=_part(Limits, table, "limits"),
        devices=_devices(table.get("devices", [])),
        choice=_part(Choice, table, "choice") if "choice" in table else None,
        sources=dict(_table(table, "sources")) if "sources" in table else {},
    )
    _check_sources(machine)
    return machine


def _tiers(table: Table) -> tuple[Tier, ...]:
    tiers = []
    for name in table:
        found = _entries(Tier, _table(table, name, "tiers."), f"tiers.{name}", given=("name",))
        tiers.append(Tier(name=name, **found))
    first = " or ".join(map(_quoted, MEMORY_TIERS))
    _check(tiers and tiers[0].name in MEMORY_TIERS, f"the first tier is global memory: {first}")
    return tuple(tiers)


def _compute(table: Table) -> dict[str, dict[str, float]]:
    found = {}
    for unit in table:
        rates = _table(table, unit, "compute.")
        found[unit] = {d: _number(rate, f"compute.{unit}.{d}") for d, rate in rates.items()}
    return found


def _part(form: type[_Part], table: Table, name: str) -> _Part:
    return form(**_entries(form, _table(table, name), name))


def _entries(
    form: type[_Part], table: Table, path: str, *, given: tuple[str, ...] = ()
) -> dict[str, Any]:
    """The numbers of a table as arguments of ``form``, less those that are ``given`` otherwise."""
    wanted = {field.name: field for field in fields(form) if field.name not in given}
    needed = tuple(name for name, field in wanted.items() if field.default is MISSING)
    _check_keys(table, path, needed, tuple(wanted))
    return {
        name: _number(value, f"{path}.{name}", whole=wanted[name].type == "int")
        for name, value in table.items()
    }


def _number(value: object, path: str, *, whole: bool = False) -> Any:
    """``value``, if it is a number that may stand at this path."""
    reason = why_no_number(value, path, whole=whole)
    _check(not reason, reason)
    assert isinstance(value, int | float)
    return value if whole else float(value)


def _devices(value: object) -> tuple[str, ...]:
    names = isinstance(value, list) and all(isinstance(name, str) for name in value)
    _check(names, f"devices is a list of names in quotes, not {value!r}")
    assert isinstance(value, list)
    return tuple(value)


def _table(table: Table, key: str, path: str = "") -> Table:
    found = table[key]
    _check(isinstance(found, Mapping), f"{path}{key} is a table, not {found!r}")
    assert isinstance(found, Mapping)
    return found


def _check_keys(
    table: Table, path: str, needed: tuple[str, ...], optional: tuple[str, ...]
) -> None:
    where = f"{path}." if path else ""
    missing = [f"{where}{key}" for key in needed if key not in table]
    _check(not missing, f"{', '.join(missing)} is missing")
    unknown = [f"{where}{shown(key)}" for key in table if key not in (*needed, *optional)]
    known = ", ".join(dict.fromkeys((*needed, *optional)))
    _check(not unknown, f"{', '.join(unknown)} is unknown; known here: {known}")


def _check_sources(machine: Machine) -> None:
    """Each source is a text, and is that of a number, or of all numbers of a table."""
    numbers = numbers_of(machine)
    for path, text in machine.sources.items():
        _check(isinstance(text, str) and text != "", f"the source of {shown(path)} is no text")
        stands = path in numbers or any(number.startswith(f"{path}.") for number in numbers)
        _check(stands, f"there is a source of {shown(path)}, but no such number")


def _check(holds: object, otherwise: str) -> None:
    if not holds:
        raise _Wrong(otherwise)
