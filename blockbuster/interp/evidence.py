"""The only place that makes a counterexample of a difference between two programs.

The methods that look for differences (floating point, fractions, cases) compute with numbers that
have no dtype. A difference counts only if each input is a number of its dtype and no integer
overflows: both programs, run again in the dtypes of their arrays, must give the same results as
before. If an integer overflows, the difference shows nothing and is dropped.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from blockbuster.interp.domains import dtypes_of, nearest
from blockbuster.interp.layout import Array
from blockbuster.interp.native import Native
from blockbuster.interp.proof import Counterexample
from blockbuster.interp.setting import Setting
from blockbuster.ir.graph import Graph

Outputs = tuple[Mapping[str, Array], Mapping[str, Array]]


def evidence(
    programs: tuple[Graph, Graph],
    setting: Setting,
    inputs: Mapping[str, Array],
    outputs: Outputs,
    semantics: str,
) -> Counterexample | None:
    """The counterexample of inputs on which ``outputs`` differ, or None if it does not count."""
    dtypes = dtypes_of(*programs)
    for name, dtype in dtypes.items():
        assert np.array_equal(nearest(dtype, inputs[name]), inputs[name]), f"{name} is no {dtype}"
    if dtypes and not all(map(_again, programs, outputs, [(setting, inputs)] * 2)):
        return None
    return Counterexample(programs, setting.sizes, setting.block_sizes, inputs, *outputs, semantics)


def _again(
    graph: Graph, expected: Mapping[str, Array], at: tuple[Setting, Mapping[str, Array]]
) -> bool:
    """Whether a program gives the same where integers have dtypes; NaN may be anything there."""
    setting, inputs = at
    try:
        made = setting.run(graph, inputs, Native())
    except OverflowError:  # a constant that the dtype beside it lacks
        return False
    return all(_same(made[name], np.asarray(x, float)) for name, x in expected.items())


def _same(native: Array, exact: Array) -> bool:
    with np.errstate(all="ignore"):
        near = np.isclose(native, exact, rtol=1e-6, atol=1e-6)
    return bool((near | ~np.isfinite(exact)).all())
