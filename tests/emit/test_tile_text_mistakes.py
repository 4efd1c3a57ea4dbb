"""What a text of a tile program that cannot be read is told: line, caret, what was expected."""

import pytest

from blockbuster.emit.tile.program import Fold
from blockbuster.errors import ParseError
from tests.emit.parse_tiles import parse_tiles

PROGRAM = """tiles {{
  inputs X: f16[M, N]
  outputs Y: f32[M]
  nest 1 {{
    blocks M 64, N 32?
    s_1: f32[M 64] = init +
    for N 32? {{
      x_2: f16[M 64, N 32?] = load X[M, N]
      {line}
    }}
    store Y[M] = s_1
  }}
}}
"""
MISTAKES = {
    "s_1 += ^t9": "t9 is not defined before, in this nest",
    "t3: f32[M] = exp(^t9)": "t9 is not defined before, in this nest",
    "t3: f32[M] = row_sum(^t9)": "t9 is not defined before, in this nest",
    "t3: f32[^M 32] = init +": "blocks of M are not what the nest says: M 64",
    "t3: f32[^N 32] = init +": r"blocks of N are not what the nest says: N 32\?",
    "t3: f32[^K 32] = init +": "blocks of K are not what the nest says",
    "t3: f32[M] = load ^Z[M]": "Z is no array of the program",
    "t3: f32[M] = init ^times": r"expected \+, prod, max, min, found 'times'",
    "^t3 = init +": "t3 is not defined before, in this nest",
    "^s_1 times= x_2": "expected a statement, found 's_1'",
    "s_1 +^x_2": "expected =, found 'x_2'",
    "^= x_2": "expected a statement, found '='",
    "t3: f32[M] = guard x_2 ^N with 0": "expected along, found 'N'",
    "t3: f32[M] = guard x_2 along N with ^zero": "expected a number, found 'zero'",
    "issue x ^two ahead of 3: t3: f32[M] = load X[M, N]": "expected a whole number, found 'two'",
    "t3: f32[M] = x1 - ^y of (s_1, s_1)": "y is no operand: 2 stand behind `of`, named x1, x2",
    "store X[^+] = x_2": r"expected a name, found '\+'",
    "t3: f32[M] ^load X": "expected =, found 'load'",
    "^with s_1 + x_2": "expected a statement, found 'with'",
    "^while N { }": "expected a statement, found 'while'",
}


@pytest.mark.parametrize("line", MISTAKES)
def test_mistakes_are_pointed_at(line):
    text = PROGRAM.format(line=line.replace("^", ""))
    with pytest.raises(ParseError, match=MISTAKES[line]) as error:
        parse_tiles(text)

    shown = str(error.value).splitlines()
    (marked,) = [number for number, row in enumerate(shown) if row.startswith(">")]
    column = shown[marked].index(line.replace("^", "")) + line.index("^")
    assert shown[marked + 1] == " " * column + "^"


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ("", "expected tiles, found 'end of text'"),
        ("tiles {", "expected }, found 'end of text'"),
        ("tiles { } tiles", "expected the end of the text, found 'tiles'"),
        ("tiles { nest 2 { } }", "expected 1: nests are numbered in order"),
        ("tiles { sizes |M| is 4 }", "expected = or >=, found 'is'"),
        ("tiles { inputs X: f16 }", "expected \\[, found '}'"),
        ("tiles { nest 1 { warps -1 } }", "expected a whole number, found '-'"),
    ],
)
def test_texts_that_are_none(wrong, reason):
    with pytest.raises(ParseError, match=reason):
        parse_tiles(wrong)


def test_the_text_without_mistakes_reads():
    program = parse_tiles(PROGRAM.format(line="s_1 += x_2"))

    assert isinstance(program.nests[0].body[1].body[1], Fold)
