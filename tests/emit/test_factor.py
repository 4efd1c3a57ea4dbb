"""The move factor: what it makes, that results stay, also at infinities and NaN, and why not."""

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.emit.interpret.proof import prove_tiles
from blockbuster.emit.print.numpy.run import run_numpy
from blockbuster.emit.schedule.factor import Factor
from blockbuster.emit.schedule.scheduled import unscheduled
from blockbuster.emit.schedule.site import EVERYWHERE
from blockbuster.emit.target.compiler import target_of
from blockbuster.emit.tile.array_dtypes import given_by, typed_for_gpu
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.parse import parse_tiles
from blockbuster.emit.tile.verify import verify_tiles
from blockbuster.ir.lengths import fitted
from tests.emit.cases import FOLDER

INF = float("inf")
HEADS = dict(q="M D", k="N D", v="N L")
SIZES = dict(M=6, N=7, D=3, L=2)
BLOCKS = dict(M=2, N=3, D=3, L=2)


def scores(q, k):
    return (q @ k.swapaxes(-1, -2)) * q.shape[-1] ** -0.5


def distance(q, k):
    return bb.arange(q.shape[-2])[:, None] - bb.arange(k.shape[-2])


def plain(q, k, v):
    return bb.softmax(scores(q, k), axis=-1) @ v


def causal(q, k, v):
    return bb.softmax(bb.where(distance(q, k) >= 0, scores(q, k), -INF), axis=-1) @ v


def divided(q, k, v):
    return bb.softmax(bb.where(distance(q, k) < 3, -INF, 2 * (q @ k.T) / 3.0), axis=-1) @ v


def sloped(q, k, v):
    return bb.softmax(scores(q, k) - 0.5 * distance(q, k), axis=-1) @ v


def capped(q, k, v):
    return bb.softmax(20.0 * bb.tanh(scores(q, k) / 20.0), axis=-1) @ v


def totals(q, k, v):
    s = scores(q, k)
    most = bb.max(s, axis=-1)
    return bb.log(bb.sum(bb.exp(s - most[:, None]), axis=-1)) + most


def rows(x):
    return bb.softmax(x, axis=-1)


PROGRAMS = {fn.__name__: fn for fn in (plain, causal, divided, sloped, capped, totals, rows)}


def start_of(fn, dtype="float32"):
    inputs = dict(x="M N") if fn is rows else HEADS
    graph = bb.safe(bb.fuse(bb.lower(bb.trace(fn, **inputs))).final)
    tiles = typed_for_gpu(graph, lower_to_tiles(graph), given_by(dtype))
    return unscheduled(tiles, fitted(SIZES, tiles.rules), target_of("sm_90"))


def factored(fn):
    start = start_of(fn)
    return start, Factor().apply(start, EVERYWHERE)


def drawn(program, random, extremes):
    """Inputs, some elements of which are ``extremes``."""
    made = {}
    for buffer in program.inputs:
        array = random.normal(size=[SIZES[axis.dim] for axis in buffer.axes])
        places = random.random(array.shape) < 0.15
        made[buffer.name] = np.where(places, random.choice(extremes, array.shape), array)
    return made


def test_an_element_takes_a_product_a_difference_and_a_power_of_two():
    _, made = factored(causal)

    text = str(made.draft)
    assert "exp(" not in text
    assert "where(" in text
    assert text.count("2 ** (") == 2  # of elements, and of the row's old sums
    assert parse_tiles(text) == made.draft
    verify_tiles(made.draft)


@pytest.mark.parametrize("fn", PROGRAMS.values(), ids=PROGRAMS)
def test_results_stay_also_at_infinities_and_nan(fn):
    start, made = factored(fn)
    for seed in range(12):
        random = np.random.default_rng(seed)
        extremes = ([0.0], [-INF, 0.0], [INF], [np.nan], [-INF, INF, np.nan], [1e4, -1e4])[seed % 6]
        inputs = drawn(start.draft, random, extremes)
        with np.errstate(all="ignore"):
            wanted, found = (
                run_numpy(p, inputs, SIZES, BLOCKS, folder=FOLDER)
                for p in (start.draft, made.draft)
            )
        for name, array in wanted.items():
            np.testing.assert_allclose(found[name], array, rtol=1e-9, atol=1e-12, err_msg=str(seed))


@pytest.mark.parametrize("fn", PROGRAMS.values(), ids=PROGRAMS)
def test_it_is_proved_by_a_law_of_exponentials(fn):
    start, made = factored(fn)

    proof = prove_tiles(start.draft, made.draft, trials=2)

    assert proof.equal, proof
    assert proof.tier == "B"
