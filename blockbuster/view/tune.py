"""`blockbuster tune` measures kernels ahead of time, `blockbuster cache` carries what it found."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from blockbuster.compile import tune
from blockbuster.tuning.entry import Entry
from blockbuster.tuning.measuring import LIMIT
from blockbuster.tuning.store import Store, read_file, write_file
from blockbuster.view.load import parse_sizes, trace_named
from blockbuster.view.terminal import Screen, say, warn

EXAMPLES = """examples:
  blockbuster tune model.py:attention --dims q="M D" k="N D" v="N L" \\
      --sizes "M=4096 N=4096 D=128 L=128" --sizes "M=8192 N=8192 D=128 L=128"
  blockbuster tune model.py:mlp --dims x="M D" w="D K" --sizes M=128,D=4096,K=14336 --json

Results are kept in the cache, and used from then on wherever the program is compiled for such
sizes. `blockbuster cache export FILE` writes them into a file to ship with a program.
"""
CACHE_EXAMPLES = """examples:
  blockbuster cache list
  blockbuster cache export tuned.json     on the computer where kernels were measured
  blockbuster cache import tuned.json     where they are to be used: a GPU of the same name
  blockbuster cache clear
"""
ACTIONS = ("list", "path", "clear", "export", "import")
TITLES = ("kernel", "sizes", "device", "model us", "best us", "ratio", "measured", "seconds")


def add_arguments(command: argparse.ArgumentParser) -> None:
    """What `blockbuster tune` takes besides the program."""
    command.add_argument(
        "--sizes", action="append", default=[], required=True, metavar='"DIM=SIZE ..."',
        help="the size of every dim; give it several times to tune for several sizes",
    )  # fmt: skip
    command.add_argument(
        "--dtype", default="float16", help="float16 (default), float32 or bfloat16"
    )
    command.add_argument(
        "--limit", type=float, default=LIMIT, metavar="SECONDS",
        help=f"how long a kernel may take (default {LIMIT:g})",
    )  # fmt: skip
    command.add_argument("--json", action="store_true", help="print JSON, with all times")


def run(arguments: argparse.Namespace) -> int:
    """Measure the kernels of a program for each set of sizes that is not known; print all."""
    if not arguments.limit > 0:
        raise ValueError(f"--limit {arguments.limit:g}: expected a number of seconds above 0")
    wanted = [parse_sizes(text.split()) for text in arguments.sizes]
    program = trace_named(arguments.program, arguments.dims)
    found: list[Entry] = []
    with telling(f"tuning {program.name}") as tell:
        for sizes in wanted:
            found += tune(program, sizes, arguments.dtype, limit=arguments.limit, tell=tell)
    show(found, as_json=arguments.json)
    return 0 if found else 1


@contextmanager
def telling(what: str) -> Iterator[Callable[[str], None]]:
    """What shows how far work is: a spinner on a terminal, plain lines elsewhere."""
    if not sys.stderr.isatty():
        yield warn
        return
    with Screen(stderr=True).working(what) as tell:
        yield tell


def add_cache_arguments(command: argparse.ArgumentParser) -> None:
    """What `blockbuster cache` takes."""
    command.add_argument("action", choices=ACTIONS, help="what to do with the measurements")
    command.add_argument(
        "file", nargs="?", type=Path, metavar="FILE", help="of export and import: one file for all"
    )
    command.add_argument("--json", action="store_true", help="of list: print JSON, with all times")


def run_cache(arguments: argparse.Namespace) -> int:
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


def show(entries: Sequence[Entry], *, as_json: bool) -> None:
    """Print entries as JSON or as a table."""
    if as_json:
        say(json.dumps([entry.to_json() for entry in entries], indent=1))
    else:
        say(as_table(entries) if entries else "nothing was measured")


def as_table(entries: Sequence[Entry]) -> str:
    """A line for each kernel: the model's choice beside the best, in aligned columns."""
    rows = [TITLES, *map(_row, entries)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def _row(entry: Entry) -> tuple[str, ...]:
    best = entry.ranked[0].us if entry.ranked else None
    usual = entry.usual.us if entry.usual else None
    ratio = f"{usual / best:.2f}" if usual and best else "-"
    times = (f"{us:.1f}" if us else "-" for us in (usual, best))
    count = f"{len(entry.ranked)} of {len(entry.found)}"
    sizes = " ".join(entry.key.sizes)
    return (entry.kernel, sizes, entry.key.device, *times, ratio, count, f"{entry.seconds:.1f}")
