"""Masks that a function holds, and that empty blocks of scores, or of what they multiply."""

from __future__ import annotations

from collections.abc import Iterator

from blockbuster.frontend.program import ArrayProgram
from blockbuster.ir.graph import Value


def emptied(program: ArrayProgram, least: float) -> tuple[str, ...]:
    """The masks of which at least such a part of the blocks holds one value, which empties them."""
    return tuple(
        entry.name
        for port, entry in enumerate(program.inputs)
        if any(entry.one_value)
        and all(entry.one_value[dead] >= least for dead in _dead(program, Value(-1, port)))
    )


def _dead(program: ArrayProgram, mask: Value) -> Iterator[bool]:
    """The truth value under which each reader of ``mask`` is a number, whatever else it reads.

    Where a number is chosen, as -inf is for masked scores, that is the one that chooses it; in a
    product it is False.
    """
    for at, equation in enumerate(program.equations):
        if mask not in equation.operands:
            continue
        if equation.kind == "mask":
            found = _dead(program, Value(at))
            yield from (not dead for dead in found) if equation.op == "not" else found
        elif equation.op == "where" and mask == equation.operands[0]:
            chosen, other = (isinstance(x, Value) for x in equation.operands[1:])
            yield other and not chosen
        else:
            yield False
