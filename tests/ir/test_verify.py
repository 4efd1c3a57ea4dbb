"""Every invariant of a well-formed graph, broken on purpose, in graphs made without the builder."""

from dataclasses import replace

import pytest

from blockbuster.errors import VerifyError
from blockbuster.ir.expr import Arg, call
from blockbuster.ir.graph import Graph, Index, Input, Node, Output, Read, Value
from blockbuster.ir.ops import (
    Accumulate,
    Collect,
    Elementwise,
    Functional,
    Map,
    Op,
    Rescale,
)
from blockbuster.ir.origin import Origin, SourceLine
from blockbuster.ir.parse import parse
from blockbuster.ir.types import Type
from blockbuster.ir.verify import Known, verify

BLOCK = Type((), ("M", "K"))
VECTOR = Type((), ("M",))
ROWS = Type(("M",), ("K",))
EXP = Elementwise(call("exp", Arg(0)))
FACTOR = call("mul", Arg(0), call("exp", call("sub0", Arg(1), Arg(2))))


def node(op: Op, *operands: Value, types: tuple[Type, ...], **rest: object) -> Node:
    return Node(op, operands, types, **rest)


def graph(inputs: tuple[Type, ...], nodes: tuple[Node, ...], *outputs: Value) -> Graph:
    return Graph(tuple(Input(type) for type in inputs), nodes, tuple(map(Output, outputs)))


def body(type: Type, *outputs: Value, nodes: tuple[Node, ...] = ()) -> Graph:
    return graph((type,), nodes, *outputs)


def map_over(
    dim: str, inner: Graph, results: tuple[object, ...], types: tuple[Type, ...], given: Type
) -> Graph:
    """A program of one map that iterates its one input."""
    op = Map(dim, inner, (True,), results)
    made = node(op, Value(-1), types=types)
    return graph((given,), (made,), *(Value(0, port) for port in range(len(types))))


GROUP_BODY = graph((Type((), ("K",)),), (), Value(-1), Value(-1))
K = Type((), ("K",))
SUMMED = Type((), ("K",))

BROKEN = {
    "an operand of a later node": (
        graph((BLOCK,), (node(EXP, Value(1), types=(BLOCK,)), node(EXP, Value(-1), types=(BLOCK,))),
              Value(0)),
        "operand 0 reads Value.node=1, port=0., which does not come before node 0",
    ),
    "an input that is not there": (
        graph((BLOCK,), (node(EXP, Value(-1, 3), types=(BLOCK,)),), Value(0)),
        "operand 0 reads .*port=3.*does not come before",
    ),
    "a port that is not there": (
        graph((BLOCK,), (node(EXP, Value(-1), types=(BLOCK,)),
                         node(EXP, Value(0, 1), types=(BLOCK,))), Value(1)),
        "does not come before node 1",
    ),
    "operands of other types": (
        graph((BLOCK, VECTOR), (node(Functional("add"), Value(-1), Value(-1, 1), types=(BLOCK,)),),
              Value(0)),
        r"operands of add have types \[M,K\] and \[M\], expected equal types",
    ),
    "a wrong result type": (
        graph((BLOCK,), (node(EXP, Value(-1), types=(VECTOR,)),), Value(0)),
        r"the results are stated as \[M\], the operator gives \[M,K\]",
    ),
    "a dim twice in a type": (
        map_over("N", body(Type(("N",), ("K",)), Value(-1)), (Collect(),),
                 (Type(("N", "N"), ("K",)),), Type(("N", "N"), ("K",))),
        r"the type N,N\[K\] repeats a dim|has type N,N\[K\], which repeats a dim: relabel one",
    ),
    "a body with other inputs": (
        graph((ROWS,), (node(Map("M", graph((), (), ), (True,), ()), Value(-1), types=()),),
              Value(-1)),
        "a map of 1 operands has a body of 0 inputs",
    ),
    "an iterated operand that is no list over the dim": (
        map_over("N", body(K, Value(-1)), (Collect(),), (Type(("N",), ("K",)),), ROWS),
        r"operand 0 is iterated over N but has type M\[K\]",
    ),
    "an operand that enters as another type": (
        map_over("M", body(VECTOR, Value(-1)), (Collect(),), (Type(("M",), ("M",)),), ROWS),
        r"operand 0 of type M\[K\] enters the body as \[M\]",
    ),
    "a list over the dim passed whole": (
        graph((ROWS,), (node(Map("M", body(ROWS, Value(-1)), (False,), (Collect(),)), Value(-1),
                             types=(Type(("M", "M"), ("K",)),)),), Value(0)),
        r"operand 0 of type M\[K\] is passed whole into a map over M",
    ),
    "an item with the map's axis passed whole": (
        graph((VECTOR, ROWS),
              (node(Map("M", graph((VECTOR, K), (), Value(-1)), (False, True), (Collect(),)),
                    Value(-1), Value(-1, 1), types=(Type(("M",), ("M",)),)),), Value(0)),
        r"operand 0 of type \[M\] is passed whole into a map over M",
    ),
    "a view inside a body": (
        map_over("M", Graph((Input(K, Read("X", ("K",))),), (), (Output(Value(-1)),)),
                 (Collect(),), (ROWS,), ROWS),
        "input 0 of the body has a view: only a program's inputs have",
    ),
    "more results than outputs of the body": (
        map_over("M", body(K, Value(-1)), (Collect(), Collect()), (ROWS, ROWS), ROWS),
        "the map has 2 results and a body of 1 outputs",
    ),
    "an unknown monoid": (
        map_over("M", body(K, Value(-1)), (Accumulate("xor"),), (K,), ROWS),
        "result 0 is accumulated with the unknown monoid 'xor'",
    ),
    "an accumulated list": (
        map_over("M", body(Type(("N",), ("K",)), Value(-1)), (Accumulate("+"),),
                 (Type(("N",), ("K",)),), Type(("M", "N"), ("K",))),
        r"result 0 accumulates a list of type N\[K\]: accumulators are local",
    ),
    "an accumulator that carries the axis": (
        map_over("M", body(BLOCK, Value(-1)), (Accumulate("+"),), (BLOCK,),
                 Type(("M",), ("M", "K"))),
        r"result 0 of type \[M,K\] is accumulated over M but carries that axis",
    ),
    "a lead that comes later": (
        map_over("M", GROUP_BODY, (Rescale("+", (1,), FACTOR), Accumulate("max")), (K, K), ROWS),
        "result 0 is rescaled by 1, which is no earlier accumulator",
    ),
    "a lead that is collected": (
        map_over("M", GROUP_BODY, (Collect(), Rescale("+", (0,), FACTOR)), (ROWS, K), ROWS),
        "result 1 is rescaled by 0, which is no earlier accumulator",
    ),
    "a lead with other axes": (
        graph((ROWS, Type(("M",), ("N",))),
              (node(Map("M", graph((K, Type((), ("N",))), (), Value(-1), Value(-1, 1)),
                        (True, True), (Accumulate("max"), Rescale("+", (0,), FACTOR))),
                    Value(-1), Value(-1, 1), types=(K, Type((), ("N",)))),),
              Value(0), Value(0, 1)),
        r"result 1 of type \[N\] is rescaled by a lead of type \[K\]",
    ),
    "a factor of too many arguments": (
        map_over("M", GROUP_BODY, (Accumulate("max"), Rescale("+", (0,), Arg(3))), (K, K), ROWS),
        "the factor of result 1 reads more than x, r, r2",
    ),
    "an expression with an unread operand": (
        graph((BLOCK, BLOCK), (node(EXP, Value(-1), Value(-1, 1), types=(BLOCK,)),), Value(0)),
        r"the expression reads operands \[0\] of 2 given",
    ),
    "no outputs": (graph((BLOCK,), ()), "a program returns something"),
    "an output that is not there": (
        graph((BLOCK,), (), Value(3)),
        "output 0 is Value.node=3, port=0., which the graph does not have",
    ),
    "an output of a body that is not there": (
        map_over("M", body(K, Value(-1, 2)), (Collect(),), (ROWS,), ROWS),
        "the body is broken: output 0 is Value.node=-1, port=2.",
    ),
    "a dead node": (
        graph((BLOCK,), (node(EXP, Value(-1), types=(BLOCK,)),), Value(-1)),
        "the nodes are not in canonical order: depth-first from the outputs is",
    ),
    "nodes in another order": (
        graph((BLOCK,), (node(EXP, Value(-1), types=(BLOCK,)),
                         node(EXP, Value(-1), types=(BLOCK,))), Value(1), Value(0)),
        r"not in canonical order: depth-first from the outputs is \[1, 0\]",
    ),
    "an index of another type": (
        Graph((Input(ROWS, Index("K"), "i"),), (), (Output(Value(-1)),)),
        r"i is an index over K but has type M\[K\]",
    ),
    "a view with other dims": (
        Graph((Input(ROWS, Read("X", ("K",)), "x"),), (), (Output(Value(-1)),)),
        r"x of type M\[K\] reads X with axes \('K',\)",
    ),
    "output axes of other dims": (
        Graph((Input(ROWS, None, "x"),), (), (Output(Value(-1), "", ("K",)),)),
        r"output 0 of type M\[K\] fills axes \['K'\]",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_refuses(name):
    broken, reason = BROKEN[name]

    with pytest.raises(VerifyError, match=reason):
        verify(broken)


def test_refuses_a_map_inside_a_map_over_the_same_dim():
    inner = Map("M", body(K, Value(-1)), (True,), (Collect(),))
    level = graph(
        (Type(("N",), ("K",)), ROWS), (node(inner, Value(-1, 1), types=(ROWS,)),), Value(0)
    )
    # The list over M comes in whole, which a body over M may not have: go through a map over N.
    middle = Map("N", replace(level, inputs=(Input(K), Input(ROWS))), (True, False), (Collect(),))
    program = Graph(
        (Input(Type(("N",), ("K",))), Input(ROWS)),
        (node(middle, Value(-1), Value(-1, 1), types=(Type(("N", "M"), ("K",)),)),),
        (Output(Value(0)),),
    )
    verify(program)
    outer = replace(middle, dim="M")

    with pytest.raises(VerifyError, match="over M"):
        verify(replace(program, nodes=(replace(program.nodes[0], op=outer),)))


def test_the_message_shows_the_equation_its_neighbours_and_its_origin():
    good = parse("""graph(a: [M,K], c: [M]) {
      s = row_sum(a)
      t = row_scale(a, s)
      u = row_shift(t, c)
      return u
    }""")
    origin = Origin("swap", (Origin(where=SourceLine("models/softmax.py", 14)),))
    wrong = replace(good.nodes[1], types=(VECTOR,), origin=origin)

    with pytest.raises(VerifyError) as error:
        verify(replace(good, nodes=(good.nodes[0], wrong, good.nodes[2])))

    assert str(error.value).splitlines() == [
        "the results are stated as [M], the operator gives [M,K]",
        "    graph(a: [M,K], c: [M]) {",
        "      s: [M] = row_sum(a)",
        ">     t: [M] = row_scale(a, s)",
        "      u: [M,K] = row_shift(t, c)",
        "      return u",
        "  made by swap (softmax.py:14)",
    ]


def test_the_mark_is_found_inside_bodies():
    good = parse("""graph(X: M,K[M,K]) {
      Y = map M (x in !X) { y = map K (b in !x) { c = exp(b) yield c } yield y }
      return Y
    }""")
    outer = good.nodes[0]
    inner = outer.op.body.nodes[0]
    leaf = replace(inner.op.body.nodes[0], op=Functional("row_sum"))
    level = replace(inner.op.body, nodes=(leaf,))
    middle = replace(inner, op=replace(inner.op, body=level))
    wrong = replace(outer, op=replace(outer.op, body=replace(outer.op.body, nodes=(middle,))))

    with pytest.raises(VerifyError, match=r"\n>         c: \[M,K\] = row_sum\(b\)\n"):
        verify(replace(good, nodes=(wrong,)))


def test_levels_known_to_be_well_formed_are_not_looked_at_again():
    """Each level is checked for itself: a map against its body where the map stands."""
    graph = parse("""graph(X: M[M]) { Y = map M (x in !X) { y = exp(x)  yield y }  return Y }""")
    ((_, op),) = graph.of_type(Map)
    known = Known()

    verify(graph, known)

    assert [*known.levels.values()] == [*known.nodes.values()] == [graph, op.body]
    node = replace(op.body.nodes[0], types=())
    wrong = graph.with_op(0, replace(op, body=replace(op.body, nodes=(node,))))
    with pytest.raises(VerifyError):
        verify(wrong, known)
    verify(wrong, Known({id(level): level for _, level in wrong.walk()}))
