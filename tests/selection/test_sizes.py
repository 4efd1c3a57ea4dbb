"""Sizes are bound once: every layer finds the same, and refuses the same in the same words."""

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.trips import bound_sizes
from blockbuster.errors import EmitError, LaunchError
from blockbuster.interp.binding import bind, sources
from blockbuster.ir.lengths import Rule, share_of, size
from blockbuster.ir.sizes import bind_sizes
from blockbuster.runtime.given import family_of
from blockbuster.selection.plans import plan as plan_module
from tests.random_programs.broad_arrays import broad_example

ARRAYS = [("x", ("M", "K")), ("w", ("K", 1)), ("b", ("M'",)), ("s", ())]
SHAPES = {"x": (2, 3), "w": (3, 1), "b": (2,), "s": ()}
HALF = Rule("H", size("K") * share_of(2))
SUM = Rule("T", size("M") + size("K"))
LEAST = Rule("K", size("M") + size("M"), exact=False)


def test_sizes_as_shown_given_and_following():
    assert bind_sizes(ARRAYS, SHAPES, [SUM], {"N": 7}) == {"N": 7, "M": 2, "K": 3, "T": 5}
    assert bind_sizes((), {}, [SUM], {"M'": 2, "K": 3}) == {"M": 2, "K": 3, "T": 5}
    assert bind_sizes((), {}) == {}


@pytest.mark.parametrize(
    ("change", "more", "text"),
    [
        ({"x": (2,)}, {}, r"^x has shape \(2,\), expected the axes \(M, K\)$"),
        ({"b": (2, 1)}, {}, r"^b has shape \(2, 1\), expected the axes \(M',\)$"),
        ({"s": (1,)}, {}, r"^s has shape \(1,\), expected the axes \(\)$"),
        ({"w": (4, 1)}, {}, r"^w has shape \(4, 1\), expected \(K, 1\) with K = 3 as in x$"),
        ({"b": (5,)}, {}, r"^b has shape \(5,\), expected \(M',\) with M' = 2 as in x$"),
        ({"w": (3, 2)}, {}, r"^w has shape \(3, 2\), expected \(K, 1\)$"),
        ({}, {"given": {"M": 9}}, r"^x has shape .* with M = 9 as in sizes$"),
        ({}, {"given": {"M'": 9}, "given_in": "as traced"}, r"^x has .* with M = 9 as traced$"),
        ({}, {"given": {"N": 9, "N'": 8}}, r"^N' is 8, expected N = 9 as in sizes$"),
        ({}, {"rules": [HALF]}, r"\|K\| / 2 is 3/2 for K = 3: no whole number"),
        ({}, {"rules": [SUM], "given": {"T": 4}}, r"dim T has size 4, but \|T\| is .* which is 5"),
        ({}, {"rules": [LEAST]}, r"dim K has size 3, but \|K\| is at least .* which is 4"),
        ({}, {"needed": ["M", "N'"]}, "^the size of N shows in no input: pass sizes={'N': ...}$"),
    ],
)
def test_what_does_not_fit_is_said(change, more, text):
    with pytest.raises(ValueError, match=text):
        bind_sizes(ARRAYS, SHAPES | change, **more)


def test_an_array_in_two_views_is_bound_in_both():
    views = [("x", ("M", "K")), ("x", ("N", "N"))]

    assert bind_sizes(views, {"x": (3, 3)}) == {"M": 3, "K": 3, "N": 3}
    with pytest.raises(ValueError, match=r"expected \(N, N\) with N = 2 as in x"):
        bind_sizes(views, {"x": (2, 3)})


def binders(program):
    """For each layer how it binds sizes to shapes, and what it raises."""
    graph = bb.lower(program)
    family = family_of(program, "float64", "cpu")

    def oracle(shapes):
        return program.bind({name: np.empty(shape) for name, shape in shapes.items()})

    def interpreter(shapes):
        return bind(graph, {name: shapes[name] for name in sources(graph)}).sizes

    def tiles(shapes):
        return bound_sizes(lower_to_tiles(graph), shapes)

    return {"oracle": oracle, "interpreter": interpreter, "plan": family.bind, "tiles": tiles}


def found(binder, shapes):
    """The sizes, or what was said, and None where a size shows in no input or no tiles are made."""
    try:
        return binder(shapes)
    except EmitError:
        return None
    except (ValueError, LaunchError) as error:
        return None if "shows in no input" in str(error) else str(error)


@settings(max_examples=settings().max_examples // 2)
@given(seed=st.integers(0, 2**32 - 1))
def test_every_layer_binds_the_same(seed):
    random = Random(seed)
    example = broad_example(random, opaque=False)
    program = bb.trace(example.function, **example.function.inputs)
    shapes = {name: array.shape for name, array in example.arrays.items()}
    known = program.bind(example.arrays)
    for layer, binder in binders(program).items():
        sizes = found(binder, shapes)
        assert sizes is not None or layer in ("interpreter", "tiles")
        assert sizes is None or all(known[dim] == sizes[dim] for dim in sizes), (layer, sizes)


def twice(x, y):
    heads = bb.split_heads(y, 2)
    return bb.tanh(x @ heads[0]) + bb.tanh(x @ heads[1])


@pytest.mark.parametrize(
    ("shapes", "text"),
    [
        (
            {"x": (4, 3), "y": (5, 6)},
            r"^y has shape \(5, 6\), expected \(K, N\) with K = 3 as in x",
        ),
        ({"x": (4, 3), "y": (3,)}, r"^y has shape \(3,\), expected the axes \(K, N\)"),
        ({"x": (4, 3), "y": (3, 5)}, r"5/2 for N = 5: no whole number"),
    ],
)
def test_every_layer_refuses_in_the_same_words(shapes, text):
    program = bb.trace(twice, x="M K", y="K N")
    for layer, binder in binders(program).items():
        error = LaunchError if layer == "plan" else ValueError
        with pytest.raises(error, match=text):
            binder(shapes)


def test_sizes_fixed_in_tracing_are_said_to_be():
    program = bb.trace(lambda x: bb.exp(x), x="M N=3")

    with pytest.raises(ValueError, match=r"^x has shape \(2, 4\), .* with N = 3 as traced$"):
        program.bind({"x": np.ones((2, 4))})


def test_a_layer_of_its_own_mind_is_told(monkeypatch):
    monkeypatch.setattr(plan_module, "bind_sizes", lambda *args: {"M": 4, "K": 3, "N": 6})

    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        test_every_layer_refuses_in_the_same_words({"x": (4, 3), "y": (3,)}, "y")


@pytest.mark.parametrize("dims", [{"M": 4, "N": 1 << 40}, {"M": 1 << 40, "N": 4}])
def test_sizes_that_no_machine_holds_have_a_price(dims):
    assert bb.select(bb.trace(lambda x: x.sum(), x="M N"), dims).total_us > 1e6


def test_masks_over_more_blocks_than_can_be_looked_at_are_refused():
    def lower_part(x):
        rows, columns = bb.arange(x.shape[0])[:, None], bb.arange(x.shape[1])
        return bb.where(rows >= columns, x, 0.0).sum(1)

    program = bb.trace(lower_part, x="M N")
    graph, sizes = bb.fuse(bb.lower(program)).final, {"M": 4, "N": 1 << 40}

    with pytest.raises(EmitError, match=r"\d+ blocks of N are too many(.|\n)*at most \d+"):
        bb.emit(graph, sizes)
    assert bb.select(program, sizes).total_us > 1e6, "the mask is applied by a kernel of its own"
