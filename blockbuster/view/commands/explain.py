"""`blockbuster explain`: gives the reason for each buffered edge of the fused program."""

from __future__ import annotations

import argparse
import json

from blockbuster.rules import explain, overflowing, safe
from blockbuster.rules.faults import FaultNotes
from blockbuster.view.emitting import add_program, add_rules, derived
from blockbuster.view.load import parse_sizes
from blockbuster.view.terminal import say

EXAMPLES = """examples:
  blockbuster explain model.py:block --dims x="M D" w="D K"
  blockbuster explain model.py:block --dims x="M D" w="D K" --sizes M=4096,D=512,K=512
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add_program(command)
    add_rules(command)
    command.add_argument(
        "--sizes", nargs="+", default=[], metavar="DIM=SIZE", help="say the bytes at stake"
    )
    command.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    """Print a reason for each edge."""
    program, derivation = derived(arguments)
    sizes = parse_sizes(arguments.sizes)
    known = {**program.sizes, **sizes} if sizes else None
    found = explain(derivation.final, known, on_fault=FaultNotes().keep)
    if arguments.json:
        keys = ("level", "producer", "consumer", "type", "reason", "unlock", "elements")
        rows = [{k: getattr(e, k) for k in keys} | {"rule": e.rule and e.rule.name} for e in found]
        say(json.dumps(rows, indent=1))
    elif found:
        say("\n".join(map(str, found)))
    else:
        say("the program is one kernel: it stores nothing in memory but its outputs")
    for note in () if arguments.json else overflowing(safe(derivation.final)):
        say(note)
    return 0
