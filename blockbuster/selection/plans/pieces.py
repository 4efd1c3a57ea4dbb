"""Cutting a block program at its misc operators: pieces that are fused, with calls between them.

    x -- exp -- dot -- np.sort -- mul -- out        piece 1: exp, dot   call: np.sort   piece 2: mul
           `--------------------- add

A misc operator is a function of whole arrays: no rule looks into it, and no kernel can contain it.
So the top level is cut there into pieces that run one after the other. A node joins the latest
piece that all its readers allow, so that it stands next to them. Values that cross a cut become
whole arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from blockbuster.frontend.library_calls import is_library
from blockbuster.ir.builder import Builder
from blockbuster.ir.graph import Graph, Output, Read, Value
from blockbuster.ir.ops import Misc, Relabel, Transpose
from blockbuster.ir.types import Dim, Type, whole
from blockbuster.ir.views import Strided, array_dim
from blockbuster.selection.plans.stages import is_view, stages

Axes = tuple[Dim | None, ...]


def renamed_axes(axes: Iterable[Dim | None], dims: Mapping[Dim, Dim]) -> Axes:
    """``axes`` with other names of dims."""
    return tuple(None if dim is None else dims.get(dim, dim) for dim in axes)


@dataclass(frozen=True)
class Seen:
    """An array with its axes in another order: ``order[i]`` is the axis that shows as axis i.

    None shows an axis of extent 1.
    """

    array: str
    order: tuple[int | None, ...]


@dataclass(frozen=True)
class Piece:
    """A block program without misc operators, and the arrays that its outputs fill.

    ``names``: of arrays, by those that they have in the program, where it was made for an equal
    piece; ``dims`` those of dims.
    """

    graph: Graph
    writes: tuple[str, ...]
    names: Mapping[str, str] = field(default_factory=dict, compare=False)
    dims: Mapping[Dim, Dim] = field(default_factory=dict, compare=False)

    @cached_property
    def reads(self) -> tuple[str, ...]:
        """The names of the arrays that its inputs read."""
        views = (given.view for given in self.graph.inputs)
        read = dict.fromkeys(view.source for view in views if isinstance(view, Read))
        return tuple(self.names.get(name, name) for name in read)

    @property
    def written(self) -> Iterator[tuple[str, Axes]]:
        """The arrays that it writes, or parts of them, and their axes."""
        for name, one in zip(self.graph.output_names, self.graph.outputs, strict=True):
            axes = one.axes or whole(self.graph.type_of(one.value))
            yield self.names.get(name, name), renamed_axes(map(array_dim, axes), self.dims)


@dataclass(frozen=True)
class Call:
    """A function of whole arrays that runs between pieces. ``axes``: of the arrays it returns; a
    library's call may leave those of one element (None) out.
    """

    name: str
    fn: Callable[..., Any]
    operands: tuple[Seen, ...]
    writes: tuple[str, ...]
    axes: tuple[Axes, ...]
    where: str = ""

    @cached_property
    def reads(self) -> tuple[str, ...]:
        """The names of its operands' arrays, each once."""
        return tuple(dict.fromkeys(seen.array for seen in self.operands))

    @property
    def is_library(self) -> bool:
        """True for calls that take the place of kernels: what they take is known."""
        return is_library(self.fn)

    @property
    def dtype(self) -> str:
        """The dtype of its results, if that does not follow from its operands' dtypes."""
        return getattr(self.fn, "dtype", "") if self.is_library else ""

    @property
    def only_moves(self) -> bool:
        """True for copies that lowering makes: the user does not see what they are given."""
        return bool(getattr(self.fn, "only_moves", False))


@dataclass(frozen=True)
class Whole:
    """Text that computes arrays operator by operator (whole_text.py). ``axes``: of those arrays."""

    text: str = field(repr=False)
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    axes: tuple[Axes, ...]


@dataclass(frozen=True)
class Pieces:
    """Pieces and calls in order; ``results`` are the program's outputs, under ``names``."""

    inputs: dict[str, Axes]
    steps: tuple[Piece | Call | Whole, ...]
    names: tuple[str, ...]
    results: tuple[Seen, ...]


def in_pieces(
    graph: Graph, cut: Collection[str] | None = None, taken: Collection[str] = ()
) -> Pieces:
    """``graph`` as pieces and calls; one piece where there is no misc operator at the top level.

    ``cut``: the outputs that other graphs read, if this is a part of a program. Each of them is an
    array of its own name with its axes in order, and the names of all arrays that are no outputs
    begin with that of the first output; ``taken`` are names that none of those gets.
    """
    return _Cutting(graph, cut, taken).sequence()


class _Cutting:
    def __init__(self, graph: Graph, cut: Collection[str] | None, taken: Collection[str]) -> None:
        self._graph, self._cut, self._part = graph, cut or (), cut is not None
        self._stages = stages(graph)
        self._inputs: dict[str, Axes] = {}
        for given in graph.inputs:
            if isinstance(given.view, Read):
                self._inputs.setdefault(given.view.source, tuple(map(array_dim, given.view.axes)))
        self._taken = dict.fromkeys((*self._inputs, *taken))
        self._arrays: dict[Value, str] = {}
        self._writes: dict[int, list[tuple[str, Output]]] = {}
        self._parted = _parted(graph)
        self._with_units: dict[Value, Axes] = {}  # of arrays of calls, with axes of one element

    def sequence(self) -> Pieces:
        """The steps in order."""
        shown = self._shown_as_they_are() if self._part else {}
        shown |= self._shown_with_units()
        read_elsewhere = (value for value, name in shown.items() if name in self._cut)
        for value in dict.fromkeys((*self._crossing(), *read_elsewhere)):
            self._arrays[value] = shown.get(value) or self._name(self._hint(value))
            if not self._is_misc(value):
                output = Output(value, axes=whole(self._type(value)))
                self._write(self._stage(value), self._arrays[value], output)
        names = tuple(dict.fromkeys(self._graph.output_names))
        results = tuple(map(self._result, names))
        steps: list[Piece | Call] = []
        for stage in range(max((*self._stages, *self._writes), default=0) + 1):
            if stage in self._writes:
                steps.append(self._piece(stage))
            for position, op in self._graph.of_type(Misc):
                if self._stages[position] == stage:
                    steps.append(self._call(position, op))
        return Pieces(self._inputs, tuple(steps), names, results)

    # values ----------------------------------------------------------------------

    def _type(self, value: Value) -> Type:
        return self._graph.type_of(value)

    def _is_misc(self, value: Value) -> bool:
        return value.node >= 0 and isinstance(self._graph.nodes[value.node].op, Misc)

    def _stage(self, value: Value) -> int:
        return self._stages[value.node] if value.node >= 0 else 0

    def _base(self, value: Value, axes: Axes) -> tuple[Value, Axes]:
        """The value that ``value`` is a view of, and ``axes`` by the dims of that one."""
        while value.node >= 0:
            node = self._graph.nodes[value.node]
            if not isinstance(node.op, Relabel | Transpose) or not node.types[0].buffered:
                break
            if isinstance(node.op, Relabel):
                op = node.op
                axes = tuple(op.old if d == op.new else d for d in axes)
            value = node.operands[0]
        return value, axes

    def _shown(self, output: Output) -> tuple[Value, Axes]:
        """The value of which an output is a view, and the output's axes by the dims of that one."""
        axes = output.axes if output.axes is not None else whole(self._type(output.value))
        return self._base(output.value, tuple(map(array_dim, axes)))

    def _source(self, value: Value) -> Read | None:
        """What ``value`` reads if it is an input that shows an array as it is."""
        view = self._graph.inputs[value.port].view if value.node < 0 else None
        if not isinstance(view, Read) or any(isinstance(axis, Strided) for axis in view.axes):
            return None
        return view

    def _last_stage(self, values: Iterable[Value]) -> int:
        """The first piece in which all of ``values`` are there."""
        return max(self._stage(value) + self._is_misc(value) for value in values)

    def _crossing(self) -> Iterator[Value]:
        """The values that calls read or make, or pieces read that do not make them."""
        found: dict[Value, None] = {}
        for position, node in enumerate(self._graph.nodes):
            is_call = isinstance(node.op, Misc)
            if is_call:
                found.update(dict.fromkeys(Value(position, p) for p in range(len(node.types))))
            if is_view(self._graph, position):
                continue
            for operand in node.operands:
                base, _ = self._base(operand, ())
                apart = base.node >= 0 and self._stage(base) != self._stages[position]
                if apart or (is_call and self._source(base) is None):
                    found.setdefault(base)
        for outputs in self._parted.values():
            bases = [self._base(output.value, ())[0] for output in outputs]
            last = self._last_stage(bases)
            found.update((b, None) for b in bases if b.node >= 0 and self._stage(b) != last)
        return iter(sorted(found))

    def _shown_as_they_are(self) -> dict[Value, str]:
        """The values that are outputs with their axes in order, and the names of those."""
        found: dict[Value, str] = {}
        for name, output in zip(self._graph.output_names, self._graph.outputs, strict=True):
            base, dims = self._shown(output)
            if name not in self._parted and dims == whole(self._type(base)):
                found.setdefault(base, name)
        return found

    def _shown_with_units(self) -> dict[Value, str]:
        """The results of a library's calls that only a cut shows, with axes of one element between
        theirs: the call writes that array itself.
        """
        read = [
            self._base(o, ())[0]
            for at, node in enumerate(self._graph.nodes)
            for o in node.operands
            if not is_view(self._graph, at)
        ]
        read += [self._base(output.value, ())[0] for output in self._graph.outputs]
        found: dict[Value, str] = {}
        for name, output in zip(self._graph.output_names, self._graph.outputs, strict=True):
            base, dims = self._shown(output)
            node = self._graph.nodes[base.node] if self._is_misc(base) else None
            if node is None or not is_library(getattr(node.op, "fn", None)):
                continue
            long = tuple(dim for dim in dims if dim is not None)
            alone = name in self._cut and name not in self._parted and read.count(base) == 1
            if alone and len(long) < len(dims) and long == whole(self._type(base)):
                found[base], self._with_units[base] = name, dims
        return found

    def _hint(self, value: Value) -> str:
        if value.node < 0:
            return self._graph.inputs[value.port].hint
        hints = self._graph.nodes[value.node].hints
        return hints[value.port] if value.port < len(hints) else ""

    def _name(self, hint: str) -> str:
        word = f"{self._graph.output_names[0]}_{hint or 't'}" if self._part else hint or "t"
        name, number = word, 0
        names = (*self._taken, *self._graph.output_names)
        while name in names:
            number += 1
            name = f"{word}_{number}"
        self._taken[name] = None
        return name

    # steps -----------------------------------------------------------------------

    def _write(self, stage: int, name: str, output: Output) -> None:
        self._writes.setdefault(stage, []).append((name, output))

    def _result(self, name: str) -> Seen:
        """Where the program's output is found: an array that crosses anyway, or one of its own."""
        output = self._graph.outputs[self._graph.output_names.index(name)]
        base, dims = self._shown(output)
        in_order = Seen(name, tuple(range(len(dims))))
        if name not in self._parted:
            if base in self._with_units:
                return in_order
            if base in self._arrays:
                seen = self._seen(self._arrays[base], whole(self._type(base)), dims)
                if name not in self._cut or seen == in_order:
                    return seen
        outputs = self._parted.get(name, (output,))
        while name in self._taken:
            name += "_out"
        self._taken[name] = None
        stage = self._last_stage(self._base(output.value, ())[0] for output in outputs)
        for output in outputs:
            self._write(stage, name, output)
        return replace(in_order, array=name)

    def _seen(self, name: str, axes: Axes, wanted: Axes) -> Seen:
        return Seen(name, tuple(None if d is None else axes.index(d) for d in wanted))

    def _call(self, position: int, op: Misc) -> Call:
        node = self._graph.nodes[position]
        operands = []
        for operand in node.operands:
            base, dims = self._base(operand, whole(self._type(operand)))
            read = self._source(base)
            array = read.source if read else self._arrays[base]
            axes = tuple(map(array_dim, read.axes)) if read else whole(self._type(base))
            operands.append(self._seen(array, axes, dims))
        writes = tuple(self._arrays[Value(position, port)] for port in range(len(node.types)))
        where = ", ".join(map(str, node.origin.lines()))
        made = (
            self._with_units.get(Value(position, p), whole(t)) for p, t in enumerate(node.types)
        )
        return Call(op.name, op.fn, tuple(operands), writes, tuple(made), where)

    def _piece(self, stage: int) -> Piece:
        names = tuple(dict.fromkeys(name for name, _ in self._writes[stage]))
        all_of_it = names == tuple(dict.fromkeys(self._graph.output_names))
        if all_of_it and not any(True for _ in self._graph.of_type(Misc)):
            return Piece(self._graph, names)
        making = _Making(self, stage)
        outputs = [
            Output(making.value(output.value), name, output.axes)
            for name, output in self._writes[stage]
        ]
        return Piece(making.builder.finish(*outputs), names)


@dataclass
class _Making:
    """A piece being built: values of the whole program, and what they are in the piece."""

    cutting: _Cutting
    stage: int
    builder: Builder = field(default_factory=Builder)
    made: dict[Value, Value] = field(default_factory=dict)

    def value(self, value: Value) -> Value:
        """``value`` in the piece: made there, viewed there, or read from an array."""
        if value not in self.made:
            self._make(value)
        return self.made[value]

    def _make(self, value: Value) -> None:
        graph, cutting = self.cutting._graph, self.cutting
        if value.node < 0:
            given = graph.inputs[value.port]
            self.made[value] = self.builder.input(given.type, given.view, given.hint)
            return
        node = graph.nodes[value.node]
        here = cutting._stages[value.node] == self.stage and not isinstance(node.op, Misc)
        if here or is_view(graph, value.node):
            operands = [self.value(operand) for operand in node.operands]
            results = self.builder.add(node.op, *operands, hints=node.hints, origin=node.origin)
            self.made.update({Value(value.node, p): made for p, made in enumerate(results)})
            return
        type, name = graph.type_of(value), cutting._arrays[value]
        self.made[value] = self.builder.input(type, Read(name, whole(type)), name)


def _parted(graph: Graph) -> dict[str, tuple[Output, ...]]:
    """The outputs that fill parts of one array, by its name."""
    found: dict[str, list[Output]] = {}
    for name, output in zip(graph.output_names, graph.outputs, strict=True):
        found.setdefault(name, []).append(output)
    return {
        name: tuple(outputs)
        for name, outputs in found.items()
        if len(outputs) > 1 or any(isinstance(axis, Strided) for axis in outputs[0].axes or ())
    }
