"""Lowering: from a block program to loops over tiles; maps become loops, buffered values arrays.

A value is either a tile or *stored*: it lies in global memory, with one item for each iteration of
the loops over its lists. Iterating over a stored value adds no statement: an item's place follows,
by dim, from the loops around an access. A collected result is stored where its innermost item is
computed, directly into the array that needs it: an output, an outer list or a workspace.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from blockbuster.emit.tile.cut import Workspaces, pieces
from blockbuster.emit.tile.dataflow import defined, workspace_names, workspaces_in_order
from blockbuster.emit.tile.monoids import AS_IT_IS, COMBINED, kept_empty
from blockbuster.emit.tile.pointwise import in_tiles
from blockbuster.emit.tile.program import (
    INPUT,
    OUTPUT,
    Buffer,
    BufferAxis,
    Fold,
    For,
    Init,
    Iota,
    Let,
    Load,
    Member,
    Nest,
    Stmt,
    Store,
    Tile,
    TileProgram,
    View,
)
from blockbuster.errors import EmitError, message
from blockbuster.ir.graph import Graph, Index, Node, Read, Value
from blockbuster.ir.list_only import list_only
from blockbuster.ir.ops import (
    ROW_FOLDS,
    Accumulate,
    Cast,
    Collect,
    Elementwise,
    Functional,
    Head,
    Map,
    Misc,
    Pointwise,
    Reduce,
    Relabel,
    Rescale,
    Scan,
    Transpose,
)
from blockbuster.ir.types import Dim, Type
from blockbuster.ir.views import array_dim, dims_among, relabeled


@dataclass(frozen=True)
class Stored:
    """A value in global memory: the view of its array, or the dim of an index vector."""

    type: Type
    place: View | Dim


Targets: TypeAlias = dict[Value, list[View]]


def _is_input(entry: Tile | Stored) -> bool:
    """True for an item of an array that the program is given."""
    place = entry.place if isinstance(entry, Stored) else None
    return isinstance(place, View) and place.buffer.space == INPUT


@dataclass
class Level:
    """A graph being lowered inside loops over ``path``; ``targets``: where its values must go."""

    graph: Graph
    values: dict[Value, Tile | Stored]
    path: tuple[Dim, ...]
    targets: Targets
    body: list[Stmt] = field(default_factory=list)
    starts: list[Init] = field(default_factory=list)
    """Of accumulators of scans, which the loop goes on with."""


def lower_to_tiles(graph: Graph) -> TileProgram:
    """The tile program of any block program: unfused, partly or wholly fused.

    One nest per top-level map or reduction, in graph order; local operators join the nest before
    them. Raises EmitError for misc operators and peeled loops, which have no tiles.
    """
    return _Lowering(graph).program()


class _Lowering:
    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._tiles = 0
        self._inputs: dict[str, Buffer] = {}
        self._values: dict[Value, Tile | Stored] = {
            Value(-1, port): self._given(port) for port in range(len(graph.inputs))
        }
        self._taken = dict.fromkeys(self._inputs)  # names of the program's arrays
        self._spaces = Workspaces(list_only(graph), workspace_names(self._taken))

    def program(self) -> TileProgram:
        """The whole program."""
        outputs: dict[str, Buffer] = {}
        targets: Targets = {}
        for position, output in enumerate(self._graph.outputs):
            view = self._output(position, outputs)
            outputs[self._graph.output_names[position]] = view.buffer
            targets.setdefault(output.value, []).append(view)
        level = Level(self._graph, self._values, (), targets)
        self._lower(level)
        loops = [at for at, stmt in enumerate(level.body) if isinstance(stmt, For)]
        bodies = pieces(level.body, loops[1:], path=(), spaces=self._spaces)
        program = TileProgram(
            tuple(self._inputs.values()),
            tuple(outputs.values()),
            tuple(self._spaces.made),
            tuple(Nest(body) for body in bodies if body),
            units=self._spaces.units,
            rules=self._graph.size_rules,
        )
        return workspaces_in_order(program)

    # arrays --------------------------------------------------------------------

    def _given(self, port: int) -> Stored:
        given = self._graph.inputs[port]
        if isinstance(given.view, Index):
            return Stored(given.type, given.view.dim)
        dims = tuple(dict.fromkeys((*given.type.lists, *given.type.axes)))
        read = given.view or Read(given.hint or f"in{port}", dims)
        axes = tuple(BufferAxis(array_dim(axis)) for axis in read.axes)
        buffer = self._inputs.setdefault(read.source, Buffer(read.source, axes, INPUT))
        return Stored(given.type, View(buffer, read.axes, given.hint))

    def _output(self, position: int, outputs: Mapping[str, Buffer]) -> View:
        value = self._graph.outputs[position].value
        type = self._graph.type_of(value)
        lists = self._graph.output_axes(position)
        dims = (*lists, *(dim for dim in type.axes if dim not in dims_among(lists)))
        axes = (
            self._spaces.axis(dim, type.axes)
            if isinstance(dim, str)
            else BufferAxis(array_dim(dim))
            for dim in dims
        )
        name = self._graph.output_names[position]
        if name in outputs:  # another part of one array
            return View(outputs[name], dims)
        while name in self._taken:
            name += "_out"
        self._taken[name] = None
        return View(Buffer(name, tuple(axes), OUTPUT), dims)

    # levels --------------------------------------------------------------------

    def _lower(self, level: Level) -> None:
        """Statements for the nodes of ``level``, and stores or copies of what must leave it."""
        _pass_back(level)
        for position, node in enumerate(level.graph.nodes):
            LOWERING[type(node.op)](self, level, position, node)
            for port in range(len(node.types)):
                self._store(level, Value(position, port))
        for value in level.targets:
            if value.node < 0:
                self._copy(level, value)

    def _store(self, level: Level, value: Value) -> None:
        tile = level.values[value]
        if isinstance(tile, Tile):
            origin = level.graph.nodes[value.node].origin
            level.body += [Store(v, tile, origin) for v in level.targets.get(value, ())]

    def _copy(self, level: Level, value: Value) -> None:
        """An operand that leaves the level as it came is copied, item by item."""
        entry = level.values[value]
        if isinstance(entry, Stored) and entry.type.buffered:
            load = self._load(replace(entry, type=entry.type.item))
            inner: tuple[Stmt, ...] = (
                load,
                *(Store(view, load.target) for view in level.targets[value]),
            )
            for dim in reversed(entry.type.lists):
                inner = (For(dim, True, inner),)
            level.body += inner
        else:
            tile = self._tile(level, value)
            level.body += [Store(view, tile) for view in level.targets[value]]

    def _new(self, axes: tuple[Dim, ...], hint: str = "") -> Tile:
        self._tiles += 1
        return Tile(f"t{self._tiles}", axes, hint)

    def _load(self, source: Stored, hint: str = "") -> Load | Iota:
        tile = self._new(source.type.axes, hint)
        if isinstance(source.place, View):
            return Load(tile, source.place)
        return Iota(tile, source.place)

    def _tile(self, level: Level, value: Value) -> Tile:
        """The tile of a local value; a stored item is loaded here, at its first use."""
        entry = level.values[value]
        if isinstance(entry, Stored):
            hint = level.graph.inputs[value.port].hint if value.node < 0 else ""
            load = self._load(entry, hint)
            level.body.append(load)
            entry = level.values[value] = load.target
        return entry

    # operators -----------------------------------------------------------------

    def _let(self, level: Level, position: int, node: Node) -> None:
        args = tuple(self._tile(level, value) for value in node.operands)
        tile = self._new(node.types[0].axes, node.hints[0] if node.hints else "")
        level.body.append(Let(tile, in_tiles(node.op, tile.axes), args, node.origin))
        level.values[Value(position)] = tile

    def _scan(self, level: Level, position: int, node: Node) -> None:
        """A scan: in a loop over its axis each block goes on from the fold of those before it."""
        op, arg = node.op, self._tile(level, node.operands[0])
        assert isinstance(op, Scan)
        made = self._new(arg.axes, node.hints[0] if node.hints else "")
        level.body.append(Let(made, op, (arg,), node.origin))
        if arg.axes[-1:] == level.path[-1:]:
            rows, left, own = self._new(arg.axes[:-1]), self._new(arg.axes[:-1]), made
            made = self._new(arg.axes, own.hint)
            joined = Pointwise(COMBINED[op.monoid], arg.axes)
            level.starts.append(Init(left, op.monoid))
            level.body += [
                Let(made, joined, (left, own), node.origin),
                Let(rows, Functional(ROW_FOLDS[op.monoid]), (arg,), node.origin),
                Fold(left, op.monoid, rows, origin=node.origin),
            ]
        level.values[Value(position)] = made

    def _readdress(self, level: Level, position: int, node: Node) -> None:
        """Transpose and relabel: another view of a stored value, no code."""
        op = node.op
        entry = level.values[node.operands[0]]
        if not node.types[0].buffered:
            if isinstance(op, Relabel) and op.old in level.path:
                raise EmitError(
                    message(
                        f"relabel of the local axis {op.old} inside a loop over {op.old}",
                        origin=_origin(node),
                        hint="relabel the buffered value instead",
                    )
                )
            self._let(level, position, node)
            return
        assert isinstance(entry, Stored)
        place = entry.place
        if isinstance(op, Relabel):
            place = _moved(place, op.old, op.new)
        level.values[Value(position)] = Stored(node.types[0], place)

    def _reduce(self, level: Level, position: int, node: Node) -> None:
        op = node.op
        assert isinstance(op, Reduce)
        entry = level.values[node.operands[0]]
        assert isinstance(entry, Stored)
        total = self._new(node.types[0].axes, node.hints[0] if node.hints else "")
        load = self._load(replace(entry, type=entry.type.element()))
        fold = Fold(total, op.monoid, load.target, origin=node.origin)
        level.body += [Init(total, op.monoid), For(op.dim, False, (load, fold), node.origin)]
        level.values[Value(position)] = total

    def _map(self, level: Level, position: int, node: Node) -> None:
        op = node.op
        assert isinstance(op, Map)
        if op.start:
            self._refuse(level, position, node)
        inner = Level(op.body, {}, (*level.path, op.dim), {})
        for port, (value, iterated) in enumerate(zip(node.operands, op.iterated, strict=True)):
            inner.values[Value(-1, port)] = self._entering(level, value, op, iterated)
        totals: dict[int, Tile] = {}
        for port, result in enumerate(op.results):
            value, inside = Value(position, port), op.body.outputs[port].value
            hint = node.hints[port] if node.hints else ""
            if isinstance(result, Collect):
                views = level.targets.get(value) or [self._workspace(level, value)]
                level.values[value] = Stored(node.types[port], views[0])
                inner.targets.setdefault(inside, []).extend(views)
            else:
                totals[port] = self._new(node.types[port].axes, hint)
                level.values[value] = totals[port]
                level.body.append(Init(totals[port], result.monoid))
        self._lower(inner)
        self._fold(inner, op, totals, node)
        down = any(scan.back for scan in op.scans)
        loop = For(op.dim, not op.serial, tuple(inner.body), node.origin, down=down)
        level.body += [*inner.starts, loop]

    def _entering(self, level: Level, value: Value, op: Map, iterated: bool) -> Tile | Stored:
        """An operand of a map in its body: items of inputs are loaded inside parallel loops.

        Loaded before such a loop, as others are, they would keep it off the launch grid.
        """
        entry = level.values[value]
        if iterated:
            assert isinstance(entry, Stored)
            return replace(entry, type=entry.type.element())
        if level.graph.type_of(value).buffered or not level.path:
            return entry
        return entry if not op.serial and _is_input(entry) else self._tile(level, value)

    def _workspace(self, level: Level, value: Value) -> View:
        type = level.graph.type_of(value)
        return self._spaces.new((*level.path, *type.lists), type.axes)

    def _fold(self, inner: Level, op: Map, totals: dict[int, Tile], node: Node) -> None:
        """Folds of the accumulated results: a group at the end, others right behind their value."""
        values = {port: self._tile(inner, op.body.outputs[port].value) for port in totals}
        for first, *others in op.groups:
            if first not in totals:
                continue
            number = {port: at for at, port in enumerate((first, *others))}
            group = []
            for port in others:
                result, factor = op.results[port], AS_IT_IS
                leads: tuple[int, ...] = ()
                assert not isinstance(result, Collect)
                if isinstance(result, Rescale):
                    leads = tuple(number[lead] for lead in result.leads)
                    factor = kept_empty(result.factor, result.monoid)
                group.append(Member(totals[port], result.monoid, values[port], factor, leads))
            result = op.results[first]
            assert isinstance(result, Accumulate)
            fold = Fold(totals[first], result.monoid, values[first], (*group,), origin=node.origin)
            at = len(inner.body) if group else _behind(inner.body, values[first])
            inner.body.insert(at, fold)

    def _refuse(self, level: Level, position: int, node: Node) -> None:
        what = "the first iteration of a loop was peeled off: tile programs have no such loops"
        hint = "fuse with rules other than PEELING_RULES"
        if isinstance(node.op, Misc):
            what = f"{node.op.name} is a function of whole arrays: it has no tiles"
            hint = "bb.jit and bb.compile run it between kernels; bb.emit writes kernels alone"
        raise EmitError(message(what, origin=_origin(node), hint=hint))


LOWERING: dict[type, Callable[[_Lowering, Level, int, Node], None]] = {
    Functional: _Lowering._let,
    Elementwise: _Lowering._let,
    Pointwise: _Lowering._let,
    Cast: _Lowering._let,
    Scan: _Lowering._scan,
    Transpose: _Lowering._readdress,
    Relabel: _Lowering._readdress,
    Reduce: _Lowering._reduce,
    Map: _Lowering._map,
    Misc: _Lowering._refuse,
    Head: _Lowering._refuse,
}


def _pass_back(level: Level) -> None:
    """Where the view of a buffered value must go, the value itself must: targets move to it."""
    for position, node in reversed(tuple(enumerate(level.graph.nodes))):
        op = node.op
        wanted = level.targets.get(Value(position), [])
        if not wanted or not isinstance(op, Relabel | Transpose) or not node.types[0].buffered:
            continue
        if isinstance(op, Relabel):
            wanted = [_moved(view, op.new, op.old) for view in wanted]
        level.targets.setdefault(node.operands[0], []).extend(wanted)


def _moved(place: Any, old: Dim, new: Dim) -> Any:
    """``place`` read under the dim ``new`` instead of ``old``."""
    if isinstance(place, View):
        return replace(place, dims=tuple(relabeled(dim, {old: new}) for dim in place.dims))
    return new if place == old else place


def _behind(body: list[Stmt], value: Tile) -> int:
    """The position behind the statement that defines ``value`` and what follows it at once."""
    at = next((at for at, stmt in enumerate(body) if defined(stmt) == value), None)
    if at is None or isinstance(body[at], Init):
        return len(body)
    at += 1
    while at < len(body) and isinstance(body[at], Store | Fold):
        at += 1
    return at


def _origin(node: Node) -> str | None:
    lines = node.origin.lines()
    return f"from {', '.join(map(str, lines))}" if lines else None
