"""What each rule makes of a program, and what it refuses: the cases of tests/golden/rules."""

import pytest

from tests.random_programs.walks import EVERY_RULE
from tests.rules.golden import GOLDEN, check_golden, folder_of, golden_cases

CASES = [
    pytest.param(rule, *case.values, id=f"{rule.name}-{case.id}")
    for rule in EVERY_RULE
    for case in golden_cases(folder_of(rule))
]


@pytest.mark.parametrize(("rule", "case"), CASES)
def test_listing(rule, case, update_golden):
    check_golden(rule, case, update_golden)


def test_every_golden_folder_belongs_to_a_rule():
    folders = sorted(path.name for path in GOLDEN.iterdir() if path.is_dir())

    assert folders == sorted(folder_of(rule) for rule in EVERY_RULE)
