"""`blockbuster view`, and the page that `blockbuster fuse --html` writes."""

from __future__ import annotations

import argparse
import re
import webbrowser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from blockbuster.errors import BlockbusterError, message, shown
from blockbuster.frontend import ArrayProgram
from blockbuster.ir.reading import parse_json
from blockbuster.ir.tokens import unquoted
from blockbuster.rules import (
    PAPER_RULES,
    PEELING_RULES,
    REPEATING_RULES,
    RULES,
    SAFETY_RULES,
    UNFUSING_RULES,
    WHOLE_RULES,
    Derivation,
)
from blockbuster.rules.restore import restore
from blockbuster.view.emitting import add_several, gpu
from blockbuster.view.explorer.export import write_html
from blockbuster.view.explorer.setting import Setting
from blockbuster.view.load import parse_sizes
from blockbuster.view.terminal import Screen, say

EXAMPLES = """examples:
  blockbuster fuse model.py:attention --dims q="M D" k="N D" v="N L" --json steps.json
  blockbuster view steps.json -o attention.html --sizes M=4096,N=4096 --open
"""
MISC = re.compile(r'\bmisc ("(?:[^"\\\n]|\\.)*")')
SETS = (
    RULES, PAPER_RULES, PEELING_RULES, UNFUSING_RULES, REPEATING_RULES, WHOLE_RULES, SAFETY_RULES,
)  # fmt: skip
KNOWN = tuple(dict.fromkeys(rule for rules in SETS for rule in rules))


def add_numbers(command: argparse.ArgumentParser) -> None:
    """The sizes and blocks that a page opens with, and how often each step is tried."""
    for name, what in (("sizes", "size of dims"), ("blocks", "number of blocks of dims")):
        add_several(command, f"--{name}", f"the {what} that the page opens with", "DIM=NUMBER")
    command.add_argument(
        "--machine", default="h200", metavar="NAME",
        help="what the page simulates the kernel on: h200 (default), a100, a FILE.toml, ...",
    )  # fmt: skip
    command.add_argument(
        "--trials", type=int, default=8, help="random trials of each proof, 0 for none (default 8)"
    )


def add_arguments(command: argparse.ArgumentParser) -> None:
    """The arguments of `blockbuster view`."""
    command.add_argument("derivation", type=Path, help="JSON written by `blockbuster fuse --json`")
    command.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="default: beside it, as .html"
    )
    command.add_argument("--open", action="store_true", help="open the page in a browser")
    add_numbers(command)


def run(arguments: argparse.Namespace) -> int:
    """`blockbuster view`."""
    source: Path = arguments.derivation
    output: Path = arguments.output or source.with_suffix(".html")
    if output.resolve() == source.resolve():
        raise ValueError(message("the page would replace the derivation", value=str(output)))
    derivation = read_derivation(source)
    write_page(derivation, output, setting_of(arguments), title=source.stem)
    if arguments.open:
        webbrowser.open(output.resolve().as_uri())
    return 0


def read_derivation(source: Path) -> Derivation:
    """A derivation that was written as JSON; functions of whole arrays are known by name only.

    Raises ValueError, RuleError or ParseError, with the file, for what is none.
    """
    try:
        data = source.read_bytes()
        programs = [*_texts(parse_json(data))]
        names = (unquoted(name) for text in programs for name in MISC.findall(text))
        functions = {name: _not_at_hand for name in names if name is not None}
        return restore(data, KNOWN, functions)
    except (ValueError, BlockbusterError) as error:
        error.add_note(f"in {shown(str(source))}")
        raise


def _texts(data: Any) -> Iterator[str]:
    for part in ("start", "final"):
        if isinstance(data, dict) and isinstance(data.get(part), str):
            yield data[part]


def _not_at_hand(*_: Any) -> Any:
    """A function of whole arrays: the page shows and proves by its name, and never runs it."""
    raise ValueError("a derivation read from JSON has no functions of whole arrays to run")


def setting_of(arguments: argparse.Namespace, fixed: dict[str, int] | None = None) -> Setting:
    """The numbers on the command line, beside the sizes that a program fixes."""
    sizes = {**(fixed or {}), **parse_sizes(arguments.sizes)}
    blocks = parse_sizes(arguments.blocks, "--blocks")
    gpu(arguments.machine)  # or an error, before the page is made
    return Setting(sizes, blocks, machine=arguments.machine, trials=arguments.trials)


def write_page(
    derivation: Derivation,
    path: Path,
    setting: Setting,
    *,
    title: str = "",
    program: ArrayProgram | None = None,
) -> None:
    """Write the page, with a spinner on the terminal that names what is being done.

    With the ``program`` that was fused, the page opens with its plan.
    """
    prove = setting.trials > 0
    way_out = " (--trials 0 leaves out the proofs)" if prove else ""
    with Screen(stderr=True).working(f"rewriting{way_out}") as update:
        write_html(
            derivation, path, setting, title=title, prove=prove, program=program,
            progress=lambda what: update(what + way_out),
        )  # fmt: skip
    say(f"wrote {path}")
