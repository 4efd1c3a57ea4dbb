"""Lowering: an array program becomes an unfused block program.

Four steps: every array op is taken apart into primitives (``decompose``), every loop gets a dim of
its own (``own_dims``), the layout of every value is found from the outputs backwards
(``demands``), and every primitive becomes one top-level node of nested maps (``nest``).
Source: Blockbuster Part 1, Table 2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

import numpy as np

from blockbuster.frontend.decompose import decompose
from blockbuster.frontend.demands import layouts, native, wants
from blockbuster.frontend.in_blocks import Blocks, in_blocks
from blockbuster.frontend.layout import Layout, dims_of, natural, step_back, type_of
from blockbuster.frontend.nest import (
    Leaf,
    Named,
    apply_leaf,
    contract_leaf,
    fold_leaf,
    nest,
    op_leaf,
)
from blockbuster.frontend.own_dims import with_own_dims
from blockbuster.frontend.primitive_program import Primitives
from blockbuster.frontend.primitives import (
    Apply,
    Contract,
    Count,
    Fold,
    Opaque,
    Primitive,
    Round,
    Scan,
    Source,
)
from blockbuster.frontend.program import ArrayProgram, Shape, check_program
from blockbuster.frontend.reference_text import UserFunction
from blockbuster.frontend.repeated import read_once
from blockbuster.frontend.strips import Strip, Strips, strips_of
from blockbuster.ir import ops
from blockbuster.ir.builder import Builder
from blockbuster.ir.garbage import collection_paused
from blockbuster.ir.graph import Graph, Index, Output, Read, Value
from blockbuster.ir.lengths import Length, Rule, whole
from blockbuster.ir.ops import Cast, Misc, Pointwise, Transpose
from blockbuster.ir.origin import Origin
from blockbuster.ir.types import Dim, size_class
from blockbuster.ir.views import AxisView, Strided, dims_among, rules_of


def lower(program: ArrayProgram) -> Graph:
    """The block program of an array program: each array operation becomes its unfused subgraph.

    Operations that no rule looks into (``bb.custom``, ``np.sort``) become misc operators. The graph
    knows the program (``Graph.meaning``). Raises TypeError for an argument that is not an array
    program.
    """
    check_program(program)
    with collection_paused():
        graph = _Lowering(program.apart or decompose(program)).graph()
        return replace(graph, meaning=UserFunction(program.without_held()))


class _Lowering:
    """The state of one lowering: the builder and the values made so far, by layout."""

    def __init__(self, program: Primitives) -> None:
        self._builder = Builder()
        program = replace(program, primitives=read_once(program.primitives))
        self._live = program.live
        ends = [value for _, value, _ in program.outputs]
        named = with_own_dims(program.primitives, self._live, ends)
        stored = [(value, strips) for _, value, strips in program.outputs]
        usual = layouts(named, self._live)
        found = in_blocks(Blocks(named, usual, self._live, stored, program.fixed))
        self._layouts = found.layouts
        self._program = replace(program, primitives=tuple(found.primitives))
        self._made: dict[tuple[int, Layout], Value] = {}
        self._converted: dict[tuple[int, Layout, tuple[Dim, ...]], Value] = {}
        """By value, layout, and the loops that the conversion stays inside."""

    def graph(self) -> Graph:
        """The block program: inputs first, then one node per primitive, then outputs."""
        primitives = self._program.primitives
        for position, layout in self._requests():
            if isinstance(primitives[position].op, Source | Count):
                self._made[position, layout] = self._input(primitives[position], layout)
        for position, primitive in enumerate(primitives):
            if self._live[position] and not isinstance(primitive.op, Source | Count):
                layout = self._layouts[position]
                self._made[position, layout] = self._node(primitive, layout)
        names = [name for name, _, _ in self._program.outputs]
        usual = ["out"] if len(names) == 1 else [f"out{i}" for i in range(len(names))]
        outputs = [
            self._output("" if names == usual else name, value, strips)
            for name, value, strips in self._program.outputs
        ]
        return self._builder.finish(*outputs)

    def _requests(self) -> list[tuple[int, Layout]]:
        """Every value with every layout in which it is read, in order of the values."""
        found: dict[tuple[int, Layout], None] = {}
        for position, primitive in enumerate(self._program.primitives):
            if self._live[position]:
                for ref, layout in zip(
                    primitive.operands, wants(primitive, self._layouts[position]), strict=True
                ):
                    found.setdefault((ref.value, self._readable(ref.value, layout)))
        for _, value, _ in self._program.outputs:
            found.setdefault((value, self._layouts[value]))
        order: dict[str, int] = {}  # of the sources, whose views stand where the source does
        read = dict.fromkeys(self._source(position) for position, _ in found)
        for position, primitive in enumerate(self._program.primitives):
            name = self._source(position)
            if name and order.setdefault(name, position) == position and name not in read:
                found.setdefault((position, natural(primitive.shape)))  # unread, yet an input
        return sorted(found, key=lambda r: (order.get(self._source(r[0]), r[0]), r[0]))

    def _source(self, position: int) -> str:
        op = self._program.primitives[position].op
        return op.name if isinstance(op, Source) else ""

    def _readable(self, position: int, want: Layout) -> Layout:
        """The layout to start from where ``want`` is needed: inputs are read in any."""
        primitive = self._program.primitives[position]
        if isinstance(primitive.op, Source | Count):
            return native(primitive, want)
        return self._layouts[position]

    def _input(self, primitive: Primitive, layout: Layout) -> Value:
        op = primitive.op
        if isinstance(op, Count):
            (level,) = layout
            view = Index(level.dim, self._program.lengths.get(size_class(level.dim)))
            return self._builder.input(type_of(layout), view, primitive.hint)
        assert isinstance(op, Source)
        dims = {level.axis: level.dim for level in layout}
        strips = op.strips or strips_of(tuple(range(len(primitive.shape))), primitive.shape)
        axes = tuple(self._with_line(self._with_extent(strip).view(dims)) for strip in strips)
        in_order = list(dims_among(axes)) == [level.dim for level in layout]
        hint = op.name if in_order else f"{op.name}T"
        return self._builder.input(type_of(layout), Read(op.name, axes, op.dtype), hint)

    def _with_extent(self, strip: Strip) -> Strip:
        """The strip with what is known of the extent of its axis."""
        of, known = str(strip.of), self._program.lengths.get(str(strip.of))
        if of in self._program.fixed:  # a slice of it shows in no shape: sizes say it, or this
            known = whole(self._program.fixed[of])
        return replace(strip, extent=known) if strip.extent is None else strip

    def _with_line(self, axis: AxisView) -> AxisView:
        """The axis with the user's line that asks for its sizes, if one does."""
        if not isinstance(axis, Strided) or not self._program.asked:
            return axis
        own = [*rules_of([axis])]
        dims = {rule.dim for rule in own} | {size_class(axis.of)}
        of = [rule for rule in self._program.asked if rule.dim in dims]
        lines = [rule.because for rule in sorted(of, key=lambda rule: rule not in own)]
        return replace(axis, because=lines[0]) if lines else axis

    def _node(self, primitive: Primitive, layout: Layout) -> Value:
        asked = wants(primitive, layout)
        operands = [
            Named(
                self._value(ref.value, wanted, self._in_common(ref.value, wanted, layout)),
                self._program.primitives[ref.value].hint,
            )
            for ref, wanted in zip(primitive.operands, asked, strict=True)
        ]
        origin = Origin(where=primitive.where)
        if isinstance(primitive.op, Opaque):
            op = _misc(primitive.op, primitive.shape, self._program.lengths)
            values = (operand.value for operand in operands)
            return self._builder.add(op, *values, hints=(primitive.hint,), origin=origin)[0]
        leaf = _leaf(primitive, layout, asked, origin)
        return nest(
            self._builder, dims_of(layout), operands, leaf, hint=primitive.hint, origin=origin
        )

    def _value(self, position: int, want: Layout, common: tuple[Dim, ...]) -> Value:
        """A value in the layout in which it is wanted, converted if it was made in another.

        Nothing of this moves data: dims are relabeled, axes of extent 1 dropped or added, and lists
        and axes reordered, in this order, one node for each. A relabeling stays inside the loops
        that the value and its reader have in ``common``, so that these fuse.
        """
        if (position, want) in self._made:
            return self._made[position, want]
        if (position, want, common) not in self._converted:
            primitive = self._program.primitives[position]
            origin = Origin(where=primitive.where)
            before, op = step_back(want, self._readable(position, want))
            value = self._value(position, before, common)
            maps = dims_of(before) if isinstance(op, Pointwise) else common
            self._converted[position, want, common] = nest(
                self._builder,
                () if isinstance(op, Transpose) else maps,
                [Named(value, primitive.hint)],
                op_leaf(op, hint=primitive.hint, origin=origin),
                hint=primitive.hint,
                origin=origin,
            )
        return self._converted[position, want, common]

    def _in_common(self, position: int, want: Layout, reader: Layout) -> tuple[Dim, ...]:
        """The outer loops of a computed value as it is made, as it is read, and of its reader."""
        made = self._layouts[position]
        if isinstance(self._program.primitives[position].op, Source | Count | Opaque):
            return ()
        levels = zip(made, want, dims_of(reader), strict=False)
        same = takewhile(lambda each: each[0] == each[1] and each[1].dim == each[2], levels)
        return tuple(level.dim for level, _, _ in same)

    def _output(self, name: str, value: int, strips: Strips) -> Output:
        layout = self._layouts[value]
        dims = {level.axis: level.dim for level in layout}
        axes = tuple(strip.view(dims) for strip in strips)
        return Output(self._made[value, layout], name, axes)


@dataclass(frozen=True)
class WholeArrays:
    """A misc function that shows ``fn`` the axes of extent 1 which block types leave out."""

    fn: Callable[..., Any]
    operand_units: tuple[tuple[int, ...], ...]
    result_units: tuple[int, ...]

    @property
    def only_moves(self) -> bool:
        """True if ``fn`` only moves elements: then the result has the dtype of the operand."""
        return bool(getattr(self.fn, "only_moves", False))

    def __call__(self, *arrays: Any) -> Any:
        shown = []
        for array, units in zip(arrays, self.operand_units, strict=True):
            extents = list(array.shape)
            for unit in units:
                extents.insert(unit, 1)
            shown.append(array.reshape(extents))
        made = self.fn(*shown)
        made = made if hasattr(made, "reshape") else np.asarray(made)  # a tensor stays one
        return made.reshape([n for i, n in enumerate(made.shape) if i not in self.result_units])


def _leaf(primitive: Primitive, layout: Layout, asked: Sequence[Layout], origin: Origin) -> Leaf:
    """What the innermost body of a primitive computes."""
    axes, hint = type_of(layout).axes, primitive.hint
    match primitive.op:
        case Apply(expr):
            return apply_leaf(expr, axes, hint=hint, origin=origin)
        case Round(dtype):
            return op_leaf(Cast(dtype), hint=hint, origin=origin)
        case Fold(monoid=monoid):
            return fold_leaf(monoid, asked[0][-1].dim, hint=hint, origin=origin)
        case Scan(monoid=monoid, back=back):
            return op_leaf(ops.Scan(monoid, back), hint=hint, origin=origin)
        case Contract(inner):
            dim = asked[0][-1].dim if isinstance(inner, str) else None
            return contract_leaf(dim, axes, hint=hint, origin=origin)
    raise AssertionError(f"{primitive.op} has no body")


def _misc(op: Opaque, shape: Shape, lengths: Mapping[Dim, Length]) -> Misc:
    operand_units = tuple(map(_units, op.shapes))
    fn = op.fn
    if any(operand_units) or _units(shape):
        fn = WholeArrays(op.fn, operand_units, _units(shape))
    type = type_of(natural(shape))
    own = dict.fromkeys(map(size_class, type.lists))
    rules = tuple(Rule(dim, lengths[dim]) for dim in own if dim in lengths)
    return Misc(op.name, fn, (type,), rules)


def _units(shape: Shape) -> tuple[int, ...]:
    return tuple(i for i, axis in enumerate(shape) if axis == 1)
