"""The move narrow: loops over the blocks only in which a mask is true somewhere."""

import re
from collections import Counter
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster.emit.interpret.interpreter import run_tiles
from blockbuster.emit.interpret.observer import TileObserver
from blockbuster.emit.schedule.scheduled import unscheduled
from blockbuster.emit.schedule.script import BY_NAME
from blockbuster.emit.schedule.site import Site
from blockbuster.emit.target.targets import target_of
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.verify import verify_tiles
from blockbuster.interp.semantics import Float32, Float64
from blockbuster.runtime.launch import run_interpreted
from tests.emit.parse_tiles import parse_tiles
from tests.emit.random_masks import random_condition
from tests.parameters import rest_slow

NARROW = BY_NAME["narrow"]
RANDOMS = st.integers(0, 2**32 - 1).map(Random)
HERE = {"np": np, "bb": bb}


class Loads(TileObserver):
    """How many tiles of each array are loaded."""

    def __init__(self):
        self.count = Counter()

    def load(self, view, elements):
        self.count[view.buffer.name] += 1


def masked_sum(text):
    """Row sums of x where the condition of ``text`` is true."""

    def masked(x, n, h):
        i, j = bb.arange(x.shape[0])[:, None], bb.arange(x.shape[1])
        seen = eval(text, HERE, {"i": i, "j": j, "n": n[:, None], "h": h[0]})
        return bb.where(seen, x, 0.0).sum(-1)

    program = bb.trace(masked, x="M N", n="M", h="H")
    return lower_to_tiles(bb.fuse(bb.lower(program)).final)


def unscheduled_at(program, sizes):
    return unscheduled(program, sizes, target_of("sm_90"))


def numbers(random, size, high):
    """Whole numbers around the positions, fractions, and what is none."""
    made = np.array([float(random.randint(-5, high + 5)) for _ in range(size)])
    if random.random() < 0.4:
        made += [random.random() - 0.5 for _ in range(size)]
    if random.random() < 0.3:
        made[[random.random() < 0.4 for _ in range(size)]] = random.choice(
            (np.nan, np.inf, -np.inf)
        )
    return made


def blocks_with_a_point(mask, rows, columns):
    """From the first to the last block with a true element, for each block of rows."""
    found = 0
    for row in range(0, len(mask), rows):
        at = np.nonzero(mask[row : row + rows].any(0))[0] // columns
        found += at.max() - at.min() + 1 if len(at) else 0
    return found


def both_runs(before, after, arrays, sizes, blocks, semantics=Float64):
    """The outputs before and after a move, and how many tiles of x each loads."""
    found = []
    for draft in (before.draft, after.draft):
        loads = Loads()
        given = {b.name: arrays[b.name] for b in draft.inputs}
        made = run_tiles(draft, given, sizes, blocks, semantics=semantics, observer=loads)
        found.append((made["out"], loads.count["x"]))
    return found


@settings(max_examples=60)
@given(RANDOMS)
def test_a_range_holds_every_block_with_a_point(random):
    text = random_condition(random, random.randint(0, 2))
    sizes = {"M": random.randint(1, 9), "N": random.randint(0, 40), "H": 1}
    blocks = {"M": random.randint(1, 5), "N": random.randint(1, 9)}
    start = unscheduled_at(masked_sum(text), sizes)
    for site in list(NARROW.sites(start)):
        after = NARROW.apply(start, site)
        verify_tiles(after.draft)
        assert parse_tiles(after.draft.show()) == after.draft
        arrays = {
            "x": np.array([[random.randint(1, 9) for _ in range(sizes["N"])]
                           for _ in range(sizes["M"])], float).reshape(sizes["M"], sizes["N"]),
            "n": numbers(random, sizes["M"], sizes["N"]), "h": numbers(random, 1, sizes["N"]),
        }  # fmt: skip
        for semantics in (Float64, Float32):
            (full, all_of_them), (narrow, some) = both_runs(
                start, after, arrays, sizes, blocks, semantics
            )
            assert np.array_equal(full, narrow), (text, after.draft.show())
            assert some <= all_of_them


@pytest.mark.parametrize(
    "text",
    ["i >= j", "i > j", "j - i <= 4", "i - j < 7", "2 * j <= i", "j < 13", "(i >= j) & (i - j < 5)",
     "np.abs(i - j) <= 3", "(i >= j) | (j < 9)", "~(j > i + 2)", "j < n", "j <= n",
     "3 * i + 2 * j < 30", "j == i", "-j > -n", "i // 4 == j // 4", "i // 3 == (j + 2) // 5",
     "j // 6 <= i // 4", "j // 5 < i // 2", "(j - 9) // 4 > i // 4", "(i - 30) // 4 >= -j // 3"],
)  # fmt: skip
def test_a_range_is_tight_for_usual_masks(text):
    rows, columns, lanes = 23, 41, (4, 3)
    sizes = {"M": rows, "N": columns, "H": 1}
    start = unscheduled_at(masked_sum(text), sizes)
    after = NARROW.apply(start, Site(1, "N"))
    i, j, n = np.arange(rows)[:, None], np.arange(columns), np.arange(rows)[:, None] % 17 + 2.0
    arrays = {"x": np.ones((rows, columns)), "n": n[:, 0], "h": np.zeros(1)}
    (full, _), (narrow, some) = both_runs(start, after, arrays, sizes, {"M": 4, "N": 3})
    mask = np.broadcast_to(eval(text, HERE, {"i": i, "j": j, "n": n, "h": 0}), (rows, columns))

    assert np.array_equal(full, narrow)
    assert some == blocks_with_a_point(mask, *lanes)


@pytest.mark.parametrize(
    ("text", "reason"),
    [("i >= 3", "no mask in the loop over N differs from block to block"),
     ("(j > i) | (i < 5)", "the mask of the loop over N bounds no range of its blocks"),
     ("j != i", "the mask of the loop over N bounds no range of its blocks"),
     ("j * j < i * n", "the mask of the loop over N bounds no range of its blocks")],
)  # fmt: skip
def test_masks_that_bound_nothing(text, reason):
    start = unscheduled_at(masked_sum(text), {"M": 9, "N": 9, "H": 1})

    assert NARROW.why_not(start, Site(1, "N")) == reason


def attention(mask, fill=-np.inf, **more):
    """Attention under a mask of positions and of what ``more`` names."""

    def attend(q, k, v, **data):
        i, j = bb.arange(q.shape[-2])[:, None], bb.arange(k.shape[-2])
        scores = bb.where(mask(i, j, **data), q @ k.swapaxes(-1, -2), fill)
        return bb.softmax(scores, axis=-1) @ v

    names = ", ".join(more)
    text = f"def f(q, k, v{names and ', ' + names}): return attend(q, k, v"
    made = {"attend": attend}
    exec(f"{text}, {', '.join(f'{name}={name}' for name in more)})", made)
    return bb.trace(made["f"], q="H M D", k="H N D", v="H N L", **more)


MASKS = {
    "causal": attention(lambda i, j: i >= j),
    "window": attention(lambda i, j: (i >= j) & (i - j < 20)),
    "both sides": attention(lambda i, j: np.abs(i - j) <= 9),
    "prefix": attention(lambda i, j: (i >= j) | (j < 21)),
    "lengths": attention(lambda i, j, n: j < n[:, None, None], n="H"),
    "rows": attention(lambda i, j, n: (j < n[:, None]) & (j <= i), n="M"),
    "nothing": attention(lambda i, j, n: j < n[:, None] - 100, n="M"),
    "shifted": attention(lambda i, j, n: (i + n[:, None, None] >= j) & (j > i - 5), n="H"),
}
SIZES = {"H": 2, "M": 40, "N": 70, "D": 16, "L": 16}
TEXT = "block M 16, N 16, D 16 whole, L 16 whole; narrow nest 1 N; warps 4; stage nest 1 N 2"


def arrays_of(program, sizes):
    random = np.random.default_rng(0)
    dims = {"q": "HMD", "k": "HND", "v": "HNL"}
    arrays = {n: random.normal(size=[sizes[d] for d in axes]) for n, axes in dims.items()}
    for entry in program.inputs:
        if entry.name == "n":
            (size,) = (sizes[str(dim)] for dim in entry.shape)
            arrays["n"] = random.integers(-2, sizes["N"] + 3, size).astype(float)
    return {name: array.astype("float32") for name, array in arrays.items()}


@pytest.mark.interpreter
@pytest.mark.parametrize("name", MASKS)
def test_narrowed_attention_in_triton_and_numpy(name):
    program = MASKS[name]
    graph = bb.fuse(bb.lower(program)).final
    arrays = arrays_of(program, SIZES)
    (expected,) = program.numpy(arrays).values()
    kernel = bb.emit(graph, SIZES, "float32", schedule=TEXT)

    np.testing.assert_allclose(run_interpreted(kernel, arrays)["out"], expected, atol=2e-6)
    on_cpu = bb.compile(program, SIZES, "float32", "cpu")
    np.testing.assert_allclose(on_cpu(**arrays), expected, atol=2e-6)


@pytest.mark.parametrize("name", rest_slow(["causal", "window", "prefix", "lengths"], ["window"]))
def test_narrowing_attention_is_proved(name):
    graph = bb.fuse(bb.lower(MASKS[name])).final
    report = bb.check_schedule(graph, TEXT, SIZES, trials=2)

    assert report.equal, report


def test_a_finite_fill_skips_nothing():
    graph = bb.fuse(bb.lower(attention(lambda i, j: i >= j, fill=-1e9))).final
    kernel = bb.emit(graph, SIZES)
    reason = NARROW.why_not(kernel.derivation.start, Site(1, "N"))

    assert "narrow" not in kernel.schedule
    assert reason.endswith(" takes in -1000000000, a finite fill: write -inf")


def test_default_schedules_narrow():
    graph = bb.fuse(bb.lower(MASKS["window"])).final

    assert "narrow nest 1 N\n" in bb.emit(graph, SIZES).schedule


def documents(mask):
    """Attention within documents, whose numbers are data of rows and of columns."""

    def attend(q, k, v, a, b):
        i, j = bb.arange(q.shape[-2])[:, None], bb.arange(k.shape[-2])
        seen = mask(i, j, a[:, :, None], b[:, None, :])
        scores = bb.where(seen, q @ k.swapaxes(-1, -2), -np.inf)
        return bb.softmax(scores, axis=-1) @ v

    return bb.trace(attend, q="H M D", k="H N D", v="H N L", a="H M", b="H N")


DATA_MASKS = {
    "documents": documents(lambda i, j, a, b: a == b),
    "causal documents": documents(lambda i, j, a, b: (a == b) & (i >= j)),
    "other documents": documents(lambda i, j, a, b: ~(a != b) & (b > 0)),
    "earlier documents": documents(lambda i, j, a, b: a > b),
    "kept columns": documents(lambda i, j, a, b: (b > 2) | (a < 0) & (j > i)),
}


def numbered(random, size, kind):
    """Numbers of documents: in order, out of order, some missing."""
    made = random.integers(0, 6, size).astype("float32")
    if kind != "out of order":
        made.sort()
    if kind == "missing":
        made[random.random(size) < 0.3] = np.nan
    return made


@pytest.mark.interpreter
@pytest.mark.parametrize("kind", ["in order", "out of order", "missing"])
@pytest.mark.parametrize("name", DATA_MASKS)
def test_documents_are_looked_up(name, kind):
    program, random = DATA_MASKS[name], np.random.default_rng(1)
    graph = bb.fuse(bb.lower(program)).final
    arrays = arrays_of(program, SIZES)
    for array, dim in (("a", "M"), ("b", "N")):
        arrays[array] = np.stack([numbered(random, SIZES[dim], kind) for _ in range(SIZES["H"])])
    (expected,) = program.numpy(arrays).values()
    text = TEXT.replace("stage nest 1", "stage nest 2")
    kernel = bb.emit(graph, SIZES, "float32", schedule=text)

    np.testing.assert_allclose(run_interpreted(kernel, arrays)["out"], expected, atol=2e-6)


@pytest.mark.parametrize("name", rest_slow(["documents", "causal documents"], ["documents"]))
def test_looking_documents_up_is_proved(name):
    graph = bb.fuse(bb.lower(DATA_MASKS[name])).final
    report = bb.check_schedule(graph, TEXT.replace("nest 1 N 2", "nest 2 N 2"), SIZES, trials=2)

    assert report.equal, report


def test_a_report_says_what_masks_leave():
    shapes = dict(q="B H M D", k="B H N D", v="B H N D")
    sizes = {"B": 1, "H": 64, "M": 2048, "N": 2048, "D": 64}

    def said(fill, target):
        def attend(q, k, v):
            seen = bb.arange(q.shape[-2])[:, None] >= bb.arange(k.shape[-2])
            scores = bb.where(seen, q @ k.swapaxes(-1, -2), fill)
            return bb.softmax(scores, axis=-1) @ v

        compiled = bb.compile(bb.trace(attend, **shapes), sizes, "float32", target)
        return compiled.report.details

    masked = said(-np.inf, "h200")
    tiles = dict(re.findall(r"(\w+) (\d+)", masked.split("tiles: ")[1]))
    rows, columns = int(tiles["M"]), int(tiles["N"])
    left = np.mean([-(-end // columns) for end in range(rows, 2048 + 1, rows)])
    words = f"a loop over N runs over {left:g} of {2048 // columns} blocks: its mask empties"
    assert words in masked
    assert "a loop over N runs over" in said(-np.inf, "cpu")
    assert "over all blocks in spite of its mask: t2 takes in -1000000000" in said(-1e9, "h200")


@pytest.mark.interpreter
@pytest.mark.parametrize("seed", range(10))
def test_random_masks_in_triton(seed):
    random = Random(seed)
    while "j" not in (text := random_condition(random, 1)):
        pass

    def attend(q, k, v, n):
        i, j = bb.arange(q.shape[0])[:, None], bb.arange(k.shape[0])
        seen = eval(text, HERE, {"i": i, "j": j, "n": n[:, None], "h": 3})
        return bb.softmax(bb.where(seen, q @ k.T, -np.inf), axis=-1) @ v

    program = bb.trace(attend, q="M D", k="N D", v="N L", n="M")
    sizes = {"M": random.choice((1, 17, 40)), "N": random.choice((1, 30, 70)), "D": 16, "L": 16}
    shapes = dict(q="MD", k="ND", v="NL")
    drawn = np.random.default_rng(seed)
    arrays = {
        name: drawn.normal(size=[sizes[dim] for dim in axes]).astype("float32")
        for name, axes in shapes.items()
    }
    arrays["n"] = numbers(random, sizes["M"], sizes["N"]).astype("float32")
    graph, tiles = bb.fuse(bb.lower(program)).final, {"M": 16, "N": 16}
    with np.errstate(all="ignore"):
        (expected,) = program.numpy(arrays).values()

    made = run_interpreted(bb.emit(graph, sizes, "float32", tiles=tiles), arrays)["out"]
    np.testing.assert_allclose(made, expected, atol=1e-5)
