"""Which tests take long: tests/slow.txt from the times that pytest wrote.

    python -m pytest -n auto --junitxml=build/times.xml
    python -m bench.slow_tests build/times.xml [MORE.xml ...]

A test that took longer than 0.3 seconds is written to the list; `make test` leaves those to `make
slow`. Tests that were not run keep their lines, unless they are gone (tests/conftest.py says so).
"""

from __future__ import annotations

import argparse
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from pathlib import Path

LONG = 0.3  # seconds, with a worker on each of two cores: so `make test` takes five minutes
ROOT = Path(__file__).parents[1]
LIST = ROOT / "tests" / "slow.txt"


def times_of(path: Path) -> Iterator[tuple[str, float]]:
    """The name of each test of a file that ``--junitxml`` wrote, as pytest prints it; seconds."""
    for case in ET.parse(path).getroot().iter("testcase"):
        module, name = case.attrib["classname"], case.attrib["name"]
        yield f"{module.replace('.', '/')}.py::{name}", float(case.attrib["time"])


def listed(before: Sequence[str], times: dict[str, float]) -> list[str]:
    """The names that are in the list from now on, in order."""
    kept = {name for name in before if name not in times}
    return sorted(kept | {name for name, seconds in times.items() if seconds > LONG})


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", type=Path, nargs="+")
    options = parser.parse_args()
    times = dict(pair for path in options.files for pair in times_of(path))
    before = LIST.read_text(encoding="utf-8").splitlines() if LIST.exists() else []
    found = listed(before, times)
    LIST.write_text("".join(f"{name}\n" for name in found), encoding="utf-8")
    print(f"{LIST.relative_to(ROOT)}: {len(found)} tests, {len(before)} before")
    return 0


if __name__ == "__main__":
    sys.exit(main())
