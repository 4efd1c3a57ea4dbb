"""`blockbuster cache`: measured results of kernels, listed, cleared, exported and imported."""

from __future__ import annotations

import argparse
from pathlib import Path

from blockbuster.tuning.store import Store, read_file, write_file
from blockbuster.view.measurements import show
from blockbuster.view.terminal import say, warn

EXAMPLES = """examples:
  blockbuster cache list
  blockbuster cache export tuned.json     on the computer where kernels were measured
  blockbuster cache import tuned.json     where they are used, on a GPU of that name
  blockbuster cache clear
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
    elif action == "export":
        entries = [*store.entries()]
        warn(f"wrote {len(entries)} kernels into {write_file(entries, arguments.file)}")
    else:
        entries = [*read_file(arguments.file.read_bytes(), str(arguments.file))]
        for entry in entries:
            store.write(entry)
        warn(f"imported {len(entries)} kernels from {arguments.file}")
    return 0
