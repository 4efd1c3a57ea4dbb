"""Places along strided axes as Triton text: slices, split axes, and windows with zeros outside."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from blockbuster.emit.print.triton.ops import Lanes, spread
from blockbuster.ir.lengths import ONE, Length
from blockbuster.ir.types import Dim
from blockbuster.ir.views import Strided


@dataclass(frozen=True)
class StridedPlaces:
    """Texts of places, and of the tests whether there is an element.

    ``size``: the parameter of a dim's size; ``part``: the variable that holds a quotient of sizes;
    ``offsets``: the positions of the lanes of a dim's current block; ``indices``: the position
    along each dim that has no lanes.
    """

    size: Callable[[Dim], str]
    part: Callable[[Length], str]
    offsets: Callable[[Dim], str]
    indices: Mapping[Dim, str]

    def place(self, axis: Strided, lanes: Lanes) -> str:
        """The places of a tile with ``lanes`` along an axis; empty for place 0."""
        terms = []
        for run in axis.runs:
            step = "" if run.step == ONE else f" * {self._length(run.step)}"
            if run.dim in lanes:
                terms.append(f"{self.offsets(run.own)}{spread((run.dim,), lanes)}{step}")
            elif run.dim in self.indices:
                terms.append(f"{self.indices[run.own]}{step}")
        if not axis.start.terms:
            return f"({' + '.join(terms)})" if len(terms) > 1 else "".join(terms)
        before, start = axis.start.constant, self._length(axis.start)
        if not terms:
            return f"tl.full((), {start}, INDEX)"
        behind = f" - {-before}" if before is not None and before < 0 else f" + {start}"
        return f"({' + '.join(terms)}{behind})"

    def within(self, axis: Strided, lanes: Lanes) -> Iterator[str]:
        """Tests that an axis has elements at these places."""
        place = self.place(axis, lanes) or "tl.full((), 0, INDEX)"
        if lanes and not any(run.dim in lanes for run in axis.runs):
            ones = ", ".join("1" for _ in lanes)  # the interpreter has no scalar truths in blocks
            place = f"tl.full(({ones}{',' * (len(lanes) == 1)}), {place}, INDEX)"
        yield f"({place} >= 0)"
        yield f"({place} < {self.size(axis.of)})"

    def _length(self, length: Length) -> str:
        text = length.python(self.size)  # the kernel takes these sizes in any case
        return self.part(length) if _is_quotient(length) else text


def _is_quotient(length: Length) -> bool:
    """True for a product of sizes over a number, such as ``|D| / 24``."""
    top, under = length.fraction
    return (under.constant or 0) > 1 and len(top.terms) == 1 and not top.clamps
