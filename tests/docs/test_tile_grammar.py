"""The grammar on the page about the text of tile programs is that of the parser."""

import pytest

from blockbuster.emit.tile.forms import reserved
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.errors import ParseError
from tests.docs.pages import ROOT, blocks_of
from tests.docs.test_grammar import GRAMMAR, NEVER_IN_THEM, Recognizer, read_grammar
from tests.emit.test_tile_text import ALL, FUSED, fused
from tests.emit.test_tile_text_mistakes import MISTAKES, PROGRAM, parse_tiles

PAGE = (ROOT / "docs" / "tile_text.md").read_text("utf-8")
OWN = next(block.text for block in blocks_of(PAGE) if not block.language)
SHARED = ("axis", "size")  # of the text form of block programs
RULES = read_grammar(OWN) | {name: read_grammar(GRAMMAR)[name] for name in SHARED}
NEVER = (*NEVER_IN_THEM, *(word for word in sorted(reserved()) if word != "and"))
AGREE = ("blocks of", "is not defined", "is no array", "is no operand")  # what no grammar says


def accepts(text):
    return Recognizer(text, RULES, "program", NEVER).accepts()


@pytest.mark.parametrize("name", FUSED)
def test_programs_are_in_the_grammar(name):
    assert accepts(lower_to_tiles(fused(name)).show())


def test_everything_that_a_program_holds_is_in_the_grammar():
    assert accepts(ALL.show())


def test_listings_of_the_page_are_in_the_grammar():
    shown = [b.text for b in blocks_of(PAGE) if b.text.startswith("tiles {")]

    assert shown
    assert all(map(accepts, shown))


@pytest.mark.parametrize("line", MISTAKES)
def test_what_the_parser_refuses_is_not_in_the_grammar(line):
    """But for what has to agree with other lines."""
    text = PROGRAM.format(line=line.replace("^", ""))
    with pytest.raises(ParseError):
        parse_tiles(text)

    assert accepts(text) == any(words in MISTAKES[line] for words in AGREE)


def test_every_word_of_the_language_is_in_the_grammar():
    words = {word.strip('"') for tokens in RULES.values() for word in tokens if word[0] == '"'}

    assert reserved() - words == set()
