"""A program with a library's calls in place of products and attention that it computes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from blockbuster.frontend.kinds import FLOAT, MOVES
from blockbuster.frontend.library_calls import (
    LibraryConvolution,
    LibraryProduct,
    LibraryScaled,
)
from blockbuster.frontend.program import ArrayProgram
from blockbuster.ir.graph import Value
from blockbuster.machines.library import FLOAT8, HALVES, WIDE
from blockbuster.selection.library.attention import matched_attention
from blockbuster.selection.library.convolutions import matched_convolution
from blockbuster.selection.library.extents import Extents
from blockbuster.selection.library.match import Match, only_reader, shows, with_calls
from blockbuster.selection.library.products import matched_product
from blockbuster.selection.library.scaled import matched_scaled
from blockbuster.selection.parts.operand_views import PRODUCT

Matcher = Callable[[ArrayProgram, Extents, int], Match | None]
LAYERS: tuple[Matcher, ...] = (matched_scaled, matched_product, matched_convolution)
ALL: tuple[Matcher, ...] = (matched_attention, *LAYERS)
"""What a library computes; attention first, of which the first product may be one, too."""


def library_program(
    program: ArrayProgram,
    given: Callable[[str], str],
    kept: Callable[[str], str],
    stored: Collection[Value],
    matchers: Sequence[Matcher] = ALL,
    may_call: Callable[[str], bool] = lambda _: True,
) -> ArrayProgram | None:
    """``program`` with calls of a library; None if it has nothing that a library computes.

    ``given``: the dtypes of its inputs by name; ``kept``: those in which its outputs are;
    ``stored``: the values that eager execution rounds to their dtype. A call reads arrays of dtypes
    for which its time is known. If it rounds what it gives, it stands only where eager execution
    rounds, too, and is no output that is kept wider. ``may_call``: of its name.
    """
    matches, extents = [], Extents(program)
    for at, one in enumerate(program.equations):
        if one.op not in (PRODUCT, "mul") or one.kind != FLOAT:
            continue
        for matched in matchers:
            match = matched(program, extents, at)
            stands = match is not None and _stands(program, match, at, given, kept, stored)
            if match is not None and stands and may_call(str(match.fn)):
                matches.append(match)
                break
    return with_calls(program, matches) if matches else None


def _stands(
    program: ArrayProgram,
    match: Match,
    at: int,
    given: Callable[[str], str],
    kept: Callable[[str], str],
    stored: Collection[Value],
) -> bool:
    """True if a library computes a match of equation ``at`` in the dtypes that the program has."""
    operands = [given(program.inputs[port].name) for port in match.ports]
    is_scaled = isinstance(match.fn, LibraryScaled)
    made = match.fn.dtype if isinstance(match.fn, LibraryScaled) else operands[0]
    shown = (one for one in program.outputs if shows(program, one.value, Value(match.at)))
    if 1 in match.shape or any(kept(one.name) != made for one in shown):
        return False
    if is_scaled:
        return operands == [FLOAT8, FLOAT8, WIDE, WIDE, *[made] * (len(operands) - 4)]
    if {*operands} != {made}:
        return False
    if made == WIDE:  # nothing is rounded; convolutions may be, to tf32
        return not isinstance(match.fn, LibraryConvolution)
    rounded = {Value(at)} if isinstance(match.fn, LibraryProduct) else set()
    rounded.update(_with_row(program, match.at))
    return made in HALVES and not rounded.isdisjoint(stored)


def _with_row(program: ArrayProgram, at: int) -> Iterator[Value]:
    """The result of equation ``at``, its views as far as each is read alone, and what an addition
    makes of it: a library rounds a product before it adds a bias.
    """
    yield Value(at)
    reader = only_reader(program, at)
    while reader is not None and program.equations[reader].op in (*MOVES, "add"):
        yield Value(reader)
        if program.equations[reader].op == "add":
            return
        reader = only_reader(program, reader)
