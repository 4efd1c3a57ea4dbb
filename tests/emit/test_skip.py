"""The move skip: loops go past the blocks in which a mask in memory is false everywhere."""

from functools import cache
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster.emit.interpret.interpreter import run_tiles
from blockbuster.emit.interpret.memory import Hazard
from blockbuster.emit.schedule import conditions, skip
from blockbuster.emit.schedule.scheduled import unscheduled
from blockbuster.emit.schedule.script import BY_NAME
from blockbuster.emit.schedule.site import Site
from blockbuster.emit.target.targets import target_of
from blockbuster.emit.tile.array_dtypes import given_by, typed_for_gpu
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.verify import verify_tiles
from blockbuster.errors import VerifyError
from blockbuster.runtime.launch import run_interpreted
from tests.emit.cases import FOLDER
from tests.emit.numpy_runs import run_numpy
from tests.emit.parse_tiles import parse_tiles
from tests.emit.test_move_mutants import mutated
from tests.emit.test_narrow import Loads

SKIP, LOOP = BY_NAME["skip"], Site(1, "N")
RANDOMS = st.integers(0, 2**32 - 1).map(Random)
HELD = {"held": "bool: M N", "row": "bool: N"}
MASKED = {  # what is added up, and where it is not 0
    "where(held, x, 0)": "held", "where(row, x, 0)": "row", "where(held, 0, x)": "~held",
    "where(held | ~row, x, 0)": "held | ~row", "where(held & (j <= i), x, 0)": "held & (j <= i)",
    "where(row & (j > i), x, 0)": "row & (j > i)", "x * held * row": "held & row",
    "where(held, x, 0) + where(row, x, 0)": "held | row",
}  # fmt: skip


@cache
def masked_sum(text):
    """Row sums of ``text``, an expression of x, of positions and of masks in memory."""

    def masked(x, held, row):
        i, j = bb.arange(x.shape[0])[:, None], bb.arange(x.shape[1])
        made = {"i": i, "j": j, "x": x, "held": held, "row": row, "where": bb.where}
        return eval(text, {}, made).sum(-1)

    graph = bb.fuse(bb.lower(bb.trace(masked, x="M N", **HELD))).final
    tiles = typed_for_gpu(graph, lower_to_tiles(graph), given_by("float32"))
    return unscheduled(tiles, {"M": 9, "N": 40}, target_of("sm_90"))


def drawn(random, sizes, blocks):
    """Arrays; of the masks most blocks are empty, of some rows all."""
    numbers = np.random.default_rng(random.randint(0, 2**32))
    rows, columns = (-(-sizes[dim] // blocks[dim]) for dim in "MN")
    kept = numbers.random((rows, columns)) < random.choice((0.0, 0.2, 0.5, 1.0))
    kept = np.kron(kept, np.ones((blocks["M"], blocks["N"])))[: sizes["M"], : sizes["N"]] > 0
    return {
        "x": numbers.integers(1, 9, (sizes["M"], sizes["N"])).astype(float),
        "held": kept & (numbers.random(kept.shape) < 0.6),
        "row": numbers.random(sizes["N"]) < random.choice((0.1, 0.5)),
    }


def mask_of(text, arrays):
    rows, columns = arrays["x"].shape
    i, j = np.arange(rows)[:, None], np.arange(columns)
    seen = eval(MASKED[text], {}, {"i": i, "j": j, **arrays})
    return np.broadcast_to(seen, (rows, columns))


def not_empty(mask, blocks):
    """How many blocks of a mask have a true element."""
    for axis, dim in enumerate("MN"):
        starts = np.arange(0, mask.shape[axis], blocks[dim])
        mask = np.logical_or.reduceat(mask, starts, axis=axis) if len(starts) else mask
    return np.count_nonzero(mask)


def run_of(draft, arrays, sizes, blocks):
    """The sums, and how many tiles of x are loaded."""
    loads = Loads()
    arrays = {buffer.name: arrays[buffer.name] for buffer in draft.inputs}
    return run_tiles(draft, arrays, sizes, blocks, observer=loads)["out"], loads.count["x"]


def agrees(text, random):
    """Whether after the move all sums are the same, of the blocks with a true element alone."""
    sizes = {"M": random.randint(1, 9), "N": random.randint(1, 40)}
    blocks = {"M": random.randint(1, 5), "N": random.randint(1, 9)}
    start = masked_sum(text)
    if SKIP.why_not(start, LOOP):
        return False  # all of these may skip blocks
    after, arrays = SKIP.apply(start, LOOP).draft, drawn(random, sizes, blocks)
    verify_tiles(after)
    assert parse_tiles(after.show()) == after
    (full, _), (some, count) = (
        run_of(draft, arrays, sizes, blocks) for draft in (start.draft, after)
    )
    given = {buffer.name: arrays[buffer.name] for buffer in after.inputs}
    printed = run_numpy(after, given, sizes, blocks, folder=FOLDER)["out"]
    exact = count == not_empty(mask_of(text, arrays), blocks)
    return exact and np.array_equal(full, some) and np.array_equal(full, printed)


@settings(max_examples=12)
@given(st.sampled_from([*MASKED]), RANDOMS)
def test_only_blocks_with_a_true_element_run(text, random):
    assert agrees(text, random)


@pytest.mark.parametrize(
    ("text", "reason"),
    [("where(j < i, x, 0)", "no truth values in memory empty iterations over N"),
     ("where(held & (x > 3), x, 0)",
      "the mask of the loop over N depends on other data than truth values"),
     ("where(i < 3, x, 0)", "no mask in the loop over N differs from block to block")],
)  # fmt: skip
def test_masks_that_no_nest_before_can_look_through(text, reason):
    assert SKIP.why_not(masked_sum(text), LOOP) == reason


def test_a_chain_is_not_cut():
    after = SKIP.apply(masked_sum("where(held, x, 0)"), LOOP)
    chain = "the loop over N goes from block to block by a chain"
    other = "the loop over N runs over other blocks than all in their order"

    assert BY_NAME["part"].why_not(after, Site(2, "N")) == chain
    assert BY_NAME["chunk"].why_not(after, Site(2, "N"), count=2) == chain
    assert SKIP.why_not(after, Site(2, "N")) == other
    assert BY_NAME["chunk"].why_not(after, LOOP, count=2)  # the nest that writes it
    assert SKIP.why_not(after, Site(2, "M")).startswith("the iterations over M are parallel")


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [("s_1 += s_5\n        next N at t20", "next N at t20\n        s_1 += s_5", "ends no loop"),
     ("from t18 to t17", "from t18", "lacks its first block"),
     ("next N at t20", "next M at t20", "another order"),
     ("next N at t20", "next N at t18", "is read from no chain")],
)  # fmt: skip
def test_chains_are_verified(old, new, reason):
    text = SKIP.apply(masked_sum("where(held, x, 0)"), LOOP).draft.show()
    assert old in text
    with pytest.raises(VerifyError, match=reason):
        verify_tiles(parse_tiles(text.replace(old, new)))


def test_a_chain_that_leads_nowhere_is_a_hazard():
    draft = SKIP.apply(masked_sum("where(held, x, 0)"), LOOP).draft
    text = draft.show()
    broken = parse_tiles(text.replace("index N at first", "index N at end"))
    arrays = {"x": np.ones((4, 9)), "held": np.ones((4, 9), bool), "row": np.ones(9, bool)}

    with pytest.raises(Hazard, match="which is none"):
        run_tiles(broken, arrays, {"M": 4, "N": 9}, {"M": 2, "N": 3})


MUTANTS = [
    # (module, text, what replaces it, masks that show it)
    (skip, 'call("or", a, b)', 'call("and", a, b)', "where(held, x, 0) + where(row, x, 0)"),
    (skip, 'call("not", one.formula) if one.dead else one.formula', "one.formula",
     "where(held, 0, x)"),
    (skip, "down=True", "down=False", "where(held, x, 0)"),
    (skip, '("row_max"), (whole,)', '("row_min"), (whole,)', "where(held, x, 0)"),
    (skip, "Fold(number, \"+\", tile", "Fold(number, \"+\", place", "where(held, x, 0)"),
    (skip, "Arg(1), math.inf)", "Arg(1), 0.0)", "where(held, x, 0)"),
    (skip, "used |= {s.dim for s in made if isinstance(s, Iota)}", "",
     "where(row & (j > i), x, 0)"),
    (skip, 'call("and", a, b)', "a", "x * held * row"),
    (conditions, 'call("ne", leaf, 0.0) if tile.dtype == TRUTH', 'call("eq", leaf, 0.0) if True',
     "where(held, x, 0)"),
]  # fmt: skip


@pytest.mark.parametrize(("module", "old", "new", "text"), MUTANTS)
def test_a_broken_chain_is_caught(monkeypatch, module, old, new, text):
    mutated(monkeypatch, module, old, new)
    masked_sum.cache_clear()  # moves remember what they made of a program's bodies
    found = []
    for seed in range(3):
        try:
            found.append(agrees(text, Random(seed)))
        except (AssertionError, Hazard, VerifyError):
            found.append(False)
    assert not all(found)


SIZES = {"H": 2, "M": 40, "N": 70, "D": 16, "L": 16}
TEXT = "block M 16, N 16, D 16 whole, L 16 whole; skip nest 1 N; warps 4; stage nest 2 N 2"


@pytest.mark.interpreter
def test_attention_past_empty_blocks_in_triton():
    def attend(q, k, v, held):
        scores = bb.where(held, q @ k.swapaxes(-1, -2), -np.inf)
        return bb.softmax(scores, axis=-1) @ v

    program = bb.trace(attend, q="H M D", k="H N D", v="H N L", held="bool: M N")
    graph = bb.fuse(bb.lower(program)).final
    kernel = bb.emit(graph, SIZES, "float32", schedule=TEXT, constant=("held",))
    random = np.random.default_rng(0)
    arrays = {
        name: random.normal(size=[SIZES[d] for d in dims]).astype("float32")
        for name, dims in {"q": "HMD", "k": "HND", "v": "HNL"}.items()
    }
    kept = np.array([[0, 1, 0, 0, 1], [1, 0, 0, 1, 0], [0, 0, 0, 0, 0]], bool)  # none for the last
    arrays["held"] = np.kron(kept, np.ones((16, 16), bool))[:40, :70]
    (expected,) = program.numpy(arrays).values()

    np.testing.assert_allclose(run_interpreted(kernel, arrays)["out"], expected, atol=2e-6)
    assert kernel.derivation.prove().equal
