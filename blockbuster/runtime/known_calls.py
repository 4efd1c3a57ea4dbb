"""Earlier calls of a traced function: which new calls need no trace, and the plan they run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

from blockbuster.frontend.arguments import Leaf
from blockbuster.frontend.reads import Reads
from blockbuster.frontend.size_facts import SizeFacts
from blockbuster.ir.completion import Complete, completion
from blockbuster.ir.lengths import Rule
from blockbuster.ir.types import Dim, size_class
from blockbuster.runtime.compiled import Run
from blockbuster.runtime.launch import guard_of
from blockbuster.runtime.tensors import described
from blockbuster.selection.plans.pieces import Axes

T = TypeVar("T")
Ready = Callable[[tuple[Any, ...], dict[str, Any]], Any]


def never(args: tuple[Any, ...]) -> bool:  # noqa: ARG001
    """No arguments are told."""
    return False


class ReadyCall:
    """The runner of calls whose arguments have one key, as long as what is read has not changed.

    ``is_same`` tells some of them more quickly than their key, once it has ``seen`` such arguments:
    tensors in order and nothing else, which are ``plain``.
    """

    __slots__ = ("is_same", "plain", "reads", "run")

    def __init__(self, run: Ready, reads: Reads, *, plain: bool) -> None:
        self.run, self.reads, self.plain = run, reads, plain
        self.is_same: Callable[[tuple[Any, ...]], bool] = never

    def seen(self, args: tuple[Any, ...]) -> None:
        """Find out how arguments like these are told."""
        self.is_same, self.plain = guard_of(args) or never, False


MOST = 8  # traces for arguments of one kind that are tried before a function is traced again


@dataclass(frozen=True, eq=False)
class KnownCall(Generic[T]):
    """A traced call. Another of its kind gives this trace again as long as ``facts`` of its sizes
    hold and nothing has changed of what the function ``reads``.

    ``arrays`` are its arrays, ``given`` of them positional; ``axes`` the dims of the arrays' axes
    (None: of extent 1), ``rules`` the sizes that follow.
    """

    traced: T
    facts: SizeFacts
    reads: Reads
    arrays: Sequence[Leaf]
    given: int
    axes: Sequence[Axes]
    rules: Sequence[Rule]

    @cached_property
    def _holds(self) -> Callable[[Sequence[int]], bool]:
        """Whether the extents of all axes give this trace: made when the first new size asks."""
        return self.facts.condition()

    @cached_property
    def _completion(self) -> tuple[Sequence[Dim], Complete]:
        """All dims, and their sizes for the extents of all axes."""
        dims = [dim for axes in self.axes for dim in axes]
        first: dict[Dim, int] = {}
        for number, dim in enumerate(dims):
            if dim is not None:
                first.setdefault(size_class(dim), number)
        return completion(first, self.rules)

    @cached_property
    def _in_order(self) -> bool:
        """True if the arrays are the positional arguments."""
        places = [None if leaf.steps else leaf.place for leaf in self.arrays]
        return places == list(range(self.given))

    def layout(self, key: tuple[Any, ...], found: list[Any]) -> tuple[Any, ...]:
        """The layout of a call's arrays; ``key`` describes all its arguments."""
        return key[: self.given] if self._in_order else tuple(map(described, found))

    def found(
        self, key: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[list[Any], tuple[Any, ...], dict[Dim, int]] | None:
        """The arrays of a call of this kind, their layout and the size of every dim; None if the
        function has to be traced for it. Axes of one dim are equally long where the facts hold.
        """
        if self._in_order:
            found = [*args]
        else:
            found = [leaf.taken(args, kwargs) for leaf in self.arrays]
        layout = self.layout(key, found)
        extents: list[int] = []
        for array in layout:
            extents += array[0]  # its shape
        if not (self._holds(extents) and self.reads.unchanged()):
            return None
        dims, complete = self._completion
        sizes, possible = complete(extents)
        if not possible:  # tracing says which length is not, and where
            return None
        return found, layout, dict(zip(dims, sizes, strict=True))

    def ready(self, key: tuple[Any, ...], run: Run, make: Callable[[list[Any]], Any]) -> ReadyCall:
        """The runner of calls whose arguments have this key."""
        arrays = self.arrays
        if self._in_order:
            plain = len(key) == self.given  # no keywords
            return ReadyCall(lambda args, kwargs: make(run(args)), self.reads, plain=plain)

        def taken(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            return make(run([leaf.taken(args, kwargs) for leaf in arrays]))

        return ReadyCall(taken, self.reads, plain=False)
