"""Take the results of `blockbuster calibrate --json` into the built-in file of a machine.

    python3 -m bench.calibration.built_in bench/results/2026-11-22-cpu/cpu.json cpu

Numbers that the calibration measured, and those that follow from them, are replaced; the first
lines of the file, its name, its devices and all other numbers stay. Each source names the JSON.
"""

import argparse
import json
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from blockbuster.calibration.probe import Measured
from blockbuster.calibration.procedure import CPU_DERIVED, gpu_derived
from blockbuster.calibration.result import calibrated
from blockbuster.machines import NAMES, Machine, built_in
from blockbuster.machines.data_file import machine_text, numbers_of

DATA = Path(__file__).parents[2] / "blockbuster" / "machines" / "data"


def measured_machine(
    base: Machine, found: dict, results: str, without: Collection[str] = ()
) -> Machine:
    """``base`` with what was measured, save for numbers at the paths in ``without``.

    ``results`` is what the sources call the raw data.
    """
    rows = tuple(
        Measured(row["path"], row["what"], tuple(row["rounds"]))
        for row in found["measured"]
        if row["path"] not in without
    )
    every = CPU_DERIVED if base.kind == "cpu" else gpu_derived(base, rows)
    derived = {path: how for path, how in every.items() if path not in without}
    own = {path: number for path, number in found["numbers"].items() if is_reported(path)}
    reported = own if base.kind == "cpu" else {}
    machine = calibrated(base, reported, rows, derived)
    sources = dict(base.sources)
    for row in rows:
        if row.path in numbers_of(machine):
            sources[row.path] = (
                f"measured, {results}: {row.what}; the median of {len(row.rounds)} rounds, "
                f"{min(row.rounds):.4g} to {max(row.rounds):.4g}"
            )
    sources |= dict.fromkeys(reported, f"reported by the operating system, {results}")
    scaled = f"derived: as of {base.name}"  # the source of such a number says how it is derived
    sources |= {path: why for path, (_, why) in derived.items() if not why.startswith(scaled)}
    return replace(machine, sources=in_order(sources, machine))


def is_reported(path: str) -> bool:
    """Whether the operating system reports the number at a path of a CPU's file."""
    return path in ("processors", "clock") or path.endswith(".bytes")


def in_order(sources: dict[str, str], machine: Machine) -> dict[str, str]:
    """The sources that some number still needs, in the order of the numbers."""
    used: dict[str, str] = {}
    for path in numbers_of(machine):
        while path and path not in sources:
            path = path.rpartition(".")[0]
        if path:
            used[path] = sources[path]
    return used


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("result", type=Path, help="the JSON that `blockbuster calibrate` printed")
    parser.add_argument("machine", choices=NAMES)
    parser.add_argument(
        "--without", nargs="+", default=[], metavar="PATH", help="numbers that stay as they are"
    )
    arguments = parser.parse_args()
    base = built_in(arguments.machine)
    found = json.loads(arguments.result.read_text(encoding="utf-8"))
    results = arguments.result.as_posix()
    machine = measured_machine(base, found, results, arguments.without)
    path = DATA / f"{base.name}.toml"
    about = path.read_text(encoding="utf-8").partition("\nname = ")[0]
    path.write_text(f"{about}\n{machine_text(machine)}", encoding="utf-8")


if __name__ == "__main__":
    main()
