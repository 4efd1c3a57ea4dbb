"""A running maximum in base 2: what factor makes of it, when it stays as it is, and why."""

from dataclasses import replace

import numpy as np
import pytest

from blockbuster.emit.schedule import factor, lead_bits
from blockbuster.emit.schedule.factor import Factor
from blockbuster.emit.schedule.lead_bits import needed_as_it_is, with_lead_bits
from blockbuster.emit.schedule.lets import lets_of
from blockbuster.emit.schedule.site import EVERYWHERE
from blockbuster.emit.tile.listing import listing
from blockbuster.emit.tile.program import Fold, Init, Let, statements
from blockbuster.ir.expr import Arg
from blockbuster.ir.ops import Pointwise
from tests.emit.cases import FOLDER
from tests.emit.numpy_runs import run_numpy
from tests.emit.test_factor import BLOCKS, SIZES, causal, features, plain, start_of, totals

LOG2_E = "1.4426950408889634"


def factored(fn):
    start = start_of(fn)
    return start.draft, Factor().apply(start, EVERYWHERE).draft


def leads(program):
    body = program.nests[0].body
    found = [s.target for s in statements(body) if isinstance(s, Init) and s.monoid == "max"]
    return body, found


@pytest.mark.parametrize("fn", [plain, causal])
def test_the_maximum_is_scaled_as_its_elements_are(fn):
    text = listing(factored(fn)[1])

    assert text.count(f"* ({LOG2_E} * |D| ** -0.5)") == 2, "elements and their maximum"
    assert text.count(LOG2_E) == 2, "neither the new maximum nor the old one is scaled again"


def test_again_there_is_nothing_to_do():
    body, (lead,) = leads(factored(plain)[1])

    assert needed_as_it_is(lead, body) == f"{lead.name} is read besides"
    assert with_lead_bits(body) == body


def test_a_maximum_that_the_result_holds_stays():
    body, (lead,) = leads(factored(totals)[1])

    assert needed_as_it_is(lead, body) == f"{lead.name} is read besides"


def test_a_maximum_under_which_nothing_is_computed_stays():
    text = listing(factored(features)[1])

    assert f"* {LOG2_E}" in text


@pytest.fixture
def bare(monkeypatch):
    """The statements of attention in base 2, but for its lead; and the lead."""
    monkeypatch.setattr(factor, "with_lead_bits", lambda body: body)
    body, (lead,) = leads(factored(plain)[1])
    return body, lead


def test_a_value_that_others_read_stays(bare):
    body, lead = bare
    assert needed_as_it_is(lead, body) == ""
    (fold,) = (s for s in statements(body) if isinstance(s, Fold) and s.target == lead)
    value = lets_of(body)[fold.value].args[1]
    other = Let(replace(value, name="other"), Pointwise(Arg(0), value.axes), (value,))

    assert needed_as_it_is(lead, (*body, other)) == f"{value.name} is read besides"


@pytest.mark.parametrize(
    ("name", "mutant", "fn"),
    [
        ("_in_powers", lambda stmt, tile: True, totals),
        ("_scaled", lambda let: let, plain),
        ("_without", lambda expr, at, other: expr, causal),
    ],
)
def test_every_part_of_it_matters(name, mutant, fn, monkeypatch):
    random = np.random.default_rng(0)
    shapes = dict(q="M D", k="N D", v="N L")
    sizes = {name: [SIZES[d] for d in dims.split()] for name, dims in shapes.items()}
    inputs = {name: 100.0 * random.normal(size=size) for name, size in sizes.items()}

    def is_same():
        found = [run_numpy(p, inputs, SIZES, BLOCKS, folder=FOLDER) for p in factored(fn)]
        return all(np.allclose(found[0][name], found[1][name], rtol=1e-6) for name in found[0])

    assert is_same()
    monkeypatch.setattr(lead_bits, name, mutant)
    if name == "_without":
        monkeypatch.setattr(lead_bits, "_in_powers", lambda stmt, tile: True)
    assert not is_same()
