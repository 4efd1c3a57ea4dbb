"""How windows lie on an axis: whether a library cuts the same ones with as many zeros behind."""

from __future__ import annotations

from blockbuster.frontend.program import ArrayProgram, Axis, Equation
from blockbuster.ir.graph import Value
from blockbuster.ir.lengths import Length, size, whole
from blockbuster.selection.priors import PRIORS


def is_even(program: ArrayProgram, windows: Equation) -> bool:
    """True if, at all sizes, windows are all that fit into an axis with ``before`` zeros in front
    of it and as many behind.

    What is left behind the last one is then less than a step.
    """
    (operand,) = (o for o in windows.operands if isinstance(o, Value))
    axis = windows.param("axis")
    lengths = (program.shape_of(operand)[axis], windows.shape[axis], windows.shape[-1])
    given, count, taps = (_in_inputs(program, one) for one in lengths)
    step: int = windows.param("step")
    before = windows.param("before")
    one = whole(1)
    reach = whole(windows.param("dilation")) * (taps - one) + one
    left = given + whole(2 * before) - whole(step) * (count - one) - reach
    if left.constant is not None:
        return 0 <= left.constant < step
    if len(left.dims) != 1:
        return False
    rows = (range(begin, begin + PRIORS.window_steps * step) for begin in PRIORS.window_extents)
    try:
        return all(0 <= left.value({left.dims[0]: extent}) < step for row in rows for extent in row)
    except ValueError:  # an axis that is a share of another one: not all extents are possible
        return False


def _in_inputs(program: ArrayProgram, axis: Axis) -> Length:
    """The extent of an axis in terms of sizes that follow from no others."""
    rules = {rule.dim: rule.length for rule in program.definitions}
    fixed = {dim: whole(extent) for dim, extent in program.fixed_sizes}

    def of(dim: str) -> Length:
        return fixed.get(dim) or (rules[dim].replaced(of) if dim in rules else size(dim))

    return of(axis) if isinstance(axis, str) else whole(axis)
