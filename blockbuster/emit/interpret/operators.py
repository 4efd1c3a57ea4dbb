"""The meaning of the operators of a tile program, on tiles that may be stacked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from blockbuster.emit.interpret.scope import Scope
from blockbuster.emit.tile.program import Let
from blockbuster.interp.accumulators import aligned
from blockbuster.interp.layout import Array
from blockbuster.interp.semantics import Semantics
from blockbuster.ir.ops import MONOID_OF, Cast, Functional, Pointwise, Relabel, Scan, Transpose
from blockbuster.ir.regroup import Regroup
from blockbuster.ir.types import Dim


def applied(stmt: Let, args: Sequence[Array], scope: Scope, semantics: Semantics) -> Array:
    """The result of an operator for the tiles ``args``, whose leading axes may be stacked."""
    match stmt.op:
        case Functional(name) if name in MONOID_OF:
            made = args[0]
            for _ in range(len(stmt.args[0].axes) - len(stmt.target.axes)):
                made = semantics.functional(name, [made])
            return made
        case Functional(name):
            return semantics.functional(name, args)
        case Scan() as scan:
            return semantics.scan_last(scan, args[0])[0]
        case Pointwise():
            return _pointwise(stmt, stmt.op, args, scope, semantics)
        case Cast(dtype):
            return semantics.cast(args[0], dtype)
        case Transpose():
            (tile,) = stmt.args
            return transposed(args[0], [tile.axes.index(dim) for dim in stmt.target.axes])
        case Relabel():
            return args[0]
        case Regroup():
            lead = args[0].shape[: args[0].ndim - len(stmt.args[0].axes)]
            return args[0].reshape(*lead, *scope.extents(stmt.target))
    raise AssertionError(stmt.op)


def _pointwise(
    stmt: Let, op: Pointwise, args: Sequence[Array], scope: Scope, semantics: Semantics
) -> Array:
    given = list(zip(args, stmt.args, strict=True))
    same = [aligned(array, tile.axes, op.axes) for array, tile in given]
    made = np.asarray(semantics.expression(op.expr, same, scope.size, scope.stack))
    shape: Mapping[Dim, int] = dict(zip(op.axes, scope.extents(stmt.target), strict=True))
    for array, tile in given:
        lead = array.ndim - len(tile.axes)
        shape = {**shape, **dict(zip(tile.axes, array.shape[lead:], strict=True))}
    if not args and made.ndim:  # a number for each iteration
        made = made.reshape(*made.shape, *(1,) * len(op.axes))
    stack = made.shape[: max(made.ndim - len(op.axes), 0)]
    whole = (*stack, *(shape[dim] for dim in op.axes))
    return made if made.shape == whole else np.broadcast_to(made, whole)


def transposed(array: Array, order: Sequence[int]) -> Array:
    """A tile, or stacked ones, with its axes in another order."""
    lead = array.ndim - len(order)
    return array.transpose(*range(lead), *(lead + axis for axis in order))
