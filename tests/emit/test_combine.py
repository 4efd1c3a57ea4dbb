"""How what chunks accumulated lies in memory, and becomes one result: in one tile, or in turn."""

import numpy as np

from blockbuster.emission import check_schedule, emit
from blockbuster.emit.schedule.chunk_loops import ChunkLoop
from blockbuster.emit.schedule.site import Site
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.program import Fold, For, Load, statements
from blockbuster.ir.parse import parse
from blockbuster.runtime.launch import run_interpreted
from tests.emit.cases import SAFE_ATTENTION, bare, scheduled_of
from tests.emit.test_chunk_loops import SPLIT_K, chunked
from tests.emit.test_defer_lane_sums import ROWS

ATTENTION = parse(SAFE_ATTENTION)


def test_a_tile_of_partial_results_lies_together():
    """Chunk by chunk it is stored and loaded in one piece; numbers of a row lie side by side."""
    product = chunked(SPLIT_K, asked={"K": 2}, size=64)
    rows = chunked(ROWS, size=32)

    assert [[axis.dim for axis in b.axes] for b in product.workspaces] == [["K_chunk", "M", "N"]]
    assert [[axis.dim for axis in b.axes] for b in rows.workspaces] == [["M", "N_chunk"]]


def test_a_running_exponent_is_folded_chunk_by_chunk():
    scheduled = scheduled_of(lower_to_tiles(ATTENTION))
    made = bare(ChunkLoop().apply(scheduled, Site(1, "N"), count=4))
    folds = [s for nest in made.nests for s in statements(nest.body) if isinstance(s, Fold)]
    groups = [fold for fold in folds if fold.members]

    assert len(groups) == 2
    assert groups[0].target == groups[1].target
    assert [m.factor for m in groups[0].members] == [m.factor for m in groups[1].members]
    assert any(isinstance(s, For) and s.dim == "N_chunk" for s in statements(made.nests[1].body))


def test_blocks_are_combined_at_once_where_all_is():
    text = "chunk nest 1 N 2 all at once\nblock nest 1 M 16, N 16, D 16 whole, L 16 whole\n"
    text += "block nest 2 M 1, L 16 whole\nwarps 4\n"
    sizes = dict(M=32, N=64, D=16, L=16)
    kernel = emit(ATTENTION, sizes, "float32", schedule=text)
    combining = kernel.tile_program.nests[1].body

    assert kernel.schedule == text
    assert not any(isinstance(stmt, For) for stmt in combining)
    assert max(len(s.target.axes) for s in combining if isinstance(s, Load)) == 3
    assert "[:, None, :]" in kernel.source
    assert check_schedule(ATTENTION, text, sizes, trials=2)
    random = np.random.default_rng(0)
    arrays = {
        array.name: random.normal(size=[sizes[axis.dim] for axis in array.axes]).astype("float32")
        for array in kernel.tile_program.inputs
    }
    one_by_one = emit(ATTENTION, sizes, "float32", schedule=text.replace(" all at once", ""))
    found, right = (run_interpreted(k, arrays) for k in (kernel, one_by_one))
    for name, result in found.items():
        np.testing.assert_allclose(result, right[name], rtol=1e-5, atol=1e-6)
