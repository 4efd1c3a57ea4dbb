"""Passes over one nest remember what became of it, and never give one nest's words to another."""

from dataclasses import replace

import pytest

from blockbuster.emit.closing.guard import guard_nests
from blockbuster.emit.closing.lead_first import lead_first
from blockbuster.emit.closing.order import closed
from blockbuster.emit.tile.alike import are_alike, first_alike
from blockbuster.emit.tile.dataflow import defined
from blockbuster.emit.tile.each_nest import RAGGED, Around, Same, each_body, naming_body
from blockbuster.emit.tile.program import (
    INPUT,
    OUTPUT,
    Block,
    Buffer,
    BufferAxis,
    Let,
    Load,
    Nest,
    Store,
    Tile,
    TileProgram,
    View,
    statements,
)
from blockbuster.emit.tile.tiling import ragged_dims
from blockbuster.ir.expr import Arg as A
from blockbuster.ir.expr import call
from blockbuster.ir.ops import Pointwise
from blockbuster.ir.origin import Origin

X = Buffer("x", (BufferAxis("M"),), INPUT)
INPUTS = (X,)


def nest_of(name, word="", fn="exp"):
    """y = fn(x) for one array; ``word``: the user's for the result."""
    loaded, made = Tile("t1", ("M",)), Tile("t2", ("M",), hint=word)
    out = View(Buffer(name, (BufferAxis("M"),), OUTPUT), ("M",))
    op = Pointwise(call(fn, A(0)), ("M",))
    body = (Load(loaded, View(X, ("M",))), Let(made, op, (loaded,)), Store(out, made))
    return Nest(body, blocks=(Block("M", 16),), warps=4)


def program_of(*nests):
    outputs = tuple(nest.body[-1].view.buffer for nest in nests)
    return TileProgram(INPUTS, outputs, (), nests)


def words(program):
    return [defined(s).hint for nest in program.nests for s in statements(nest.body) if defined(s)]


def test_keys_are_of_one_object():
    first = (1, 2, 3)
    second = (*first,)

    assert first == second
    assert Same(first) == Same(first)
    assert Same(first) != Same(second)
    assert Same(first) != first


def test_equal_nests_keep_their_own_words():
    one, other = program_of(nest_of("y", "mine")), program_of(nest_of("y", "yours"))

    assert one == other
    assert words(closed(one)) == ["", "mine"]
    assert words(closed(other)) == ["", "yours"]


def test_a_nest_is_asked_for_once():
    asked = []

    @each_body()
    def noted(nest: Nest, around: Around) -> Nest:
        asked.append(nest.body)
        return replace(nest, body=nest.body[:1])

    first, second, other = nest_of("y"), nest_of("z"), nest_of("z", fn="neg")
    made = noted(program_of(first, second))
    again = noted(program_of(first, other))

    assert asked == [first.body, second.body, other.body]
    assert made.nests[0].body is again.nests[0].body
    assert [len(nest.body) for nest in again.nests] == [1, 1]


def test_a_pass_over_bodies_does_not_see_what_it_does_not_read():
    seen = []

    @each_body("warps")
    def noted(nest: Nest, around: Around) -> Nest:
        seen.append((nest.warps, nest.blocks))
        return nest

    nest = nest_of("y")
    assert noted(program_of(nest)).nests[0] is nest
    wider = replace(nest, blocks=(Block("M", 32),))
    assert noted(program_of(wider)).nests[0] is wider
    noted(program_of(replace(nest, warps=8)))

    assert seen == [(4, ()), (8, ())]


def test_a_pass_that_reads_masks_does_not_see_lanes():
    seen = []

    @each_body(RAGGED)
    def noted(nest: Nest, around: Around) -> Nest:
        seen.append(ragged_dims(nest))
        return nest

    nest = nest_of("y")
    for block in (Block("M", 16), Block("M", 32), Block("M", 32, ragged=False)):
        noted(program_of(replace(nest, blocks=(block,))))

    assert seen == [("M",), ()]


def test_names_are_fresh_in_all_nests():
    @naming_body()
    def renamed(nest: Nest, around: Around, names) -> Nest:
        target = replace(nest.body[0].target, name=next(names))
        return replace(nest, body=(replace(nest.body[0], target=target), *nest.body[1:]))

    nests = nest_of("y"), nest_of("z")
    made = renamed(program_of(*nests))
    assert [nest.body[0].target.name for nest in made.nests] == ["t3", "t4"]
    alone = renamed(program_of(nests[1]))
    assert alone.nests[0].body[0].target.name == "t3"


def test_a_nest_that_does_not_change_is_the_same_object():
    program = program_of(nest_of("y"))

    assert lead_first(program) is program
    assert guard_nests(program) is program


def test_bodies_that_differ_in_nothing_are_one_object():
    first, second = nest_of("y", "mine").body, nest_of("y", "mine").body

    own, others = (replace(X),), (replace(X),)
    assert first is not second
    assert first_alike(first, own) is first
    assert first_alike(second, own) is first
    assert first_alike(second, others) is second
    other = nest_of("y", "yours").body
    assert first_alike(other, own) is other


@pytest.mark.parametrize(
    ("part", "other"),
    [
        ({"hint": "h"}, {"hint": "g"}),
        ({"axes": ("M",)}, {"axes": ("N",)}),
        ({"per_lane": ("M",)}, {}),
        ({"dtype": "int"}, {"dtype": "float32"}),
    ],
)
def test_tiles_are_alike_in_all_their_parts(part, other):
    one = Tile(**{"name": "t", "axes": (), **part})

    assert are_alike(one, replace(one))
    assert not are_alike(one, Tile(**{"name": "t", "axes": (), **other}))


@pytest.mark.parametrize(("one", "other"), [(0.0, -0.0), (1, True), (1, 1.0), (object(), object())])
def test_numbers_are_alike_if_they_are_printed_alike(one, other):
    assert are_alike((one,), (one,))
    assert not are_alike((one,), (other,))


def test_origins_are_told_apart():
    tile = Tile("t", ())
    one, equal, other = (Let(tile, Pointwise(A(0), ()), (), Origin(n)) for n in "aab")

    assert are_alike(one, equal)
    assert one == other
    assert not are_alike(one, other)
