"""One rule for dtypes: jit, emit, plans and the documentation give one answer, with right values."""

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster.emit.array_dtypes import array_dtypes, given_by
from blockbuster.emit.lower import lower_to_tiles
from blockbuster.emit.value_dtypes import output_dtypes
from blockbuster.ir.ops import Misc
from tests.compile.dtype_programs import COLUMNS, DTYPES, ROWS, SEEN, random_function, right

UNITS = {"": 2e-6, "bool": 0, "float64": 2e-6, "float32": 2e-6, "float16": 4e-3, "bfloat16": 3e-2}
INPUTS = {"x": "M N", "y": "M N"}


def held(dtype):
    """What NumPy holds arrays of a dtype in."""
    return "float32" if dtype == "bfloat16" else dtype


def drawn(seed):
    """A program, its inputs, and the dtype in which they meet."""
    random = Random(seed)
    function = random_function(random)
    kinds = [random.choice(DTYPES[:2]) for _ in INPUTS]
    if random.random() < 0.15:
        kinds[0] = "float64"
    rng = np.random.default_rng(seed)
    arrays = {
        name: (3 * rng.standard_normal((ROWS, COLUMNS))).astype(kind)
        for name, kind in zip(INPUTS, kinds, strict=True)
    }
    return function, arrays, str(np.result_type(*kinds))


def check_values(results, wanted):
    for result, exact, dtype in zip(results, wanted.arrays, wanted.dtypes, strict=True):
        unit = max(UNITS[wanted.narrow], UNITS[dtype])
        if dtype == "bool":
            assert result.shape == exact.shape
            assert wanted.narrow or (result == exact).mean() > 0.9
            continue
        largest = max(np.abs(exact).max(initial=0), 1)
        np.testing.assert_allclose(
            result.astype(float), exact.astype(float), rtol=0, atol=unit * largest
        )


@given(st.integers(0, 2**32))
def test_jit_emit_and_the_declared_rule_agree(seed):
    function, arrays, common = drawn(seed)
    program = bb.trace(function, **INPUTS)
    wanted = right(program, arrays, common)
    SEEN.clear()

    jitted = bb.jit(function)
    results = jitted(**arrays)

    assert [str(r.dtype) for r in results] == [held(d) for d in wanted.dtypes]
    assert list(jitted.plan_for(**arrays).result_dtypes) == wanted.dtypes
    assert set(SEEN) <= {held(dtype).replace("bool", common) for dtype in wanted.opaque}
    check_values(results, wanted)
    graph = bb.lower(program)
    derivation = bb.fuse(graph)
    for snapshot in (graph, derivation.final, *derivation.snapshots):
        assert list(output_dtypes(snapshot, common).values()) == wanted.dtypes


@given(st.integers(0, 2**32))
def test_emitted_files_hold_the_declared_dtypes(seed):
    function, arrays, common = drawn(seed)
    program = bb.trace(function, **INPUTS)
    wanted = right(program, arrays, common)
    if common == "float64" or "float64" in wanted.dtypes or wanted.opaque:
        return
    given_dtypes = {name: str(array.dtype) for name, array in arrays.items()}
    graph = bb.fuse(bb.lower(program)).final
    if list(graph.of_type(Misc)):
        return  # a copy of a view: no kernel holds it
    tiles = lower_to_tiles(bb.safe(graph))
    known = {b.name: given_dtypes[b.name] for b in tiles.inputs}
    found = array_dtypes(graph, tiles, given_by({**known}))
    if len(set(known.values())) < len(set(given_dtypes.values())):
        return  # an input is not read: the kernel has no other dtype to meet

    shown = ["bool" if b.boolean else found.of[b.name].name for b in tiles.outputs]
    assert shown == wanted.dtypes
