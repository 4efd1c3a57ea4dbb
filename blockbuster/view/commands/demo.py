"""`blockbuster demo`: takes an example from array code to a checked kernel."""

from __future__ import annotations

import argparse
from pathlib import Path

from blockbuster import examples
from blockbuster.view.demo import demo
from blockbuster.view.emitting import add_several
from blockbuster.view.load import parse_sizes

EXAMPLES = """examples:
  blockbuster demo
  blockbuster demo layernorm-matmul --sizes M=200,K=96,N=33
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    names = [example.name for example in examples.ALL]
    command.add_argument("example", nargs="?", choices=names, default=names[0])
    add_several(command, "--sizes", "other sizes")
    command.add_argument("-o", "--output", type=Path, metavar="FILE", help="where the kernel goes")


def run(arguments: argparse.Namespace) -> int:
    """The exit code is 1 where a check fails."""
    (example,) = (e for e in examples.ALL if e.name == arguments.example)
    return demo(example, parse_sizes(arguments.sizes), arguments.output)
