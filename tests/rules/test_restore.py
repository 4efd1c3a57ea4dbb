"""Derivations read back from JSON: equal ones come back, and others are refused in words."""

import json

import pytest

import blockbuster as bb
from blockbuster import examples
from blockbuster.errors import RuleError
from blockbuster.rules import PAPER_RULES, RULES
from blockbuster.rules.restore import restore


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
