"""Whole calls as CUDA graphs: ``jit(graph=True)``.

A graph holds the addresses of the arrays it reads and writes, so it serves calls with the same
tensors: write new values into them (``x.copy_(new)``). The results of a call overwrite those of the
call before; clone results that are needed longer. A call with other tensors is recorded anew, as is
one whose constants have changed: the graph reads what was computed of them. The latest recordings
of a layout are kept, with all the memory that they read and write. Calls from several threads
disturb each other's results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from blockbuster.emit.target.gpu import Gpu
from blockbuster.errors import LaunchError, message
from blockbuster.runtime.first_launch import Run
from blockbuster.runtime.replay import Replay

Tensor = Any
KEPT = 8
"""Recordings of one layout, at most."""


class Recorded(NamedTuple):
    """A call as a graph: ``replay`` starts it, ``results`` are where it writes.

    ``reads``: the tensors that it reads, which must live as long as it does. ``run`` holds what was
    computed of ``constants``, which it reads too: tensors, and how often each had been changed.
    """

    replay: Callable[[], None]
    results: list[Tensor]
    reads: tuple[Tensor, ...]
    run: Run
    constants: tuple[tuple[Tensor, int], ...]

    def is_right(self) -> bool:
        """True unless a constant has changed."""
        return all(tensor._version == version for tensor, version in self.constants)


class Graphed:
    """A runner of a plan for tensors of one layout, which ran before: from now on as a graph."""

    __slots__ = ("_gpu", "_recorded", "_run")

    def __init__(self, run: Replay, gpu: Gpu) -> None:
        self._run, self._gpu = run, gpu
        self._recorded: dict[tuple[int, ...], Recorded] = {}

    def __call__(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """The outputs, which the next call overwrites.

        Inside a graph of the caller's it is a part of that one. Raises LaunchError if a function of
        whole arrays runs on the host.
        """
        if self._gpu.is_capturing():
            return self._run(tensors)
        known = self._recorded.get(tuple([tensor.data_ptr() for tensor in tensors]))
        if known is None or not known.is_right():
            known = self._record(tensors)
        if self._gpu.elsewhere():
            with self._gpu.current():
                known.replay()
        else:
            known.replay()
        return [*known.results]

    @property
    def replay(self) -> Replay:
        """The runner without graphs."""
        return self._run

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes from the calls."""
        return self._run.notes

    @property
    def assemblers(self) -> tuple[str, ...]:
        """The assemblers of the kernels."""
        return self._run.assemblers

    def _record(self, tensors: Sequence[Tensor]) -> Recorded:
        for note in self._run.on_host:
            hint = "write it with functions that take tensors, or leave out graph=True"
            raise LaunchError(message(f"this call cannot become a graph: {note}", hint=hint))
        run, constants = self._run.pinned(tensors)
        counted = tuple([(one.detach(), one._version) for one in constants])
        replay, results = self._gpu.recorded(lambda: run(tensors))
        if len(self._recorded) >= KEPT:
            del self._recorded[next(iter(self._recorded))]
        reads = tuple([tensor.detach() for tensor in tensors])
        made = Recorded(replay, results, reads, run, counted)
        self._recorded[tuple([tensor.data_ptr() for tensor in tensors])] = made
        return made

    def clear(self) -> None:
        """Forget all recordings."""
        self._recorded.clear()
