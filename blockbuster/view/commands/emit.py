"""`blockbuster emit`: writes a program as a stand-alone Triton file."""

from __future__ import annotations

import argparse
from pathlib import Path

from blockbuster.view.emitting import (
    add_details,
    add_kernel,
    add_program,
    add_rules,
    add_target,
    emitted,
    told,
)
from blockbuster.view.terminal import Screen, say, warn

EXAMPLES = """What costs least at these sizes is written: the most fused program, or one with
more kernels. --details tells the others and their prices.

examples:
  blockbuster emit model.py:attention --dims q="M D" k="N D" v="N L" \\
      --sizes M=4096,N=4096,D=128,L=128 -o flash.py
  python flash.py --check

  blockbuster emit model.py:mlp --dims x="M D" w="D K=64" --sizes M=512,D=256 \\
      --show schedule
  blockbuster emit model.py:mlp --dims x="M D" w="D K" --sizes M=512,D=256,K=64 \\
      --snapshot 1 --schedule mine.schedule -o mlp.py
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add_program(command)
    add_rules(command)
    add_kernel(command)
    add_target(command)
    command.add_argument(
        "--show", choices=("source", "schedule", "tiles"), default="source",
        help="what to print: the Triton file (default), its schedule, or its loops over tiles",
    )  # fmt: skip
    add_details(command)
    command.add_argument("-o", "--output", type=Path, metavar="FILE", help="default: print it")


def run(arguments: argparse.Namespace) -> int:
    """Write the file, or print it or another form of it."""
    with Screen(stderr=True).working("fusing, and choosing what costs least"):
        kernel = emitted(arguments, arguments.target)
    report = told(kernel, arguments)
    if arguments.output is None:
        warn(report)
        shown = {"source": kernel.source, "schedule": kernel.schedule}
        say(shown.get(arguments.show) or str(kernel.tile_program))
        return 0
    kernel.write(arguments.output)
    say(report)
    say(f"wrote {arguments.output}")
    say(f"check it with: python {arguments.output} --check")
    return 0
