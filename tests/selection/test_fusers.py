"""Fusers of users: their better programs win, wrong ones and failures are told and left out."""

from __future__ import annotations

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.selection.parts.partition import Price

CHAIN = bb.trace(lambda x, w, v: (x @ w) @ v, x="M K", w="K N", v="N L")
SIZES = dict(M=256, K=256, N=256, L=4)


def dims_of(part):
    return {one.name: " ".join(one.shape) for one in part.inputs}


def from_the_right(part):
    if len(part.inputs) == 3:
        a, b, c = dims_of(part)
        yield bb.trace(lambda **given: given[a] @ (given[b] @ given[c]), **dims_of(part))


def fused_from_the_right(part):
    for program in from_the_right(part):
        graph = bb.lower(program)
        named = bb.parse(graph.show().replace("out", part.outputs[0].name))
        yield from bb.fuse(named).snapshots


def nearly(part):
    if len(part.inputs) == 3:
        a, b, c = dims_of(part)
        yield bb.trace(lambda **given: given[a] @ (given[b] @ given[c]) * 1.01, **dims_of(part))


def raises(part):
    yield from from_the_right(part)
    raise KeyError("pattern")


def selected(*fusers, program=CHAIN, sizes=SIZES, machine="cpu", dtype="float64", **options):
    return bb.select(program, sizes, machine, dtype, library=False, fusers=fusers, **options)


@pytest.mark.parametrize("fuser", [from_the_right, fused_from_the_right])
def test_a_better_program_wins_and_computes_the_same(fuser):
    ours = selected()

    compiled = bb.compile(CHAIN, SIZES, "float64", "cpu", fusers=[fuser])

    plan = compiled.plan
    assert plan.total_us < 0.8 * ours.total_us
    assert f" by {fuser.__name__}: " in plan.explain()
    assert plan.notes == ours.notes == ()
    assert plan.lower_bound_us <= plan.total_us
    (part,) = plan.divided.parts
    assert bool(part.fused[0].derivation.steps) == (fuser is from_the_right)
    rng = np.random.default_rng(0)
    x, w, v = (rng.normal(size=shape) for shape in ((256, 256), (256, 256), (256, 4)))
    np.testing.assert_allclose(compiled(x, w, v), x @ w @ v)


def test_jit_takes_fusers_and_efforts():
    x, w, v = (np.random.default_rng(0).normal(size=(at, at)) for at in (64, 64, 64))
    v = v[:, :2]

    jitted = bb.jit(lambda x, w, v: (x @ w) @ v, fusers=[from_the_right], effort="exhaustive")

    np.testing.assert_allclose(jitted(x, w, v), x @ w @ v)
    plan = jitted.plan_for(x, w, v)
    assert " by from_the_right: " in plan.explain()
    assert plan.gap == 0.0


@pytest.mark.parametrize("made", [bb.jit, lambda **bad: bb.compile(CHAIN, SIZES, **bad)])
def test_bad_options_are_refused_before_anything_is_compiled(made):
    with pytest.raises(TypeError, match="fusers is one function"):
        made(fusers=from_the_right)
    with pytest.raises(ValueError, match="unknown effort 'most'"):
        made(effort="most")


@pytest.mark.slow
def test_a_better_program_wins_on_a_gpu():
    sizes = dict(M=4096, K=4096, N=4096, L=16)
    asked = dict(sizes=sizes, machine="h200", dtype="float16")

    ours, theirs = selected(**asked), selected(fused_from_the_right, **asked)

    assert theirs.total_us < ours.total_us / 3
    assert " by fused_from_the_right: " in theirs.explain()


def test_a_wrong_program_and_a_failure_are_told_and_left_out():
    ours, plan = selected(), selected(nearly, raises)

    assert plan.total_us == ours.total_us
    said = "\n".join(plan.notes)
    assert "fuser nearly is left out: its program computes something else; for 2 matmul (" in said
    assert "fuser raises raised KeyError: 'pattern'; for matmul (" in said
    assert " and 1 other part\n" in f"{said}\n"
    told = " ".join(plan.explain().split())
    assert "fuser nearly is left out" in told
    assert "fuser raises raised KeyError" in told


ONE = bb.trace(lambda x: bb.exp(x) + x, x="M N")


@pytest.mark.parametrize(
    ("offer", "reason"),
    [
        (lambda part: [3], "expected an array program or a block program, got"),
        (lambda part: 3, "raised TypeError: "),
        (lambda part: [bb.trace(lambda y: bb.exp(y) + y, y="M N")], "read different arrays: "),
        (lambda part: [bb.trace(lambda x: bb.exp(x) + x, x="A B")], "read x with different dims"),
        (lambda part: [bb.trace(lambda x: (x, x), x="M N")], "2 outputs, and the part has 1"),
        (lambda part: [bb.lower(bb.trace(lambda x: {"y": x}, x="M N"))], "return different arr"),
        (lambda part: [bb.trace(lambda x: (bb.exp(x) + x).sum(0), x="M N")], "something else"),
    ],
)
def test_what_is_no_program_of_a_part_is_told(offer, reason):
    (note,) = selected(offer, program=ONE, sizes=dict(M=64, N=64)).notes

    assert note.startswith("fuser <lambda> ")
    assert reason in note
    assert "; for exp, add (test_fusers.py:" in note


def test_our_program_stays_where_another_is_no_faster():
    plan = selected(lambda part: [part], program=ONE, sizes=dict(M=64, N=64))

    assert [part.by for part in plan.divided.parts] == [""]


def test_the_program_of_a_fuser_has_to_be_just_faster(monkeypatch):
    for theirs, chosen in ((0.99, "<lambda>"), (1.0, "")):
        taken = lambda form, *_, us=theirs: Price(us if form.by else 1.0)  # noqa: E731
        monkeypatch.setattr("blockbuster.selection.plans.forms.price", taken)

        plan = selected(lambda part: [part], program=ONE, sizes=dict(M=64, N=64))

        assert plan.divided.parts[-1].by == chosen


def test_the_bound_with_fusers_counts_what_any_algorithm_moves():
    sizes = dict(M=512, K=512, N=512, L=4)
    ours, theirs = selected(sizes=sizes), selected(lambda part: (), sizes=sizes)

    assert theirs.total_us == ours.total_us
    assert theirs.divided.found.best.bound <= ours.divided.found.best.bound
    bounds = theirs.divided.found.bounds
    assert bounds.least(1) < theirs.divided.found.estimates.bounds.least(1)


def test_a_part_is_equal_to_none_by_another_program():
    (part,) = selected(program=ONE, sizes=dict(M=64, N=64)).divided.parts

    assert part.offered(bb.lower(part.program), "mine").structure(SIZES) != part.structure(SIZES)


def test_equal_parts_may_be_offered_other_programs():
    def chains(x, w, v, a, b, c):
        return (x @ w) @ v, (a @ b) @ c

    dims = dict(x="M K", w="K N", v="N L", a="M K", b="K N", c="N L")

    def for_the_first(part):
        return from_the_right(part) if [one.name for one in part.inputs] == [*"xwv"] else ()

    plan = selected(for_the_first, program=bb.trace(chains, **dims), effort="exhaustive")

    assert sorted(part.by for part in plan.divided.parts)[-1] == "for_the_first"
    assert [part.by for part in plan.divided.parts].count("for_the_first") == 1


def weights(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


SCORES = bb.trace(
    lambda x, w: bb.custom(weights, x @ w, shape=(x.shape[0], w.shape[1])) * 2.0, x="M K", w="K N"
)


def as_softmax(part, factor=1.0):
    if [one.op for one in part.equations] == ["custom"]:
        yield bb.trace(lambda **x: bb.softmax(*x.values()) * factor, **dims_of(part))


def as_another(part):
    yield from as_softmax(part, factor=1.01)


def test_a_custom_operator_becomes_a_kernel():
    plan = selected(as_softmax, program=SCORES, sizes=dict(M=512, K=64, N=256))

    assert not plan.calls
    (note,) = plan.notes
    assert note.startswith("fuser as_softmax is not proven, since custom functions are not; for ")
    assert "no kernel can contain it" not in plan.explain()
    x, w = np.random.default_rng(0).normal(size=(2, 4, 4))
    compiled = bb.compile(SCORES, dict(M=4, K=4, N=4), "float64", "cpu", fusers=[as_softmax])
    assert not compiled.plan.calls
    np.testing.assert_allclose(compiled(x, w), weights(x @ w) * 2.0)


def test_another_function_does_not_take_the_place_of_a_custom_operator():
    plan = selected(as_another, program=SCORES, sizes=dict(M=512, K=64, N=256))

    assert len(plan.calls) == 1
    (note,) = plan.notes
    assert note.startswith("fuser as_another is left out: its program computes something else")


@pytest.mark.parametrize(
    ("fusers", "words"),
    [
        (from_the_right, r"fusers is one function: pass a sequence, fusers=\[from_the_right\]"),
        (3, "expected a sequence of fusers, got an int"),
        ([from_the_right, "mine"], "among the fusers is a str"),
    ],
)
def test_what_is_no_sequence_of_fusers(fusers, words):
    with pytest.raises(TypeError, match=words):
        bb.select(CHAIN, SIZES, fusers=fusers)
