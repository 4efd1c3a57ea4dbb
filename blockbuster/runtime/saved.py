"""A plan saved as one file: JSON with the emitted sources and all data needed to run them.

The file also holds the array program, with which first results are compared; the caller knows its
form (frontend/saved_program.py).

Reading the file only reads data: nothing that it names is imported, called or constructed, except
values of a few of our classes. Running the plan runs the file's content: the modules whose text it
holds, and functions of whole arrays, which are saved as importable names. So a saved plan needs the
same trust as a program.
"""

from __future__ import annotations

import json
import stat
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from blockbuster.emit.target.disk import write_whole
from blockbuster.emit.target.targets import TARGETS
from blockbuster.emit.tile.dtypes import DTYPES
from blockbuster.errors import BlockbusterError, LaunchError, message, shown
from blockbuster.ir.documents import document, read_document
from blockbuster.ir.dtypes import FLOAT8, OWN
from blockbuster.ir.reading import (
    Read,
    Wrong,
    expected,
    items,
    mapping,
    maybe,
    number,
    one_of,
    parse_json,
    record,
    row,
    text,
)
from blockbuster.ir.saving import Classes, function_to_json, read_function, read_rule, rule_to_json
from blockbuster.ir.types import size_class
from blockbuster.runtime.saved_launches import read_launches
from blockbuster.selection.candidates.candidate import CPU
from blockbuster.selection.plans.pieces import Axes, Call, Seen
from blockbuster.selection.plans.plan import File, Plan

T = TypeVar("T")

SCHEMA = "blockbuster.runtime.compiled/8"
LARGEST = 1 << 28
"""Bytes: a plan of the largest programs has a hundredth of that."""


class Contents:
    """Code that comes from a saved file runs in ``with Contents(path)``.

    Reading a file finds what is not of our form. Whether its texts are those that we wrote, and its
    numbers fit them, shows only when they run: then an error that is none of ours is a LaunchError
    that names the file. Where memory runs out, the file is not to blame.
    """

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        """Nothing is prepared."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: object
    ) -> None:
        ours = isinstance(error, BlockbusterError | MemoryError) or not isinstance(error, Exception)
        if ours or type(error).__name__ == "OutOfMemoryError":  # torch's
            return
        notes = getattr(error, "__notes__", ())
        what = f"{shown(self._path)} cannot be run: {type(error).__name__}: {error}"
        hint = "if it was changed since it was saved, save the compiled program again"
        raise LaunchError(message(what, origin="\n".join(notes) or None, hint=hint)) from error


def write_plan(
    plan: Plan, path: Path, classes: Classes, *, shape: dict[str, Any], program: Any
) -> Path:
    """Write a plan and how its result is shaped; the file appears complete or not at all.

    ``program`` is the array program as JSON, or None. Raises ValueError for a function that cannot
    be imported by its name.
    """
    saved = document(SCHEMA, plan=_plan_to_json(plan, classes), shape=shape, program=program)
    return write_whole(path, (json.dumps(saved, indent=1) + "\n").encode())


def read_plan(
    path: Path, classes: Classes, *, program: Callable[[Any, Plan], T]
) -> tuple[Plan, dict[str, Any], T]:
    """A plan, how its result is shaped, and the array program. No code runs before the plan does.

    ``program`` reads the array program, which has to fit the plan, and raises Wrong. Raises
    LaunchError for a file that cannot be read, is damaged or was written for another version.
    """
    try:
        return _document(parse_json(_bytes(path)), classes, program)
    except OSError as error:
        reason = error.strerror or str(error)
    except Wrong as wrong:
        reason = str(wrong)
    except RecursionError:
        reason = "it is nested deeper than any file of ours"
    raise LaunchError(
        message(
            f"{shown(str(path))} cannot be loaded: {reason}",
            hint="save the compiled program again",
        )
    )


def _bytes(path: Path) -> bytes:
    about = path.stat()
    if not stat.S_ISREG(about.st_mode):
        raise Wrong("it is no file")
    if about.st_size > LARGEST:
        raise Wrong(f"it has {about.st_size} bytes, more than any plan")
    return path.read_bytes()


def _document(
    data: Any, classes: Classes, read_program: Callable[[Any, Plan], T]
) -> tuple[Plan, dict[str, Any], T]:
    reads: dict[str, Read[Any]] = {"plan": partial(_plan, classes=classes), "shape": _shape}
    found = read_document(data, SCHEMA, program=lambda given: given, **reads)
    plan, shape = found["plan"], found["shape"]
    results = len(plan.results)
    fits = {"dict": len(shape["keys"]) == results, "array": results == 1}
    if not fits.get(shape["kind"], not shape["keys"]):
        raise Wrong(f"is {shown(repr(shape), 80)}, which {results} results do not fit", "shape")
    try:
        return plan, shape, read_program(found["program"], plan)
    except Wrong as wrong:
        raise wrong.inside("program") from None


def _shape(data: Any) -> dict[str, Any]:
    return record(data, kind=text, keys=_names)


# values of the plan ------------------------------------------------------------------

COUNT = number(0)
ORDER: Read[tuple[int | None, ...]] = items(maybe(number(0)))
AXES: Read[Axes] = items(maybe(text))


def _names(data: Any) -> tuple[str, ...]:
    """Names, no two the same."""
    found = items(text)(data)
    if len({*found}) != len(found):
        raise expected("names that differ", data)
    return found


def _plan_to_json(plan: Plan, classes: Classes) -> dict[str, Any]:
    steps = [
        {"file": _file_to_json(step)}
        if isinstance(step, File)
        else {"call": _call_to_json(step, classes)}
        for step in plan.steps
    ]
    return {
        "name": plan.name, "dtype": plan.dtype, "target": plan.target,
        "inputs": [[name, axes] for name, axes in plan.inputs.items()],
        "sizes": dict(plan.sizes), "steps": steps, "names": plan.names,
        "results": [*map(_seen_to_json, plan.results)],
        "dtypes": dict(plan.dtypes), "arithmetic": plan.arithmetic, "notes": plan.notes,
        "rules": [*map(rule_to_json, plan.rules)], "input_dtypes": dict(plan.input_dtypes),
        "rounded": plan.rounded,
    }  # fmt: skip


def _plan(data: Any, classes: Classes) -> Plan:
    dtypes = (*DTYPES, "float64")
    found = record(
        data, name=text, dtype=one_of(dtypes), target=one_of((CPU, *TARGETS)),
        inputs=items(lambda given: row(given, text, AXES)), sizes=mapping(COUNT),
        steps=items(lambda step: _step(step, classes)), names=_names, results=items(_seen),
        dtypes=mapping(one_of((*dtypes, *OWN))), arithmetic=one_of(("float32", "float64")),
        notes=items(text), rules=items(read_rule),
        input_dtypes=mapping(one_of((FLOAT8, *dtypes, *OWN))), rounded=_names,
    )  # fmt: skip
    _names([name for name, _ in found["inputs"]])
    plan = Plan(**{**found, "inputs": dict(found["inputs"])})
    _check_arrays(plan)
    return plan


def _check_arrays(plan: Plan) -> None:
    """Raise Wrong unless each array is written before it is read, with axes that have sizes."""
    if len(plan.names) != len(plan.results):
        raise Wrong("has names and results of different numbers")
    written = [name for step in plan.steps for name in step.writes]
    if {*plan.dtypes} != {*written}:
        raise Wrong("has dtypes of other arrays than those that are written", ".dtypes")
    if not {*plan.input_dtypes} <= {*plan.inputs}:
        raise Wrong("has dtypes of inputs that it does not have", ".input_dtypes")
    known = dict(plan.inputs)
    for number_of_step, step in enumerate(plan.steps):
        place = f".steps[{number_of_step}]"
        seen = step.operands if isinstance(step, Call) else ()
        _check_seen(seen, known, place)
        if isinstance(step, File):
            if step.launches is None and plan.target != CPU:
                raise Wrong("lacks what its launcher does", f"{place}.launches")
            _check_known(step.reads, known, place)
            sized = (*step.dims, *step.blocks, *step.named.values())
            _check_known(sized, _with_classes(plan.sizes), place)
        if len(step.writes) != len(step.axes) or {*step.writes} & {*known}:
            raise Wrong("writes an array twice, or has axes for other arrays", place)
        known.update(zip(step.writes, step.axes, strict=True))
    _check_seen(plan.results, known, ".results")
    dims = [dim for axes in known.values() for dim in axes if dim is not None]
    _check_known(dims, _with_classes(plan.sizes), ".sizes")


def _with_classes(sizes: Mapping[str, int]) -> Callable[[str], bool]:
    return lambda dim: size_class(dim) in sizes


def _check_seen(several: Iterable[Seen], known: Mapping[str, Axes], place: str) -> None:
    for seen in several:
        _check_known((seen.array,), known, place)
        axes = [axis for axis in seen.order if axis is not None]
        if len({*axes}) != len(axes) or max(axes, default=-1) >= len(known[seen.array]):
            raise Wrong(f"orders axes that {shown(seen.array, 80)} does not have", place)


def _check_known(
    names: Iterable[str], known: Mapping[str, Any] | Callable[[str], bool], place: str
) -> None:
    is_known = known if callable(known) else known.__contains__
    for name in names:
        if not is_known(name):
            raise Wrong(f"reads {shown(repr(name), 80)}, which is not known there", place)


def _seen_to_json(seen: Seen) -> list[Any]:
    return [seen.array, seen.order]


def _seen(data: Any) -> Seen:
    return Seen(*row(data, text, ORDER))


def _step(data: Any, classes: Classes) -> File | Call:
    if isinstance(data, dict) and "call" in data:
        call: Call = record(data, call=partial(_call, classes=classes))["call"]
        return call
    file: File = record(data, file=_file)["file"]
    return file


FILE: dict[str, Read[Any]] = {
    "text": text, "reads": _names, "writes": _names, "axes": items(AXES),
    "dims": _names, "blocks": mapping(number(1)), "kernels": number(0),
    "launches": maybe(read_launches), "named": mapping(text),
}  # fmt: skip


def _file_to_json(file: File) -> dict[str, Any]:
    return {name: getattr(file, name) for name in FILE}


def _file(data: Any) -> File:
    return File(**record(data, **FILE))


def _call_to_json(call: Call, classes: Classes) -> dict[str, Any]:
    return {
        "name": call.name, "fn": function_to_json(call.fn, call.name, classes),
        "operands": [*map(_seen_to_json, call.operands)],
        "writes": call.writes, "axes": call.axes, "where": call.where,
    }  # fmt: skip


def _call(data: Any, classes: Classes) -> Call:
    fn = partial(read_function, classes=classes)
    found = record(
        data, name=text, fn=fn, operands=items(_seen), writes=_names, axes=items(AXES), where=text
    )
    return Call(**found)
