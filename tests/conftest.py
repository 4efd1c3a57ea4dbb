"""Hypothesis profiles, the `--update-golden` option and the `golden` fixture."""

import gc
import os
from collections.abc import Callable, Generator, Iterator
from difflib import unified_diff
from pathlib import Path

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import HealthCheck, is_hypothesis_test, settings

from blockbuster.errors import RuleError
from blockbuster.rules.faults import FaultNotes

# Arrays of tests are small: threads of torch and of BLAS wait for each other most of the time, and
# each core has a worker of its own. Processes that tests start inherit this.
os.environ.setdefault("OMP_NUM_THREADS", "1")

GOLDEN = Path(__file__).parent / "golden"
SLOW = Path(__file__).parent / "slow.txt"  # made by bench/slow_tests.py

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


@pytest.hookimpl(tryfirst=True)  # what is left out is left out before marks choose
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests that take long are marked, and those of Hypothesis, of which `make slow` runs more
    examples. Of slow families one case in ``--one-in`` is kept.

    Raises UsageError if the list of the former names a test that is gone.
    """
    slow = dict.fromkeys(SLOW.read_text(encoding="utf-8").splitlines())
    for item in items:
        if isinstance(item, pytest.Function) and is_hypothesis_test(item.function):
            item.add_marker("property")
        if item.nodeid in slow:
            item.add_marker("slow")
    if config.args_source is pytest.Config.ArgsSource.TESTPATHS:
        collected = {item.nodeid for item in items}
        files = {name.split("::")[0] for name in collected}  # others need what is not installed
        gone = [name for name in slow if name not in collected and name.split("::")[0] in files]
        if gone:
            what = f"{SLOW.name} names tests that are gone; delete these lines:"
            raise pytest.UsageError("\n".join([what, *gone]))
    left = left_out(items, config.getoption("--one-in"))
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if item not in {*left}]


def left_out(items: list[pytest.Item], turns: int) -> list[pytest.Item]:
    """Of families of slow tests all but one case in ``turns``, the first among those that stay.

    Raises UsageError if ``turns`` is below 1.
    """
    if turns < 1:
        raise pytest.UsageError(f"--one-in is {turns}; 1 runs all cases, 2 every second one")
    families: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("slow"):
            families.setdefault(item.nodeid.partition("[")[0], []).append(item)
    return [item for family in families.values() for at, item in enumerate(family) if at % turns]


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Doctests stand in the package, none in the tests: nobody looks for them here."""
    found = yield
    return [collector for collector in found if not isinstance(collector, DoctestModule)]


def pytest_collection_finish() -> None:
    """What collection made stays to the end: Python's search for cycles need not go over it.

    Caches of tests hold up to a gigabyte, and a search over all of it takes a second: it comes
    after a hundred younger ones instead of ten.
    """
    gc.freeze()
    gc.set_threshold(10_000, 20, 100)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="rewrite the texts in tests/golden instead of comparing with them",
    )
    parser.addoption(
        "--one-in",
        type=int,
        default=1,
        metavar="N",
        help="of each slow test with several cases run one case in N",
    )


KEEP = FaultNotes.keep


def raise_fault(_: FaultNotes, fault: RuleError) -> None:
    """For ``FaultNotes.keep``, so that a rule that fails fails the test, too."""
    raise fault


@pytest.fixture(scope="session", autouse=True)
def faults_are_raised() -> Iterator[None]:
    """A rule of ours that fails under test is never just left out."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FaultNotes, "keep", raise_fault)
        yield


@pytest.fixture
def faults_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules that fail are left out, as they are outside tests."""
    monkeypatch.setattr(FaultNotes, "keep", KEEP)


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
