"""Casts of softmaxes in front of products: what a product does to its operands in any case.

    before   p = softmax(s)   q = float16(p)   o = q @ v            products take float16
    after    p = softmax(s)                    o = float16(p @ v)

A kernel rounds the operands of its products itself. Without the cast, the rules divide by a row's
sum behind the product, so that one loop computes both; exponentials, at most 1, are rounded in
place of quotients, with the same relative error. Casts of other values stay: what is scaled there
may be beyond the narrow dtype before it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from blockbuster.frontend import ArrayProgram
from blockbuster.frontend.kinds import MOVES
from blockbuster.frontend.program import Equation
from blockbuster.ir.graph import Value
from blockbuster.selection.parts.operand_views import PRODUCT


def without_casts_of_softmaxes(program: ArrayProgram, dtype: str) -> ArrayProgram:
    """``program``, whose products take ``dtype``, without the casts to it that only products read.

    >>> from blockbuster.frontend.trace import trace
    >>> from blockbuster import softmax
    >>> made = trace(lambda s, v: softmax(s, -1).astype("float16") @ v, s="M N", v="N D")
    >>> [one.op for one in without_casts_of_softmaxes(made, "float16").equations]
    ['softmax', 'cast', 'matmul', 'cast']
    >>> without_casts_of_softmaxes(made, "float16").equations[2].operands[0]
    Value(node=0, port=0)
    """
    readers: dict[Value, list[int]] = {}
    for at, one in enumerate(program.equations):
        for operand in one.operands:
            if isinstance(operand, Value):
                readers.setdefault(operand, []).append(at)
    stored = {output.value for output in program.outputs}

    def is_for_products(value: Value) -> bool:
        """True if products alone read a value and its views."""
        return value not in stored and all(
            is_for_products(Value(at)) if program.equations[at].op in MOVES
            else program.equations[at].op == PRODUCT
            for at in readers.get(value, ())
        )  # fmt: skip

    seen: dict[Value, Value] = {}
    for at, one in enumerate(program.equations):
        if one.op == "cast" and one.param("dtype") == dtype and is_for_products(Value(at)):
            (given,) = (operand for operand in one.operands if isinstance(operand, Value))
            if given.node >= 0 and program.equations[given.node].op == "softmax":
                seen[Value(at)] = given
    return _rounded_behind(program, seen) if seen else program


def _rounded_behind(program: ArrayProgram, seen: Mapping[Value, Value]) -> ArrayProgram:
    """``program`` that reads other values in place of some casts, its products cast as they were.

    ``seen``: what is read, by the casts.
    """
    made: dict[Value, Value] = {}
    wide = dict(seen)  # values that are wider now
    equations: list[Equation] = []
    for at, one in enumerate(program.equations):
        given = [o for o in one.operands if isinstance(o, Value)]
        read = (seen.get(o, o) if isinstance(o, Value) else o for o in one.operands)
        operands = tuple(made.get(o, o) if isinstance(o, Value) else o for o in read)
        equations.append(replace(one, operands=operands))
        made[Value(at)] = Value(len(equations) - 1)
        casts = [wide[o] for o in given if o in wide]
        if casts and one.op in MOVES:
            wide[Value(at)] = casts[0]
        elif casts:
            cast = next(program.equations[v.node] for v, of in seen.items() if of == casts[0])
            equations.append(replace(cast, operands=(made[Value(at)],), shape=one.shape))
            made[Value(at)] = Value(len(equations) - 1)
    outputs = tuple(replace(o, value=made.get(o.value, o.value)) for o in program.outputs)
    return replace(program, equations=tuple(equations), outputs=outputs)
