"""The places of loads, products and stores among the loops (MCFuser, section III-B).

A product stands in the rightmost loop that it uses, and so inside all loops around that one. A load
or a store leaves the loops behind the rightmost one that indexes its tensor. Loops of extent 1 are
removed first, which moves loads further out.

The source leaves two things unsaid. First, a product waits for its operands: it stands behind the
loops over which earlier products sum, and the store stands behind the loops over which its own
product sums. Second, a loop that a product does not use cannot run inside a loop over which it
sums, or the product would add its terms again. A loop that has to run both before and behind such a
point runs twice, and the tiles of the first run are kept.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from blockbuster.tiling.chain import Chain, Operator, Tensor
from blockbuster.tiling.expression import Expression

LOAD, COMPUTE, STORE = "load", "compute", "store"


@dataclass(frozen=True)
class Statement:
    """A load, a product or a store of a tile, and the loops around it, outermost first."""

    kind: str
    tensor: Tensor
    operator: Operator
    loops: tuple[str, ...]


@dataclass(frozen=True)
class Loop:
    """A loop over the tiles of a dim, and what it repeats."""

    loop: str
    body: tuple[Loop | Statement, ...]


def placed(
    chain: Chain,
    expression: Expression,
    *,
    grid: Sequence[str] = (),
    gone: Collection[str] = (),
) -> tuple[Statement, ...]:
    """The statements in the order in which they depend on each other.

    ``grid``: loops around everything, bound to thread blocks; ``gone``: loops of extent 1.
    """
    outer = tuple(loop for loop in grid if loop not in gone)
    inner = expression.without((*grid, *gone))
    paths = product_paths(chain, inner)
    made: list[Statement] = []
    for operator, path in zip(chain.operators, paths, strict=False):
        for tensor in operator.operands:
            if tensor in chain.inputs:
                made.append(Statement(LOAD, tensor, operator, (*outer, *_indexing(path, tensor))))
        made.append(Statement(COMPUTE, operator.result, operator, (*outer, *path)))
    made.append(Statement(STORE, chain.output, chain.operators[-1], (*outer, *paths[-1])))
    return tuple(made)


def product_paths(chain: Chain, expression: Expression) -> tuple[tuple[str, ...], ...]:
    """The loops of ``expression`` around each product, and last around the store.

    A loop that a product does not use is around it only if it is around its reader.
    """
    last = chain.operators[-1]
    whole = _path(chain, last, expression, last.loops)
    behind = tuple(loop for loop in whole if loop not in last.reduced)
    paths = [whole, _indexing(behind, chain.output)]
    for operator in reversed(chain.operators[:-1]):
        paths.insert(0, _path(chain, operator, expression, paths[0]))
    return tuple(paths)


def _path(
    chain: Chain, operator: Operator, expression: Expression, reader: Sequence[str]
) -> tuple[str, ...]:
    used = [loop for loop in expression.all if loop in operator.loops]
    before = chain.operators[: chain.operators.index(operator)]
    summed = [loop for earlier in before for loop in earlier.reduced]
    path: list[str] = []
    for loop in expression.path(used[-1]) if used else ():
        again = any(outer in operator.reduced for outer in path) or loop not in reader
        if loop in operator.loops or (loop not in summed and not again):
            path.append(loop)
    return tuple(path)


def kept_along(chain: Chain, operator: Operator, expression: Expression) -> tuple[str, ...]:
    """The loops along which all tiles of the result exist at once.

    They are those of its loops that it does not share with what reads it: the next product, or the
    store.
    """
    paths = product_paths(chain, expression)
    at = chain.operators.index(operator)
    pairs = enumerate(zip(paths[at], paths[at + 1], strict=False))
    shared = next((n for n, (mine, theirs) in pairs if mine != theirs), len(paths[at + 1]))
    return tuple(loop for loop in paths[at][shared:] if loop in operator.result.axes)


def pseudocode(
    chain: Chain,
    expression: Expression,
    *,
    grid: Sequence[str] = (),
    extents: Mapping[str, int] | None = None,
) -> str:
    """The loops and statements as text. Loops of extent 1 do not appear.

    >>> from blockbuster.tiling.chain import gemm_chain
    >>> from blockbuster.tiling.expression import parse_expression
    >>> print(pseudocode(gemm_chain(64, 64, 64, 64), parse_expression("nk"), grid="mh"), end="")
    grid m, h
    for n
      for k
        load A[m, k]
        load B[k, n]
        C[m, n] += A B
      load D[n, h]
      E[m, h] += C D
    store E[m, h]
    """
    sizes = extents or {}
    gone = [loop for loop, extent in sizes.items() if extent == 1]
    outer = [loop for loop in grid if loop not in gone]
    lines = [f"grid {', '.join(_loop(loop, sizes) for loop in outer)}"] if outer else []
    whole = placed(chain, expression, grid=grid, gone=gone)
    return "\n".join([*lines, *_lines(nested(whole, depth=len(outer)), sizes)]) + "\n"


def _indexing(path: tuple[str, ...], tensor: Tensor) -> tuple[str, ...]:
    """``path`` up to the rightmost loop that indexes ``tensor``."""
    at = max((at for at, loop in enumerate(path) if loop in tensor.axes), default=-1)
    return path[: at + 1]


def nested(statements: Sequence[Statement], *, depth: int = 0) -> tuple[Loop | Statement, ...]:
    """The statements in their loops: neighbours that share a loop share its iterations.

    ``depth``: how many loops around all of them are left out (those of the grid). A load stands
    before the loop that holds its product.
    """
    groups: list[tuple[str, list[Statement]]] = []
    for statement in statements:
        loop = _next(statement, depth)
        if loop and groups and groups[-1][0] == loop:
            groups[-1][1].append(statement)
        elif not loop and groups and _waits(statement, statements, groups[-1][0], depth):
            groups.insert(len(groups) - 1, ("", [statement]))
        else:
            groups.append((loop, [statement]))
    made: list[Loop | Statement] = []
    for loop, group in groups:
        made += [Loop(loop, nested(group, depth=depth + 1))] if loop else group
    return tuple(made)


def _next(statement: Statement, depth: int) -> str:
    return statement.loops[depth] if len(statement.loops) > depth else ""


def _waits(statement: Statement, statements: Sequence[Statement], loop: str, depth: int) -> bool:
    """Whether a load stands before ``loop``, which is open, since its product stands in it."""
    return (
        statement.kind == LOAD
        and loop != ""
        and any(
            other.kind == COMPUTE
            and other.operator == statement.operator
            and _next(other, depth) == loop
            for other in statements
        )
    )


def _lines(body: Sequence[Loop | Statement], sizes: Mapping[str, int]) -> Iterator[str]:
    for item in body:
        if isinstance(item, Loop):
            yield f"for {_loop(item.loop, sizes)}"
            yield from (f"  {line}" for line in _lines(item.body, sizes))
        else:
            yield _statement(item)


def _loop(loop: str, sizes: Mapping[str, int]) -> str:
    return f"{loop} {sizes[loop]}" if loop in sizes else loop


def _statement(statement: Statement) -> str:
    if statement.kind != COMPUTE:
        return f"{statement.kind} {statement.tensor}"
    operator = statement.operator
    names = [tensor.name for tensor in operator.operands]
    if operator.first:
        names[0] = f"{operator.first}({names[0]})"
    return f"{statement.tensor} {'+=' if operator.reduced else '='} {' '.join(names)}"
