"""Every part of what part rests on matters: broken, a block runs without a mask that it needs."""

import numpy as np
import pytest

from blockbuster.emit.closing import hoist
from blockbuster.emit.interpret.proof import prove_tiles
from blockbuster.emit.schedule import chunk_loops, known_masks, part, span_tiles, whole_blocks
from blockbuster.emit.schedule.script import BY_NAME
from blockbuster.emit.schedule.site import Site
from blockbuster.errors import BlockbusterError
from tests.emit.parse_tiles import parse_tiles
from tests.emit.test_move_mutants import anew, moved, mutated, passed, verdicts
from tests.emit.test_narrow import HERE, NARROW, Loads, masked_sum, unscheduled_at
from tests.emit.test_narrow_mutants import NUMBERS, SMALL, loop
from tests.emit.test_part import PART, attention_at, runs

APPLY, HOIST = moved("part"), passed("hoist")


def agrees(text, numbers, narrow):
    """Whether parts add up what the loop does: x is NaN where the mask is false."""
    sizes = {"M": 11, "N": 31, "H": 1}
    start = unscheduled_at(masked_sum(text), sizes)
    if narrow:
        start = NARROW.apply(start, Site(1, "N"))
    if PART.why_not(start, Site(1, "N")):
        return True
    try:
        after = PART.apply(start, Site(1, "N"))
    except (BlockbusterError, KeyError):
        return False
    i, j = np.arange(11)[:, None], np.arange(31)
    seen = eval(text, HERE, {"i": i, "j": j, "n": numbers[:, None], "h": 5.0})
    x = np.where(seen, np.arange(1.0, 342).reshape(11, 31), np.nan)
    arrays = {"x": x, "n": numbers, "h": np.array([5.0])}
    found = []
    for rows, columns in ((3, 1), (1, 4), (4, 3)):
        loads = [Loads(), Loads()]
        whole, parts = (
            runs(one.draft, arrays, sizes, {"M": rows, "N": columns}, observer=watch)
            for one, watch in zip((start, after), loads, strict=True)
        )
        found.append(np.array_equal(whole, parts) and loads[0].count["x"] == loads[1].count["x"])
    return all(found)


RANGES = [
    # (module, text, what replaces it, conditions that show it)
    (whole_blocks, "joined(mask.formula, 1.0 - mask.dead)", "joined(mask.formula, mask.dead)",
     ["j <= i"]),
    (whole_blocks, "yield from joined(inner, 1.0 - truth)", "yield from joined(inner, truth)",
     ["~(j > i)"]),
    (whole_blocks, "solver.of(formula, not truth)", "solver.of(formula, bool(truth))", ["j <= i"]),
    (whole_blocks, "if all(side.bounded", "if any(side.bounded",
     ["np.abs(np.maximum(j, i) - 5) < 9"]),
    (whole_blocks, "yield Call(MIRRORED[fn], (held, negated(bound))), truth", "pass",
     ["np.abs(i - j) < 9"]),
    (whole_blocks, "lows += [side for side in others if side.low is not None]",
     "lows = [side for side in others if side.low is not None] or lows",
     ["(j < 13) & (j < 20)", "(j <= i) & (j < 20)"]),
    (whole_blocks, "Range(low.low, high.high)", "Range(low.low, None)", ["(j <= i) & (j > i - 9)"]),
    (part, "first = writer.within(before, (begin, end))", "first = before",
     ["(j == i) & (j > 4)"]),
    (part, "stop = writer.within(behind, (first, end))", "stop = behind",
     ["(j == i) & (j < 20)", "(j <= i) & (j > i - 2)"]),
    (part, "before_them = (begin, first)", "before_them = (None, first)",
     ["(j > 4) & (j > i - 9)"]),
    (part, "behind_them = (stop, end)", "behind_them = (stop, None)", ["(j < 20) & (j <= i)"]),
    (span_tiles, 'zip(("maximum", "minimum"), span', 'zip(("minimum", "maximum"), span',
     ["(j <= i) & (j > i - 2)"]),
    (known_masks, "return a if truth else b", "return b if truth else a", ["j <= i"]),
    (known_masks, "return Const(0.0 if truth else 1.0)", "return Const(truth)", ["~(j > i)"]),
    (known_masks, 'if bool(truth) != (fn == "and"):', "if True:", ["(j <= i) & (j * j > n)"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("module", "old", "new", "texts"), RANGES, ids=[f"{old[:40]}" for _, old, *_ in RANGES]
)
def test_a_broken_part_runs_without_a_mask_it_needs(monkeypatch, module, old, new, texts):
    drawn = [(t, n) for t in texts for n in (NUMBERS, SMALL)[: 2 if "n)" in t else 1]]
    cases = [(text, n, narrow) for text, n in drawn for narrow in (False, True)]
    assert all(agrees(*case) for case in cases)

    mutated(monkeypatch, module, old, new)
    assert not all(agrees(*case) for case in cases)


READ_FIRST = """
tiles {
  inputs X: [M, N, K]
  outputs Y: [M]
  nest 1 {
    forall M {
      i: [M] = index M
      t1: [M] = init +
      for N {
        j: [N] = index N
        m: [M, N] = j <= i over [M, N]
        c: [M, N] = init +
        for K {
          x: [M, N, K] = load X[M, N, K]
          z: [M, N] = row_sum(x)
          b: [M, N] = where(m, c, 0) over [M, N]
          c += z
          s: [M] = row_sum(b)
          t1 += s
        }
      }
      y: [M] = t1 * 1 over [M]
      store Y[M] = y
    }
  }
}
"""
NUMBER_AS_TRUTH = loop(
    "o: [M, N] = m and x over [M, N]", "a: [M, N] = o * x over [M, N]", "s: [M] = row_sum(a)",
    "t1 += s",
)  # fmt: skip
SIMPLER = [
    # (module, text, what replaces it, how it is applied, a program)
    (known_masks, "chosen not in self.changing and ", "", APPLY, parse_tiles(READ_FIRST)),
    (known_masks, 'x if self._is_truth(x, args) else call("ne", x, 0.0)', "x", APPLY,
     NUMBER_AS_TRUTH),
    (known_masks, "needed.update(operands(stmt))", "pass", APPLY, NUMBER_AS_TRUTH),
    (part, "name=next(writer.names)", "name=tile.name", APPLY, NUMBER_AS_TRUTH),
    (hoist, "in makes(stmt))", "in (defined(stmt),))", HOIST, parse_tiles(READ_FIRST)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("module", "old", "new", "apply", "program"), SIMPLER, ids=[old[:40] for _, old, *_ in SIMPLER]
)
def test_a_body_that_is_made_too_simple_is_caught(monkeypatch, module, old, new, apply, program):
    assert set(verdicts(apply, [program])) <= {True}

    mutated(monkeypatch, module, old, new)
    assert not set(verdicts(apply, [anew(program)])) <= {True}


def test_a_chunk_in_a_part_of_a_loop_is_caught(monkeypatch):
    """A chunk runs what is around it in a nest of its own, over all of its blocks."""
    found = attention_at("causal", "part nest 1 M", cut="D 16 whole, L 16")
    mutated(monkeypatch, chunk_loops, "if around.span is not None:", "if False:")

    chunked = BY_NAME["chunk"].apply(found, Site(1, "L", 2), count=2)
    assert prove_tiles(found.draft, chunked.draft, trials=1).equal is False
