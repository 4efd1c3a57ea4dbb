"""What of a kernel's loads comes from global memory, and what from the cache that all share.

Programs that run side by side, a *wave*, read some tiles together: each of them comes from global
memory once. What the cache holds besides stays for later waves. Of a cache in several partitions
each holds what all programs read, so that this takes its room as often.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import prod

from blockbuster.costs.work import Work
from blockbuster.ir.types import Dim
from blockbuster.machines.machine import Machine


def from_memory(
    work: Work, machine: Machine, wave: int, held: Collection[str] = ()
) -> dict[str, int]:
    """Bytes of each array that are loaded from global memory, ``wave`` programs side by side.

    ``held``: arrays that lie in the cache before the kernel begins.
    """
    needed = {name: work.unique[name] for name in work.loaded}
    if fits(machine, {**needed, **{name: work.unique[name] for name in work.stored}}, work):
        return {name: 0 if name in held else count for name, count in needed.items()}
    waves = -(-work.programs // wave)
    found = {}
    for name, loaded in work.loaded.items():
        each = loaded / work.programs * together(work, name, min(wave, work.programs))
        found[name] = int(min(max(waves * each, needed[name]), loaded))
    return found


def fits(machine: Machine, arrays: Mapping[str, int], work: Work) -> bool:
    """True if the cache holds these bytes at once; arrays that are read again lie in each part."""
    cache = machine.tiers[1]
    again = {name for name, loaded in work.loaded.items() if loaded > work.unique[name]}
    room = sum(count * (cache.parts if name in again else 1) for name, count in arrays.items())
    return room <= cache.bytes


def together(work: Work, name: str, wave: int) -> int:
    """How many different parts of an array ``wave`` programs read that follow one another."""
    left, spans = wave, dict[Dim, int]()
    for dim, blocks in reversed([*work.grid.items()]):
        spans[dim] = min(blocks, left)
        left = -(-left // blocks)
    return prod(spans[dim] for dim in work.varying[name])
