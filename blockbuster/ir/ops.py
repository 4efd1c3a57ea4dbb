"""The operators of a block program: their names, and the types of their operands and results.

An operator defines its result types and its flops; the semantics tables of ``blockbuster.interp``
define its meaning. Sources: Blockbuster Part 1, Table 1 and section 2.1. Beside the paper's
operators there are those that real programs need (``sub div col_scale col_shift row_prod row_max
row_min``, ``pointwise``, ``cast``) and the addressing operators ``transpose`` and ``relabel``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from blockbuster.errors import VerifyError
from blockbuster.ir.expr import Expr, calls
from blockbuster.ir.lengths import Rule
from blockbuster.ir.results import Accumulate as Accumulate
from blockbuster.ir.results import Collect as Collect
from blockbuster.ir.results import Rescale as Rescale
from blockbuster.ir.results import Result as Result
from blockbuster.ir.signatures import FUNCTIONALS, expect, expect_arguments, expect_local
from blockbuster.ir.types import Dim, Type, size_class

if TYPE_CHECKING:
    from blockbuster.ir.graph import Graph, Value

IDENTITY: Mapping[str, float] = {"+": 0.0, "prod": 1.0, "max": -math.inf, "min": math.inf}
"""By monoid, the value that changes nothing: that of a fold over nothing."""
MONOIDS = tuple(IDENTITY)
COMBINE = {"+": "add", "prod": "mul", "max": "maximum", "min": "minimum"}
"""By monoid, the scalar function that combines two values."""
ROW_FOLDS = {"+": "row_sum", "prod": "row_prod", "max": "row_max", "min": "row_min"}
"""By monoid, the functional operator that folds rows."""
MONOID_OF = {name: monoid for monoid, name in ROW_FOLDS.items()}

Flops = tuple[int, tuple[Dim, ...]]
"""Operations of one execution: a count times the extents of some dims."""


class Op:
    """An operator. Subclasses are frozen dataclasses; equality is structural."""

    def result_types(self, args: tuple[Type, ...]) -> tuple[Type, ...]:
        """Types of the results for operands of types ``args``.

        Raises VerifyError with a short reason where the operands do not fit.
        """
        raise AssertionError(f"{type(self).__name__} does not state its result types")

    def flops(self, args: tuple[Type, ...]) -> Flops:
        """Operations of one execution; addressing operators do none."""
        return 0, ()


@dataclass(frozen=True)
class Functional(Op):
    """A named functional operator of Table 1: ``dot(a, b)`` is ``a @ b.T``, and so on.

    ``row_sum``, ``row_prod``, ``row_max`` and ``row_min`` reduce the last axis of a block or a
    vector.
    """

    name: str

    def __post_init__(self) -> None:
        if self.name not in FUNCTIONALS:
            raise ValueError(
                f"unknown functional operator {self.name!r}; known: {', '.join(FUNCTIONALS)}"
            )

    def result_types(self, args: tuple[Type, ...]) -> tuple[Type, ...]:
        arity, result = FUNCTIONALS[self.name]
        expect(len(args) == arity, "{} takes {} operands, got {}", self.name, arity, len(args))
        expect_local(self.name, args)
        return (result(self.name, args),)

    def flops(self, args: tuple[Type, ...]) -> Flops:
        if self.name == "dot":
            return 2, (*args[0].axes, args[1].axes[0])
        if self.name == "outer":
            return 1, (*args[0].axes, *args[1].axes)
        return 1, args[0].axes


@dataclass(frozen=True)
class Elementwise(Op):
    """A scalar expression applied to each element of operands of one type."""

    expr: Expr

    def result_types(self, args: tuple[Type, ...]) -> tuple[Type, ...]:
        expect_local("elementwise", args)
        expect(len(args) > 0, "an elementwise operator needs an operand")
        expect_arguments(self.expr, len(args))
        if args != args[:1] * len(args):
            listed = ", ".join(map(str, args))
            raise VerifyError(f"operands of elementwise have types {listed}, expected equal")
        return (args[0],)

    def flops(self, args: tuple[Type, ...]) -> Flops:
        return calls(self.expr), args[0].axes


@dataclass(frozen=True)
class Pointwise(Op):
    """A scalar expression over operands that are matched by dim; the result has ``axes``.

    An operand may lack axes of the result (it is broadcast) or have others of extent 1, which are
    dropped: the axis of a list-only dim.
    """

    expr: Expr
    axes: tuple[Dim, ...]

    def result_types(self, args: tuple[Type, ...]) -> tuple[Type, ...]:
        expect_local("pointwise", args)
        expect_arguments(self.expr, len(args))
        expect(
            len(set(self.axes)) == len(self.axes),
            "pointwise result axes {} repeat a dim",
            self.axes,
        )
        for position, arg in enumerate(args):
            shared = tuple(d for d in arg.axes if d in self.axes)
            order = tuple(d for d in self.axes if d in shared)
            expect(
                shared == order,
                "operand {} of pointwise has axes {}, expected the order {}",
                position,
                arg,
                order,
            )
        return (Type((), self.axes),)

    def flops(self, args: tuple[Type, ...]) -> Flops:
        return calls(self.expr), self.axes


@dataclass(frozen=True)
class Cast(Op):
    """Rounding of every element to a dtype: float16, bfloat16, float32 or float64."""

    dtype: str

    def result_types(self, args: tuple[Type, ...]) -> tuple[Type, ...]:
        expect(len(args) == 1, "cast takes 1 operand, got {}", len(args))
        expect_local("cast", args)
        return args


@dataclass(frozen=True)
class Scan(Op):
    """The folds of an item's last axis up to each element, or ``back`` from each to the last.

    Directly in the body of a map over that axis it goes on from the iteration before.
    """

    monoid: str
    back: bool = False

    def result_types(self, args: tuple[Type, ...]) -> tuple[Type, ...]:
        expect(len(args) == 1, "scan takes 1 operand, got {}", len(args))
        expect_local("scan", args)
        _expect_monoid(self.monoid)
        expect(len(args[0].axes) > 0, "the operand of scan is a scalar, expected an axis")
        return args

    def flops(self, args: tuple[Type, ...]) -> Flops:
        return 1, args[0].axes


@dataclass(frozen=True)
class Transpose(Op):
    """The same elements read in another order of lists and axes: addressing, no traffic."""

    lists: tuple[Dim, ...]
    axes: tuple[Dim, ...]

    def result_types(self, args: tuple[Type, ...]) -> tuple[Type, ...]:
        expect(len(args) == 1, "transpose takes 1 operand, got {}", len(args))
        result = Type(self.lists, self.axes)
        same = sorted(self.lists) == sorted(args[0].lists) and sorted(self.axes) == sorted(
            args[0].axes
        )
        expect(same, "transpose gives {}, which does not reorder {}", result, args[0])
        return (result,)


@dataclass(frozen=True)
class Relabel(Op):
    """The same value under a fresh dim of the same size class: addressing, no traffic."""

    old: Dim
    new: Dim

    def result_types(self, args: tuple[Type, ...]) -> tuple[Type, ...]:
        expect(len(args) == 1, "relabel takes 1 operand, got {}", len(args))
        (arg,) = args
        dims = arg.lists + arg.axes
        expect(self.old in dims, "relabel of {}: the operand has type {}", self.old, arg)
        expect(
            self.new not in dims,
            "relabel to {}: the operand {} has that dim already",
            self.new,
            arg,
        )
        expect(
            size_class(self.old) == size_class(self.new),
            "relabel of {} to {}: the dims have different sizes",
            self.old,
            self.new,
        )

        def renamed(dims: tuple[Dim, ...]) -> tuple[Dim, ...]:
            return tuple(self.new if d == self.old else d for d in dims)

        return (Type(renamed(arg.lists), renamed(arg.axes)),)


@dataclass(frozen=True)
class Reduce(Op):
    """A list over ``dim`` folded to one item."""

    dim: Dim
    monoid: str

    def result_types(self, args: tuple[Type, ...]) -> tuple[Type, ...]:
        expect(len(args) == 1, "reduce takes 1 operand, got {}", len(args))
        _expect_monoid(self.monoid)
        expect(
            args[0].lists[:1] == (self.dim,),
            "operand of reduce has type {}, expected a list over {}",
            args[0],
            self.dim,
        )
        result = args[0].element()
        expect(
            not result.buffered,
            "reduce over {} of {} would accumulate a list: expected one level",
            self.dim,
            args[0],
        )
        carried = "reduce over {}: the items {} still carry that axis"
        expect(self.dim not in result.axes, carried, self.dim, result)
        return (result,)

    def flops(self, args: tuple[Type, ...]) -> Flops:
        return 1, (*args[0].axes,)


@dataclass(frozen=True)
class Head(Op):
    """The first entry of a list over ``dim``: addressing, which rule 7 needs."""

    dim: Dim

    def result_types(self, args: tuple[Type, ...]) -> tuple[Type, ...]:
        expect(len(args) == 1, "head takes 1 operand, got {}", len(args))
        expect(
            args[0].lists[:1] == (self.dim,),
            "operand of head has type {}, expected a list over {}",
            args[0],
            self.dim,
        )
        return (args[0].element(),)


@dataclass(frozen=True)
class Misc(Op):
    """A function of whole arrays, opaque to the rules: the last resort that expresses anything.

    ``fn`` takes and returns whole NumPy arrays, axes in the order of each value's dims
    (``operands`` and ``results`` give them). It is looked up by ``name`` when text is parsed.
    ``rules`` give the sizes of dims that only its results have.
    """

    name: str
    fn: Callable[..., Any]
    results: tuple[Type, ...]
    rules: tuple[Rule, ...] = ()

    @property
    def only_moves(self) -> bool:
        """True if the function says of itself that it only moves elements."""
        return bool(getattr(self.fn, "only_moves", False))

    def result_types(self, args: tuple[Type, ...]) -> tuple[Type, ...]:
        return self.results


@dataclass(frozen=True)
class Map(Op):
    """An inner graph applied to each iteration over ``dim``.

    ``iterated[i]`` tells whether operand i is a list over ``dim`` (its element enters the body) or
    is passed whole. ``results[i]`` tells what becomes of output i of the body.
    A map that starts at 1 is given what iteration 0 gives (rule 7): after the operands that enter
    the body stands one more for each result, its first value.
    """

    dim: Dim
    body: Graph
    iterated: tuple[bool, ...]
    results: tuple[Result, ...]
    start: int = 0

    @cached_property
    def _hash(self) -> int:
        return hash((self.dim, self.body, self.iterated, self.results, self.start))

    def __hash__(self) -> int:
        return self._hash

    def result_types(self, args: tuple[Type, ...]) -> tuple[Type, ...]:
        expected = len(self.iterated) + (len(self.results) if self.start else 0)
        expect(len(args) == expected, "map takes {} operands, got {}", expected, len(args))
        return self._types

    @cached_property
    def _types(self) -> tuple[Type, ...]:
        items = self.body.types_of([output.value for output in self.body.outputs])
        dim = self.dim
        return tuple(
            [
                _list_of(dim, item.lists, item.axes) if isinstance(result, Collect) else item
                for item, result in zip(items, self.results, strict=True)
            ]
        )

    def around(self, body: Graph) -> Map:
        """The same loop with another body of the same ports."""
        return Map(self.dim, body, self.iterated, self.results, self.start)

    def entering(self, operands: tuple[Value, ...]) -> tuple[Value, ...]:
        """The operands of a map that enter its body."""
        return operands[: len(self.iterated)]

    def first_values(self, operands: tuple[Value, ...]) -> tuple[Value, ...]:
        """The operands of a map that are results of iteration 0, if it starts at 1."""
        return operands[len(self.iterated) :]

    @property
    def serial(self) -> bool:
        """True if iterations are not independent: some result is accumulated, or a scan goes on."""
        return bool(self.scans) or any(not isinstance(r, Collect) for r in self.results)

    @cached_property
    def scans(self) -> tuple[Scan, ...]:
        """The scans of the body that go on from iteration to iteration."""
        body = self.body
        found = ((op, body.type_of(body.nodes[at].operands[0])) for at, op in body.of_type(Scan))
        return tuple(op for op, type in found if type.axes[-1] == self.dim)

    def group_of(self, port: int) -> tuple[int, ...]:
        """The results that must stay in one map with ``port``: its group, or itself alone.

        The members of a group read the partial values of their leads. So a rule that changes what a
        lead accumulates changes its members, and members without their leads mean nothing.
        """
        return next(group for group in self.groups if port in group)

    @cached_property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The results by group, in order: leads with all members that read them."""
        group = [*range(len(self.results))]
        for port, result in enumerate(self.results):
            for lead in result.leads if isinstance(result, Rescale) else ():
                old, new = sorted((group[port], group[lead]), reverse=True)
                group = [new if each == old else each for each in group]
        return tuple(
            tuple(port for port, each in enumerate(group) if each == first)
            for first in dict.fromkeys(group)
        )


def _expect_monoid(monoid: str) -> None:
    expect(monoid in MONOIDS, "unknown monoid {!r}; known: {}", monoid, ", ".join(MONOIDS))


@lru_cache(maxsize=4096)
def _list_of(dim: Dim, lists: tuple[Dim, ...], axes: tuple[Dim, ...]) -> Type:
    """``Type.listed``; one object for equal types, since hundreds are compared at every step."""
    return Type(lists, axes).listed(dim)
