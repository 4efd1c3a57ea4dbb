"""Fuses and emits the program of a command, according to its arguments."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from blockbuster.emission import emit
from blockbuster.emit.kernel import Kernel
from blockbuster.emit.target.targets import TARGETS
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.trips import named
from blockbuster.errors import message
from blockbuster.frontend import ArrayProgram, lower
from blockbuster.ir.graph import Graph
from blockbuster.ir.lengths import completed
from blockbuster.machines import GPUS, Machine, machine
from blockbuster.rules import PAPER_RULES, RULES, Derivation, fuse
from blockbuster.rules.faults import FaultNotes
from blockbuster.view.load import parse_sizes, trace_named
from blockbuster.view.terminal import warn

RULE_SETS = {"default": RULES, "paper": PAPER_RULES}


def add_program(command: argparse.ArgumentParser) -> None:
    """Which program, and the dims of its inputs."""
    command.add_argument("program", metavar="FILE.py:FUNCTION", help="plain array code")
    meaning = 'the named dims of each input: q="M D", a fixed size x="B D=64", a unit axis b="1 D"'
    add_several(command, "--dims", meaning, 'NAME="DIMS"')


def add_several(
    command: argparse.ArgumentParser, option: str, meaning: str, metavar: str = "DIM=SIZE"
) -> None:
    """Add an option that takes one value or more; it is an empty list where it is not given."""
    command.add_argument(option, nargs="+", default=[], metavar=metavar, help=meaning)


def add_rules(command: argparse.ArgumentParser) -> None:
    """Add the arguments for fusion."""
    command.add_argument("--rules", choices=RULE_SETS, default="default", help="the rule set")
    add_several(command, "--whole", "dims that are one block each", "DIM")


def add_sizes(command: argparse.ArgumentParser) -> None:
    """Add the sizes and the dtype."""
    add_several(command, "--sizes", "the size of every dim")
    add_dtype(command)


def add_dtype(command: argparse.ArgumentParser) -> None:
    """Add the dtype for which kernels are written."""
    command.add_argument(
        "--dtype", default="float16", help="float16 (default), float32 or bfloat16"
    )


def add_target(command: argparse.ArgumentParser) -> None:
    """Add the GPU for which kernels are chosen and written."""
    command.add_argument(
        "--target", default="sm_90",
        help=f"an architecture ({', '.join(TARGETS)}; default sm_90) or a GPU ({', '.join(GPUS)}), "
        "for which the kernel is chosen",
    )  # fmt: skip


def add_details(command: argparse.ArgumentParser) -> None:
    """Add whether the report says more; ``told`` obeys it."""
    command.add_argument(
        "--details", action="store_true", help="also the programs compared, their prices and tiles"
    )


def told(kernel: Kernel, arguments: argparse.Namespace) -> str:
    """The text of a kernel's report, with its details if they were asked for."""
    report = kernel.report
    return (report.text + (report.details if arguments.details else "")).rstrip("\n")


def add_kernel(command: argparse.ArgumentParser) -> None:
    """Add the arguments for emitting a kernel."""
    add_sizes(command)
    add_several(command, "--tiles", "tile sizes")
    command.add_argument(
        "--snapshot",
        type=int,
        metavar="K",
        help="this snapshot, counted from 1 as `blockbuster fuse` does (default: what costs least)",
    )
    command.add_argument(
        "--schedule",
        type=Path,
        metavar="FILE",
        help="the text of a schedule, for that snapshot or for the program that it names, instead "
        "of the best of those tried",
    )


def gpu(name: str) -> Machine:
    """The machine of this name, for which kernels can be emitted. Raises ValueError for a CPU."""
    found = machine(name)
    if found.kind == "cpu":
        raise ValueError(f"--machine {name}: only kernels for GPUs can be simulated")
    return found


def derived(arguments: argparse.Namespace) -> tuple[ArrayProgram, Derivation]:
    """The program, and its derivation. A rule that fails is left out, with a warning."""
    program = trace_named(arguments.program, arguments.dims)
    rules, notes = RULE_SETS[arguments.rules], FaultNotes()
    derivation = fuse(lower(program), rules, whole=arguments.whole, on_fault=notes.keep)
    for note in notes:
        warn(f"note: {note}")
    return program, derivation


def emitted(arguments: argparse.Namespace, target: str | Machine) -> Kernel:
    """The kernels for ``target``: of the snapshot asked for, or of what costs least.

    Raises ValueError for a snapshot that there is not, and sizes that disagree.
    """
    program, derivation = derived(arguments)
    asked = None if arguments.snapshot is None else _snapshot(derivation, arguments.snapshot)
    return emit(
        asked or derivation,
        sizes=sizes_read(asked or derivation.start, program, parse_sizes(arguments.sizes)),
        dtype=arguments.dtype,
        target=target,
        tiles=parse_sizes(arguments.tiles, "--tiles") or None,
        reference=derivation.start,
        schedule=arguments.schedule and arguments.schedule.read_text(encoding="utf-8"),
    )


def _snapshot(derivation: Derivation, number: int) -> Graph:
    snapshots = derivation.snapshots
    if not 1 <= number <= len(snapshots):
        known = f"snapshots 1 to {len(snapshots)}" if len(snapshots) > 1 else "snapshot 1 only"
        raise ValueError(f"--snapshot {number}: the derivation has {known}")
    return snapshots[number - 1]


def sizes_read(graph: Graph, program: ArrayProgram, given: Mapping[str, int]) -> dict[str, int]:
    """The sizes given and those fixed by the program, less those that fusion made superfluous.

    Dims between two views are none of the graph's. Raises ValueError if sizes disagree.
    """
    for dim, size in program.sizes.items():
        if given.get(dim, size) != size:
            what = f"{dim} is {given[dim]} in --sizes, but the program was traced for {size}"
            raise ValueError(
                message(what, hint="leave it out of --sizes, or fix no size in --dims")
            )
    read = named(lower_to_tiles(graph))
    sizes = completed({**program.sizes, **given}, program.rules)
    return {dim: n for dim, n in sizes.items() if dim in read or dim not in program.dims}
