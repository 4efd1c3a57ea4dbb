"""Programs for the tests of tile programs, their inputs, and every chain of passes."""

import atexit
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np

import blockbuster.frontend as bb
from blockbuster.emit.closing.bind import bind
from blockbuster.emit.closing.guard import guard
from blockbuster.emit.closing.hoist import hoist
from blockbuster.emit.closing.lead_first import lead_first
from blockbuster.emit.closing.merge_repeats import merge_repeats
from blockbuster.emit.schedule.drop_unit_loops import drop_unit_loops
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.emit.schedule.split_nests import split_nests
from blockbuster.emit.target.targets import TARGETS
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.padding import LaneState
from blockbuster.emit.tile.program import Block, Let, statements
from blockbuster.emit.tile.tiling import fitted as fitted_tiling
from blockbuster.emit.tile.trips import dims_in, dims_of, sized
from blockbuster.emit.tile.verify import verify_tiles
from blockbuster.interp.binding import dims_of as dims_of_graph
from blockbuster.interp.binding import list_only, sources
from blockbuster.interp.evaluate import evaluate
from blockbuster.ir.fitting import fitted
from blockbuster.ir.lengths import in_order
from blockbuster.ir.parse import parse
from blockbuster.ir.types import size_class
from blockbuster.rules import fuse, safe
from blockbuster.selection.decisions.chunk_sizes import in_chunks
from blockbuster.selection.decisions.default_schedule import finished
from blockbuster.selection.decisions.deferral import deferred
from tests.emit.numpy_runs import run_numpy
from tests.frontend.programs import OPAQUE, PROGRAMS
from tests.interp import examples

SAFE_ATTENTION = """
graph(Q: M,D[M,D], KT: N,D[N,D], VT: L,N[L,N]) {
  O = map M (q in !Q, kt = !KT, vt = !VT) {
    o = map L (v in !vt, q2 = !q, kt2 = !kt) {
      z, l, a = map N (k in !kt2, b in !v, q3 = !q2) {
        s0 = map D (x in !q3, c in !k) { d = dot(x, c)  yield +d }
        s = s0 * |D| ** -0.5
        z = row_max(s)
        h = sub0(s, z) over [M,N]
        e = exp(h)
        t = row_sum(e)
        p = dot(e, b)
        yield max r = z
        yield +t by r: x * exp(sub0(r, r2))
        yield +p by r: x * exp(sub0(r, r2))
      }
      i = recip0(l)
      y = row_scale(a, i)
      yield y
    }
    yield o
  }
  return O
}
"""

# values that leave as they came, twice, relabeled, transposed, or as another's operand
PORTS = """
graph(X: M,N[M,N], J: N[N] = index(N), c: []) {
  E = map M (x in !X) { y = map N (b in !x) { c = exp(b)  yield c }  yield y }
  ET = transpose N,M[N,M] (!E)
  R = relabel M -> M' (!E)
  P = map M (x in !E, r = !R) {
    y = map M' (z in !r, x2 = !x) {
      s = map N (a in !x2, b in !z) { d = dot(a, b)  yield +d }
      yield s
    }
    yield y
  }
  V, S = map M (x in !X, c2 = c) {
    u, s = map N (b in !x, c3 = c2) {
      t = row_sum(b)
      v = t * c3 over [M]
      yield b
      yield +v
    }
    yield u
    yield s
  }
  A, T = map M (x in !X, j = !J) {
    y = map N (b in !x, i in !j) { m = b > i over [M,N]  yield m }
    t = map N (b in !x) { t = row_max(b)  yield max t }
    yield y
    yield t
  }
  B = map M (t in !T) { q = row_sum(t)  yield +q }
  return E, flipped = ET, again = E, same = V(N,M), P(M,M'), S, input = X, mask = A(M,1,N), B, J
}
"""

# one output per line of what a nest may hold: partial sums per block, a local value across nests
PARTIAL = """
graph(X: M,N[M,N], W: M[M]) {
  P = map M (x in !X) { y = map N (b in !x) { t = row_sum(b)  yield t }  yield y }
  S = map M (y in !P) { s = reduce + N (!y)  yield s }
  T = map M (s in !S, w in !W) { q = mul(s, w)  r = row_sum(q)  yield +r }
  U = sqrt(T * T + 1)
  Y = map M (x in !X, u = U) {
    y = map N (b in !x, v = u) { z = b / v over [M,N]  yield z }
    yield y
  }
  return Y, U
}
"""

TEXTS = {
    "attention start": examples.ATTENTION_START,
    "attention first": examples.ATTENTION_FIRST,
    "attention final": examples.ATTENTION_FINAL,
    "attention safe": SAFE_ATTENTION,
    "layer norm start": examples.LAYER_NORM_START,
    "layer norm first": examples.LAYER_NORM_FIRST,
    "layer norm final": examples.LAYER_NORM_FINAL,
    "swiglu start": examples.SWIGLU_START,
    "swiglu first": examples.SWIGLU_FIRST,
    "swiglu final": examples.SWIGLU_FINAL,
    "partial": PARTIAL,
}
SIZES = dict(zip("ABCDEFGHKLMNPX", (2, 3, 4, 5, 6, 4, 2, 3, 7, 4, 5, 6, 3, 4), strict=True))
FOLDER = Path(tempfile.mkdtemp(prefix="blockbuster-"))  # generated modules of this process
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)


@cache
def graph_of(name):
    """A program by name: a text of this file, or an array program as it is lowered."""
    if name in TEXTS:
        return parse(TEXTS[name])
    function, dims = PROGRAMS[name]
    return bb.lower(bb.trace(function, **dims))


@cache
def derivation_of(name):
    """The fusion of a program by name."""
    return fuse(graph_of(name))


@cache
def fused_of(name):
    """The safe form of a program by name when it is fused."""
    return safe(derivation_of(name).final)


def padding(program, ragged):
    """For each tile and each of its ragged axes, what the lanes past the end hold."""
    lanes = LaneState(ragged)
    for nest in program.nests:
        for stmt in statements(nest.body):
            lanes.step(stmt)
    return lanes.of


def sizes_of(graph, sizes=SIZES):
    drawn = {size_class(d): sizes.get(d[0], 3) for d in dims_of_graph(graph)}
    return fitted(drawn, graph.size_rules)


def free_sizes(graph, sizes):
    """The sizes that neither an array's shape nor another size tells."""
    shown = {size_class(d) for axes in sources(graph).values() for d in axes if d is not None}
    shown.update(rule.dim for rule in in_order(graph.size_rules, shown))
    return {d: n for d, n in sizes.items() if d not in shown}


def inputs_for(graph, sizes, seed=0):
    rng = np.random.default_rng(seed)
    return {
        name: rng.normal(size=[1 if d is None else sizes[size_class(d)] for d in axes])
        for name, axes in sources(graph).items()
    }


def ragged_blocks(graph, sizes):
    """Blocks of 2 and 3 elements, which leave ragged ends; 1 for batch dims."""
    single = list_only(graph)
    return {d: 2 + at % 2 for at, d in enumerate(sizes) if d not in single}


def lets(program, kind):
    """The operators of a class in a program."""
    stmts = (stmt for nest in program.nests for stmt in statements(nest.body))
    return [stmt for stmt in stmts if isinstance(stmt, Let) and isinstance(stmt.op, kind)]


def blocked_dims(program):
    return tuple(d for d in dims_of(program) if size_class(d) not in program.units)


def scheduled_of(program, size=100, block=2, *, processors=1 << 20, sizes=None, blocks=None):
    """A schedule with blocks under which loops have many iterations, and every block has lanes."""
    sizes = sizes or fitted(dict.fromkeys(sized(program), size), program.rules)
    blocks = blocks or dict.fromkeys(blocked_dims(program), block)
    tiling = fitted_tiling(sizes, blocks, program.whole, program.units)
    cut = [
        Block(dim, lanes, dim in tiling.whole, tiling.ragged(dim))
        for dim, lanes in tiling.blocks.items()
        if not tiling.is_unit(dim)
    ]
    nests = tuple(
        replace(nest, blocks=tuple(b for b in cut if b.dim in dims_in(nest)))
        for nest in program.nests
    )
    target = TARGETS["sm_90"]
    target = replace(target, machine=replace(target.machine, processors=processors))
    return Scheduled(program, replace(program, nests=nests), sizes, target)


def bare(scheduled):
    """The draft without its blocks."""
    draft = scheduled.draft
    return replace(draft, nests=tuple(replace(nest, blocks=()) for nest in draft.nests))


def defer_lane_sums(program, *args, **options):
    """``program`` with all folds deferred that pay."""
    return bare(deferred(scheduled_of(program, *args, **options)))


def finish_rows(program):
    """``program`` with rows finished, but beside dots."""
    return bare(finished(scheduled_of(program)))


def chunk_loops(program, *, asked=None, **options):
    """``program`` with loops in chunks, as many as keep the processors busy."""
    return bare(in_chunks(scheduled_of(program, **options), asked=asked))


def pass_chains(graph) -> Iterator[tuple[str, object, bool]]:
    """(what was applied, the program, whether it can run on padded tiles)"""
    tiles = lower_to_tiles(graph)
    yield "lower", tiles, False
    dims = blocked_dims(tiles)
    split = split_nests(tiles)
    bound = bind(split)
    hoisted = hoist(bound)
    yield "split", split, False
    yield "bind", bound, False
    yield "hoist", hoisted, False
    yield "hoist unbound", hoist(tiles), False
    yield "guard", guard(hoisted, dims), True
    led = lead_first(hoisted)
    if led != hoisted:
        yield "lead", led, False
        yield "lead guard", guard(led, dims), True
    deferred = defer_lane_sums(hoisted)
    yield "defer", deferred, False
    yield "defer guard", guard(deferred, dims), True
    for processors in (200, 1 << 20):  # the first leaves loops with many programs alone
        chunked = chunk_loops(hoist(split), processors=processors)
        yield f"chunk {processors}", bind(chunked), False
        yield f"chunk {processors} guard", guard(bind(chunked), dims), True
        deferred = bind(defer_lane_sums(lead_first(chunked)))
        yield f"chunk {processors} lead defer guard", guard(deferred, dims), True
    classes = tuple(dict.fromkeys(map(size_class, dims)))
    for chosen in (classes[::2], classes[1::2], classes):
        part = tuple(d for d in dims if size_class(d) in chosen)
        dropped = drop_unit_loops(split, part)
        yield f"drop {','.join(part)}", dropped, False
        yield f"drop {','.join(part)} bind hoist", hoist(bind(dropped)), False
        merged = merge_repeats(hoist(bind(dropped)))
        yield f"drop {','.join(part)} merge guard", guard(merged, dims), True
        deferred = defer_lane_sums(lead_first(merged))
        yield f"drop {','.join(part)} merge lead defer guard", guard(deferred, dims), True


def assert_every_pass_keeps(graph, sizes, *, seed=0):
    """The numbers of the interpreter after every pass: poisoned arrays, any order, padded lanes."""
    inputs, blocks = inputs_for(graph, sizes, seed), ragged_blocks(graph, sizes)
    wanted = evaluate(graph, inputs, sizes=sizes, block_sizes=blocks)
    ran = set()  # chains often end at equal programs
    for label, program, can_pad in pass_chains(graph):
        verify_tiles(program)
        run = partial(run_numpy, program, inputs, sizes, blocks, seed=seed, folder=FOLDER)
        for padded in (False, True) if can_pad else (False,):
            if (program, padded) in ran:
                continue
            ran.add((program, padded))
            results = run(padded=padded)
            assert list(results) == list(wanted)
            for name, array in wanted.items():
                np.testing.assert_allclose(
                    results[name],
                    array,
                    rtol=1e-9,
                    atol=1e-9,
                    err_msg=f"{name} after {label}{' (padded)' if padded else ''}",
                )
                assert results[name].shape == array.shape


def changed_by(change) -> int:
    """How many of the fused array programs a pass changes; the numbers of each have to stay."""
    changed = 0
    for name in PROGRAMS:
        if name in OPAQUE:
            continue
        graph = fused_of(name)
        program = lower_to_tiles(graph)
        made = change(program)
        if made == program:
            continue
        changed += 1
        verify_tiles(made)
        sizes = sizes_of(graph)
        inputs, blocks = inputs_for(graph, sizes), ragged_blocks(graph, sizes)
        wanted = evaluate(graph, inputs, sizes=sizes, block_sizes=blocks)
        found = run_numpy(made, inputs, sizes, blocks, folder=FOLDER)
        for output, array in wanted.items():
            np.testing.assert_allclose(found[output], array, rtol=1e-9, atol=1e-12, err_msg=name)
    return changed
