"""How many wrong rules each tier of exact comparison kills by itself."""

import json
from pathlib import Path

import pytest

from blockbuster.testing.cases import read_cases
from tests.mutants.kills import CASES, FORM, TIERS, kills, table
from tests.mutants.of_ours import MUTANTS_OF_OURS
from tests.mutants.of_the_paper import MUTANTS
from tests.rules.golden import GOLDEN

COMMITTED = Path(__file__).parents[2] / "bench" / "results" / "prove" / "kills.json"
ALL = {mutant.name: mutant for mutant in (*MUTANTS, *MUTANTS_OF_OURS)}
QUICK = (  # other results on one of the first programs
    "1 not item by item", "2 the first twice", "3 always a sum", "3 folds the first result",
    "4 shifts instead of scaling", "5 the largest row sum", "5 forgets the product",
    "9 the first function is lost", "linearity: the dot is read", "linearity: a peeled map",
    "linearity: forgets the product", "columns: the scale is lost",
)  # fmt: skip
AGAIN = 16  # programs
FEWEST = {FORM: 34, "A": 30, "A, orders drawn": 30, "B": 30, "ordered": 29, CASES: 73}


def killed(name, programs):
    mutant = ALL[name]
    return kills(mutant, read_cases(GOLDEN / mutant.rule_module), programs)


def test_every_tier_kills_them():
    found = [killed(name, programs=13) for name in QUICK]

    for tier in TIERS:
        assert [kill.mutant.name for kill in found if not kill.by(tier)] == []


def test_a_wasteful_mutant_gives_equal_programs():
    found = killed("3 the list computed twice", programs=6)

    assert not found.by_results
    assert not found.by(FORM)
    assert found.by(CASES)


def test_the_table_sums_up():
    text = table([killed("3 always a sum", 4), killed("3 the list computed twice", 2)])

    assert "| 3 always a sum |  | 3 | 3 | 3 | 3 | x |" in text
    assert "| **of 2** | 0 | 1 | 1 | 1 | 1 | 2 |" in text
    assert "| **of 1 with other results** | 0 | 1 | 1 | 1 | 1 | 1 |" in text


def test_the_committed_table_is_of_all_mutants():
    data = json.loads(COMMITTED.read_text())

    assert [entry["name"] for entry in data["mutants"]] == [*ALL]
    assert data["with_other_results"] >= 30
    for way, fewest in FEWEST.items():
        assert data["killed"][way] >= fewest, way


@pytest.mark.parametrize("name", [*ALL][::9])
def test_what_is_committed_still_holds(name):
    """On fewer programs; `python -m bench.mutant_kills` writes the table of all anew."""
    entries = json.loads(COMMITTED.read_text())["mutants"]
    committed = next(entry for entry in entries if entry["name"] == name)

    found = killed(name, programs=AGAIN)

    expected = {way: at for way, at in committed["programs"].items() if at <= AGAIN}
    assert found.programs == expected
    assert found.case == committed["case"]
