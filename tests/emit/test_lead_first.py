"""Groups folded under a lead that is brought up to date first: when, why not, and what it saves."""

from dataclasses import replace

import numpy as np
import pytest

from blockbuster.emission import emit
from blockbuster.emit.closing.guard import guard
from blockbuster.emit.closing.lead_first import lead_first, not_leading
from blockbuster.emit.tile.dataflow import defined
from blockbuster.emit.tile.listing import listing
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.program import Fold, For, Let, Store, Tile, View, statements
from blockbuster.emit.tile.verify import verify_tiles
from blockbuster.ir.expr import Arg, call
from blockbuster.ir.ops import Pointwise
from blockbuster.ir.parse import parse
from tests.emit.cases import FOLDER, changed_by, graph_of
from tests.emit.numpy_runs import run_numpy

# the significand of a group is made by ``{made}`` from the block b and its exponents z, per row
GROUP = """
graph(X: M,N[M,N], W: M,N[M,N], V: N,L[N,L], c: M[M]) {{
  Y = map M (x in !X, w in !W, k in !c, u = !V) {{
    z, s = map N (b in !x, d in !w, v in !u, k2 = k) {{
      {lead}
      {made}
      yield max r = z
      yield {monoid} by r: {factor}
    }}
    {after}
    yield y
  }}
  return Y
}}
"""
RESCALED = "x * exp(sub0(r, r2))"
SUM = "h = sub0(b, z) over [M,N]  e = exp(h)  t = row_sum(e)"


def group(made=SUM, *, lead="z = row_max(b)", monoid="+t", factor=RESCALED, after="y = log(s) + z"):
    return lower_to_tiles(
        parse(GROUP.format(made=made, lead=lead, monoid=monoid, factor=factor, after=after))
    )


def the_loop(program):
    """The loop that folds the group, and its fold."""
    for nest in program.nests:
        for stmt in statements(nest.body):
            if isinstance(stmt, For):
                for fold in stmt.body:
                    if isinstance(fold, Fold) and fold.members:
                        return stmt, fold
    raise AssertionError("no group")


def reason(program):
    loop, fold = the_loop(program)
    return not_leading(fold, loop.body)


def check(program, *, extreme=False, rtol=1e-12):
    """The numbers stay, also with padded lanes; the program changes."""
    made = lead_first(program)
    assert made != program
    verify_tiles(made)
    assert lead_first(made) == made
    rng = np.random.default_rng(3)
    sizes = {"M": 5, "N": 7, "L": 3}
    x = rng.normal(size=(5, 7)) * (300 if extreme else 1)
    if extreme:
        x[1] = -np.inf
        x[2, ::2] = -np.inf
        x[3, 3] = np.inf
        x[4, 5] = np.nan
    inputs = {
        "X": x, "W": rng.normal(size=(5, 7)), "V": rng.normal(size=(7, 3)),
        "c": rng.uniform(1, 2, size=5),
    }  # fmt: skip
    blocks = {"M": 2, "N": 2, "L": 2}
    taken = {buffer.name: inputs[buffer.name] for buffer in program.inputs}
    with np.errstate(all="ignore"):
        wanted = run_numpy(program, taken, sizes, blocks, folder=FOLDER)
        for padded in (False, True):
            form = guard(made, ("M", "N", "L")) if padded else made
            found = run_numpy(form, taken, sizes, blocks, folder=FOLDER, padded=padded)
            for name, array in wanted.items():
                np.testing.assert_allclose(found[name], array, rtol=rtol, atol=1e-300)


def test_the_lead_goes_first():
    assert listing(lead_first(group())) == (
        "forall m in range(M):\n"
        " for n in range(N):\n"
        "  t3 = load(X[m,n])\n"
        "  t4 = row_max(t3)\n"
        "  t5 = maximum(t1, t4)\n"
        "  t6 = sub0(t3, t5)\n"
        "  t7 = exp(t6)\n"
        "  t1 = t5\n"
        "  t2 (+)= row_sum(t7)   # t2 is rescaled to the new t1 before\n"
        " t8 = log(t2) + t1\n"
        " store(t8,O[m])\n"
    )


@pytest.mark.parametrize(
    "made",
    [
        SUM,
        "h = b - z over [M,N]  e = exp(h)  t = row_sum(e)",
        "n = -z  h = row_shift(b, n)  e = exp(h)  t = row_sum(e)",
        "h = sub0(b, z) over [M,N]  e = exp(h)  g = mul(e, d)  t = row_sum(g)",
        "h = sub0(b, z) over [M,N]  e = exp(h)  g = add(e, e)  f = sub(g, e)  t = row_sum(f)",
        "h = sub0(b, z) over [M,N]  e = exp(h)  g = div(e, d)  t = row_sum(g)",
        "e = k2 * exp(b - z) over [M,N]  t = row_sum(e)",
        "e = exp(b - z) / k2 over [M,N]  q = row_scale(e, k2)  t = row_sum(q)",
        "e = where(d > 0, exp(sub0(b, z)), exp(sub0(b, z)) * 2) over [M,N]  t = row_sum(e)",
        "e = exp(sub0(b, z)) over [M,N]  o = exp(z - k2) over [M]  p = exp(k2 - z - z) over [M]"
        "  t0 = row_sum(e)  w2 = mul(p, o)  u2 = row_sum(d)  t1 = mul(w2, u2)  t = add(t0, t1)",
    ],
)  # fmt: skip
def test_what_a_significand_may_be(made):
    check(group(made))


def test_masked_infinite_and_undefined_rows_stay_what_they_are():
    check(group(), extreme=True)


def test_a_kernel_of_attention_rescales_what_it_has():
    sizes = {"M": 512, "N": 512, "D": 64, "L": 64}
    text = emit(graph_of("attention safe"), sizes).source

    assert text.count("scale_old = ") == 1
    assert "scale_new" not in text


@pytest.mark.parametrize("monoid", ["max t", "min t"])
def test_extrema_of_exponentials(monoid):
    check(group(SUM.replace("row_sum", f"row_{monoid[:3]}"), monoid=monoid))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (dict(factor="x * exp(r - r2)"), "how t2 is rescaled is not known"),
        (dict(made="t = row_sum(b)"), "t5 is not computed under t4"),
        (dict(made="h = sub0(b, z) over [M,N]  t = row_sum(h)"), "t6 does not only shift or scale"),
        (dict(made="e = exp(b - z) over [M,N]  f = exp(sub(e, b))  t = row_sum(f)"), "shift or"),
        (dict(made="e = exp(b - 2 * z) over [M,N]  t = row_sum(e)"), "shift or"),
        (dict(made="e = exp(b - z - z) over [M,N]  t = row_sum(e)"), "t6 is not computed under t4"),
        (dict(made="e = exp(z - b) over [M,N]  t = row_sum(e)"), "t6 is not computed under t4"),
        (dict(made="e = exp(b - z) + 1 over [M,N]  t = row_sum(e)"), "shift or"),
        (dict(made="e = tanh(b - z) over [M,N]  t = row_sum(e)"), "shift or"),
        (dict(made="e = where(b > z, exp(b - z), 0) over [M,N]  t = row_sum(e)"), "shift or"),
    ],
)  # fmt: skip
def test_reasons(change, why):
    program = group(**change)
    assert why in reason(program)
    assert lead_first(program) == program


def test_what_is_stored_or_read_in_an_inner_loop_stays():
    program = group()
    loop, fold = the_loop(program)
    significand = next(s for s in loop.body if isinstance(s, Let) and s.target == fold.value)
    (out,) = program.outputs
    stored = Store(View(out, ("M",)), fold.members[0].value)
    inner = For("L", True, (replace(significand, args=(fold.value,), target=Tile("t90", ("M",))),))
    other = Fold(Tile("t91", ("M",)), "+", fold.members[0].value)

    assert "is stored" in not_leading(fold, (*loop.body, stored))
    assert "a loop over L reads" in not_leading(fold, (*loop.body, inner))
    assert "t91 is folded under the lead, too" in not_leading(fold, (*loop.body, other))


def test_a_lead_that_is_read_or_made_elsewhere_stays():
    loop, fold = the_loop(group())
    total = Pointwise(call("add", Arg(0), Arg(1)), ("M",))
    reader = Let(Tile("t92", ("M",)), total, (fold.target, fold.value))

    assert "is read in the loop" in not_leading(fold, (*loop.body, reader))
    outside = tuple(s for s in loop.body if defined(s) != fold.value)
    assert "is not made in the loop itself" in not_leading(fold, outside)


def test_every_array_program_keeps_its_numbers():
    assert changed_by(lead_first) >= 5
