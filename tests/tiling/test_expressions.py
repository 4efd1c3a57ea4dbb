"""Expressions of chains: how many, their texts, and what their loops compute."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blockbuster.errors import ParseError
from blockbuster.tiling import (
    Chain,
    Operator,
    Tensor,
    deep,
    expressions,
    gemm_chain,
    parse_expression,
    self_attention,
)
from blockbuster.tiling.candidate import bound
from blockbuster.tiling.placement import kept_along, placed, pseudocode
from tests.tiling.chains import three_products
from tests.tiling.run_placed import Run

GEMM = gemm_chain(1024, 1024, 512, 512)
SIZES = st.integers(1, 3)


def test_the_source_has_26_expressions_of_a_gemm_chain():
    found = [str(expression) for expression in expressions(GEMM)]

    assert len(found) == len(set(found)) == 26
    assert found[:24] == ["".join(p) for p in itertools.permutations("mnkh")]
    assert found[24:] == ["mn(k,h)", "nm(k,h)"]


def test_softmax_between_changes_no_expression():
    assert expressions(self_attention(64, 64, 64, 64)) == expressions(GEMM)


def test_expressions_of_three_products():
    chain = three_products(m=4, n=4, k=4, h=4, p=4)
    found = [str(expression) for expression in expressions(chain)]

    assert len(found) == len(set(found)) == 146
    assert len(deep(chain)) == 120
    assert [text for text in found if text.startswith("mn") and "(" in text] == [
        "mnh(k,p)", "mnp(k,h)", "mn(k,hp)", "mn(k,ph)",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "expression", expressions(three_products(m=1, n=1, k=1, h=1, p=1)), ids=str
)
def test_texts_read_back(expression):
    assert parse_expression(str(expression)) == expression


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("m(k", "another branch, or '\\)'"),
        ("m(k)", "another branch"),
        ("m(,k)", "expected a loop"),
        ("mk)", "expected the end"),
        ("mkm", "m stands twice"),
        ("m k", "expected the end"),
        ("", "expected a loop"),
    ],
)
def test_texts_that_cannot_be_read(text, reason):
    with pytest.raises(ParseError, match=reason):
        parse_expression(text)


def test_branches_that_lose_their_loops():
    assert str(parse_expression("mn(k,h)").without("k")) == "mnh"
    assert str(parse_expression("mn(k,h)").without("m")) == "n(k,h)"
    assert str(parse_expression("mn(k,hp)").without("mnkhp")) == ""


# meaning ---------------------------------------------------------------------------


def arrays_of(chain, draw):
    """Small integers for the inputs, so that sums are exact."""
    random = np.random.default_rng(draw(st.integers(0, 99)))
    shapes = {t.name: [chain.sizes[a] for a in t.axes] for t in chain.inputs}
    return {name: random.integers(-3, 4, shape) for name, shape in shapes.items()}


def check(chain, expression, draw):
    arrays = arrays_of(chain, draw)
    right = next(iter(arrays.values()))
    for name in list(arrays)[1:]:
        right = right @ arrays[name]
    unbound = Run(chain, expression, (), arrays)
    body = bound(chain, expression)
    on_grid = Run(chain, body.expression, body.grid, arrays)
    assert (unbound.out == right).all()
    assert (on_grid.out == right).all()
    gone = [loop for loop, size in chain.sizes.items() if size == 1]
    for run, grid, inner in (unbound, (), expression), (on_grid, body.grid, body.expression):
        for statement in placed(chain, inner, grid=grid, gone=gone):
            if statement.kind != "compute":
                trips = np.prod([chain.sizes[loop] for loop in statement.loops], dtype=int)
                assert run.counts[statement.tensor.name] == trips


@pytest.mark.parametrize("text", [str(expression) for expression in expressions(GEMM)])
@settings(max_examples=8)
@given(draw=st.data())
def test_every_expression_of_two_products_computes_the_chain(text, draw):
    sizes = {loop: draw.draw(SIZES) for loop in "mnkh"}
    check(gemm_chain(**sizes), parse_expression(text), draw.draw)


@given(draw=st.data())
def test_every_expression_of_three_products_computes_the_chain(draw):
    chain = three_products(**{loop: draw.draw(SIZES) for loop in "mnkhp"})
    check(chain, draw.draw(st.sampled_from(expressions(chain))), draw.draw)


# placement: the figures of the source ------------------------------------------------

FIGURE_4A = """\
for m
  for h
    for n
      for k
        load A[m, k]
        load B[k, n]
        C[m, n] += A B
      load D[n, h]
      E[m, h] += C D
    store E[m, h]
"""
FIGURE_4B = """\
for m 8
  load A[m, k]
  for h 4
    for n 8
      load B[k, n]
      C[m, n] += A B
      load D[n, h]
      E[m, h] += C D
    store E[m, h]
"""


def test_the_store_leaves_the_loop_over_n():
    assert pseudocode(GEMM, parse_expression("mhnk")) == FIGURE_4A


def test_a_loop_of_extent_one_lets_the_load_of_a_out():
    extents = dict(m=8, h=4, n=8, k=1)
    assert pseudocode(GEMM, parse_expression("mhnk"), extents=extents) == FIGURE_4B


def test_a_sum_around_a_spatial_loop_keeps_tiles():
    first, second = GEMM.operators
    kept = {
        text: kept_along(GEMM, first, parse_expression(text)) for text in ("nk", "kn", "n(k,h)")
    }
    assert kept == {"nk": (), "kn": ("n",), "n(k,h)": ()}
    assert kept_along(GEMM, second, parse_expression("n(k,h)")) == ("h",)


def test_attention_says_where_its_softmax_is():
    text = pseudocode(self_attention(64, 64, 64, 64), parse_expression("nk"), grid="mh")
    assert "\n  E[m, h] += softmax(C) D\n" in text


# chains that are none ------------------------------------------------------------------


def test_chains_that_are_none():
    c, e = Tensor("C", ("m", "n")), Tensor("E", ("m", "h"))
    first = Operator(c, (Tensor("A", ("m", "k")), Tensor("B", ("k", "n"))))
    apart = Operator(e, (Tensor("X", ("m", "n")), Tensor("D", ("n", "h"))))
    again = Operator(e, (c, Tensor("D", ("n", "k", "h"))))
    sizes = dict(m=2, n=2, k=2, h=2)
    with pytest.raises(ValueError, match="E does not read C"):
        Chain((first, apart), sizes)
    with pytest.raises(ValueError, match="runs over k, which is summed over before it"):
        Chain((first, again), sizes)
    with pytest.raises(ValueError, match="at least one operator"):
        Chain((), {})
    with pytest.raises(ValueError, match="loop k needs a size of at least 1, got none"):
        Chain((first,), dict(m=2, n=2))
    with pytest.raises(ValueError, match="loop k needs a size of at least 1, got 0"):
        gemm_chain(2, 2, 0, 2)
    with pytest.raises(ValueError, match="got batch 0"):
        gemm_chain(2, 2, 2, 2, batch=0)
    with pytest.raises(ValueError, match="unknown dtype 'int4'"):
        gemm_chain(2, 2, 2, 2, dtype="int4")
    with pytest.raises(ValueError, match="one letter, got 'mm'"):
        Chain((Operator(Tensor("C", ("mm",)), (Tensor("A", ("mm",)),)),), dict(mm=1))
