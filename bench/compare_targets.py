"""Compile the programs of bench/targets.py with two versions of the package, and compare them.

    python -m bench.compare_targets 22c71ac .                  a revision beside this checkout
    python -m bench.compare_targets ../before . --only geglu   two checkouts, some programs

Prints only kernels that differ in registers, spilled bytes or shared memory. The exit code is 1 if
one takes more of any of them than before, or does not compile any more.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Records = Mapping[tuple[str, str], Mapping[str, Any]]
WHAT = ("shared", "registers", "spills")
"""What the columns of a record's row are, behind the name of the function."""


@dataclass(frozen=True)
class Difference:
    """How one program became another: a line to print, and whether it takes more than before."""

    case: str
    target: str
    text: str
    worse: bool

    def __str__(self) -> str:
        return f"{'WORSE ' if self.worse else 'better'} {self.case} {self.target}: {self.text}"


def differences(before: Records, after: Records) -> Iterator[Difference]:
    """Where two sets of records differ. Programs that only one of them has are passed over."""
    for key in before:
        if key in after:
            yield from _of_one(*key, before[key], after[key])


def _of_one(
    case: str, target: str, before: Mapping[str, Any], after: Mapping[str, Any]
) -> Iterator[Difference]:
    if "error" in before or "error" in after:
        if "error" not in before:
            yield Difference(case, target, f"no longer compiles: {after['error'][:300]}", True)
        elif "error" not in after:
            yield Difference(case, target, "compiles now", False)
        return
    old, new = before["functions"], after["functions"]
    if len(old) != len(new):
        text = f"{len(old)} kernels before, {len(new)} now: {_shown(old)} -> {_shown(new)}"
        yield Difference(case, target, text, len(new) > len(old))
        return
    for (name, *was), (_, *now) in zip(old, new, strict=True):
        if was != now:
            pairs = zip(WHAT, was, now, strict=True)
            text = ", ".join(f"{what} {a} -> {b}" for what, a, b in pairs if a != b)
            worse = any(b > a for a, b in zip(was, now, strict=True))
            yield Difference(case, target, f"{name}: {text}", worse)


def _shown(rows: list[list[Any]]) -> str:
    return "; ".join(" ".join(map(str, row)) for row in rows)


@contextmanager
def checkout(place: str) -> Iterator[Path]:
    """The folder ``place``, or what the revision of that name holds."""
    if Path(place).is_dir():
        yield Path(place).resolve()
        return
    with tempfile.TemporaryDirectory() as folder:
        packed = subprocess.run(["git", "archive", place], capture_output=True, check=False)
        if packed.returncode:
            raise SystemExit(
                f"{place!r} is neither a folder nor a revision: {packed.stderr.decode().strip()}"
            )
        subprocess.run(["tar", "-x", "-C", folder], input=packed.stdout, check=True)
        yield Path(folder)


def records_of(place: str, flags: list[str]) -> Records:
    """What ``bench.targets`` of a checkout makes of its programs."""
    with checkout(place) as folder, tempfile.TemporaryDirectory() as out:
        file = Path(out, "targets.json")
        command = [sys.executable, "-m", "bench.targets", "--out", str(file), *flags]
        environment = {**os.environ, "PYTHONPATH": str(folder)}
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        if not file.exists():
            raise SystemExit(f"bench.targets of {place} fails:\n{done.stderr[-2000:]}")
        print(f"{place}: {done.stdout.strip()}", flush=True)
        records = json.loads(file.read_text(encoding="utf-8"))["records"]
    return {(r["case"], r["target"]): r for r in records}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("before", help="a folder or a revision")
    parser.add_argument("after", help="a folder or a revision")
    parser.add_argument("--only", default="", help="a word that the names of the cases hold")
    parser.add_argument("--targets", default="sm_90")
    parser.add_argument("--processes", default="2")
    options = parser.parse_args()
    flags = ["--targets", options.targets, "--processes", options.processes]
    flags += ["--only", options.only] if options.only else []
    before, after = (records_of(place, flags) for place in (options.before, options.after))
    found = list(differences(before, after))
    for difference in found:
        print(difference)
    worse = sum(difference.worse for difference in found)
    shared = len({*before} & {*after})
    print(f"{shared} programs in both: {len(found)} kernels differ, {worse} take more than before")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
