"""Derivations read back from JSON: equal ones come back, and others are refused in words."""

import json
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster import examples
from blockbuster.errors import RuleError
from blockbuster.rules import PAPER_RULES, RULES
from blockbuster.rules.restore import restore
from tests.edited_json import changed, places, random_change


def derivation(name="attention"):
    (example,) = (e for e in examples.ALL if e.name == name)
    return bb.fuse(bb.lower(example.program()))


@pytest.mark.parametrize("name", [example.name for example in examples.ALL])
def test_a_derivation_comes_back(name):
    made = derivation(name)
    found = restore(made.to_json(), RULES)

    assert found == made
    assert found.to_json() == made.to_json()
    assert found.replay() == made.final


def test_functions_of_whole_arrays_go_by_name():
    def program(x):
        return bb.custom(len, bb.exp(x), shape=x.shape) + 1

    made = bb.fuse(bb.lower(bb.trace(program, x="M N")))

    assert restore(made.to_json(), RULES, {"len": len}) == made
    with pytest.raises(bb.ParseError, match="unknown function 'len'"):
        restore(made.to_json(), RULES)


def tampered(change):
    data = json.loads(derivation().to_json())
    change(data)
    return json.dumps(data)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (lambda d: d.update(schema="other/2"), ValueError, "expected the schema .*\n.*other/2"),
        (lambda d: d.pop("steps"), ValueError, "steps is missing"),
        (lambda d: d["steps"][3].pop("match"), ValueError, "step 4 is damaged"),
        (lambda d: d["steps"][3].update(rule="magic"), ValueError, "step 4: unknown rule"),
        (lambda d: d["steps"][3].update(path=[9]), RuleError, "step 4: .* does not apply"),
        (lambda d: d["steps"][3]["match"].update(consumer=0), RuleError, "step 4: .* not apply"),
        (lambda d: d["steps"].pop(), ValueError, "snapshots_after does not fit"),
        (lambda d: d.update(snapshots_after=[]), ValueError, "snapshots_after does not fit"),
        (
            lambda d: d.update(snapshots_after=["x"]),
            ValueError,
            r"snapshots_after\[0\] is 'x', expected a whole",
        ),
        (lambda d: d.update(final=d["start"]), RuleError, "does not give the final program"),
        (lambda d: d.update(start="graph("), bb.ParseError, "expected"),
    ],
)
def test_other_data_is_refused(change, error, words):
    with pytest.raises(error, match=words):
        restore(tampered(change), RULES)


def test_what_is_no_json_and_what_needs_other_rules_is_refused():
    with pytest.raises(ValueError, match="this is not"):
        restore("graph(x: [M]) { return x }", RULES)
    with pytest.raises(ValueError, match="unknown rule"):
        restore(derivation().to_json(), PAPER_RULES[:1])


PROGRAMS = {
    "softmax": bb.trace(lambda x, w: bb.softmax(x @ w, axis=-1), x="M K", w="K N"),
    "views": bb.trace(lambda x: (x[1:-1] * 2).reshape(-1, 3, 4).sum(-1), x="M D=12"),
    "positions": bb.trace(lambda x: bb.where(x > 0, x, -np.inf) + bb.argmax(x, 1, keepdims=True),
                          x="M N"),
}  # fmt: skip
PIECES = [*"(){}[],;:|!'+-/<", "\u2028", "\x00", "9" * 30, "9" * 5000, "inf", "nan", "/ 0", "1e999"]
PUBLIC = (*bb.BlockbusterError.__subclasses__(), ValueError)


def edited_text(text, choose):
    """A text with a piece left out, put in or exchanged."""
    words = [*re.findall(r"\w+|\S", text), *PIECES]
    first = choose.randrange(len(text))
    last = first + choose.choice((0, 0, 1, choose.randrange(12)))
    instead = choose.choice((choose.choice(words), "", f" {choose.choice(words)} "))
    return text[:first] + instead + text[last:]


@pytest.mark.parametrize("name", PROGRAMS)
@settings(max_examples=settings().max_examples * 4)
@given(choose=st.randoms(use_true_random=False))
def test_any_change_is_a_derivation_or_refused_by_a_public_error(name, choose):
    """Also a program that stands there alone, which no step has to match."""
    made = json.loads(bb.fuse(bb.lower(PROGRAMS[name])).to_json())
    found = [*places(made)][1:]
    if choose.random() < 0.5:
        data = changed(made, choose.choice(found), random_change(choose))
    else:
        made["start"] = edited_text(made["start"], choose)
        data = {**made, "final": made["start"], "steps": [], "snapshots_after": [0]}
    try:
        derivation = restore(json.dumps(data), RULES)
    except PUBLIC as error:
        kind = type(error)
    else:
        kind = None
        assert derivation.replay() == derivation.final
        assert restore(derivation.to_json(), RULES) == derivation
    assert kind in (None, *PUBLIC)  # not a subclass that is ours alone


def test_damage_is_no_error_of_a_reader_of_ours():
    with pytest.raises(ValueError, match="the derivation is damaged: steps is missing") as info:
        restore(tampered(lambda d: d.pop("steps")), RULES)

    assert type(info.value) is ValueError
