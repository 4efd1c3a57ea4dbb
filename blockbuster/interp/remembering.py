"""An interpreter that computes nothing twice, for many programs on the same inputs.

The programs of a derivation have most of their equations in common, and a step leaves most values
as they were. Values are interned (arrays by their content, lists by their elements), so that equal
values are one object, and an operator that meets operands it has met before gives the results of
then. A semantics is a function of its arguments: what is remembered is what would be computed.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from blockbuster.interp.evaluate import Interpreter
from blockbuster.interp.held import Held, Spans
from blockbuster.interp.layout import Array, Layout, Nested
from blockbuster.interp.observers import Observer, Path
from blockbuster.interp.semantics import Semantics
from blockbuster.ir.graph import Graph, Input, Node
from blockbuster.ir.ops import Cast, Elementwise, Functional, Map
from blockbuster.ir.views import AxisView, Strided

POSITIONAL = (Functional, Elementwise, Cast)  # of items alone, whatever their axes are called
TYPED = (*POSITIONAL, Map)  # of operands whose types the operator says


class Remembering(Interpreter):
    """The meaning of programs that all read ``arrays``, in one layout.

    ``semantics`` must have numbers as elements, not objects: arrays are told apart by their bytes.
    """

    def __init__(self, layout: Layout, semantics: Semantics, arrays: Mapping[str, Array]) -> None:
        super().__init__(layout, semantics, Observer())
        self.arrays = arrays
        self.results: dict[Hashable, Sequence[Held]] = {}
        self.values: dict[Hashable, Nested] = {}
        self.written: dict[Hashable, Array] = {}
        self.interned: dict[int, Nested] = {}
        """By id: what is interned stays alive, so that its id stays its own."""

    def outputs(self, graph: Graph) -> dict[str, Array]:
        """The outputs of a program."""
        return self.run(graph, self.arrays)

    def read(self, given: Input, position: int, arrays: Mapping[str, Array]) -> Held:
        key = (given.view, given.hint or position, given.type)
        if key not in self.results:
            held = super().read(given, position, arrays)
            self.results[key] = [held._replace(data=self._intern(held.data))]
        return self.results[key][0]

    def write(self, held: Held, name: str, axes: tuple[AxisView, ...], into: Array | None) -> Array:
        if any(isinstance(axis, Strided) for axis in axes):  # a part of an array: not a value
            return super().write(held, name, axes, into)
        key = (id(held.data), held.type, axes)
        if key not in self.written:
            self.written[key] = super().write(held, name, axes, into)
        return self.written[key]

    def node(
        self, node: Node, args: Sequence[Held], path: Path, position: int, spans: Spans
    ) -> Sequence[Held]:
        op, types = node.op, node.types
        key: Hashable = (op, *[id(data) for _, data, _ in args])
        if not isinstance(op, POSITIONAL):
            key = (key, *spans.items())
        if not isinstance(op, TYPED):
            key = (key, types, *[type for type, _, _ in args])
        known = self.results.get(key)
        if known is None:
            made = super().node(node, args, path, position, spans)
            known = self.results[key] = [Held(type, self._intern(data)) for type, data, _ in made]
        elif known[0].type is not types[0]:
            return [Held(type, data) for type, (_, data, _) in zip(types, known, strict=True)]
        return known

    def _intern(self, value: Nested) -> Nested:
        if id(value) in self.interned:
            return value
        key: tuple[Hashable, ...]
        if isinstance(value, list):
            key = tuple(map(id, value))
            if not all(map(self.interned.__contains__, key)):
                value = [*map(self._intern, value)]
                key = tuple(map(id, value))
        else:
            key = (value.shape, value.tobytes())
        value = self.values.setdefault(key, value)
        self.interned[id(value)] = value
        return value
