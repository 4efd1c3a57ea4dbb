"""Every part of a legality predicate matters: broken, a move that it let through is caught.

A mutant is a piece of text of a module, replaced. Passes and moves of the changed module are
applied to programs that the predicate is about; the proof of one of them has to fail.
"""

import sys
import types
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from blockbuster.emit.closing import guard, hoist, lead_first, merge_repeats
from blockbuster.emit.closing.bind import bind
from blockbuster.emit.interpret.proof import prove_tiles
from blockbuster.emit.schedule import (
    block,
    chunkable,
    defer_lane_sums,
    drop_unit_loops,
    finish_rows,
    keep,
    spread,
    stage,
)
from blockbuster.emit.schedule.scheduled import unscheduled
from blockbuster.emit.schedule.script import BY_NAME, replayed
from blockbuster.emit.target.targets import target_of
from blockbuster.emit.tile import padding
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.trips import sized
from blockbuster.errors import BlockbusterError
from blockbuster.ir.fitting import fitted
from tests.emit.cases import blocked_dims, graph_of
from tests.emit.parse_tiles import parse_tiles
from tests.emit.spread_texts import LENGTHS, ONE_STORE
from tests.emit.tile_texts import (
    AGAIN,
    COUNTED,
    ENTRY,
    FINISHED,
    GROWS,
    INVERSES,
    LANES,
    LEAD_FOLDED,
    LEAD_ODD,
    LEAD_SQUARED,
    LEAD_STORED,
    NESTED,
    PLACES,
    PLAIN,
    RUNNING,
    STORED,
    STORED_SINCE,
    TOTALS,
    TURNED,
    TWICE,
    TWO,
    UNKNOWN,
)


def of(text):
    return parse_tiles(text)


def lanes(value, reduction="row_sum"):
    return of(LANES.replace("{value}", value).replace("{reduction}", reduction))


def named(name, drop=()):
    return drop_unit_loops.drop_unit_loops(lower_to_tiles(graph_of(name)), drop)


def scheduled(program, text=""):
    sizes = fitted(dict.fromkeys(sized(program), 100), program.rules)
    sizes |= dict.fromkeys(program.units, 3)
    return replayed(unscheduled(program, sizes, target_of("sm_90")), text)


def passed(name):
    """Pairs of programs before and after a pass."""

    def pairs(*programs):
        for program in programs:
            module = sys.modules[f"blockbuster.emit.closing.{name}"]
            yield program, getattr(module, name)(program)

    return pairs


def moved(name, text="", **args):
    """Pairs of programs before and after a move, at each of its places."""

    def pairs(*programs):
        for program in programs:
            start, move = scheduled(program, text), BY_NAME[name]
            for site in islice(move.sites(start), 6):
                for given in [args] if args else islice(move.arguments(start, site), 1):
                    if not move.why_not(start, site, **given):
                        after = move.apply(start, site, **given).draft
                        yield start.draft, after
                        yield start.draft, bind(after)

    return pairs


def guarded(*programs):
    for program in programs:
        yield program, guard.guard(program, blocked_dims(program))


def attention():
    return named("attention safe", ("D", "L"))


HOIST, MERGE, LEADS = passed("hoist"), passed("merge_repeats"), passed("lead_first")
CHUNK, DEFER, FINISH = moved("chunk", count=2), moved("defer"), moved("finish")
KEEP = moved("keep")
SPREAD = moved("spread", dim="N")
STAGE = moved("stage", "block N 2, M 16", stages=3)
WHOLE_CHUNKS = "chunk nest 1 N 2"

MUTANTS = [
    # (module, text, what replaces it, how it is applied, programs)
    (hoist, "if stmt.view.buffer in stored(loop.body):", "if False:", HOIST, [of(STORED)]),
    (hoist, "if loop.dim in stmt.view.runs:", "if False:", HOIST, [of(STORED)]),
    (hoist, "if loop.dim in target.axes:", "if False:", HOIST, [named("causal")]),
    (hoist, "if any(tile in staying for tile in operands(stmt)):", "if False:", HOIST,
     [of(RUNNING), attention()]),
    (merge_repeats, "{*stored(nest.body)}", "set()", MERGE, [of(TWICE)]),
    (merge_repeats, "if not changing.intersection(args)", "if True", MERGE, [of(COUNTED)]),
    (lead_first, 'return f"{folded(stmt)[0].name} is folded under the lead, too"', 'return ""',
     LEADS, [of(LEAD_FOLDED)]),
    (lead_first, 'return f"{stmt.value.name} is stored"', 'return ""', LEADS, [of(LEAD_STORED)]),
    (lead_first, "if moves.get(member.value) != SMALLER:", "if False:", LEADS,
     [of(LEAD_SQUARED)]),
    (lead_first, "if (member.factor, member.leads) != (kept_empty(RESCALED, member.monoid), (0,)):",
     "if False:", LEADS,
     [of(LEAD_ODD)]),
    (chunkable, "if fold in totals and not all(map(combines, fold.members)):", "if False:", CHUNK,
     [of(UNKNOWN)]),
    (chunkable, "if tile in reads(loop.body):", "if False:", CHUNK, [of(RUNNING)]),
    (chunkable, "if sum(folded(s).count(tile) for s in statements((*before, loop, *behind))) > 1:",
     "if False:", CHUNK, [of(TOTALS)]),
    (chunkable, "if tile not in started:\n                return f\"{tile.name} does",
     "if False:\n                return f\"{tile.name} does", CHUNK, [of(NESTED)]),
    (chunkable, "if tile.per_lane and any(isinstance(s, Init)", "if any(()",
     moved("chunk", "defer nest 1 @6", count=2), [of(TWO)]),
    (defer_lane_sums, "if read[value] > 1:", "if False:", DEFER,
     [of(AGAIN)]),
    (defer_lane_sums, "if target in _counted(Same(loop.body))[0]:", "if False:", DEFER,
     [of(RUNNING)]),
    (defer_lane_sums, "if folds[target] > 1:", "if False:",
     DEFER, [of(TOTALS)]),
    (finish_rows, 'Finish((x,), {"mul": "div"})', 'Finish((x,), {"mul": "mul"})', FINISH,
     [of(FINISHED.replace("{use}", "t5 * t4"))]),
    (stage, "load.view, stages - 1, stages, load.origin", "load.view, stages, stages, load.origin",
     moved("stage", stages=2), [of(RUNNING)]),
    (stage, "awaits.get(s.target, s)", "s",
     moved("stage", stages=2), [of(RUNNING)]),
    (stage, "if load.view.buffer in written:", "if False:", moved("stage", stages=2),
     [of(STORED)]),
    (stage, "if loop.parallel:", "if False:", moved("stage", stages=2), [of(PLAIN)]),
    (block, "if loop.chunk is not None:", "if False:",
     moved("block", "chunk nest 1 N 2", cuts=(block.Cut("N", 128, True),)), [of(AGAIN)]),
    (block, "if any(isinstance(stmt, Issue) for stmt in loop.body):", "if False:",
     moved("block", "stage nest 1 N 2", cuts=(block.Cut("N", 128, True),)), [of(AGAIN)]),
    (keep, "stored_since(made)\n", "''\n", KEEP, [of(STORED_SINCE)]),
    (keep, "or another_part(load, made)\n", "\n", KEEP, [of(TURNED)]),
    (keep, "or of_another_iteration(load, made)\n", "\n", KEEP, [of(ENTRY)]),
    (keep, "or folded_since(made)\n", "\n", KEEP, [of(GROWS)]),
    (keep, "and array.space == WORKSPACE", "", KEEP, [of(STORED)]),
    (spread, "if dim not in target.axes and any(dim in arg.axes for arg in args):", "if False:",
     SPREAD, [of(LENGTHS)]),
    (spread, "if dim not in value.axes:", "if False:", SPREAD, [of(ONE_STORE)]),
    (guard, "if name in IGNORED and lanes.lane(stmt.args[0], last) != IGNORED[name]:",
     "if False:", guarded, [lanes("exp(t2)")]),
    (guard, "if 0.0 in held and all(map(is_finite, held)):", "if 0.0 in held:", guarded,
     [of(INVERSES)]),
    (padding, "if fn == \"mul\" and 0.0 in numbers:", "if fn == \"mul\":", guarded,
     [lanes("(t2 + 1) * t5")]),
    (padding, "case Iota() | BlockOf():\n                self._set(stmt.target, lambda _: UNKNOWN)",
     "case Iota() | BlockOf():\n                self._set(stmt.target, lambda _: 0.0)", guarded,
     [lower_to_tiles(PLACES)]),
    (padding, "self._set(stmt.target, lambda _: 0.0)\n            case Iota",
     "self._set(stmt.target, lambda _: -math.inf)\n            case Iota", guarded,
     [lanes("t2 + 0", "row_max")]),
]  # fmt: skip


def anew(program):
    """An equal program of other objects: passes remember what became of those they have seen."""
    nests = (replace(nest, body=(*nest.body,)) for nest in program.nests)
    return replace(program, nests=tuple(nests))


def mutated(monkeypatch, module, old, new):
    """Put functions and tables of a changed copy of ``module`` wherever its own are."""
    text = Path(module.__file__).read_text(encoding="utf-8")
    assert old in text, f"no {old!r} in {module.__name__}"
    made = types.ModuleType(module.__name__)
    monkeypatch.setitem(sys.modules, module.__name__, made)
    exec(compile(text.replace(old, new), module.__file__, "exec"), vars(made))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for name, value in list(vars(made).items()):
        own = vars(module).get(name)
        if getattr(value, "__module__", "") != module.__name__ or own is None:
            continue
        for other in list(sys.modules.values()):
            if getattr(other, "__name__", "").startswith("blockbuster.emit"):
                for attribute, held in list(vars(other).items()):
                    if held is own and not isinstance(own, type):
                        monkeypatch.setattr(other, attribute, value)
        if isinstance(own, type):
            for attribute, function in list(vars(value).items()):
                if isinstance(function, types.FunctionType):
                    monkeypatch.setattr(own, attribute, function)


def verdicts(apply, programs):
    """Whether each application keeps what its program means; it may fail on the way."""
    found = []
    try:
        for before, after in apply(*programs):
            if before != after or apply is guarded:
                found.append(prove_tiles(before, after, trials=4, lanes=apply is guarded).equal)
    except (BlockbusterError, AssertionError, KeyError, StopIteration) as error:
        found.append(f"{type(error).__name__}: {error}")
    return found


IDS = [f"{module.__name__.rpartition('.')[2]}: {old[:40]}" for module, old, *_ in MUTANTS]


@pytest.mark.parametrize(("module", "old", "new", "apply", "programs"), MUTANTS, ids=IDS)
def test_a_broken_predicate_is_caught(monkeypatch, module, old, new, apply, programs):
    assert set(verdicts(apply, programs)) <= {True}

    mutated(monkeypatch, module, old, new)
    assert False in verdicts(apply, [*map(anew, programs)])
