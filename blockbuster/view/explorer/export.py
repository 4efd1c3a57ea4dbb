"""Writes the explorer's page to a file, for ``Derivation.to_html`` and the commands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from os import PathLike
from pathlib import Path

from blockbuster.frontend import ArrayProgram
from blockbuster.ir.types import size_class
from blockbuster.rules import Derivation
from blockbuster.selection.plans.plan import Plan
from blockbuster.view.explorer.data import Data, explorer_data
from blockbuster.view.explorer.page import page, write_whole
from blockbuster.view.explorer.plan import choice_for, choices_of, plan_data, plan_of
from blockbuster.view.explorer.setting import Setting, sizes_of


def write_html(
    derivation: Derivation,
    path: str | PathLike[str],
    setting: Setting,
    *,
    title: str = "",
    prove: bool = True,
    program: ArrayProgram | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Path:
    """Write the page; the file appears complete or not at all. Returns its path.

    With the ``program`` that was fused, the page opens with the plan of its kernels. If the plan
    divides the program, the derivation of each part's kernels is in the file, too.
    """
    plan, missing = None, ""
    if program is not None:
        progress("choosing the plan of kernels")
        plan, missing = plan_of(program, sizes_of(derivation.start, setting), setting)
    choice = choice_for(derivation.start, plan)
    data = explorer_data(
        derivation, setting, title=title, prove=prove, choice=choice, progress=progress
    )
    if plan is None:
        why = {"missing": missing} if missing else None
        return write_whole(Path(path), page(data, plan=why))
    others = _parts(plan, setting, prove, progress) if choice is None else []
    told = plan_data(plan, [data, *others], alone=choice is not None)
    return write_whole(Path(path), page(data, others, told))


def _parts(
    plan: Plan, setting: Setting, prove: bool, progress: Callable[[str], None]
) -> list[Data]:
    """The derivations of a plan's programs."""
    found, sizes = choices_of(plan), {size_class(dim): n for dim, n in plan.sizes.items()}
    pages = []
    for at, (fused, choice) in enumerate(found, 1):
        bare = replace(setting, sizes={}, blocks={})
        own = {dim: sizes[dim] for dim in sizes_of(fused.graph, bare) if dim in sizes}
        blocks = {dim: n for dim, n in setting.blocks.items() if dim in own}
        where = f"program {at} of {len(found)}"

        def tell(what: str, where: str = where) -> None:
            progress(f"{where}: {what}")

        pages.append(
            explorer_data(
                fused.derivation, replace(bare, sizes=own, blocks=blocks),
                title=f"{plan.name}, {where}", prove=prove, choice=choice, progress=tell,
            )
        )  # fmt: skip
    return pages
