"""Do two programs differ in floating point, by more than rounding and overflow can explain?

Programs are compared as functions of real numbers. If doubles differ because one program overflows
or underflows and the other does not, that does not count as a difference: decimal numbers, which
have a wider range of exponents, have to differ on the same inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np

from blockbuster.interp.borders import MILD, crossings
from blockbuster.interp.cells import Cell, Solver
from blockbuster.interp.constants import constants_of
from blockbuster.interp.decimals import in_decimals
from blockbuster.interp.evidence import evidence
from blockbuster.interp.layout import Array
from blockbuster.interp.ordered import Ordered, is_literal
from blockbuster.interp.proof import Counterexample
from blockbuster.interp.residues import ZeroDenominator
from blockbuster.interp.semantics import Float32, Float64, Floats, Refused
from blockbuster.interp.setting import SMALLEST, Setting, settings
from blockbuster.interp.unknowns import Unknowns
from blockbuster.interp.witness import arrays, points
from blockbuster.ir.graph import Graph

DIVISIONS = ("div", "floordiv", "mod")
TOLERANCE = 1e-6  # of the largest number in an output; far above rounding at these sizes


class Watched(Floats):
    """Double precision that notes whether it overflowed or divided by zero.

    After either, a NaN says nothing; before, it comes from the root or the log of a negative.
    """

    def __init__(self) -> None:
        super().__init__("float64", "float64")
        self.overflowed = False
        self.scalars = {name: self._watched(name, fn) for name, fn in self.scalars.items()}

    def _watched(self, name: str, fn: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*args: Any) -> Any:
            made = fn(*args)
            lost = np.isinf(made).any() or (name in DIVISIONS and np.isnan(made).any())
            self.overflowed = self.overflowed or bool(lost)
            return made

        return watched


def float_difference(a: Graph, b: Graph, trials: int, seed: int) -> Counterexample | None:
    """Inputs on which outputs differ by far more than rounding can explain.

    Small ones first; at last those on both sides of every comparison, and on its border.
    """
    random = np.random.default_rng([seed, 1])
    constants = constants_of(a, b)
    tried = tuple(settings(a, b, trials, random, smallest_first=True))
    for number, setting in enumerate(tried):
        ways = [(-8, 4)]  # the lowest number, of quarters
        if number < len(SMALLEST):
            ways.append((1, 4))  # positive inputs are for small sizes
        if setting is tried[-1]:
            ways.append((-8, 64))  # no exponential drowns the others
        domain = setting.domain(a, b)
        for lowest, parts in ways:
            drawn = domain.small(random, lowest=lowest, parts=parts, near=constants)
            found = _difference(a, b, setting, drawn)
            if found is not None:
                return found
    smallest = next(settings(a, b, 0, random, smallest_first=True))
    literal = is_literal(a) and is_literal(b)
    for inputs, on_border in crossings((a, b), smallest, random, literal=literal):
        if not on_border:
            found = _difference(a, b, smallest, inputs)
        else:
            found = _exact_difference(a, b, smallest, inputs) if literal else None
        if found is not None:
            return found
    return None


def at_points(a: Graph, b: Graph) -> Callable[..., Counterexample | None]:
    """A search of ``cases.compare``: the programs are run at points that may lie in a case."""
    literal = is_literal(a) and is_literal(b)

    def search(
        setting: Setting, names: Unknowns, cell: Cell, solver: Solver
    ) -> Counterexample | None:
        domain = setting.domain(a, b)
        mild = None if literal else MILD
        for point in points(names, cell, solver, mild=mild, whole=bool(domain.dtypes)):
            inputs = arrays(domain, names, point)
            found = _difference(a, b, setting, inputs)
            if found is None and literal:
                found = _exact_difference(a, b, setting, inputs)
            if found is not None:
                return found
        return None

    return search


def _exact_difference(
    a: Graph, b: Graph, setting: Setting, inputs: dict[str, Array]
) -> Counterexample | None:
    """Whether fractions are different, of programs that compute nothing else."""
    ordered = Ordered()
    try:
        left, right = (setting.run(graph, inputs, ordered) for graph in (a, b))
    except (Refused, ZeroDenominator):
        return None
    if not any(ordered.compared(x, right[name])[0] for name, x in left.items()):
        return None
    return evidence((a, b), setting, inputs, (left, right), repr(ordered))


def _difference(
    a: Graph, b: Graph, setting: Setting, inputs: dict[str, Array]
) -> Counterexample | None:
    watched = Watched()
    left, right = setting.run_all((a, b), inputs, watched)
    if all(np.array_equal(x, right[name]) for name, x in left.items()):
        return None
    if all(close(x, right[name]) for name, x in left.items()):
        return None
    rough = setting.run_all((a, b), inputs, Float32)
    for name, x in left.items():
        y = right[name]
        undefined = x.shape == y.shape and not watched.overflowed
        if (
            x.shape != y.shape
            or (undefined and (np.isnan(x) != np.isnan(y)).any())
            or clearly_apart(x, y, *(r[name] for r in rough))
        ):
            if not _really(a, b, setting, inputs, undefined=undefined):
                return None
            shown = setting.run(a, inputs, Float64), setting.run(b, inputs, Float64)
            return evidence((a, b), setting, inputs, shown, "bb.Float64")
    return None


def _really(
    a: Graph, b: Graph, setting: Setting, inputs: dict[str, Array], *, undefined: bool
) -> bool:
    """Whether decimal numbers differ too; ``undefined``: or are none in one program alone."""
    made = in_decimals((a, b), setting, inputs)
    if made is None:
        return False
    left, right = made
    return any(
        x.shape != right[name].shape or _apart(x, right[name], undefined=undefined)
        for name, x in left.items()
    )


def _apart(x: Array, y: Array, *, undefined: bool) -> bool:
    pairs = list(zip(x.ravel().tolist(), y.ravel().tolist(), strict=True))
    if undefined and any(p.is_nan() != q.is_nan() for p, q in pairs):
        return True
    pairs = [(p, q) for p, q in pairs if p.is_finite() and q.is_finite()]
    scale = max((abs(z) for pair in pairs for z in pair), default=Decimal(0))
    return any(abs(p - q) > Decimal(TOLERANCE) * scale for p, q in pairs)


def close(x: Array, y: Array) -> bool:
    """True if x and y have their NaNs and infinities in one place and agree elsewhere."""
    if x.shape != y.shape:
        return False
    if (x == y).all():
        return True
    scale = max(np.abs(z[np.isfinite(z)]).max(initial=0) for z in (x, y))
    return np.allclose(x, y, rtol=0, atol=float(TOLERANCE * scale), equal_nan=True)


def clearly_apart(x: Array, y: Array, rough_x: Array, rough_y: Array) -> bool:
    """True if x and y differ by far more than rounding, which costs less than single precision."""
    with np.errstate(all="ignore"):
        finite = np.isfinite(x) & np.isfinite(y) & np.isfinite(rough_x) & np.isfinite(rough_y)
        x, y, rough_x, rough_y = (np.where(finite, z, 0.0) for z in (x, y, rough_x, rough_y))
        scale = max(np.abs(x).max(initial=0), np.abs(y).max(initial=0))
        noise = np.abs(x - rough_x) + np.abs(y - rough_y)
        return bool((np.abs(x - y) > np.maximum(TOLERANCE * scale, 10 * noise)).any())
