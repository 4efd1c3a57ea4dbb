"""The move jam: two blocks of rows in one program, which share what does not depend on rows."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blockbuster.emit.interpret.proof import prove_tiles
from blockbuster.emit.schedule import jam, two_parts
from blockbuster.emit.schedule.jam import Jam
from blockbuster.emit.schedule.scheduled import unscheduled
from blockbuster.emit.schedule.script import replayed
from blockbuster.emit.schedule.site import Site
from blockbuster.emit.target.targets import target_of
from blockbuster.emit.tile.program import Fold, For, Let, Load, Store
from blockbuster.emit.tile.verify import verify_tiles
from blockbuster.errors import EmitError, ParseError, VerifyError
from blockbuster.ir.lengths import completed
from blockbuster.ir.types import size_class
from tests.emit.parse_tiles import parse_tiles
from tests.emit.test_move_mutants import mutated

SIZES = dict(H=3, M=64, N=48, D=16)
SITE = Site(1, "M", 1)


def program(*lines, inputs="", outputs=""):
    """A nest of these lines in parallel loops over H and M, with more arrays."""
    return parse_tiles(f"""
tiles {{
  dots in f32
  inputs X: f32[H, M, D], K: f32[H, N, D], V: f32[N]{inputs}
  outputs Y: f32[H, M, D]{outputs}
  units H
  whole D
  nest 1 {{
    forall H {{
      forall M {{
        {chr(10).join(lines)}
      }}
    }}
  }}
}}
""")


CHAIN = (
    "t1: f32[M, D] = load X[H, M, D]",
    "t2: f32[M, D] = init +",
    "for N {",
    "t3: f32[N, D] = load K[H, N, D]",
    "t4: f32[M, N] = dot(t1, t3)",
    "t5: f32[M, N] = t4 * t4 + 3.0",
    "t6: f32[D, N] = load K[H, N, D]",
    "t7: f32[M, D] = dot(t5, t6)",
    "t2 += t7",
    "}",
    "store Y[H, M, D] = t2",
)
BLOCKS = "block M 16, N 16, D 16 whole"


def with_lines(**lines):
    """``CHAIN`` with more lines: behind its loads (``first``), in its loop, or at its end."""
    at = list(CHAIN)
    at[-1:-1] = lines.get("last", ())
    at[7:7] = lines.get("loop", ())
    at[1:1] = lines.get("first", ())
    return program(*at, inputs=lines.get("inputs", ""), outputs=lines.get("outputs", ""))


PLAIN = program(*CHAIN)


def of(tiles, **sizes):
    return unscheduled(tiles, {**SIZES, **sizes}, target_of("sm_90"))


def jammed(tiles=PLAIN, before=BLOCKS, **sizes):
    return replayed(of(tiles, **sizes), f"{before}\njam nest 1 M").draft


def loops(body):
    for stmt in body:
        if isinstance(stmt, For):
            yield stmt
            yield from loops(stmt.body)


def test_what_two_blocks_share_is_loaded_once_and_dots_alternate():
    made = jammed()
    around = list(loops(made.nests[0].body))
    assert [loop.dim for loop in around] == ["H", "M_half", "N"]
    inner = around[-1].body
    dots = [s for s in inner if isinstance(s, Let) and "dot" in str(s.op)]

    assert sum(isinstance(stmt, Load) for stmt in inner) == 2
    assert [dot.target.axes for dot in dots] == [("M_half", "N")] * 2 + [("M_half", "D")] * 2
    order = [s for s in inner if s in dots or isinstance(s, Fold)]
    assert [type(stmt).__name__ for stmt in order] == ["Let", "Let", "Let", "Fold", "Let", "Fold"]
    assert prove_tiles(PLAIN, made, trials=3).equal


def test_the_second_block_lies_half_of_the_dim_behind_the_first():
    stores = [s for s in jammed().nests[0].body[0].statements if isinstance(s, Store)]
    starts = [str(store.view.dims[1]) for store in stores]
    assert starts == ["M[M_half = |M| / 2]", "M[M_half = |M| / 2 from |M| / 2]"]


@pytest.mark.parametrize("more", ["stage nest 1 N 3", "order nest 1 M_half last first", "warps 4"])
def test_moves_behind_it(more):
    made = replayed(of(PLAIN), f"{BLOCKS}\njam nest 1 M\n{more}").draft
    assert prove_tiles(PLAIN, made, trials=3).equal


def test_loads_that_run_ahead_already():
    made = jammed(before=f"{BLOCKS}\nstage nest 1 N 3")
    assert prove_tiles(PLAIN, made, trials=3).equal


def test_what_an_iteration_stores_and_loads_again():
    own = dict(last=("store I[H, M, D] = t2", "t9: f32[M, D] = load I[H, M, D]"))
    start = with_lines(**own, outputs="\n  workspaces I: f32[H, M, D]")
    made = jammed(start)
    verify_tiles(made)
    assert prove_tiles(start, made, trials=3).equal


def test_a_sum_that_all_rows_share_is_made_once():
    sums = ("t8: f32[] = init +", "for N {", "t9: f32[N] = load V[N]", "t10: f32[] = row_sum(t9)",
            "t8 += t10", "}")  # fmt: skip
    start = with_lines(first=sums, last=("t11: f32[M, D] = t2 * t8",))
    made = jammed(start)
    names = [s.target.name for s in made.nests[0].body[0].statements if isinstance(s, Let)]

    assert len([name for name in names if name == "t10"]) == 1
    assert prove_tiles(start, made, trials=3).equal


@given(st.integers(0, 2**32 - 1).map(Random))
def test_any_order_of_arithmetic_keeps_its_meaning(random):
    """Values of rows, of the loop and of both, in random order, each of what was made before."""
    made = [("t1", "M, D"), ("t3", "N, D"), ("t4", "M, N")]
    lines = []
    for number in range(20, 20 + random.randint(1, 6)):
        name, axes = random.choice(made)
        same = [one for one, others in made if others == axes]
        lines.append(f"t{number}: f32[{axes}] = {name} * {random.choice(same)} + {number}.0")
        made.append((f"t{number}", axes))
    scores = random.choice([name for name, axes in made if axes == "M, N"])
    at = [line.replace("t4 * t4", f"{scores} * t4") for line in CHAIN]
    at[5:5] = lines
    start = program(*at)
    sizes = dict(M=32 * random.randint(1, 3), N=random.randint(1, 40))
    assert prove_tiles(start, jammed(start, **sizes), trials=2, seed=random.randint(0, 99)).equal


def test_its_places():
    cut = replayed(of(PLAIN), BLOCKS)
    assert list(Jam().sites(cut)) == [SITE]
    assert list(Jam().sites(of(PLAIN))) == []


COUNTED = dict(first=("t8: f32[M] = index M",), last=("t9: f32[M, D] = t2 * t8",))
ONE = dict(last=("t8: f32[] = init +", "t9: f32[M] = row_sum(t2)", "t10: f32[] = row_sum(t9)",
                 "t11: f32[M, D] = t2 * t10"))  # fmt: skip
ENTRY = dict(first=("t8: f32[] = init +", "for N {", "t9: f32[N] = load V[N]",
                    "t10: f32[] = row_sum(t9)", "t8 += t10", "}"),
             last=("store S[H, M] = t8",), outputs=", S: f32[H, M blocks]")  # fmt: skip
SHARED = dict(ENTRY, last=("store S[H] = t8",), outputs=", S: f32[H]")
STAGED = program(
    *CHAIN[:4],
    "t8: f32[M, N] = load W[H, M, N]",
    *(line.replace("t4 * t4", "t4 * t8") for line in CHAIN[4:]),
    inputs=", W: f32[H, M, N]",
)
ALONE = program(
    CHAIN[0],
    "t2: f32[M] = init +",
    "for N {",
    "t3: f32[M, N] = load W[H, M, N]",
    "t4: f32[M] = row_sum(t3)",
    "t2 += t4",
    "}",
    "t5: f32[M, D] = t1 * t2",
    "store Y[H, M, D] = t5",
    inputs=", W: f32[H, M, N]",
)
TAKEN = with_lines(
    first=("t8: f32[] = init +", "for M_half {", "t9: f32[M_half] = load U[M_half]",
           "t10: f32[] = row_sum(t9)", "t8 += t10", "}"),
    last=("t11: f32[M, D] = t2 * t8",), inputs=", U: f32[M_half]",
)  # fmt: skip
SLICED = tuple(line.replace("load X[H, M, D]", "load X[H, M[M from 1], D]") for line in CHAIN)


@pytest.mark.parametrize(
    ("tiles", "text", "reason"),
    [
        (PLAIN, "jam nest 1 M", "M is not cut yet: block before"),
        (PLAIN, f"{BLOCKS}\njam nest 1 N", "the loop over N is not on the grid"),
        (PLAIN, f"{BLOCKS}\njam nest 1 K", "there is no nest 1 K"),
        (PLAIN, "block M 64 whole, N 16, D 16 whole\njam nest 1 M", "there is no nest 1 M"),
        (
            PLAIN,
            "block M 128, N 16, D 16 whole\njam nest 1 M",
            "two blocks have 256, which do not divide it",
        ),
        (PLAIN, f"{BLOCKS}\norder nest 1 M last first\njam nest 1 M", "is decided already"),
        (PLAIN, f"{BLOCKS}\njam nest 1 M\njam nest 1 M_half", "is sliced along M_half"),
        (with_lines(**COUNTED), f"{BLOCKS}\njam nest 1 M", "t8 holds positions along M"),
        (with_lines(**ONE), f"{BLOCKS}\njam nest 1 M", "t10 is made of all rows of a block"),
        (with_lines(**ENTRY), f"{BLOCKS}\njam nest 1 M", "S has one entry for a block of M"),
        (with_lines(**SHARED), f"{BLOCKS}\njam nest 1 M", "S is stored once for all blocks of M"),
        (program(*SLICED), f"{BLOCKS}\njam nest 1 M", "X is sliced along M"),
        (ALONE, f"{BLOCKS}\njam nest 1 M", "two blocks of M share nothing in a loop"),
        (STAGED, f"{BLOCKS}\nstage nest 1 N 3\njam nest 1 M", "loads of W run ahead already"),
    ],
)
def test_refusals(tiles, text, reason):
    with pytest.raises(EmitError, match=reason):
        replayed(of(tiles), text)


def test_a_dim_that_has_the_name_of_a_half():
    with pytest.raises(EmitError, match="M_half is a dim of the program already"):
        replayed(of(TAKEN, M_half=24), f"{BLOCKS}, M_half 8\njam nest 1 M")


def test_sizes_of_which_half_is_no_number_of_blocks():
    with pytest.raises(EmitError, match="M is 48: two blocks have 32, which do not divide it"):
        jammed(M=48)


def test_nothing_follows_its_place():
    with pytest.raises(ParseError, match="nothing follows the place of jam"):
        replayed(of(PLAIN), f"{BLOCKS}\njam nest 1 M 2")


MUTANTS = [
    ("behind = self.rule.length if part else ZERO", "behind = ZERO", PLAIN),
    ("if count % pair else", "if False else", PLAIN),
    ("if rows and dim not in target.axes:", "if False:", with_lines(**ONE)),
    ("and dim not in accessed(stmt).axes:", "and False:", with_lines(**ENTRY)),
    ("if isinstance(used, Strided) and dim in", "if dim in ()  and", program(*SLICED)),
    ("case _ if has_axis(stmt, dim) or _runs(stmt, dim):", "case _ if False:",
     with_lines(**COUNTED)),
    ("if stmt in dots[:-1]:", "if stmt in dots[:0] or not turn.pop():", PLAIN),
]  # fmt: skip


@pytest.mark.parametrize(("text", "other", "tiles"), MUTANTS)
def test_a_change_of_the_move_is_caught(monkeypatch, text, other, tiles):
    mutated(monkeypatch, jam, text, other)
    assert_caught(tiles, M=48 if "count" in text else 64)


def test_tiles_of_both_blocks_that_share_their_names_are_caught(monkeypatch):
    mutated(monkeypatch, two_parts, "name=next(self._names)", "name=tile.name")
    assert_caught(PLAIN, M=64)


def assert_caught(tiles, **sizes):
    """A changed move applies, and makes a program that is wrong."""
    start = replayed(of(tiles, **sizes), BLOCKS)
    assert not jam.Jam().why_not(start, SITE)
    assert not _right(start, jam.Jam().rewritten(start, SITE))


def _right(start, made):
    sizes = completed(dict(start.known), made.rules)
    if any(not b.ragged and sizes[size_class(b.dim)] % b.lanes for b in made.nests[0].blocks):
        return False
    try:
        verify_tiles(made)
        return bool(prove_tiles(start.draft, made, trials=3).equal)
    except (VerifyError, ValueError):
        return False
