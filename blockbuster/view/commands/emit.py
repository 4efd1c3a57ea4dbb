"""`blockbuster emit`: the fused program as a stand-alone Triton file."""

from __future__ import annotations

import argparse
from pathlib import Path

from blockbuster.view.emitting import add_kernel, add_program, add_rules, emitted
from blockbuster.view.terminal import say, warn

EXAMPLES = """examples:
  blockbuster emit model.py:attention --dims q="M D" k="N D" v="N L" \\
      --sizes M=4096,N=4096,D=128,L=128 -o flash.py
  python flash.py --check
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """What the command takes."""
    add_program(command)
    add_rules(command)
    add_kernel(command)
    command.add_argument("--target", default="sm_90", help="sm_80, sm_90 (default), sm_100, gfx942")
    command.add_argument(
        "--show", choices=("source", "schedule", "tiles"), default="source",
        help="what to print: the Triton file (default), its schedule, or its loops over tiles",
    )  # fmt: skip
    command.add_argument("-o", "--output", type=Path, metavar="FILE", help="default: print it")


def run(arguments: argparse.Namespace) -> int:
    """Write the file, or print it or another form of it."""
    kernel = emitted(arguments, arguments.target)
    for note in kernel.notes:
        warn(f"note: {note}")
    if arguments.output is None:
        shown = {"source": kernel.source, "schedule": kernel.schedule}
        say(shown.get(arguments.show) or str(kernel.tile_program))
    else:
        kernel.write(arguments.output)
        say(f"wrote {arguments.output}; check it with: python {arguments.output} --check")
    return 0
