"""`blockbuster tune`: measures the kernels of a program ahead of time, for some sizes."""

from __future__ import annotations

import argparse
import sys

from blockbuster.compile import tune
from blockbuster.tuning.entry import Entry
from blockbuster.tuning.measuring import LIMIT
from blockbuster.view.emitting import add_dtype, add_program
from blockbuster.view.load import parse_sizes, trace_named
from blockbuster.view.measurements import show
from blockbuster.view.terminal import telling, warn

EXAMPLES = """examples:
  blockbuster tune model.py:attention --dims q="M D" k="N D" v="N L" \\
      --sizes M=4096 N=4096 D=128 L=128 --sizes M=8192 N=8192 D=128 L=128
  blockbuster tune model.py:mlp --dims x="M D" w="D K" --sizes M=128,D=512,K=2048 --json

Results are kept in the cache, and used from then on wherever the program is compiled
for such sizes. `blockbuster cache export FILE` writes them into a file to ship with it.
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add_program(command)
    command.add_argument(
        "--sizes", action="append", nargs="+", default=[], required=True, metavar="DIM=SIZE",
        help="the size of every dim; give it several times to tune for several sizes",
    )  # fmt: skip
    add_dtype(command)
    command.add_argument(
        "--limit", type=float, default=LIMIT, metavar="SECONDS",
        help=f"how long a kernel may take (default {LIMIT:g})",
    )  # fmt: skip
    command.add_argument("--json", action="store_true", help="print JSON, with all times")


def run(arguments: argparse.Namespace) -> int:
    """Measure the kernels of a program for each set of sizes that is not known; print all."""
    if not arguments.limit > 0:
        raise ValueError(f"--limit {arguments.limit:g}: expected a number of seconds above 0")
    wanted = [parse_sizes(" ".join(texts).split()) for texts in arguments.sizes]
    program = trace_named(arguments.program, arguments.dims)
    found: list[Entry] = []
    plain = None if sys.stderr.isatty() else warn  # lines where no spinner can be shown
    with telling(plain, f"tuning {program.name}") as tell:
        for sizes in wanted:
            found += tune(program, sizes, arguments.dtype, limit=arguments.limit, tell=tell)
    show(found, as_json=arguments.json)
    return 0 if found else 1
