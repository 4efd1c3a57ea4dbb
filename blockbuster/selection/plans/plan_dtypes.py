"""The dtypes of the arrays that a plan's steps write, and of the copies kept between steps."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from blockbuster.emit.tile.value_dtypes import output_dtypes, result_dtype
from blockbuster.ir.dtypes import OWN, met
from blockbuster.selection.plans.pieces import Call, Piece, Pieces, Whole

if TYPE_CHECKING:
    from blockbuster.selection.plans.plan import File


def written_dtypes(pieces: Pieces, common: str, own: Mapping[str, str]) -> dict[str, str]:
    """The dtypes of all arrays that pieces and calls write: see ``value_dtypes.py``.

    ``own`` are those of the inputs whose dtype is not the common one.
    """
    known = dict(own)
    written: dict[str, str] = {}
    for step in pieces.steps:
        if isinstance(step, Whole):
            continue
        if isinstance(step, Piece):
            found = output_dtypes(step.graph, common, known).values()
            made = dict(zip(step.writes, found, strict=True))
        else:
            operands = [known.get(seen.array, common) for seen in step.operands]
            found_dtype = met(operands) if step.only_moves else result_dtype(operands, common)
            made = dict.fromkeys(step.writes, found_dtype)
        known |= made
        written |= made
    return written


def kept_dtypes(
    steps: Sequence[tuple[File | Piece | Call | Whole, tuple[str, ...]]],
    dtypes: Mapping[str, str],
    *,
    common: str,
    arithmetic: str,
    own: Mapping[str, str],
    rounded: Collection[str] = (),
) -> dict[str, str]:
    """The dtypes in which the arrays of ``dtypes`` are kept until the last step has run.

    ``steps`` come with the arrays that a file or piece reads. Such an array is kept as it was
    computed, and so is one that is copied, so that numbers do not depend on where a program is cut
    or copied: only a user's functions of whole arrays, and the user, see it rounded. ``rounded``:
    values at cuts that eager execution would round, too. A library rounds what it computes.
    """
    moves = [step for step, _ in steps if isinstance(step, Call) and step.only_moves]
    computed = {name for _, reads in steps for name in reads}
    computed.update(seen.array for call in moves for seen in call.operands)
    kept: dict[str, str] = {}
    for step, _ in steps:
        for name in step.writes:
            if isinstance(step, Call) and step.only_moves:
                kept[name] = met({**own, **kept}.get(s.array, common) for s in step.operands)
            else:
                as_made = isinstance(step, Call) and step.is_library
                wide = name in computed and dtypes[name] not in OWN and name not in rounded
                wide = wide and not as_made
                kept[name] = arithmetic if wide else dtypes[name]
    return kept
