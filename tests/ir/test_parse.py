"""What the reader refuses, and where it points."""

import pytest

from blockbuster.errors import ParseError, VerifyError
from blockbuster.ir.expr import Arg, Call, Const, Size
from blockbuster.ir.parse import parse

PROGRAM = """graph(X: M,K[M,K], c: [M]) {{
  Y = map M (x in !X) {{
    y = map K (b in !x) {{
      {line}
      yield d
    }}
    yield y
  }}
  return Y
}}
"""

REFUSED = {
    "exp(b)": "expected =, found '[(]'",
    "d = exp(b": "expected ,, found 'yield'",
    "d = exq(b)": r"unknown operator 'exq'(.|\n)*hint: did you mean 'eq'",
    "d = b +": "expected|yield",
    "d = b @ b": "unexpected character '@'",
    "d = e": "e is not defined here",
    "d = dot(b)": "dot takes 2",
    "d = maximum(b)": "maximum takes 2 arguments, got 1",
    "d = exp(!b)": "expected a name|local value is marked !",
    "d, e = exp(b)": "2 names for 1 results",
    'd = misc "f" : [M] (b)': "unknown function 'f'",
    "d = map M (z in !X) { yield z }": "X is not defined here",
    "d = map K (z in b) { yield z }": r"z iterates over K, but the operand has type \[M,K\]",
}


@pytest.mark.parametrize("line", REFUSED)
def test_points_at_the_line(line):
    text = PROGRAM.format(line=line)

    with pytest.raises((ParseError, VerifyError), match=REFUSED[line]) as error:
        parse(text)

    marked = [row for row in str(error.value).splitlines() if row.startswith(">")]
    assert len(marked) == 1
    assert marked[0][1:].strip() in (line, "yield d")


def test_says_what_is_defined():
    with pytest.raises(ParseError, match="hint: defined are X, c"):
        parse("graph(X: M[M], c: [M]) { return Y }")


def test_refuses_operands_that_do_not_fit():
    text = "graph(a: [M,K], c: [K]) {\n  t = row_scale(a, c)\n  return t\n}"

    with pytest.raises(
        VerifyError, match=r"has axes \[K\], expected \[M\](.|\n)*\n>     t = row_sc"
    ):
        parse(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "expected graph, found 'end of text'"),
        ("graph(a: [M]) { return a } graph", "expected the end of the text, found 'graph'"),
        ("graph(a: [M]) { return a", "expected }, found 'end of text'"),
        ("graph(a: M) { return a }", "expected"),
        ("graph(a: [M]) { t = exp(a) t = exp(a) return t }", "t is defined twice|already"),
        ("graph(a: [M] { return a }", "expected ,, found '{'"),
        ("graph(a: [M]) {\N{NO-BREAK SPACE}return a }", "'.xa0return' is no name"),
    ],
)
def test_refuses(text, reason):
    with pytest.raises(ParseError, match=reason):
        parse(text)


def test_a_rescaled_result_needs_a_lead():
    with pytest.raises(ParseError, match=r"t is not a lead: write `yield max t = \.\.\.`"):
        parse("""graph(X: M[K] = port) {
          s = map M (x in !X) { yield +x by t: x * exp(sub0(r, r2)) }
          return s
        }""")


def test_a_factor_reads_only_x_r_and_r2():
    with pytest.raises(ParseError, match="q"):
        parse("""graph(X: M[K] = port) {
          t, s = map M (x in !X) { yield max t = x yield +x by t: x * q }
          return t, s
        }""")


def test_misc_functions_are_looked_up():
    graph = parse(
        'graph(X: M[M]) { Y = misc "double" : M[M] (!X) return Y }', {"double": lambda x: 2 * x}
    )

    assert graph.nodes[0].op.name == "double"


def expression(text: str) -> object:
    return parse(f"graph(a: [M], b: [M]) {{ t = {text} return t }}").nodes[0].op.expr


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("a + b * a", "a + (b * a)"),
        ("a - b - a", "(a - b) - a"),
        ("a / b * a", "(a / b) * a"),
        ("a ** b ** a", "a ** (b ** a)"),
        ("-a ** b", "-(a ** b)"),
        ("-a * b", "(-a) * b"),
        ("a + b < a * b", "(a + b) < (a * b)"),
        ("not a < b", "not (a < b)"),
        ("a < b and b < a or a == b", "((a < b) and (b < a)) or (a == b)"),
        ("a * -b", "a * (-b)"),
    ],
)
def test_precedence(text, same):
    assert expression(text) == expression(same)


def test_numbers_and_sizes():
    assert expression("a * -2 + b") == Call("add", (Call("mul", (Arg(0), Const(-2.0))), Arg(1)))
    assert expression("a + b * |M| ** -0.5") == Call(
        "add",
        (Arg(0), Call("mul", (Arg(1), Call("pow", (Size("M"), Const(-0.5)))))),
    )
    assert expression("a * 1e-05 + b * inf") == Call(
        "add", (Call("mul", (Arg(0), Const(1e-5))), Call("mul", (Arg(1), Const(float("inf")))))
    )
    assert expression("a * -2 + b") != expression("a * neg(2) + b")


def test_comments_and_layout_do_not_matter():
    assert parse("graph(a: [M]) {t = exp(a) return t}") == parse(
        "# head\ngraph ( a : [ M ] )\n{ t =\n  exp(a)  # tail\n return t }\n"
    )


@pytest.mark.parametrize("start", ["1.5", "9" * 5000, "-1", "inf", "n"])
def test_a_map_starts_at_a_whole_number(start):
    body = "(x in !X) { y = exp(x) yield y } return Y }"
    text = f"graph(X: M[M]) {{ Y = map M from {start} {body}"
    with pytest.raises(ParseError, match="expected a whole number, found"):
        parse(text)
