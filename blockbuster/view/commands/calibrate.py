"""`blockbuster calibrate`: measures the present device and stores the result."""

from __future__ import annotations

import argparse
from pathlib import Path

from blockbuster.calibration import ROUNDS, Calibration, calibrate, check_rounds, present_device
from blockbuster.emit.target.disk import write_whole
from blockbuster.machines.data_file import numbers_of
from blockbuster.machines.measured import measured_path
from blockbuster.view.terminal import Screen, in_columns, say, warn

EXAMPLES = """examples:
  blockbuster calibrate
  blockbuster calibrate --device cpu --dry-run
  blockbuster calibrate --out my_gpu.toml --json > my_gpu.json
"""
TITLES = ("number", "measured", "built in", "ratio", "lowest", "highest")
BY_UNIT = {"bandwidth": "B/s", "latency": "s", "launch": "s", "clock": "Hz"}
PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-6, "µ"), (1e-9, "n"))


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    command.add_argument(
        "--device", choices=("auto", "gpu", "cpu"), default="auto",
        help="what to measure: the GPU if there is one (default), the GPU, or the CPU",
    )  # fmt: skip
    command.add_argument(
        "--rounds", type=int, default=ROUNDS, metavar="N",
        help=f"how often each constant is measured (default {ROUNDS}); the median counts",
    )  # fmt: skip
    command.add_argument(
        "--out", type=Path, metavar="FILE",
        help="write the machine there, not where machine 'auto' looks for it",
    )  # fmt: skip
    command.add_argument("--json", action="store_true", help="print JSON, with all rounds")
    command.add_argument(
        "--dry-run", action="store_true", help="say what would be measured, and written where"
    )


def run(arguments: argparse.Namespace) -> int:
    """Measure, print the numbers beside the built-in ones, and write the machine's file."""
    check_rounds(arguments.rounds)
    device = present_device(arguments.device)
    path: Path = arguments.out or measured_path(device)
    if arguments.dry_run:
        say(f"would measure {device} in {arguments.rounds} rounds and write {path}")
        return 0
    with Screen(stderr=True).working("preparing") as tell:
        found = calibrate(arguments.device, rounds=arguments.rounds, tell=tell)
    say(found.to_json() if arguments.json else as_table(found))
    write_whole(path, found.to_toml().encode())
    used = "" if arguments.out else "; machine 'auto' uses it from now on"
    warn(f"wrote {path}{used}")
    return 0


def as_table(found: Calibration) -> str:
    """The measurements beside the numbers of the built-in machine, in aligned columns."""
    built_in = numbers_of(found.base)
    rows = [TITLES]
    for one in found.measured:
        before = built_in.get(one.path)
        values = (one.value, before, min(one.rounds), max(one.rounds))
        value, known, low, high = (quantity(one.path, v) if v else "-" for v in values)
        ratio = f"{one.value / before:.2f}" if before else "-"
        rows.append((one.path, value, known, ratio, low, high))
    title = f"{found.device}, beside the built-in machine {found.base.name}"
    return "\n".join((title, "", *in_columns(rows)))


def quantity(path: str, value: float) -> str:
    """A number with its unit, which follows from its path.

    >>> quantity("tiers.l2.latency", 2.63e-7), quantity("clock", 1e9)
    ('263 ns', '1.00 GHz')
    """
    parts = path.split(".")
    memory = parts[0] == "record" and parts[1] != "matrix"
    unit = "B/s" if memory else next((BY_UNIT[p] for p in parts if p in BY_UNIT), "op/s")
    scale, prefix = next((p for p in PREFIXES if value >= p[0]), PREFIXES[-1])
    decimals = 2 if value < 10 * scale else 1 if value < 100 * scale else 0
    return f"{value / scale:.{decimals}f} {prefix}{unit}"
