"""finish-rows: what a row's reciprocal or logarithm is for is done in the way that rounds least.

before   t2 = recip0(t1)                  after   t2 = where(t1 == 0, inf, t1)
         for n in range(N):                       for n in range(N):
          t4 = row_scale(t3,t2)                    t4 = t3 / t2

before   t2 = -(log(t1) + t0)             after   t2 = -t0
         for n in range(N):                       t5 = -log(t1)
          t4 = row_shift(t3,t2)                   for n in range(N):
                                                   t4 = t3 + t2 + t5

A product with a reciprocal is rounded twice, a quotient once; a sum with an exponent and the
logarithm of a significand is exact in its first addition where the exponent is near, as a row's
maximum is. Costs a division, or an addition, per element: for float32 results only, and not in a
loop that holds a dot.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from blockbuster.emit.dataflow import fresh_names, operands
from blockbuster.emit.tile import For, Let, Nest, Stmt, Tile, TileProgram, statements
from blockbuster.emit.tiling import Tiling
from blockbuster.emit.triton_uses import is_matrix_dot
from blockbuster.ir.expr import Arg, Call, Expr, call
from blockbuster.ir.ops import Elementwise, Functional, Pointwise

FUNCTIONS = {"mul": "mul", "row_scale": "mul", "col_scale": "mul",
             "add": "add", "sub": "sub", "row_shift": "add", "col_shift": "add"}  # fmt: skip


@dataclass(frozen=True)
class Finish:
    """What stands in for a value: ``parts``, each an expression of the value's own operands.

    ``functions``: with which function the value is applied to a rest, and with which the parts are
    applied to that rest instead, one after the other.
    """

    parts: tuple[Expr, ...]
    functions: Mapping[str, str]


def finish_rows(program: TileProgram, tiling: Tiling) -> TileProgram:
    """``program`` with rows divided by sums, and with exponents subtracted before logarithms."""
    names = fresh_names(program)
    return replace(program, nests=tuple(_finished(nest, tiling, names) for nest in program.nests))


def finish_of(stmt: Stmt) -> Finish | None:
    """How the value of ``stmt`` is best applied, if there is a better way than it as a whole."""
    if not isinstance(stmt, Let) or not isinstance(stmt.op, Elementwise):
        return None
    match stmt.op.expr:
        case Call("recip0", (Arg(0) as x,)):
            never_zero = call("where", call("eq", x, 0.0), math.inf, x)
            return Finish((never_zero,), {"mul": "div"})
        case Call("reciprocal", (Arg(0) as x,)):
            return Finish((x,), {"mul": "div"})
        case Call("add", (Call("log") as log, Arg() as exponent)):
            return Finish((exponent, log), {"add": "add", "sub": "sub"})
        case Call("neg", (Call("add", (Call("log") as log, Arg() as exponent)),)):
            parts = (call("neg", exponent), call("neg", log))
            return Finish(parts, {"add": "add", "sub": "sub"})
    return None


def not_finishable(let: Let, functions: Mapping[str, str], nest: Nest, tiling: Tiling) -> str:
    """Why the value of ``let`` has to stay whole, or ""."""
    name = let.target.name
    if len(let.target.axes) > 1:
        return f"{name} has an entry per element"
    readers = [stmt for stmt in statements(nest.body) if let.target in operands(stmt)]
    if not readers:
        return f"{name} is not read here"
    if any(_applied(stmt, let.target, functions, (let.target,)) is None for stmt in readers):
        return f"{name} is read as something else"
    if any(_beside_a_dot(nest.body, stmt, tiling) for stmt in readers):
        return f"{name} is read in a loop that holds a dot"
    return ""


def _beside_a_dot(body: tuple[Stmt, ...], reader: Stmt, tiling: Tiling) -> bool:
    """True if the innermost serial loop around ``reader`` holds a matrix dot."""
    for loop in (s for s in statements(body) if isinstance(s, For) and not s.parallel):
        inside = list(statements(loop.body))
        if reader in inside and any(is_matrix_dot(s, tiling) for s in inside):
            return True
    return False


def _applied(
    stmt: Stmt, value: Tile, functions: Mapping[str, str], parts: tuple[Tile, ...]
) -> Let | None:
    """``stmt`` with ``parts`` applied one by one where it applies ``value``, or None."""
    if not isinstance(stmt, Let) or stmt.args.count(value) != 1:
        return None
    at = stmt.args.index(value)
    more = range(len(stmt.args), len(stmt.args) + len(parts) - 1)
    made = _rewritten(_expression(stmt), at, functions, (at, *more))
    if made is None:
        return None
    args = (*stmt.args[:at], parts[0], *stmt.args[at + 1 :], *parts[1:])
    return replace(stmt, op=Pointwise(made, stmt.target.axes), args=args)


def _expression(stmt: Let) -> Expr:
    match stmt.op:
        case Elementwise(expr) | Pointwise(expr):
            return expr
        case Functional(name) if name in FUNCTIONS:
            return Call(FUNCTIONS[name], (Arg(0), Arg(1)))
    return Arg(0)


def _rewritten(
    expr: Expr, at: int, functions: Mapping[str, str], parts: tuple[int, ...]
) -> Expr | None:
    """``expr`` with ``parts`` applied in turn where argument ``at`` is; None if it is elsewhere."""
    match expr:
        case Arg(index):
            return None if index == at else expr
        case Call(fn, (rest, Arg(index))) if index == at and fn in functions:
            pass
        case Call("add" | "mul" as fn, (Arg(index), rest)) if index == at and fn in functions:
            pass
        case Call(fn, args):
            made = [_rewritten(arg, at, functions, parts) for arg in args]
            kept = tuple(arg for arg in made if arg is not None)
            return Call(fn, kept) if len(kept) == len(args) else None
        case _:
            return expr
    whole = _rewritten(rest, at, functions, parts)
    for part in parts:
        whole = None if whole is None else Call(functions[fn], (whole, Arg(part)))
    return whole


def _finished(nest: Nest, tiling: Tiling, names: Iterator[str]) -> Nest:
    for let in [s for s in statements(nest.body) if isinstance(s, Let)]:
        finish = finish_of(let)
        if finish is None or not_finishable(let, finish.functions, nest, tiling):
            continue
        more = (replace(let.target, name=next(names)) for _ in finish.parts[1:])
        parts = (let.target, *more)
        nest = replace(nest, body=_spread(nest.body, let, finish, parts))
    return nest


def _spread(
    body: tuple[Stmt, ...], let: Let, finish: Finish, parts: tuple[Tile, ...]
) -> tuple[Stmt, ...]:
    """``body`` with ``parts`` made where ``let`` stood, and applied where its value was."""
    out: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, For):
            out.append(replace(stmt, body=_spread(stmt.body, let, finish, parts)))
        elif stmt == let:
            pairs = zip(parts, finish.parts, strict=True)
            out += [replace(let, target=tile, op=Elementwise(expr)) for tile, expr in pairs]
        else:
            applied = let.target in operands(stmt)
            made = _applied(stmt, let.target, finish.functions, parts) if applied else stmt
            assert made is not None
            out.append(made)
    return tuple(out)
