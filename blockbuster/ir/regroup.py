"""The operator that sees consecutive axes of an item as others: rows of columns as pieces."""

from __future__ import annotations

from dataclasses import dataclass

from blockbuster.ir.ops import Op
from blockbuster.ir.signatures import expect, expect_local
from blockbuster.ir.types import Dim, Type


@dataclass(frozen=True)
class Regroup(Op):
    """The same elements, in the same order, with the axes ``new`` where ``old`` stand in a row.

    ``regroup N -> A, B`` of an item [M, N] is one of [M, A, B]: element (m, a, b) is the one at
    column ``a * |B| + b``. The blocks of N hold as many elements as those of A and B together.
    """

    old: tuple[Dim, ...]
    new: tuple[Dim, ...]

    def result_types(self, args: tuple[Type, ...]) -> tuple[Type, ...]:
        expect(len(args) == 1, "regroup takes 1 operand, got {}", len(args))
        expect_local("regroup", args)
        made = regrouped(args[0].axes, self.old, self.new)
        expect(made is not None, "regroup of {}: the operand has type {}", self.old, args[0])
        assert made is not None
        expect(len(set(made)) == len(made), "regroup gives {}, which repeats a dim", made)
        return (Type((), made),)

    def __str__(self) -> str:
        return f"regroup {', '.join(self.old)} -> {', '.join(self.new)}"


def regrouped(
    axes: tuple[Dim, ...], old: tuple[Dim, ...], new: tuple[Dim, ...]
) -> tuple[Dim, ...] | None:
    """``axes`` with ``new`` in the place of ``old``; None if these do not stand in a row there.

    >>> regrouped(("M", "N"), ("N",), ("A", "B"))
    ('M', 'A', 'B')
    """
    for at in range(len(axes) - len(old) + 1):
        if axes[at : at + len(old)] == old:
            return (*axes[:at], *new, *axes[at + len(old) :])
    return None
