"""How much of a kernel's loads comes from global memory, and how much from the shared cache.

Programs that run side by side, a *wave*, read some tiles together: each such tile comes from global
memory once. What they read again themselves, as the rows of a norm, comes from the cache if it
holds all that a wave reads. The rest of the cache keeps data for later waves. In a cache of several
partitions, each partition holds the data that all programs read, so these data take their room once
in each.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import prod

from blockbuster.costs.work import Work
from blockbuster.ir.types import Dim
from blockbuster.machines.machine import Machine, Tier


def from_memory(
    work: Work, machine: Machine, wave: int, held: Collection[str] = ()
) -> dict[str, int]:
    """Bytes of each array that are loaded from global memory, ``wave`` programs side by side.

    ``held``: arrays that lie in the cache before the kernel begins.
    """
    needed = {name: work.unique[name] for name in work.loaded}
    if fits(work, machine.tiers[1]):
        return {name: 0 if name in held else count for name, count in needed.items()}
    cache, waves, side = machine.tiers[1], -(-work.programs // wave), min(wave, work.programs)
    parts = {name: parts_of_wave(work, name, side) for name in needed}
    rows = read_once(work, parts)
    all_fit = sum(rows.values()) <= cache.bytes
    found = {}
    for name, loaded in work.loaded.items():
        each = _loaded_once(work, name, side, cache) / work.programs * parts[name]
        each = min(each, rows.get(name, each)) if all_fit else each
        missed = min(max(waves * each, needed[name]), loaded)
        there = _still_there(work, name, cache) if name in held else 0.0
        found[name] = int(missed - there * needed[name])
    return found


def read_once(work: Work, parts: Mapping[str, int]) -> dict[str, float]:
    """Bytes of so many parts of each array that is loaded, each counted once.

    None where a program takes several blocks of the grid: its parts are not one.
    """
    if prod(blocks for _, blocks in work.grid) != work.programs:
        return {}
    total = {name: prod(n for dim, n in work.grid if dim in work.varying[name]) for name in parts}
    return {name: work.unique[name] * parts[name] / total[name] for name in parts}


def _still_there(work: Work, name: str, cache: Tier) -> float:
    """The part of an array in the cache that a kernel finds there: its other arrays take room
    meanwhile.
    """
    others = sum(count for other, count in work.unique.items() if other != name)
    return min(1.0, max(0, cache.bytes - work.unique[name]) / max(others, 1))


def _loaded_once(work: Work, name: str, wave: int, cache: Tier) -> float:
    """Bytes that all programs load of an array, less those that they have loaded before.

    A loop around a load that always reads the same reads it again; the cache still has it if all
    that a wave loads in one iteration of that loop fits.
    """
    found = 0.0
    for phase in work.phases:
        again = 1.0
        for depth, dim in enumerate(phase.dims if name in work.along else (), start=1):
            trips = _trips(work, phase.dims[:depth])
            if dim not in work.along[name] and _loaded_in_turn(work, wave, trips, cache):
                again *= trips
        found += phase.loaded.get(name, 0) / again
    return found


def _trips(work: Work, dims: tuple[Dim, ...]) -> float:
    """The iterations of a loop each time that it is entered, on average."""
    runs = {phase.dims: phase.runs for phase in work.phases}
    return max(1.0, runs[dims] / max(runs[dims[:-1]], 1))


def _loaded_in_turn(work: Work, wave: int, trips: float, cache: Tier) -> bool:
    """True if a cache holds what a wave loads in one of so many iterations of a loop."""
    room = sum(
        loaded / work.programs / trips * parts_of_wave(work, name, wave) * cache.parts
        for name, loaded in work.loaded.items()
    )
    return room <= cache.bytes


def fits(work: Work, cache: Tier) -> bool:
    """True if a cache holds all arrays of a kernel at once."""
    return sum(room_of(work, cache).values()) <= cache.bytes


def room_of(work: Work, cache: Tier) -> dict[str, int]:
    """The bytes that each array of a kernel takes of a cache: what is read again, in each part."""
    loaded = work.loaded
    return {
        name: count * (cache.parts if loaded.get(name, 0) > count else 1)
        for name, count in work.unique.items()
    }


def parts_of_wave(work: Work, name: str, wave: int) -> int:
    """How many different parts of an array ``wave`` programs read that follow one another."""
    left, spans = wave, dict.fromkeys((dim for dim, _ in work.grid), 1)
    for dim, blocks in reversed(work.grid):
        spans[dim] *= min(blocks, left)
        left = -(-left // blocks)
    return prod(spans[dim] for dim in work.varying[name])
