"""accurate-functions: where results are float32, scalar functions have the accuracy of float32.

before   nest: t2 = exp(t1) / t3          after   nest, div and exp accurate: t2 = exp(t1) / t3

A GPU's own division, square root and exp are approximations. Their error does not show in results
in float16 or bfloat16. Costs a few instructions per function.
"""

from __future__ import annotations

from dataclasses import replace

from blockbuster.emit.tile.program import Nest, TileProgram, statements
from blockbuster.emit.tile.tiling import tiling_of
from blockbuster.emit.tile.typed import is_accurate
from blockbuster.emit.tile.uses import is_matrix_dot

APPROXIMATED = ("div", "sqrt", "exp")


def accurate_functions(program: TileProgram) -> TileProgram:
    """``program``, whose nests say which functions are accurate."""
    if not is_accurate(program):
        return program
    nests = (
        replace(
            nest,
            accurate=tuple(fn for fn in APPROXIMATED if not not_shown(fn, program, nest)),
        )
        for nest in program.nests
    )
    return replace(program, nests=tuple(nests))


def not_shown(fn: str, program: TileProgram, nest: Nest) -> str:
    """Why results of ``nest`` do not show how exact ``fn`` is, or "".

    Beside a dot the GPU's exp will do: it is off by as much as one more rounding of its argument,
    which has come through many, and a better one took 5 % of attention's time.
    """
    tiling = tiling_of(program, nest)
    if fn == "exp" and any(is_matrix_dot(stmt, tiling) for stmt in statements(nest.body)):
        return "its argument has come through a dot, which rounds more"
    return ""
