"""The pass sum-on: dots of loops in loops are added to one sum, where nothing else reads theirs."""

import pytest

from blockbuster.emit.closing.sum_on import not_summed_on, sum_on
from blockbuster.emit.interpret.proof import prove_tiles
from blockbuster.emit.tile.program import Fold, For, Init, statements
from blockbuster.emit.tile.tiling import tiling_of
from blockbuster.emit.tile.uses import Uses
from blockbuster.emit.tile.verify import verify_tiles
from tests.emit.parse_tiles import parse_tiles

LOADS = ("t1: f16[M, K] = load A[R, S, M, K]", "t2: f16[N, K] = load B[R, S, N, K]")
DOT = ("t3: f32[M, N] = dot(t1, t2)", "t4 += t3")
INNER = ("t4: f32[M, N] = init +", "for S {", *LOADS, *DOT, "}")
ADDED = ("t5 += t4",)


def program(*inside, monoid="+"):
    """A nest that folds what ``inside`` makes for each of R into t5."""
    lines = (f"t5: f32[M, N] = init {monoid}", "for R {", *inside, "}")
    return parse_tiles(f"""
tiles {{
  dots in f16
  inputs A: f16[R, S, M, K], B: f16[R, S, N, K], C: f32[R, M, N]
  outputs Y: f32[M, N]
  units R, S
  nest 1 {{
    {chr(10).join(lines)}
    store Y[M, N] = t5
  }}
}}
""")


def reason_of(tiles):
    (nest,) = tiles.nests
    body = next(stmt.body for stmt in nest.body if isinstance(stmt, For))
    fold = next(stmt for stmt in body if isinstance(stmt, Fold))
    return not_summed_on(fold, body, Uses(nest, tiling_of(tiles, nest)))


def sums(tiles):
    return [s.target.name for nest in tiles.nests for s in statements(nest.body)
            if isinstance(s, Init)]  # fmt: skip


def test_the_dots_of_two_loops_are_one_sum():
    plain = program(*INNER, *ADDED)
    made = sum_on(plain)

    verify_tiles(made)
    assert (sums(plain), sums(made)) == (["t5", "t4"], ["t5"])
    assert made == program("for S {", *LOADS, "t3: f32[M, N] = dot(t1, t2)", "t5 += t3", "}")
    assert prove_tiles(plain, made, trials=3).equal


def test_the_dots_of_three_loops_are_one_sum():
    text = ("t6: f32[M, N] = init +", "for S {", "t4: f32[M, N] = init +", "for T {",
            "t1: f16[M, K] = load A[T, S, M, K]", "t2: f16[N, K] = load B[T, S, N, K]", *DOT, "}",
            "t6 += t4", "}", "t5 += t6")  # fmt: skip
    tiles = parse_tiles(f"""
tiles {{
  dots in f16
  inputs A: f16[T, S, M, K], B: f16[T, S, N, K]
  outputs Y: f32[R, M, N]
  units R, S, T
  nest 1 {{
    for R {{
      t5: f32[M, N] = init +
      {chr(10).join(text)}
      store Y[R, M, N] = t5
    }}
  }}
}}
""")
    made = sum_on(tiles)

    verify_tiles(made)
    assert sums(made) == ["t5"]
    assert prove_tiles(tiles, made, trials=3).equal


OTHER = ("t7: f32[M, N] = load C[R, M, N]",)


@pytest.mark.parametrize(
    ("tiles", "reason"),
    [
        (program(*INNER, "t5 max= t4", monoid="max"), "t5 is more than a sum"),
        (program(*INNER, "t8: f32[M, N] = t4 * t4", "t9: f32[M, N] = t8 + t4",
                 "t5 += t9"), "t9 is no sum that begins here and is read once"),
        (program(*INNER, *ADDED, "t8: f32[M, N] = t4 * t4", "store Y[M, N] = t8"),
         "t4 is no sum that begins here and is read once"),
        (program("t4: f32[M, N] = init max", "for S {", *LOADS, "t3: f32[M, N] = dot(t1, t2)",
                 "t4 max= t3", "}", *ADDED),
         "t4 is no sum that begins here and is read once"),
        (program("t4: f32[M, N] = init +", *OTHER, "for S {", "t4 += t7", "}", *ADDED),
         "t4 is no sum of dots"),
        (program(*INNER[:-1], "t4 += t3", "}", *ADDED),
         "t4 is summed in several places, or is more than a sum"),
        (program("t4: f32[M, N] = init +", "for S {", *LOADS, "t3: f32[M, N] = dot(t1, t2)",
                 "t8: f32[M, N] = t3 + t5", "store Y[M, N] = t8", "t4 += t3", "}", *ADDED),
         "t5 is used while t4 is summed"),
    ],
)  # fmt: skip
def test_other_sums_stay(tiles, reason):
    assert reason_of(tiles) == reason
    assert sum_on(tiles) == tiles
