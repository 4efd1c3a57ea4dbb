"""The check of a compiled kernel's first result, before it is returned.

Neither an interpreter nor our tests see a compiler's or an assembler's faults, and users have other
versions of both, and other GPUs. So if a plan's kernels have not been checked on a device yet,
their results are compared with the array program itself, run by torch: exactly, in float64, and
operator by operator in the given dtype ("eager"), on the user's arrays and on one drawn set.
agreement.py defines which results are right. Of arrays too large for that, sampled rows are
compared (sample.py). All of it takes a small part of the free memory (runtime/room.py); what would
take more is not compared, and a note says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import reduce
from operator import add
from typing import Any

from blockbuster.check.agreement import Reach, first_excess, sampled
from blockbuster.check.judge import ENOUGH, ROUNDING
from blockbuster.check.judge import Sample as Errors
from blockbuster.check.sample import sample
from blockbuster.emit.target.gpu import same_bits
from blockbuster.errors import shown, shown_lines
from blockbuster.frontend.on_tensors import Noise, Way
from blockbuster.frontend.program import ArrayProgram
from blockbuster.frontend.rows import rows_of
from blockbuster.runtime.first_launch import Finding, Refused, Run
from blockbuster.runtime.launch import ALIGNED
from blockbuster.runtime.room import NoRoom, room, taken, too_much
from blockbuster.runtime.tensors import common_dtype, dtype_name

Tensor = Any

NEARBY = 6
"""How many exact runs, each with other small changes, show what roundings may do."""
ROUNDINGS = 4
"""By how many roundings each number that an operator reads is changed there, at most."""
DRAWS = 14
"""How many more sets are drawn where few elements say whether errors are too large."""
UNCOMPARED, DRAWN = "first results were not compared", " (on drawn arrays)"
REASON = 200
"""How many characters are told of why arrays were not compared."""
POOL = 1 << 16
"""How many of a user's values arrays are drawn from, at most."""
PIECE = 1 << 22
"""How many elements are drawn at once: where they come from takes more memory than they do."""


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
            return Finding(note=f"{UNCOMPARED}: {shown_lines(str(error))[0]}")


class _Comparison:
    """A program, its plan and arrays; sizes and rows follow from the arrays."""

    def __init__(self, program: ArrayProgram, run_plan: Run, tensors: Sequence[Tensor]) -> None:
        self._program, self._run, self._tensors = program, run_plan, tensors
        names = [given.name for given in program.inputs]
        self._sizes = program.bind(dict(zip(names, tensors, strict=True)))
        self._names = [output.name for output in program.outputs]
        floats = [dtype_name(tensor) for tensor in tensors if tensor.is_floating_point()]
        self._dtype = _dtype(common_dtype(floats or ["float32"]))
        self._eager = Way(exact=False, dtype=self._dtype)
        self._room = room(tensors[0].device)
        # drawn arrays, and results for them, take the other half
        self._sample = sample(program, self._sizes, tensors[0], self._room // 2)

    def finding(self, results: Sequence[Tensor]) -> Finding:
        """What is wrong with ``results`` or with those for drawn arrays."""
        notes: list[str] = []
        for where in ("", DRAWN):
            try:
                wrong = self._wrong_drawn(results) if where else self._wrong_given(results)
            except NoRoom as error:
                notes.append(f"{UNCOMPARED}{where}: {error}")
                continue
            except Exception as error:
                # a user's function may take no other numbers than it was written for
                if not self._calls_functions or isinstance(error, Refused) or _is_of_device(error):
                    raise
                reason = shown(f"{type(error).__name__}: {error}", REASON)
                notes.append(f"{UNCOMPARED}{where}: {reason}")
                break
            if wrong:
                return Finding(wrong=f"{wrong}{where}")
        return Finding(note="; ".join(notes))

    @property
    def _calls_functions(self) -> bool:
        return any(equation.op == "custom" for equation in self._program.equations)

    # one set of arrays -------------------------------------------------------------

    def _wrong_given(self, results: Sequence[Tensor]) -> str:
        self._check_room(self._sample.needed)
        return self._wrong(self._tensors, results)

    def _wrong_drawn(self, results: Sequence[Tensor]) -> str:
        self._check_room(self._of_a_draw(results))
        given = self._drawn(0)
        first = self._run(given)
        return self._unequal(first, self._run(given)) or self._wrong(given, first)

    def _of_a_draw(self, results: Sequence[Tensor]) -> int:
        """The bytes of drawn arrays, of results for them, and of a second run or a comparison."""
        drawn = sum(_span(tensor) * tensor.element_size() for tensor in self._tensors)
        return int(drawn) + taken(results) + max(taken(results), self._sample.needed)

    def _check_room(self, needed: int) -> None:
        if needed > self._room:
            raise NoRoom(too_much(needed, self._room))

    def _wrong(self, given: Sequence[Tensor], results: Sequence[Tensor]) -> str:
        samples = self._samples(given, results)
        dtypes = [dtype_name(result) for result in results]
        if not first_excess(samples, dtypes, self._names):
            return ""
        samples = self._samples(given, results, self._reaches(given))
        few = [s.erring < ENOUGH and not s.lost for s in samples]
        if first_excess(samples, dtypes, self._names) and any(few):
            self._check_room(self._of_a_draw(results))  # luck in few elements is no verdict
            more = [self._samples(drawn, self._run(drawn)) for drawn in self._draws()]
            pooled = [reduce(add, column) for column in zip(samples, *more, strict=True)]
            samples = [p if f else s for p, s, f in zip(pooled, samples, few, strict=True)]
        return first_excess(samples, dtypes, self._names)

    def _samples(
        self,
        given: Sequence[Tensor],
        results: Sequence[Tensor],
        reaches: Sequence[Reach | None] | None = None,
    ) -> list[Errors]:
        exact = self._exact(given, None)
        eager = self._sample.of(self._program, given, self._sizes, self._eager)
        shapes = [self._program.shape_of(output.value) for output in self._program.outputs]
        rows = self._sample.rows
        ours = [rows_of(r, s, rows) for r, s in zip(results, shapes, strict=True)]
        return [
            sampled(mine, other, right, dtype_name(mine), reach)
            for mine, other, right, reach in zip(
                ours, eager, exact, reaches or [None] * len(ours), strict=True
            )
        ]

    def _exact(self, given: Sequence[Tensor], noise: Noise | None) -> list[Tensor]:
        way = Way(exact=True, noise=noise)
        return self._sample.of(self._program, given, self._sizes, way)

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

    # drawn arrays --------------------------------------------------------------------

    def _draws(self) -> Iterator[list[Tensor]]:
        for seed in range(1, DRAWS + 1):
            yield self._drawn(seed)

    def _drawn(self, seed: int) -> list[Tensor]:
        return [drawn_like(t, DRAWS * seed + number) for number, t in enumerate(self._tensors)]


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
    most = max(1, round(POOL ** (1 / max(tensor.dim(), 1))))
    pool = tensor[tuple(slice(None, None, -(-extent // most)) for extent in tensor.shape)]
    pool = pool.reshape(-1)
    if bool((pool != pool).any()) or not bool((pool != pool[:1]).any()):
        pool = torch.randn(POOL, device=device, generator=random).to(tensor.dtype)
    drawn = torch.empty(_span(tensor) + 1, dtype=tensor.dtype, device=device)
    for piece in drawn.split(PIECE):
        piece[...] = pool[torch.randint(len(pool), piece.shape, device=device, generator=random)]
    offset = 0 if tensor.data_ptr() % ALIGNED == 0 else 1
    return drawn.as_strided(tensor.shape, tensor.stride(), offset)


def _span(tensor: Tensor) -> int:
    """How many elements the memory of a tensor spans."""
    if not tensor.numel():
        return 0
    pairs = zip(tensor.shape, tensor.stride(), strict=True)
    return 1 + sum(int((n - 1) * step) for n, step in pairs)


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

    here = torch.cuda.device(device) if device.type == "cuda" else nullcontext()
    with torch.no_grad(), torch.autocast(device.type, enabled=False), _no_strictness(), here:
        yield


@contextmanager
def _no_strictness() -> Iterator[None]:
    """Torch does not insist on deterministic functions.

    Saying so imports torch's compiler, which takes seconds: it is said where torch did insist.
    """
    import torch

    if not torch.are_deterministic_algorithms_enabled():
        yield
        return
    warns = torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(False)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(True, warn_only=warns)


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
