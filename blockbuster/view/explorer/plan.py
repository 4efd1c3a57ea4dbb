"""The plan of a whole program as data: its kernels, the arrays between them, why it was cut.

The page opens with it. Each box leads to the derivation of its kernels, which is a page of its own
in the same file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from blockbuster.costs.report import in_us
from blockbuster.emit.target.targets import chosen_by
from blockbuster.errors import BlockbusterError
from blockbuster.frontend import ArrayProgram
from blockbuster.ir.graph import Graph
from blockbuster.ir.lengths import completed
from blockbuster.ir.types import Dim
from blockbuster.runtime.given import family_of, sizes_given
from blockbuster.selection.choice import Fused
from blockbuster.selection.considered import Considered
from blockbuster.selection.plans.explanation import Told, divided_of, explanation
from blockbuster.selection.plans.plan import Plan
from blockbuster.view.explorer.chosen import Chosen
from blockbuster.view.explorer.setting import Setting
from blockbuster.view.explorer.steps import SAFE
from blockbuster.view.explorer.svg import plain_svg
from blockbuster.view.plan_picture import draw_plan
from blockbuster.view.render import can_render, render

Data = dict[str, Any]


def plan_of(
    program: ArrayProgram, sizes: Mapping[Dim, int], setting: Setting
) -> tuple[Plan | None, str]:
    """The plan at these sizes, as ``bb.select`` makes it; or None, and why there is none."""
    own = {dim: size for dim, size in sizes.items() if dim in program.dims}
    try:
        known = sizes_given(program, completed({**program.sizes, **own}, program.rules))
        family = family_of(program, setting.dtype, chosen_by(setting.machine))
        return family.at(known), ""
    except (BlockbusterError, ValueError) as error:
        return None, f"There is no plan of the whole program at these sizes.\n{error}"


def choices_of(plan: Plan) -> tuple[tuple[Fused, Chosen], ...]:
    """The different programs of a plan, each with the choice that became its kernels."""
    divided = divided_of(plan)
    pairs = zip(divided.fused, divided.considered, strict=True)
    different = {_key(*pair): pair for pair in pairs}
    return tuple((fused, _chosen(fused, considered)) for fused, considered in different.values())


def _key(fused: Fused, considered: Considered) -> tuple[Any, ...]:
    """Equal layers share a program; where their sizes differ, each may have its own choice."""
    return fused.graph, considered.best.key


def _chosen(fused: Fused, considered: Considered) -> Chosen:
    best = considered.best
    return Chosen(fused.derivation_of(best), considered, name=fused.name_of(best))


def choice_for(graph: Graph, plan: Plan | None) -> Chosen | None:
    """The plan's choice for a whole program; None if the plan divides it."""
    choices = choices_of(plan) if plan is not None else ()
    alone = len(choices) == 1 and choices[0][0].graph == graph
    return choices[0][1] if alone else None


def plan_data(plan: Plan, derivations: Sequence[Data], *, alone: bool) -> Data:
    """The plan as the page shows it, with what each part's ``derivations`` in the file gave.

    ``alone``: the plan is one program, whose derivation is the first page of the file; else the
    derivation of its first program is the second page, behind that of the whole program.
    """
    told = explanation(plan)
    first = 0 if alone else 1
    parts = [
        _part(one, pages, [gain for page in pages for gain in gains(page, derivations[page])])
        for one, pages in zip(told.parts, _pages(plan, first), strict=True)
    ]
    return {
        "head": f"{told.head}; {told.sizes}",
        "machine": told.machine,
        "parts": parts,
        "stored": list(told.stored),
        "search": list(told.search),
        "picture": _picture(plan),
        "alone": alone,
    }


def _picture(plan: Plan) -> str:
    """The picture as SVG; "" where nothing is installed that draws it."""
    return plain_svg(render(draw_plan(plan).dot, "svg").decode()) if can_render("svg") else ""


def _pages(plan: Plan, first: int) -> list[list[int]]:
    """The pages of each part's programs, counted from ``first`` on; equal programs share one."""
    divided = divided_of(plan)
    pairs = zip(divided.fused, divided.considered, strict=True)
    pages = {key: at for at, key in enumerate(dict.fromkeys(_key(*pair) for pair in pairs), first)}
    return [
        [pages[_key(*pair)] for pair in zip(part.fused, considered, strict=True)]
        for part, considered in divided.by_part
    ]


def gains(page: int, derivation: Data) -> list[Data]:
    """The steps that matter on the way to a derivation's kernels, with what each achieved."""
    steps, at = derivation["steps"], derivation["chosen"]["state"]
    way = [n for n, step in enumerate(steps, 1) if step["from"] == at and step["rule"] == SAFE]
    while at:
        way.append(at)
        at = steps[at - 1]["from"]
    return [
        {"page": page, "step": number, "text": steps[number - 1]["born"]}
        for number in sorted(way) if steps[number - 1]["born"]
    ]  # fmt: skip


def _part(told: Told, pages: list[int], gained: list[Data]) -> Data:
    return {
        "computes": told.computes,
        "us": told.us,
        "time": None if told.us is None else in_us(told.us),
        "kernels": told.kernels,
        "limits": list(told.limited_by),
        "reads": list(told.reads),
        "writes": list(told.writes),
        "library": list(told.library),
        "pages": pages,
        "gains": gained,
    }
