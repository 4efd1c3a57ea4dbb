"""The public exceptions and the one formatter of their messages.

A message states what is wrong, shows the offending value and the listing around it, and says where
that came from and what to do. Wrong arguments of a call raise plain `TypeError` or `ValueError`
with the same format.
"""

import re
from collections.abc import Iterable
from difflib import get_close_matches

NOT_TAKEN = (TypeError, AttributeError, ValueError, NotImplementedError, RuntimeError)
"""What torch, or a user's function, raises where it does not take the arrays that it is given."""

CONTEXT = 2  # lines of the listing shown on either side of the marked one


class BlockbusterError(Exception):
    """Base of every error that Blockbuster raises on purpose."""


class TraceError(BlockbusterError):
    """A Python function could not be traced, or its shapes do not agree."""


class VerifyError(BlockbusterError):
    """A graph breaks an invariant of block programs."""


class ParseError(BlockbusterError):
    """A text is not the text form of a block program."""


class RuleError(BlockbusterError):
    """A rule produced a bad graph: a bug in the rule, never in the program it was applied to.

    ``rule`` is that rule, if the error tells which one it was.
    """

    rule: object = None


class FusionError(BlockbusterError):
    """A program cannot be fused as asked; the message explains the obstacle."""


class EmitError(BlockbusterError):
    """A kernel cannot be written for this program, target or choice of tiles."""


class LaunchError(BlockbusterError):
    """An emitted kernel cannot run here, or was called with the wrong arrays."""


class DrawError(BlockbusterError):
    """A picture cannot be rendered here; the message says what to install."""


def message(
    what: str,
    *,
    value: object = None,
    listing: str | None = None,
    mark: int | None = None,
    column: int | None = None,
    origin: str | None = None,
    hint: str | None = None,
) -> str:
    r"""Return the text of an error.

    `what` is the broken rule in one sentence and `value` the thing that breaks it.
    `mark` is the position in `listing`, counted from 0, of the line to point at; two lines on
    either side are shown, and without a mark the whole listing. A caret below that line points at
    its character number `column`, counted from 0.
    `origin` says where the marked thing came from and `hint` what to do about it.

    >>> print(message(
    ...     "operand 1 of dot has dims (K), expected (M)",
    ...     listing="Y = map M (x in X) {\n  t1 = dot(x, w)\n}",
    ...     mark=1,
    ...     origin="made by fuse-maps from T, Y (softmax.py:14)",
    ...     hint="w is passed whole; did you mean `w in W`?",
    ... ))
    operand 1 of dot has dims (K), expected (M)
        Y = map M (x in X) {
    >     t1 = dot(x, w)
        }
      made by fuse-maps from T, Y (softmax.py:14)
      hint: w is passed whole; did you mean `w in W`?
    """
    lines = shown_lines(what)
    if value is not None:
        lines += _paragraph("value: ", repr(value) if isinstance(value, str) else str(value))
    if listing is not None:
        lines += _window(listing, mark, column)
    if origin is not None:
        lines += _paragraph("", origin)
    if hint is not None:
        lines += _paragraph("hint: ", hint)
    return "\n".join(lines)


def a_kind(value: object) -> str:
    """The type of a value with its article, or None.

    >>> a_kind("text"), a_kind(3), a_kind(None)
    ('a str', 'an int', 'None')
    """
    if value is None:
        return "None"
    kind = type(value).__name__
    return f"{'an' if kind[0].lower() in 'aeio' else 'a'} {kind}"


def among(word: str, known: Iterable[str]) -> str:
    """A hint that lists the ``known`` names, and first the one that ``word`` is nearly.

    >>> among("h300", ["h200", "a100"]), among("tpu", ["h200", "a100"])
    ("did you mean 'h200'? known: h200, a100", 'known: h200, a100')
    """
    names = list(dict.fromkeys(known))
    close = get_close_matches(word, names, n=1)
    near = f"did you mean {close[0]!r}? " if close else ""
    return f"{near}known: {', '.join(names)}"


def shown(text: str, longest: int | None = None) -> str:
    r"""``text`` on one line, with an escape for every character that is not seen as itself.

    All that comes from outside (names of files and functions, keys, lines of source) goes through
    here on its way into a comment, a listing, a message or a terminal: what ends a line for some
    reader, moves a cursor or turns the direction of writing becomes ``\n``, ``\x1b``, ``\u202e``.
    Backslashes stay as they are; ``quoted`` makes strings that read back. ``longest`` cuts it.

    >>> print(shown("a\u2028b.py\x0c"), shown("gr\u00f6\u00dfe"), shown("a" * 99, 9))
    a\u2028b.py\x0c größe aaa...aaa
    """
    plain = text.isprintable()  # as most often; asking each character takes long in listings
    seen = text if plain else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
    if longest is None or len(seen) <= longest:
        return seen
    part = (longest - 3) // 2
    return f"{seen[:part]}...{seen[-part:]}"


def quoted(text: str) -> str:
    r"""``text`` as a string literal in double quotes, of Python as of the text form of programs.

    >>> print(quoted('say "x"\n'), quoted("gr\u00f6\u00dfe\u2028"))
    "say \"x\"\n" "größe\u2028"
    """
    inner = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{shown(inner)}"'


def quoted_lines(text: str) -> str:
    """Lines of text as a literal of Python in triple quotes: a docstring, a program in a snippet.

    >>> print(quoted_lines("one").strip(chr(34)))
    one
    """
    plain = "\n".join(map(shown, text.replace("\\", "\\\\").split("\n")))
    # no quote stands before another, or at the end: all three in a row would end the literal
    plain = re.sub(r'"(?="|\Z)', r'\\"', plain)
    return f'"""{plain}"""'


def shown_lines(text: str) -> list[str]:
    r"""The lines of ``text``, which end at ``\n`` only, each as ``shown`` has it."""
    return [*map(shown, text.removesuffix("\n").split("\n"))]


def _window(listing: str, mark: int | None, column: int | None) -> list[str]:
    lines = shown_lines(listing)
    first, last = (0, len(lines)) if mark is None else (max(mark - CONTEXT, 0), mark + CONTEXT + 1)
    window = [
        (("> " if position == mark else "  ") + "  " + line).rstrip()
        for position, line in enumerate(lines)
        if first <= position < last
    ]
    if mark is not None and column is not None:
        before = shown(listing.split("\n")[mark][:column])
        window.insert(mark - first + 1, " " * (4 + len(before)) + "^")
    return window


def _paragraph(label: str, text: str) -> list[str]:
    first, *rest = shown_lines(text)
    return [f"  {label}{first}"] + [" " * (2 + len(label)) + line for line in rest]
