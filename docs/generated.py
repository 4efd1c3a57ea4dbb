"""What the pages of the site leave to code: tables, help texts, docstrings, the contents."""

from __future__ import annotations

import argparse
import functools
import importlib
import inspect
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from functions_listed import functions, refused, table
from gallery import gallery
from measured import fusing_times, kernel_runs, rules_checked

import blockbuster as bb
from blockbuster.emit.closing.hoist import hoist
from blockbuster.emit.closing.merge_repeats import merge_repeats
from blockbuster.emit.closing.order import CLOSING
from blockbuster.emit.schedule.script import MOVES
from blockbuster.emit.target.targets import TARGETS
from blockbuster.frontend.functions.table import PUBLIC
from blockbuster.ir.expr import FUNCTIONS, INFIX
from blockbuster.ir.show import KEYWORDS
from blockbuster.ir.signatures import FUNCTIONALS
from blockbuster.ir.types import Type
from blockbuster.machines import NAMES, built_in
from blockbuster.rules import (
    PAPER_RULES,
    PEELING_RULES,
    REPEATING_RULES,
    ROLLING_RULES,
    RULES,
    SAFETY_RULES,
    UNFUSING_RULES,
    WHOLE_RULES,
    Rule,
)
from blockbuster.view.cli import COMMANDS, build_parser

__all__ = [
    "api",
    "command_line",
    "contents",
    "closing",
    "functions",
    "fusing_times",
    "gallery",
    "kernel_runs",
    "moves",
    "refused",
    "rules",
    "rules_checked",
    "targets",
    "vocabulary",
]

ROOT = Path(__file__).parents[1]
HELP_WIDTH = 88

CONTENTS = {
    "Start": ("docs/tutorial", "docs/gallery"),
    "How to": (
        "docs/read_an_explorer_page",
        "docs/use_jit",
        "docs/torch_compile",
        "docs/first_results",
        "docs/tune",
        "docs/repeated_calls",
        "docs/everyday_code",
        "docs/schedules",
        "docs/write_your_own_rule",
        "docs/add_an_operator",
        "docs/fusers",
        "docs/targets_and_machines",
        "docs/machines",
        "docs/check_a_kernel",
    ),
    "Explanation": (
        "docs/block_programs",
        "docs/fusion",
        "docs/safety",
        "docs/repair",
        "docs/proofs",
        "docs/tile_programs",
        "docs/choosing",
        "docs/einsum",
        "docs/costs",
        "docs/simulator",
        "docs/tiling",
        "ARCHITECTURE",
    ),
    "Reference": (
        "docs/api",
        "docs/functions",
        "docs/rules",
        "docs/command_line",
        "docs/text_form",
        "docs/tile_text",
    ),
}


def contents() -> str:
    """The navigation, with every notebook and every recorded result that is there."""
    notebooks = tuple(_documents("notebooks/*.ipynb"))
    found = {
        **CONTENTS,
        "Notebooks": notebooks,
        "Results": (
            "docs/results",
            *_documents("bench/results/**/*.md"),
            "bench/schedules/README",
            "bench/costs/README",
            "bench/costs/ranking",
            "bench/peers/README",
            "bench/outside/README",
        ),
        "Project": ("CONTRIBUTING", "CHANGELOG"),
    }
    return "".join(
        "\n\n```{toctree}\n:hidden:\n:caption: " + caption + "\n\n" + "\n".join(pages) + "\n```\n"
        for caption, pages in found.items()
        if pages
    )


def _documents(pattern: str) -> Iterator[str]:
    for path in sorted(ROOT.glob(pattern)):
        yield path.relative_to(ROOT).with_suffix("").as_posix()


# rules and moves -----------------------------------------------------------------


def rules() -> str:
    """One section for each rule: what its module says of it."""
    sets = {
        "RULES": RULES,
        "PAPER_RULES": PAPER_RULES,
        "PEELING_RULES": PEELING_RULES,
        "UNFUSING_RULES": UNFUSING_RULES,
        "ROLLING_RULES": [rule for rule in ROLLING_RULES if rule not in RULES],
        "WHOLE_RULES": WHOLE_RULES,
        "REPEATING_RULES": REPEATING_RULES,
        "SAFETY_RULES": SAFETY_RULES,
    }
    every = dict.fromkeys(rule for held in sets.values() for rule in held)
    ordered = sorted(every, key=lambda rule: (rule.number or 100, rule.name))
    return "\n".join(
        _rule(rule, [name for name, held in sets.items() if rule in held]) for rule in ordered
    )


def _rule(rule: Rule, sets: Sequence[str]) -> str:
    number = f"rule {rule.number} of the paper" if rule.number else "ours"
    return (
        f"## {rule.name}\n\n"
        f"*A {rule.kind} rule, {number}; in {', '.join(f'`{name}`' for name in sets)}.*\n\n"
        f"{_explained(type(rule).__module__)}"
    )


def moves() -> str:
    """One section for each move of a schedule: what its module says of it."""
    return _sections(type(move) for move in MOVES)


def closing() -> str:
    """One section for each pass that follows moves by itself, in order."""
    return _sections((hoist, merge_repeats, *CLOSING))


def _sections(made: Iterable[Any]) -> str:
    """A section for each class or function: its module's docstring, under the name in that."""
    texts = []
    for module in (one.__module__ for one in made):
        name = (importlib.import_module(module).__doc__ or "").partition(":")[0]
        texts.append(f"### {name}\n\n{_explained(module)}")
    return "\n".join(texts)


def _explained(module: str) -> str:
    """A docstring of the form "name: sentence", with its program before and after as a block."""
    text = inspect.cleandoc(importlib.import_module(module).__doc__ or "")
    text = text.partition(": ")[2]
    paragraphs = [text[0].upper() + text[1:]]
    for mark in ("\nSource: ", "\nTermination: "):
        paragraphs = ["\n\n".join(p.replace(mark, f"\n{mark}") for p in paragraphs)]
    blocks = paragraphs[0].split("\n\n")
    return "\n\n".join(f"```\n{b}\n```" if b.startswith("before ") else b for b in blocks) + "\n"


# tables --------------------------------------------------------------------------


def targets() -> str:
    """The targets, and the machines that have them."""
    rows = (
        (
            f"`{target.name}`",
            ", ".join(f"`{name}`" for name in NAMES if built_in(name).target == target.name),
            target.backend,
            f"{target.shared:,}",
        )
        for target in TARGETS.values()
    )
    return table(("target", "machines", "backend", "bytes of shared memory per block"), rows)


def vocabulary() -> str:
    """The operators of the text form."""
    blocks = table(
        ("operator", "takes", "gives"),
        ((f"`{name}`", *_signature(name)) for name in FUNCTIONALS),
    )
    by_arity: dict[int, list[str]] = {}
    for name, arity in FUNCTIONS.items():
        sign = f" (`{INFIX[name][0]}`)" if name in INFIX else ""
        by_arity.setdefault(arity, []).append(f"`{name}`{sign}")
    scalars = table(
        ("arguments", "scalar functions, and how they are written between operands"),
        ((arity, ", ".join(names)) for arity, names in sorted(by_arity.items())),
    )
    words = ", ".join(f"`{word}`" for word in KEYWORDS)
    return f"{blocks}\n{scalars}\nReserved words: {words}.\n"


def _signature(name: str) -> tuple[str, str]:
    """Operand types that an operator accepts, and what it makes of them."""
    arity, result = FUNCTIONALS[name]
    kinds = (("M", "K"), ("N", "K"), ("M",), ("K",))
    for first in kinds:
        for second in kinds if arity == 2 else ((),):
            args = (Type((), first), Type((), second))[:arity]
            try:
                made = result(name, args)
            except bb.VerifyError:
                continue
            return ", ".join(f"`{arg}`" for arg in args), f"`{made}`"
    raise AssertionError(name)


# interfaces ----------------------------------------------------------------------


def command_line() -> str:
    """The help of every command, as the parser prints it."""
    texts = [f"```\n{_help(build_parser(''))}```\n"]
    for name in COMMANDS:
        commands = next(
            action.choices
            for action in build_parser(name)._actions
            if isinstance(action, argparse._SubParsersAction)
        )
        texts.append(f"## {name}\n\n```\n{_help(commands[name])}```\n")
    return "\n".join(texts)


def _help(parser: argparse.ArgumentParser) -> str:
    """Help of one width wherever the site is built."""
    parser.formatter_class = functools.partial(parser.formatter_class, width=HELP_WIDTH)
    return parser.format_help()


def api() -> str:
    """The public names, in the groups of ``__all__``, from their docstrings."""
    return "\n".join(
        f"## {title.capitalize()}\n\n" + "\n".join(map(_entry, names))
        for title, names in public_names().items()
    )


def public_names() -> dict[str, list[str]]:
    """Public names by group: those of the table of functions, then those that comments name."""
    source = inspect.getsource(bb)
    listed = source[source.index("_OTHERS = [") : source.index("def _modules")]
    groups: dict[str, list[str]] = {}
    for comment, name in re.findall(r"^ +# (.+)$|\"(\w+)\"", listed, re.MULTILINE):
        if comment:
            title = comment
        else:
            groups.setdefault(title, []).append(name)
    for name, row in PUBLIC.items():
        groups.setdefault(f"functions: {row.group.lower()}", []).append(name)
    assert {name for names in groups.values() for name in names} == {*bb.__all__}
    return groups


def _entry(name: str) -> str:
    found = getattr(bb, name)
    if inspect.isclass(found):
        shown = "" if issubclass(found, BaseException) else "\n   :members:"
        directive = f".. autoclass:: blockbuster.{name}(){shown}"
    elif inspect.isfunction(found):
        directive = f".. autofunction:: blockbuster.{name}"
    else:
        directive = f".. py:data:: blockbuster.{name}\n\n   {_value(found)}"
    return f"```{{eval-rst}}\n{directive}\n```\n"


def _value(found: object) -> str:
    """A constant in words: what its type says, or which rules it holds."""
    if isinstance(found, tuple):
        return f"Rules, the first with the highest priority: {', '.join(r.name for r in found)}."
    return inspect.cleandoc(type(found).__doc__ or "").replace("\n", "\n   ")
