"""accurate-functions: where results are float32, scalar functions have the accuracy of float32.

before   nest: t2 = exp(t1) / t3          after   nest, div and exp accurate: t2 = exp(t1) / t3

A GPU's own division, square root and exp are approximations. Their error does not show in results
in float16 or bfloat16. Costs a few instructions per function.
"""

from __future__ import annotations

from blockbuster.emit.tile.dataflow import with_parts
from blockbuster.emit.tile.each_nest import Around, around_nests
from blockbuster.emit.tile.program import Nest, TileProgram
from blockbuster.emit.tile.tiling import tiling_in
from blockbuster.emit.tile.uses import matrix_dots

APPROXIMATED = ("div", "sqrt", "exp")


def accurate_functions(program: TileProgram) -> TileProgram:
    """``program`` whose nests say which functions are accurate."""
    around = around_nests(program)
    if not around.accurate:
        return program
    shown = (tuple(f for f in APPROXIMATED if not not_shown(f, n, around)) for n in program.nests)
    nests = zip(program.nests, shown, strict=True)
    return with_parts(program, nests=tuple(with_parts(nest, accurate=a) for nest, a in nests))


def not_shown(fn: str, nest: Nest, around: Around) -> str:
    """Why results of ``nest`` do not show how exact ``fn`` is, or "".

    Beside a dot the GPU's exp will do: it is off by as much as one more rounding of its argument,
    which has come through many, and a better one took 5 % of attention's time.
    """
    tiling = tiling_in(nest, around.units)
    if fn == "exp" and matrix_dots(nest.body, tiling):
        return "its argument has come through a dot, which rounds more"
    return ""
