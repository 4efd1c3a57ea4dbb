"""The signatures of the functional operators of Table 1: operand types and result type.

Each entry states a result type, or refuses operands with a short reason.
Source: Blockbuster Part 1, Table 1 (whose row_sum should reduce axis 1).
"""

from __future__ import annotations

from collections.abc import Callable

from blockbuster.errors import VerifyError
from blockbuster.ir.expr import Expr, arguments
from blockbuster.ir.types import Type


def expect(condition: bool, reason: str, *parts: object) -> None:
    """Raise VerifyError unless ``condition`` holds; ``parts`` are formatted only then."""
    if not condition:
        raise VerifyError(reason.format(*parts) if parts else reason)


def expect_local(name: str, args: tuple[Type, ...]) -> None:
    """Raise VerifyError unless every operand is a local item."""
    for position, arg in enumerate(args):
        expect(
            not arg.lists,
            "operand {} of {} has type {}, expected a local item",
            position,
            name,
            arg,
        )


def expect_arguments(expr: Expr, count: int) -> None:
    """Raise VerifyError unless ``expr`` reads each of ``count`` operands."""
    used = arguments(expr)
    expect(
        sorted(used) == list(range(count)),
        "the expression reads operands {} of {} given",
        sorted(used),
        count,
    )


def _same(name: str, args: tuple[Type, ...]) -> Type:
    a, b = args
    if a != b:
        raise VerifyError(f"operands of {name} have types {a} and {b}, expected equal types")
    return a


def _by_row(name: str, args: tuple[Type, ...]) -> Type:
    block, vector = args
    expect(len(block.axes) == 2, "operand 0 of {} has axes {}, expected a block", name, block)
    expect(
        vector.axes == block.axes[:1],
        "operand 1 of {} has axes {}, expected [{}]",
        name,
        vector,
        block.axes[0],
    )
    return block


def _by_column(name: str, args: tuple[Type, ...]) -> Type:
    block, vector = args
    expect(len(block.axes) == 2, "operand 0 of {} has axes {}, expected a block", name, block)
    expect(
        vector.axes == block.axes[1:],
        "operand 1 of {} has axes {}, expected [{}]",
        name,
        vector,
        block.axes[1],
    )
    return block


def _drop_last(name: str, args: tuple[Type, ...]) -> Type:
    expect(len(args[0].axes) > 0, "operand 0 of {} is a scalar, expected a block or a vector", name)
    return Type((), args[0].axes[:-1])


def _dot(name: str, args: tuple[Type, ...]) -> Type:
    a, b = args
    expect(
        len(a.axes) == len(b.axes) == 2,
        "operands of {} have axes {} and {}, expected two blocks",
        name,
        a,
        b,
    )
    expect(
        a.axes[1] == b.axes[1],
        "operand 1 of {} has axes {}, expected its last to be {}",
        name,
        b,
        a.axes[1],
    )
    expect(
        a.axes[0] != b.axes[0],
        "both operands of {} have rows {}: relabel one of them",
        name,
        a.axes[0],
    )
    return Type((), (a.axes[0], b.axes[0]))


def _outer(name: str, args: tuple[Type, ...]) -> Type:
    a, b = args
    expect(
        len(a.axes) == len(b.axes) == 1,
        "operands of {} have axes {} and {}, expected two vectors",
        name,
        a,
        b,
    )
    expect(
        a.axes != b.axes,
        "both operands of {} have the axis {}: relabel one of them",
        name,
        a.axes[0],
    )
    return Type((), (*a.axes, *b.axes))


# name -> (number of operands, result type)
FUNCTIONALS: dict[str, tuple[int, Callable[[str, tuple[Type, ...]], Type]]] = {
    "add": (2, _same), "sub": (2, _same), "mul": (2, _same), "div": (2, _same),
    "row_shift": (2, _by_row), "row_scale": (2, _by_row),
    "col_shift": (2, _by_column), "col_scale": (2, _by_column),
    "row_sum": (1, _drop_last), "row_prod": (1, _drop_last),
    "row_max": (1, _drop_last), "row_min": (1, _drop_last),
    "dot": (2, _dot), "outer": (2, _outer),
}  # fmt: skip
