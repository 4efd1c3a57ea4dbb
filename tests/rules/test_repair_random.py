"""``bb.repair`` on random dependent reductions: what is solved is right, and refusals are shown."""

from collections import Counter
from statistics import median
from time import process_time

import pytest

import blockbuster as bb
from tests.mutants.mutate import Copies
from tests.parameters import one_in
from tests.rules.dependent import NONE, SOLVER, TABLE, dependents, undecided, wrong

CASES = dependents(216)
AT_ONCE = 6
ANSWER = "blockbuster.rules.answer"


def test_there_are_enough_of_each_kind():
    kinds = Counter(case.kind for case in CASES)

    assert len(CASES) > 200
    assert min(kinds[TABLE], kinds[SOLVER], kinds[NONE]) > 60


@pytest.mark.parametrize("first", one_in(12, range(0, len(CASES), AT_ONCE)))
def test_answers(first):
    for case in CASES[first : first + AT_ONCE]:
        assert not wrong(case, bb.repair), str(case)


@pytest.mark.slow
def test_an_answer_takes_a_few_hundredths_of_a_second():
    """In time of this process: others may use the processor, too."""
    seconds = []
    for case in dependents(60, seed=1):
        start = process_time()
        bb.repair(case.g, case.producers, case.elements, case.f)
        seconds.append(process_time() - start)

    assert median(seconds[20:]) < 0.05


@pytest.mark.parametrize("case", undecided(), ids=["nearly a factor", "flat"])
def test_numbers_prove_nothing(case):
    assert not wrong(case, bb.repair)


MUTANTS = {
    "the sign of an exponent": ("laws", "old) if times > 0", "old) if True"),
    "old over new": ("laws", "old) if power > 0", "old) if power < 0"),
    "a power is lost": ("laws", 'or call("pow", base, power)', "or base"),
    "any sign for extrema": ("laws", "<= {*law.signs}", "<= {*law.signs, *ANY}"),
    "a sum is shifted": ("laws", "if law.leaves and change is not None:", "if False:"),
    "an element is forgotten": ("answer", ": split[1]],)", ": split[0] + 1],)"),
    "a producer is forgotten": ("separate", "if self._lacks(expr, self.elements):", "if True:"),
    "any terms share a factor": ("separate", "each != found[0]", "False"),
    "a choice by the producer": ("separate", 'if expr.fn == "where" and not', "if False and not"),
    "numbers refute no factor": ("solve", "if different:", "if False:"),
    "order is free": ("solve", "if turned else found", "if False else found"),
    "any ratio will do": ("solve", "* old - case.g * new):", "* 0):"),
    "any power is undone": ("solve", "if base.is_nonnegative and power", "if power"),
    "done again with r": ("solve", "lambda x: x + later)", "lambda x: x + rest)"),
    "times what it was": ("solve", "lambda x: x * later, needs)", "lambda x: x * rest, needs)"),
    "the order is turned round": ("case", "setting.after[low] > setting", "0 * setting"),
    "a dropped domain": ("case", "in (held, None)", "is not None"),
    "rounded numbers are equal": ("case", "return bool(first == second)", "return True"),
}


@pytest.mark.parametrize("name", one_in(9, MUTANTS, first=6))
def test_mutants_die(name):
    module, before, after = MUTANTS[name]
    answer = Copies(f"blockbuster.rules.{module}", before, after).copy(ANSWER).answer

    def mutant(g, producers, elements, f):
        return answer(g, producers, elements, f, ())

    assert any(_complains(case, mutant) for case in (*undecided(), *CASES))


def _complains(case, mutant):
    try:
        return wrong(case, mutant, seeds=[0])
    except (ArithmeticError, KeyError, TypeError):
        return True
