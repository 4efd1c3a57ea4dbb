"""torch's interpolate: images of other sizes.

Whole factors repeat pixels, or put some on lines to their neighbours. Other sizes are torch's own
function between kernels.
"""

from __future__ import annotations

from typing import Any

from blockbuster.errors import shown_lines
from blockbuster.frontend.functions.cuts import cut
from blockbuster.frontend.functions.filled import positions
from blockbuster.frontend.functions.joins import repeat
from blockbuster.frontend.functions.pads import pad
from blockbuster.frontend.functions.pointwise import abs, where
from blockbuster.frontend.functions.row import Array, torch_rows
from blockbuster.frontend.functions.shapes import expand_dims, reshape
from blockbuster.frontend.functions.spatial import known, number
from blockbuster.frontend.kinds import FLOAT
from blockbuster.frontend.memory import own
from blockbuster.frontend.resampled import Resampled
from blockbuster.frontend.sizes import SizeExpr
from blockbuster.frontend.source import trace_error
from blockbuster.ir.lengths import whole as length_of

LINES = ("linear", "bilinear", "trilinear")
REPEATED = ("nearest", "nearest-exact")
SOME = 2  # pixels that stand for a number of them that is not known, where torch is asked


def interpolate(
    input: Array, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
    align_corners: bool | None = None, recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Array:  # fmt: skip
    """``input`` with other numbers of pixels along the axes behind the channels.

    ``align_corners``: the first and the last pixel stay where they are.
    """
    count = len(input.shape) - 2
    sizes, factors = _each(size, count), _each(scale_factor, count)
    if sizes is not None:
        sizes = tuple(number("interpolate", "size", n) for n in sizes)
    asked = Resampled(sizes, factors, mode, align_corners, recompute_scale_factor, antialias)
    olds = [known(n) for n in input.shape[2:]]
    shape = _shape(asked, [SOME if isinstance(n, SizeExpr) else n for n in olds])
    if input.kind != FLOAT and mode not in REPEATED:
        raise trace_error(f"{asked} of integers", hint="take x.float(), and round what it gives")
    whole = _whole_factors(asked, olds)
    if whole and mode in (*REPEATED, *LINES) and not align_corners and not antialias:
        larger = _along_lines if mode in LINES else repeat
        for at, factor in enumerate(whole, start=2):
            input = larger(input, factor, at) if factor != 1 else input
        return own(input)
    for n in input.shape[2:]:
        number("interpolate", "the size of x", n)
    x = input.trace.array(input)
    counts = map(length_of, shape[2:])
    axes = (x.trace.dims.derived(count, "interpolate", count) for count in counts)
    return x.trace.custom(asked, (x,), (*x.axes[:2], *axes), str(asked), x.kind)


def _each(given: Any, count: int) -> tuple[Any, ...] | None:
    """A number for each axis, as torch takes it."""
    if given is None:
        return None
    return tuple(given) if isinstance(given, tuple | list) else (given,) * count


def _shape(asked: Resampled, olds: list[int]) -> tuple[int, ...]:
    """The shape of what torch makes of images of these extents. Raises TraceError where it refuses
    them.
    """
    try:
        return asked.shape((1, 1, *olds))
    except (ArithmeticError, NotImplementedError, RuntimeError, TypeError, ValueError) as error:
        raise trace_error(f"{asked}: {shown_lines(str(error))[0]}") from error


def _whole_factors(asked: Resampled, olds: list[Any]) -> list[int]:
    """The factors of all axes, if they are whole numbers and known; else none."""
    if asked.size is None:
        factors = asked.scale_factor or ()
        return [int(f) for f in factors] if all(f % 1 == 0 for f in factors) else []
    pairs = [*zip(olds, asked.size, strict=True)]
    if any(isinstance(old, SizeExpr) or new % old for old, new in pairs):
        return []
    return [new // old for old, new in pairs]


def _along_lines(x: Array, factor: int, axis: int) -> Array:
    """``factor`` elements in place of each along an axis, on lines to its neighbours.

    Element j of them stands at (j + 1/2) / factor - 1/2 from the middle of the one that it is of;
    in front of the first element and behind the last there are the same again.
    """
    rank = len(x.shape)
    wide = pad(x, [(int(at == axis),) * 2 for at in range(rank)], "edge")
    sides = x, cut(wide, axis, 0, -2), cut(wide, axis, 2, None)
    here, left, right = (expand_dims(side, axis + 1) for side in sides)
    place = (positions(x.trace, factor, axis + 1, rank + 1) + 0.5) / factor - 0.5
    share = abs(place)
    made = here * (1.0 - share) + where(place < 0.0, left, right) * share
    return reshape(made, (*x.shape[:axis], x.shape[axis] * factor, *x.shape[axis + 1 :]))


ROWS = torch_rows("torch.nn.functional: images", interpolate)
