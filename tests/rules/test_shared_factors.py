"""Factors behind softmaxes, softmaxes written out, losses: one pass over the scores, as exact."""

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.frontend.lower import lower
from blockbuster.frontend.trace import trace
from blockbuster.interp.evaluate import evaluate
from blockbuster.interp.semantics import Float32, Float64
from blockbuster.rules import RULES, FactorOut, FactorOutExp, fuse, overflowing, reasons, safe
from blockbuster.testing.sites import difference
from tests.parameters import one_in
from tests.random_programs.softmaxes import softmax_programs
from tests.rules.plain_driver import plain_fuse

QKV = {"q": "M D", "k": "N D", "v": "N L"}
XWT = {"x": "T D", "w": "D V", "t": "T"}


def dropout(q, k, v, keep):
    return (bb.softmax(q @ k.T * 0.5, axis=-1) * keep / (1 - 0.1)) @ v


def weights_of_columns(q, k, v, g):
    return (bb.softmax(q @ k.T, axis=-1) * g[None, :]) @ v


def where_kept(q, k, v, keep):
    return bb.where(keep > 0, bb.softmax(q @ k.T, axis=-1), 0.0) @ v


def dropped_by_position(q, k, v):
    i, j = bb.arange(q.shape[0])[:, None], bb.arange(k.shape[0])
    keep = np.abs(i - j) < 2
    return bb.where(keep, bb.softmax(bb.where(i >= j, q @ k.T, -np.inf), axis=-1), 0.0) @ v


def used_twice(q, k, v, a, b):
    p = bb.softmax(q @ k.T, axis=-1)
    return (p * a - p * b) @ v


def written_out(q, k, v):
    s = q @ k.T
    e = np.exp(s - s.max(-1, keepdims=True))
    return (e / e.sum(-1, keepdims=True)) @ v


def written_out_and_dropped(q, k, v, keep):
    s = q @ k.T
    e = np.exp(s - s.max(-1, keepdims=True))
    return (e / e.sum(-1, keepdims=True) * keep) @ v


def with_a_temperature(q, k, v, tau):
    s = q @ k.T
    e = np.exp((s - s.max(-1, keepdims=True)) / tau[:, None])
    return (e / e.sum(-1, keepdims=True)) @ v


def with_a_sink(q, k, v, sink):
    s = q @ k.T
    m = np.maximum(s.max(-1, keepdims=True), sink[:, None])
    e = np.exp(s - m)
    return e @ v / (e.sum(-1, keepdims=True) + np.exp(sink[:, None] - m))


def off_by_one(q, k, v):
    s = q @ k.T
    m = np.maximum(s.max(-1, keepdims=True), 0.0)
    e = np.exp(s - m)
    return (e / (np.exp(-m) + e.sum(-1, keepdims=True))) @ v


def exp_of_log_softmax(q, k, v):
    return np.exp(bb.log_softmax(q @ k.T, axis=-1)) @ v


def renormalized(q, k, v, keep):
    p = bb.softmax(q @ k.T, axis=-1) * keep
    return (p / (p.sum(-1, keepdims=True) + 1e-6)) @ v


def from_the_left(q, k, v, keep):
    return (bb.softmax(q.T @ k, axis=0) * keep).T @ v


def logsumexp(x, w):
    z = x @ w
    m = z.max(-1, keepdims=True)
    return np.log(np.exp(z - m).sum(-1)) + m[:, 0]


def cross_entropy(x, w, t):
    z = x @ w
    hot = bb.arange(z.shape[-1]) == t[:, None]
    return (logsumexp(x, w) - bb.where(hot, z, 0.0).sum(-1)).mean()


def nll(x, w, t):
    logs = bb.log_softmax(x @ w, axis=-1)
    return -bb.where(bb.arange(logs.shape[-1]) == t[:, None], logs, 0.0).sum(-1)


ONE_PASS = {
    dropout: {**QKV, "keep": "M N"},
    weights_of_columns: {**QKV, "g": "N"},
    where_kept: {**QKV, "keep": "M N"},
    dropped_by_position: QKV,
    used_twice: {**QKV, "a": "M N", "b": "N"},
    written_out: QKV,
    written_out_and_dropped: {**QKV, "keep": "M N"},
    with_a_temperature: {**QKV, "tau": "M"},
    with_a_sink: {**QKV, "sink": "M"},
    off_by_one: QKV,
    exp_of_log_softmax: QKV,
    renormalized: {**QKV, "keep": "M N"},
    from_the_left: {"q": "D M", "k": "D N", "v": "M L", "keep": "M N"},
    logsumexp: {"x": "T D", "w": "D V"},
    cross_entropy: XWT,
}
SIZES = {"M": 5, "N": 7, "D": 3, "L": 4, "T": 5, "V": 7}
BLOCKS = {"M": 2, "N": 3, "D": 2, "L": 2, "T": 2, "V": 3}
by_name = pytest.mark.parametrize("fn", ONE_PASS, ids=lambda fn: fn.__name__)


def arrays(inputs, scores, seed=0, *, sizes=SIZES):
    """Inputs of one dtype, with scores as large as ``scores``."""
    random = np.random.default_rng(seed)
    made = {}
    for name, dims in inputs.items():
        shape = tuple(sizes[dim] for dim in dims.split())
        made[name] = random.normal(size=shape) * (np.sqrt(scores) if name in "qkxw" else 1)
    if "keep" in made:
        made["keep"] = (made["keep"] > -0.5) * 1.0
    if "tau" in made:
        made["tau"] = np.abs(made["tau"]) + 0.5
    if "sink" in made:
        made["sink"] *= scores
    if "t" in made:
        made["t"] = random.integers(0, sizes["V"], sizes["T"])
    return {name: np.asarray(x, np.float32).astype(float) for name, x in made.items()}


@by_name
def test_scores_are_not_stored(fn):
    derivation = fuse(lower(trace(fn, **ONE_PASS[fn])))

    assert derivation.final.buffered_edges() == ()
    assert overflowing(safe(derivation.final)) == ()


@by_name
@pytest.mark.parametrize("scores", [1.0, 30.0, 1e4])
def test_float32_is_as_good_at_extreme_scores(fn, scores):
    program = trace(fn, **ONE_PASS[fn])
    given = arrays(ONE_PASS[fn], scores)
    expected = program.numpy(given)["out"]
    blocks = {d: b for d, b in BLOCKS.items() if d in program.dims}
    largest = np.abs(expected).max()
    for snapshot in fuse(lower(program)).snapshots:
        (found,) = evaluate(safe(snapshot), given, semantics=Float32, blocks=blocks).values()
        exact = evaluate(safe(snapshot), given, semantics=Float64, blocks=blocks)
        np.testing.assert_allclose(exact["out"], expected, rtol=0, atol=1e-9 * largest)
        np.testing.assert_allclose(
            found, expected, rtol=0, atol=3e-7 * max(1, scores) ** 0.5 * largest
        )


@pytest.mark.parametrize("offset", [0.0, 1e4, -1e4])
@pytest.mark.parametrize("kind", ["written out", "with a sink"])
def test_offsets_and_masked_scores_leave_no_trace(offset, kind):
    """Rows far from 0, some scores -inf; a sink takes what there is where all scores are."""

    def attention(s, v, sink):
        top = s.max(-1, keepdims=True)
        top = np.maximum(top, sink[:, None]) if kind == "with a sink" else top
        e = np.exp(s - top)
        total = e.sum(-1, keepdims=True)
        total = total + np.exp(sink[:, None] - top) if kind == "with a sink" else total
        return (e / total) @ v

    graph = lower(trace(attention, s="M N", v="N L", sink="M"))
    random = np.random.default_rng(1)
    s = random.uniform(-3, 3, (5, 7)) + offset
    s[random.random(s.shape) < 0.3] = -np.inf
    if kind == "with a sink":
        s[2] = -np.inf
    given = {"s": s, "v": random.normal(size=(7, 4)), "sink": np.full(5, offset)}
    expected = attention(**given)
    for snapshot in fuse(graph).snapshots:
        made = evaluate(safe(snapshot), given, semantics=Float32, blocks={"M": 2, "N": 3, "L": 2})
        np.testing.assert_allclose(made["out"], expected, rtol=0, atol=2e-3)
        assert not np.isnan(made["out"]).any()


@pytest.mark.parametrize("seed", one_in(5, range(30)))
def test_random_softmaxes_are_equal_at_every_snapshot(seed):
    (graph,) = softmax_programs(1, first=seed)
    derivation = fuse(graph)

    assert plain_fuse(graph, RULES).applications == derivation.applications
    for snapshot in derivation.snapshots:
        wrong = difference(graph, snapshot)
        assert wrong is None or wrong.kind == "unsettled", wrong


def test_a_loss_far_below_its_scores_keeps_its_digits_in_float32():
    """Scores near 4096, losses near 1: what is added to a logarithm is added to its exponent."""
    random = np.random.default_rng(0)
    x, w = random.integers(-4, 5, (5, 3)) / 4, random.integers(-4, 5, (3, 7)) / 4
    x[:, 2], w[2] = 64, 64
    given = {"x": x, "w": w, "t": np.array([0.0, 1.0, 2.0, 3.0, 6.0])}
    made = safe(fuse(lower(trace(nll, **XWT))).final)

    def losses(semantics):
        blocks = {"T": 2, "V": 3, "D": 2}
        return evaluate(made, given, semantics=semantics, blocks=blocks)["out"]

    assert losses(Float64).max() < 5
    np.testing.assert_allclose(losses(Float32), losses(Float64), rtol=1e-6)


def test_a_factor_that_stays_says_why():
    def squared(q, k, v):
        return np.square(bb.softmax(q @ k.T, axis=-1)) @ v

    final = fuse(lower(trace(squared, **QKV))).final
    said = [reason for _, level in final.walk() for reason in reasons(FactorOut(), level)]

    assert len(final.buffered_edges()) == 1
    assert any("is a multiple of another power of it" in reason for reason in said)


def test_logarithms_that_are_summed_stay_in_their_sum():
    """The sum of a row, less the sum of its log-sum-exps: both large, their difference is not."""

    def summed(x, w):
        return bb.log_softmax(x @ w, axis=-1).mean(-1)

    derivation = fuse(lower(trace(summed, x="T D", w="D V")))
    final = derivation.final
    said = [reason for _, level in final.walk() for reason in reasons(FactorOut(), level)]
    given = arrays({"x": "T D", "w": "D V"}, 1.0)
    given = {"x": given["x"] / given["x"], "w": given["w"] + 1e4}
    single = {name: x.astype(np.float32) for name, x in given.items()}
    expected = summed(**{name: x.astype(float) for name, x in single.items()})

    assert len(final.buffered_edges()) == 1
    assert any("takes add of elements and producers together" in reason for reason in said)
    for snapshot in (derivation.start, *derivation.snapshots):
        found = evaluate(safe(snapshot), single, semantics=Float32, blocks={"T": 2, "V": 3})["out"]
        error = np.abs(found - expected).max()
        assert error <= 4 * np.abs(summed(**single) - expected).max() + 1e-6


def test_the_maximum_of_a_softmax_is_the_running_exponent():
    """One running maximum, not one of the program's beside one of ours."""
    made = safe(fuse(lower(trace(written_out, **QKV))).final).show()

    assert made.count("row_max") == 1
    assert "FactorOutExp" not in made
    assert FactorOutExp().name in [s.rule for s in fuse(lower(trace(written_out, **QKV))).steps]
