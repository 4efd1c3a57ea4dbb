"""The text itself: readable, loop-free as a reference, loaded from a file named by its content."""

import ast
import inspect

import numpy as np
import pytest

import blockbuster as bb
import blockbuster.frontend as frontend
from blockbuster.emit.closing.wide_sums import wide_sums
from blockbuster.emit.print.numpy.reference import reference_text
from blockbuster.emit.print.numpy.text import numpy_text
from blockbuster.emit.target.load import load_module
from blockbuster.emit.tile.array_dtypes import typed_for_cpu
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.interp.binding import sources
from blockbuster.interp.evaluate import evaluate
from blockbuster.ir.parse import parse
from tests.emit.cases import FOLDER, TEXTS, graph_of, inputs_for, sizes_of
from tests.frontend.programs import OPAQUE, PROGRAMS
from tests.frontend.programs import inputs_for as arrays_for


def test_golden(golden):
    program = typed_for_cpu(lower_to_tiles(graph_of("attention final")), "float32")
    golden("numpy/attention_final.txt", numpy_text(wide_sums(program)))


def test_golden_reference(golden):
    golden("numpy/attention_reference.txt", reference_text(graph_of("attention final")))


@pytest.mark.parametrize("name", TEXTS)
def test_a_reference_has_no_loops(name):
    tree = ast.parse(reference_text(graph_of(name)))

    assert not any(isinstance(node, ast.For | ast.While) for node in ast.walk(tree))


@pytest.mark.parametrize("name", [*TEXTS, "causal batched", "alibi", "unit row", "cast", "masks"])
def test_a_reference_computes_the_outputs(name):
    graph = graph_of(name)
    inputs = inputs_for(graph, sizes_of(graph))
    wanted = list(evaluate(graph, inputs).values())
    module = load_module(reference_text(graph, name="expected"), FOLDER)
    results = module.expected(*(inputs[source] for source in sources(graph)))
    results = results if isinstance(results, tuple) else (results,)

    for result, array in zip(results, wanted, strict=True):
        np.testing.assert_allclose(result, array, rtol=1e-9)


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in OPAQUE])
def test_the_reference_of_an_unfused_program_is_the_function(name):
    """As the user wrote it: what files compare with, beside the oracle."""
    function, dims = PROGRAMS[name]
    program = frontend.trace(function, **dims)
    arrays = arrays_for(program, {})
    graph = frontend.lower(program)
    module = load_module(reference_text(graph), FOLDER)
    options = inspect.signature(module.reference).parameters.values()
    sizes = program.bind(arrays)
    free = {o.name: sizes[o.name] for o in options if o.kind is o.KEYWORD_ONLY and o.name in sizes}
    results = module.reference(*(arrays[source] for source in sources(graph)), **free)
    results = results if isinstance(results, tuple) else (results,)

    for result, wanted in zip(results, program.numpy(arrays).values(), strict=True):
        np.testing.assert_allclose(result, wanted, rtol=1e-9, atol=1e-12)


def test_the_reference_of_an_unfused_program_reads_like_numpy():
    def geglu(x, w, v):
        return frontend.gelu(x @ w) * (x @ v)

    graph = frontend.lower(frontend.trace(geglu, x="M K", w="K F", v="K F"))
    body = reference_text(graph).partition("v = np.asarray(v, dtype)\n")[2]

    assert [line.split("  #")[0].strip() for line in body.splitlines()] == [
        "t3 = x @ w",
        "t7 = gelu(t3)",
        "t10 = x @ v",
        "t15 = t7 * t10",
        "return t15",
    ]


def test_sizes_that_no_array_shows_are_arguments():
    graph = parse("""
graph(x: [], J: N[N] = index(N)) {
  Y = map N (j in !J, y = x) { z = j * y over [N]  yield z }
  return Y
}
""")
    module = load_module(reference_text(graph), FOLDER)

    np.testing.assert_array_equal(module.reference(np.array(2.0), N=3), [0, 2, 4])


def test_names_of_the_program_do_not_clash_with_the_text():
    graph = parse("""
graph(np: M,N[M,N], M: M[M], t1: N[N], range: N[N]) {
  sizes = map M (a in !np, m in !M, t = !t1, r = !range) {
    y = map N (b in !a, c in !t, d in !r, m2 = m) {
      z = b * m2 + c - d over [M,N]
      yield z
    }
    yield y
  }
  return dtype = sizes
}
""")
    rng = np.random.default_rng(0)
    inputs = {"np": rng.normal(size=(3, 4)), "M": rng.normal(size=3)}
    inputs |= {"t1": rng.normal(size=4), "range": rng.normal(size=4)}
    module = load_module(numpy_text(lower_to_tiles(graph)), FOLDER)
    results = module.run(inputs, {"M": 3, "N": 4}, {"M": 2, "N": 3})

    np.testing.assert_allclose(results["dtype"], evaluate(graph, inputs)["dtype"])


def test_equal_texts_are_one_module_and_one_file(tmp_path):
    text = "def f():\n    return 41\n"
    module = load_module(text, tmp_path)

    assert load_module(text, tmp_path) is module
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == [f"{module.__name__}.py"]
    assert inspect.getsource(module.f) == text


def test_a_damaged_file_is_written_again(tmp_path):
    text = "VALUE = 7\n"
    name = load_module(text, tmp_path).__name__
    (tmp_path / f"{name}.py").write_text("VALUE = ")
    import sys

    del sys.modules[name]
    assert load_module(text, tmp_path).VALUE == 7


def test_a_module_that_fails_is_not_kept(tmp_path):
    with pytest.raises(ZeroDivisionError):
        load_module("1 / 0\n", tmp_path)
    with pytest.raises(ZeroDivisionError):
        load_module("1 / 0\n", tmp_path)


@pytest.mark.parametrize("columns", [4, 8, 9])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_columns_are_negated_into_columns(columns, dtype):
    def turned(x):
        y = x[:, 1:4]
        return np.concatenate([np.exp(y[:, 1:]), -y[:, :1]], 1)

    x = np.arange(5 * columns, dtype=dtype).reshape(5, columns) / 9

    np.testing.assert_array_equal(bb.jit(turned)(x)[:, 2], turned(x)[:, 2])
