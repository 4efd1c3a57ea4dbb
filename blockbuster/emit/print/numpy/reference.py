"""The reference of emitted kernels: their program as a NumPy function of whole arrays.

With every dim one block only the loops over list-only dims are left.
"""

from __future__ import annotations

from blockbuster.emit.print.numpy.text import Text
from blockbuster.emit.schedule.drop_unit_loops import drop_unit_loops
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.program import TileProgram
from blockbuster.emit.tile.trips import dims_of
from blockbuster.ir.graph import Graph
from blockbuster.ir.types import size_class


def reference_text(program: Graph | TileProgram, name: str = "reference") -> str:
    """A module's source with a plain function of whole arrays, one argument per source.

    Returns one array, or a tuple of several. Dims that show in no argument are keyword arguments.
    """
    tiles = lower_to_tiles(program) if isinstance(program, Graph) else program
    dims = (dim for dim in dims_of(tiles) if size_class(dim) not in tiles.units)
    tiles = drop_unit_loops(tiles, tuple(dims))
    printer = Text(tiles, padded=False, terse=True)
    shapes, missing = printer.shapes()
    arguments = [printer.names[b] for b in tiles.inputs]
    options = "".join(f", {size}" for size in missing)
    results = ", ".join(printer.names[b] for b in tiles.outputs)
    body = [
        "@np.errstate(all='ignore')",
        f"def {name}({', '.join(arguments)}, *{options}, dtype=np.float64):",
        f'    """{results} for whole arrays {", ".join(arguments)}."""',
        *(f"    {a} = np.asarray({a}, dtype)" for a in arguments),
        *shapes,
        *(printer.allocation(b, "np.empty") for b in (*tiles.outputs, *tiles.workspaces)),
        *printer.body(),
        f"    return {results}",
    ]
    return printer.module(body)
