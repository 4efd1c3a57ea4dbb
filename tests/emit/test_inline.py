"""The move inline: what a nest stores is made again where it is loaded, and what forbids that."""

import pytest

from blockbuster.emit.closing.bind import bind
from blockbuster.emit.interpret.proof import prove_tiles
from blockbuster.emit.schedule import inline
from blockbuster.emit.schedule.inline import Inline
from blockbuster.emit.schedule.scheduled import unscheduled
from blockbuster.emit.schedule.script import not_complete, replayed
from blockbuster.emit.schedule.site import Site
from blockbuster.emit.target.targets import target_of
from blockbuster.emit.tile.program import For, Init, Let, Load, statements
from blockbuster.emit.tile.trips import sized
from blockbuster.emit.tile.verify import verify_tiles
from blockbuster.errors import EmitError, ParseError, VerifyError
from tests.emit import inline_texts as texts
from tests.emit.parse_tiles import parse_tiles
from tests.emit.test_move_mutants import mutated

INLINE = Inline()


def of(text):
    program = parse_tiles(text)
    verify_tiles(program)
    return unscheduled(program, dict.fromkeys(sized(program), 64), target_of("sm_90"))


def is_right(before, after):
    """False if the program after is ill-formed, or means something else."""
    try:
        verify_tiles(after)
    except VerifyError:
        return False
    return prove_tiles(before, after, trials=8).equal


REFUSED = [
    # (text, nest, reason, what is broken in the module so that it is not refused, by what)
    (texts.RESULT, 1, "it stores I1, which is a result", "of_a_result(nest)\n", "''\n"),
    (texts.IN_A_LOOP, 1, "it stores I1 in a loop over C", "or in_a_loop(nest)", ""),
    (texts.AHEAD, 1, "its loads run ahead: inline it before 'stage'", "or ahead(nest)", ""),
    (texts.LOADED_AGAIN, 1, "it loads I2, which it stores", "or loaded_again(nest)", ""),
    (texts.FOLDED_SINCE, 1, "t1 is folded again behind its store", "or folded_since(nest)", ""),
    (texts.STORED_TWICE, 1, "I1 is stored at two places", "or stored_twice(program, nest)", ""),
    (texts.READ_AHEAD, 1, "loads of the loop around it run ahead: inline before 'stage'",
     "read_ahead(read, nest)\n", "''\n"),
    (texts.OTHER_DIMS, 1, "under other dims than it is stored",
     "if read.stmt.view.dims != store.view.dims:", "if False:"),
    (texts.OTHER_AXES, 1, "as a tile of other axes than is stored",
     "if target.axes != store.value.axes:", "if False:"),
    (texts.ALL_AT_ONCE, 1, "of all iterations over N at once",
     "or of_another_iteration(read, made)", ""),
    (texts.WALKED_AROUND, 1, "in a loop over C, all of which the value is made of",
     "or walked_around(read, made)", ""),
    (texts.CUT_OTHERWISE, 1, "its blocks of N are others", "or cut_otherwise(read, nest, made)",
     ""),
    (texts.STORED_SINCE, 2, "I2, of which it is made, is stored again by then",
     "or stored_since(program.nests[at + 1 : number], made)", ""),
]  # fmt: skip


@pytest.mark.parametrize(("text", "nest", "reason", "old", "new"), REFUSED)
def test_each_reason_to_refuse_is_one(monkeypatch, text, nest, reason, old, new):
    """Without it the move would apply, and give a program that is ill-formed or another one."""
    start, site = of(text), Site(nest)
    assert INLINE.why_not(start, site).endswith(reason)
    assert site not in [*INLINE.sites(start)]

    mutated(monkeypatch, inline, old, new)
    assert not INLINE.why_not(start, site)
    assert is_right(start.draft, INLINE.apply(start, site).draft) is False


@pytest.mark.parametrize(
    ("text", "nest", "moves", "reason"),
    [
        (texts.OTHER_KIND, 1, "", "nest 2 loads I1: t1 of float32 is loaded as bool"),
        (
            texts.AT_PLACES,
            1,
            "persist nest 2 132 in 3 stages",
            "nest 2 loads I1: loads of its places run ahead: inline before 'persist'",
        ),
        (
            texts.TWO_NAMES,
            2,
            "",
            "N' and N are one dim under two names, with tiles of 16 and 32: "
            "give both the same tile",
        ),
        (texts.BY_CHUNK, 3, "", "there is no nest 3: inline takes a nest"),
        (texts.BY_CHUNK, 0, "", "it names no place: inline takes a nest"),
    ],
)
def test_other_refusals(text, nest, moves, reason):
    start = replayed(of(text), moves)
    assert INLINE.why_not(start, Site(nest)) == reason
    with pytest.raises(EmitError, match=r"the move 'inline.*' does not apply"):
        INLINE.apply(start, Site(nest))


def test_nothing_follows_the_place():
    with pytest.raises(ParseError, match="nothing follows the place of inline"):
        replayed(of(texts.BY_CHUNK), "inline nest 1 N")


@pytest.mark.parametrize(
    "text", [texts.BY_CHUNK, texts.IN_ONE_TILE, texts.GROUP, texts.COLUMNS, texts.AT_PLACES],
    ids=["by chunk", "in one tile", "a group", "columns", "places"],
)  # fmt: skip
def test_it_is_proved(text):
    start = of(text)
    made = replayed(start, "inline nest 1").draft

    verify_tiles(made)
    assert made.workspaces == ()
    assert parse_tiles(made.show()) == made
    assert prove_tiles(start.draft, made, trials=4).equal
    assert prove_tiles(start.draft, bind(made), trials=4).equal


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        (texts.COLUMNS, "changed(tile, name=next(self.names))", "tile"),
        (
            texts.GROUP.replace("load I3", "load I2"),
            "(*operands(stmt), *folded(stmt))",
            "operands(stmt)",
        ),
        (texts.BY_CHUNK, "elif any(tile in used for tile in", "elif all(tile in used for tile in"),
    ],
)
def test_a_change_of_what_it_writes_is_caught(monkeypatch, text, old, new):
    start = of(text)
    mutated(monkeypatch, inline, old, new)
    assert is_right(start.draft, INLINE.rewritten(start, Site(1))) is False


def kinds(body):
    return [type(stmt).__name__ for stmt in body]


def test_what_does_not_change_stands_before_the_loop():
    """In one tile it leaves the loop over rows by itself; the grid's loops hold it."""
    nest = replayed(of(texts.IN_ONE_TILE), "inline nest 1").draft.nests[0]
    (heads,) = nest.body
    (rows,) = heads.body
    assert kinds(rows.body) == ["Load", "Let", "Load", "Let", "Store"]

    nest = replayed(of(texts.WHOLE_ROWS), "inline nest 1").draft.nests[0]
    assert kinds(nest.body) == ["Init", "Load", "Let", "For", "Store"]


def test_each_reader_makes_what_it_reads_and_no_more():
    """A group once, before the loop that reads a part of it; the sum beside it in its own nest."""
    first, second = replayed(of(texts.GROUP), "inline nest 1").draft.nests
    (rows,), (others,) = first.body, second.body

    assert kinds(rows.body) == ["Init", "Init", "For", "For"]
    assert kinds(rows.body[2].body) == ["Load", "Load", "Fold"]
    assert kinds(others.body) == ["Init", "For", "Store"]
    assert kinds(others.body[1].body) == ["Load", "Fold"]
    assert {load.view.buffer.name for load in others.body[1].body if isinstance(load, Load)} == {
        "D"
    }


def test_two_loops_each_make_what_they_read():
    (rows,) = replayed(of(texts.COLUMNS), "inline nest 1").draft.nests[0].body
    first, second = (stmt for stmt in rows.body if isinstance(stmt, For))

    for loop in (first, second):
        assert "X" in {load.view.buffer.name for load in loop.body if isinstance(load, Load)}
    names = [s.target.name for s in statements((rows,)) if isinstance(s, Load | Let | Init)]
    assert len(set(names)) == len(names)


def test_a_reader_gets_the_blocks_of_what_it_makes():
    text = "block nest 1 C 64 whole\nblock nest 2 N 16\nwarps nest 2 2\noverlap nest 2\n"
    made = replayed(of(texts.IN_ONE_TILE), f"{text}inline nest 1")
    (nest,) = made.draft.nests

    assert [(block.dim, block.lanes) for block in nest.blocks] == [("N", 16), ("C", 64)]
    assert (nest.warps, nest.overlaps, not_complete(made)) == (2, True, "")
