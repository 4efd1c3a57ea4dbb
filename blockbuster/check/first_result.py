"""The check of a compiled kernel's first result, before it is returned.

Neither an interpreter nor our tests see a compiler's or an assembler's faults, and users have other
versions of both, and other GPUs. So if a plan's kernels have not been checked on a device yet,
their results are compared with the array program itself, run by torch: exactly, in float64, and
operator by operator in the given dtype ("eager"), on the user's arrays and on one drawn set.
agreement.py defines which results are right. Arrays too large for that are compared in sampled
rows, along dims that no operator folds or looks into.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import cached_property, reduce
from operator import add
from random import Random
from typing import Any

from blockbuster.check.agreement import Reach, first_excess, sampled
from blockbuster.check.judge import ENOUGH, ROUNDING, Sample
from blockbuster.emit.target.gpu import same_bits
from blockbuster.errors import shown, shown_lines
from blockbuster.frontend.on_tensors import Noise, Rows, cost, rows_of, run, separable_dims
from blockbuster.frontend.program import ArrayProgram
from blockbuster.ir.types import Dim
from blockbuster.runtime.first_launch import Finding, Run
from blockbuster.runtime.recorder import Refused
from blockbuster.runtime.tensors import ALIGNED, common_dtype, dtype_name

Tensor = Any

ELEMENTS, PRODUCTS = 5e9, 1e12
"""What an exact run may make before rows are sampled: some 30 ms of a large GPU, in float64."""
SHARE = 4
"""An exact run may hold one part in so many of the memory that is free."""
SAMPLED = (64, 8)
"""How many rows of a dim are sampled; fewer where these are still too many."""
NEARBY = 6
"""How many exact runs, each with other small changes, show what roundings may do."""
ROUNDINGS = 4
"""By how many roundings each number that an operator reads is changed there, at most."""
DRAWS = 14
"""How many more sets are drawn where few elements say whether errors are too large."""
REASON = 200
"""How many characters are told of why arrays were not compared."""
POOL = 1 << 16
"""How many of a user's values arrays are drawn from, at most."""


def compare_first(
    program: ArrayProgram, run_plan: Run, tensors: Sequence[Tensor], results: Sequence[Tensor]
) -> Finding:
    """Whether ``results``, and what ``run_plan`` gives for drawn arrays, are what they should be.

    ``tensors`` are the program's inputs in order, on one device; ``results`` are its outputs for
    them, as the plan gave them.
    """
    if not tensors or all(result.numel() == 0 for result in results):
        return Finding()
    with _quiet(tensors[0].device):
        try:
            return _Comparison(program, run_plan, tensors).finding(results)
        except _out_of_memory() as error:
            reason = shown_lines(str(error))[0]
            return Finding(note=f"first results were not compared: {reason}")


class _Comparison:
    """A program, its plan and arrays; sizes and rows follow from the arrays."""

    def __init__(self, program: ArrayProgram, run_plan: Run, tensors: Sequence[Tensor]) -> None:
        self._program, self._run, self._tensors = program, run_plan, tensors
        names = [given.name for given in program.inputs]
        self._sizes = program.bind(dict(zip(names, tensors, strict=True)))
        self._names = [output.name for output in program.outputs]
        floats = [dtype_name(tensor) for tensor in tensors if tensor.is_floating_point()]
        self._dtype = _dtype(common_dtype(floats or ["float32"]))

    def finding(self, results: Sequence[Tensor]) -> Finding:
        """What is wrong with ``results`` or with those for drawn arrays."""
        if self._rows is None:
            held = cost(self._program, self._sizes).held / 1e9
            return Finding(note=f"first results were not compared: that takes {held:.0f} GB")
        for where in ("", " (on drawn arrays)"):
            try:
                wrong = self._wrong_drawn() if where else self._wrong(self._tensors, results)
            except Exception as error:
                # a user's function may take no other numbers than it was written for
                if not self._calls_functions or isinstance(error, Refused) or _is_of_device(error):
                    raise
                reason = shown(f"{type(error).__name__}: {error}", REASON)
                return Finding(note=f"first results were not compared{where}: {reason}")
            if wrong:
                return Finding(wrong=f"{wrong}{where}")
        return Finding()

    @property
    def _calls_functions(self) -> bool:
        return any(equation.op == "custom" for equation in self._program.equations)

    # one set of arrays -------------------------------------------------------------

    def _wrong_drawn(self) -> str:
        given = self._drawn(0)
        first = self._run(given)
        return self._unequal(first, self._run(given)) or self._wrong(given, first)

    def _wrong(self, given: Sequence[Tensor], results: Sequence[Tensor]) -> str:
        samples = self._samples(given, results)
        dtypes = [dtype_name(result) for result in results]
        if not first_excess(samples, dtypes, self._names):
            return ""
        samples = self._samples(given, results, self._reaches(given))
        few = [s.erring < ENOUGH and not s.lost for s in samples]
        if first_excess(samples, dtypes, self._names) and any(few):
            more = [self._samples(drawn, self._run(drawn)) for drawn in self._draws()]
            pooled = [reduce(add, column) for column in zip(samples, *more, strict=True)]
            samples = [p if f else s for p, s, f in zip(pooled, samples, few, strict=True)]
        return first_excess(samples, dtypes, self._names)

    def _samples(
        self,
        given: Sequence[Tensor],
        results: Sequence[Tensor],
        reaches: Sequence[Reach | None] | None = None,
    ) -> list[Sample]:
        assert self._rows is not None
        exact = self._exact(given, None)
        alike = [t.to(self._dtype) if t.is_floating_point() else t for t in given]
        eager = run(self._program, alike, self._sizes, exact=False, rows=self._rows)
        shapes = [self._program.shape_of(output.value) for output in self._program.outputs]
        ours = [rows_of(r, s, self._rows) for r, s in zip(results, shapes, strict=True)]
        return [
            sampled(mine, other, right, dtype_name(mine), reach)
            for mine, other, right, reach in zip(
                ours, eager, exact, reaches or [None] * len(ours), strict=True
            )
        ]

    def _exact(self, given: Sequence[Tensor], noise: Noise | None) -> list[Tensor]:
        rows = self._rows or {}
        return run(self._program, given, self._sizes, exact=True, rows=rows, noise=noise)

    def _reaches(self, given: Sequence[Tensor]) -> list[Reach]:
        noises = [None, *(roundings(self._dtype, given[0].device, seed) for seed in range(NEARBY))]
        return [
            Reach.of(column)
            for column in zip(*(self._exact(given, noise) for noise in noises), strict=True)
        ]

    def _unequal(self, first: Sequence[Tensor], second: Sequence[Tensor]) -> str:
        for name, one, other in zip(self._names, first, second, strict=True):
            if not same_bits(one, other):
                return f"{name} differs from run to run"
        return ""

    # arrays and rows -----------------------------------------------------------------

    def _draws(self) -> Iterator[list[Tensor]]:
        for seed in range(1, DRAWS + 1):
            yield self._drawn(seed)

    def _drawn(self, seed: int) -> list[Tensor]:
        return [drawn_like(t, DRAWS * seed + number) for number, t in enumerate(self._tensors)]

    @cached_property
    def _rows(self) -> Rows | None:
        """The indices that are compared; None if even few of them are too many."""
        sizes, counts = self._sizes, dict[Dim, int]()
        dims = sorted(separable_dims(self._program), key=lambda dim: -sizes[dim])
        room = _free_bytes(self._tensors[0].device) // SHARE
        for most in SAMPLED:
            for dim in [None, *dims]:
                if dim is not None:
                    counts[dim] = min(sizes[dim], most)
                needed = cost(self._program, {**sizes, **counts})
                quick = needed.elements <= ELEMENTS and needed.products <= PRODUCTS
                if needed.held <= room and quick:
                    return self._indices(counts)
        return self._indices(counts) if needed.held <= room else None

    def _indices(self, counts: dict[Dim, int]) -> Rows:
        device = self._tensors[0].device
        return {
            dim: sampled_indices(self._sizes[dim], count, device)
            for dim, count in counts.items()
            if count < self._sizes[dim]
        }


def sampled_indices(size: int, count: int, device: Any) -> Tensor:
    """Up to ``count`` indices in order, always the same: the first, the last and random ones."""
    import torch

    found = {0, size - 1, *Random(size).sample(range(size), max(count - 2, 0))}
    return torch.tensor(sorted(found), device=device)


def drawn_like(tensor: Tensor, seed: int) -> Tensor:
    """Values drawn from those of ``tensor``, laid out in memory as it is.

    So masks hold zeros and ones, and variances are positive. Where it has only one value, or NaN,
    normal numbers take their place.
    """
    import torch

    if not tensor.numel():
        return tensor
    device = tensor.device
    random = torch.Generator(device).manual_seed(seed)
    span = 1 + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
    most = max(1, round(POOL ** (1 / max(tensor.dim(), 1))))
    pool = tensor[tuple(slice(None, None, -(-extent // most)) for extent in tensor.shape)]
    pool = pool.reshape(-1)
    if bool((pool != pool).any()) or not bool((pool != pool[:1]).any()):
        pool = torch.randn(POOL, device=device, generator=random).to(tensor.dtype)
    picks = torch.randint(len(pool), (span + 1,), device=device, generator=random)
    offset = 0 if tensor.data_ptr() % ALIGNED == 0 else 1
    return pool[picks].as_strided(tensor.shape, tensor.stride(), offset)


def roundings(dtype: Any, device: Any, seed: int) -> Noise:
    """Changes each number by up to ``ROUNDINGS`` roundings of ``dtype``, otherwise each time."""
    import torch

    random = torch.Generator(device).manual_seed(seed)
    step = ROUNDINGS * ROUNDING.get(str(dtype).removeprefix("torch."), 2.0**-53)

    def noisy(x: Tensor) -> Tensor:
        noise = torch.rand(x.shape, dtype=torch.float64, device=device, generator=random)
        return x * (1 + step * (2 * noise - 1))

    return noisy


# torch -------------------------------------------------------------------------------


@contextmanager
def _quiet(device: Any) -> Iterator[None]:
    """No gradients, no autocast; and functions that torch calls nondeterministic are allowed."""
    import torch

    strict = torch.are_deterministic_algorithms_enabled()
    warns = torch.is_deterministic_algorithms_warn_only_enabled()
    with torch.no_grad(), torch.autocast(device.type, enabled=False):
        torch.use_deterministic_algorithms(False)
        try:
            with torch.cuda.device(device) if device.type == "cuda" else nullcontext():
                yield
        finally:
            torch.use_deterministic_algorithms(strict, warn_only=warns)


def _free_bytes(device: Any) -> int:
    """Bytes that can be allocated, what torch keeps for itself included."""
    import torch

    if device.type != "cuda":
        return 1 << 32
    free = torch.cuda.mem_get_info(device)[0]
    free += torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return int(free)


def _out_of_memory() -> type[Exception]:
    import torch

    found: type[Exception] = torch.OutOfMemoryError
    return found


def _is_of_device(error: Exception) -> bool:
    """True for errors of memory and of launches, which no function of a user's is to blame for."""
    return isinstance(error, _out_of_memory()) or "CUDA error" in str(error)


def _dtype(name: str) -> Any:
    import torch

    return getattr(torch, name)
