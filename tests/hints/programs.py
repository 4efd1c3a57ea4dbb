"""Hints about rules, texts of programs, machines and choices: names and forms that are known."""

import tempfile
from functools import cache, reduce
from pathlib import Path

import numpy as np
import sympy
import torch

import blockbuster as bb
from blockbuster.rules import FuseMaps
from blockbuster.rules.restore import restore
from blockbuster.tiling.expression import parse_expression
from tests.emit.parse_tiles import parse_tiles
from tests.hints.tried import Tried
from tests.rules.test_deep_programs import DEEPEST, nest
from tests.rules.test_driver import GRAPH as NEGATED
from tests.rules.test_driver import Negate, Restore

SOFTMAX = bb.trace(lambda x: bb.softmax(x), x="M N")
GRAPH = bb.lower(SOFTMAX)
SIZES = {"M": 64, "N": 32}
INTEGERS = str(bb.lower(bb.trace(lambda x: x + 1, x="int32: M")))
TILES = "tiles { outputs Y: f32[] nest 1 { t1: f32[] = 1 store Y[] = t1 } }"
CUT = """tiles { inputs x: f32[M] outputs Y: f32[M] nest 1 { blocks M 64
  x_1: f32[M 64] = load x[M] store Y[M] = x_1 } }"""
ROWS = bb.lower(bb.trace(bb.exp, x="M N"))
C, R = sympy.symbols("c r")
OPAQUE = bb.lower(bb.trace(lambda x: np.sort(x, -1), x="M N"))


@cache
def fused():
    return bb.fuse(GRAPH)


def fuse(*rules, **change):
    return lambda: bb.fuse(GRAPH, *rules, **change)


class Forgetful(FuseMaps):
    """A rule whose author forgot to return the rewritten graph."""

    def apply(self, match):
        super().apply(match)


def deep(x, first=120):
    """A program of 120 exponentials, of which the ``first`` have a name."""
    named = "exp(" * first + x + ")" * first
    rest = "exp(" * (120 - first) + "t" + ")" * (120 - first)
    return f"graph(X: M[M]) {{ Y = map M (x in !X) {{ t = {named} y = {rest} yield y }} return Y }}"


def repair(g=None, *facts):
    return lambda: bb.repair(sympy.exp(C - R) if g is None else g, [R], [C], facts=facts)


def nested(depth):
    array = np.ones(3)
    for _ in range(depth):
        array = [array]
    return array


def first_of(x):
    while isinstance(x, list):
        (x,) = x
    return x + 1


@cache
def saved():
    """The file of a plan of kernels."""
    path = Path(tempfile.mkdtemp()) / "kernels.json"
    bb.compile(bb.trace(bb.exp, x="M N"), SIZES, "float16", "sm_90").save(path)
    return path


def loaded():
    return bb.load(saved()).plan


def damaged():
    path = saved().with_name("damaged.json")
    path.write_text(saved().read_text(encoding="utf-8")[:99], encoding="utf-8")
    return bb.load(path)


def sorted_rows(x):
    return np.sort(x)


def stored(fn):
    program = bb.trace(lambda x: bb.custom(fn, x, shape=x.shape), x="M N")
    return lambda: bb.compile(program, SIZES, "float32", "cpu").save(saved().with_name("fn.json"))


def cast_to(dtype):
    return bb.lower(bb.trace(lambda x: x.astype(dtype), x="M N"))


def select(program=SOFTMAX, sizes=SIZES, machine="h200", **options):
    return lambda: bb.select(program, sizes, machine, **options)


def nine_arrays(effort):
    program = bb.trace(lambda x: reduce(lambda y, k: bb.softmax(y, k % 2), range(9), x), x="M N")
    return select(program, machine="cpu", dtype="float32", effort=effort)


RULES = (
    Tried("are sequences of rules", fuse("RULES"), fuse(bb.RULES)),
    Tried("pass an instance, FuseMaps()", fuse((FuseMaps,)), fuse((FuseMaps(),))),
    Tried("('N',)", fuse(whole="N"), fuse(whole=("N",))),
    Tried("these can: ", fuse(whole=("Q",)), fuse(whole=("N",))),
    Tried("fuse FILE.py:FUNCTION --json", lambda: restore('{"schema": "other"}', bb.RULES),
          lambda: restore(fused().to_json(), bb.RULES)),
    Tried("known: ", lambda: restore(fused().to_json(), bb.PAPER_RULES[:1]),
          lambda: restore(fused().to_json(), bb.RULES)),
    Tried("undoes another: leave one out", lambda: bb.fuse(NEGATED, (Negate(), Restore())),
          lambda: bb.fuse(NEGATED, (Negate(),))),
    Tried("as axes of larger blocks", lambda: bb.fuse(nest(DEEPEST + 1)),
          lambda: bb.fuse(nest(3))),
    Tried("return edit.finish()", fuse((Forgetful(),)), fuse((FuseMaps(),))),
    Tried("sympy.symbols", repair(3.0), repair()),
    Tried("sympy.Le(c, r)", repair(None, sympy.Le(3, R)), repair(None, sympy.Le(C, R))),
    Tried("the program has none", lambda: bb.materialize(fused().final, "nothing"), fused),
)  # fmt: skip

TEXTS = (
    Tried("parse(text, {name: function})", lambda: bb.parse(str(OPAQUE)),
          lambda: bb.parse(str(OPAQUE), {"np.sort[-1]": np.sort})),
    Tried("known: bool, int8", lambda: bb.parse(INTEGERS.replace("int32", "int3")),
          lambda: bb.parse(INTEGERS)),
    Tried("give a part of it a name", lambda: bb.parse(deep("x")), lambda: bb.parse(deep("x", 60))),
    Tried("a statement begins with", lambda: parse_tiles(TILES.replace("store", "stare")),
          lambda: parse_tiles(TILES)),
    Tried("t1: f32[M] = ...", lambda: parse_tiles(TILES.replace("t1: f32[]", "t1")),
          lambda: parse_tiles(TILES)),
    Tried("the line `blocks` says", lambda: parse_tiles(CUT.replace("f32[M 64]", "f32[M 32]")),
          lambda: parse_tiles(CUT)),
    Tried("mn(k,h) runs k", lambda: parse_expression("mn(k"), lambda: parse_expression("mn(k,h)")),
    Tried("known: int8", lambda: bb.emit(bb.parse(INTEGERS), {"M": 64}, dtype={"x": "bool"}),
          lambda: bb.emit(bb.parse(INTEGERS), {"M": 64}, dtype={"x": "int32"})),
    Tried("the loops are nest 1 M", lambda: bb.emit(ROWS, SIZES, schedule="stage nest 1 K 2"),
          lambda: bb.emit(ROWS, SIZES)),
)  # fmt: skip

CHOICES = (
    Tried("did you mean 'exhaustive'?", select(effort="exhaust"), select(effort="exhaustive")),
    Tried('effort="exhaustive"', nine_arrays("overlapping"), nine_arrays("exhaustive")),
    Tried("a function of a part", select(fusers=[bb.RULES]), select(fusers=[lambda part: ()])),
    Tried("known: auto, ", lambda: bb.jit(machine=None), lambda: bb.jit(machine="auto")),
    Tried("bb.compile compiles for such sizes", select(sizes=SIZES | {"M": 0}),
          lambda: bb.compile(SOFTMAX, SIZES | {"M": 0}, "float32", "cpu")),
    Tried("known: ", lambda: bb.machine("h200").rate("matrix", "int3"),
          lambda: bb.machine("h200").rate("matrix", "float16")),
    Tried('machine="sm_90"', lambda: bb.compile(SOFTMAX, SIZES, "float32", "cpu").plan.cost(),
          lambda: bb.compile(SOFTMAX, SIZES, "float32", "sm_90").plan.cost()),
)  # fmt: skip

SAVED = (
    Tried("bb.select chooses again", lambda: loaded().explain(), lambda: select()().explain()),
    Tried("bb.select chooses again", lambda: loaded().lower_bound_us,
          lambda: select()().lower_bound_us),
    Tried("bb.select chooses again", lambda: loaded().cost(), lambda: select()().cost()),
    Tried("save the compiled program again", damaged, loaded),
    Tried("define it at the top of a module", stored(lambda x: np.sort(x)), stored(sorted_rows)),
)  # fmt: skip

CALLS = (
    Tried("nest at most 200 deep", lambda: bb.jit(first_of)(nested(300)),
          lambda: bb.jit(first_of)(nested(20))),
    Tried("lambda x: relu(x)", lambda: bb.jit(torch.relu)(torch.ones(3)),
          lambda: bb.jit(lambda x: torch.relu(x))(torch.ones(3))),
    Tried("leave out one_kernel=True", lambda: bb.jit(sorted_rows, one_kernel=True)(np.eye(3)),
          lambda: bb.jit(sorted_rows)(np.eye(3))),
    Tried("a cast to one of float16", lambda: bb.emit(cast_to(np.float64), SIZES),
          lambda: bb.emit(cast_to(np.float32), SIZES)),
    Tried("bb.jit and bb.compile run it", lambda: bb.emit(OPAQUE, SIZES),
          lambda: bb.jit(sorted_rows)(np.eye(3))),
)  # fmt: skip

CASES = (*RULES, *TEXTS, *CHOICES, *SAVED, *CALLS)
