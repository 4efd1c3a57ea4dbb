"""`blockbuster cache`: measured results of kernels, listed, cleared, exported and imported."""

from __future__ import annotations

import argparse
from pathlib import Path

from blockbuster.tuning.memory import Decisions
from blockbuster.tuning.store import Store, read_file, write_file
from blockbuster.view.measurements import show
from blockbuster.view.terminal import say, warn

EXAMPLES = """examples:
  blockbuster cache list
  blockbuster cache export tuned.json     on the computer where kernels were measured
  blockbuster cache import tuned.json     where they are used, on a GPU of that name
  blockbuster cache clear                 and forget which kernels programs became
"""
ACTIONS = ("list", "path", "clear", "export", "import")


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    command.add_argument("action", choices=ACTIONS, help="what to do with the measurements")
    command.add_argument(
        "file", nargs="?", type=Path, metavar="FILE", help="of export and import: one file for all"
    )
    command.add_argument("--json", action="store_true", help="of list: print JSON, with all times")


def run(arguments: argparse.Namespace) -> int:
    """List, clear, export or import what was measured."""
    store, action = Store(), arguments.action
    if (arguments.file is None) is (action in ("export", "import")):
        needs = "needs a FILE" if arguments.file is None else "takes no FILE"
        raise ValueError(f"blockbuster cache {action} {needs}")
    if action == "list":
        show([*store.entries()], as_json=arguments.json)
    elif action == "path":
        say(store.folder.path or "this user has no cache")
    elif action == "clear":
        store.folder.clear()
        Decisions("").folder.clear()
    elif action == "export":
        entries = [*store.entries()]
        path = write_file(entries, arguments.file)
        warn(f"wrote the results of {_kernels(len(entries))} into {path}")
    else:
        path = arguments.file
        found = read_file(path.read_bytes(), str(path))  # all of it, before anything is written
        count = store.take_in(found, str(path))
        rest = len(found) - count
        others = f"; left out {_kernels(rest)} of other versions of Blockbuster" if rest else ""
        warn(f"imported the results of {_kernels(count)} from {path}{others}")
    return 0


def _kernels(count: int) -> str:
    return "1 kernel" if count == 1 else f"{count} kernels"
