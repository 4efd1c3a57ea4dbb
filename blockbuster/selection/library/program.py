"""A program with a library's calls in place of the products that the library computes."""

from __future__ import annotations

from collections.abc import Callable

from blockbuster.frontend.kinds import FLOAT
from blockbuster.frontend.program import ArrayProgram
from blockbuster.ir.graph import Value
from blockbuster.machines.library import HALVES
from blockbuster.selection.library.convolutions import matched_convolution
from blockbuster.selection.library.match import Match, shows, with_calls
from blockbuster.selection.library.products import matched_product


def library_program(
    program: ArrayProgram, given: Callable[[str], str], kept: Callable[[str], str]
) -> ArrayProgram | None:
    """``program`` with calls of a library; None if it has no product that a library computes.

    ``given``: the dtypes of its inputs by name; ``kept``: those in which its outputs are. A call
    reads arrays of one dtype for which its time is known, and rounds what it gives to that: it is
    no output that is kept wider.
    """
    matches = []
    for at, one in enumerate(program.equations):
        if one.op != "matmul" or one.kind != FLOAT:
            continue
        match = matched_product(program, at) or matched_convolution(program, at)
        if match is None or _has_units(program, match):
            continue
        dtypes = {given(program.inputs[port].name) for port in match.ports}
        shown = {kept(o.name) for o in program.outputs if shows(program, o.value, Value(match.at))}
        if len(dtypes) == 1 and dtypes <= {*HALVES} and shown <= dtypes:
            matches.append(match)
    return with_calls(program, matches) if matches else None


def _has_units(program: ArrayProgram, match: Match) -> bool:
    """True if a call would read or give axes of extent 1, which lowering takes away: a product of
    one row is no product of matrices, and kernels read it as fast as memory lets them.
    """
    return 1 in match.shape or any(1 in program.inputs[port].shape for port in match.ports)
