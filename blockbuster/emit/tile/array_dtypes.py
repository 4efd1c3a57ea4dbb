"""The dtypes of a kernel's arrays: one rule, here and in ``value_dtypes.py``.

- An input has the dtype it was given; inputs without one have the common dtype of the others.
- The *common* dtype is that of all inputs where they agree, else float32. A kernel that is a piece
  of a program has the program's.
- Arithmetic is float32. A dot takes its operands in the common dtype and sums in float32.
- An output has the common dtype, unless the program ends in a cast: then it has that one.
- A cast anywhere else rounds the value and goes on in float32. Truth values are bool.

Kernels have no float64: the NumPy path computes in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from blockbuster.emit.tile.dtypes import DTYPES, Dtype, dtype_of
from blockbuster.emit.tile.program import TileProgram
from blockbuster.emit.tile.value_dtypes import output_dtypes
from blockbuster.errors import message
from blockbuster.ir.graph import Graph


@dataclass(frozen=True)
class ArrayDtypes:
    """``common``: what dots read, and most outputs have; ``of``: per input and output.

    ``accurate``: float32 is the common dtype or that of an output.
    """

    common: Dtype
    of: Mapping[str, Dtype]
    accurate: bool = False


@dataclass(frozen=True)
class Given:
    """What is known of a kernel's dtypes: ``arrays`` by name, ``results`` of outputs in order.

    ``common`` is empty where the inputs decide.
    """

    arrays: Mapping[str, str] = field(default_factory=dict)
    common: str = ""
    results: tuple[str, ...] = ()


def given_by(dtype: str | Mapping[str, str] | Given) -> Given:
    """``dtype``: one for all inputs, or those of some inputs and outputs by name."""
    if isinstance(dtype, Given):
        return dtype
    return Given(common=dtype) if isinstance(dtype, str) else Given(arrays=dict(dtype))


def array_dtypes(graph: Graph, program: TileProgram, given: Given) -> ArrayDtypes:
    """The dtypes of a kernel's arrays.

    ``graph`` is the block program, before the safety pass, that became ``program``. Raises
    ValueError for names of arrays or dtypes that are not known.
    """
    known = [b.name for b in (*program.inputs, *program.outputs)]
    for name in given.arrays:
        if name not in known:
            raise ValueError(
                message(f"unknown array {name!r} in dtype", hint=f"known: {', '.join(known)}")
            )
    common = _common(program, given)
    found = {b.name: dtype_of(given.arrays.get(b.name, common.name)) for b in program.inputs}
    results = given.results or tuple(output_dtypes(graph, common.name).values())
    for buffer, ruled in zip(program.outputs, results, strict=True):
        asked = given.arrays.get(buffer.name)
        found[buffer.name] = dtype_of(asked) if asked else DTYPES.get(ruled, common)
    wide = (common.name, *(found[b.name].name for b in program.outputs))
    return ArrayDtypes(common, found, "float32" in wide)


def _common(program: TileProgram, given: Given) -> Dtype:
    if given.common:
        return dtype_of(given.common)
    named = given.arrays
    names = dict.fromkeys(named[b.name] for b in program.inputs if b.name in named)
    kinds = [dtype_of(name) for name in names]
    return kinds[0] if len(kinds) == 1 else dtype_of("float32")
