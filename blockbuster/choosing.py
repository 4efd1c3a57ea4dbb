"""``bb.select``: which kernels a program becomes on a machine that need not be here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from blockbuster.errors import message
from blockbuster.frontend import ArrayProgram
from blockbuster.runtime.given import asked_for, family_of
from blockbuster.selection.plans.effort import USUAL, check_effort
from blockbuster.selection.plans.fusers import Fuser
from blockbuster.selection.plans.plan import Plan


def select(
    program: ArrayProgram,
    sizes: Mapping[str, int],
    machine: str = "h200",
    dtype: str = "float16",
    *,
    library: bool = True,
    effort: str = USUAL,
    fusers: Sequence[Fuser] = (),
) -> Plan:
    """The plan of kernels that a program becomes at ``sizes``; it needs no GPU.

    The program is divided into parts, each of which is fused and scheduled by itself, so that the
    sum of their predicted times is least. ``plan.explain()`` says why it became these kernels,
    ``plan.draw()`` shows them, ``total_us``, ``lower_bound_us`` and ``gap`` are what the plan takes
    and how much better any plan could be. ``machine`` is a GPU's name or architecture, "cpu" or
    "auto", as ``compile`` takes them. ``library=False`` leaves out calls of torch's library, which
    else take the place of kernels where they are faster (machines/library.py).

    ``effort="exhaustive"`` prices all parts, about a third of a second each: no plan of them takes
    less, and the gap is 0. ``effort="overlapping"`` finds the best plan whose parts may overlap:
    parts may compute a value again that is then not stored. It takes small programs alone.

    ``fusers``: other fusion algorithms, whose programs take part where they are proven equal (see
    ``bb.Fuser``).

    Raises ValueError for unknown or missing dims, dtypes, machines and efforts, for sizes of 0, and
    where parts cannot overlap; EmitError where no kernel can be written.

    >>> import blockbuster as bb
    >>> program = bb.trace(lambda x, w: bb.gelu(x @ w), x="M K", w="K N")
    >>> plan = bb.select(program, dict(M=4096, K=512, N=512), machine="a100")
    >>> plan.kernels, plan.total_us >= plan.lower_bound_us
    (1, True)
    """
    check_effort(effort)
    device, bound = asked_for(program, sizes, dtype, machine)
    empty = [dim for dim, size in bound.items() if not size]
    if empty:
        what = f"{empty[0]} is 0: arrays without elements take no time, so nothing can be chosen"
        raise ValueError(message(what, hint="bb.compile compiles for such sizes, too"))
    family = family_of(program, dtype, device, library=library, effort=effort, fusers=fusers)
    return family.at(bound)
