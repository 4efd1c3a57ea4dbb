"""Nests that compute of constants alone: their results are kept from call to call.

The user declares which inputs are constant: weights, for example. A nest is *kept* if it loads
something, all that it loads is constant or stored by kept nests alone, and all that it stores are
workspaces. Kept nests run before all others, once for the same constants; the results of a program
are made by the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from blockbuster.emit.tile.dataflow import loaded, stored
from blockbuster.emit.tile.program import INPUT, WORKSPACE, Buffer, Nest, TileProgram
from blockbuster.errors import message


def kept_nests(program: TileProgram) -> tuple[int, ...]:
    """The positions of the nests that are kept, in order."""
    if not program.constants:
        return ()
    kept = {at: None for at, nest in enumerate(program.nests) if not runs_in_any_case(nest)}
    while True:
        others = (nest for at, nest in enumerate(program.nests) if at not in kept)
        changing = {buffer: None for nest in others for buffer in stored(nest.body)}
        left = {at: None for at in kept if not varies(program, program.nests[at], changing)}
        if left == kept:
            return tuple(kept)
        kept = left


def runs_in_any_case(nest: Nest) -> str:
    """Why a nest runs in each call whatever is constant, or "": it stores what the caller gets, or
    loads nothing that could be told to be the same again.
    """
    if not loaded(nest.body):
        return "it loads nothing"
    found = (buffer.name for buffer in stored(nest.body) if buffer.space != WORKSPACE)
    return next((f"{name} is a result" for name in found), "")


def varies(program: TileProgram, nest: Nest, changing: dict[Buffer, None]) -> str:
    """Why what a nest stores differs from call to call, or "". ``changing``: the arrays that nests
    store which run in each call.
    """
    for buffer in (*loaded(nest.body), *stored(nest.body)):
        if buffer.space == INPUT and buffer.name not in program.constants:
            return f"{buffer.name} is not constant"
        if buffer in changing:
            return f"{buffer.name} is stored in each call"
    return ""


def running_nests(program: TileProgram) -> tuple[Nest, ...]:
    """The nests that run in each call, in order."""
    kept = kept_nests(program)
    return tuple(nest for at, nest in enumerate(program.nests) if at not in kept)


def kept_first(program: TileProgram) -> tuple[Nest, ...]:
    """All nests in the order in which they run when nothing is kept yet."""
    kept = kept_nests(program)
    return (*(program.nests[at] for at in kept), *running_nests(program)) if kept else program.nests


def kept_arrays(program: TileProgram) -> tuple[Buffer, ...]:
    """The workspaces that kept nests store and others load, in the order of the workspaces."""
    kept = kept_nests(program)
    made = {b for at in kept for b in stored(program.nests[at].body)}
    read = {b for nest in running_nests(program) for b in loaded(nest.body)}
    return tuple(buffer for buffer in program.workspaces if buffer in made & read)


def constants_are_inputs(program: TileProgram) -> Iterator[str]:
    """What is constant is an input, named once."""
    known = [buffer.name for buffer in program.inputs]
    for at, name in enumerate(program.constants):
        if name not in known:
            yield f"{name} is constant and no input"
        if name in program.constants[:at]:
            yield f"{name} is said to be constant twice"


CHECKS = (constants_are_inputs,)

# names that a user gives -----------------------------------------------------------------


def names_given(names: object) -> tuple[str, ...]:
    """The names of constants. Raises TypeError for anything but a sequence of strings."""
    if isinstance(names, str):
        hint = f"give a tuple of names: constant=({names!r},)"
        raise TypeError(message("constant is one string, expected several names", hint=hint))
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"constant is {names!r}, expected a sequence of names of arrays")
    return tuple(dict.fromkeys(names))


def known_names(names: object, arrays: Sequence[str]) -> tuple[str, ...]:
    """The same, of arrays that there are. Raises ValueError for others."""
    found = names_given(names)
    unknown = [name for name in found if name not in arrays]
    if unknown:
        what = f"unknown array {unknown[0]!r} in constant"
        raise ValueError(message(what, hint=f"known: {', '.join(arrays)}"))
    return found
