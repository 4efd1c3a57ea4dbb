"""Rules on maps that fold groups: a group stays in one map, and nothing changes its lead."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster.ir.parse import parse
from blockbuster.ir.ports import results_at
from blockbuster.ir.verify import verify
from blockbuster.rules import FactorOut, FactorOutExp, LocalLinearity, fuse, reasons, safe
from blockbuster.testing.planted_sites import SITES
from blockbuster.testing.sites import UNSETTLED, difference, flaw, sites
from tests.random_programs.walks import EVERY_RULE
from tests.rules.groups import beside_groups
from tests.rules.numbers import assert_same_numbers


def is_equal(wrong):
    """True also where random programs compare what no trial settles, but all trials agree."""
    return wrong is None or wrong.kind in (UNSETTLED, "not proven equal")


@pytest.mark.parametrize("rule", EVERY_RULE, ids=lambda rule: rule.name)
@settings(max_examples=settings().max_examples // 3)
@given(data=st.data())
def test_keeps_meaning_beside_groups(rule, data):
    random = data.draw(st.randoms(use_true_random=False), label="program")
    graph = beside_groups(random.choice(SITES[rule.name]), random)

    found = [*sites(graph, [rule])]
    for site in random.sample(found, min(len(found), 2)):
        wrong = flaw(site)
        assert is_equal(wrong), f"{wrong.kind} at {site}: {wrong.story}\n{graph}"


@settings(max_examples=settings().max_examples // 2)
@given(random=st.randoms(use_true_random=False))
def test_programs_with_groups_fuse(random):
    graph = beside_groups(random.choice(SITES[random.choice([*SITES])]), random)
    for snapshot in fuse(graph).snapshots:
        verify(snapshot)
        verify(safe(snapshot))
        assert is_equal(difference(graph, snapshot))


LED = [
    (FactorOut(), """graph(X: K[M,K] = port, H: K[M,K] = port, Z: K[M] = port) {
      s = map K (x in !X) { y = exp(x) t = row_sum(y) yield +t }
      c = recip0(s)
      p, q = map K (x_1 in !X, h in !H, v = c, z in !Z) {
        u = row_scale(x_1, v) w = where(h > 0, u, 0) a = row_sum(w)
        yield +l = a
        yield +z by l: x * exp(r - r2) }
      return p, q }"""),
    (FactorOutExp(), """graph(X: K[M,K] = port, Y: K[N,K] = port, Z: K[M,N] = port) {
      m = map K (x in !X) { t = row_max(x) yield max t }
      v = -m
      p, q, b = map K (x_1 in !X, v_1 = v, y in !Y, z in !Z) {
        r = row_shift(x_1, v_1) e = exp(r) d = dot(e, y) a = row_sum(e)
        yield +l = d
        yield +z by l: x * exp(r - r2)
        yield +a }
      return p, q, b }"""),
    (LocalLinearity(), """graph(X: K[M,K] = port, c: [M], Y: K[N,K] = port, Z: K[M,N] = port) {
      p, q = map K (x in !X, v = c, y in !Y, z in !Z) {
        s = row_scale(x, v) d = dot(s, y)
        yield +l = d
        yield +z by l: x * exp(r - r2) }
      return p, q }"""),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "text"), LED, ids=lambda x: getattr(x, "name", ""))
def test_a_sum_that_rescales_others_keeps_its_factor(rule, text):
    graph = parse(text)

    assert any("rescales z" in reason for reason in reasons(rule, graph)), reasons(rule, graph)
    for match in rule.matches(graph):
        assert difference(graph, rule.apply(match)) is None


PLACES = {"argmax": bb.argmax, "argmin": bb.argmin}
NORMS = {
    "rms": lambda t: bb.rms_norm(t, eps=0.1),
    "layer": bb.layer_norm,
    "softmax": lambda t: bb.softmax(t, axis=1),
    "length": lambda t: t / bb.sqrt(bb.sum(t * t, axis=1, keepdims=True) + 1.0),
    "largest": lambda t: t / bb.max(bb.abs(t), axis=1, keepdims=True),
}
BASES = {
    "positions": lambda a: a + bb.arange(a.shape[0])[:, None] * 0.25,
    "scaled": lambda a: a * (bb.arange(a.shape[0])[:, None] + 1) * 0.25,
    "shifted by its rows": lambda a: a - bb.mean(a, axis=1, keepdims=True),
    "masked": lambda a: bb.where(bb.arange(a.shape[1]) <= bb.arange(a.shape[0])[:, None], a, 0.0),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("base", BASES)
def test_sums_of_a_norm_beside_the_place_of_an_extremum(base, norm, place):
    def f(a):
        t = BASES[base](a)
        n = NORMS[norm](t)
        found = PLACES[place](t, axis=1)
        return bb.sum(n, axis=1, keepdims=True) * n + found[:, None], bb.sum(n * n, axis=1)

    graph = bb.lower(bb.trace(f, a="A B"))
    for snapshot in fuse(graph).snapshots:
        verify(snapshot)
        assert_same_numbers(graph, snapshot)
    a = np.random.default_rng(0).standard_normal((5, 7))
    oracle = bb.trace(f, a="A B").numpy({"a": a})
    for got, expected in zip(bb.jit(f)(a), oracle.values(), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-12)


def test_results_are_picked_with_the_ports_of_their_leads():
    (node,) = parse("""graph(X: K[M,K] = port) {
      s, m, a = map K (x in !X) {
        t = row_sum(x) r = row_max(x) h = where(x == r, 1, inf) over [M,K] i = row_min(h)
        yield +t yield max l = r yield min i by l: where(r == r2, x, inf) }
      return s, m, a }""").nodes

    assert [result.leads for result in results_at(node.op, (1, 2))[1:]] == [(0,)]
    assert node.op.group_of(1) == node.op.group_of(2) == (1, 2)
    assert node.op.group_of(0) == (0,)
