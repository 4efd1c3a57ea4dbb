"""What a draw takes out of the compiler's hands, for as long as it runs: snapshot, warps, tiles.

All of it is done here, from outside, to the functions that choose: a user has no such switches. The
parts of the compiler that refuse kernels see what was forced, as they see what was chosen.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from random import Random
from typing import Any
from unittest.mock import patch

from bench.gpu.fuzz.draw import Forced

EMIT = "blockbuster.emit"


@contextmanager
def forced_by(forced: Forced | None) -> Iterator[list[str]]:
    """A context in which ``forced`` holds; gives the reasons of what was refused in it."""
    from blockbuster.emit.choice import Fused

    refusals: list[str] = []
    refuse = Fused.refuse

    def noting(self: Any, choice: Any, reason: str) -> None:
        refusals.append(reason)
        refuse(self, choice, reason)

    with ExitStack() as stack:
        stack.enter_context(patch.object(Fused, "refuse", noting))
        if forced:
            stack.enter_context(_snapshot(forced))
            stack.enter_context(_warps(forced.warps))
            if forced.retiled:
                stack.enter_context(_tiles(forced.retiled))
        yield refusals


def _snapshot(forced: Forced) -> Any:
    from blockbuster.emit.choice import Fused

    consider = Fused.consider

    def other(self: Any, *args: Any, **named: Any) -> Any:
        found = consider(self, *args, **named)
        least = len(found.best.unsafe)  # those that can overflow beyond that say so in the report
        choices = [c for c in (found.best, *found.others) if len(c.unsafe) == least]
        choices.sort(key=lambda choice: choice.snapshot)
        best = choices.pop(forced.snapshot % len(choices))
        return replace(found, best=best, others=tuple(choices))

    return patch.object(Fused, "consider", other)


@contextmanager
def _warps(warps: int) -> Iterator[None]:
    """All modules that ask for a number of warps get this one."""
    name = "choose_warps"
    with ExitStack() as stack:
        for module in [m for key, m in sys.modules.items() if key.startswith(EMIT)]:
            if hasattr(module, name):
                stack.enter_context(patch.object(module, name, lambda *_, **__: warps))
        yield


def _tiles(seed: int) -> Any:
    """Plans are emitted with another tile along one dim, where that can be done."""
    from blockbuster.emit import plan
    from blockbuster.errors import EmitError

    emit = plan.emit

    def retiled(graph: Any, sizes: Any, dtype: Any, target: Any, tiles: Any, **named: Any) -> Any:
        kernel = emit(graph, sizes, dtype, target, tiles, **named)
        random = Random(seed)
        dims = sorted(kernel.tiles)
        if not dims:
            return kernel
        dim = random.choice(dims)
        lanes = random.choice((kernel.tiles[dim] * 2, max(kernel.tiles[dim] // 2, 1), 256, 512))
        try:
            return emit(graph, sizes, dtype, target, {**tiles, dim: lanes}, **named)
        except (EmitError, ValueError):
            return kernel

    return patch.object(plan, "emit", retiled)
