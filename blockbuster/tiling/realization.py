"""From a candidate to the schedule of our kernel for it, and from a schedule back.

Our fused program of a chain has one nest: the loops of the output are parallel, and inside them the
sum of the last product is outermost. A candidate with these loops is a choice of blocks; a loop of
extent 1 is a dim in one block. The other expressions have no such kernel; the reason is given in
words.
"""

from __future__ import annotations

from collections.abc import Sequence

from blockbuster.emit.schedule.block import LEAST
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.tile.program import For, Stmt
from blockbuster.errors import EmitError, message
from blockbuster.ir.types import size_class
from blockbuster.tiling.candidate import Body, Candidate
from blockbuster.tiling.chain import Chain
from blockbuster.tiling.expression import Expression
from blockbuster.tiling.placement import kept_along


def simplified(chain: Chain, found: Candidate) -> Candidate:
    """``found`` without its loops of extent 1."""
    gone = [loop for loop, extent in found.extents(chain).items() if extent == 1]
    grid = tuple(loop for loop in found.body.grid if loop not in gone)
    return Candidate(Body(grid, found.body.expression.without(gone)), found.tiles)


def not_expressible(chain: Chain, found: Candidate) -> str:
    """Why no schedule of our fused program has these loops and tiles, or ""."""
    unknown = [loop for loop in chain.loops if loop not in chain.dims]
    if unknown:
        return f"loop {unknown[0]} runs over no dim of a program"
    body = simplified(chain, found).body
    for operator in chain.operators:
        kept = kept_along(chain, operator, body.expression)
        if kept:
            return (
                f"all tiles of {operator.result.name} along {', '.join(kept)} are kept while a "
                "loop runs: a kernel of ours has one tile of it"
            )
    sums = (loop for operator in reversed(chain.operators) for loop in operator.reduced)
    ours = Expression(tuple(loop for loop in sums if loop in body.expression.all))
    if body.expression != ours:
        loops = str(ours) or "no loop"
        return f"inside the grid our fused program runs {loops}, not {body.expression}"
    for loop, extent in found.extents(chain).items():
        if extent > 1 and found.tile[loop] & (found.tile[loop] - 1):
            return f"the tile of {loop} is {found.tile[loop]}, and Triton's are powers of two"
    return ""


def schedule_of(chain: Chain, found: Candidate, *, warps: int = 4, stages: int = 1) -> str:
    """The schedule of our fused program that runs ``found``.

    ``warps`` of a program and ``stages`` of its innermost loop are what the source leaves to
    Triton. Raises EmitError if no schedule does.
    """
    if reason := not_expressible(chain, found):
        what = f"no schedule runs {found}: {reason}"
        raise EmitError(message(what, hint="choose among candidates that not_expressible allows"))
    cuts = ", ".join(_cut(chain, found, loop) for loop in chain.loops)
    lines = [f"block {cuts}", f"warps {warps}"]
    inner = simplified(chain, found).body.expression.loops
    if inner and stages > 1:
        lines.append(f"stage nest 1 {chain.dims[inner[-1]]} {stages}")
    return "\n".join(lines) + "\n"


def candidate_of(chain: Chain, scheduled: Scheduled) -> Candidate:
    """The loops and tiles that ``scheduled`` has, without loops of extent 1.

    Raises EmitError for more than one kernel, or a dim that is no loop of the chain.
    """
    program = scheduled.program
    if len(program.nests) != 1:
        what = f"the schedule has {len(program.nests)} kernels: an expression is one"
        raise EmitError(message(what, listing=scheduled.schedule))
    nest = program.nests[0]
    letters = {dim: loop for loop, dim in chain.dims.items()}
    known = {size_class(block.dim): block for block in nest.blocks}
    missing = [chain.dims[loop] for loop in chain.loops if chain.dims[loop] not in known]
    if missing:
        raise EmitError(message(f"the schedule does not cut {missing[0]}, a loop of the chain"))
    tiles = tuple(
        (loop, chain.sizes[loop] if block.whole else block.lanes)
        for loop, block in ((loop, known[chain.dims[loop]]) for loop in chain.loops)
    )
    tiles = tuple((loop, -(-tile // LEAST) * LEAST) for loop, tile in tiles)
    several = [loop for loop, tile in tiles if tile < chain.sizes[loop]]
    grid = [letters[size_class(dim)] for dim in nest.grid if size_class(dim) in letters]
    outer = tuple(loop for loop in chain.output.axes if loop in grid and loop in several)
    inner = _expression(nest.body, letters)
    return Candidate(Body(outer, inner.without(set(inner.all) - set(several))), tiles)


def _cut(chain: Chain, found: Candidate, loop: str) -> str:
    """The block of a loop's dim, as the move ``block`` takes it."""
    if found.extents(chain)[loop] > 1:
        return f"{chain.dims[loop]} {found.tile[loop]}"
    lanes = max(LEAST, 1 << (chain.sizes[loop] - 1).bit_length())
    return f"{chain.dims[loop]} {lanes} whole"


def _expression(body: Sequence[Stmt], letters: dict[str, str]) -> Expression:
    """The loops of a nest inside its grid, as an expression."""
    loops = [stmt for stmt in body if isinstance(stmt, For)]
    found = tuple(_with(loop, letters) for loop in loops)
    return found[0] if len(found) == 1 else Expression((), found)


def _with(loop: For, letters: dict[str, str]) -> Expression:
    letter = letters.get(size_class(loop.dim))
    if letter is None:
        raise EmitError(message(f"the loop over {loop.dim} is none of the chain's"))
    inner = _expression(loop.body, letters)
    return Expression((letter, *inner.loops), inner.branches)
