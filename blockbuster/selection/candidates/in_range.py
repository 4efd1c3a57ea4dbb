"""For small NumPy arrays: a program without the shifts that keep exp in range, if none is needed.

before   t2 = row_max(t1)            after   t1 is checked: all its numbers are small
         t3 = sub0(t1, t2)                   t4 = exp(t1)
         t4 = exp(t3)                        t5 = row_sum(t4)
         t5 = row_sum(t4)
         t6 = 1 / t5, or 0                   t6 = 1 / t5

The safety pass subtracts the largest exponent of a row, and adds it again where it matters. In
float64 exp overflows only above 709, and loses nothing below: exponents up to 100 need no shift,
which takes a third of the time of an attention of 8 x 8. The text checks each operand of exp as it
runs, and runs the safe program instead if one is larger, infinite or NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace

from blockbuster.emit.tile.array_dtypes import typed_for_cpu
from blockbuster.emit.tile.dataflow import defined, fresh_names, renamed
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.program import Fold, For, Let, Stmt, Tile, TileProgram, statements
from blockbuster.emit.tile.result_dtypes import FLOAT
from blockbuster.emit.tile.tried import Tried
from blockbuster.emit.tile.trips import dims_of
from blockbuster.ir.expr import Arg, Call, Const, Expr, calls_in, without_zeros
from blockbuster.ir.graph import Graph
from blockbuster.ir.ops import Functional, Pointwise, Relabel, Transpose
from blockbuster.ir.types import Dim
from blockbuster.rules.centering import centered
from blockbuster.selection.candidates.candidate import Choice
from blockbuster.selection.decisions.numpy_tiles import numpy_schedule

PRODUCTS = ("mul", "div", "reciprocal")
QUOTIENTS = ("reciprocal", "log")
OTHERS = ("add", "sub", "neg", "exp", "log")
FEW = 3  # products behind exp: those of exp(100) and numbers of float32 fit in float64
LARGE = 100  # no exponent that the text lets pass is larger


def in_range(choice: Choice, sizes: Mapping[Dim, int], graph: Graph) -> Tried | None:
    """The program of a choice for the CPU without shifts; None if that would not be right, or not
    faster. ``graph`` is the block program before it was fused; ``sizes`` are by size class.
    """
    if choice.program.dtype != FLOAT or not _is_wide(choice.program):
        return None
    plain = centered(choice.graph)
    if choice.unsafe or plain == choice.stable:
        return None
    start = typed_for_cpu(lower_to_tiles(plain), FLOAT, graph)
    program = _apart(numpy_schedule(start, sizes, choice.blocks))
    positive = _positive(program)
    program = _without_mending(program, positive)
    alike = program.whole == choice.program.whole and not program.chunks
    known = {*dims_of(program)} <= {*dims_of(choice.program)}
    if not (alike and known and _is_wide(program) and _fits(program, positive)):
        return None
    return Tried(program, frozenset(_operands(program)), LARGE**2)


def _operands(program: TileProgram) -> Iterator[Tile]:
    """What exp is taken of."""
    for stmt in _body(program):
        if isinstance(stmt, Let) and isinstance(stmt.op, Pointwise):
            yield from stmt.args if _is_call(stmt.op.expr, "exp") else ()


def _is_wide(program: TileProgram) -> bool:
    return all(tile.dtype != FLOAT for s in _body(program) if (tile := defined(s)) is not None)


def _body(program: TileProgram) -> Iterator[Stmt]:
    for nest in program.nests:
        yield from statements(nest.body)


def _apart(program: TileProgram) -> TileProgram:
    """``program`` with each operand of an exp as a tile of its own, so that it can be checked."""
    names = fresh_names(program)

    def body(old: tuple[Stmt, ...]) -> Iterator[Stmt]:
        for stmt in old:
            match stmt:
                case For():
                    yield replace(stmt, body=tuple(body(stmt.body)))
                case Let(target, Pointwise(Call("exp", (Call() as operand,)), axes)):
                    tile = replace(target, name=next(names))
                    yield replace(stmt, target=tile, op=Pointwise(operand, axes))
                    exp = Pointwise(Call("exp", (Arg(0),)), axes)
                    yield replace(stmt, op=exp, args=(tile,))
                case _:
                    yield stmt

    return _rebuilt(program, body)


def _rebuilt(
    program: TileProgram, body: Callable[[tuple[Stmt, ...]], Iterator[Stmt]]
) -> TileProgram:
    nests = (replace(nest, body=tuple(body(nest.body))) for nest in program.nests)
    return replace(program, nests=tuple(nests))


def _positive(program: TileProgram) -> frozenset[Tile]:
    """The tiles that hold numbers above 0 alone: exp, and sums of nothing else."""
    above: set[Tile] = set()
    for stmt in _body(program):
        match stmt:
            case Let(target, Pointwise(expr), args):
                sums = _is_call(expr, "add") or isinstance(without_zeros(expr), Arg)
                if _is_call(expr, "exp") or (sums and above.issuperset(args)):
                    above.add(target)
            case Let(target, Functional("row_sum") | Transpose() | Relabel(), args):
                if above.issuperset(args):
                    above.add(target)
    return frozenset(above)


def _without_mending(program: TileProgram, positive: Collection[Tile]) -> TileProgram:
    """``program`` without replacing 0 in what is above 0."""
    same: dict[Tile, Tile] = {}

    def body(old: tuple[Stmt, ...]) -> Iterator[Stmt]:
        for stmt in old:
            match stmt:
                case For():
                    yield replace(stmt, body=tuple(body(stmt.body)))
                case Let(target, Pointwise(Call() as expr), (arg,)) if (
                    arg in positive and isinstance(without_zeros(expr), Arg)
                ):
                    same[target] = same.get(arg, arg)
                case _:
                    yield renamed(stmt, same)

    return _rebuilt(program, body)


def _fits(program: TileProgram, positive: Collection[Tile]) -> bool:
    """True if nothing overflows, nor is divided by 0, where exponents are in range.

    There has to be an exp. What comes behind the first has to be sums, few products, and quotients
    by sums of exp.
    """
    products, behind = 0, False
    for stmt in _body(program):
        match stmt:
            case Let(_, Pointwise(expr), args):
                calls = [*calls_in(expr)]
                behind = behind or any(call.fn == "exp" for call in calls)
                divided = [call.args[-1] for call in calls if call.fn in ("div", *QUOTIENTS)]
                above = all(isinstance(x, Arg) and args[x.index] in positive for x in divided)
                known = all(call.fn in (*PRODUCTS, *OTHERS) for call in calls)
                checked = _is_call(expr, "exp") or all(call.fn != "exp" for call in calls)
                if not (checked and all(map(_is_moderate, calls))) or behind > (above and known):
                    return False
                products += behind * sum(call.fn in PRODUCTS for call in calls)
            case Let(_, Functional(name)):
                products += behind and name == "dot"
            case Let(op=op) if not isinstance(op, Transpose | Relabel):
                return False
            case Fold():  # a loop without iterations gives a sum of 0
                return False
    return behind and products <= FEW


def _is_call(expr: Expr, name: str) -> bool:
    """True for a call of ``name`` with tiles."""
    if not isinstance(expr, Call) or expr.fn != name:
        return False
    return all(isinstance(arg, Arg) for arg in expr.args)


def _is_moderate(call: Call) -> bool:
    """False where a constant would take a mask's place: its exponents are never in range."""
    return all(not isinstance(arg, Const) or abs(arg.value) < LARGE for arg in call.args)
