"""Forms of a part that store what is far larger than all that they are given or give."""

import pytest

import blockbuster as bb
from blockbuster.machines import built_in
from blockbuster.selection.plans.forms import Forms
from blockbuster.selection.plans.part import Part, dtypes_of
from blockbuster.selection.plans.pieces import Call
from blockbuster.selection.plans.prices import price
from blockbuster.selection.priors import PRIORS


def shares(q, k, v):
    """A product of rows and one of their exponentials beside a product that torch may compute."""
    return (bb.exp(q @ k.T) + q @ k.T) @ v


@pytest.mark.parametrize(("rows", "weight"), [(8192, PRIORS.stored_large_factor), (512, 1.0)])
def test_scores_between_kernels_and_calls_count_more(rows, weight):
    program = bb.trace(shares, q="M D", k="N D", v="N D")
    machine, sizes = built_in("h200"), dict(M=rows, N=rows, D=512)
    part = Part(program, dtypes_of("float16", "sm_90", {}, ()))
    plain, *others = Forms(on_cpu=False, library=True).of(part, machine)
    calling = [one for one in others if any(isinstance(s, Call) for s in one.pieces.steps)]

    assert calling
    assert price(plain, (), sizes, machine).weight == 1.0
    assert {price(one, (), sizes, machine).weight for one in calling} == {weight}
