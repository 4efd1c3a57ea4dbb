"""Closing passes: what printers used to decide is a fact of the program, with its reason."""

from dataclasses import replace

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.emit.closing import (
    accumulate,
    accurate_functions,
    load_columns,
    round_products,
    work_around_locality,
)
from blockbuster.emit.tile.dataflow import mapped
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.program import (
    INPUT,
    OUTPUT,
    Buffer,
    BufferAxis,
    Fold,
    For,
    Init,
    Let,
    Load,
    Member,
    Nest,
    Store,
    Tile,
    TileProgram,
    View,
    statements,
)
from blockbuster.emit.tile.tiling import tiling_of
from blockbuster.emit.tile.uses import Uses
from blockbuster.emit.tile.verify import verify_tiles
from blockbuster.emit.tile.workarounds import REASONS
from blockbuster.errors import VerifyError
from blockbuster.interp.evaluate import evaluate
from blockbuster.ir.expr import Arg, call
from blockbuster.ir.ops import Functional, Pointwise
from blockbuster.ir.parse import parse
from blockbuster.ir.types import size_class
from blockbuster.rules.safety import RESCALED
from blockbuster.runtime.launch import run_interpreted
from tests.emit.cases import (
    FOLDER,
    TEXTS,
    blocked_dims,
    graph_of,
    inputs_for,
    ragged_blocks,
    scheduled_of,
    sizes_of,
)
from tests.emit.numpy_runs import run_numpy

SIZES = {"M": 64, "N": 96}
ATTENTION = {"M": 64, "N": 96, "D": 32, "L": 32}


def source(name="attention safe", dtype="float16", sizes=None, **tiles):
    return bb.emit(graph_of(name), sizes or ATTENTION, dtype, "sm_90", tiles).source


def emitted(function, dtype="float32", sizes=None, **shapes):
    program = bb.lower(bb.trace(function, **shapes))
    return bb.emit(bb.fuse(program).final, sizes or SIZES, dtype)


def of(program, kind):
    return [s for nest in program.nests for s in statements(nest.body) if isinstance(s, kind)]


# load-columns --------------------------------------------------------------------------


def test_second_operands_of_dots_need_no_transposition(monkeypatch):
    assert "tl.trans(" not in source()
    monkeypatch.setattr(load_columns, "not_columns", lambda tile, uses: "no")
    assert source().count("tl.trans(") == 2


def facts_of_columns(program):
    return {load.view.buffer.name: load.columns for load in of(program, Load)}


def blocked(name):
    program = lower_to_tiles(graph_of(name))
    return replace(program, nests=tuple(replace(nest, warps=4) for nest in program.nests))


def test_which_loads_lie_as_columns():
    made = load_columns.load_columns(blocked("attention safe"))
    assert facts_of_columns(made) == {"Q": False, "KT": True, "VT": True}

    # X is read by statistics and by the dot, YT by the dot alone
    made = load_columns.load_columns(blocked("layer norm final"))
    assert facts_of_columns(made)["X"] is False


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("d = dot(b, a)  yield +d", "is the first operand of a dot"),
        ("e = exp(b)  d = dot(a, b)  f = dot(a, e)  g = d + f  yield +g", "read by what is no dot"),
    ],
)
def test_other_tiles_lie_as_rows(body, reason):
    graph = f"""
graph(X: M,K[M,K], W: N,K[N,K]) {{
  Y = map M (x in !X, w = !W) {{
    y = map N (v in !w, x2 = !x) {{
      s = map K (b in !v, a in !x2) {{ {body} }}
      yield s
    }}
    yield y
  }}
  return Y
}}
"""
    program = lower_to_tiles(parse(graph))
    (nest,) = program.nests
    uses = Uses(nest, tiling_of(program, nest))
    (load,) = (s for s in of(program, Load) if s.view.buffer.name == "W")

    assert reason in load_columns.not_columns(load.target, uses)


@pytest.mark.interpreter
def test_a_first_operand_as_columns_gives_another_result(monkeypatch):
    def kernel():
        return emitted(lambda x, w: x @ w, sizes=dict(M=16, K=32, N=48), x="M K", w="K N")

    rng = np.random.default_rng(0)
    given = {n: rng.normal(size=s).astype("float32") for n, s in (("x", (16, 32)), ("w", (32, 48)))}
    (right,) = run_interpreted(kernel(), given).values()
    np.testing.assert_allclose(right, given["x"] @ given["w"], rtol=1e-4, atol=1e-5)

    monkeypatch.setattr(load_columns, "not_columns", lambda tile, uses: "")
    with pytest.raises(Exception, match=r"shape|dim|incompatible|assert|K"):
        run_interpreted(kernel(), given)


# accumulate ----------------------------------------------------------------------------

A, B = Tile("t1", ("M", "K")), Tile("t2", ("N", "K"))
D, E = Tile("t3", ("M", "N")), Tile("t4", ("M", "N"))
X = View(Buffer("X", (BufferAxis("M"), BufferAxis("K")), INPUT), ("M", "K"))
W = View(Buffer("W", (BufferAxis("N"), BufferAxis("K")), INPUT), ("N", "K"))
Y = View(Buffer("Y", (BufferAxis("M"), BufferAxis("N")), OUTPUT), ("M", "N"))
DOT = Let(D, Functional("dot"), (A, B))
ADDED = Fold(E, "+", D)


def matmul(*inside, behind=(), before=()):
    loop = For("K", False, (Load(A, X), Load(B, W), *inside))
    body = (Init(E, "+"), *before, loop, *behind, Store(Y, E))
    return TileProgram((X.buffer, W.buffer), (Y.buffer,), (), (Nest(body),))


OTHER = Tile("t5", ("M", "N"))
TWICE = matmul(DOT, ADDED, Let(OTHER, Pointwise(Arg(0), ("M", "N")), (D,)))
TIMES_2 = Let(OTHER, Pointwise(call("mul", Arg(0), 2.0), ("M", "N")), (D,))
SCALED = matmul(DOT, TIMES_2, Fold(E, "+", OTHER))
LARGEST = matmul(DOT, Fold(E, "max", D))
APART = matmul(DOT, For("L", False, (ADDED,)))


def test_a_dot_that_is_added_is_added_in_place():
    made = accumulate.accumulate(matmul(DOT, ADDED))

    verify_tiles(made)
    (let,) = of(made, Let)
    assert let == replace(DOT, into=E)


def test_a_dot_of_float32_is_summed_from_zero():
    """One long chain of additions has several times its rounding error."""
    exact = replace(DOT, args=tuple(replace(tile, dtype="float32") for tile in DOT.args))
    made = accumulate.accumulate(matmul(exact, ADDED))

    assert of(made, Let) == [exact]
    assert of(made, Fold) == [replace(ADDED, apart="from_zero")]


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (TWICE, "t3 is read 2 times"),
        (SCALED, "t3 is not folded as it is"),
        (LARGEST, "t3 is folded, but not added"),
        (APART, "t3 is added in another loop than it is made in"),
    ],
)
def test_other_dots_are_made_where_they_stand(program, reason):
    (nest,) = program.nests
    (loop,) = (s for s in nest.body if isinstance(s, For))
    uses = Uses(nest, tiling_of(program, nest))

    assert accumulate.not_accumulated(DOT, loop.body, uses) == reason
    assert accumulate.accumulate(program) == program

    body = mapped(nest.body, lambda stmt: replace(stmt, into=E) if stmt == DOT else stmt)
    marked = replace(program, nests=(replace(nest, body=body),))
    with pytest.raises(VerifyError, match="t3 is not what is added to t4 once"):
        verify_tiles(marked)


def test_an_operand_that_changes_before_the_addition_keeps_the_dot_where_it_is():
    """Its place of addition would read the new value."""
    total = Tile("t6", ("M", "K"))
    dot = Let(D, Functional("dot"), (total, B))
    program = matmul(dot, Fold(total, "+", A), ADDED, before=(Init(total, "+"),))
    (nest,) = program.nests
    (loop,) = (s for s in nest.body if isinstance(s, For))
    uses = Uses(nest, tiling_of(program, nest))

    assert accumulate.not_accumulated(dot, loop.body, uses) == "t6 changes before t3 is added"


def test_the_lead_of_a_group_is_folded_before_its_members():
    program = matmul(DOT, replace(ADDED, members=(Member(OTHER, "+", A, RESCALED),)))
    (nest,) = program.nests
    uses = Uses(nest, tiling_of(program, nest))

    reason = accumulate.not_accumulated(DOT, nest.body[1].body, uses)
    assert reason == "t3 leads a group: its own fold comes before others"


def test_float32_dots_are_summed_from_zero():
    plain, narrow = source(dtype="float32"), source(dtype="float16")

    assert plain.count("tl.dot(") == narrow.count("tl.dot(") == 2
    assert plain.count(", 1.0, ") == 1  # an fma: Triton makes one chain of a plain sum
    assert ", 1.0, " not in narrow


# round-products ------------------------------------------------------------------------


def test_products_that_lanes_add_up_are_rounded(monkeypatch):
    def text():
        return emitted(lambda x: bb.sum(x * x, axis=1), x="M N").source

    assert "tl.fma(" in text()
    monkeypatch.setattr(round_products, "not_summed", lambda let, uses: "no")
    assert "tl.fma(" not in text()


def test_products_that_are_stored_are_not_rounded_apart(monkeypatch):
    def text():
        return emitted(lambda x: x * x * 3, x="M N").source

    assert "tl.fma(" not in text()
    monkeypatch.setattr(round_products, "not_summed", lambda let, uses: "")
    assert "tl.fma(" in text()


# work-around-locality ------------------------------------------------------------------


COLUMN_SUMS = """
graph(XT: M,N[M,N] = X(N,M)) {{
  S = map M (x in !XT) {{
    s = map N (b in !x) {{ r = row_sum(b)  yield +r }}
    {body}
  }}
  return S
}}
"""


def settled(text):
    return text.count(REASONS["read_once"])


def test_sums_of_loops_are_read_once_more_unless_they_are_stored(monkeypatch):
    def text(body):
        graph = parse(COLUMN_SUMS.format(body=f"{body}  yield t" if body else "yield s"))
        return bb.emit(graph, dict(M=500, N=100)).source

    assert settled(text("t = s * s")) == 1
    assert settled(text("")) == 0
    monkeypatch.setattr(work_around_locality, "not_settled", lambda tile, uses: "")
    assert settled(text("")) == 1


@pytest.mark.interpreter
def test_sums_that_begin_in_each_iteration_are_not_read_behind_the_loop():
    """Behind a loop that runs no iteration, such a sum is not there."""
    graph = bb.fuse(bb.lower(bb.trace(lambda x: bb.sum(x, axis=1) * 2, x="M K"))).final
    text = "block M 16, K 64 whole\nsplit-lanes nest 1 K 32\nwalk nest 1 M 2\nwarps 1\n"
    kernel = bb.emit(graph, dict(M=16, K=40), "float32", schedule=text)
    (found,) = run_interpreted(kernel, dict(x=np.ones((16, 40), "float32"))).values()

    assert settled(kernel.source) == 0
    assert (found == 80).all()


def test_folds_in_two_steps_only_where_rows_would_be_exchanged(monkeypatch):
    def text(dtype="float32", lanes=512):
        program = bb.lower(bb.trace(lambda x: bb.sum(x, axis=0), x="M N"))
        graph = bb.fuse(program).final
        return bb.emit(graph, dict(M=300, N=1000), dtype, tiles=dict(N=lanes)).source

    apart = REASONS["two_steps"]
    assert apart in text()
    assert apart not in text("float16")
    assert apart not in text(lanes=64)
    monkeypatch.setattr(work_around_locality, "not_exchanged", lambda fold, uses: "no")
    assert apart not in text()
    monkeypatch.setattr(work_around_locality, "not_exchanged", lambda fold, uses: "")
    assert apart in text("float16")


# accurate-functions --------------------------------------------------------------------


def test_functions_are_accurate_where_results_show_it():
    def softmax(dtype):
        return emitted(lambda x: bb.softmax(x, axis=1), dtype, x="M N").source

    assert "_exp(" in softmax("float32")
    assert "tl.div_rn(" in softmax("float32")
    assert "_exp(" not in softmax("float16")
    assert "tl.div_rn(" not in softmax("float16")


def test_beside_a_dot_exp_is_the_gpu_s_own(monkeypatch):
    assert "= tl.exp(" in source(dtype="float32", M=32, N=32)
    monkeypatch.setattr(accurate_functions, "not_shown", lambda fn, program, nest: "")
    assert "= tl.exp(" not in source(dtype="float32", M=32, N=32)


# all of them -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", TEXTS)
def test_closed_programs_are_well_formed_and_keep_their_numbers(name):
    graph = graph_of(name)
    sizes = sizes_of(graph)
    inputs, blocks = inputs_for(graph, sizes), ragged_blocks(graph, sizes)
    wanted = evaluate(graph, inputs, sizes=sizes, block_sizes=blocks)
    tiles = lower_to_tiles(graph)
    cut = {dim: blocks[size_class(dim)] for dim in blocked_dims(tiles)}
    program = scheduled_of(tiles, sizes=sizes, blocks=cut).program

    verify_tiles(program)
    for padded in (False, True):
        found = run_numpy(program, inputs, sizes, blocks, folder=FOLDER, padded=padded)
        for output, array in wanted.items():
            np.testing.assert_allclose(found[output], array, rtol=1e-9, atol=1e-9)
