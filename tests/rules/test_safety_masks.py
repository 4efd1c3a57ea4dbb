"""Exponentials that a mask takes out afterwards have no part in the exponents of the others."""

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.interp.semantics import Float32


def normalized(e):
    return e / bb.sum(e, axis=-1, keepdims=True)


def kept(x, m):
    return normalized(bb.where(m > 0, bb.exp(x), 0.0))


def dropped(x, m):
    return normalized(bb.where(m <= 0, 0.0, bb.exp(x)))


def weighed(x, m):
    return normalized(bb.where(m > 0, bb.exp(x) * (2 + m), 0.0))


def twice(x, m):
    return normalized(bb.where(m > 0, bb.where(m < 9, bb.exp(x), 0.0), 0.0))


def two_readers(x, m):
    e = bb.exp(x)
    return bb.where(m > 0, e, 0.0) / bb.sum(bb.where(m > 0, e, 0.0), axis=-1, keepdims=True)


def either(x, m):
    return bb.sum(bb.where(m > 0, bb.exp(x), 0.0), axis=-1) / bb.sum(
        bb.where(m > 0, bb.exp(x * 0.5), bb.exp(-bb.abs(x))), axis=-1
    )


@pytest.mark.parametrize("function", [kept, dropped, weighed, twice, two_readers, either])
@pytest.mark.parametrize("far", [200.0, -200.0, np.inf, -np.inf])
def test_what_is_masked_harms_no_other_element(function, far):
    random = np.random.default_rng(0)
    x, m = random.normal(size=(2, 5, 7)).astype(np.float32)
    m[:, 0] = 1.0  # no row is masked wholly
    x = np.where(m > 0, x, np.float32(far))
    with np.errstate(all="ignore"):
        wanted = function(x.astype(np.float64), m.astype(np.float64))
    derivation = bb.fuse(bb.lower(bb.trace(function, x="M N", m="M N")))

    for graph in (derivation.start, *derivation.snapshots):
        blocks = {"M": 2, "N": 3}
        found = bb.evaluate(bb.safe(graph), {"x": x, "m": m}, block_sizes=blocks, semantics=Float32)
        np.testing.assert_allclose(*found.values(), wanted, rtol=2e-6, atol=1e-30)
