"""The correctness suite for any Triton kernel, ours or a user's: ``check_kernel``.

Arrays are NumPy arrays or torch tensors; the kernel is a callable that takes them by name. Errors
are measured against the reference in float64, and compared with those of an eager function if one
is given. ``judge.py`` defines the judgement, on several draws around the given arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from blockbuster.check.arguments import (
    check_numbers,
    findings_of,
    input_sets,
)
from blockbuster.check.inputs import (
    SIGNED,
    VARIANTS,
    check_dims,
    cuts,
    has_both_signs,
    sizes_not_tried,
)
from blockbuster.check.judge import GROUPS
from blockbuster.check.kernel_process import refuse_to_nest
from blockbuster.check.own_process import Runner, runner
from blockbuster.check.report import CheckedRun, KernelReport
from blockbuster.check.variant import Suite
from blockbuster.emit.kernel import Kernel

Array = Any  # a NumPy array or a torch tensor
Arrays = Mapping[str, Array]
Run = Callable[..., Any]


def check_kernel(
    kernel: Run | Sequence[Run],
    reference: Run,
    inputs: Arrays | Sequence[Arrays],
    *,
    eager: Run | None = None,
    outputs: Sequence[str] = (),
    source: str = "",
    runs: int = 3,
    draws: int = GROUPS,
    tolerance: float | None = None,
    dims: Mapping[str, str] | None = None,
    multiples: Mapping[str, int] | None = None,
    time_limit: float = 600.0,
    own_process: bool = True,
) -> KernelReport:
    """Check a kernel, or each of its configurations, on each set of inputs and on variants of it.

    ``reference`` takes the same arrays in float64, ``eager`` in their own dtype. With ``eager``,
    the error may be 1.5 times eager's, in the median over groups of ``draws`` around the inputs
    (each number times one between 3/4 and 5/4), and never 4 times; small results need more draws to
    tell much. Without it, the error may be ``tolerance`` times the largest result (default: by
    dtype). Give several sets of inputs to cover ragged and tiny shapes; each is also tried with
    peaked and extreme values, with all values below and all above 0 (where it has both signs), in
    strided memory and one element behind an aligned address. With
    ``dims``, the axes of the inputs by name, as ``{"x": "M K", "w": "K N"}`` (a number is an axis
    that keeps its size), inputs are also cut to smaller sizes: multiples of 16, others, and 1.
    ``multiples`` names the number of which a dim's legal sizes are multiples. ``outputs`` names
    the keyword arguments that take arrays to write into: they are poisoned with NaN. ``source`` is
    the text of the kernel's file, for the lint. Results must be bitwise equal in all of ``runs``
    runs; in Triton's interpreter, also where the programs of a grid run in another order, or
    without the stores of each other, and masked loads without ``other`` give NaN (grid_order.py).
    For kernels that Blockbuster emitted, outputs and source are known. If the inputs are tensors,
    ``reference`` gets float64 tensors.

    The kernel runs in a process of its own, on copies between guard zones: a crash, a call that
    takes longer than ``time_limit`` seconds, and a store outside an array are findings. On a GPU
    that process imports the kernel by name; ``notes`` say if it could not, and the kernel ran in
    this process. ``own_process=False`` is for a kernel that is trusted, or keeps a record of calls.

    Raises ValueError if there is nothing to run, or if the numbers of results differ; TypeError for
    values that are neither arrays nor tensors.

    >>> import numpy as np
    >>> def double(x, out=None):
    ...     return np.multiply(x, 2, out=out)
    >>> print(check_kernel(double, double, {"x": np.ones(5, np.float32)}, outputs=["out"]))
    passed: 5 runs, 0 wrong; largest error 0 of the largest result
      not checked: the pipeliner's race: no source was given
    """
    refuse_to_nest()
    check_numbers(runs, draws, tolerance, time_limit)
    kernels = tuple(kernel) if isinstance(kernel, Sequence) else (kernel,)
    if not kernels:
        raise ValueError("no kernel is given: nothing would be checked")
    sets = input_sets(inputs)
    check_dims(sets, dims, multiples)
    texts = tuple(dict.fromkeys(k.source for k in kernels if isinstance(k, Kernel)))
    findings = findings_of(texts, source)
    tried = [(at, *cut) for at, arrays in enumerate(sets) for cut in cuts(arrays, dims, multiples)]
    suite = Suite(reference, eager, runs, draws if eager else 1, tolerance)
    plan = _Plan(suite, tuple(tried), tuple(outputs), own_process, time_limit)
    checked: list[CheckedRun] = []
    notes = [*_notes(kernels, outputs, linted=bool(texts or source))]
    for number, run in enumerate(kernels):
        plan.check(run, number, checked, notes)
    notes += sizes_not_tried([arrays for _, _, arrays in tried])
    return KernelReport(tuple(checked), tuple(findings), tuple(dict.fromkeys(notes)))


def _notes(kernels: Sequence[Run], outputs: Sequence[str], *, linted: bool) -> Iterator[str]:
    ours = all(isinstance(kernel, Kernel) for kernel in kernels)
    if not ours and not outputs:
        yield "whether outputs are fully overwritten: no names of output arguments were given"
    if not linted:
        yield "the pipeliner's race: no source was given"


@dataclass(frozen=True)
class _Plan:
    """What every configuration is checked on. ``tried``: sets of inputs, with number and sizes."""

    suite: Suite
    tried: tuple[tuple[int, str, Arrays], ...]
    outputs: tuple[str, ...]
    own_process: bool
    limit: float

    def check(self, run: Run, number: int, checked: list[CheckedRun], notes: list[str]) -> None:
        """Check one configuration; add what is found, and what could not be checked."""
        arrays = [array for _, _, given in self.tried for array in given.values()]
        names = run.outputs if isinstance(run, Kernel) else self.outputs
        calls, why = runner(run, arrays, own_process=self.own_process, limit=self.limit)
        if why:
            notes.append(
                "crashes, endless loops, and stores beside what the launcher allocates: the kernel"
                f" ran in this process, because {why}"
            )
        try:
            self._check(calls, names, number, checked, notes)
        finally:
            calls.end()

    def _check(
        self,
        calls: Runner,
        names: tuple[str, ...],
        number: int,
        checked: list[CheckedRun],
        notes: list[str],
    ) -> None:
        cases = [
            (*case, variant)
            for case in self.tried
            for variant in VARIANTS
            if variant not in SIGNED or has_both_signs(case[-1])
        ]
        for done, (at, sizes, arrays, variant) in enumerate(cases):
            if calls.hangs:
                left = f"{len(cases) - done} of {len(cases)} runs of configuration {number}"
                notes.append(f"{left}: it did not finish in the run before them")
                return
            found = self.suite.check(calls, names, arrays, variant)
            checked.append(replace(found, configuration=number, inputs=at, sizes=sizes))
            notes += found.notes
