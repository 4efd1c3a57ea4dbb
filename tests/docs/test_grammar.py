"""The grammar on the page about the text form is that of the parser, as far as goldens go."""

import re
from functools import cache

import pytest

from blockbuster.errors import BlockbusterError
from blockbuster.frontend import lower, trace
from blockbuster.ir.parse import parse
from blockbuster.ir.show import KEYWORDS
from blockbuster.ir.tokens import TokenReader
from tests.docs.pages import ROOT, blocks_of
from tests.frontend import programs
from tests.parameters import one_in

PAGE = (ROOT / "docs" / "text_form.md").read_text("utf-8")
GRAMMAR = next(block.text for block in blocks_of(PAGE) if not block.language)
FILES = sorted((ROOT / "tests" / "golden").rglob("*.bb"))
PROGRAM = re.compile(r"^graph.*?^}\n", re.MULTILINE | re.DOTALL)
GOLDEN = list(
    dict.fromkeys(text for file in FILES for text in PROGRAM.findall(file.read_text("utf-8")))
)
WORDS = {"name": "name", "dim": "name", "number": "number", "string": "string"} | dict.fromkeys(
    ("source", "label", "functional", "lead", "dtype"), "name"
)
# runs of words and signs: what may stand in them the page says in prose
IN_WORDS = ("expression", "length")
NEVER_IN_THEM = (
    "{", "}", "=", "!", ":", ";", "->", "yield", "return", "over", "map", "end of text",
)  # fmt: skip


def read_grammar(text):
    """Rule name -> its tokens, for the rules that the page spells out."""
    joined = re.sub(r"\n +", " ", text)
    rules = dict(re.findall(r"^(\w+) += (.+)$", joined, re.MULTILINE))
    return {
        n: re.findall(r'"[^"]*"|\w+|[\[\]{}()|]', t) for n, t in rules.items() if n not in IN_WORDS
    }


RULES = read_grammar(GRAMMAR)


def alternatives(tokens):
    """A rule's tokens as nested tuples: ("any", sequences), sequences of items."""
    sequences, items = [], []
    while tokens and tokens[0] not in "]})":
        token = tokens.pop(0)
        if token == "|":
            sequences.append(tuple(items))
            items = []
        elif token in "[{(":
            items.append((token, alternatives(tokens)))
            tokens.pop(0)
        else:
            items.append(token)
    return (*sequences, tuple(items))


class Recognizer:
    """Where in a text a part of the grammar can end, for every place where it can begin."""

    def __init__(self, text, rules=RULES, start="graph", never=NEVER_IN_THEM):
        self.tokens = TokenReader(text)._tokens
        self.rules, self.start, self.never = rules, start, never
        self.ends_of_rule = cache(self._ends_of_rule)

    def _ends_of_rule(self, name, at):
        if name in IN_WORDS:
            stop = next(i for i in range(at, len(self.tokens)) if self._text(i) in self.never)
            return frozenset(range(at + 1, stop + 1))
        if name in WORDS:
            return frozenset({at + 1} if self.tokens[at].kind == WORDS[name] else ())
        return self.ends(alternatives(list(self.rules[name])), at)

    def _text(self, at):
        return self.tokens[at].text

    def ends(self, sequences, at):
        return frozenset().union(*(self._along(items, {at}) for items in sequences))

    def _along(self, items, places):
        for item in items:
            places = set().union(*(self._ends_of_item(item, at) for at in places))
        return places

    def _ends_of_item(self, item, at):
        if isinstance(item, str) and item.startswith('"'):
            return {at + 1} if self._text(at) == item.strip('"') else set()
        if isinstance(item, str):
            return self.ends_of_rule(item, at)
        kind, inner = item
        found = self.ends(inner, at)
        if kind == "[":
            return found | {at}
        if kind == "{":
            reached, new = {at}, {at}
            while new := set().union(*(self.ends(inner, place) for place in new)) - reached:
                reached |= new
            return reached
        return found

    def accepts(self):
        return len(self.tokens) - 1 in self.ends_of_rule(self.start, 0)


def test_goldens_are_in_the_grammar():
    assert len(GOLDEN) > 100
    for text in GOLDEN:
        assert Recognizer(text).accepts(), text


@pytest.mark.parametrize("name", one_in(4, programs.PROGRAMS, first=3))
def test_lowered_programs_are_in_the_grammar(name):
    fn, dims = programs.PROGRAMS[name]
    text = lower(trace(fn, **dims)).show()

    assert Recognizer(text).accepts(), text


WRONG = {
    "no return": "graph(x: [M]) { y = exp(x) }",
    "no body": "graph(x: [M]) return x",
    "yield outside": "graph(x: [M]) { yield x return x }",
    "port without a mark": "graph(X: M[M]) { Y = map M (x !X) { y = exp(x) yield y } return Y }",
    "type without brackets": "graph(x: M) { y = exp(x) return y }",
    "unknown monoid": "graph(X: M[M]) { y = reduce times M (!X) return y }",
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_the_parser_refuses_is_not_in_the_grammar(wrong):
    with pytest.raises((BlockbusterError, ValueError)):
        parse(WRONG[wrong])
    assert not Recognizer(WRONG[wrong]).accepts()


def test_every_word_of_the_language_is_in_the_grammar():
    words = {word for tokens in RULES.values() for word in tokens if word.startswith('"')}
    known = {word.strip('"') for word in words} | {"inf", "nan"}

    assert set(KEYWORDS) - known == {"or", "and", "not"}
