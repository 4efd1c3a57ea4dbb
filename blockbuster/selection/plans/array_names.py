"""The names of a program's values as arrays, which go from part to part, and of its outputs."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from blockbuster.frontend import ArrayProgram
from blockbuster.ir.graph import Value


def names_of(program: ArrayProgram) -> dict[Value, str]:
    """The names of all values as arrays, each once: an output's own where no input has it."""
    inputs = [one.name for one in program.inputs]
    found = {Value(-1, port): name for port, name in enumerate(inputs)}
    for output in program.outputs:
        if output.value.node >= 0 and output.name not in inputs:
            found.setdefault(output.value, output.name)
    taken = {*found.values(), *(output.name for output in program.outputs)}
    for value, word in program.names().items():
        if value not in found:
            found[value] = _fresh(word, taken)
            taken.add(found[value])
    return found


def arrays_of(program: ArrayProgram, names: Mapping[Value, str]) -> dict[str, str]:
    """The name of each output's array, by the output's name."""
    taken = {*names.values()}
    found: dict[str, str] = {}
    for output in program.outputs:
        own = names.get(output.value) == output.name and output.value.node >= 0
        found[output.name] = output.name if own else _fresh(output.name, taken)
        taken.add(found[output.name])
    return found


def _fresh(word: str, taken: Collection[str]) -> str:
    while word in taken:
        word += "_"
    return word
