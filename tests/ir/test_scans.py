"""Scans in block programs: their types, their text, and what a well-formed program is."""

import pytest

import blockbuster as bb
from blockbuster.ir.ops import Scan
from blockbuster.ir.parse import parse
from blockbuster.ir.types import Type

LINES = """graph(X: M,N[M,N]) {{
  Y = map M (x in !X) {{
    y = map N (a in !x) {{ s = scan {} (a) yield s }}
    yield y
  }}
  return Y
}}"""


@pytest.mark.parametrize("words", ["+", "prod", "max", "min", "back +", "back max"])
def test_text_is_read_back(words):
    graph = parse(LINES.format(words))

    assert f"scan {words} (a)" in graph.show()
    assert parse(graph.show()) == graph


def test_a_scan_keeps_the_type_of_its_operand():
    block = Type((), ("M", "N"))

    assert Scan("+").result_types((block,)) == (block,)
    assert Scan("+").flops((block,)) == (1, ("M", "N"))


@pytest.mark.parametrize(
    ("op", "types", "reason"),
    [
        (Scan("-"), (Type((), ("N",)),), "unknown monoid '-'"),
        (Scan("+"), (Type(),), "is a scalar, expected an axis"),
        (Scan("+"), (Type(("N",), ("N",)),), "expected a local item"),
        (Scan("+"), (), "takes 1 operand, got 0"),
    ],
)
def test_other_operands_are_refused(op, types, reason):
    with pytest.raises(bb.VerifyError, match=reason):
        op.result_types(types)


def test_a_map_that_scans_its_dim_is_serial():
    graph = parse(LINES.format("back +"))
    outer = graph.nodes[0].op
    inner = outer.body.nodes[0].op

    assert not outer.serial
    assert outer.scans == ()
    assert inner.serial
    assert inner.scans == (Scan("+", back=True),)


def test_a_map_scans_its_dim_in_one_direction():
    text = """graph(X: N[N]) {
      Y, Z = map N (x in !X) { y = scan + (x) z = scan back + (x) yield y yield z }
      return Y, Z
    }"""
    with pytest.raises(bb.VerifyError, match="the map over N scans it in both directions"):
        parse(text)


def test_a_scan_stands_directly_in_the_map_over_its_axis():
    text = """graph(X: N,M[M,N]) {
      Y = map N (x in !X) {
        y = map M (a in !x) { s = scan + (a) yield s }
        yield y
      }
      return Y
    }"""
    reason = "a scan along N stands in a map inside the one over N"
    with pytest.raises(bb.VerifyError, match=reason):
        parse(text)


def test_no_iteration_of_a_scan_is_peeled_off():
    text = """graph(X: N[N], f: [N]) {
      Y = map N from 1 (x in !X; f) { s = scan + (x) yield s }
      return Y
    }"""
    with pytest.raises(bb.VerifyError, match="starts at 1, but scans from the first iteration"):
        parse(text)
