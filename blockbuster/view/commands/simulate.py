"""`blockbuster simulate`: runs a program's kernel on an abstract machine."""

from __future__ import annotations

import argparse
from pathlib import Path

from blockbuster.costs.launches import LAUNCHES
from blockbuster.emit.target.targets import chosen_by
from blockbuster.machines import NAMES
from blockbuster.selection.plans.kernel_report import predicted_time
from blockbuster.simulation import simulate
from blockbuster.view.emitting import add_kernel, add_program, add_rules, emitted, gpu
from blockbuster.view.terminal import Screen, say, warn

EXAMPLES = """examples:
  blockbuster simulate model.py:attention --dims q="M D" k="N D" v="N L" \\
      --sizes M=4096,N=4096,D=128,L=128 --plot waves.png
  blockbuster simulate model.py:mlp --dims x="M D" w="D K" --machine a100 \\
      --sizes M=2048,D=4096,K=4096 --launch graph --json > report.json
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add_program(command)
    add_rules(command)
    add_kernel(command)
    command.add_argument(
        "--machine", default="h200", metavar="NAME",
        help=f"{', '.join(NAMES)}, auto, or a FILE.toml (default h200)",
    )  # fmt: skip
    command.add_argument(
        "--launch", choices=LAUNCHES, default="plain", help="how kernels are launched"
    )
    state = command.add_mutually_exclusive_group()
    state.add_argument("--warm", action="store_true", help="the cache holds what was used last")
    other = "the cache is full of other data, which must be written to memory first"
    state.add_argument("--flushed", action="store_true", help=other)
    command.add_argument("--json", action="store_true", help="print JSON, the timeline in it")
    command.add_argument("--plot", type=Path, metavar="FILE", help="draw it: .png, .svg or .pdf")


def run(arguments: argparse.Namespace) -> int:
    """Print the time that the closed form predicts, simulate the kernel and print the report."""
    device = gpu(arguments.machine)
    with Screen(stderr=True).working("simulating"):
        kernel = emitted(arguments, chosen_by(arguments.machine))
        report = simulate(
            kernel,
            device,
            launch=arguments.launch,
            warm=arguments.warm,
            flushed=arguments.flushed,
        )
    for note in kernel.notes:
        warn(f"note: {note}")
    if time := predicted_time(kernel):
        (warn if arguments.json else say)(time)
    say(report.to_json() if arguments.json else report)
    if arguments.plot:
        report.plot().savefig(arguments.plot, dpi=120)
        if not arguments.json:
            say(f"wrote {arguments.plot}")
    return 0
