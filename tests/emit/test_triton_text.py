"""Emitted files as text: they read well, stand alone, and say what they refuse."""

import ast
import subprocess
import sys

import pytest

from blockbuster.emission import emit
from blockbuster.errors import EmitError
from blockbuster.ir.parse import parse
from tests.emit.cases import graph_of, sizes_of

SIZES = {"M": 64, "N": 100, "D": 16, "L": 16}


def attention(**options):
    return emit(graph_of("attention safe"), SIZES, **options)


def function(source, name):
    tree = ast.parse(source)
    (found,) = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == name]
    return ast.get_source_segment(source, found)


def test_the_fused_program_is_one_kernel():
    source = attention(tiles={"M": 32, "N": 32}).source
    text = function(source, "out_kernel" if "def out_kernel" in source else "O_kernel")

    assert source.count("@triton.jit\ndef out_kernel") == 1
    assert "for n0 in range(0, N, BLOCK_N):" in text
    assert source.count("num_stages=2") == 1
    assert "offs_m = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M)).to(INDEX)" in text
    assert text.count("tl.load(") == 3
    assert text.count("tl.store(") == 1


def test_masks_stand_only_where_lanes_may_be_past_the_end():
    text = function(attention(tiles={"M": 32, "N": 32}).source, "out_kernel")

    assert "mask_n = offs_n < N" in text  # 100 is no multiple of 32
    assert "mask_m" not in text  # 64 is
    assert "mask_d" not in text
    assert "mask_l" not in text


def test_a_dot_that_is_only_summed_takes_the_sum_as_its_operand():
    source = emit(graph_of("layer norm final"), {"M": 64, "N": 64, "K": 64}).source

    assert "tl.dot(" in source
    assert any(
        line.count("tl.dot(") and line.split(" = ")[0].strip() in line.split("tl.dot(")[1]
        for line in source.splitlines()
    )


def test_a_tile_for_dots_and_arithmetic_is_not_pipelined():
    mixed = emit(graph_of("layer norm final"), {"M": 64, "N": 64, "K": 256}).source
    plain = attention().source

    assert "tl.range" not in mixed
    assert "num_stages=2" in plain


COLUMN_SUMS = """
graph(XT: M,N[M,N] = X(N,M)) {{
  S = map M (x in !XT) {{
    s = map N (b in !x) {{ r = row_sum(b)  yield +r }}
    {body}
    yield t
  }}
  return S
}}
"""


@pytest.mark.parametrize(
    ("body", "count"),
    [("t = s", 0), ("t = s * s", 1), ("t = s * 2", 1), ("t = recip0(s)", 1)],
)
def test_a_sum_is_read_once_behind_its_loop(body, count):
    """Triton 3.6 fails on others; one store is what reads it for sure once.

    In a loop of several iterations nothing sums lanes: they are summed behind it. And rows that are
    one block need no loop.
    """
    said = " + 0.0  # Triton 3.6 wants a loop's sum read once"
    text = COLUMN_SUMS.format(body="" if body == "t = s" else body)
    text = text.replace("yield t", "yield s") if body == "t = s" else text
    short, long = (emit(parse(text), {"M": 500, "N": size}).source for size in (100, 1000))

    assert short.count(said) == count
    assert long.count(said) == 0


def test_what_can_overflow_is_named():
    graph = parse("graph(X: M[M]) { Y = map M (x in X) { y = log(1 + exp(x)) yield y } return Y }")
    kernel = emit(graph, {"M": 64})

    assert kernel.notes == ("exp can overflow: log takes it as it is written",)
    assert f"Note: {kernel.notes[0]}.\n" in kernel.source
    assert attention().notes == ()
    assert "Note:" not in attention().source


def test_dims_that_are_columns_here_and_rows_there_get_smaller_tiles():
    graph = parse("""graph(X: M,N[M,N]) {
      A = map M (x in !X) { a = map N (b in !x) { r = row_sum(b) yield +r } yield a }
      F = transpose N,M[N,M] (!X)
      B = map N (x in !F) { a = map M (b in !x) { r = row_sum(b) yield +r } yield a }
      E = map M (x in !X) { e = map N (b in !x) { c = exp(b) yield c } yield e }
      return a = A, b = B, e = E
    }""")
    tiles = emit(graph, {"M": 4000, "N": 4000}).tiles

    assert tiles["M"] * tiles["N"] <= 2048
    assert min(tiles.values()) >= 16


def test_float32_asks_for_exact_products():
    assert 'input_precision="ieee"' in attention(dtype="float32").source
    assert "input_precision" not in attention(dtype="float16").source


def test_stands_alone():
    for name in ("attention safe", "layer norm start", "swiglu final"):
        graph = graph_of(name)
        source = emit(graph, dict.fromkeys(sizes_of(graph), 40)).source
        imported = {
            alias.name
            for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.Import)
            for alias in node.names
        }

        assert imported <= {
            "argparse", "contextlib", "ctypes", "functools", "math", "os", "sys", "numpy", "torch",
            "triton", "triton.language",
        }  # fmt: skip
        assert source.endswith("\n")
        assert not [line for line in source.splitlines() if line != line.rstrip()]


def test_statements_say_where_they_come_from():
    source = emit(graph_of("two outputs"), {"M": 8, "K": 8, "N": 8}).source

    assert "programs.py:" in source


SCRIPT = """
from tests.emit.cases import graph_of, sizes_of
from blockbuster.emission import emit
print(emit(graph_of("decoder"), {d: 20 for d in "MDE"}).source)
"""


def test_the_text_is_the_same_in_every_process():
    texts = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": "."},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]

    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"sizes": {"M": 4, "N": 4, "D": 4}}, "no size given for L"),
        ({"sizes": SIZES | {"P": 3}}, "unknown dim 'P' in sizes\n  hint: known: "),
        ({"tiles": {"P": 16}}, "unknown dim 'P' in tiles"),
        ({"tiles": {"M": 48}}, "the tile of M is 48, expected a power of two of at least 16"),
        ({"tiles": {"N": 8}}, "the tile of N is 8, expected a power of two of at least 16"),
        ({"dtype": "int8"}, "no kernel is written for dtype 'int8'\n  hint: known: float16"),
        ({"target": "sm_70"}, "unknown target 'sm_70'\n  hint: did you mean 'sm_90'"),
        ({"sizes": SIZES | {"M": -1}}, "sizes: M is -1"),
    ],
)
def test_wrong_arguments(options, expected):
    sizes = options.pop("sizes", SIZES)

    with pytest.raises(ValueError, match=expected):
        emit(graph_of("attention safe"), sizes, **options)


def test_refuses_what_has_no_tiles():
    with pytest.raises(EmitError, match=r"has no tiles(.|\n)*bb\.jit and bb\.compile run it"):
        emit(graph_of("sort"), {"M": 4, "N": 4})
    graph = parse("graph(X: [M,N]) { y = row_sum(X) return y }")
    with pytest.raises(EmitError, match="more than the 1048576 elements that Triton takes"):
        emit(graph, {"M": 4096, "N": 4096})


def test_refuses_an_output_shaped_by_the_tiles():
    graph = parse(
        "graph(X: M,N[M,N]) { P = map M (x in !X) { y = map N (b in !x) { t = row_sum(b) yield t }"
        " yield y } return P }"
    )

    assert "def launch" in emit(graph, {"M": 32, "N": 32}).source


def test_names_that_a_file_needs_itself_give_way():
    graph = parse("graph(launch: M[M], np: M[M]) { Y = map M (a in !launch, b in !np)"
                  " { y = a * b  yield y } return Y }")  # fmt: skip
    kernel = emit(graph, {"M": 8}, "float32")

    assert kernel.inputs == ("launch", "np")
    assert "def launch(launch_2, np_2, out=None):" in kernel.source


def test_write(tmp_path):
    kernel = attention()
    path = kernel.write(tmp_path / "attention.py")

    assert path.read_text() == kernel.source
    assert kernel.tiles == {"M": 64, "N": 64, "D": 16, "L": 16}
