"""The demonstration on one example, from array code to a checked kernel."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from blockbuster.emission import emit
from blockbuster.emit.kernel import Kernel
from blockbuster.emit.target.disk import cache_folder, write_whole
from blockbuster.errors import shown_lines
from blockbuster.examples import Example
from blockbuster.frontend import ArrayProgram, lower
from blockbuster.interp.binding import dims_of
from blockbuster.interp.equal import check_equal_exactly, prove_equal
from blockbuster.interp.evaluate import evaluate
from blockbuster.interp.semantics import Float32, Float64, Semantics
from blockbuster.ir.graph import Graph
from blockbuster.rules import Derivation, fuse, safe
from blockbuster.rules.derivation import path_in_words
from blockbuster.runtime.launch import run_interpreted
from blockbuster.selection import traffic
from blockbuster.view.terminal import Screen
from blockbuster.view.why import why

Arrays = Mapping[str, NDArray[np.float64]]

BLOCKS = 4
FLOAT64_TOLERANCE = 1e-9
FLOAT32_TOLERANCE = 2e-3
KERNEL_TOLERANCE = {"float32": 1e-4, "float16": 2e-2}
EXTREME = 100.0  # what inputs are multiplied by to reach scores of about 1e4


def demo(example: Example, sizes: Mapping[str, int], output: Path | None) -> int:
    """Run the whole path on ``example`` and print it; 0 if every check passed."""
    report = _Report()
    program = example.program()
    wanted = {**example.sizes, **sizes}
    unknown = [d for d in sizes if d not in program.dims]
    if unknown:
        raise ValueError(
            f"unknown dim {unknown[0]} in sizes; the dims are {', '.join(program.dims)}"
        )
    inputs = _random_inputs(program, wanted)
    report.title(f"The array program ({', '.join(f'{d} = {wanted[d]}' for d in program.dims)})")
    report.text(program.listing())
    graph = lower(program)
    derivation = fuse(graph)
    _show_steps(report, derivation, wanted)
    final = safe(derivation.final)
    report.title("The fused program")
    report.text(derivation.final.listing())
    if final != derivation.final:
        report.title("The same, numerically safe (one running exponent per row)")
        report.text(final.listing())
    _check(report, program, derivation, final, inputs)
    _show_traffic(report, derivation, wanted)
    kernel = _run_kernel(report, program, derivation, inputs, wanted)
    _write(report, kernel, f"{example.name}.py", output)
    return report.finish()


class _Report:
    """What is printed, and whether every check passed."""

    def __init__(self) -> None:
        self._screen = Screen()
        self._failed = 0
        self._began = time.perf_counter()

    def title(self, text: str) -> None:
        self._screen.print(f"\n{text}", style="bold")

    def text(self, text: str) -> None:
        self._screen.print(text.rstrip("\n"))

    def check(self, passed: bool, text: str) -> None:
        self._failed += not passed
        word, style = ("ok    ", "green") if passed else ("FAILED", "bold red")
        self._screen.print(word, style=style, end="  ")
        self._screen.print(text)

    @contextmanager
    def working(self, what: str) -> Iterator[None]:
        """A spinner while something takes its time; nothing where output is not a terminal."""
        with self._screen.working(what):
            yield

    def finish(self) -> int:
        seconds = time.perf_counter() - self._began
        word = f"{self._failed} checks failed" if self._failed else "every check passed"
        self.title(f"{word} ({seconds:.1f} s)")
        return 1 if self._failed else 0


def _random_inputs(program: ArrayProgram, sizes: Mapping[str, int]) -> Arrays:
    random = np.random.default_rng(0)
    return {
        given.name: random.standard_normal([sizes.get(str(axis), 1) for axis in given.shape])
        for given in program.inputs
    }


def _show_steps(report: _Report, derivation: Derivation, sizes: Mapping[str, int]) -> None:
    blocks = {dim: min(BLOCKS, sizes[dim]) for dim in sizes}

    def measured(graph: Graph) -> tuple[int, int]:
        return len(graph.buffered_edges()), traffic(graph, sizes, blocks).loads

    report.title(f"Fusion, step by step (block loads at {BLOCKS} blocks per dim)")
    edges, loads = measured(derivation.start)
    said: set[str] = set()
    for step in derivation.steps:
        level = path_in_words(step.before, step.path)
        left, now = measured(step.after)
        report.text(
            f"{step.index + 1:3}  {step.rule} at {level}: {step.description}\n"
            f"     buffered edges {edges} -> {left}, loads {loads} -> {now}"
        )
        if step.rule not in said:
            said.add(step.rule)
            report.text(f"     {why(derivation.applications[step.index].rule)}")
        if step.index + 1 in derivation.snapshots_after:
            number = derivation.snapshots_after.index(step.index + 1) + 1
            report.text(f"     -- snapshot {number} of {len(derivation.snapshots)} --")
        edges, loads = left, now


def _check(
    report: _Report, program: ArrayProgram, derivation: Derivation, final: Graph, inputs: Arrays
) -> None:
    report.title("Checks")
    with report.working("checking every step exactly"):
        wrong = [
            step.index + 1
            for step in derivation.steps
            if check_equal_exactly(step.before, step.after, seed=step.index) is not None
        ]
    count = len(derivation.steps)
    report.check(
        not wrong,
        f"each of {count} steps keeps the program equal, in exact arithmetic"
        if not wrong
        else f"steps {wrong} change the program, in exact arithmetic",
    )
    proof = prove_equal(derivation.start, derivation.final)
    report.check(proof.equal is True, f"start and end are {shown_lines(str(proof))[0]}")
    oracle = program.numpy(inputs)
    error = _worst_error(final, inputs, oracle, Float64)
    text = f"the fused program in float64: error {error:.1e} of the largest value, against NumPy"
    report.check(error <= FLOAT64_TOLERANCE, text)
    extreme = {name: array * EXTREME for name, array in inputs.items()}
    error = _worst_error(final, extreme, program.numpy(extreme), Float32)
    text = f"the same in float32, inputs times {EXTREME:g}: error {error:.1e}"
    report.check(error <= FLOAT32_TOLERANCE, text)


def _worst_error(graph: Graph, inputs: Arrays, oracle: Arrays, semantics: Semantics) -> float:
    """The error against the oracle with one block per dim, and with ragged blocks of 5."""
    dims = dict.fromkeys(dim for dim in dims_of(graph))
    runs: tuple[dict[str, int], ...] = ({}, dict.fromkeys(dims, 5))
    return max(
        relative_error(evaluate(graph, inputs, block_sizes=sizes, semantics=semantics), oracle)
        for sizes in runs
    )


def relative_error(got: Arrays, wanted: Arrays) -> float:
    """The largest difference over the largest magnitude of an output, over all outputs."""
    worst = 0.0
    for name, array in wanted.items():
        scale = max(float(np.abs(array).max(initial=0.0)), 1e-30)
        worst = max(worst, float(np.abs(got[name] - array).max(initial=0.0)) / scale)
    return worst


def _show_traffic(report: _Report, derivation: Derivation, sizes: Mapping[str, int]) -> None:
    report.title(f"Traffic in blocks, at {BLOCKS} blocks per dim")
    blocks = {dim: min(BLOCKS, sizes[dim]) for dim in sizes}
    report.text(f"{'':12} {'loads':>8} {'stores':>8} {'dots':>8} {'buffered edges':>15}")
    programs = {"unfused": derivation.start}
    programs |= {f"snapshot {i + 1}": graph for i, graph in enumerate(derivation.snapshots)}
    for name, graph in programs.items():
        moved = traffic(graph, sizes, blocks)
        edges = len(graph.buffered_edges())
        report.text(f"{name:12} {moved.loads:8} {moved.stores:8} {moved.dots:8} {edges:15}")
    if len(programs) > 2:
        report.text("An extension repeats work: a later snapshot pays where its dim has one block.")


def _run_kernel(
    report: _Report,
    program: ArrayProgram,
    derivation: Derivation,
    inputs: Arrays,
    sizes: Mapping[str, int],
) -> Kernel:
    report.title("What costs least at these sizes, as a Triton file")
    for dtype, tolerance in KERNEL_TOLERANCE.items():
        kernel = emit(derivation, sizes, dtype)
        rounded = {name: array.astype(dtype) for name, array in inputs.items()}
        oracle = program.numpy({name: array.astype(float) for name, array in rounded.items()})
        with report.working(f"running the {dtype} kernel in Triton's interpreter"):
            got = run_interpreted(kernel, rounded)
        error = relative_error({n: a.astype(float) for n, a in got.items()}, oracle)
        number = f"{kernel.kernels} {dtype} kernel{'s' * (kernel.kernels > 1)}"
        text = f"{number} in Triton's interpreter: error {error:.1e}, against NumPy"
        report.check(error <= tolerance, text)
    if kernel.chosen:
        report.text(f"chosen: {kernel.chosen}")
    return kernel


def _write(report: _Report, kernel: Kernel, name: str, output: Path | None) -> None:
    data, folder = kernel.source.encode(), cache_folder("demo")
    path = write_whole(output, data) if output else folder.write(name, data)
    if path and (output or path.parent == folder.path):
        report.text(f"written to {path}; it needs no Blockbuster: python {path} --check")
    else:
        report.text("not written: say where with -o FILE")
