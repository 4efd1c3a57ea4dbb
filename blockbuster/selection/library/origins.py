"""Where the axes of a view come from: which axis of which input each of them runs along."""

from __future__ import annotations

from dataclasses import dataclass

from blockbuster.frontend.program import ArrayProgram, Equation
from blockbuster.ir.graph import Value

WINDOW, TAP = "window", "tap"


@dataclass(frozen=True)
class Origin:
    """What an axis runs along: ``axis`` of the input, or the windows of that axis, or the taps of a
    window; ``windows`` is the equation that cut them.
    """

    axis: int
    role: str = ""
    windows: Equation | None = None

    @property
    def is_plain(self) -> bool:
        """True for an axis of the input as it is."""
        return not self.role and self != OWN


OWN = Origin(-1)
"""An axis of extent 1 of the view's own."""


@dataclass(frozen=True)
class Origins:
    """The input that a value shows, by its number, and where each of its axes comes from."""

    port: int
    axes: tuple[Origin, ...]

    @property
    def plain(self) -> tuple[int, ...] | None:
        """The input's axes in the order of the view, if it shows each of them once, no more."""
        axes = [one.axis for one in self.axes if one.is_plain]
        return tuple(axes) if len(axes) == len(self.axes) else None


def origins(program: ArrayProgram, value: Value) -> Origins | None:
    """Where the axes of ``value`` come from; None if it is more than views of one input that move,
    add or window axes.
    """
    if value.node < 0:
        rank = len(program.inputs[value.port].shape)
        return Origins(value.port, tuple(map(Origin, range(rank))))
    one = program.equations[value.node]
    if one.op not in ("transpose", "expand", "windows"):
        return None
    (operand,) = (o for o in one.operands if isinstance(o, Value))
    found = origins(program, operand)
    if found is None:
        return None
    if one.op != "windows":
        axes = tuple(OWN if at is None else found.axes[at] for at in one.param("axes"))
        return Origins(found.port, axes)
    at = one.param("axis")
    cut = found.axes[at]
    if not cut.is_plain:
        return None
    window, tap = (Origin(cut.axis, role, one) for role in (WINDOW, TAP))
    return Origins(found.port, (*found.axes[:at], window, *found.axes[at + 1 :], tap))
