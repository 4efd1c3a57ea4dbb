"""Nests that compute of constants alone: which those are, and that what they store can be kept."""

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings

from blockbuster.emit.closing.bind import bind
from blockbuster.emit.closing.place_waits import place_waits
from blockbuster.emit.interpret.interpreter import run_tiles
from blockbuster.emit.interpret.sides import Side, cut_by, cuts
from blockbuster.emit.schedule.overlap import Overlap
from blockbuster.emit.schedule.scheduled import unscheduled
from blockbuster.emit.schedule.site import EVERYWHERE, Site
from blockbuster.emit.target.targets import target_of
from blockbuster.emit.tile import constants
from blockbuster.emit.tile.constants import kept_arrays, kept_first, kept_nests, running_nests
from blockbuster.emit.tile.dataflow import mapped, with_parts
from blockbuster.emit.tile.fingerprint import Fingerprint
from blockbuster.emit.tile.program import INPUT, OUTPUT, Issue, Load, Store
from blockbuster.emit.tile.verify import verify_tiles
from blockbuster.emit.tile.verify_waits import is_dependent
from blockbuster.errors import VerifyError
from blockbuster.interp.setting import SIZES
from blockbuster.ir.types import size_class
from tests.emit.parse_tiles import parse_tiles
from tests.emit.random_tiles import is_cut, random_graph, start_of
from tests.emit.test_move_mutants import mutated
from tests.emit.test_random_moves import RANDOMS, UNSHRUNK


def program(first, second="t1: f32[] = load X[M] store I2[M] = t1", *, constant="W", third=""):
    """Three nests: ``first`` and ``second``, and one that multiplies what they stored."""
    third = (
        third
        or """
      t7: f32[] = load I1[M]
      t8: f32[] = load I2[M]
      t9: f32[] = t7 * t8
      store Y[M] = t9"""
    )
    return parse_tiles(
        f"""
tiles {{
  dots in f32
  inputs X: f32[M], W: f32[M, N]
  outputs Y: f32[M], Z: f32[M]
  workspaces I1: f32[M], I2: f32[M]
  units M
  {f"constant {constant}" if constant else ""}
  nest 1 {{ warps 4 forall M {{ {first} }} }}
  nest 2 {{ warps 4 forall M {{ {second} }} }}
  nest 3 {{ warps 4 forall M {{ {third} }} }}
}}
""".replace(", Z: f32[M]", ", Z: f32[M]" if "Z[" in first else "")
    )


SUMS = "t4: f32[N] = load W[M, N] t5: f32[] = row_sum(t4)"
RIGHT = program(f"{SUMS} store I1[M] = t5")
RESULT = program(f"{SUMS} store I1[M] = t5 store Z[M] = t5")
READS_X = program(f"{SUMS} t6: f32[] = load X[M] t3: f32[] = t5 * t6 store I1[M] = t3")
OVERWRITTEN = program(
    f"{SUMS} store I1[M] = t5",
    "t1: f32[] = load X[M] t2: f32[] = t1 + 1 store I1[M] = t1 store I2[M] = t2",
)
READS_CHANGING = program(
    "t1: f32[] = load X[M] store I2[M] = t1",
    "t4: f32[] = load I2[M] t5: f32[] = t4 + 1 store I1[M] = t5",
)
POSITIONS = program("t4: int[] = index M at first t5: f32[] = t4 * 0.5 store I1[M] = t5")


def numbers(seed):
    random = np.random.default_rng(seed)
    return {"X": random.normal(size=3), "W": random.normal(size=(3, 5))}


def prepared(program):
    """The program of the kept nests, whose outputs are what is kept, and that of all others, which
    reads it.
    """
    kept = constants.kept_arrays(program)

    def moved(nests, space):
        new = {buffer: replace(buffer, space=space) for buffer in kept}

        def change(stmt):
            if isinstance(stmt, Load | Issue | Store) and stmt.view.buffer in new:
                return with_parts(stmt, view=with_parts(stmt.view, buffer=new[stmt.view.buffer]))
            return stmt

        changed = tuple(replace(nest, body=mapped(nest.body, change)) for nest in nests)
        return changed, tuple(new.values())

    own = tuple(buffer for buffer in program.workspaces if buffer not in kept)
    nests, outputs = moved([program.nests[at] for at in constants.kept_nests(program)], OUTPUT)
    once = replace(program, outputs=outputs, workspaces=own, nests=nests, constants=())
    nests, more = moved(constants.running_nests(program), INPUT)
    inputs = (*program.inputs, *more)
    return once, replace(program, inputs=inputs, workspaces=own, nests=nests, constants=())


def results_with_kept(program, first, second, sizes=None, blocks=None):
    """The results for ``second`` with what was kept of a call with ``first``, and those without."""
    once, each = prepared(program)
    kept = run_tiles(once, first, sizes, blocks)
    found = run_tiles(each, {**second, **kept}, sizes, blocks)
    return found, run_tiles(program, second, sizes, blocks)


def is_right(program):
    """Whether another call may use what was kept; only X is another one."""
    first, other = numbers(0), numbers(1)
    try:
        found, expected = results_with_kept(program, first, {**first, "X": other["X"]})
    except (VerifyError, KeyError):  # what is read was not written, or is not there
        return False
    return all(np.array_equal(found[name], expected[name]) for name in expected)


# which nests are kept ----------------------------------------------------------------------


def test_what_reads_constants_alone_is_kept():
    verify_tiles(RIGHT)

    assert kept_nests(RIGHT) == (0,)
    assert [buffer.name for buffer in kept_arrays(RIGHT)] == ["I1"]
    assert len(running_nests(RIGHT)) == 2
    assert is_right(RIGHT)


def test_without_constants_nothing_is_kept():
    assert kept_nests(replace(RIGHT, constants=())) == ()
    assert kept_first(replace(RIGHT, constants=())) == RIGHT.nests


@pytest.mark.parametrize(
    "other", [RESULT, READS_X, OVERWRITTEN, READS_CHANGING, POSITIONS],
    ids=["it stores a result", "it reads another array", "its array is stored in each call",
         "it reads what is stored in each call", "it loads nothing"],
)  # fmt: skip
def test_other_nests_run_in_each_call(other):
    verify_tiles(other)

    assert kept_nests(other) == ()
    assert is_right(other)


def test_nests_that_read_what_is_kept_are_kept_in_turn():
    second = "t1: f32[] = load I1[M] t2: f32[] = t1 + 1 store I2[M] = t2"
    third = """
      t7: f32[] = load X[M]
      t8: f32[] = load I2[M]
      t9: f32[] = t7 * t8
      store Y[M] = t9"""
    both = program(f"{SUMS} store I1[M] = t5", second, third=third)

    assert kept_nests(both) == (0, 1)
    assert [buffer.name for buffer in kept_arrays(both)] == ["I2"]  # no call reads I1
    assert is_right(both)


MUTANTS = [
    ("not runs_in_any_case(nest)", "True"),
    ('if not loaded(nest.body):\n        return "it loads nothing"', "pass"),
    ("buffer.space != WORKSPACE", "False"),
    ("buffer.name not in program.constants", "False"),
    ("if buffer in changing:", "if False:"),
    ("(*loaded(nest.body), *stored(nest.body))", "loaded(nest.body)"),
    ("(*loaded(nest.body), *stored(nest.body))", "stored(nest.body)"),
]


@pytest.mark.parametrize(("old", "new"), MUTANTS)
def test_each_part_of_the_condition_matters(monkeypatch, old, new):
    programs = (RESULT, READS_X, OVERWRITTEN, READS_CHANGING, POSITIONS)
    mutated(monkeypatch, constants, old, new)

    assert any(constants.kept_nests(other) for other in programs)
    if "loads nothing" not in old:  # positions stay as they are, but nothing tells their device
        assert not all(map(is_right, programs))


@settings(max_examples=settings().max_examples // 4, phases=UNSHRUNK)
@given(RANDOMS)
def test_random_programs_give_the_same_with_what_was_kept(random):
    made = start_of(random_graph(random), random, constant=0.6)
    for whole in (made.draft, made.program) if is_cut(made) else (made.draft,):
        same_with_kept(whole, random)


def drawn(whole, sizes, random):
    """Inputs of a program: whole numbers, which masks and labels are, too."""
    rng = np.random.default_rng(random.randint(0, 2**32 - 1))
    shapes = {b.name: [1 if a.dim is None else sizes[size_class(a.dim)] for a in b.axes]
              for b in whole.inputs}  # fmt: skip
    return {name: rng.integers(0, 3, shape).astype(float) for name, shape in shapes.items()}


def same_with_kept(whole, random):
    """No input of a program has an entry per block: what is kept so cannot be given as one here."""
    verify_tiles(whole)
    rng = np.random.default_rng(random.randint(0, 99))
    (cut,) = cuts([Side(whole)], 1, rng, SIZES)
    small, sizes, blocks = cut_by(whole, cut), cut.setting.sizes, cut.setting.block_sizes
    first = drawn(small, sizes, random)
    other = drawn(small, sizes, random)
    second = {name: (first if name in small.constants else other)[name] for name in first}
    kept = constants.kept_arrays(small)
    if kept and not any(axis.per_block for buffer in kept for axis in buffer.axes):
        found, expected = results_with_kept(small, first, second, sizes, blocks)
        for name, array in expected.items():
            np.testing.assert_array_equal(found[name], array)


def test_some_random_programs_keep_something():
    found = 0
    for seed in range(60):
        random = Random(seed)
        draft = start_of(random_graph(random), random).draft
        names = tuple(buffer.name for buffer in draft.inputs)
        found += any(kept_nests(replace(draft, constants=(name,))) for name in names)
    assert found > 5


# chains of kernels that overlap ------------------------------------------------------------


def overlapping(*numbers, of=RIGHT):
    nests = [replace(n, overlaps=at in numbers) for at, n in enumerate(of.nests, start=1)]
    return bind(replace(of, nests=tuple(nests)))


def test_the_first_nest_of_a_call_is_the_first_of_a_chain():
    """Behind the kept one: it waits before it loads anything, as if nothing were kept."""
    placed = place_waits(overlapping(2, 3))
    verify_tiles(placed)

    assert [is_dependent(nest) for nest in placed.nests] == [False, True, True]
    assert type(placed.nests[1].body[0]).__name__ == "Wait"
    loads = [at for at, s in enumerate(placed.nests[2].body) if isinstance(s, Load)]
    waits = [at for at, s in enumerate(placed.nests[2].body) if type(s).__name__ == "Wait"]
    assert loads[0] < waits[0] < loads[1]  # what is kept was there before the call
    run_tiles(placed, numbers(0), seed=1)


def test_a_nest_behind_a_kept_one_waits_for_that_of_the_call():
    """Nest 2 is kept here, and stands between two that run: the last waits for the first."""
    second = f"{SUMS} store I1[M] = t5"
    between = program("t1: f32[] = load X[M] store I2[M] = t1", second)
    placed = place_waits(overlapping(3, of=between))
    verify_tiles(placed)

    assert kept_nests(placed) == (1,)
    assert [type(nest.body[0]).__name__ == "Release" for nest in placed.nests] == [
        True, False, False,
    ]  # fmt: skip
    run_tiles(placed, numbers(0), seed=1)


def test_a_kept_nest_is_no_link_of_a_chain():
    overlapped = overlapping(1, 2)
    assert not is_dependent(place_waits(overlapped).nests[0])

    waiting = place_waits(replace(overlapping(1), constants=()))
    with pytest.raises(VerifyError, match="nest 1, which is kept from call to call, is part of"):
        verify_tiles(replace(waiting, constants=("W",)))


def test_the_move_leaves_kept_nests_alone():
    start = unscheduled(RIGHT, {"M": 3, "N": 5}, target_of("sm_90"))
    move = Overlap()

    assert "nest 1 is kept from call to call" in move.why_not(start, Site(1))
    made = move.apply(start, EVERYWHERE)
    assert [nest.overlaps for nest in made.draft.nests] == [False, False, True]


# what a program says of it -----------------------------------------------------------------


def test_constants_are_part_of_what_a_program_is():
    other = replace(RIGHT, constants=())

    assert "constant W" in str(RIGHT)
    assert parse_tiles(str(RIGHT)) == RIGHT != other
    assert Fingerprint(RIGHT).digest != Fingerprint(other).digest


@pytest.mark.parametrize(
    ("names", "reason"),
    [(("V",), "V is constant and no input"), (("W", "W"), "W is said to be constant twice")],
)
def test_constants_are_inputs_named_once(names, reason):
    with pytest.raises(VerifyError, match=reason):
        verify_tiles(replace(RIGHT, constants=names))
