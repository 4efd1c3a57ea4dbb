"""The list of tests that take long, made from the times that pytest writes."""

from bench.slow_tests import listed, times_of

TIMES = """<testsuites><testsuite>
<testcase classname="tests.ir.test_a" name="test_one[a &lt; b]" time="0.75" />
<testcase classname="tests.ir.test_a" name="test_two" time="0.10" />
</testsuite></testsuites>
"""


def test_names_are_those_of_pytest(tmp_path):
    path = tmp_path / "times.xml"
    path.write_text(TIMES, encoding="utf-8")
    assert dict(times_of(path)) == {
        "tests/ir/test_a.py::test_one[a < b]": 0.75,
        "tests/ir/test_a.py::test_two": 0.1,
    }


def test_what_was_not_run_stays():
    before = ["a.py::fast_now", "a.py::not_run"]
    assert listed(before, {"a.py::fast_now": 0.1, "a.py::slow": 0.6, "a.py::fast": 0.2}) == [
        "a.py::not_run",
        "a.py::slow",
    ]
