"""Runs Triton's interpreter in the ways that a GPU may differ: orders of programs, masked elements.

The interpreter runs the programs of a grid one after the other, each with the stores of those
before it, and gives 0 for elements that a mask leaves out. A GPU promises neither. So while a
kernel is checked,

- programs run forwards, backwards, or *at once*: in random order, each on the memory as it was at
  the launch, with all stores made at its end. A program that reads what another one writes then
  reads an old value; if two programs add to one number without an atomic, one addition is lost;
- a load with a mask and no ``other`` gives NaN, or large numbers, where the mask is false.

Programs that wait for others (by exchanged or compared flags, or volatile loads) may rely on an
order, so they run forwards only. At the first atomic operation, the stores that were held back are
made, because the operation may tell other programs of them.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockbuster.check.guarded import pattern_of

FORWARDS, BACKWARDS, AT_ONCE = ORDERS = ("forwards", "backwards", "at once")
INTERPRETER = "triton.runtime.interpreter"

Handle = Any  # a value of Triton's interpreter: its numbers are ``data``


@dataclass(frozen=True)
class Seen:
    """What launches did: whether several programs ran, used atomics, and may wait for others."""

    grids: bool = False
    atomics: bool = False
    waits: bool = False

    def __or__(self, other: Seen) -> Seen:
        return Seen(
            self.grids or other.grids, self.atomics or other.atomics, self.waits or other.waits
        )


NOTHING = Seen()


@dataclass
class _Stored:
    """Elements that a program stored: their addresses, and what they held before or hold now."""

    addresses: NDArray[Any]
    mask: NDArray[Any]
    numbers: NDArray[Any]


@dataclass
class _Launch:
    """The launch that is under way. ``module`` is Triton's interpreter.

    ``own`` are the stores of the program that runs, to be taken back when it ends; ``made`` are
    those of programs that have ended, to be made when all have. ``poisons``: the load that is under
    way has no ``other``. The interpreter's builder cannot tell that from 0.
    """

    module: Any
    order: str
    turn: int
    seen: Seen = field(default_factory=Seen)
    grid: tuple[int, ...] = ()
    places: list[int] = field(default_factory=list)
    at_once: bool = False
    poisons: bool = False
    own: list[_Stored] = field(default_factory=list)
    made: list[_Stored] = field(default_factory=list)

    def begin(self, grid: tuple[int, ...]) -> None:
        """A launch: the programs of a grid get their places in the order."""
        self.end()
        count = math.prod(grid)
        self.seen |= Seen(grids=count > 1)
        self.grid, self.at_once = grid, self.order == AT_ONCE
        self.places = [*range(count)]
        if self.order == BACKWARDS:
            self.places.reverse()
        elif self.order == AT_ONCE:
            Random(count).shuffle(self.places)

    def program(self, at: tuple[int, ...]) -> tuple[int, ...]:
        """The place in the grid of the program that runs where ``at`` would run forwards."""
        self.take_back()
        turn = int(np.ravel_multi_index(at, self.grid))
        return tuple(map(int, np.unravel_index(self.places[turn], self.grid)))

    def store(self, pointers: Handle, value: Handle, mask: Handle) -> None:
        """A store is about to be made."""
        if self.at_once:
            before = self._read(pointers.data, mask.data, value.data.dtype)
            self.own.append(_Stored(pointers.data.copy(), mask.data.copy(), before))

    def take_back(self) -> None:
        """The program that ran has ended: the next one does not see what it stored."""
        now = [*map(self._now, self.own)]
        for stored in reversed(self.own):
            self._write(stored)
        self.made += now
        self.own = []

    def end(self) -> None:
        """All programs have ended, or tell each other what they stored: make all stores."""
        self.take_back()
        for stored in self.made:
            self._write(stored)
        self.made = []

    def meet(self, *, waits: bool) -> None:
        """Programs meet by an atomic operation; ``waits``: one may wait for another."""
        self.seen |= Seen(atomics=True, waits=waits)
        if self.at_once:
            mine = [*map(self._now, self.own)]  # of the program that runs: they stay
            for stored in (*self.made, *mine):
                self._write(stored)
            self.own, self.made, self.at_once = [], [], False

    def left_out(self, dtype: Any, shape: tuple[int, ...]) -> Handle:
        """What a load gives where its mask is false and it says nothing else."""
        numbers = np.dtype(self.module._get_np_dtype(dtype))
        kind = "float" if dtype.is_floating() else "bool" if numbers.kind == "b" else ""
        one = np.frombuffer(pattern_of(kind, numbers.itemsize, "input", self.turn), numbers)
        return self.module.TensorHandle(np.full(shape, one[0], numbers), dtype)

    def _now(self, stored: _Stored) -> _Stored:
        """The same elements, with what they hold now."""
        numbers = self._read(stored.addresses, stored.mask, stored.numbers.dtype)
        return _Stored(stored.addresses, stored.mask, numbers)

    def _read(self, addresses: NDArray[Any], mask: NDArray[Any], dtype: Any) -> NDArray[Any]:
        zeros = np.zeros(addresses.shape, dtype)
        found: NDArray[Any] = self.module._interpreter.load(addresses, mask, zeros, dtype)
        return found

    def _write(self, stored: _Stored) -> None:
        self.module._interpreter.store(stored.addresses, stored.numbers, stored.mask)


Method = Callable[..., Any]


def _set_grid_dim(launch: _Launch, own: Method) -> Method:
    def set_grid_dim(builder: Any, *grid: int) -> None:
        launch.begin(grid)
        own(builder, *grid)

    return set_grid_dim


def _set_grid_idx(launch: _Launch, own: Method) -> Method:
    return lambda builder, *at: own(builder, *launch.program(at))


def _load(launch: _Launch, own: Method) -> Method:
    def load(semantic: Any, ptr: Any, mask: Any, other: Any, *more: Any, **named: Any) -> Any:
        launch.poisons = mask is not None and other is None
        try:
            return own(semantic, ptr, mask, other, *more, **named)
        finally:
            launch.poisons = False

    return load


def _masked_load(launch: _Launch, own: Method) -> Method:
    def masked_load(
        builder: Any, ptrs: Handle, mask: Handle, other: Handle, cache_policy: Any,
        is_volatile: bool,
    ) -> Any:  # fmt: skip
        if is_volatile:
            launch.meet(waits=True)
        if launch.poisons:
            other = launch.left_out(ptrs.get_element_ty(), ptrs.data.shape)
        return own(builder, ptrs, mask, other, cache_policy, is_volatile)

    return masked_load


def _masked_store(launch: _Launch, own: Method) -> Method:
    def masked_store(builder: Any, ptrs: Handle, value: Handle, mask: Handle, *more: Any) -> Any:
        launch.store(ptrs, value, mask)
        return own(builder, ptrs, value, mask, *more)

    return masked_store


def _restore(launch: _Launch, own: Method) -> Method:
    def restore(executor: Any, *arrays: Any) -> Any:
        launch.end()
        return own(executor, *arrays)

    return restore


def _atomic_rmw(launch: _Launch, own: Method) -> Method:
    exchange = launch.module._ir.ATOMIC_OP.XCHG

    def atomic(builder: Any, op: Any, *more: Any) -> Any:
        launch.meet(waits=op == exchange)
        return own(builder, op, *more)

    return atomic


def _waiting(launch: _Launch, own: Method) -> Method:
    def atomic(builder: Any, *more: Any) -> Any:
        launch.meet(waits=True)
        return own(builder, *more)

    return atomic


BUILDER = "InterpreterBuilder"
NEEDED = (
    (BUILDER, "set_grid_dim", _set_grid_dim),
    (BUILDER, "set_grid_idx", _set_grid_idx),
    ("TritonSemantic", "load", _load),
    (BUILDER, "create_masked_load", _masked_load),
    (BUILDER, "create_masked_store", _masked_store),
    (BUILDER, "create_atomic_rmw", _atomic_rmw),
    (BUILDER, "create_atomic_cas", _waiting),
    ("GridExecutor", "_restore_args_dev", _restore),
)
"""Methods of the interpreter, and what makes what takes their place."""
ALSO = tuple((BUILDER, f"create_atomic_{name}", _waiting) for name in ("load", "store", "poll"))
"""Operations by which programs wait for each other, of newer versions."""


def _is_known(module: Any) -> bool:
    return all(hasattr(getattr(module, kind, None), name) for kind, name, _ in NEEDED)


@contextmanager
def in_order(order: str, turn: int) -> Iterator[Callable[[], Seen]]:
    """Run the launches of this context in an order, and fill masked elements by the turn's pattern.

    Nothing changes if Triton's interpreter is not loaded, or if it lacks a part that this needs.
    The function that is given tells what the launches did so far.
    """
    module = sys.modules.get(INTERPRETER)
    if module is None or not _is_known(module):
        yield Seen
        return
    launch = _Launch(module, order, turn)
    with ExitStack() as stack:
        for kind, name, wrapped in (*NEEDED, *ALSO):
            owner = getattr(module, kind)
            if hasattr(owner, name):
                own = getattr(owner, name)
                stack.callback(setattr, owner, name, own)
                setattr(owner, name, wrapped(launch, own))
        yield lambda: launch.seen
