"""Times of calls on a GPU with a cold second-level cache.

The cache is overwritten before each call, and events around the call are read. Overwriting keeps
the device busy while the host starts the call, so the host's work does not count. Short calls are
recorded into a CUDA graph: gaps between their kernels are then those of a graph.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

FLUSHED = 256 << 20
"""Bytes that are written before each call: several times the cache of any GPU."""

GRAPHED_US = 100.0
"""Calls that take less are timed in a graph."""

ROUND_US = 3000.0
"""What the calls of a round take in all, without what happens between them."""

CALLS = (3, 15)
"""Calls of a round, at least and at most."""


class Clock:
    """Times of calls on one device, in microseconds."""

    def __init__(self, device: int) -> None:
        import torch

        self._torch = torch
        torch.cuda.set_device(device)
        self._flushed = torch.empty(FLUSHED, dtype=torch.int8, device="cuda")

    def timer(self, run: Callable[[], Any]) -> Callable[[], float]:
        """A function that times one round of calls; ``run`` was called before."""
        usual = self._median(run, CALLS[0])
        call = self._graphed(run) if usual < GRAPHED_US else run
        count = max(CALLS[0], min(CALLS[1], int(ROUND_US / max(usual, 1.0))))
        self._median(call, 1)
        return lambda: self._median(call, count)

    def _median(self, run: Callable[[], Any], count: int) -> float:
        pairs = [(self._event(), self._event()) for _ in range(count)]
        for begun, ended in pairs:
            self._flushed.zero_()
            begun.record()
            run()
            ended.record()
        self._torch.cuda.synchronize()
        times = [1e3 * float(begun.elapsed_time(ended)) for begun, ended in pairs]
        return statistics.median(times)

    def _event(self) -> Any:
        return self._torch.cuda.Event(enable_timing=True)

    def _graphed(self, run: Callable[[], Any]) -> Callable[[], Any]:
        graph = self._torch.cuda.CUDAGraph()
        with self._torch.cuda.graph(graph):
            results = run()

        def replay() -> Any:
            graph.replay()
            return run, results  # what it reads and writes stays allocated

        return replay
