"""How rows are divided and shifted where results are float32, and where they stay as they were."""

from dataclasses import replace

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.emission import emit
from blockbuster.emit.schedule.finish_rows import finish_of, not_finishable
from blockbuster.emit.tile.listing import listing
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.program import statements
from blockbuster.emit.tile.verify import verify_tiles
from blockbuster.interp.evaluate import evaluate
from blockbuster.ir.parse import parse
from blockbuster.runtime.launch import run_interpreted
from tests.emit.cases import FOLDER, changed_by, finish_rows
from tests.emit.numpy_runs import run_numpy

NORMALIZED = """
graph(X: M,N[M,N]) {
  Y = map M (x in !X) {
    s = map N (b in !x) { r = row_sum(b)  yield +r }
    i = recip0(s)
    y = map N (b in !x, i2 = i) { z = row_scale(b, i2)  yield z }
    yield y
  }
  return Y
}
"""
SHIFTED = """
graph(X: M,N[M,N], T: M[M]) {
  Y = map M (x in !X, t in !T) {
    s = map N (b in !x) { r = row_sum(b)  yield +r }
    c = -(log(s) + t)
    y = map N (b in !x, c2 = c) { z = row_shift(b, c2)  yield z }
    yield y
  }
  return Y
}
"""
DOTS = """
graph(X: M,N[M,N], W: L,N[L,N]) {
  Y = map M (x in !X, w = !W) {
    s = map N (b in !x) { r = row_sum(b)  yield +r }
    i = recip0(s)
    y = map L (v in !w, i2 = i, x2 = !x) {
      p = map N (b in !x2, c in !v, i3 = i2) {
        z = row_scale(b, i3)
        d = dot(z, c)
        yield +d
      }
      yield p
    }
    yield y
  }
  return Y
}
"""


def lowered(text):
    return lower_to_tiles(parse(text))


def finished(text):
    program = lowered(text)
    return finish_rows(program)


def reason(text):
    """Why the first value that could be finished is not."""
    program = lowered(text)
    (nest,) = program.nests
    let = next(s for s in statements(nest.body) if finish_of(s))
    return not_finishable(let, finish_of(let).functions, program)


def test_a_row_is_divided_by_its_sum():
    assert listing(finished(NORMALIZED)) == (
        "forall m in range(M):\n"
        " for n in range(N):\n"
        "  t2 = load(X[m,n])\n"
        "  t1 += row_sum(t2)\n"
        " t3 = where(t1 == 0, inf, where(abs(t1) == inf, nan, t1))\n"
        " forall n in range(N):\n"
        "  t4 = load(X[m,n])\n"
        "  t5 = t4 / t3\n"
        "  store(t5,O[m,n])\n"
    )


def test_the_exponent_goes_first():
    text = listing(finished(SHIFTED))

    assert " t4 = -t3\n t5 = -log(t1)\n" in text
    assert "= t6 + t4 + t5\n" in text


@pytest.mark.parametrize(
    ("written", "made"),
    [
        ("z = b * i2 over [M,N]", "t4 / t3"),
        ("z = 2 * (i2 * exp(b)) over [M,N]", "2 * (exp(t4) / t3)"),
        ("z = b * i2 + 1 over [M,N]", "t4 / t3 + 1"),
    ],
)
def test_factors_inside_expressions(written, made):
    assert f"= {made}\n" in listing(finished(NORMALIZED.replace("z = row_scale(b, i2)", written)))


def test_a_reciprocal_without_a_case_for_zero_is_a_plain_divisor():
    text = listing(finished(NORMALIZED.replace("recip0", "reciprocal")))

    assert " t3 = t1\n" in text
    assert "= t4 / t3\n" in text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (NORMALIZED.replace("row_scale", "row_shift"), "is read as something else"),
        (NORMALIZED.replace("row_scale(b, i2)", "i2 / b over [M,N]"), "is read as something else"),
        (
            NORMALIZED.replace("row_scale(b, i2)", "i2 * exp(i2 + b) over [M,N]"),
            "is read as something else",
        ),
        (SHIFTED.replace("row_shift", "row_scale"), "is read as something else"),
        (SHIFTED.replace("row_shift(b, c2)", "c2 - b over [M,N]"), "is read as something else"),
    ],
)
def test_what_stays(text, why):
    program = lowered(text)

    assert reason(text).endswith(why)
    assert finish_rows(program) == program


def test_rows_beside_a_dot_stay_though_they_could_be_finished():
    program = lowered(DOTS)

    assert reason(DOTS) == ""
    assert finish_rows(program) == program


def test_reciprocals_of_elements_stay():
    text = NORMALIZED.replace("z = row_scale(b, i2)", "r = recip0(b)  z = mul(b, r)")

    assert reason(text.replace("    i = recip0(s)", "    i = exp(s)")).endswith(
        "has an entry per element"
    )


def test_a_value_that_nobody_reads_here_stays():
    program = lowered(NORMALIZED)
    (nest,) = program.nests
    let = next(s for s in statements(nest.body) if finish_of(s))
    alone = replace(program, nests=(replace(nest, body=(let,)),))

    assert not_finishable(let, {"mul": "div"}, alone).endswith("not read here")


def test_a_row_that_sums_to_zero_is_zero():
    x = np.array([[1.0, -1.0, 0.0], [1.0, 2.0, 1.0]])
    (found,) = run_numpy(finished(NORMALIZED), {"X": x}, None, {"N": 2}, folder=FOLDER).values()

    np.testing.assert_array_equal(found, [[0, 0, 0], [0.25, 0.5, 0.25]])


def test_every_array_program_keeps_its_numbers():
    assert changed_by(lambda program: finish_rows(program)) >= 3


def test_a_quotient_is_rounded_once():
    x = np.random.default_rng(0).uniform(size=(64, 300)).astype(np.float32)
    sums = x.sum(axis=1, dtype=np.float64).astype(np.float32)  # as the text adds them
    exact = x.astype(np.float64) / sums.astype(np.float64)[:, None]
    errors = []
    for program in (lowered(NORMALIZED), finished(NORMALIZED)):
        (y,) = run_numpy(program, {"X": x}, dtype=np.float32, folder=FOLDER).values()
        errors.append(np.abs(y - exact) / np.spacing(exact.astype(np.float32)))

    assert errors[1].max() <= 0.5 < 0.7 < errors[0].max()


def test_the_logarithm_is_not_lost_beside_the_exponent():
    rng = np.random.default_rng(0)
    x = (rng.normal(size=(64, 100)) + 1000).astype(np.float32)
    t = x.max(axis=1)
    exact = x.astype(np.float64) - np.log(x.sum(axis=1))[:, None] - t[:, None]
    errors = []
    for program in (lowered(SHIFTED), finished(SHIFTED)):
        (y,) = run_numpy(program, {"X": x, "T": t}, dtype=np.float32, folder=FOLDER).values()
        errors.append(np.abs(y - exact).max())

    assert errors[1] < errors[0] / 10


# the sum of each column is finished where rows are read: another nest
COLUMNS = """
graph(X: M,N[M,N], XT: N,M[N,M], T: N[N]) {
  z = map N (x in !XT, t in !T) {
    s = map M (b in !x) { r = row_sum(b)  yield +r }
    c = -(log(s) + t)
    yield c
  }
  Y = map M (x in !X, z2 = !z) {
    y = map N (b in !x, c2 in !z2) { q = col_shift(b, c2)  yield q }
    yield y
  }
  return Y
}
"""


def test_other_nests_read_the_parts():
    program = finished(COLUMNS)
    text = listing(program)

    verify_tiles(program)
    assert len(program.nests) == 2
    assert [buffer.name for buffer in program.workspaces] == ["I1", "I2"]
    assert text.count("store(") == 3
    assert text.count("load(I1[n])") == text.count("load(I2[n])") == 1


@pytest.mark.parametrize("changed", ["col_scale(b, c2)", "c2 - b over [M,N]"])
def test_a_workspace_that_is_read_as_something_else_stays(changed):
    program = lowered(COLUMNS.replace("col_shift(b, c2)", changed))

    assert finish_rows(program) == program


def test_a_value_that_is_a_result_too_stays():
    program = lowered(COLUMNS.replace("return Y", "return Y, z"))

    assert len(finish_rows(program).workspaces) == len(program.workspaces)


@pytest.mark.interpreter
def test_log_softmax_of_columns_in_the_interpreter():
    graph = bb.fuse(bb.lower(bb.trace(lambda x: bb.log_softmax(x, axis=0), x="M N"))).final
    x = (np.random.default_rng(0).normal(size=(60, 21)) + 1e4).astype(np.float32)
    exact = bb.log_softmax(x.astype(np.float64), axis=0)

    (found,) = run_interpreted(emit(graph, {"M": 60, "N": 21}, "float32"), {"x": x}).values()

    assert np.abs(found - exact).max() < 2e-6


def test_only_where_results_are_float32():
    sizes, graph = {"M": 64, "N": 512}, parse(NORMALIZED)

    assert "tl.div_rn(x_2, " not in emit(graph, sizes, "float16").source
    assert "_recip0(" in emit(graph, sizes, "float16").source
    assert "_recip0(" not in emit(graph, sizes, "float32").source


@pytest.mark.interpreter
def test_in_the_interpreter():
    sizes = {"M": 5, "N": 37}
    kernel = emit(parse(NORMALIZED), sizes, "float32", tiles={"M": 4, "N": 16})
    x = np.random.default_rng(2).uniform(size=(5, 37)).astype(np.float32)
    x[2] = 0
    (wanted,) = evaluate(parse(NORMALIZED), {"X": x.astype(np.float64)}).values()

    assert "tl.div_rn(" in kernel.source
    (found,) = run_interpreted(kernel, {"X": x}).values()
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
