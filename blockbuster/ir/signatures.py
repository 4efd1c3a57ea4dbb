"""What the functional operators of Table 1 take and give.

Each entry states a result type, or refuses operands with a short reason.
Source: Blockbuster Part 1, Table 1 (whose row_sum should reduce axis 1).
"""

from __future__ import annotations

from collections.abc import Callable

from blockbuster.errors import VerifyError
from blockbuster.ir.types import Type


def expect(condition: bool, reason: str) -> None:
    """Raise VerifyError with ``reason`` unless ``condition`` holds."""
    if not condition:
        raise VerifyError(reason)


def expect_local(name: str, args: tuple[Type, ...]) -> None:
    """Raise VerifyError unless every operand is a local item."""
    for position, arg in enumerate(args):
        expect(
            not arg.buffered, f"operand {position} of {name} has type {arg}, expected a local item"
        )


def _same(name: str, args: tuple[Type, ...]) -> Type:
    expect(
        args[0] == args[1],
        f"operands of {name} have types {args[0]} and {args[1]}, expected equal types",
    )
    return args[0]


def _by_row(name: str, args: tuple[Type, ...]) -> Type:
    block, vector = args
    expect(len(block.axes) == 2, f"operand 0 of {name} has axes {block}, expected a block")
    expect(
        vector.axes == block.axes[:1],
        f"operand 1 of {name} has axes {vector}, expected [{block.axes[0]}]",
    )
    return block


def _by_column(name: str, args: tuple[Type, ...]) -> Type:
    block, vector = args
    expect(len(block.axes) == 2, f"operand 0 of {name} has axes {block}, expected a block")
    expect(
        vector.axes == block.axes[1:],
        f"operand 1 of {name} has axes {vector}, expected [{block.axes[1]}]",
    )
    return block


def _drop_last(name: str, args: tuple[Type, ...]) -> Type:
    expect(len(args[0].axes) > 0, f"operand 0 of {name} is a scalar, expected a block or a vector")
    return Type((), args[0].axes[:-1])


def _dot(name: str, args: tuple[Type, ...]) -> Type:
    a, b = args
    expect(
        len(a.axes) == len(b.axes) == 2,
        f"operands of {name} have axes {a} and {b}, expected two blocks",
    )
    expect(
        a.axes[1] == b.axes[1],
        f"operand 1 of {name} has axes {b}, expected its last to be {a.axes[1]}",
    )
    expect(
        a.axes[0] != b.axes[0],
        f"both operands of {name} have rows {a.axes[0]}: relabel one of them",
    )
    return Type((), (a.axes[0], b.axes[0]))


def _outer(name: str, args: tuple[Type, ...]) -> Type:
    a, b = args
    expect(
        len(a.axes) == len(b.axes) == 1,
        f"operands of {name} have axes {a} and {b}, expected two vectors",
    )
    expect(
        a.axes != b.axes, f"both operands of {name} have the axis {a.axes[0]}: relabel one of them"
    )
    return Type((), (*a.axes, *b.axes))


# name -> (number of operands, result type)
FUNCTIONALS: dict[str, tuple[int, Callable[[str, tuple[Type, ...]], Type]]] = {
    "add": (2, _same), "sub": (2, _same), "mul": (2, _same), "div": (2, _same),
    "row_shift": (2, _by_row), "row_scale": (2, _by_row),
    "col_shift": (2, _by_column), "col_scale": (2, _by_column),
    "row_sum": (1, _drop_last), "row_max": (1, _drop_last), "row_min": (1, _drop_last),
    "dot": (2, _dot), "outer": (2, _outer),
}  # fmt: skip
