"""``bb.select``: a plan tells what it takes, how far it may be from the best, and why."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from math import inf

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.errors import EmitError
from blockbuster.runtime.given import family_of
from blockbuster.selection.parts.partition import Price, best_plan
from blockbuster.selection.plans.divided import Division
from blockbuster.selection.plans.explanation import _gap
from blockbuster.selection.plans.stored import what_is_stored
from blockbuster.selection.priors import PRIORS
from tests.parameters import rest_slow
from tests.selection.given_parts import plan_of_parts

NEAR = PRIORS.whole_program_factor


def group_norm(x, w):
    y = x @ w
    y = y.reshape(x.shape[0], 4, w.shape[1] // 4)
    centred = y - y.mean(-1, keepdims=True)
    spread = (centred * centred).mean(-1, keepdims=True)
    return (centred * bb.rsqrt(spread + 1e-5)).reshape(x.shape[0], w.shape[1])


def attention(q, k, v):
    return bb.softmax((q @ k.T) * q.shape[-1] ** -0.5) @ v


def gated(x, w, u, d):
    h = bb.rms_norm(x)
    return x + (bb.silu(h @ w) * (h @ u)) @ d


def block(x, wq, wk, wv, wo, w, u, d):
    h = bb.rms_norm(x)
    q, k, v = (bb.split_heads(h @ one, 8) for one in (wq, wk, wv))
    scores = (q @ k.swapaxes(-1, -2)) * 0.125
    seen = bb.arange(x.shape[0])[:, None] >= bb.arange(x.shape[0])[None, :]
    y = x + bb.merge_heads(bb.softmax(bb.where(seen, scores, -np.inf)) @ v) @ wo
    return gated(y, w, u, d)


def pooled(x, w):
    y = x @ w
    return y.reshape(x.shape[0], w.shape[1] // 3, 3).mean(-1)


def sorted_between(x, w):
    y = np.sort(x @ w, axis=-1)
    return bb.softmax(y + 1.0)


PRODUCT = dict(x="M K", w="K N")
WIDE = dict(M=512, K=512, N=4096)
CASES = {
    "group_norm": (group_norm, PRODUCT, WIDE),
    "attention": (attention, dict(q="M D", k="N D", v="N L"), dict(M=4096, N=4096, D=128, L=128)),
    "gated": (
        gated, dict(x="M D", w="D F", u="D F", d="F D"), dict(M=4096, D=1024, F=4096)
    ),
    "pooled": (pooled, PRODUCT, dict(M=128, K=1024, N=768)),
    "sorted_between": (sorted_between, PRODUCT, dict(M=256, K=64, N=256)),
    "block": (
        block,
        {"x": "M D", **dict.fromkeys(("wq", "wk", "wv", "wo"), "D D"), "w": "D F", "u": "D F",
         "d": "F D"},
        dict(M=2048, D=2048, F=5504),
    ),
}  # fmt: skip


@cache
def selected(name, machine="h200", dtype="float16"):
    function, dims, sizes = CASES[name]
    return bb.select(bb.trace(function, **dims), sizes, machine, dtype, library=False)


@pytest.fixture
def two_kernels():
    return selected("group_norm")


def test_a_cut_tells_what_is_stored_and_what_one_kernel_would_take(two_kernels):
    head, *lines = two_kernels.explain().splitlines()

    assert head.startswith("group_norm: 2 kernels for sm_90, float16; ")
    assert head.endswith(" us predicted on h200 (closed form, cold cache)")
    assert re.match(r"  1\. matmul \(test_select.py:\d+\): [\d.]+ us, limited by \w+; ", lines[0])
    assert lines[0].endswith("; reads x, w; writes y")
    assert lines[1].startswith("  2. mean, sub, mul, mean, add, rsqrt, mul (test_select.py:")
    stored = re.match(
        r"  stores 512 x 4096 \(y: float16; 4.2 MB\):"
        r" one kernel for y and out would take ([\d.]+) us instead of ([\d.]+) us",
        lines[2],
    )
    assert float(stored[1]) > 1.2 * float(stored[2])
    assert lines[3].startswith("  search: the operators are ")


def test_what_a_plan_takes_is_what_its_parts_take(two_kernels):
    shown = [float(us) for us in re.findall(r"\): ([\d.]+) us, limited", two_kernels.explain())]

    assert two_kernels.total_us == pytest.approx(sum(shown), abs=0.11)
    assert 0.0 < two_kernels.lower_bound_us <= two_kernels.total_us
    assert two_kernels.gap == pytest.approx(
        two_kernels.total_us / two_kernels.lower_bound_us - 1.0
    )
    assert two_kernels.total_us > two_kernels.cost("h200", launch="graph").time_us


def test_of_one_part_it_is_said_what_several_would_take():
    plan = selected("attention")
    text = plan.explain()

    assert len(plan.divided.parts) == 1
    assert "  1. matmul, mul, softmax, matmul (test_select.py:" in text
    assert "\n  one part: divided, it is not estimated to take less\n" in text
    assert 0.0 <= plan.gap < 1.0


def test_a_program_with_little_to_do_is_divided_where_it_takes_long_as_one_part():
    """One kernel of a product and a mean of 3 columns takes many times as long as the two."""
    assert selected("pooled").kernels == 2


@pytest.mark.parametrize("name", rest_slow([*CASES], ["group_norm", "attention"]))
def test_an_explanation_is_short_and_tells_of_every_kernel(name):
    plan = selected(name)
    lines = plan.explain().splitlines()
    drawn = plan.draw()

    assert max(map(len, lines)) <= 120
    assert len(lines) <= 30
    parts = [line for line in lines if re.match(r"  \d+\. ", line)]
    assert len(parts) == len(plan.divided.parts)
    for at in range(1, len(parts) + 1):
        assert f'id="k-{at}"' in drawn.dot
        assert f">{at}: " in drawn.svg()
    for name in (*plan.inputs, *plan.names):
        assert f">{name}</text>" in drawn.svg()
    assert "<svg" in plan._repr_html_()
    assert plan.total_us >= plan.lower_bound_us > 0.0


def test_functions_of_whole_arrays_are_named():
    text = selected("sorted_between").explain()
    words = " ".join(text.split())

    assert "(closed form, cold cache), without np.sort" in text.splitlines()[0]
    assert "np.sort[-1] (test_select.py:" in words
    assert "runs on whole arrays, and is not traced" in words


def test_a_plan_for_the_cpu_has_times():
    plan = selected("group_norm", machine="cpu", dtype="float64")

    assert "us predicted on cpu" in plan.explain()
    assert "digraph" in plan.draw().dot
    assert plan.total_us > 0


def test_one_operator_is_one_part():
    plan = bb.select(bb.trace(lambda x: bb.exp(x), x="M N"), dict(M=64, N=64))

    assert "its operators are one group that stays together" in plan.explain()
    assert plan.total_us == plan.lower_bound_us


def test_a_plan_at_other_sizes_has_a_bound_there(two_kernels):
    other = replace(two_kernels, sizes={**two_kernels.sizes, "M": 5000})

    assert "\n  the parts were chosen for A = 4, M = 512, K = 512, " in other.explain()
    assert two_kernels.lower_bound_us < other.lower_bound_us <= other.total_us


@pytest.mark.parametrize(
    ("taken", "bound", "said"),
    [
        (10.0, 10.0, ""),
        (12.0, 10.0, ": this one is at most 20.0% above"),
        (3570.0, 10.0, ": this one takes 3,570 us, 357 times as long; the bound counts only"),
        (10.0, 0.0, ""),
    ],
)
def test_gaps_in_words(taken, bound, said):
    assert _gap(taken, bound).startswith(said)
    assert bool(_gap(taken, bound)) == bool(said)


def test_parts_without_kernels_are_told_with_the_reason(two_kernels):
    refused = {3: "no tiles fit", **dict.fromkeys(range(4, 8), "no schedule")}
    found = replace(two_kernels.divided.found, refused=refused)
    divided = replace(two_kernels.divided, found=found)
    text = replace(two_kernels, divided=divided).explain()

    assert "\n  no kernel for matmul, mean (test_select.py:" in text
    assert "): no tiles fit\n" in text
    assert "\n  no kernel for 1 other part\n" in text


def test_what_no_kernel_can_hold_is_not_stored_by_choice(two_kernels):
    both = sum(two_kernels.divided.found.best.parts)
    found = replace(two_kernels.divided.found, refused={both: "no tiles fit"})
    plan = replace(two_kernels, divided=replace(two_kernels.divided, found=found))

    (line,) = what_is_stored(plan, plan.sizes)
    assert line == (
        "did not fuse: writes 512 x 4096 (y: float16; 4.2 MB), since one kernel for y and out"
        " cannot be written: no tiles fit"
    )


def test_parts_that_were_given_have_no_bound():
    function, dims, sizes = CASES["group_norm"]
    family = family_of(bb.trace(function, **dims), "float16", "sm_90")
    plan = plan_of_parts(
        family, {**sizes, "A": 4, "B": 1024}, lambda units: [1 << at for at in range(len(units))]
    )

    assert "\n  no parts were searched for: its parts were given\n" in plan.explain()
    assert "hands on 512 x 4096 (y: float16; 4.2 MB) from kernel to kernel" in plan.explain()
    with pytest.raises(ValueError, match="no bound is known for this plan: its parts were given"):
        _ = plan.lower_bound_us


def test_a_loaded_plan_has_forgotten_why(tmp_path):
    program = bb.trace(lambda x: bb.exp(x), x="M N")
    compiled = bb.compile(program, dict(M=64, N=64), machine="h200")
    plan = bb.load(compiled.save(tmp_path / "plan.json")).plan

    for ask in (plan.explain, plan.draw, lambda: plan.total_us):
        with pytest.raises(ValueError, match="has forgotten how its kernels were chosen"):
            ask()
    assert plan._repr_html_() is None


@pytest.mark.parametrize(
    ("sizes", "options", "error"),
    [
        (WIDE, {"machine": "h300"}, "unknown machine 'h300'\n  hint: did you mean 'h200'"),
        (WIDE, {"effort": "exhaustiv"}, "unknown effort 'exhaustiv'\n  hint: did you mean 'exh"),
        (WIDE, {"dtype": "float12"}, "no kernel is written for dtype 'float12'"),
        (WIDE, {"dtype": "float64"}, "no kernel is written for dtype 'float64'"),
        ({"M": 8, "K": 8}, {}, "no size given for N\n"),
        ({**WIDE, "M": 0}, {}, "M is 0: arrays without elements take no time"),
        ({**WIDE, "M": -1}, {}, "sizes: M is -1, expected a whole number"),
        ({**WIDE, "M": 2.5}, {}, "sizes: M is 2.5, expected a whole number"),
        ({**WIDE, "Z": 1}, {}, "unknown dim 'Z' in sizes"),
        ({**WIDE, "A": 3}, {}, "A"),
    ],
)
def test_bad_input_is_named(sizes, options, error):
    with pytest.raises(ValueError, match=re.escape(error)):
        bb.select(bb.trace(group_norm, **PRODUCT), sizes, **options)


@pytest.mark.parametrize("machine", [None, 90, bb.machine("a100")])
def test_a_machine_is_asked_for_by_name(machine):
    with pytest.raises(TypeError, match=r"which is no name of a machine\n  hint: known: .*h200"):
        bb.select(bb.trace(group_norm, **PRODUCT), WIDE, machine)


def test_with_all_parts_priced_the_gap_is_zero():
    program, sizes = bb.trace(group_norm, **PRODUCT), dict(M=16, K=8, N=64)

    usual = bb.select(program, sizes, "cpu", "float64")
    plan = bb.select(program, sizes, "cpu", "float64", effort="exhaustive")

    assert usual.total_us >= plan.total_us == plan.lower_bound_us
    assert plan.gap == 0.0
    assert "; all 15 parts were priced; no plan takes less than" in " ".join(
        plan.explain().split()
    )


@pytest.mark.slow
def test_what_one_kernel_cannot_share_is_computed_by_two():
    """Sums over both axes: the rectified rows are computed twice, and never stored."""

    def both(x, y):
        h = bb.relu(x + y)
        return h.sum(0), h.sum(1)

    program, sizes = bb.trace(both, x="M N", y="N"), dict(M=8192, N=8192)

    plan = bb.select(program, sizes, effort="overlapping")
    apart = bb.select(program, sizes, effort="exhaustive")

    assert plan.total_us < 0.8 * apart.total_us
    assert plan.gap == 0.0
    assert [name for step in plan.steps for name in step.writes] == ["out0", "out1"]
    told = " ".join(plan.explain().split())
    assert "computed by several parts, and not stored for them: add, relu (test_select" in told
    assert "no such plan takes less" in told


def test_a_function_of_whole_arrays_is_called_once_where_parts_overlap():
    def ordered(x):
        h = bb.custom(np.sort, x, shape=x.shape)
        return (h * 2.0).sum(0), (h + 1.0).sum(1)

    program = bb.trace(ordered, x="M N")

    plan = bb.select(program, dict(M=64, N=64), "cpu", "float64", effort="overlapping")

    assert len(plan.calls) == 1


def test_programs_with_too_many_arrays_have_no_parts_that_overlap():
    program = bb.trace(lambda x: tuple((x * i).sum(i % 2) for i in range(1, 10)), x="M N")

    with pytest.raises(ValueError, match="at most 8 arrays that groups of operators give: here"):
        bb.select(program, dict(M=4096, N=4096), effort="overlapping")


def test_a_part_that_cannot_be_lowered_is_told_and_the_choice_goes_on(monkeypatch):
    made = Division.part

    def part(self, units, bits, stored=None):
        if bits == 1:
            raise EmitError("no loops for it")
        return made(self, units, bits, stored)

    monkeypatch.setattr(Division, "part", part)
    program = bb.trace(group_norm, **PRODUCT)

    plan = bb.select(program, dict(M=16, K=8, N=64), "cpu", "float64", effort="exhaustive")

    assert re.search(r"\n  no kernel for matmul \(\S+\): no loops for it\n", plan.explain())
    assert plan.total_us > 0.0


@pytest.mark.parametrize("place", ["forms.library_program", "prices.library_us"])
def test_a_library_call_that_fails_is_told_and_the_choice_goes_on(place, monkeypatch):
    def fails(*args):
        raise EmitError("no such call")

    program, sizes = bb.trace(lambda x, w: x @ w, **PRODUCT), dict(M=4096, K=4096, N=4096)
    monkeypatch.setattr(f"blockbuster.selection.plans.{place}", fails)

    plan = bb.select(program, sizes, "h100")

    (note,) = plan.notes
    assert note.startswith("a library's call is left out: no such call; for matmul (test_select")
    assert (plan.kernels, plan.calls) == (1, ())
    assert note in " ".join(plan.explain().split())


def test_a_function_alone_stores_nothing_between_kernels():
    program = bb.trace(lambda x: bb.custom(np.sort, x, shape=x.shape), x="M N")

    text = bb.select(program, dict(M=64, N=64)).explain()

    assert "without sort" in text
    assert "did not fuse" not in text


def test_a_function_is_no_program():
    with pytest.raises(TypeError, match="expected an array program, got a function"):
        bb.select(group_norm, WIDE)


def chain(prices, **options):
    """The best plan of three units in a row, with bounds of 1 for each part."""
    return best_plan(
        (0, 1, 2), (2, 5, 2), bound=lambda part: 1.0, estimate=lambda part, _: 1.0,
        price=lambda part, _: prices[part], budget=24, **options,
    )  # fmt: skip


def test_the_whole_program_takes_the_place_of_what_is_as_fast():
    prices = {part: Price(10.0) for part in (1, 2, 4, 3, 6)} | {7: Price(20.0 * NEAR)}
    best = chain(prices)
    assert (best.parts, best.total, best.near) == ((7,), 20.0 * NEAR, 20.0)

    best = chain({**prices, 7: Price(20.1 * NEAR)})
    assert (len(best.parts), best.total, best.near) == (2, 20.0, None)


def test_an_overflow_is_worse_than_any_time_and_counts_as_none():
    prices = {part: Price(10.0, 1) for part in (1, 2, 4, 3, 6)} | {7: Price(500.0)}
    best = chain(prices)
    assert (best.parts, best.total) == ((7,), 500.0)

    best = chain({**prices, 7: Price(inf)})
    assert len(best.parts) == 2
    assert best.bound <= best.total == 20.0 < PRIORS.unsafe_us
