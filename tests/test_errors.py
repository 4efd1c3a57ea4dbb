import numpy as np
import pytest

import blockbuster as bb
from blockbuster import errors
from blockbuster.errors import message

LISTING = "\n".join(f"line {number}" for number in range(10))


def test_shows_two_lines_on_either_side_of_the_mark():
    text = message("wrong", listing=LISTING, mark=4)

    assert text.splitlines() == [
        "wrong",
        "    line 2",
        "    line 3",
        ">   line 4",
        "    line 5",
        "    line 6",
    ]


@pytest.mark.parametrize(("mark", "shown"), [(0, 3), (9, 3), (1, 4)])
def test_window_stops_at_the_ends_of_the_listing(mark, shown):
    assert len(message("wrong", listing=LISTING, mark=mark).splitlines()) == 1 + shown


def test_shows_the_whole_listing_without_a_mark():
    assert message("wrong", listing=LISTING).count("\n") == 10


def test_order_is_what_value_listing_origin_hint():
    text = message("what", value="", listing="a", mark=0, origin="from here", hint="two\nlines")

    assert text == "what\n  value: ''\n>   a\n  from here\n  hint: two\n        lines"


def test_every_public_error_is_a_blockbuster_error():
    found = [
        name
        for name, item in vars(errors).items()
        if isinstance(item, type) and issubclass(item, errors.BlockbusterError)
    ]

    assert found == [
        "BlockbusterError",
        "TraceError",
        "VerifyError",
        "ParseError",
        "RuleError",
        "FusionError",
        "EmitError",
        "LaunchError",
        "DrawError",
    ]


def rows(x):
    return bb.softmax(x)


PROGRAM = bb.trace(rows, x="M N")
GRAPH = bb.lower(PROGRAM)


TAKE_GRAPHS = [
    bb.verify,
    bb.explain,
    bb.traffic,
    lambda graph, _: bb.prove_equal(GRAPH, graph),
    lambda graph, _: bb.prove_equal(graph, GRAPH),
    bb.evaluate,
    lambda graph, _: bb.fuse(graph),
    lambda graph, _: bb.safe(graph),
    lambda graph, _: bb.overflowing(graph),
]


@pytest.mark.parametrize("function", [*TAKE_GRAPHS, bb.emit])
@pytest.mark.parametrize(
    ("given", "text"),
    [
        (rows, r"expected a block program, got a function[\s\S]*bb\.lower\(bb\.trace\(fn"),
        (PROGRAM, r"expected a block program, got an ArrayProgram[\s\S]*bb\.lower\(program\)"),
        (3, r"expected a block program, got an int[\s\S]*bb\.lower\(bb\.trace\(fn"),
        (GRAPH.show(), r"expected a block program, got a str[\s\S]*bb\.parse\(text\)"),
    ],
)
def test_what_is_no_block_program_is_told_by_its_name(function, given, text):
    with pytest.raises(TypeError, match=text):
        function(given, {})


@pytest.mark.parametrize("function", TAKE_GRAPHS)
def test_a_derivation_is_a_block_program_to_emit_alone(function):
    text = r"expected a block program, got a Derivation[\s\S]*derivation\.final"
    with pytest.raises(TypeError, match=text):
        function(bb.fuse(GRAPH), {})


def test_what_is_no_array_program_or_function():
    text = r"expected an array program, got a function[\s\S]*bb\.trace"
    with pytest.raises(TypeError, match=text):
        bb.lower(rows)
    with pytest.raises(TypeError, match=r"expected an array program, got a Graph"):
        bb.compile(GRAPH, {})
    with pytest.raises(TypeError, match=r"bb\.jit takes a function, not a Graph"):
        bb.jit(GRAPH)


def test_an_explanation_names_a_function_of_whole_arrays():
    graph = bb.lower(bb.trace(lambda x, w: np.sort(bb.exp(x)) @ w, x="M K", w="K N"))

    assert all("np.sort[-1] is a function" in e.reason for e in bb.explain(bb.fuse(graph).final))


def chained(x, w):
    return bb.softmax(x @ w, axis=-1)


CHAINED = bb.trace(chained, x="M K", w="K N")
CHAIN = bb.lower(CHAINED)
SIZES = {"M": 32, "K": 32, "N": 32}
WITH_DTYPE = {
    "emit a graph": lambda dtype: bb.emit(CHAIN, SIZES, dtype=dtype),
    "emit a derivation": lambda dtype: bb.emit(bb.fuse(CHAIN), SIZES, dtype=dtype),
    "check_schedule": lambda dtype: bb.check_schedule(CHAIN, "", SIZES, dtype=dtype),
    "compile": lambda dtype: bb.compile(CHAINED, SIZES, dtype=dtype, machine="cpu"),
    "tune": lambda dtype: bb.tune(CHAINED, SIZES, dtype=dtype),
}
NO_DTYPES = {
    "None": (None, TypeError, "dtype is None"),
    "nothing": ("", ValueError, "no kernel is written for dtype ''"),
    "a space more": ("float16 ", ValueError, "dtype 'float16 '\n  hint: did you mean 'float16'"),
    "a class": (float, TypeError, "dtype is a type"),
    "NumPy's": (np.dtype("float16"), TypeError, "dtype is a Float16DType"),
    "bytes": (b"float16", TypeError, "dtype is a bytes"),
    "a list": (["float16"], TypeError, "dtype is a list"),
}


@pytest.mark.parametrize("call", WITH_DTYPE)
@pytest.mark.parametrize(("dtype", "kind", "words"), NO_DTYPES.values(), ids=NO_DTYPES)
def test_what_is_no_dtype_is_told(call, dtype, kind, words):
    with pytest.raises(kind, match=words):
        WITH_DTYPE[call](dtype)


WITH_SIZES = {
    "traffic": lambda sizes: bb.traffic(CHAIN, sizes),
    "emit": lambda sizes: bb.emit(CHAIN, sizes),
    "compile": lambda sizes: bb.compile(CHAINED, sizes, dtype="float64", machine="cpu"),
    "explain": lambda sizes: bb.explain(CHAIN, sizes),
}


@pytest.mark.parametrize("call", WITH_SIZES)
@pytest.mark.parametrize("size", [10**30, 10**400, 2**63])
def test_a_size_that_no_index_can_hold_is_told(call, size):
    with pytest.raises(ValueError, match=r"sizes: M is too large, expected less than 2\*\*63"):
        WITH_SIZES[call]({**SIZES, "M": size})


@pytest.mark.parametrize("call", WITH_SIZES)
@pytest.mark.parametrize("size", [-1, 1.5, "3", None, True, float("inf"), float("nan")])
def test_a_size_that_is_no_whole_number_is_told(call, size):
    with pytest.raises(ValueError, match=r"sizes: M is .*, expected a whole number of at least 0"):
        WITH_SIZES[call]({**SIZES, "M": size})


def test_traffic_counts_the_largest_sizes():
    assert bb.traffic(CHAIN, {**SIZES, "M": 2**63 - 1}).bytes > 2**63
