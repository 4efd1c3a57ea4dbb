"""Variations of schedules: a schedule's moves with other numbers, up to a given count.

Lanes of blocks, chunks, warps and stages change. The list of moves stays, but the loads of a loop
may stop running ahead, or those of another loop start. Schedules are left out if they do not
replay, if a rough count says that they are many times worse than the best, or if they do not fit
the device.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from math import inf

import blockbuster as bb
from bench.costs.workloads import BY_NAME, Workload, start_text
from blockbuster.emit.schedule.block import Cut
from blockbuster.emit.schedule.scheduled import Scheduled, unscheduled
from blockbuster.emit.schedule.script import Line, checked_complete, parsed, replayed
from blockbuster.emit.schedule.stage import Stage
from blockbuster.emit.target.targets import target_of
from blockbuster.emit.tile.array_dtypes import given_by, typed_for_gpu
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.program import TileProgram
from blockbuster.emit.tile.shared_memory import shared_bytes
from blockbuster.rules import safe
from blockbuster.selection.decisions.default_schedule import default_schedule
from blockbuster.selection.nearby.settings import is_held
from blockbuster.selection.price import priced

TARGET = "sm_90"
STAGE = Stage()
POWERS = tuple(1 << power for power in range(9))
LANES = (1, 256)  # of a block that is no whole dim
WARPS = (1, 2, 4, 8, 16)
STAGES = (0, 2, 3, 4)
CHUNKS = (2, 4, 8, 16, 32, 64)
TRIED = 8  # texts for each one that is wanted
WORST = 5.0  # times the rough cost of the best: what costs more is left out

Choice = tuple[int, str]
"""A snapshot and the text of a schedule for it."""


@dataclass(frozen=True)
class Pair:
    """A workload with a schedule; ``number`` counts those of the workload.

    ``predicted``: its microseconds by the price of the day on which it was drawn; None if they were
    not asked for.
    """

    workload: str
    number: int
    snapshot: int
    schedule: str
    predicted: float | None = None

    @property
    def key(self) -> str:
        """How records name it."""
        return f"{self.workload}#{self.number}"


def pairs_of(workload: Workload, count: int, sizes: Mapping[str, int]) -> tuple[Pair, ...]:
    """At most ``count`` schedules of a workload: those it starts from, and variations of each."""
    first: dict[Choice, Scheduled] = {}
    for snapshot, name in workload.starts:
        made = scheduled(workload, snapshot, start_text(name), sizes)
        first[snapshot, made.schedule] = made
    found = {choice: _rough(made) for choice, made in first.items()}
    for at, ((snapshot, _), start) in enumerate(first.items()):
        chance = random.Random(f"{workload.name} {at}")
        for text in _sampled(start, chance, -(-count * TRIED // len(first))):
            with suppress(bb.BlockbusterError):  # it does not replay on the program
                made = scheduled(workload, snapshot, text, sizes)
                if _is_held(made):
                    found[snapshot, made.schedule] = _rough(made)
    best = min(found.values())
    sane = [choice for choice, cost in found.items() if choice in first or cost <= WORST * best]
    kept = _mixed(sane, tuple(first), count)
    return tuple(Pair(workload.name, n, *choice) for n, choice in enumerate(kept))


def _mixed(choices: Sequence[Choice], first: Sequence[Choice], count: int) -> list[Choice]:
    """``count`` of them: those of ``first``, then variations of each snapshot in turn."""
    snapshots = dict.fromkeys(snapshot for snapshot, _ in choices)
    queues = [[c for c in choices if c not in first and c[0] == s] for s in snapshots]
    kept = [choice for choice in choices if choice in first]
    while len(kept) < count and any(queues):
        kept += [queue.pop(0) for queue in queues if queue][: count - len(kept)]
    return kept


def scheduled(
    workload: Workload, snapshot: int, text: str | None, sizes: Mapping[str, int]
) -> Scheduled:
    """A workload with the schedule of a text; None: with the default schedule.

    Raises EmitError for a text that does not replay on it, or that says too little.
    """
    program = _typed(workload.name, snapshot)
    if text is None:
        return default_schedule(program, sizes, device=target_of(TARGET))
    return checked_complete(replayed(unscheduled(program, sizes, target_of(TARGET)), text))


@cache
def _typed(name: str, snapshot: int) -> TileProgram:
    graph, dtype = BY_NAME[name].graph(snapshot), BY_NAME[name].dtype
    return typed_for_gpu(graph, lower_to_tiles(safe(graph)), given_by(dtype))


# what is left out ------------------------------------------------------------------


def _rough(made: Scheduled) -> float:
    """Microseconds by the closed form; infinite if a program does not fit."""
    try:
        return priced(made).microseconds
    except ValueError:
        return inf


def _is_held(made: Scheduled) -> bool:
    """True if shared memory holds the rings of every nest, and threads results of its dots."""
    fits = (shared_bytes(made.program, nest) <= made.target.shared for nest in made.program.nests)
    return all(fits) and is_held(made)


# variations ------------------------------------------------------------------------


def _sampled(start: Scheduled, chance: random.Random, count: int) -> Iterator[str]:
    """Texts of schedules with the moves of another one and other numbers."""
    moves = [line for line in parsed(start.schedule) if line.move.name != STAGE.name]
    before = replace(start, draft=start.start, moves=())
    bare = replayed(before, "".join(map(_written, moves)))
    places = list(STAGE.sites(bare))
    for _ in range(count):
        text = "".join(_written(_varied(move, chance)) for move in moves)
        for site in places:
            if stages := chance.choice(STAGES):
                text += f"stage {site} {stages}\n"
        yield text


def _written(line: Line) -> str:
    words = (line.move.name, str(line.site), line.move.show(**line.args))
    return " ".join(word for word in words if word) + "\n"


def _varied(line: Line, chance: random.Random) -> Line:
    args = line.args
    match line.move.name:
        case "block":
            return replace(line, args={"cuts": tuple(_cut(cut, chance) for cut in args["cuts"])})
        case "chunk":
            count = _near(args["count"], CHUNKS, chance, steps=2)
            return replace(line, args={**args, "count": count})
        case "warps":
            return replace(line, args={"count": _near(args["count"], WARPS, chance, steps=1)})
        case _:
            return line


def _cut(cut: Cut, chance: random.Random) -> Cut:
    if cut.whole:
        return cut
    least, most = LANES
    lanes = [n for n in POWERS if least <= n <= max(most, cut.lanes)]
    return replace(cut, lanes=_near(cut.lanes, lanes, chance, steps=2))


def _near(number: int, known: Sequence[int], chance: random.Random, *, steps: int) -> int:
    """One of the known numbers that are at most so many doublings away."""
    low, high = number >> steps, number << steps
    return chance.choice([n for n in known if low <= n <= high] or [number])
