"""Reports of real programs: short lines, and no word that a reader has to look up."""

import re

import numpy as np
import pytest

import blockbuster as bb
from bench.everyday import EVERYDAY
from blockbuster.costs.report import in_us
from blockbuster.selection.plans import layout
from blockbuster.selection.plans.at_sizes import at_sizes
from blockbuster.selection.plans.kernel_lines import KernelLine, cut
from blockbuster.selection.plans.operators import computes
from tests.parameters import one_in, rest_slow

torch = pytest.importorskip("torch")

from bench.outside.predict import callable_for  # noqa: E402
from bench.peers.cases import OUTSIDE  # noqa: E402

BANNED = re.compile(
    r"NOT FUSED|applies here|fuse the program|counted \d|times as much|by choice|made again|e\+\d",
    re.IGNORECASE,
)
OTHERS = tuple(OUTSIDE[:: len(OUTSIDE) // 15][:15])
KERNEL = re.compile(r"  kernels? \d+( to \d+)?: .+")


def check(report, plan):
    """The form of a report; ``plan`` is what it is about."""
    head, *lines = report.text.splitlines()
    told = [line for line in lines if KERNEL.fullmatch(line)]

    assert head.startswith(f"{plan.name}: ")
    assert max(map(len, (head, *lines, *report.details.splitlines()))) <= layout.KERNEL_WIDTH
    assert not any(map(BANNED.search, (report.text, report.details, plan.explain())))
    assert "snapshot" not in report.text
    assert len(told) == plan.kernels
    assert all(re.search(r"; [\d,.]+ us, limited by \w+$", line) for line in told)
    assert len(lines) <= plan.kernels + len(plan.calls) + 12


@pytest.mark.parametrize("program", one_in(15, EVERYDAY[::2]), ids=lambda one: one.name)
def test_reports_of_everyday_programs_are_short(program):
    compiled = program.compiled()
    check(compiled.report, compiled.plan)


@pytest.mark.parametrize("case", rest_slow(OTHERS, []), ids=lambda one: one.key)
def test_reports_of_programs_from_outside_are_short(case):
    dtypes = {name: getattr(torch, case.own.get(name, case.dtype)) for name in case.inputs}
    arrays = [torch.empty(case.shape(n, case.sizes), dtype=dtype) for n, dtype in dtypes.items()]
    with torch.no_grad():
        jitted = bb.jit(callable_for(case.fn, arrays), machine="h200", library=False)
        check(jitted.report_for(*arrays), jitted.plan_for(*arrays))


def test_there_are_thirty_programs():
    assert len(EVERYDAY[::2]) + len(OTHERS) == 30


def chain(x):
    for _ in range(9):
        x = bb.tanh(bb.exp(x) + 1.0)
    return x


def test_long_lists_of_operators_and_names_are_cut_to_a_line():
    equations = bb.trace(chain, x="M").equations
    names = ("a_rather_long_name", "b", "c")
    line = KernelLine(equations, 12.0, "hbm", ("in 4 chunks of M",), writes=names)
    text = line.text("  kernel 1: ")

    assert len(computes(equations)) > 40
    line_of_tanh = chain.__code__.co_firstlineno + 2
    assert computes(equations, 60).endswith(f"(test_short_reports.py:{line_of_tanh})")
    assert len(computes(equations, 60)) <= 60
    assert len(text) <= layout.KERNEL_WIDTH
    assert text.endswith(", in 4 chunks of M; 12.0 us, limited by hbm")
    assert ", b, ... = " in text
    other = KernelLine((), 1.0, "hbm", otherwise="dot " * 99, writes=("x" * 300,)).text("")
    assert len(other) == layout.KERNEL_WIDTH
    assert other.endswith("...; 1.0 us, limited by hbm")
    assert cut("softmax", 7) == "softmax"


def rows(x):
    return bb.softmax(x, -1)


@pytest.mark.parametrize("machine", ["h100", "cpu"])
def test_times_are_those_at_the_sizes_of_the_call(machine):
    """Not those of the class, for which the kernels were chosen: nearly twice as many elements."""
    jitted = bb.jit(rows, machine=machine)
    x = np.zeros((1040, 790), np.float32)

    plan, sizes = jitted.plan_for(x), jitted.sizes_for(x)
    here = at_sizes(plan, sizes)

    assert dict(sizes) == {"A": 1040, "B": 790}
    assert plan.sizes["A"] == 1536
    assert f"; {in_us(here.total_us)} predicted on" in str(jitted.report_for(x))
    assert at_sizes(plan, plan.sizes).total_us == plan.total_us > here.total_us
    if machine == "h100":
        (file,) = plan.files
        text = file.considered.best.scheduled.schedule
        program = bb.fuse(bb.lower(bb.trace(rows, x="A B")))
        emitted = bb.emit(program, sizes, "float32", "h100", schedule=text)
        assert f"; {in_us(here.total_us)} predicted on" in str(emitted.report)
