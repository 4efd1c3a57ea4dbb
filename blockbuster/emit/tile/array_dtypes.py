"""The dtypes of a kernel's arrays: one policy for inputs and outputs.

- An input keeps its given dtype, and inputs of masks or integers have dtypes of their own. Inputs
  without a dtype have the common dtype of the others.
- The *common* dtype is that of all inputs of floats if they agree, else float32. Inputs of float8
  do not count beside others; alone they give float16. A kernel that is a piece of a program has the
  program's. Dots take operands of this dtype.
- Arithmetic is float32.
- An output has the dtype in which the floats meet that it is computed of (value_dtypes.py); a cast
  has its own. Truth values are bool.

Kernels have no float64; the NumPy path computes in float64. ``typed.py`` derives the dtypes of
tiles and workspaces from this.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from blockbuster.emit.tile.dtypes import DTYPES, dtype_of
from blockbuster.emit.tile.program import TileProgram
from blockbuster.emit.tile.result_dtypes import FLOAT
from blockbuster.emit.tile.typed import typed
from blockbuster.emit.tile.value_dtypes import output_dtypes
from blockbuster.errors import among, message
from blockbuster.ir.dtypes import FLOAT8, INTEGERS, OWN, TRUTH, deciding, own_dtypes
from blockbuster.ir.graph import Graph


@dataclass(frozen=True)
class Given:
    """The given dtypes of a kernel: ``arrays`` by name, ``results`` of outputs in order.

    ``common`` is empty if the inputs decide. ``arithmetic`` is that of NumPy text; a GPU's kernels
    compute in float32. ``constants``: names of inputs that stay as they are from call to call.
    """

    arrays: Mapping[str, str] = field(default_factory=dict)
    common: str = ""
    results: tuple[str, ...] = ()
    arithmetic: str = FLOAT
    constants: tuple[str, ...] = ()


def given_by(dtype: str | Mapping[str, str] | Given) -> Given:
    """``dtype``: one for all inputs, or those of some inputs and outputs by name."""
    if isinstance(dtype, Given):
        return dtype
    return Given(common=dtype) if isinstance(dtype, str) else Given(arrays=dict(dtype))


def typed_for_gpu(graph: Graph, program: TileProgram, given: Given) -> TileProgram:
    """``program`` with the dtypes that a kernel has on a GPU.

    ``graph`` is the block program, before the safety pass, that became ``program``. Raises
    ValueError for names of arrays or dtypes that are not known, EmitError for casts to float64.
    """
    known = [b.name for b in (*program.inputs, *program.outputs)]
    for name in given.arrays:
        if name not in known:
            raise ValueError(
                message(f"unknown array {name!r} in dtype", hint=among(name, known))
            )
    own = own_dtypes(graph)
    common = _common(program, given, own)
    arrays = {b.name: _given_dtype(b.name, given, own, common) for b in program.inputs}
    results = given.results or tuple(output_dtypes(graph, common, arrays).values())
    for buffer, ruled in zip(program.outputs, results, strict=True):
        declared = ruled if ruled in (*DTYPES, *OWN) else common
        asked = given.arrays.get(buffer.name, declared)
        arrays[buffer.name] = ruled if ruled in OWN else dtype_of(asked).name
    constants = tuple(b.name for b in program.inputs if b.name in given.constants)
    return typed(replace(program, constants=constants), arrays, common)


def typed_for_cpu(program: TileProgram, arithmetic: str, graph: Graph | None = None) -> TileProgram:
    """``program`` with the dtypes that it has as NumPy text: all floats are in the arithmetic's.

    Inputs are converted before it runs, outputs behind it (run_plan.py). Truth values are numbers
    there; integers keep their dtype. ``graph`` is the block program; without one, all are floats.
    """
    known = {**own_dtypes(graph), **output_dtypes(graph, arithmetic)} if graph else {}
    arrays = {
        buffer.name: known[buffer.name] if known.get(buffer.name) in INTEGERS else arithmetic
        for buffer in (*program.inputs, *program.outputs)
    }
    return typed(program, arrays, arithmetic)


def _given_dtype(name: str, given: Given, own: Mapping[str, str], common: str) -> str:
    """The dtype of an input. Raises ValueError for floats where it holds none, and the reverse."""
    asked, kind = given.arrays.get(name, own.get(name, common)), own.get(name, "")
    if not kind:
        return FLOAT8 if asked == FLOAT8 else dtype_of(asked).name
    if (kind == TRUTH) != (asked == TRUTH) or asked not in OWN:
        held = "truth values" if kind == TRUTH else "integers"
        known = TRUTH if kind == TRUTH else ", ".join(INTEGERS)
        raise ValueError(message(f"{name} holds {held}, not {asked}", hint=f"known: {known}"))
    return asked


def _common(program: TileProgram, given: Given, own: Mapping[str, str]) -> str:
    if given.common:
        return dtype_of(given.common).name
    named = {name: dtype for name, dtype in given.arrays.items() if name not in own}
    names = deciding(named[b.name] for b in program.inputs if b.name in named)
    kinds = [dtype_of(name).name for name in names]
    return kinds[0] if len(kinds) == 1 else FLOAT
