"""load-late: what a loop does not need is made behind it: wide tiles, and in some programs loads.

before   t1 = load(B[n])                          after   for k in range(K):
         t3 = exp(t1)                                      t2 = load(X[m,k])
         for k in range(K):                                t4 += dot(t2,...)
          t2 = load(X[m,k])                               t1 = load(B[n])
          t4 += dot(t2,...)                               t3 = exp(t1)
         store(t4 + t3,Y[m,n])                            store(t4 + t3,Y[m,n])

Programs that take several places load behind their loops: the loop over places and the loop inside
it become one loop for the compiler (``persist``), through which it keeps what stands between. A
product of 2048 x 4096 x 4096 with sums of columns and a shift behind it took an H200 138.4
microseconds with their loads before the inner loop, and 114.8 behind it (116.1 with a program for
each place). Other programs ask for their loads early. In all programs, a tile that is wider than
what it is made of, such as a mask of rows and columns, is made behind a loop that does not need it:
it would take as many registers as the sums of dots do.
"""

from __future__ import annotations

from blockbuster.emit.tile.dataflow import folded, needed, operands, same_or, with_parts
from blockbuster.emit.tile.each_nest import Around, each_body
from blockbuster.emit.tile.program import For, Let, Load, Nest, Stmt, statements


@each_body("programs")
def load_late(nest: Nest, _: Around) -> Nest:
    """A nest with such statements behind its loops.

    They, and what is made of them, stay before the first statement of another kind that needs
    them. No nest loads what it stores, so that a load may be made at any time.
    """
    may_wait = _loads_or_makes if nest.programs else _widens
    body: list[Stmt] = []
    waiting: list[Stmt] = []
    for stmt in nest.body:
        if may_wait(stmt) or (isinstance(stmt, Let) and needed(waiting, (stmt,))):
            waiting.append(stmt)
            continue
        first = needed(waiting, (stmt,))
        changes = {tile for inner in statements((stmt,)) for tile in folded(inner)}
        if any(changes & {*operands(one)} for one in waiting):
            first = tuple(waiting)  # they read what is folded on
        body += [*first, stmt]
        waiting = [one for one in waiting if one not in first]
        if isinstance(stmt, For):
            body += waiting
            waiting = []
    return with_parts(nest, body=same_or(nest.body, (*body, *waiting)))


def _loads_or_makes(stmt: Stmt) -> bool:
    return isinstance(stmt, Load | Let)


def _widens(stmt: Stmt) -> bool:
    """True if ``stmt`` makes a tile of tiles with fewer axes."""
    if not isinstance(stmt, Let) or not (made := operands(stmt)):
        return False
    return all(len(one.axes) < len(stmt.target.axes) for one in made)
