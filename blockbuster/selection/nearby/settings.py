"""Warps and stages of a schedule's kernels: the defaults, the alternatives, and those that fit.

Each kernel has its own setting. It changes neither other kernels nor what its kernel loads and
stores.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.tile.layouts import ROWS, WARP
from blockbuster.emit.tile.program import For, Let, Nest, TileProgram, statements
from blockbuster.emit.tile.tiling import tiling_of
from blockbuster.emit.tile.uses import Uses
from blockbuster.selection.decisions.combining import combining_warps
from blockbuster.selection.decisions.default_tiles import widest_computed
from blockbuster.selection.decisions.usual_settings import KernelSetting
from blockbuster.selection.decisions.usual_warps import usual_warps
from blockbuster.selection.priors import PRIORS


def usual(scheduled: Scheduled) -> tuple[KernelSetting, ...]:
    """The default setting of each kernel: twice the warps if each then has rows for two dots.

    With four warps there, a gated network of 2048 rows took an H200 1285 microseconds instead of
    1113; attention of depth 64 169 instead of 181. Split products of float32 keep four.
    """
    draft, found = scheduled.draft, []
    for nest in draft.nests:
        tiling = tiling_of(draft, nest)
        warps = usual_warps(scheduled, nest)
        if not _splits(nest) and Uses(nest, tiling).fewest_rows() >= 2 * PRIORS.usual_warps * ROWS:
            warps = max(warps, 2 * PRIORS.usual_warps)
        found.append(KernelSetting(warps, PRIORS.stages_tried[0]))
    return tuple(found)


def others(setting: KernelSetting, program: TileProgram, nest: Nest) -> Iterator[KernelSetting]:
    """The alternatives for a kernel: other stages, and half and twice the warps.

    Threads without an element of their own do what others do: they make no kernel faster. What
    combines chunks in one tile keeps its warps, whose meeting is not in the closed form.
    """
    if combining_warps(program, nest):
        return
    tiling = tiling_of(program, nest)
    dots = Uses(nest, tiling).fewest_rows() > 0
    wanted = min(PRIORS.most_warps_without_dots, widest_computed(nest, tiling) // WARP)
    least, most = PRIORS.least_warps_without_dots, max(setting.warps, wanted)
    if dots:
        least, most = PRIORS.usual_warps, PRIORS.usual_warps * (1 if _splits(nest) else 2)
    counts = (setting.warps, 2 * setting.warps, setting.warps // 2)
    for warps in (count for count in counts if least <= count <= most):
        for stages in PRIORS.stages_tried if dots else (setting.stages,):
            if (found := KernelSetting(warps, stages)) != setting:
                yield found


def _splits(nest: Nest) -> bool:
    """True if a dot of float32 is split: eight warps all wait where parts of its right operand are
    written, and leave no room for another program meanwhile. A product of 2048 in all dims took an
    H200 294 to 364 microseconds with 128 rows in four warps, and 354 to 600 in eight.
    """
    return any(isinstance(stmt, Let) and stmt.split for stmt in statements(nest.body))


def deeper(scheduled: Scheduled, settings: Sequence[KernelSetting]) -> tuple[KernelSetting, ...]:
    """``settings`` with one more stage where a kernel runs a loop in chunks.

    Fewer chunks are fewer programs, of which each has to wait for more. The second product of a
    gated network took an H200 14 microseconds longer in 4 chunks than in 8 by three stages, and 6
    less by five.
    """
    chunked = [
        any(isinstance(stmt, For) and stmt.chunk is not None for stmt in statements(nest.body))
        for nest in scheduled.draft.nests
    ]
    return tuple(
        replace(setting, stages=PRIORS.deep_stages) if long and setting.stages else setting
        for setting, long in zip(settings, chunked, strict=True)
    )


def with_stages(
    settings: Sequence[KernelSetting], other: Sequence[KernelSetting]
) -> tuple[KernelSetting, ...]:
    """``settings`` with the stages of ``other``."""
    return tuple(replace(a, stages=b.stages) for a, b in zip(settings, other, strict=True))


def is_held(scheduled: Scheduled) -> bool:
    """True if the threads of every kernel can hold its largest tile; it has warps."""
    draft = scheduled.draft
    for nest in draft.nests:
        tiling = tiling_of(draft, nest)
        alone = Uses(nest, tiling).fewest_rows() == 0 and not combining_warps(draft, nest)
        held = PRIORS.held_elements_without_dots if alone else PRIORS.held_elements
        if widest_computed(nest, tiling) > held * WARP * nest.warps:
            return False
    return True
