"""Random programs with random dims whole: lowered, scheduled and run, they compute the same."""

from random import Random

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from blockbuster.emission import emit
from blockbuster.emit.interpret.proof import prove_tiles
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.program import For, statements
from blockbuster.emit.tile.verify import verify_tiles
from blockbuster.errors import EmitError
from blockbuster.ir.types import size_class
from blockbuster.ir.whole_dims import whole_dims
from blockbuster.rules import WholeDim, fuse, safe
from blockbuster.testing.generators import GENERATORS
from tests.emit.random_tiles import all_cut, is_cut, start_of
from tests.emit.test_random_arrays import equal, prepared
from tests.parameters import rest_slow
from tests.rules.test_whole_dim import arrays_named

RANDOMS = st.integers(0, 2**32 - 1).map(Random)
UNSHRUNK = (Phase.explicit, Phase.reuse, Phase.generate)


def with_whole_dims(graph, random):
    """A derivation with one or two dims whole, or None where none can be."""
    dims = [dim for match in WholeDim().matches(graph) for dim in match.nodes]
    if not dims:
        return None
    return fuse(graph, whole=random.sample(dims, min(len(dims), random.randint(1, 2))))


@settings(max_examples=20, phases=UNSHRUNK)
@example(Random(2))  # a loop in chunks, and a nest in front of it that does not walk its dim
@example(Random(4))  # a nest that reads only the size of a dim
@example(Random(22))
@example(Random(136))  # a loop in chunks before any block: the chunks are one block already
@example(Random(54162))  # full blocks of a dim that is in two parts elsewhere
@given(RANDOMS)
def test_scheduled_at_random(random):
    kind = random.choice(("arrays", "norms", "matrices"))
    derivation = with_whole_dims(arrays_named(GENERATORS[kind](random)), random)
    if derivation is None:
        return
    graph = safe(derivation.final)
    verify_tiles(lower_to_tiles(graph))

    end = start_of(graph, random)
    end = end if is_cut(end) else all_cut(end, random)
    assert is_cut(end), end.schedule
    for nest in end.draft.nests:
        looped = {stmt.dim for stmt in statements(nest.body) if isinstance(stmt, For)}
        for block in nest.blocks:
            if size_class(block.dim) in whole_dims(graph):
                assert block.whole or block.dim in looped
    proof = prove_tiles(graph, end.program, trials=4, seed=random.randint(0, 99), lanes=True)
    assert proof.equal, f"{end.schedule}\n{proof}"


def emitted_whole(graph, sizes, dtype, target):
    """A kernel of the program with random dims whole; refused where none can be."""
    random = Random(graph.show())
    derivation = with_whole_dims(graph, random)
    if derivation is None:
        raise EmitError("no dim can be whole")
    return emit(derivation, sizes, dtype, target)


@pytest.mark.interpreter
@pytest.mark.parametrize("seeds", rest_slow([range(600, 604), range(604, 607)], [range(600, 604)]))
def test_run_in_tritons_interpreter(tmp_path, monkeypatch, seeds):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    kernels = equal([prepared(seed, "sm_90", emitted_whole) for seed in seeds])

    assert len(kernels) >= len(seeds) // 2
    for kernel in kernels:
        assert any(block.whole for nest in kernel.tile_program.nests for block in nest.blocks)
