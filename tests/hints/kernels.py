"""Hints behind tracing: sizes, dtypes, targets, schedules, machines, texts of programs, calls."""

import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import torch
from torch._subclasses import FakeTensorMode

import blockbuster as bb
from blockbuster.machines.data_file import machine_text
from blockbuster.runtime.given import family_of
from blockbuster.runtime.machines import nearest
from tests.hints.tried import Tried
from tests.selection.given_parts import plan_of_parts

ROWS = bb.trace(bb.exp, x="M N")
LOWERED = bb.lower(ROWS)
OF_64 = bb.lower(bb.trace(bb.exp, x="M=64 N"))
SIZES = {"M": 64, "N": 32}
EXP = "graph(X: M[M]) { Y = map M (x in !X) { y = exp(x) yield y } return Y }"
POSITIONS = "graph(X: M[M] = index(M)) { Y = map M (x in !X) { y = exp(x) yield y } return Y }"
ARRAY = np.ones((4, 8))
jitted = bb.jit(lambda x: x + 1)


def emit(**change):
    given = {"sizes": SIZES, "target": "sm_90"} | change
    return lambda: bb.emit(LOWERED, **given)


@cache
def kernel():
    return emit()()


def compiled(**change):
    given = {"sizes": SIZES, "dtype": "float32", "machine": "cpu"} | change
    return lambda: bb.compile(ROWS, **given)


def called(x, fn=jitted):
    return lambda: fn(x)


@cache
def machine_with(target):
    """The path of a file of a machine with another target."""
    path = Path(tempfile.mkdtemp()) / f"{target}.toml"
    path.write_text(machine_text(replace(bb.machine("h200"), target=target)), encoding="utf-8")
    return path


def on_fake_tensors(operator):
    with FakeTensorMode():
        return operator(torch.ones(4, 8))


def fused_rows(**change):
    return lambda: bb.emit(bb.fuse(LOWERED), SIZES, **change)


def emit_whole(lanes):
    softmax = bb.lower(bb.trace(bb.softmax, x="M N"))
    return lambda: bb.emit(bb.fuse(softmax, whole=("N",)).final, SIZES, tiles={"N": lanes})


def by_hand():
    """A plan of parts that were chosen by hand: each group of operators by itself."""
    program = bb.trace(lambda x: bb.softmax(x).sum(0), x="M N")
    family = family_of(program, "float16", "h200")
    return plan_of_parts(family, SIZES, lambda units: [1 << at for at in range(len(units))])


def lower_part(columns):
    def fn(x):
        rows = bb.arange(x.shape[0])[:, None]
        return bb.where(rows >= bb.arange(x.shape[1]), x, 0.0).sum(1)

    return bb.emit(bb.fuse(bb.lower(bb.trace(fn, x="M N"))).final, {"M": 64, "N": columns})


def text(program):
    return lambda: bb.parse(program)


EMIT = (
    Tried('x="M"', lambda: bb.emit(OF_64, {"M": 128, "N": 32}),
          lambda: bb.emit(LOWERED, {"M": 128, "N": 32})),
    Tried("at least one element", emit(sizes={"M": 0, "N": 32}), emit(sizes={"M": 1, "N": 32})),
    Tried("sizes=dict(M=4, N=128)", emit(sizes={"M": 4}), emit(sizes={"M": 4, "N": 128})),
    Tried("sizes={'M': 1024}", emit(sizes=3), emit(sizes={"M": 1024, "N": 32})),
    Tried("known: M, N", emit(sizes=SIZES | {"Q": 4}), emit()),
    Tried("known: M, N", emit(chunks={"Q": 4}), emit()),
    Tried("known: M, N", emit(tiles={"Q": 4}), emit(tiles={"N": 32})),
    Tried("known: ", emit(target="h300"), emit(target="h200")),
    Tried("did you mean 'sm_100'", emit(target="sm_10"), emit(target="sm_100")),
    Tried("did you mean 'float16'", emit(dtype="float1"), emit(dtype="float16")),
    Tried("pass one of the names", emit(dtype={"x": np.float16}), emit(dtype={"x": "float16"})),
    Tried('dtype="float16" for all', emit(dtype=16), emit(dtype="float16")),
    Tried("known: x", emit(dtype={"y": "float16"}), emit(dtype={"x": "float16"})),
    Tried("constant=('x',)", emit(constant="x"), emit(constant=("x",))),
    Tried("known: x", emit(constant=("y",)), emit(constant=("x",))),
    Tried("did you mean 'warps'", emit(schedule="warp 4"),
          emit(schedule="block M 4, N 32; warps 4")),
    Tried("give emit the derivation", lambda: bb.emit(LOWERED, SIZES, schedule="for snapshot 1"),
          emit(schedule=kernel().schedule)),
    Tried("bb.lower(program) makes one", lambda: bb.emit(ROWS, SIZES),
          lambda: bb.emit(bb.lower(ROWS), SIZES)),
    Tried('bb.trace(fn, x="M N") makes one', lambda: bb.compile(LOWERED, SIZES), compiled()),
    Tried("known: ", compiled(machine="tpu"), compiled()),
    Tried("sizes=dict(M=3, N=128)", compiled(sizes={"M": 3}),
          compiled(sizes={"M": 3, "N": 128})),
    Tried("known: ", compiled(tune="often"), compiled()),
    Tried("name a GPU: h200", lambda: kernel().cost("cpu"), lambda: kernel().cost("h200")),
    Tried("known: ", lambda: kernel().cost(launch="fast"), lambda: kernel().cost(launch="graph")),
    Tried("known: ", lambda: bb.simulate(kernel(), launch="fast"),
          lambda: bb.simulate(kernel(), launch="graph")),
    Tried("bb.emit makes it again", lambda: replace(kernel(), derivation=None).report,
          lambda: kernel().report),
    Tried("fn.plan_for(*args)", lambda: bb.simulate(jitted),
          lambda: bb.simulate(compiled(machine="h200")().plan)),
    Tried("known: ", lambda: bb.machine("h300"), lambda: bb.machine("h200")),
    Tried("known: ", lambda: bb.machine("h200").tier("l9"), lambda: bb.machine("h200").tier("l2")),
)  # fmt: skip

CHOSEN = (
    Tried("cast x to float16", emit(dtype={"x": "float8_e4m3fn"}, target="sm_80"),
          emit(dtype={"x": "float16"}, target="sm_80")),
    Tried("known targets: ", emit(target=machine_with("sm_60")),
          emit(target=machine_with("sm_90"))),
    Tried("known: sm_80", lambda: nearest("sm_50"), lambda: nearest("sm_89")),
    Tried("begins with the name of the kernel's program", fused_rows(schedule="for snapshot 9"),
          lambda: fused_rows(schedule=fused_rows()().schedule)()),
    Tried("a tile of at least its size", emit_whole(16), emit_whole(32)),
    Tried("bb.select finds one", lambda: by_hand().lower_bound_us,
          lambda: bb.select(ROWS, SIZES).lower_bound_us),
    Tried("a size of at most", lambda: lower_part(1 << 40), lambda: lower_part(1 << 20)),
)  # fmt: skip

TEXTS = (
    Tried("known: ", text(EXP.replace("!X)", "!X)").replace("exp(", "expo(")), text(EXP)),
    Tried("defined are", text(EXP.replace("exp(x)", "exp(z)")), text(EXP)),
)  # fmt: skip

CALLS = (
    Tried("pass a NumPy array", lambda: jitted(3.0), called(ARRAY)),
    Tried("pass np.asarray(x)", lambda: compiled()()([[1.0] * 32]),
          lambda: compiled(dtype="float64")()(np.asarray([[1.0] * 32]))),
    Tried("x.filled(value)", called(np.ma.ones((4, 8))), called(np.ma.ones((4, 8)).filled(0.0))),
    Tried("pass x.to_dense()", called(torch.ones(4, 8).to_sparse()), called(torch.ones(4, 8))),
    Tried("pass x.detach()", called(torch.ones(4, 8, requires_grad=True)),
          called(torch.ones(4, 8, requires_grad=True).detach())),
    Tried('"mine::attention"', lambda: compiled()().as_custom_op("a b"),
          lambda: compiled()().as_custom_op("mine::attention")),
    Tried("as_custom_op(name)", lambda: torch.vmap(compiled()())(torch.ones(2, 64, 32)),
          lambda: on_fake_tensors(compiled()().as_custom_op("hints::rows"))),
    Tried("compile for the machine where they are",
          lambda: compiled(dtype="float16", machine="h100")()(ARRAY.astype("float16")),
          lambda: compiled(dtype="float16")()(ARRAY.astype("float16"))),
    Tried("tune='model'", compiled(machine="mi300x", tune="measure"),
          compiled(machine="mi300x", tune="model")),
    Tried("give it an input", lambda: bb.emit(bb.parse(POSITIONS), {"M": 64}),
          lambda: bb.emit(bb.parse(POSITIONS.replace("= index(M)", "")), {"M": 64})),
    Tried(r"\n \r \t", lambda: bb.parse(POSITIONS.replace("index", r'"\index"')),
          lambda: bb.parse(POSITIONS.replace("index", r'"\x69ndex"'))),
    Tried("leave out graph=True", lambda: bb.jit(lambda x: x + 1, graph=True)(ARRAY),
          lambda: bb.jit(lambda x: x + 1)(ARRAY)),
)  # fmt: skip

CASES = (*EMIT, *CHOSEN, *TEXTS, *CALLS)
