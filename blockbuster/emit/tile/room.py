"""Which kernels leave room in shared memory for the kernel after them.

A processor divides one memory between its cache and shared memory, and divides it anew only while
no program runs there. It does so for the kernel that begins on it: behind a kernel that needs
little shared memory, a dependent kernel whose loads run ahead does not find enough, and begins
where nothing runs any more. So the kernel before asks for as much as there is: on an H200 a gated
network of 2048 rows and 256 features took 11.7 microseconds instead of 14.6, one of 128 rows and
512 features, whose weights are packed, 11.6 instead of 13.7. Where the later kernel has many more
programs than run at once it is not worth it, but costs little: 2048 and 8192 rows there take 2 and
3% longer, LayerNorm and a product of 8192 x 4096 x 1024 1%.
"""

from __future__ import annotations

from collections.abc import Sequence

from blockbuster.emit.tile.program import Issue, Nest, statements
from blockbuster.emit.tile.verify_waits import is_dependent


def leaving_room(nests: Sequence[Nest]) -> tuple[bool, ...]:
    """For each nest, whether it leaves room: for the next one, or with it for a later one.

    A nest leaves room if the next one may begin before it has ended, and either holds tiles ahead
    or leaves room itself. A nest that holds tiles ahead has the room that it needs anyway.
    """
    found: list[bool] = []
    wanted = False  # by the next nest, if it may begin early
    for nest in reversed(nests):
        ahead = any(isinstance(stmt, Issue) for stmt in statements(nest.body))
        found.append(wanted and not ahead)
        wanted = is_dependent(nest) and (ahead or wanted)
    return tuple(reversed(found))
