"""The move overlap on a program's first nest: it waits for whatever was launched before."""

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.emission import check_schedule, emit
from blockbuster.emit.target.compiler import compiled_entry
from blockbuster.emit.target.load import load_module
from blockbuster.emit.target.targets import target_of
from blockbuster.emit.tile import verify_waits
from blockbuster.emit.tile.waits import Release, Wait
from blockbuster.errors import EmitError
from blockbuster.runtime.launch import run_interpreted
from tests.emit.test_overlap import DIMS, SIZES, TOUCHES, chain, launched, scheduled


@pytest.fixture(scope="module")
def graph():
    return bb.fuse(bb.lower(bb.trace(chain, **DIMS))).snapshots[0]


ROWS = "block M 4, N 8; warps 4; overlap"


@pytest.fixture(scope="module")
def sums():
    return bb.fuse(bb.lower(bb.trace(lambda x: bb.sum(x, axis=-1), x="M N"))).final


def test_one_nest_has_none_before_it(sums):
    with pytest.raises(EmitError, match="nest 1 is the only one: name it"):
        emit(sums, dict(M=8, N=8), "float32", schedule=ROWS)


def test_one_nest_waits_for_what_ran_before_the_program(sums):
    kernel = emit(sums, dict(M=8, N=8), "float32", schedule=f"{ROWS} nest 1")
    found = [type(stmt) for stmt in kernel.tile_program.nests[0].body]
    x = np.arange(64.0, dtype="float32").reshape(8, 8)

    assert found.count(Wait) == 1
    assert Release not in found
    assert (run_interpreted(kernel, dict(x=x))["out"] == x.sum(axis=-1)).all()
    ((_, options),) = launched(kernel.source, True, dict(x="M N"), M=8, N=8)
    assert options["launch_pdl"] is True
    ptx = compiled_entry(load_module(kernel.source).KERNELS[0], target_of("sm_90"))[0].asm["ptx"]
    assert TOUCHES.search(ptx)[0] == "griddepcontrol.wait"


def test_the_first_of_several_waits_before_it_touches_memory(graph):
    kernel = scheduled(graph, "overlap nest 1; overlap")
    entry, _ = load_module(kernel.source).KERNELS
    ptx = compiled_entry(entry, target_of("sm_90"))[0].asm["ptx"]

    assert [verify_waits.is_dependent(nest) for nest in kernel.tile_program.nests] == [True] * 2
    assert kernel.source.count("gdc_wait()") == 2
    assert kernel.source.count("gdc_launch_dependents()") == 1
    assert TOUCHES.search(ptx)[0] == "griddepcontrol.wait"
    assert check_schedule(graph, kernel.schedule, sizes=SIZES, trials=2)


def test_a_kernel_behind_one_that_is_not_started_begins_as_usual(graph):
    """It loads arrays before it waits, which what the caller launched before may still write."""
    source = scheduled(graph, "overlap nest 1; overlap").source
    ((name, options),) = launched(source, True, **{**SIZES, "N": 0})
    assert name == "out_kernel"
    assert "launch_pdl" not in options
