"""Graph traffic: how many blocks a program moves between global and local memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from blockbuster.interp.layout import Array
from blockbuster.interp.observers import Observer, Tensor
from blockbuster.ir.expr import calls
from blockbuster.ir.ops import Elementwise, Functional, Op, Pointwise, Rescale, Result, Scan

N = TypeVar("N")
M = TypeVar("M")


@dataclass
class Moved(Generic[N]):
    """The traffic of one tensor: how many items, and how many elements they have.

    The counts are numbers, closed forms, or lists of terms that are not added up yet.
    """

    loads: N
    stores: N
    loaded_elements: N
    stored_elements: N

    def each(self, meaning: Callable[[N], M]) -> Moved[M]:
        """``meaning`` of each count."""
        items = meaning(self.loads), meaning(self.stores)
        return Moved(*items, meaning(self.loaded_elements), meaning(self.stored_elements))


@dataclass
class GraphTraffic(Observer):
    """Counts loads and stores per tensor, dots and flops, while a program is interpreted.

    ``flops`` are the multiplications and additions of dots on matrix units; on vector units, each
    function applied to an element counts as one, folds included. Casts count nothing.
    """

    tensors: dict[Tensor, Moved[int]] = field(default_factory=dict)
    dots: int = 0
    flops: dict[str, int] = field(default_factory=lambda: {"matrix": 0, "vector": 0})

    def load(self, tensor: Tensor, item: Array) -> None:
        moved = self.tensors.setdefault(tensor, Moved(0, 0, 0, 0))
        moved.loads += 1
        moved.loaded_elements += item.size

    def store(self, tensor: Tensor, item: Array) -> None:
        moved = self.tensors.setdefault(tensor, Moved(0, 0, 0, 0))
        moved.stores += 1
        moved.stored_elements += item.size

    def execute(self, op: Op, args: tuple[Array, ...], made: Array) -> None:
        match op:
            case Functional("dot"):
                self.dots += 1
                self.flops["matrix"] += 2 * args[0].size * args[1].shape[0]
            case Functional("outer"):
                self.flops["vector"] += made.size
            case Functional() | Scan():
                self.flops["vector"] += args[0].size
            case Elementwise(expr) | Pointwise(expr):
                self.flops["vector"] += calls(expr) * made.size

    def fold(self, result: Result, item: Array) -> None:
        self.flops["vector"] += fold_flops(result) * item.size

    @property
    def loads(self) -> int:
        """Items read, over all tensors."""
        return sum(moved.loads for moved in self.tensors.values())

    @property
    def stores(self) -> int:
        """Items written, over all tensors."""
        return sum(moved.stores for moved in self.tensors.values())


def fold_flops(result: Result) -> int:
    """Operations per element to fold an item in: in a group, both sides are rescaled before."""
    return 1 + (2 * calls(result.factor) if isinstance(result, Rescale) else 0)
