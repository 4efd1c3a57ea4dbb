"""Chains of dots in a loop's body that do not wait for one another, and what they save."""

import types
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from bench.schedules.measure import emitted
from bench.schedules.programs import BY_NAME
from blockbuster.costs import chains, time_of, work_of
from blockbuster.emit.tile.program import For, Let, Tile, statements
from blockbuster.ir.ops import Functional
from blockbuster.machines import machine

H200 = machine("h200")
ATTENTION = "block M 128, D 128 whole, N 64, L 128 whole\nfactor\n{jam}warps 8\nstage nest 1 N 3"


@cache
def kernel(name, schedule):
    return emitted(BY_NAME[name], schedule, BY_NAME[name].sizes)


def works(name, schedule):
    made = kernel(name, schedule)
    return work_of(made.tile_program, made.sizes, made.target)


def chains_of(name, schedule):
    return [phase.chains for one in works(name, schedule) for phase in one.phases if phase.dots]


@pytest.mark.parametrize(("jam", "count"), [("", 1), ("jam nest 1 M\n", 2)])
def test_each_block_of_rows_has_a_chain(jam, count):
    assert chains_of("attention", ATTENTION.format(jam=jam)) == [count]


def test_two_products_of_one_array_have_a_chain_each():
    assert chains_of("gate-up", BY_NAME["gate-up"].text) == [2]


def test_chains_that_wait_for_one_another_take_longer():
    (two,) = works("attention", ATTENTION.format(jam="jam nest 1 M\n"))
    one = replace(two, phases=tuple(replace(phase, chains=1) for phase in two.phases))
    assert time_of(two, H200).seconds < 0.95 * time_of(one, H200).seconds


ALONE = Let(Tile("alone", ()), Functional("row_sum"), (Tile("other", ("N",)),))


def loop_of_two():
    """The loop of a kernel of two blocks of rows, and a value that no dot takes."""
    made = kernel("attention", ATTENTION.format(jam="jam nest 1 M\n")).tile_program
    (loop,) = (s for s in statements(made.nests[0].body) if isinstance(s, For))
    return (*loop.body, ALONE)


MUTANTS = [
    ("if made is None or isinstance(stmt, Load | Await):", "if made is None:"),
    ("joined = {group[tile] for tile in tiles if tile in group}", "joined = set()"),
    ("if takes_matrix_units(stmt, units) or not dotted.isdisjoint(joined):", "if True:"),
]


@pytest.mark.parametrize(("text", "other"), MUTANTS)
def test_a_change_is_caught(text, other):
    assert chains.chains_in(loop_of_two(), ()) == 2
    source = Path(chains.__file__).read_text(encoding="utf-8")
    assert text in source
    changed = types.ModuleType("changed")
    exec(compile(source.replace(text, other), "changed", "exec"), vars(changed))
    assert changed.chains_in(loop_of_two(), ()) != 2
