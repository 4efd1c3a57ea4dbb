"""Which loops go past the blocks that masks in memory empty, and what reports say of it."""

import numpy as np
import pytest
import torch

import blockbuster as bb
from blockbuster.emit.tile.chains import next_of
from blockbuster.emit.tile.program import For, statements
from blockbuster.frontend.conditions import SIDE
from blockbuster.frontend.emptied import emptied

SIZES = dict(H=64, M=1024, N=1024, D=64, L=64)


def attend(q, k, v, seen):
    scores = bb.where(seen, q @ k.swapaxes(-1, -2), -np.inf)
    return bb.softmax(scores, axis=-1) @ v


def graph_of_attention():
    program = bb.trace(attend, q="H M D", k="H N D", v="H N L", seen="bool: M N")
    return bb.fuse(bb.lower(program)).final


def chains_in(program):
    loops = (s for nest in program.nests for s in statements(nest.body) if isinstance(s, For))
    return [loop.dim for loop in loops if next_of(loop) is not None]


@pytest.mark.parametrize(
    ("heads", "constant", "chains"), [(64, ("seen",), ["N"]), (64, (), []), (1, ("seen",), [])]
)
def test_a_loop_goes_past_what_a_constant_mask_empties_unless_it_needs_chunks(
    heads, constant, chains
):
    graph, sizes = graph_of_attention(), {**SIZES, "H": heads}
    kernel = bb.emit(graph, sizes, "float16", target="h100", constant=constant)

    assert chains_in(kernel.tile_program) == chains
    assert ("def prepare(seen)" in kernel.source) == bool(chains)


BLOCKS = np.random.default_rng(0).random((16, 16)) < 0.3
SEEN = torch.from_numpy(np.kron(BLOCKS, np.ones((SIDE, SIDE), bool)))
FULL = torch.rand(16 * SIDE, 16 * SIDE, generator=torch.Generator().manual_seed(0)) < 0.5
ADDED = torch.zeros(SEEN.shape).masked_fill(~SEEN, -torch.inf)
X = np.ones(SEEN.shape)
PROGRAMS = {
    # name: what is computed, and the masks that empty blocks
    "chosen": (lambda x: bb.where(SEEN, x, 0.0), ["SEEN"]),
    "masked": (lambda x: bb.where(SEEN, 0.0, x), []),
    "turned": (lambda x: bb.where(~SEEN, 0.0, x), ["constant"]),
    "multiplied": (lambda x: SEEN * x, ["SEEN"]),
    "joined": (lambda x: bb.where(SEEN & (x > 0), x, 0.0), ["SEEN"]),
    "both ways": (lambda x: bb.where(SEEN, x, 0.0) + bb.where(SEEN, 0.0, x), []),
    "added": (lambda x: ADDED + x, ["ADDED"]),
    "without blocks": (lambda x: bb.where(FULL, x, 0.0), []),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_which_masks_empty_blocks(name):
    fn, wanted = PROGRAMS[name]
    assert [*emptied(bb.trace(fn, x=X), 0.5)] == wanted


def test_the_report_says_what_is_left_out():
    def attend(q, k, v):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=SEEN)

    arrays = (torch.zeros(4, 32, 16 * SIDE, 64, dtype=torch.float16) for _ in range(3))
    report = str(bb.jit(attend, machine="h100").report_for(*arrays).details)
    report = " ".join(report.split())

    false = np.count_nonzero(~BLOCKS)
    assert f"of its 256 blocks of 64 x 64, {false} are False and {256 - false} are True" in report
    assert "goes past the blocks in which SEEN lets nothing by" in report


def test_a_captured_mask_may_change():
    seen = SEEN.clone()
    fast = bb.jit(lambda x: torch.where(seen, x, 0.0).sum(-1))
    x = torch.ones(SEEN.shape)

    assert torch.equal(fast(x), seen.sum(-1).float())
    seen[0] = True
    assert torch.equal(fast(x), seen.sum(-1).float())
