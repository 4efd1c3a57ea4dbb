"""A plan as one file: JSON that holds the emitted sources and all that is needed to run them.

A function of whole arrays is saved as the name under which it can be imported.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import json
import os
import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

from blockbuster.emit.pieces import Call, Seen
from blockbuster.emit.plan import File, Plan
from blockbuster.errors import LaunchError, message
from blockbuster.ir.lengths import Length, Rule

SCHEMA = "blockbuster.compiled/2"


def write_plan(plan: Plan, path: Path, *, shape: dict[str, Any]) -> Path:
    """Write a plan and how its result is shaped; the file appears complete or not at all.

    Raises ValueError for a function that cannot be imported by its name.
    """
    content = {"plan": _plan_to_json(plan), "shape": shape}
    document = {"schema": SCHEMA, "sha256": _digest(content), **content}
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as file:
            json.dump(document, file, indent=1)
            file.write("\n")
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return path


def read_plan(path: Path) -> tuple[Plan, dict[str, Any]]:
    """A plan and how its result is shaped. Running it runs code from the file, as an import does.

    Raises LaunchError for a file that is damaged or was written for another version.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise _damaged(path, f"it is no JSON: {error}") from error
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema != SCHEMA:
        raise _damaged(path, f"its schema is {schema!r}, expected {SCHEMA!r}")
    content = {key: document.get(key) for key in ("plan", "shape")}
    if document.get("sha256") != _digest(content):
        raise _damaged(path, "its content does not have the checksum that it was written with")
    return _plan_from_json(document["plan"]), document["shape"]


def _damaged(path: Path, reason: str) -> LaunchError:
    return LaunchError(
        message(f"{path} cannot be loaded: {reason}", hint="save the compiled program again")
    )


def _digest(content: Any) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _plan_to_json(plan: Plan) -> dict[str, Any]:
    steps = [
        {"file": _file_to_json(step)} if isinstance(step, File) else {"call": _call_to_json(step)}
        for step in plan.steps
    ]
    results = [[seen.array, seen.order] for seen in plan.results]
    return {
        "name": plan.name, "dtype": plan.dtype, "target": plan.target,
        "inputs": [[name, axes] for name, axes in plan.inputs.items()],
        "sizes": dict(plan.sizes), "steps": steps, "names": plan.names, "results": results,
        "dtypes": dict(plan.dtypes), "arithmetic": plan.arithmetic,
        "notes": plan.notes, "rules": [*map(_rule_to_json, plan.rules)],
    }  # fmt: skip


def _plan_from_json(data: dict[str, Any]) -> Plan:
    return Plan(
        data["name"],
        data["dtype"],
        data["target"],
        {name: tuple(axes) for name, axes in data["inputs"]},
        data["sizes"],
        tuple(
            _file_from_json(step["file"]) if "file" in step else _call_from_json(step["call"])
            for step in data["steps"]
        ),
        tuple(data["names"]),
        tuple(Seen(array, tuple(order)) for array, order in data["results"]),
        data["dtypes"],
        data["arithmetic"],
        tuple(data["notes"]),
        tuple(map(_rule_from_json, data["rules"])),
    )


def _rule_to_json(rule: Rule) -> list[Any]:
    terms = [[dims, share.numerator, share.denominator] for dims, share in rule.length.terms]
    return [rule.dim, terms, rule.exact]


def _rule_from_json(data: list[Any]) -> Rule:
    dim, terms, exact = data
    length = Length(tuple((tuple(dims), Fraction(top, under)) for dims, top, under in terms))
    return Rule(dim, length, exact)


FILE_FIELDS = [field.name for field in dataclasses.fields(File) if field.name != "considered"]


def _file_to_json(file: File) -> dict[str, Any]:
    return {name: getattr(file, name) for name in FILE_FIELDS}


def _file_from_json(data: dict[str, Any]) -> File:
    return File(**{name: _tuples(data[name]) for name in FILE_FIELDS})


def _call_to_json(call: Call) -> dict[str, Any]:
    operands = [[seen.array, seen.order] for seen in call.operands]
    return {
        "name": call.name, "fn": _function_to_json(call.fn, call.name), "operands": operands,
        "writes": call.writes, "axes": call.axes, "where": call.where,
    }  # fmt: skip


def _call_from_json(data: dict[str, Any]) -> Call:
    operands = tuple(Seen(array, tuple(order)) for array, order in data["operands"])
    fn = _function_from_json(data["fn"])
    return Call(
        data["name"], fn, operands, _tuples(data["writes"]), _tuples(data["axes"]), data["where"]
    )


def _function_to_json(fn: Any, name: str) -> Any:
    """A function by its name; one of our own callable objects by its class and fields."""
    kind = type(fn)
    if dataclasses.is_dataclass(fn):
        fields = {f.name: getattr(fn, f.name) for f in dataclasses.fields(fn)}
        values = {k: _function_to_json(v, name) if callable(v) else v for k, v in fields.items()}
        return {"class": [kind.__module__, kind.__qualname__], "fields": values}
    place = [getattr(fn, "__module__", ""), getattr(fn, "__qualname__", "")]
    if place[0] == "__main__" or _found(place) is not fn:
        raise ValueError(
            message(
                f"the function {name} cannot be saved: {place[0]}.{place[1]} cannot be imported",
                hint="define it at the top of a module that is there when the file is loaded",
            )
        )
    return {"import": place}


def _function_from_json(data: Any) -> Any:
    place = data.get("import") or data["class"]
    fn = _found(place)
    if fn is None:
        raise LaunchError(f"the saved program calls {'.'.join(place)}, which cannot be imported")
    if "import" in data:
        return fn
    values = data["fields"].items()
    return fn(
        **{k: _function_from_json(v) if isinstance(v, dict) else _tuples(v) for k, v in values}
    )


def _found(place: list[str]) -> Any:
    try:
        found: Any = importlib.import_module(place[0]) if place[0] else None
    except ImportError:
        return None
    for word in place[1].split("."):
        found = getattr(found, word, None)
    return found


def _tuples(value: Any) -> Any:
    """JSON's lists as the tuples they were."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
