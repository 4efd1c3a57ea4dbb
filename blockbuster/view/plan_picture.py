"""How a plan is drawn: a box for each part, an arrow for each array that a part reads.

Elements have ids that survive in SVG: ``i-x`` is the input x, ``k-1`` the first part, ``o-out`` the
output out. Arrows of arrays that are stored between parts are red and thick.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from textwrap import wrap
from typing import TYPE_CHECKING

from blockbuster.costs.report import in_us
from blockbuster.emit.tile.between import in_bytes, width
from blockbuster.selection.plans.explanation import Told, explanation
from blockbuster.selection.plans.stored import shapes_of
from blockbuster.view import dot
from blockbuster.view.draw import Drawing
from blockbuster.view.picture import BUFFERED, DEFAULTS

if TYPE_CHECKING:
    from blockbuster.selection.plans.plan import Plan

LOOK = {**DEFAULTS, "graph": {**DEFAULTS["graph"], "rankdir": "TB", "ranksep": "0.3"}}
LABEL = 36  # characters of a line in a box
PLAIN = {"style": "", "shape": "plain"}


def draw_plan(plan: Plan) -> Drawing:
    """The picture of a plan. Raises ValueError for a plan from a file."""
    parts = explanation(plan).parts
    made = {name: at for at, told in enumerate(parts, 1) for name in told.writes}
    labels = dict(_labels(plan))
    lines = [dot.node(f"i-{name}", name, {**PLAIN, "class": "input"}) for name in plan.inputs]
    for at, told in enumerate(parts, 1):
        lines.append(dot.node(f"k-{at}", _label(at, told), {"class": "kernel"}))
        for name in told.reads:
            if name in made:
                lines.append(_stored(f"k-{made[name]}", f"k-{at}", labels[name]))
            else:
                lines.append(dot.edge(f"i-{name}", f"k-{at}", {"class": "local"}))
    lines += _outputs(plan, made)
    return Drawing(dot.document(LOOK, lines))


def _outputs(plan: Plan, made: Mapping[str, int]) -> Iterator[str]:
    for name, seen in zip(plan.names, plan.results, strict=True):
        tail = f"k-{made[seen.array]}" if seen.array in made else f"i-{seen.array}"
        yield dot.node(f"o-{name}", name, {**PLAIN, "class": "output"})
        yield dot.edge(tail, f"o-{name}", {"class": "local"})


def _stored(tail: str, head: str, label: str) -> str:
    look = {"class": "buffered interior", "color": BUFFERED, "penwidth": "2.6", "label": label}
    return dot.edge(tail, head, look)


def _label(number: int, told: Told) -> dot.Html:
    time = f": {in_us(told.us)}" if told.us is not None else ""
    kernels = [f"{told.kernels} kernels"] if told.kernels > 1 else []
    limits = [f"limited by {' and '.join(told.limited_by)}"] if told.limited_by else []
    return dot.lines(f"{number}{time}", *wrap(told.computes, LABEL), *kernels, *limits)


def _labels(plan: Plan) -> Iterator[tuple[str, str]]:
    """Each array that steps write, with its shape, dtype and bytes."""
    for name, shape in shapes_of(plan, plan.sizes).items():
        dtype = plan.kept[name]
        extents = " x ".join(map(str, shape)) or "1"
        size = in_bytes(prod(shape) * width(dtype))
        yield name, f"  {name}\n  {extents} {dtype}\n  {size}"
