"""Hints of costs, of MCFuser's search, of the explorer, and of what the command line reads."""

import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path

import sympy

import blockbuster as bb
from blockbuster import examples
from blockbuster.costs import work_of
from blockbuster.costs.symbols import whole_number
from blockbuster.ir.expr import Arg, Const, call
from blockbuster.machines.data_file import machine_text, read_machine
from blockbuster.tiling import candidate, gemm_chain, parse_expression
from blockbuster.tiling.measures import BySchedule
from blockbuster.tiling.partition import chains
from blockbuster.tiling.realization import schedule_of
from blockbuster.tuning.store import read_file, write_file
from blockbuster.view.emitting import sizes_read
from blockbuster.view.explorer.setting import Setting, sizes_of
from blockbuster.view.load import load_function, trace_named
from tests.hints.tried import Tried

PRODUCT = bb.fuse(bb.lower(bb.trace(lambda x, w: x @ w, x="M K", w="K N"))).final
SIZES = {"M": 2048, "K": 4096, "N": 4096}
BLOCKS = "block M 128, K 64, N 128; warps 8; stage nest 1 K "
SOFTMAX = bb.fuse(bb.lower(bb.trace(bb.softmax, x="M N"))).final
CHAIN = gemm_chain(512, 256, 64, 64)
PAIR = examples.GEMM_CHAINS[0]
MODEL = "def rows(x):\n    return x + 1\n"
FIXED = bb.trace(lambda x: x + 1, x="M=4 N")
HALVES = bb.lower(bb.trace(lambda x: bb.split_heads(x, 2), x="M E"))


@cache
def product(stages=3):
    return bb.emit(PRODUCT, SIZES, schedule=f"{BLOCKS}{stages}".replace("; ", "\n"))


@cache
def softmax(columns=512):
    return bb.emit(SOFTMAX, {"M": 64, "N": columns})


def work(sizes=SIZES, kernel=product):
    return lambda: work_of(kernel().tile_program, sizes, "sm_90")


def without_warps():
    program = product().tile_program
    bare = replace(program, nests=tuple(replace(nest, warps=0) for nest in program.nests))
    return work_of(bare, SIZES, "sm_90")


@cache
def file(text=MODEL):
    path = Path(tempfile.mkdtemp()) / "model.py"
    path.write_text(text, encoding="utf-8")
    return str(path)


@cache
def fused_pair():
    return bb.fuse(bb.lower(PAIR.program())).final


def modelled(sizes=PAIR.sizes):
    return lambda: BySchedule(CHAIN, bb.machine("h200"), fused_pair(), sizes)


def scheduled(order, tiles=(64, 64, 64, 64)):
    return lambda: schedule_of(CHAIN, candidate(CHAIN, parse_expression(order), tiles))


def set_to(**change):
    return lambda: sizes_of(HALVES, Setting(**change))


COSTS = (
    Tried("known: M", work(SIZES | {"Q": 1}), work()),
    Tried("at least one element", work(SIZES | {"K": 0}), work()),
    Tried("K=4096", work({"M": 2048, "K": 4096}), work({"M": 2048, "K": 4096, "N": 128})),
    Tried("warps nest 1 4", without_warps, work()),
    Tried("emit the kernel for this size", work({"M": 64, "N": 600}, softmax),
          lambda: softmax(600)),
    Tried("emit the kernel for this size", work(SIZES | {"M": 100}),
          lambda: bb.emit(PRODUCT, SIZES | {"M": 100})),
    Tried("fewer stages", lambda: product(6).cost("a100"), lambda: product(3).cost("a100")),
    Tried("at the sizes that matter",
          lambda: whole_number(call("mul", Arg(0), Const(0.5)), (sympy.Symbol("M"),)),
          lambda: product().cost("h200")),
)  # fmt: skip

SEARCH = (
    Tried("the chain's sizes", modelled({}), modelled()),
    Tried("give sizes of all dims", lambda: chains(PAIR.program(), {}, bb.machine("h200")),
          lambda: chains(PAIR.program(), PAIR.sizes, bb.machine("h200"))),
    Tried("that not_expressible allows", scheduled("mhnk", (48, 64, 64, 64)), scheduled("mhnk")),
)  # fmt: skip

READ = (
    Tried("model.py:rows", lambda: load_function(file()), lambda: load_function(f"{file()}:rows")),
    Tried("model.py:rows", lambda: load_function(f"{file().removesuffix('.py')}:rows"),
          lambda: load_function(f"{file()}:rows")),
    Tried("for example model.py:", lambda: load_function("rows"),
          lambda: load_function(f"{file()}:rows")),
    Tried("it defines rows", lambda: load_function(f"{file()}:row"),
          lambda: load_function(f"{file()}:rows")),
    Tried("relative to where you are", lambda: load_function("nowhere/model.py:rows"),
          lambda: load_function(f"{file()}:rows")),
    Tried('--dims x="M N"', lambda: trace_named(f"{file()}:rows", []),
          lambda: trace_named(f"{file()}:rows", ["x=M N"])),
    Tried("leave it out of --sizes",
          lambda: sizes_read(bb.lower(FIXED), FIXED, {"M": 8, "N": 4}),
          lambda: sizes_read(bb.lower(FIXED), FIXED, {"N": 4})),
    Tried("the dims are ", set_to(sizes={"Z": 3}), set_to(sizes={"M": 3})),
    Tried("E", set_to(sizes={"E": 3}), set_to(sizes={"E": 4})),
    Tried("have every entry", lambda: read_machine("name = 'mine'", "mine.toml"),
          lambda: read_machine(machine_text(bb.machine("h200")), "mine.toml")),
    Tried("blockbuster cache export FILE", lambda: read_file(b"{}", "mine.json"),
          lambda: read_file(write_file((), Path(file()).with_suffix(".json")).read_bytes())),
)  # fmt: skip

CASES = (*COSTS, *SEARCH, *READ)
