"""The tokens of the text form, and a reader that takes them one after the other."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from blockbuster.errors import ParseError, message, shown
from blockbuster.ir.reading import LARGEST

_TOKEN = re.compile(
    r"(?P<space>\s+|#[^\n]*)"
    r"|(?P<number>\d+(\.\d*)?(e[+-]?\d+)?)"
    r"|(?P<name>[A-Za-z_\x80-\U0010ffff][\w\x80-\U0010ffff]*'*)"
    r"|(?P<string>\"(?:[^\"\\\n]|\\.)*\")"
    r"|(?P<sign>->|\*\*|<=|>=|==|!=|[-+*/<>=(){}\[\],;|!:?])",
    re.ASCII,
)


_ESCAPE = re.compile(
    r"\\(?:(?P<plain>[\\\"])|(?P<sign>[nrt])|x(?P<hex>[0-9a-f]{2})|u(?P<four>[0-9a-f]{4})"
    r"|U(?P<eight>[0-9a-f]{8})|(?P<wrong>))"
)
_SIGNS = {"n": "\n", "r": "\r", "t": "\t"}
ESCAPES = r"known: \\ \" \n \r \t \x0c \u2028 \U0001f600"


def unquoted(literal: str) -> str | None:
    """The text that ``errors.quoted`` made a literal of; None if an escape is none of ours."""
    parts = []
    at = 1
    for found in _ESCAPE.finditer(literal, 1, len(literal) - 1):
        code = int(found["hex"] or found["four"] or found["eight"] or "0", 16)
        if found["wrong"] is not None or code > sys.maxunicode:
            return None
        parts += [literal[at : found.start()], found["plain"] or _SIGNS.get(found["sign"], "")]
        parts += [chr(code)] if found.lastgroup in ("hex", "four", "eight") else []
        at = found.end()
    return "".join([*parts, literal[at:-1]])


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    line: int
    column: int


class TokenReader:
    """A text, and how far it is read; errors show the line."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._scan(text)
        self._at = 0
        self._nested = 0  # expressions that are being read, one inside the other
        self._maps = 0  # and maps

    def _scan(self, text: str) -> list[_Token]:
        tokens: list[_Token] = []
        at, line, begin = 0, 0, 0  # where the line begins
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is None:
                self._refuse(f"unexpected character {text[at]!r}", line, column=at - begin)
            if found.lastgroup == "name" and not found.group().rstrip("'").isidentifier():
                self._refuse(f"{found.group()!r} is no name", line, column=at - begin)
            if found.lastgroup != "space":
                tokens.append(_Token(str(found.lastgroup), found.group(), line, at - begin))
            if newline := found.group().rfind("\n") + 1:
                begin = at + newline
            line += found.group().count("\n")
            at = found.end()
        last = tokens[-1] if tokens else _Token("end", "", 0, 0)
        return [*tokens, _Token("end", "end of text", last.line, last.column + len(last.text))]

    def _refuse(
        self,
        reason: str,
        line: int | None = None,
        hint: str | None = None,
        column: int | None = None,
    ) -> NoReturn:
        """Raise ParseError at a line; at the next token's if none is given."""
        mark = self._tokens[self._at].line if line is None else line
        text = message(reason, listing=self._text, mark=mark, column=column, hint=hint)
        raise ParseError(text)

    def _refuse_token(
        self, reason: str, at: int | None = None, hint: str | None = None
    ) -> NoReturn:
        """Raise ParseError with a caret below a token, given by its position; below the next one
        if none is given.
        """
        token = self._tokens[self._at if at is None else at]
        self._refuse(reason, token.line, hint, token.column)

    def _limit(self, depth: int, most: int, what: str) -> None:
        """Refuse a text that nests too deep: reading it is a recursion, as is what follows."""
        if depth > most:
            hint = "give a part of it a name: an equation of its own" if "expr" in what else None
            self._refuse(f"{what} more than {most} deep", hint=hint)

    @property
    def _next(self) -> str:
        return self._tokens[self._at].text

    def _take(self, text: str | None = None, kind: str | None = None) -> str:
        token = self._tokens[self._at]
        if (text is not None and token.text != text) or (kind is not None and token.kind != kind):
            wanted = text or ("the end of the text" if kind == "end" else f"a {kind}")
            self._refuse_token(f"expected {wanted}, found {token.text!r}")
        self._at += 1
        return token.text

    def _has(self, text: str) -> bool:
        if self._next == text:
            self._at += 1
            return True
        return False

    def _is(self, kind: str) -> bool:
        return self._tokens[self._at].kind == kind

    def _whole_number(self) -> int:
        """A whole number that counts elements."""
        text = self._next
        if not text.isdecimal() or len(text) > len(str(LARGEST)):
            self._refuse_token(f"expected a whole number, found {shown(text, 40)!r}")
        self._at += 1
        return int(text)

    def _several(self, close: str, item: Callable[[], Any]) -> list[Any]:
        """Items separated by commas up to ``close``, which is taken too."""
        items: list[Any] = []
        while not self._has(close):
            if items:
                self._take(",")
            items.append(item())
        return items

    def _string(self) -> str:
        """What a string literal says."""
        text = self._tokens[self._at].text
        found = unquoted(text) if self._is("string") else ""
        if found is None:
            self._refuse(f"{text} has an escape that is none", hint=ESCAPES)
        self._take(kind="string")
        return found

    def expect_end(self) -> None:
        """Raise ParseError if text is left."""
        self._take(kind="end")
