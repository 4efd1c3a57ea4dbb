"""Loops are one where operators make them one: what dims are called decides nothing."""

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster.errors import BlockbusterError, TraceError
from blockbuster.frontend.loops import Loops
from blockbuster.frontend.lower import _Lowering
from blockbuster.frontend.own_dims import _Naming
from blockbuster.interp.evaluate import evaluate
from blockbuster.ir.ops import Map, Relabel
from blockbuster.ir.verify import verify
from blockbuster.testing.arrays import random_array_function, random_norm_function
from tests.random_programs.broad_arrays import broad_example


def attention(q, k, v):
    return bb.softmax(q @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5, axis=-1) @ v


def causal(q, k, v):
    s = q @ k.swapaxes(-1, -2)
    mask = bb.arange(s.shape[-2])[:, None] >= bb.arange(s.shape[-1])
    return bb.softmax(bb.where(mask, s, -np.inf), axis=-1) @ v


def itself(x):
    return attention(x, x, x)


def with_its_transpose(x):
    h = x @ x
    return h + h.T


def tied(q, c):
    return bb.softmax(q @ c.T, axis=-1) @ c


def distances(x, c):
    """Scores without a product: their sum over columns runs inside the loop over rows of c."""
    s = -bb.abs(x[:, None, :] - c[None, :, :]).sum(-1)
    return bb.softmax(s, axis=-1) @ c


def projected(x, wq, wk, wv):
    return attention(x @ wq, x @ wk, x @ wv)


def chained(a, b, c, d):
    return a @ b @ c @ d


def feed_forward(x, w, u):
    return x + bb.silu(bb.rms_norm(x) @ w) @ u


FUSED = {
    "equal names": (attention, dict(q="M D", k="N D", v="N D")),
    "one length": (attention, dict(q="S D", k="S D", v="S D")),
    "one name": (attention, dict(q="S S", k="S S", v="S S")),
    "batched": (attention, dict(q="B H M D", k="B H N D", v="B H N D")),
    "grouped": (
        lambda q, k, v: attention(q, k[:, :, None], v[:, :, None]),
        dict(q="B H G M D", k="B H N D", v="B H N D"),
    ),
    "causal": (causal, dict(q="S D", k="S D", v="S D")),
    "itself": (itself, dict(x="M D")),
    "itself, batched": (itself, dict(x="B H S D")),
    "tied": (tied, dict(q="M D", c="N D")),
    "projected": (projected, dict(x="S D", wq="D D", wk="D D", wv="D D")),
    "squares": (chained, dict(a="M M", b="M M", c="M M", d="M M")),
    "feed forward": (feed_forward, dict(x="M D", w="D F", u="F D")),
    "gated": (lambda x, a, b: bb.silu(x @ a) * (x @ b), dict(x="M D", a="D D", b="D D")),
}


def loops(graph):
    """The dims of all maps, level by level."""
    for _, level in graph.walk():
        yield from (op.dim for _, op in level.of_type(Map))


@pytest.mark.parametrize("name", FUSED)
def test_nothing_is_stored_between(name):
    program = bb.trace(FUSED[name][0], **FUSED[name][1])
    graph = bb.lower(program)
    sizes = {dim: 2 + at for at, dim in enumerate(program.dims)}
    numbers = np.random.default_rng(1)
    arrays = {i.name: numbers.normal(size=[sizes[d] for d in i.shape]) for i in program.inputs}

    verify(graph)
    final = bb.fuse(graph).final

    assert final.buffered_edges() == ()
    wanted = program.numpy(arrays)["out"]
    np.testing.assert_allclose(evaluate(final, arrays)["out"], wanted, rtol=1e-9, atol=1e-9)


def test_the_words_stay_with_the_outputs():
    graph = bb.lower(bb.trace(attention, q="M D", k="N D", v="N D"))

    assert [str(i.type) for i in graph.inputs] == ["M,D'[M,D']", "N,D'[N,D']", "D,N[D,N]"]
    assert str(graph.type_of(graph.outputs[0].value)) == "M,D[M,D]"


def test_distances_are_scores():
    """The columns of c are summed over inside a loop over the columns of the result."""
    graph = bb.lower(bb.trace(distances, x="M D", c="N D"))

    assert set(loops(graph)) == {"M", "N", "D", "D'"}


def statistic_shares_its_loop():
    graph = bb.lower(bb.trace(lambda x: (x / x.sum(-1, keepdims=True)).sum(0), x="M D"))
    return set(loops(graph)) == {"M", "D"}


def test_a_statistic_of_a_tile_shares_its_loop():
    """Row sums are less than the rows: one loop serves both, for a dim in one block."""
    assert statistic_shares_its_loop()


def test_gate_and_up_are_one_loop():
    final = bb.fuse(bb.lower(bb.trace(FUSED["gated"][0], **FUSED["gated"][1]))).final

    assert sorted(loops(final)) == ["D", "D'", "M"]


def reads_are_one_loop():
    graph = bb.lower(bb.trace(lambda x, a, b: (x @ a, bb.silu(x @ b)), x="M K", a="K N", b="K L"))
    one = [i.view.source for i in graph.inputs] == ["x", "a", "b"]
    return one and set(loops(bb.fuse(graph).final)) == {"M", "K", "N", "L"}


def test_reads_of_one_array_are_one_loop():
    assert reads_are_one_loop()


def test_a_residual_reads_what_it_adds_under_another_dim():
    """One dim for both would store the scores; a view of the computed queries costs nothing."""
    graph = bb.lower(
        bb.trace(
            lambda x, w, k, v: (lambda q: q + bb.softmax(q @ k.T) @ v)(x @ w),
            x="M E",
            w="E D",
            k="N D",
            v="N D",
        )
    )
    final = bb.fuse(graph).final

    assert [op for _, level in graph.walk() for _, op in level.of_type(Relabel)] == [
        Relabel("D'", "D")
    ]
    assert not any({"M", "N"} <= dims for dims in stored(final))


def stored(graph, around=()):
    """The dims of every stored value: of the loops around it, and its own."""
    for node in graph.nodes:
        yield from ({*around, *type.lists} for type in node.types if type.buffered)
        if isinstance(node.op, Map):
            yield from stored(node.op.body, (*around, node.op.dim))


def residual_is_one_nest():
    graph = bb.lower(
        bb.trace(
            lambda x, r, w, u: (lambda h: h + bb.silu(h @ w) @ u)(x + r),
            x="M D",
            r="M D",
            w="D F",
            u="F D",
        )
    )
    return not list(graph.of_type(Relabel)) and len(bb.fuse(graph).final.nodes) == 1


def test_a_relabeled_read_stays_inside_the_loops_in_common():
    assert residual_is_one_nest()


# names are no more than names ------------------------------------------------------

SEEDS = st.integers(0, 2**32 - 1)


def fused_like(program):
    """The edges of every snapshot, and the loops at every level, whatever they are called."""
    derivation = bb.fuse(bb.lower(program))
    return [(len(s.buffered_edges()), len(list(loops(s)))) for s in derivation.snapshots]


@pytest.mark.parametrize("drawn", [random_array_function, random_norm_function])
@given(seed=SEEDS)
def test_named_programs_without_their_names(drawn, seed):
    function = drawn(Random(seed))
    named = bb.trace(function, **function.inputs)
    sizes = dict(zip("BMKNL", (2, 3, 3, 3, 3), strict=True))
    numbers = np.random.default_rng(seed)
    arrays = {i.name: numbers.uniform(-1, 1, [sizes[d] for d in i.shape]) for i in named.inputs}
    examples = bb.trace(function, **arrays)

    graph = bb.lower(examples)
    verify(graph)
    assert fused_like(examples) == fused_like(named)
    for key, wanted in named.numpy(arrays).items():
        read = {i.view.source for i in graph.inputs if getattr(i.view, "source", None)}
        got = evaluate(graph, {name: arrays[name] for name in arrays if name in read})[key]
        np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-9)


@given(seed=SEEDS)
def test_one_name_for_all_dims_of_one_size(seed):
    example = broad_example(Random(seed), opaque=False)
    examples = bb.trace(example.function, **example.arrays)
    apart = {i.name: " ".join(map(str, i.shape)) for i in examples.inputs}
    sizes = examples.bind(example.arrays)
    alike = {
        i.name: " ".join(f"S{sizes[d]}" if isinstance(d, str) else str(d) for d in i.shape)
        for i in examples.inputs
    }
    try:
        named = bb.trace(example.function, **apart)
    except TraceError:  # an axis of one element gave way, or a length is none for all sizes
        return
    assert fused_like(bb.trace(example.function, **alike)) == fused_like(named)


# which loops can be one ------------------------------------------------------------


def test_axes_of_one_tile_stay_apart():
    table = Loops()
    m, n = table.new(), table.new()
    table.keep_apart([m, n])

    assert not table.unite([m], [n])
    assert table.unite([m], [m])


def test_a_fold_runs_inside_what_it_makes_and_all_around_that():
    table = Loops()
    m, d, n = table.new(), table.new(), table.new()
    table.keep_apart([m, d])
    inside = table.fold_inside(n, [m, d], [0, 0])
    other = table.new()
    table.fold_inside(other, [m, n], [0, inside])

    assert inside == 1 << m | 1 << d
    assert not table.unite([other], [d])
    assert not table.unite([other], [n])


def test_a_fold_of_the_tile_itself_may_share_its_loop():
    table = Loops()
    m, n, c = table.new(), table.new(), table.new()
    table.keep_apart([m, n])
    table.fold_inside(c, [m], [1 << n | 1 << m])

    assert not table.unite([c], [n])
    assert table.unite([m, c], [m, n])


def test_reads_become_one_as_a_whole_or_not_at_all():
    table = Loops()
    a, b, c, d = (table.new() for _ in range(4))
    table.keep_apart([a, b])
    table.keep_apart([c, d])
    table.keep_apart([b])
    assert table.unite([a], [d])

    assert not table.unite([a, b], [c, d])
    assert table.find(b) != table.find(d)


# mutants ---------------------------------------------------------------------------


def without_bars(loops, one, other, tile):
    return bool(loops._beside[one] & loops._members[other])


def without_exception(loops, one, other, tile):
    return bool((loops._beside[one] | loops._outside[one]) & loops._members[other])


def only_its_own(fold_inside):
    def mutant(loops, folded, result, around):
        return fold_inside(loops, folded, result, [0] * len(around))

    return mutant


MUTANTS = {
    "a fold's loop may run around it": (Loops, "_bars_of", without_bars, "itself"),
    "only the loops of the result are around a fold": (
        Loops, "fold_inside", only_its_own(Loops.fold_inside), "attention to products",
    ),
    "axes of one tile may be one": (Loops, "keep_apart", lambda *_: None, "with its transpose"),
    "a statistic is stored like a product": (Loops, "_bars_of", without_exception, "statistic"),
    "arrays are read anew each time": (_Naming, "share", lambda naming: None, "reads"),
    "views are outside all loops": (_Lowering, "_in_common", lambda *_: (), "residual"),
}  # fmt: skip

KILLERS = {
    "itself": lambda: stores_nothing(*FUSED["itself"]),
    "attention to products": lambda: stores_nothing(
        lambda x, a, b, c: x @ a @ b @ c + x, dict(x="M D", a="D N", b="N K", c="K D")
    ),
    "with its transpose": lambda: (
        set(loops(bb.lower(bb.trace(with_its_transpose, x="M M")))) == {"M", "M'", "M''"}
    ),
    "statistic": lambda: statistic_shares_its_loop(),
    "reads": lambda: reads_are_one_loop(),
    "residual": lambda: residual_is_one_nest(),
}


def stores_nothing(function, dims):
    graph = bb.lower(bb.trace(function, **dims))
    verify(graph)
    return not bb.fuse(graph).final.buffered_edges()


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_dies(name, monkeypatch):
    where, method, mutant, killer = MUTANTS[name]
    assert KILLERS[killer]()
    monkeypatch.setattr(where, method, mutant)

    try:
        survived = KILLERS[killer]()
    except (BlockbusterError, AssertionError, ValueError):
        survived = False
    assert not survived
