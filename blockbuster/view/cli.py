"""The command line: `blockbuster COMMAND ...`.

Exit codes: 0 success, 1 the program was refused or a check failed, 2 wrong arguments, 141 the
reader of the output closed the pipe, as `head` does.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from blockbuster.errors import BlockbusterError
from blockbuster.view.terminal import close_quietly, say, warn

COMMANDS = {
    "demo": "the main job on an example: trace, fuse, prove, emit, run, compare",
    "fuse": "show the derivation of a program",
    "explain": "say why the fused program still stores intermediate values",
    "prove": "prove every step, snapshot and safe form equal to what it came from",
    "select": "say which kernels the program becomes on a machine, and why",
    "emit": "write the fused program as a stand-alone Triton file",
    "draw": "draw the fused program, or one step",
    "check-rule": "check a rule of yours on random programs",
    "simulate": "a program's kernel on a machine, event by event: time, traffic, what limits it",
    "view": "the explorer of a derivation that was written as JSON, as one HTML page",
    "calibrate": "measure the GPU or CPU, for the machine 'auto' of the cost models",
    "tune": "measure a program's kernels on the GPU ahead of time, for some sizes",
    "cache": "what was measured of kernels: list it, clear it, carry it to another computer",
    "doctor": "what is installed and what will be used",
}
"""The commands, each with what it does; its module in ``commands`` is loaded when it is asked."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    try:
        try:
            return _run(argv)
        finally:
            sys.stdout.flush()  # here, since nobody can catch what Python raises at its exit
    except BrokenPipeError:
        return close_quietly()
    except OSError as error:  # a full disk behind a redirected output
        warn(f"blockbuster: {_named(error)}")
        close_quietly()
        return 1


def _named(error: OSError) -> str:
    return f"{error.filename}: {error.strerror}" if error.filename else str(error)


def _run(argv: Sequence[str] | None) -> int:
    given = sys.argv[1:] if argv is None else argv
    arguments, unknown = build_parser(given[0] if given else "").parse_known_args(given)
    if unknown:  # with the usage of the command, not of all commands
        arguments.refuse(f"unrecognized arguments: {' '.join(unknown)}")
    try:
        return int(arguments.run(arguments))
    except (BlockbusterError, ValueError, TypeError) as error:
        notes = "".join(f"\n  {note}" for note in getattr(error, "__notes__", ()))
        warn(f"blockbuster: {type(error).__name__}: {error}{notes}")
        return 2 if isinstance(error, ValueError | TypeError) else 1
    except BrokenPipeError:
        raise
    except OSError as error:
        warn(f"blockbuster: {_named(error)}")
        return 1


class Parser(argparse.ArgumentParser):
    """A parser whose messages quote arguments as they are shown."""

    def _print_message(self, message: str, file: Any = None) -> None:
        if message:
            say(message, to=file)


def build_parser(asked: str) -> argparse.ArgumentParser:
    """The parser of all commands, with the arguments of the one that is asked for."""
    parser: argparse.ArgumentParser = Parser(
        prog="blockbuster", description="Array programs become fused kernels, step by step."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, summary in COMMANDS.items():
        command = commands.add_parser(
            name,
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}.",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if name == asked:
            module = import_module(f"blockbuster.view.commands.{name.replace('-', '_')}")
            command.epilog = module.EXAMPLES
            module.add_arguments(command)
            command.set_defaults(run=module.run, refuse=command.error)
    parser.set_defaults(refuse=parser.error)  # until the command that is asked for has its own
    return parser
