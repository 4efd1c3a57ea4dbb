"""Values that cost nothing are made again in their readers: masks, biases, weights less 1."""

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.ir.graph import Value
from blockbuster.ir.parse import parse
from blockbuster.rules import (
    RULES,
    ExtendMap,
    ExtendMapOverAncestors,
    Remake,
    explain,
    fuse,
    reasons,
)
from blockbuster.rules.legality import map_at
from blockbuster.rules.making import MOST_WORK, Reading, reading, recipe
from tests.parameters import rest_slow
from tests.rules.golden import GOLDEN, read_case
from tests.rules.numbers import assert_same_numbers

HEADS = {"q": "B H M D", "k": "B H N D", "v": "B H N L"}
GROUPS = {"q": "B G H M D", "k": "B H N D", "v": "B H N L"}
WITHOUT = tuple(r for r in RULES if not isinstance(r, Remake))
"""The other rules; of those that are left, extensions take in some values, at the price of more."""
NEITHER = tuple(r for r in WITHOUT if not isinstance(r, ExtendMap | ExtendMapOverAncestors))


def scores(q, k):
    return q @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5


def positions(q, k):
    return bb.arange(q.shape[-2])[:, None], bb.arange(k.shape[-2])


def masked(q, k, v, mask):
    return bb.softmax(bb.where(mask, scores(q, k), -np.inf)) @ v


def causal(q, k, v):
    i, j = positions(q, k)
    return masked(q, k, v, i >= j)


def grouped(q, k, v):
    return causal(q, k[:, None], v[:, None])


def window(q, k, v):
    i, j = positions(q, k)
    return masked(q, k, v, (i >= j) & (i - j < 256))


def prefix(q, k, v):
    i, j = positions(q, k)
    return masked(q, k, v, (i >= j) | (j < 100))


def added(q, k, v):
    i, j = positions(q, k)
    return bb.softmax(scores(q, k) + bb.where(i >= j, 0.0, -np.inf)) @ v


def slopes(q, k, v, slope):
    i, j = positions(q, k)
    s = scores(q, k) + slope[:, None, None] * (j - i)
    return bb.softmax(bb.where(i >= j, s, -np.inf)) @ v


def buckets(q, k, v, table):
    i, j = positions(q, k)
    far = np.minimum(np.abs(i - j), 128)
    near_or_log = bb.where(far < 8, far, 8 + np.log(np.maximum(far, 1) / 8) * 3)
    return bb.softmax(scores(q, k) + near_or_log * table[:, None, None]) @ v


def documents(q, k, v, seg, seg_k):
    return masked(q, k, v, seg[:, None, :, None] == seg_k[:, None, None, :])


def intervals(q, k, v, low, high, at):
    at = at[:, None, None, :]
    return masked(q, k, v, (low[:, None, :, None] <= at) & (at < high[:, None, :, None]))


def mask_is_returned(q, k, v):
    i, j = positions(q, k)
    return masked(q, k, v, i >= j), bb.where(i >= j, 1.0, 0.0)


def chosen_rows(t, w):
    return bb.where(t[..., None] == bb.arange(w.shape[0]), 1.0, 0.0) @ w


def weights_less_1(x, g, w):
    return bb.rms_norm(x, 1 + g) @ w


def scaled_and_normed(x, g):
    y = x * 3.0
    return bb.rms_norm(y, g), y


def rotated(x, cos, sin):
    a, b = x[..., :64], x[..., 64:]
    return bb.concat([a * cos - b * sin, a * sin + b * cos], axis=-1)


def rotary(q, k, v, cq, sq, ck, sk):
    return causal(rotated(q, cq, sq), rotated(k, ck, sk), v)


ROTARY = {"q": "B H M 128", "k": "B H N 128", "v": "B H N 128", "cq": "M 64", "sq": "M 64",
          "ck": "N 64", "sk": "N 64"}  # fmt: skip
PROGRAMS = [
    (causal, HEADS),
    (causal, {"q": "B H S D", "k": "B H S D", "v": "B H S D"}),
    (grouped, GROUPS),
    (window, HEADS),
    (prefix, HEADS),
    (added, HEADS),
    (slopes, HEADS | {"slope": "H"}),
    (buckets, HEADS | {"table": "H"}),
    (documents, HEADS | {"seg": "B M", "seg_k": "B N"}),
    (intervals, HEADS | {"low": "B M", "high": "B M", "at": "B N"}),
    (mask_is_returned, HEADS),
    (chosen_rows, {"t": "B M", "w": "V D"}),
    (weights_less_1, {"x": "M K", "g": "K", "w": "K N"}),
    (scaled_and_normed, {"x": "M K", "g": "K"}),
    (rotary, ROTARY),
]


def lowered(fn, inputs):
    return bb.lower(bb.trace(fn, **inputs))


@pytest.mark.parametrize(("fn", "inputs"), PROGRAMS)
def test_nothing_is_stored_for_a_mask(fn, inputs):
    graph = lowered(fn, inputs)
    derivation = fuse(graph)

    assert derivation.final.buffered_edges() == ()
    assert any(step.rule == "remake" for step in derivation.steps)
    assert derivation.replay() == derivation.final


@pytest.mark.parametrize(("fn", "inputs"), PROGRAMS)
def test_without_the_rule_the_value_is_stored_before_anything_is_repeated(fn, inputs):
    graph = lowered(fn, inputs)
    with_it, without = fuse(graph).snapshots[0], fuse(graph, NEITHER).final

    assert len(with_it.buffered_edges()) < len(without.buffered_edges())


@pytest.mark.parametrize("fn", rest_slow([causal, documents, scaled_and_normed], [causal]))
def test_every_step_is_proved(fn):
    inputs = dict(next(inputs for program, inputs in PROGRAMS if program is fn))

    assert fuse(lowered(fn, inputs)).prove(trials=2).equal


def many_readers(count):
    """A mask and as many arrays, each masked by it for every head, that become sums."""
    maps = "".join(
        f"""Y{n} = map H{n} (s in !S{n}, C = !C) {{
          y = map M (t in !s, c in !C) {{ u = where(c, t, 0) over [H{n},M] yield u }}
          yield y
        }}"""
        for n in range(count)
    )
    given = ", ".join(f"S{n}: H{n},M[H{n},M] = port" for n in range(count))
    made = "C = map M (b in !a) { d = b * 2 > 1 yield d }"
    results = ", ".join(f"Y{n}" for n in range(count))
    return parse(f"graph({given}, a: M[M]) {{ {made} {maps} return {results} }}")


@pytest.mark.parametrize("count", [1, 2, 7])
def test_each_reader_gets_its_own(count):
    graph = many_readers(count)
    derivation = fuse(graph)

    assert sum(step.rule == "remake" for step in derivation.steps) == count
    assert derivation.final.buffered_edges() == ()
    assert_same_numbers(graph, derivation.final)


def test_the_order_of_readers_does_not_matter():
    graph = many_readers(4)
    first = next(iter(Remake().matches(graph)))
    *_, last = Remake().matches(graph)

    assert fuse(Remake().apply(first)).final == fuse(Remake().apply(last)).final


def chain(length):
    """Vectors, each made of the one before and one of its own, all of them read by every head."""
    given = ", ".join(f"a{n}: N[N]" for n in range(length + 1))
    maps, last = "", "a0"
    for n in range(1, length + 1):
        maps += f"C{n} = map N (x in !{last}, y in !a{n}) {{ z = x + y yield z }} "
        maps += f"""Y{n} = map M (s in !S, c = !C{n}) {{
          y = map N (t in !s, d in !c) {{ u = t * d over [M,N] yield u }}
          yield y
        }} """
        last = f"C{n}"
    results = ", ".join(f"Y{n}" for n in range(1, length + 1))
    return parse(f"graph(S: M,N[M,N], {given}) {{ {maps} return {results} }}")


def test_a_chain_of_values_ends_where_too_many_vectors_are_read():
    graph = chain(6)
    derivation = fuse(graph)
    first = derivation.snapshots[0]

    assert [len(first.at(path).type_of(v).axes) for path, v, _ in first.buffered_edges()] == [
        1,
        1,
        1,
    ]
    assert len(reasons(Remake(), first)) == 3
    assert all("all as large as its own" in reason for reason in reasons(Remake(), first))
    assert_same_numbers(graph, derivation.final)


def test_attention_is_never_made_again():
    def twice(q, k, v, w):
        y = causal(q, k, v)
        return y @ w, y

    steps = fuse(lowered(twice, HEADS | {"w": "L E"})).steps

    assert all("dot" not in s.description.split(" in ")[0] for s in steps if s.rule == "remake")


def heavy(q, k, v):
    i, j = positions(q, k)
    bias = i - j
    for _ in range(MOST_WORK // 8 + 1):
        bias = np.tanh(bias)
    return bb.softmax(scores(q, k) + bias) @ v


def product(q, k, v, a, b):
    return bb.softmax(scores(q, k) + a * b) @ v


def decay(q, k, v, g):
    i, j = positions(q, k)
    return (scores(q, k) * np.exp(g * (j - i))) @ v


@pytest.mark.parametrize(
    ("fn", "more", "words"),
    [
        (heavy, {}, "takes more than 48 operations: too many to do again for every reader"),
        (product, {"a": "M N", "b": "M N"}, "would read items of a and b, all as large as its own"),
        (decay, {"g": ""}, "holds an exponential, whose safe form is a pair"),
    ],
)
def test_explain_says_why_a_value_is_stored(fn, more, words):
    first = explain(fuse(lowered(fn, HEADS | more)).snapshots[0])[0]

    assert isinstance(first.rule, Remake)
    assert first.reason.endswith(words)


def test_a_recipe_counts_what_an_element_takes():
    graph = parse(read_case(GOLDEN / "remake/as_much_work_as_may_be.bb").before)
    made = recipe(map_at(graph, 0), 0)

    assert (made.read, made.work, made.rounds, made.exponential) == ((0,), MOST_WORK, False, False)


def test_a_reading_says_which_loops_read_again():
    graph = parse(read_case(GOLDEN / "remake/read_again_in_a_loop.bb").before)

    assert reading(map_at(graph, 1), 1) == Reading(("M",), False)
    assert reading(map_at(graph, 0), 1) == Reading(("N",), True)
    assert graph.nodes[1].operands[1] == Value(0)
