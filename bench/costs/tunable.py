"""The tuned programs: MCFuser's workloads, and our schedules that run its candidates.

A space holds the candidates that the source's rules leave and for which our emitter has a schedule,
each with warps and stages, which the source leaves to Triton.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import blockbuster as bb
from bench.costs.workloads import Workload
from blockbuster.emit.schedule.scheduled import Scheduled, unscheduled
from blockbuster.emit.schedule.script import checked_complete, replayed
from blockbuster.emit.target.targets import target_of
from blockbuster.emit.tile.array_dtypes import given_by, typed_for_gpu
from blockbuster.emit.tile.layouts import WARP
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.program import TileProgram
from blockbuster.examples import GEMM_CHAINS, SELF_ATTENTIONS, Example
from blockbuster.rules import safe
from blockbuster.selection.decisions.default_schedule import default_schedule
from blockbuster.selection.priors import PRIORS
from blockbuster.tiling import (
    Candidate,
    Chain,
    estimate,
    gemm_chain,
    pruned,
    self_attention,
)
from blockbuster.tiling.realization import not_expressible, schedule_of, simplified

TARGET = "sm_90"
MOST = 96  # configurations in a space
LANES = {"m": (16, 128), "n": (32, 128), "k": (64, 256), "h": (64, 256)}  # of tiles, but whole dims
TALL = 128  # rows of a tile that usually take eight warps

EXAMPLES = {example.name: example for example in (*GEMM_CHAINS, *SELF_ATTENTIONS)}


@dataclass(frozen=True)
class Config:
    """A candidate with what Triton is told besides."""

    candidate: Candidate
    warps: int
    stages: int

    def schedule(self, chain: Chain) -> str:
        """The schedule of our fused program that runs it."""
        return schedule_of(chain, self.candidate, warps=self.warps, stages=self.stages)

    @property
    def coordinates(self) -> tuple[object, ...]:
        """What a mutation may change, behind the loops, which it may not."""
        return (self.candidate.body, *self.candidate.tiles, self.warps, self.stages)


def chain_of(name: str) -> Chain:
    """The chain of a workload."""
    sizes = EXAMPLES[name].sizes
    made = gemm_chain if name.startswith("G") else self_attention
    return made(sizes["M"], sizes["N"], sizes["K"], sizes["H"], batch=sizes["B"])


def workload_of(name: str) -> Workload:
    """The workload as the harness of this folder draws, computes and judges it."""
    example: Example = EXAMPLES[name]
    few = dict(B=2, M=48, N=64, K=64, H=32)
    scaled = ("b", "d") if name.startswith("G") else ()
    return Workload(name, "tune", example.fn, example.inputs, example.sizes, few, scaled=scaled)


def space(chain: Chain, machine: bb.Machine) -> tuple[Config, ...]:
    """At most ``MOST`` configurations: usual warps and stages first, others where there is room."""
    found = pruned(chain, machine.limits.shared_per_program)
    usable = (one for one in found.candidates if not not_expressible(chain, one))
    tiles = {simplified(chain, one): one for one in usable if _is_moderate(chain, one)}
    levels = zip(*(_settings(chain, one) for one in tiles.values()), strict=True)
    configs: list[Config] = []
    for number, level in enumerate(levels):
        held = [one for one in level if _is_held(chain, one)]
        if number and len(configs) + len(held) > MOST:
            break
        configs += held
    return tuple(dict.fromkeys(configs[:: -(-len(configs) // MOST)]))


def _settings(chain: Chain, one: Candidate) -> Iterator[Config]:
    """Warps and stages of a candidate, usual ones first."""
    usual, other = (8, 4) if one.tile["m"] >= TALL else (4, 8)
    looped = bool(simplified(chain, one).body.expression.all)
    for warps, stages in ((usual, 3), (usual, 2), (other, 3), (usual, 4), (other, 2), (usual, 1)):
        yield Config(one, warps, stages if looped else 1)


def _is_moderate(chain: Chain, one: Candidate) -> bool:
    """Whether its tiles are of the sizes that are searched."""
    return all(
        LANES[loop][0] <= tile <= LANES[loop][1]
        or (tile >= chain.sizes[loop] and tile <= 2 * LANES[loop][1])
        for loop, tile in one.tiles
    )


def _is_held(chain: Chain, config: Config) -> bool:
    """Whether threads can hold the results of its products."""
    results = (config.candidate.elements(op.result) for op in chain.operators)
    return max(results) <= PRIORS.held_elements * WARP * config.warps


# models ------------------------------------------------------------------------------


@cache
def _program(name: str) -> TileProgram:
    example = EXAMPLES[name]
    graph = bb.fuse(bb.lower(example.program())).final
    return typed_for_gpu(graph, lower_to_tiles(safe(graph)), given_by("float16"))


def scheduled(name: str, text: str | None) -> Scheduled:
    """A workload with the schedule of a text; None: with the default one."""
    program, sizes, target = _program(name), EXAMPLES[name].sizes, target_of(TARGET)
    if text is None:
        return default_schedule(program, sizes, device=target)
    return checked_complete(replayed(unscheduled(program, sizes, target), text))


def mcfuser(chain: Chain, config: Config, machine: bb.Machine) -> float:
    """Seconds by the source's equations, which know neither warps nor stages."""
    return estimate(chain, config.candidate, machine).seconds
