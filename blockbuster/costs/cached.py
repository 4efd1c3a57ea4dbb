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
    waves, wave = -(-work.programs // wave), min(wave, work.programs)
    parts = {name: parts_of_wave(work, name, wave) for name in needed}
    once = read_once(work, parts)
    found = {}
    for name, loaded in work.loaded.items():
        each = loaded / work.programs * parts[name]
        if sum(once.values()) <= machine.tiers[1].bytes:
            each = min(each, once.get(name, each))
        found[name] = int(min(max(waves * each, needed[name]), loaded))
    return found


def read_once(work: Work, parts: Mapping[str, int]) -> dict[str, float]:
    """Bytes of so many parts of each array that is loaded, each counted once.

    None where a program takes several blocks of the grid: its parts are not one.
    """
    if prod(blocks for _, blocks in work.grid) != work.programs:
        return {}
    total = {name: prod(n for dim, n in work.grid if dim in work.varying[name]) for name in parts}
    return {name: work.unique[name] * parts[name] / total[name] for name in parts}


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
