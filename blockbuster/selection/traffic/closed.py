"""Graph traffic in closed form: loads, stores, arithmetic and footprint, for all sizes and blocks.

``blockbuster.interp.observers`` defines loads, stores and arithmetic. The numbers equal those that
``GraphTraffic`` counts while a program is interpreted, but nothing is run here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from blockbuster.interp.binding import bind
from blockbuster.interp.observers import Tensor
from blockbuster.interp.traffic import Moved
from blockbuster.ir.graph import Graph
from blockbuster.ir.types import Dim, size_class
from blockbuster.ir.verify import check_graph
from blockbuster.selection.traffic.closed_forms import ClosedForm, Symbol, total
from blockbuster.selection.traffic.footprint import Peak
from blockbuster.selection.traffic.walk import Walk


@dataclass(frozen=True)
class Traffic:
    """The numbers for one choice of sizes and blocks.

    ``tensors`` holds the traffic of each tensor. ``flops`` counts the operations on matrix units
    (dots) and on vector units (pointwise operators, folds and the other functional operators).
    ``footprint`` is the peak number of elements in local memory, ``dots`` the number of dots
    executed. ``item_bytes`` is the size of an element in global memory.
    """

    tensors: Mapping[Tensor, Moved[int]]
    flops: Mapping[str, int]
    dots: int
    footprint: int
    item_bytes: int

    @property
    def loads(self) -> int:
        """Items read, over all tensors."""
        return sum(moved.loads for moved in self.tensors.values())

    @property
    def stores(self) -> int:
        """Items written, over all tensors."""
        return sum(moved.stores for moved in self.tensors.values())

    @property
    def elements(self) -> int:
        """Elements read and written, over all tensors."""
        return sum(m.loaded_elements + m.stored_elements for m in self.tensors.values())

    @property
    def bytes(self) -> int:
        """Bytes read and written, over all tensors."""
        return self.elements * self.item_bytes


@dataclass(frozen=True)
class ClosedTraffic:
    """The traffic of ``graph`` as polynomials in sizes and blocks of its dims.

    The fields are those of ``Traffic``; ``footprint`` is the largest of some polynomials.
    """

    graph: Graph = field(repr=False)
    tensors: Mapping[Tensor, Moved[ClosedForm]]
    flops: Mapping[str, ClosedForm]
    dots: ClosedForm
    footprint: Peak

    def at(
        self,
        sizes: Mapping[Dim, int],
        blocks: Mapping[Dim, int] | None = None,
        *,
        block_sizes: Mapping[Dim, int] | None = None,
        item_bytes: int = 4,
    ) -> Traffic:
        """The numbers at these sizes and numbers of blocks (default 1), or block sizes.

        Raises ValueError if sizes or blocks do not fit the program, as ``evaluate`` does.
        """
        values = self.values(sizes, blocks, block_sizes)
        moved = {t: form.each(lambda count: count.at(values)) for t, form in self.tensors.items()}
        return Traffic(
            {tensor: m for tensor, m in moved.items() if m.loads or m.stores},
            {unit: flops.at(values) for unit, flops in self.flops.items()},
            self.dots.at(values),
            max(candidate.at(values) for candidate in self.footprint),
            item_bytes,
        )

    def values(
        self,
        sizes: Mapping[Dim, int],
        blocks: Mapping[Dim, int] | None = None,
        block_sizes: Mapping[Dim, int] | None = None,
    ) -> dict[Symbol, int]:
        """The symbols' values at these sizes and blocks, bound as ``evaluate`` binds them."""
        layout = bind(self.graph, None, sizes=sizes, blocks=blocks, block_sizes=block_sizes)
        values: dict[Symbol, int] = {}
        for dim, spans in layout.blocks.items():
            values[Symbol("S", size_class(dim))] = layout.size(dim)
            values[Symbol("B", dim)] = len(spans)
            values[Symbol("F", dim)] = len(spans[0]) if spans else 0
        return values


def closed_traffic(graph: Graph) -> ClosedTraffic:
    """Traffic, arithmetic and local footprint of a program, for all sizes and blocks.

    Exact for sizes of at least 1, ragged blocks included.

    >>> from blockbuster.ir.parse import parse
    >>> graph = parse('''graph(X: M,K[M,K]) {
    ...   S = map M (x in !X) { s = map K (b in !x) { t = row_sum(b) yield +t } yield s }
    ...   return S
    ... }''')
    >>> form = closed_traffic(graph)
    >>> for tensor, moved in form.tensors.items():
    ...     print(tensor.name, moved.loads, moved.loaded_elements, moved.stored_elements)
    X B_K*B_M S_K*S_M 0
    S 0 0 S_M
    >>> print(*form.footprint)
    F_K*F_M + 2*F_M
    """
    walk = Walk()
    footprint = walk.run(graph)
    return ClosedTraffic(
        graph,
        {tensor: terms.each(total) for tensor, terms in walk.moved.items()},
        {unit: total(flops) for unit, flops in walk.flops.items()},
        total(walk.dots),
        footprint,
    )


def traffic(
    graph: Graph,
    sizes: Mapping[Dim, int],
    blocks: Mapping[Dim, int] | None = None,
    *,
    item_bytes: int = 4,
) -> Traffic:
    """The loads, stores, arithmetic and footprint of a program at these sizes and numbers of
    blocks.
    """
    check_graph(graph)
    return closed_traffic(graph).at(sizes, blocks, item_bytes=item_bytes)
