"""Which cases of slow tests ``--one-in`` leaves out."""

from types import SimpleNamespace

import pytest

from tests.conftest import left_out


def items(*names, slow=True):
    return [SimpleNamespace(nodeid=n, get_closest_marker=lambda _: slow) for n in names]


def names(left):
    return [item.nodeid for item in left]


def test_one_case_of_each_family_stays_in_so_many():
    slow = items(*(f"a.py::f[{at}]" for at in range(5)), "a.py::g", "b.py::f[0]")

    assert names(left_out(slow, 2)) == ["a.py::f[1]", "a.py::f[3]"]
    assert names(left_out(slow, 3)) == ["a.py::f[1]", "a.py::f[2]", "a.py::f[4]"]
    assert left_out(slow, 1) == []


def test_tests_that_are_not_slow_all_stay():
    assert left_out(items("a.py::f[0]", "a.py::f[1]", slow=False), 2) == []


def test_a_share_below_one_is_refused():
    with pytest.raises(pytest.UsageError, match="--one-in is 0; 1 runs all cases"):
        left_out([], 0)
