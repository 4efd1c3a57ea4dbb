"""The one pointwise operator of tile programs, and the paper's names for it."""

from dataclasses import replace

import pytest

from blockbuster.emit.tile.dataflow import mapped
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.pointwise import SCALAR, in_tiles, paper_name
from blockbuster.emit.tile.program import Let, Tile, statements
from blockbuster.emit.tile.verify import verify_tiles
from blockbuster.errors import VerifyError
from blockbuster.ir.expr import Arg, call
from blockbuster.ir.ops import Elementwise, Functional, Pointwise
from blockbuster.ir.signatures import FUNCTIONALS
from blockbuster.ir.types import Type
from tests.emit.cases import TEXTS, graph_of

MN, M, N = ("M", "N"), ("M",), ("N",)
TYPES = {"row": (MN, M), "col": (MN, N), "outer": (M, N)}


def tiles(*axes):
    return [Tile(f"t{at}", dims) for at, dims in enumerate(axes)]


@pytest.mark.parametrize("name", SCALAR)
def test_each_operator_of_the_paper_keeps_its_name(name):
    shapes = [TYPES.get(name.split("_")[0], (MN, MN))]
    shapes += [(M, M), ((), ())] if shapes == [(MN, MN)] else []
    for args in shapes:
        (result,) = Functional(name).result_types(tuple(Type((), axes) for axes in args))
        op = in_tiles(Functional(name), result.axes)

        assert isinstance(op, Pointwise)
        assert paper_name(op, tiles(*args)) == name


@pytest.mark.parametrize("name", [name for name in FUNCTIONALS if name not in SCALAR])
def test_dots_and_reductions_stay_what_they_are(name):
    assert in_tiles(Functional(name), M) == Functional(name)


@pytest.mark.parametrize(
    ("expr", "axes", "args"),
    [
        (call("add", Arg(0), Arg(1)), MN, (M, MN)),  # the vector comes first
        (call("add", Arg(0), Arg(1)), MN, (M, N)),  # no name for a sum of two vectors
        (call("sub", Arg(0), Arg(1)), MN, (MN, M)),
        (call("mul", Arg(1), Arg(0)), MN, (MN, MN)),
        (call("mul", Arg(0), Arg(0)), MN, (MN,)),
        (call("mul", Arg(0), 2.0), MN, (MN,)),
        (call("maximum", Arg(0), Arg(1)), MN, (MN, MN)),
        (call("mul", Arg(0), Arg(1)), MN, ((), MN)),
        (call("mul", Arg(0), Arg(1)), M, (("M", "B"), M)),  # an axis of extent 1 is dropped
    ],
)
def test_other_expressions_have_no_name(expr, axes, args):
    assert paper_name(Pointwise(expr, axes), tiles(*args)) == ""


@pytest.mark.parametrize("name", TEXTS)
def test_operators_of_block_programs_are_refused(name):
    program = lower_to_tiles(graph_of(name))
    lets = [
        s
        for nest in program.nests
        for s in statements(nest.body)
        if isinstance(s, Let) and isinstance(s.op, Pointwise)
    ]
    assert lets

    verify_tiles(program)
    with pytest.raises(VerifyError, match="has an operator of block programs"):
        verify_tiles(_changed(program, replace(lets[0], op=Elementwise(lets[0].op.expr)), lets[0]))


def _changed(program, new, old):
    nests = (
        replace(nest, body=mapped(nest.body, lambda s: new if s == old else s))
        for nest in program.nests
    )
    return replace(program, nests=tuple(nests))
