"""What a draw takes out of the compiler's hands, for as long as it runs: snapshot, warps, tiles.

All of it is done here, from outside, to the functions that choose: a user has no such switches. The
parts of the compiler that refuse kernels see what was forced, as they see what was chosen.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from random import Random
from typing import Any
from unittest.mock import patch

from bench.gpu.fuzz.draw import Forced

MOST = 1 << 15
"""Elements of a tile that is forced: what is larger spills so much that ptxas takes minutes."""


@contextmanager
def forced_by(forced: Forced | None) -> Iterator[list[str]]:
    """A context in which ``forced`` holds; gives the reasons of what was refused in it."""
    from blockbuster.selection.choice import Fused
    from blockbuster.selection.decisions.default_tiles import choose_warps

    refusals: list[str] = []
    refuse = Fused.refuse

    def noting(self: Any, choice: Any, reason: str) -> None:
        refusals.append(reason)
        refuse(self, choice, reason)

    with ExitStack() as stack:
        stack.enter_context(patch.object(Fused, "refuse", noting))
        if forced:
            stack.enter_context(_snapshot(forced))
            stack.enter_context(_everywhere(choose_warps, lambda *_, **__: forced.warps))
            if forced.retiled:
                stack.enter_context(_tiles(forced.retiled))
        yield refusals


def _snapshot(forced: Forced) -> Any:
    from blockbuster.selection.choice import Fused

    consider = Fused.consider

    def other(self: Any, *args: Any, **named: Any) -> Any:
        found = consider(self, *args, **named)
        least = len(found.best.unsafe)  # those that can overflow beyond that say so in the report
        choices = [c for c in (found.best, *found.others) if len(c.unsafe) == least]
        choices.sort(key=lambda choice: choice.snapshot)
        best = choices.pop(forced.snapshot % len(choices))
        return replace(found, best=best, others=tuple(choices))

    return patch.object(Fused, "consider", other)


def _tiles(seed: int) -> Any:
    """Another tile along one dim, where that can be done."""
    from blockbuster.emit.schedule.block import LEAST
    from blockbuster.errors import EmitError
    from blockbuster.selection.decisions.default_tiles import choose_tiling, dot_dims

    def retiled(program: Any, sizes: Any, tiles: Any, *rest: Any) -> Any:
        usual = choose_tiling(program, sizes, tiles, *rest)
        dims = sorted(d for d in usual.blocks if not usual.is_unit(d))
        if not dims:
            return usual
        random = Random(seed)
        dim = random.choice(dims)
        known = usual.blocks[dim]
        lanes = random.choice((2 * known, max(known // 2, 1), 256, 512))
        if dim in dot_dims(program):
            lanes = max(lanes, LEAST)
        try:
            other = choose_tiling(program, sizes, {**tiles, dim: lanes}, *rest)
        except EmitError:
            return usual
        largest = sorted(other.blocks.values())[-2:]
        return other if math.prod(largest) <= MOST else usual

    return _everywhere(choose_tiling, retiled)


@contextmanager
def _everywhere(function: Any, other: Any) -> Iterator[None]:
    """``other`` in place of a function, in all modules that hold it."""
    with ExitStack() as stack:
        for key, module in list(sys.modules.items()):
            name = function.__name__
            if key.startswith("blockbuster.") and getattr(module, name, None) is function:
                stack.enter_context(patch.object(module, name, other))
        yield
