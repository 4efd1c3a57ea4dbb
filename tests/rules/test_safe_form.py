"""The safety pass as a step: it is replayed, proved, and read back from JSON."""

import pytest

import blockbuster as bb
from blockbuster.rules import RULES, SAFETY_RULES, Match, SafeForm, fuse, made_safe, safe
from blockbuster.rules.restore import restore

RULE = SafeForm()


def lowered(fn, **inputs):
    return bb.lower(bb.trace(fn, **inputs))


SOFTMAX = lowered(lambda x: bb.softmax(x), x="M N")
NORM = lowered(lambda x, w: bb.layer_norm(x) @ w, x="M K", w="K N")
PLAIN = lowered(lambda x, w: bb.relu(x @ w), x="M K", w="K N")


@pytest.mark.parametrize("graph", [SOFTMAX, NORM])
def test_it_is_one_step_that_is_replayed_proved_and_read_back(graph):
    fused = fuse(graph)
    made = made_safe(fused)

    assert made.start == graph
    assert made.final == safe(fused.final) == made.replay()
    assert [step.rule for step in made.steps[len(fused.steps) :]] == ["safe"]
    assert made.prove(trials=4).equal is not False
    assert restore(made.to_json(), (*RULES, *SAFETY_RULES)) == made


def test_a_safe_program_has_no_site():
    fused = fuse(PLAIN)

    assert RULE.match(fused.final) is None
    assert made_safe(fused) is fused
    assert RULE.match(made_safe(fuse(SOFTMAX)).final) is None


def test_its_site_is_the_whole_program():
    assert [*RULE.matches(SOFTMAX)] == [Match(RULE, SOFTMAX, {})]
    assert RULE.apply(RULE.match(SOFTMAX)) == safe(SOFTMAX)
