"""Variances around the mean, and shifts back in products: what is rewritten, and what it gains."""

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.interp.evaluate import evaluate
from blockbuster.interp.semantics import Float32, Float64
from blockbuster.ir.expr import Arg, Const, Expr, Size, call
from blockbuster.ir.graph import Graph
from blockbuster.ir.ops import Map
from blockbuster.ir.show import show
from blockbuster.ir.verify import verify
from blockbuster.rules import fuse
from blockbuster.rules.centering import centered
from blockbuster.rules.shift_invariance import around_mean, equal, minus_mean

SIZES = {"M": 5, "K": 70, "N": 4, "D": 3}
BLOCKS = {"M": 2, "K": 3, "N": 2, "D": 2}
X = {"x": "M K"}
XW = {"x": "M K", "w": "K N"}


def normed(x):
    return bb.layer_norm(x)


def normed_matmul(x, w):
    return bb.layer_norm(x) @ w


def affine_matmul(x, w, g, b):
    return bb.layer_norm(x, g, b) @ w


def gated(x, w, v):
    n = bb.layer_norm(x)
    return bb.silu(n @ w) * (n @ v)


def residual(x, r, w):
    return bb.layer_norm(x + r) @ w


def back_to_rows(x, w, v):
    return bb.layer_norm(x) @ w @ v


def by_hand(x, w):
    mean = bb.mean(x, axis=-1, keepdims=True)
    variance = bb.mean(x * x, axis=-1, keepdims=True) - mean * mean
    return ((x - mean) * bb.rsqrt(variance + 1e-5)) @ w


def after_matmul(x, u, w):
    return by_hand(x @ u, w)


def of_columns(x):
    mean = bb.mean(x, axis=0)
    return (x - mean) * bb.rsqrt(bb.mean(bb.square(x), axis=0) - bb.square(mean) + 1e-5)


def with_second_moment(x):
    return bb.mean(bb.square(x), axis=-1), bb.layer_norm(x)


PROGRAMS = {
    normed: X,
    normed_matmul: XW,
    affine_matmul: {**XW, "g": "K", "b": "K"},
    gated: {**XW, "v": "K N"},
    residual: {"x": "M K", "r": "M K", "w": "K N"},
    by_hand: XW,
    of_columns: X,
    with_second_moment: X,
}


def final(function, inputs) -> Graph:
    return fuse(bb.lower(bb.trace(function, **inputs))).final


def drawn(inputs, mean: float = 0.0) -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    arrays = {n: random.standard_normal([SIZES[d] for d in s.split()]) for n, s in inputs.items()}
    return {n: x + mean if n == "x" else x for n, x in arrays.items()}


def results(graph: Graph, arrays, semantics=Float64) -> list[np.ndarray]:
    dims = {d for given in graph.inputs for d in (*given.type.lists, *given.type.axes)}
    blocks = {d: n for d, n in BLOCKS.items() if d in dims}
    return list(evaluate(graph, arrays, blocks=blocks, semantics=semantics).values())


def loops(graph: Graph, dim: str) -> list[Map]:
    """The maps over ``dim``, at any depth, in order."""
    maps = [node.op for node in graph.nodes if isinstance(node.op, Map)]
    return [m for op in maps for m in ([op] if op.dim == dim else loops(op.body, dim))]


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_values_and_types_stay(function):
    inputs = PROGRAMS[function]
    derivation = fuse(bb.lower(bb.trace(function, **inputs)))
    for graph in derivation.snapshots:
        made = centered(graph)
        verify(made)

        assert made != graph
        for ours, theirs in zip(
            results(made, drawn(inputs)), results(graph, drawn(inputs)), strict=True
        ):
            np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_digits_are_kept_where_the_mean_is_many_deviations(function):
    inputs = PROGRAMS[function]
    graph = final(function, inputs)
    single = {n: x.astype(np.float32) for n, x in drawn(inputs, mean=300.0).items()}
    arrays = {n: x.astype(float) for n, x in single.items()}
    exact = results(graph, arrays)[-1]

    def error(found: np.ndarray) -> float:
        return float(np.abs(found - exact).max() / np.abs(exact).max())

    eager = function(**single)
    ours = error(results(bb.safe(graph), arrays, Float32)[-1])
    assert ours < 4 * error(eager[-1] if isinstance(eager, tuple) else eager) + 1e-6
    assert error(results(graph, arrays, Float32)[-1]) > 20 * ours


def bodies(graph: Graph, dim: str) -> list[str]:
    """The bodies of the maps over ``dim``, without their inputs."""
    texts = [show(op.body) for op in loops(graph, dim)]
    return [" ".join(line.strip() for line in t.splitlines()[1:-1]) for t in texts]


@pytest.mark.parametrize("function", [normed_matmul, by_hand])
def test_a_fused_layernorm_and_matmul_is_parted_in_three_loops(function):
    assert bodies(bb.safe(final(function, XW)), "K") == [
        "s = row_sum(x) return s",
        "d = x + c over [M,K] u = row_sum(d) q = square(d) s = row_sum(q) return u, s",
        "y = (x + c) * r over [M,K] t1 = dot(y, in3) return t1",
    ]


def test_dots_of_several_weights_read_the_same_normalized_rows():
    *_, last = bodies(bb.safe(final(gated, PROGRAMS[gated])), "K")

    assert last == "y = (x + c) * r over [M,K] t1 = dot(y, v) t2 = dot(y, w) return t1, t2"


def test_rows_that_something_else_reads_unscaled_are_only_shifted():
    def both_scales(x, w):
        mean = bb.mean(x, axis=-1, keepdims=True)
        variance = bb.mean(bb.square(x), axis=-1, keepdims=True) - bb.square(mean)
        y = (x - mean) @ w
        return y, y * bb.rsqrt(variance + 1e-5)

    *_, last = bodies(bb.safe(final(both_scales, XW)), "K")

    assert last.startswith("d = x + c over [M,K]")
    assert "dot(d, " in last


@pytest.mark.parametrize("columns", ["K", "L"])
def test_a_loop_need_not_have_the_name_of_its_size(columns):
    """Where the result has columns K, the loops over the rows of x are called K'."""
    graph = final(back_to_rows, {"x": "M K", "w": "K N", "v": f"N {columns}"})
    parted = loops(centered(graph), "K'" if columns == "K" else "K")

    assert len(parted) == len(loops(graph, parted[0].dim)) + 1


def test_it_is_done_once():
    for function, inputs in PROGRAMS.items():
        made = centered(final(function, inputs))

        assert centered(made) == made


def test_what_else_reads_the_squares_keeps_them():
    graph = centered(final(with_second_moment, X))
    squares = [body for body in bodies(graph, "K") if "square" in body]

    assert len(squares) == 2  # the mean square as asked for, and the one around the mean


def test_the_result_of_a_matmul_is_not_computed_twice():
    graph = final(after_matmul, {"x": "M D", "u": "D K", "w": "K N"})
    notes: list[str] = []

    assert centered(graph, notes.append) == graph
    assert notes == [
        "p comes of a matmul, which nobody wants to compute twice: its variance along K stays"
        " E[x^2] - E[x]^2, which loses digits where the mean is many deviations"
    ]


def test_programs_without_a_variance_are_left_alone():
    def rms(x, w):
        return bb.rms_norm(x) @ w

    def moments(x):
        return bb.mean(x, axis=-1), bb.mean(bb.square(x), axis=-1)

    for function, inputs in ((rms, XW), (moments, X)):
        graph = final(function, inputs)
        assert centered(graph) is graph


def test_it_is_part_of_numerical_safety_and_its_note_reaches_the_report():
    assert bb.safe(final(normed, X)) == centered(final(normed, X))

    jitted = bb.jit(after_matmul)
    arrays = [np.ones((4, 2)), np.ones((2, 6)), np.ones((6, 3))]
    assert "loses digits" in str(jitted.compiled_for(*arrays).report)


# expressions ------------------------------------------------------------------------------

SHARE = call("div", 1, Size("K"))
MEAN = call("mul", Arg(0), SHARE)
SQUARES = call("mul", Arg(1), SHARE)


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        (call("sub", SQUARES, call("square", MEAN)), SQUARES),
        (call("sub", SQUARES, call("mul", MEAN, MEAN)), SQUARES),
        (
            call("div", call("sub", Arg(1), call("mul", Arg(0), MEAN)), call("sub", Size("K"), 1)),
            call("div", Arg(1), call("sub", Size("K"), 1)),  # divided by one less than the count
        ),
        (
            call("rsqrt", call("maximum", call("sub", SQUARES, call("square", MEAN)), 0)),
            call("rsqrt", call("maximum", SQUARES, 0)),
        ),
        (
            call("add", call("sub", SQUARES, call("square", MEAN)), Arg(2)),
            call("add", SQUARES, Arg(2)),
        ),
    ],
)
def test_what_a_shift_does_not_change_is_found_however_it_is_spelled(expr: Expr, expected: Expr):
    assert around_mean(expr, "K", Arg(1)) == expected


@pytest.mark.parametrize(
    "expr",
    [
        SQUARES,
        call("sub", SQUARES, MEAN),
        call("add", SQUARES, call("square", MEAN)),
        call("sub", SQUARES, call("mul", call("square", MEAN), Const(1.0000001))),
        call("sub", call("div", Arg(1), Size("N")), call("square", call("div", Arg(0), Size("N")))),
        call("exp", SQUARES),
        call("sub", SQUARES, Const(float("inf"))),
    ],
)
def test_what_a_shift_changes_is_left_alone(expr: Expr):
    assert around_mean(expr, "K", Arg(9)) == expr


def test_minus_the_mean_is_recognized_by_its_value():
    assert equal(call("div", call("neg", Arg(0)), Size("K")), minus_mean("K"), "K")
    assert not equal(MEAN, minus_mean("K"), "K")
    assert not equal(call("exp", Arg(0)), minus_mean("K"), "K")
