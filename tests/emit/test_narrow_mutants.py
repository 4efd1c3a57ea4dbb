"""Every part of what narrow rests on matters: broken, some loop leaves out what it must not."""

import numpy as np
import pytest

from blockbuster.emit.interpret.interpreter import run_tiles
from blockbuster.emit.interpret.memory import Hazard
from blockbuster.emit.schedule import (
    dead_iterations,
    mask_ranges,
    scan_nest,
    span_tiles,
    whole_numbers,
)
from blockbuster.emit.schedule.site import Site
from blockbuster.errors import BlockbusterError
from tests.emit.parse_tiles import parse_tiles
from tests.emit.test_move_mutants import anew, moved, mutated, verdicts
from tests.emit.test_narrow import NARROW, both_runs, masked_sum, unscheduled_at

LOOP = """
tiles {
  inputs X: [M, N], W: [D, N]
  outputs Y: [M], Z: [M, D], S: [M, N]
  nest 1 {
    forall M {
      i: [M] = index M
      t1: [M] = init +
      t2: [M] = init max
      t3: [M, D] = init +
      t4: [M] = init max
      for N {
        j: [N] = index N
        x: [M, N] = load X[M, N]
        w: [D, N] = load W[D, N]
        m: [M, N] = {mask} over [M, N]
        {body}
      }
      {end}
    }
  }
}
"""
SUM, TOTAL = "t1 += s", "y: [M] = t1 over [M]\n      store Y[M] = y"
GROUP = "t2 max= r\n          with t1 += s by {}"
KEPT = "where(x == -inf, x, x * exp(sub0(r, r2)))"


def loop(*body, end=TOTAL, stores=("Y",), mask="i < j"):
    """A tile program whose loop over N does ``body`` under the mask m."""
    text = (
        LOOP.replace("{mask}", mask)
        .replace("{body}", "\n        ".join(body))
        .replace("{end}", end)
    )
    for name in {"Y", "Z", "S"} - set(stores):
        axes = {"Y": "[M]", "Z": "[M, D]", "S": "[M, N]"}[name]
        text = text.replace(f", {name}: {axes}", "").replace(f"{name}: {axes}, ", "")
    for name in ("t1", "t2", "t3", "t4"):
        if f"{name} +=" not in text and f"{name} max=" not in text:
            text = "\n".join(x for x in text.split("\n") if f"{name}: [M" not in x)
    if "load W" in text and "w)" not in text:
        text = "\n".join(x for x in text.split("\n") if "load W" not in x)
        text = text.replace(", W: [D, N]", "")
    return parse_tiles(text)


def filled(fill, reduced="row_sum", fold=SUM):
    """``fold`` of a row of which ``fill`` takes what is masked."""
    return loop(f"a: [M, N] = where(m, x, {fill}) over [M, N]", f"s: [M] = {reduced}(a)", fold)


LARGEST = "r: [M] = row_max(a)"
MASKED = "a: [M, N] = where(m, x, -inf) over [M, N]"
APPLY = moved("narrow")
IDLE = [
    # (text of a module, what replaces it, programs that show it)
    ("if value != IDENTITY[stmt.monoid]:", "if False:", [filled("1"), filled("0")]),
    ("if stmt.monoid != \"max\" or not by_exponent or member.leads != (0,):", "if False:",
     [loop(MASKED, LARGEST, "e: [M, N] = exp(a)", "s: [M] = row_sum(e)",
           GROUP.format("x * 2"), mask="i > j")]),
    ("if lane != IDENTITY[member.monoid]:", "if False:",
     [loop(MASKED, LARGEST, "e: [M, N] = -(x * x) over [M, N]", "s: [M] = row_max(e)",
           f"t2 max= r\n          with t4 max= s by {KEPT}",
           end="y: [M] = t4 * 1 over [M]\n      store Y[M] = y")]),
    ('if isinstance(stmt, Store):', "if False:",
     [loop("a: [M, N] = where(m, x, 0) over [M, N]", "store S[M, N] = x", "s: [M] = row_sum(a)",
           SUM, stores=("Y", "S"))]),
    ('if name == "dot" and 0.0 in args', 'if name == "dot"',
     [loop("a: [M, N] = where(m, x, 0) over [M, N]", "s: [M] = row_sum(a)", SUM,
           "d: [M, D] = dot(x, w)", "t3 += d", end=f"{TOTAL}\n      z: [M, D] = t3 over [M, D]\n"
           "      store Z[M, D] = z", stores=("Y", "Z"))]),
    ("return a if a == b else DATA if finite else UNKNOWN", "return b",
     [loop("a: [M, N] = where(x > 1, x, where(m, x, 0)) over [M, N]", "s: [M] = row_sum(a)", SUM)]),
    ("return args[0]\n    if not all(arg == DATA", "return 0.0\n    if not all(arg == DATA",
     [filled("-inf", "row_sum")]),
    ("len(parts) < len(bound.parts)", "False",
     [loop("r: [M] = row_sum(x)", "o: [M, N] = m or j < r over [M, N]",
           "a: [M, N] = where(o, x, 0) over [M, N]", "s: [M] = row_sum(a)", SUM, mask="j < i")]),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "programs"), IDLE, ids=[old[:50] for old, *_ in IDLE])
def test_a_broken_predicate_skips_too_much(monkeypatch, old, new, programs):
    assert set(verdicts(APPLY, programs)) <= {True}

    module = span_tiles if old.startswith("len") else dead_iterations
    mutated(monkeypatch, module, old, new)
    assert False in verdicts(APPLY, list(map(anew, programs)))


ROWS, COLUMNS = 11, 31
NUMBERS = np.array([3.0, 30, -4, np.nan, 7.4, 12, np.inf, 1e-5, 0, 5, -np.inf])
SMALL = np.array([3.0, 9, 5, 7, 7.4, 12, 6, 4, 8, 5, 6])


def agrees(text, numbers):
    """Whether a narrowed loop adds up what the whole loop does."""
    sizes = {"M": ROWS, "N": COLUMNS, "H": 1}
    start = unscheduled_at(masked_sum(text), sizes)
    if NARROW.why_not(start, Site(1, "N")):
        return True
    after = NARROW.apply(start, Site(1, "N"))
    x = np.arange(1.0, ROWS * COLUMNS + 1).reshape(ROWS, COLUMNS)
    arrays = {"x": x, "n": numbers, "h": np.array([5.0])}
    runs = (
        both_runs(start, after, arrays, sizes, {"M": rows, "N": columns})
        for rows, columns in ((3, 1), (1, 4), (4, 3))
    )
    return all(np.array_equal(full, narrowed) for (full, _), (narrowed, _) in runs)


RANGES = [
    # (module, text, what replaces it, conditions that show it)
    (mask_ranges, '"gt": "lt", "le": "ge"', '"gt": "gt", "le": "ge"', ["i > j"]),
    (mask_ranges, '"lt": "ge", "ge": "lt"', '"lt": "le", "ge": "lt"', ["~(j < i)"]),
    (mask_ranges, 'both if (fn == "and") == wanted else either', "both", ["(j < i) | (j < 9)"]),
    (mask_ranges, 'both if (fn == "and") == wanted else either',
     'both if fn == "and" else either', ["~((j < i) & (j < 9))"]),
    (mask_ranges, "if a is None or b is None:\n        return None",
     "if a is None or b is None:\n        return a or b", ["(j < i) | (i > 4)"]),
    (mask_ranges, "Outer((a, b), most=True)", "Outer((a, b), most=False)", ["(j < i) | (j < 9)"]),
    (mask_ranges, 'opposed = not wanted and fn not in ("eq", "ne")', "opposed = False",
     ["~(j >= n)"]),
    (mask_ranges, "return self.of(inner, not wanted)", "return self.of(inner, wanted)",
     ["~(j < i)"]),
    (mask_ranges, 'if fn == "ne" or not', "if not", ["j != i"]),
    (mask_ranges, "return solver._side(right, MIRRORED", "return solver._side(right, OPPOSITE",
     ["i >= j"]),
    (mask_ranges, "both(*sides) if fn in (\"lt\", \"le\") else either(*sides)", "both(*sides)",
     ["np.abs(i - j) > 9"]),
    (mask_ranges, "return self._divided(-factor, MIRRORED[fn]", "return self._divided(-factor, fn",
     ["i - j < 4"]),
    (mask_ranges, '"lt": -0.25, "le": 0.25', '"lt": -0.25, "le": -0.25', ["2 * j <= i"]),
    (mask_ranges, "return -line[0], negated(line[1])", "return -line[0], line[1]",
     ["-(j - i) + j - j >= -4"]),
    (mask_ranges, '(name == "maximum") == (fn in ("lt", "le"))', "True",
     ["np.maximum(j - 20, i) > 4"]),
    (mask_ranges, "if self.open and not all", "if False and not all",
     ["~(np.maximum(j, n) > 12)"]),
    (mask_ranges, "return self._moved(y, x, MIRRORED[fn]", "return self._moved(y, x, fn",
     ["n - j > 2"]),
    (mask_ranges, "replace(self, open=True).solved", "self.solved", ["j + n <= n + 5"]),
    (mask_ranges, '_plus(bound, Const(1.0)) if fn in ("le", "gt") else bound', "bound",
     ["j // 4 <= i // 4"]),
    (mask_ranges, 'side = "lt" if fn in ("lt", "le") else "ge"', 'side = "lt"', ["j // 4 >= i"]),
    (mask_ranges, "self.solved(held, side, _scaled(after, divisor))",
     "self.solved(held, side, after)", ["i // 4 == j // 4"]),
    (mask_ranges, "if not is_whole(bound, self.formulas):\n            return ALL\n        after",
     "after", ["j // 4 < 0.5 * i"]),
    (whole_numbers, "divisor > 0 and", "", ["j // -4 >= -i"]),
    (whole_numbers, 'call("whole", of(a, most))', 'call("whole", of(a, not most))',
     ["i // 4 == j // 4"]),
    (span_tiles, "if bound.least != bound.open", "if bound.least", ["~(j >= n)"]),
    (whole_numbers, "cleaned(number, leaves, unknown)", "number", ["j <= n"]),
    (span_tiles, '"row_min" if bound.least else "row_max"', '"row_min"', ["j < n"]),
    (span_tiles, "LAST if most else FIRST", "FIRST", ["j <= i"]),
    (span_tiles, "most=not bound.least", "most=bound.least", ["j <= i"]),
    (span_tiles, '"minimum" if bound.most == _least(bound) else "maximum"', '"minimum"',
     ["(j <= i) | (j < 9)"]),
    (span_tiles, 'call("add", Arg(0), 1), (block,)', 'call("add", Arg(0), 0), (block,)',
     ["j <= i"]),
    (span_tiles, "1 if bound.least else -1", "2 if bound.least else -2", ["j > i"]),
    (whole_numbers, 'of(a, most), of(b, not most)', 'of(a, most), of(b, most)',
     ["j <= 20 - i"]),
    (whole_numbers, 'call("neg", of(a, not most))', 'call("neg", of(a, most))', ["j - 20 <= -i"]),
    (whole_numbers, "most if b.value >= 0 else not most", "most", ["j <= 30 + i * -2"]),
    (whole_numbers, 'call("maximum", *sides)', "of(a, True)", ["j <= np.abs(i - 9)"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("module", "old", "new", "texts"), RANGES, ids=[f"{old[:40]}" for _, old, *_ in RANGES]
)
def test_a_broken_range_leaves_out_too_much(monkeypatch, module, old, new, texts):
    cases = [(text, numbers) for text in texts for numbers in (NUMBERS, SMALL)]
    assert all(agrees(text, numbers) for text, numbers in cases)

    mutated(monkeypatch, module, old, new)
    assert not all(agrees(text, numbers) for text, numbers in cases)


LOOKED_UP = """
tiles {
  inputs X: [M, N], A: [M], B: [N]
  outputs Y: [M]
  nest 1 {
    forall M {
      t1: [M] = init +
      a: [M] = load A[M]
      for N {
        b: [N] = load B[N]
        x: [M, N] = load X[M, N]
        m: [M, N] = {mask} over [M, N]
        k: [M, N] = where(m, x, 0) over [M, N]
        s: [M] = row_sum(k)
        t1 += s
      }
      y: [M] = t1 * 1 over [M]
      store Y[M] = y
    }
  }
}
"""
SCANS = [
    # (module, text, what replaces it, masks of data that show it)
    (scan_nest, '"gt": call("gt", Arg(1), Arg(2))', '"gt": call("gt", Arg(0), Arg(2))', ["a < b"]),
    (scan_nest, '"le": call("le", Arg(0), Arg(3))', '"le": call("le", Arg(1), Arg(3))', ["b <= a"]),
    (scan_nest, '"eq": call("and", call("le", Arg(0), Arg(3))',
     '"eq": call("and", call("le", Arg(1), Arg(3))', ["a == b"]),
    (scan_nest, '("row_min", math.inf), ("row_max", -math.inf)',
     '("row_max", math.inf), ("row_max", -math.inf)', ["a == b", "a > b"]),
    (whole_numbers, "cleaned(number, leaves, unknown)", "number", ["a == b"]),
    (scan_nest, "found.append(made[-1].target)", "found.insert(0, made[-1].target)", ["a == b"]),
    (scan_nest, "0 if scan.least else 1", "1 if scan.least else 0", ["a == b"]),
    (scan_nest, "monoid, none in zip(totals,", "monoid, none in zip(totals[::-1],", ["a == b"]),
    (mask_ranges, 'fn == "ne" or self.open', 'fn == "ne"', ["not (a > b)"]),
    (mask_ranges, 'found.bounded or fn == "ne"', "found.bounded", ["a != b"]),
]  # fmt: skip


def looked_up(mask):
    """Whether a loop narrowed by data adds up what the whole loop does; it may fail on the way."""
    start = unscheduled_at(parse_tiles(LOOKED_UP.replace("{mask}", mask)), {"M": 9, "N": 20})
    if NARROW.why_not(start, Site(1, "N")):
        return True
    rows = np.array([0.0, 0, 1, 1, np.nan, 2, 3, 3, 7])
    columns = np.array([0.0, 0, 0, 0, 2, 1, 1, 1, 1, 2, 2, 2, np.nan, 3, 3, 3, 4, 5, 5, 9])
    arrays = {"X": np.arange(1.0, 181).reshape(9, 20), "A": rows, "B": columns}
    blocks = {"M": 2, "N": 3}
    try:
        after = NARROW.apply(start, Site(1, "N"))
        full, narrowed = (
            run_tiles(one.draft, arrays, {"M": 9, "N": 20}, blocks)["Y"] for one in (start, after)
        )
    except (BlockbusterError, KeyError, StopIteration, Hazard):
        return False
    return np.array_equal(full, narrowed)


@pytest.mark.parametrize(
    ("module", "old", "new", "masks"), SCANS, ids=[o[:40] for _, o, *_ in SCANS]
)
def test_a_broken_look_up_leaves_out_too_much(monkeypatch, module, old, new, masks):
    assert all(map(looked_up, masks))

    mutated(monkeypatch, module, old, new)
    assert not all(map(looked_up, masks))
