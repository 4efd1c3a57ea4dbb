"""The program of a command, fused and emitted as its arguments say."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from blockbuster.emission import emit
from blockbuster.emit.kernel import Kernel
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.trips import named
from blockbuster.frontend import ArrayProgram, lower
from blockbuster.ir.graph import Graph
from blockbuster.ir.lengths import completed
from blockbuster.machines import Machine, machine
from blockbuster.rules import PAPER_RULES, RULES, Derivation, fuse, safe
from blockbuster.view.load import parse_sizes, trace_named

RULE_SETS = {"default": RULES, "paper": PAPER_RULES}


def add_program(command: argparse.ArgumentParser) -> None:
    """Which program, and the dims of its inputs."""
    command.add_argument("program", metavar="FILE.py:FUNCTION", help="plain array code")
    command.add_argument(
        "--dims",
        nargs="+",
        default=[],
        metavar='NAME="DIMS"',
        help='the named dims of each input: q="M D", a fixed size x="B D=64", a unit axis b="1 D"',
    )


def add_rules(command: argparse.ArgumentParser) -> None:
    """How it is fused."""
    command.add_argument("--rules", choices=RULE_SETS, default="default", help="the rule set")
    command.add_argument(
        "--whole", nargs="+", default=[], metavar="DIM", help="dims that are one block each"
    )


def add_kernel(command: argparse.ArgumentParser) -> None:
    """What its kernel is emitted for."""
    command.add_argument(
        "--sizes", nargs="+", default=[], metavar="DIM=SIZE", help="the size of every dim"
    )
    command.add_argument("--tiles", nargs="+", default=[], metavar="DIM=SIZE", help="tile sizes")
    command.add_argument(
        "--dtype", default="float16", help="float16 (default), float32 or bfloat16"
    )
    command.add_argument(
        "--snapshot", type=int, metavar="K", help="which snapshot, from 0 (default: the last)"
    )
    command.add_argument(
        "--schedule", type=Path, metavar="FILE", help="a schedule's text instead of the default"
    )


def gpu(name: str) -> Machine:
    """The machine of this name, for which kernels can be emitted. Raises ValueError for a CPU."""
    found = machine(name)
    if found.kind == "cpu":
        raise ValueError(f"--machine {name}: kernels are emitted for GPUs, and that is none")
    return found


def derived(arguments: argparse.Namespace) -> tuple[ArrayProgram, Derivation]:
    """The program, and its derivation."""
    program = trace_named(arguments.program, arguments.dims)
    return program, fuse(lower(program), RULE_SETS[arguments.rules], whole=arguments.whole)


def emitted(arguments: argparse.Namespace, target: str) -> Kernel:
    """The kernel for ``target``. Raises ValueError for a snapshot that there is not."""
    program, derivation = derived(arguments)
    snapshots = derivation.snapshots
    chosen = len(snapshots) - 1 if arguments.snapshot is None else arguments.snapshot
    if not 0 <= chosen < len(snapshots):
        raise ValueError(
            f"--snapshot {chosen}: the derivation has snapshots 0 to {len(snapshots) - 1}"
        )
    graph = safe(snapshots[chosen])
    return emit(
        graph,
        sizes=_sizes_read(graph, program, parse_sizes(arguments.sizes)),
        dtype=arguments.dtype,
        target=target,
        tiles=parse_sizes(arguments.tiles, "--tiles") or None,
        reference=derivation.start,
        schedule=arguments.schedule and arguments.schedule.read_text(encoding="utf-8"),
    )


def _sizes_read(graph: Graph, program: ArrayProgram, given: Mapping[str, int]) -> dict[str, int]:
    """The sizes given and those fixed by the program, less those that fusion made superfluous.

    Dims between two views are none of the graph's. Raises ValueError where sizes disagree.
    """
    read = named(lower_to_tiles(graph))
    sizes = completed({**program.sizes, **given}, program.rules)
    return {dim: n for dim, n in sizes.items() if dim in read or dim not in program.dims}
