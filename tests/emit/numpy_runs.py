"""Runs a tile program on the CPU through its NumPy text: poisoned arrays, shuffled iterations.

Or, on tiles with all lanes of their blocks, in the interpreter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockbuster.emit.closing.wide_sums import wide_sums
from blockbuster.emit.interpret.interpreter import run_tiles
from blockbuster.emit.print.numpy.text import numpy_text
from blockbuster.emit.target.load import load_module
from blockbuster.emit.tile.array_dtypes import typed_for_cpu
from blockbuster.emit.tile.program import TileProgram
from blockbuster.emit.tile.trips import bound_blocks, bound_sizes
from blockbuster.interp.semantics import Floats
from blockbuster.ir.dtypes import INTEGERS
from blockbuster.ir.types import Dim

Array = NDArray[Any]
Order = Callable[[range], Iterable[int]]


def run_numpy(
    program: TileProgram,
    inputs: Mapping[str, Array],
    sizes: Mapping[Dim, int] | None = None,
    block_sizes: Mapping[Dim, int] | None = None,
    *,
    dtype: Any = np.float64,
    seed: int | None = None,
    padded: bool = False,
    folder: Path | None = None,
) -> dict[str, Array]:
    """Outputs by name. With a ``seed``, iterations of parallel loops run in a random order.

    Outputs and workspaces start as NaN, so an element that nothing wrote shows. ``block_sizes``
    default to the whole dim (1 for list-only dims). In float32, a program without dtypes is given
    those that it would have on the CPU. ``padded``: by the interpreter, as on a GPU's lanes.
    """
    kind = np.dtype(dtype).type
    if padded:
        lanes = Floats(np.dtype(dtype).name, np.dtype(dtype).name)
        return run_tiles(
            program, inputs, sizes, block_sizes, semantics=lanes, seed=seed, padded=True
        )
    arrays = {
        b.name: np.asarray(inputs[b.name], b.dtype if b.dtype in INTEGERS else kind)
        for b in program.inputs
    }
    shapes = {name: array.shape for name, array in arrays.items()}
    bound = bound_sizes(program, shapes, sizes)
    if kind is np.float32 and not program.dtype:
        program = wide_sums(typed_for_cpu(program, "float32"))
    module = load_module(numpy_text(program), folder)
    results: dict[str, Array] = module.run(
        arrays,
        bound,
        bound_blocks(program, bound, block_sizes),
        dtype=kind,
        order=list if seed is None else shuffled(seed),
        empty=poisoned,
    )
    return results


def poisoned(shape: tuple[int, ...], dtype: Any) -> Array:
    """An array that nobody has written yet: full of NaN, or of the least integer."""
    whole = np.dtype(dtype).kind in "iu"
    return np.full(shape, np.iinfo(dtype).min if whole else np.nan, dtype)


def shuffled(seed: int) -> Order:
    """An order for parallel iterations that differs from loop to loop, the same for a seed."""
    generator = np.random.default_rng(seed)
    return lambda steps: [steps[at] for at in generator.permutation(len(steps))]
