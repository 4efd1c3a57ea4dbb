"""Every hint is tried: following it leads to success, or to the next error, which is named."""

from collections import Counter

import pytest

from blockbuster.errors import BlockbusterError
from tests.hints import (
    arrays,
    checks,
    graphs,
    kernels,
    programs,
    sizes,
    surroundings,
    tensors,
    tools,
)
from tests.hints.sites import lines_of, sites
from tests.hints.untried import UNTRIED

MODULES = (sizes, arrays, tensors, graphs, kernels, checks, programs, tools, surroundings)
CASES = tuple(case for module in MODULES for case in module.CASES)


def error_of(work):
    with pytest.raises((BlockbusterError, TypeError, ValueError)) as caught:
        work()
    return str(caught.value)


@pytest.mark.parametrize("tried", CASES, ids=lambda tried: tried.hint)
def test_hint(tried):
    said = error_of(tried.wrong)
    _, found, hint = said.rpartition("  hint: ")

    assert found, said
    assert tried.hint in hint, said
    if tried.then:
        assert tried.then in error_of(tried.right)
    else:
        tried.right()


def test_no_hint_is_left_out(monkeypatch):
    """Each place that gives a hint is tried, or stands among those that are not, with a reason."""
    passed = set().union(*(lines_of(tried.wrong, monkeypatch) for tried in CASES))
    left = Counter(
        file
        for file, first, last in sites()
        if not any((file, line) in passed for line in range(first, last + 1))
    )

    assert left == Counter({file: n for files in UNTRIED.values() for file, n in files.items()})
