"""Places along strided axes as Triton text: slices, split axes, and windows with zeros outside."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from blockbuster.emit.print.triton.ops import Lanes, spread
from blockbuster.ir.lengths import ONE, Length
from blockbuster.ir.types import Dim
from blockbuster.ir.views import Share, Strided


@dataclass(frozen=True)
class StridedPlaces:
    """Texts of places, and of the tests whether there is an element.

    ``size``: the parameter of a dim's size; ``part``: the variable that holds a quotient of sizes;
    ``offsets``: the positions of the lanes of a dim's current block; ``indices``: the position
    along each dim that has no lanes.
    """

    size: Callable[[Dim], str]
    part: Callable[[Length], str]
    offsets: Callable[[Dim, Share | None], str]
    indices: Mapping[Dim, str]

    def place(self, axis: Strided, lanes: Lanes) -> str:
        """The places of a tile with ``lanes`` along an axis; empty for place 0."""
        own, shared, behind = self._terms(axis, lanes)
        if own or shared:
            return _sum([*own, *shared], behind)
        return f"tl.full((), {self._length(axis.start)}, INDEX)" if behind else ""

    def apart(self, axis: Strided, lanes: Lanes) -> tuple[str, str]:
        """The same, in which lanes differ and that which all of them are shifted by; either may be
        empty.
        """
        own, shared, behind = self._terms(axis, lanes)
        if own and shared:
            return _sum(own, ""), _sum(shared, behind)
        place = self.place(axis, lanes)
        return (place, "") if own else ("", place)

    def _terms(self, axis: Strided, lanes: Lanes) -> tuple[list[str], list[str], str]:
        """What runs of lanes add to a place, and other runs; the text of the start behind them."""
        own, shared = list[str](), list[str]()
        for run in axis.runs:
            step = "" if run.step == ONE else f" * {self._length(run.step)}"
            if run.dim in lanes:
                own.append(f"{self.offsets(run.dim, run.share)}{spread((run.dim,), lanes)}{step}")
            elif run.dim in self.indices:
                shared.append(f"{self.indices[run.own]}{step}")
        if not axis.start.terms:
            return own, shared, ""
        start = axis.start.constant
        if start is not None and start < 0:
            return own, shared, f" - {-start}"
        return own, shared, f" + {self._length(axis.start)}"

    def within(self, axis: Strided, lanes: Lanes) -> str:
        """A test that an axis has elements at these places; ``_within`` makes one of two."""
        place = self.place(axis, lanes) or "tl.full((), 0, INDEX)"
        if lanes and not any(run.dim in lanes for run in axis.runs):
            ones = ", ".join("1" for _ in lanes)  # the interpreter has no scalar truths in blocks
            place = f"tl.full(({ones}{',' * (len(lanes) == 1)}), {place}, INDEX)"
        place = place[1:-1] if place.startswith("(") else place
        return f"_within({place}, {self.size(axis.of)})"

    def _length(self, length: Length) -> str:
        text = length.python(self.size)  # the kernel takes these sizes in any case
        return self.part(length) if _is_quotient(length) else text


def _sum(terms: list[str], behind: str) -> str:
    text = " + ".join(terms) + behind
    return f"({text})" if terms[1:] or behind else text


def _is_quotient(length: Length) -> bool:
    """True for a product of sizes over a number, such as ``|D| / 24``."""
    top, under = length.fraction
    return (under.constant or 0) > 1 and len(top.terms) == 1 and not top.clamps
