"""The dtypes of the arrays that a plan's steps write and eager execution stores, and of copies."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from blockbuster.emit.tile.value_dtypes import output_dtypes, result_dtype
from blockbuster.frontend import ArrayProgram
from blockbuster.frontend.dtype_names import held_in
from blockbuster.frontend.kinds import MOVES
from blockbuster.ir.dtypes import INTEGERS, OWN, met
from blockbuster.ir.graph import Input, Read, Value
from blockbuster.machines.library import HALVES
from blockbuster.selection.parts.operand_views import PRODUCT
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
            met_in = met(operands) if step.only_moves else result_dtype(operands, common)
            made = dict.fromkeys(step.writes, step.dtype or met_in)
        known |= made
        written |= made
    return written


def with_integers(pieces: Pieces, dtypes: Mapping[str, str]) -> Pieces:
    """``pieces`` whose graphs say which of the arrays between them hold integers."""

    def told(given: Input) -> Input:
        if not isinstance(given.view, Read) or dtypes.get(given.view.source) not in INTEGERS:
            return given
        return replace(given, view=replace(given.view, dtype=dtypes[given.view.source]))

    def changed(step: Piece | Call | Whole) -> Piece | Call | Whole:
        if not isinstance(step, Piece) or not any(d in INTEGERS for d in dtypes.values()):
            return step
        return replace(step, graph=replace(step.graph, inputs=tuple(map(told, step.graph.inputs))))

    return replace(pieces, steps=tuple(map(changed, pieces.steps)))


def kept_dtypes(
    steps: Sequence[File | Piece | Call | Whole],
    dtypes: Mapping[str, str],
    *,
    common: str,
    arithmetic: str,
    own: Mapping[str, str],
    rounded: Collection[str] = (),
) -> dict[str, str]:
    """The dtypes in which the arrays of ``dtypes`` are kept until the last step has run.

    An array that a file or piece reads is kept as it was computed, and so is one that is copied, so
    that numbers do not depend on where a program is cut or copied: only a user's functions of whole
    arrays, and the user, see it rounded. ``rounded``: values at cuts that eager execution would
    round, too. A library rounds what it computes.
    """
    computed = {
        name
        for step in steps
        if not isinstance(step, Call) or step.only_moves
        for name in step.reads
    }
    kept: dict[str, str] = {}
    for step in steps:
        for name in step.writes:
            if isinstance(step, Call) and step.only_moves:
                kept[name] = met({**own, **kept}.get(s.array, common) for s in step.operands)
            else:
                as_made = isinstance(step, Call) and step.is_library
                wide = name in computed and dtypes[name] not in OWN and name not in rounded
                wide = wide and not as_made
                kept[name] = arithmetic if wide else dtypes[name]
    return kept


def taken_by_products(program: ArrayProgram, own: Mapping[str, str], common: str) -> str:
    """The dtype in which kernels of a program take the operands of their products.

    Where eager execution holds all operands of products in one dtype of 16 bits, it is that, even
    if ``common``, the dtype in which the inputs meet, is wider: a table of float32 beside halves,
    of which the user rounds the sums before they are multiplied. ``own``: as above.
    """
    products = [one.operands for one in program.equations if one.op == PRODUCT]
    if not products:
        return common
    held = held_in(program, own, common)
    taken = {held[o] for operands in products for o in operands if isinstance(o, Value)}
    (only,) = taken if len(taken) == 1 else (common,)
    return only if only in HALVES else common


def stored_by_eager(program: ArrayProgram) -> dict[Value, None]:
    """The values that eager execution stores in their dtype: what functions of libraries take
    and return, what the user's function holds from one line to another, and its own results.

    A function of a library may be several operators here, and what it computes inside it holds in
    float32: so does what meets in one line of the user's. What only moves elements holds them as
    they were: an array has the dtype of its views if nothing else reads it, and of a product of
    which only views are read, a view is taken because it is an array. What products alone read
    they round anyway.
    """
    found = dict.fromkeys(output.value for output in program.outputs if output.value.node >= 0)
    views: dict[Value, list[Value]] = {}
    computed = dict.fromkeys(found)
    for at, equation in enumerate(program.equations):
        if equation.is_stored:
            found[Value(at)] = None
        for operand in equation.operands:
            if not isinstance(operand, Value) or operand.node < 0:
                continue
            made = program.equations[operand.node]
            if made.where is not None and made.where != equation.where:
                found[operand] = None
            if equation.op in MOVES:
                views.setdefault(operand, []).append(Value(at))
            else:
                computed[operand] = None
    for value, shown in reversed(views.items()):
        if value not in computed and (_ends_product(program, value) or {*shown} <= {*found}):
            found[value] = None
    found |= dict.fromkeys(_only_multiplied(program))
    for at, equation in enumerate(program.equations):
        moved = [o for o in equation.operands if equation.op in MOVES and isinstance(o, Value)]
        if any(value.node < 0 or value in found for value in moved):
            found[Value(at)] = None
    return found


def _only_multiplied(program: ArrayProgram) -> list[Value]:
    """The values that nothing but products reads, through views or not."""
    multiplied: dict[Value, bool] = {}
    for at, equation in reversed([*enumerate(program.equations)]):
        if equation.op in MOVES:
            only = multiplied.get(Value(at), False)
        else:
            only = equation.op == PRODUCT
        for operand in equation.operands:
            if isinstance(operand, Value):
                multiplied[operand] = only and multiplied.get(operand, True)
    shown = [output.value for output in program.outputs]
    return [one for one, only in multiplied.items() if only and one.node >= 0 and one not in shown]


def _ends_product(program: ArrayProgram, value: Value) -> bool:
    """True for a product, and for what one becomes by an addition."""
    made = program.equations[value.node]
    if made.op != "add":
        return made.op == PRODUCT
    added = [o.node for o in made.operands if isinstance(o, Value) and o.node >= 0]
    return any(program.equations[node].op == PRODUCT for node in added)
