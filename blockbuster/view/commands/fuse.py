"""`blockbuster fuse`: fuses a program and shows its derivation."""

from __future__ import annotations

import argparse
from pathlib import Path

from blockbuster.errors import EmitError
from blockbuster.ir.graph import Graph
from blockbuster.rules import explain
from blockbuster.rules.faults import FaultNotes
from blockbuster.view.commands import view
from blockbuster.view.emitting import add_program, add_rules, derived
from blockbuster.view.terminal import say

EXAMPLES = """examples:
  blockbuster fuse model.py:attention --dims q="M D" k="N D" v="N L"
  blockbuster fuse model.py:mlp --dims x="B M D" w="D K" --rules paper --json steps.json
  blockbuster fuse model.py:mlp --dims x="B M D" w="D K" --html mlp.html --sizes M=4096
"""


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add_program(command)
    add_rules(command)
    command.add_argument("--json", type=Path, metavar="FILE", help="write the derivation as JSON")
    command.add_argument("--html", type=Path, metavar="FILE", help="write the explorer, one page")
    view.add_numbers(command)
    command.add_argument("--text", action="store_true", help="the final program in its text form")


def run(arguments: argparse.Namespace) -> int:
    """Print the program, its derivation and the final program."""
    program, derivation = derived(arguments)
    if arguments.json:
        arguments.json.write_text(derivation.to_json(), encoding="utf-8")
    if arguments.html:
        setting = view.setting_of(arguments, program.sizes)
        by_default = arguments.rules == "default" and not arguments.whole
        planned = program if by_default else None  # plans are of programs fused by default
        view.write_page(derivation, arguments.html, setting, title=program.name, program=planned)
    say(program.listing() + "\n")
    say(derivation.show() + "\n")
    say(derivation.final.show() if arguments.text else _loops(derivation.final))
    left = explain(derivation.final, on_fault=FaultNotes().keep)
    if left:
        say(f"\n{len(left)} buffered edge{'s are' if len(left) > 1 else ' is'} left:")
        say("\n".join(map(str, left)))
    return 0


def _loops(graph: Graph) -> str:
    """A program as loops, or in its text form where it holds what has none."""
    try:
        return graph.listing()
    except EmitError as error:
        return f"{graph.show()}\nnot shown as loops, because {error}"
