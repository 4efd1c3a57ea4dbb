"""Schedules of derivations: their text names the program, and replaying one compares nothing."""

from functools import cache
from importlib import import_module

import pytest

import blockbuster as bb
from blockbuster.emission import lowered
from blockbuster.emit.schedule.script import program_of
from blockbuster.errors import EmitError, ParseError
from blockbuster.rules import REPEATING_RULES, RULES, SAFETY_RULES, UNFUSING_RULES, WHOLE_RULES
from blockbuster.rules.restore import restore
from blockbuster.selection.candidates import candidate
from blockbuster.selection.candidates.named import program_named
from blockbuster.selection.choice import Fused
from blockbuster.selection.considered import as_noun
from blockbuster.selection.decisions import default_schedule
from tests.gradients import traced
from tests.parameters import rest_slow

EVERY_RULE = tuple(
    dict.fromkeys((*RULES, *UNFUSING_RULES, *WHOLE_RULES, *REPEATING_RULES, *SAFETY_RULES))
)


def attention(q, k, v):
    return bb.softmax(q @ k.T / 8.0) @ v


def normed(x, w):
    return bb.layer_norm(x) @ w


def gated(x, w, v, o):
    return (bb.silu(x @ w) * (x @ v)) @ o


def smoothed(x, w, target):
    logs = bb.log_softmax(x @ w)
    return -0.9 * (logs * target).sum(-1) - 0.1 * logs.mean(-1)


def residual(x, r, w):
    y = x + r
    return bb.rms_norm(y, w), y


PROGRAMS = {
    "attention": (attention, dict(q="M D", k="N D", v="N L"), dict(M=512, N=512, D=64, L=64)),
    "normed": (normed, dict(x="M K", w="K N"), dict(M=4096, K=4096, N=4096)),
    "gated": (gated, dict(x="M K", w="K F", v="K F", o="F K"), dict(M=512, K=512, F=1024)),
    "smoothed": (smoothed, dict(x="M K", w="K V", target="M V"), dict(M=512, K=256, V=2048)),
    "residual": (residual, dict(x="M D", r="M D", w="D"), dict(M=4096, D=1024)),
}
NAMES = rest_slow([*PROGRAMS], ["normed", "residual"])


@cache
def derivation(name):
    fn, inputs, _ = PROGRAMS[name]
    return bb.fuse(bb.lower(bb.trace(fn, **inputs)))


@cache
def kernel(name):
    return bb.emit(derivation(name), PROGRAMS[name][2])


def forms(made, sizes):
    """The name and the derivation of every program that is considered at some sizes."""
    one = Fused(made.start, made, constants=True)
    considered = one.consider(sizes, "float16", "sm_90")
    for choice in (considered.best, *considered.others):
        yield one.name_of(choice), one.derivation_of(choice), choice
    for beside in one.beside:
        yield as_noun(beside.name), beside.derivation, None
    yield "the unfused program", None, None


def refuse(*_, **__):
    raise AssertionError("a given schedule is replayed, and nothing is compared")


@pytest.mark.parametrize("name", NAMES)
def test_the_schedule_of_a_kernel_makes_it_again_and_costs_nothing(name, monkeypatch):
    made = kernel(name)
    for place, asked in ((candidate, "priced"), (candidate, "default_schedule")):
        monkeypatch.setattr(place, asked, refuse)
    monkeypatch.setattr(default_schedule, "divided", refuse)
    monkeypatch.setattr(Fused, "__init__", refuse)
    again = bb.emit(derivation(name), PROGRAMS[name][2], schedule=made.schedule)

    assert again == made
    assert again.source == made.source
    assert again.derivation.fused == made.derivation.fused
    assert (made.chosen != "", again.chosen) == (True, "")


def test_a_given_schedule_lowers_and_makes_safe_each_program_once(monkeypatch):
    calls = []
    monkeypatch.setattr("blockbuster.emission.lowered", lambda *a: calls.append(a) or lowered(*a))
    monkeypatch.setattr(import_module("blockbuster.emit.kernel"), "lower_to_tiles", refuse)
    made = kernel("attention")
    bb.emit(derivation("attention"), PROGRAMS["attention"][2], schedule=made.schedule)

    assert len(calls) == 1


@pytest.mark.parametrize("name", NAMES)
def test_every_form_is_found_by_its_name_and_begins_at_the_users_program(name):
    made = derivation(name)
    for word, steps, choice in forms(made, PROGRAMS[name][2]):
        found = program_named(word, made) if word else None
        if steps is None:
            assert found.graph == made.start
            continue
        if found is not None:
            assert found.derivation == steps, word
        assert steps.start == made.start
        assert steps.replay() == steps.final
        assert restore(steps.to_json(), EVERY_RULE) == steps
        if choice is not None and found is not None:
            assert set(choice.notes) >= set(found.notes)


@pytest.mark.parametrize("name", NAMES)
def test_no_step_of_any_form_is_refuted(name):
    proved = {}
    for _, steps, _ in forms(derivation(name), PROGRAMS[name][2]):
        for step in steps.steps if steps else ():
            key = step.rule, step.before
            if key not in proved:
                proved[key] = bb.prove_equal(step.before, step.after, trials=3).equal
            assert proved[key] is not False, step


@pytest.mark.slow
def test_programs_that_make_values_again_are_found_by_their_names():
    made = bb.fuse(bb.lower(traced("attention")))
    one = Fused(made.start, made)
    words = [as_noun(beside.name) for beside in one.beside]

    assert any("made again" in word for word in words)
    for word, beside in zip(words, one.beside, strict=True):
        assert program_named(word, made).derivation == beside.derivation


def test_a_name_that_the_derivation_does_not_have_is_refused():
    made = derivation("attention")
    for word, reason in (
        ("snapshot 9", "it has snapshot"),
        ("snapshot 1 with statistics apart", "nothing to change"),
        ("the program with Q in one block", "Q cannot be whole"),
        ("the best program", "no program has such a name"),
    ):
        with pytest.raises(EmitError, match=reason):
            bb.emit(made, PROGRAMS["attention"][2], schedule=f"for {word}\nwarps 4")


def test_a_graph_has_no_programs_to_name():
    with pytest.raises(EmitError, match="for 'snapshot 1', a program of a derivation, and a graph"):
        bb.emit(derivation("gated").final, PROGRAMS["gated"][2], schedule="for snapshot 1; warps 4")


def test_the_line_may_follow_comments_and_be_joined_and_stands_before_all_moves():
    assert program_of("# why\n ; for  snapshot  1 # so ; it\nwarps 4")[0] == "snapshot 1"
    assert program_of("warps 4\nfor snapshot 1")[0] == ""
    assert program_of("# for snapshot 1\nwarps 4") == ("", "# for snapshot 1\nwarps 4")
    with pytest.raises(ParseError, match="expected the name of a program"):
        program_of("# a comment\nfor\nwarps 4")
    made, sizes = derivation("gated"), PROGRAMS["gated"][2]
    with pytest.raises(ParseError, match="line 2 of the schedule: unknown move 'for'") as caught:
        bb.emit(made, sizes, schedule="warps 4\nfor snapshot 1")
    assert "comes before all moves" in str(caught.value)


def test_lines_are_counted_from_the_one_that_names_the_program():
    with pytest.raises(EmitError, match="line 3 of the schedule, 'block Q 32'") as caught:
        bb.emit(derivation("gated"), PROGRAMS["gated"][2], schedule="for snapshot 1\n\nblock Q 32")
    assert caught.value.__notes__ == ["the schedule was applied to snapshot 1, which it is for"]
