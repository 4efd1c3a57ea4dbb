"""Hypothesis profiles, the `--update-golden` option and the `golden` fixture."""

import gc
import os
from collections.abc import Callable, Generator
from difflib import unified_diff
from pathlib import Path

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import HealthCheck, is_hypothesis_test, settings

# Arrays of tests are small: threads of torch and of BLAS wait for each other most of the time, and
# each core has a worker of its own. Processes that tests start inherit this.
os.environ.setdefault("OMP_NUM_THREADS", "1")

GOLDEN = Path(__file__).parent / "golden"

# Deadlines are off: a time limit on one example fails on a busy machine and proves nothing.
# `--hypothesis-profile=NAME` chooses another profile. The Makefile chooses `ci` for `make test`
# where CI is set, and `slow`, seven times the examples, for `make slow`.
# a busy machine is no reason to fail
COMMON = dict(deadline=None, suppress_health_check=[HealthCheck.too_slow])
SAME = dict(derandomize=True, database=None, print_blob=True, **COMMON)  # in every run

settings.register_profile("dev", max_examples=15, **COMMON)
settings.register_profile("ci", max_examples=15, **SAME)
settings.register_profile("slow", max_examples=100, **SAME)
settings.register_profile("thorough", max_examples=2000, **COMMON)
settings.load_profile("dev")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of Hypothesis are marked: `make slow` runs them too, on more examples."""
    for item in items:
        if isinstance(item, pytest.Function) and is_hypothesis_test(item.function):
            item.add_marker("property")


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Doctests stand in the package, none in the tests: nobody looks for them here."""
    found = yield
    return [collector for collector in found if not isinstance(collector, DoctestModule)]


def pytest_collection_finish() -> None:
    """What collection made stays to the end: Python's search for cycles need not go over it."""
    gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="rewrite the texts in tests/golden instead of comparing with them",
    )


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether goldens are to be rewritten."""
    return bool(request.config.getoption("--update-golden"))


@pytest.fixture
def golden(update_golden: bool) -> Callable[[str, str], None]:
    """A function that compares a text with the file of that name in tests/golden."""

    def check(name: str, actual: str) -> None:
        path = GOLDEN / name
        if update_golden:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(actual, encoding="utf-8", newline="\n")
            return
        if not path.exists():
            pytest.fail(f"tests/golden/{name} is missing; write it with: pytest --update-golden")
        expected = path.read_text(encoding="utf-8")
        if actual != expected:
            lines = unified_diff(
                expected.splitlines(), actual.splitlines(), f"golden/{name}", "now", lineterm=""
            )
            pytest.fail(
                "\n".join([*lines, "", "if this is on purpose: pytest --update-golden"]),
                pytrace=False,
            )

    return check
