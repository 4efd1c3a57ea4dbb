"""The check and the times of one schedule, beside hand forms of the same program.

Results are compared with float64 on several draws, over outputs full of NaN, and run twice: a
result that changes reveals a race. Right schedules are timed in turn, round by round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from bench.schedules.programs import Case
from bench.timing import medians

Array = Any
Record = dict[str, Any]
Run = Callable[[], tuple[Array, ...]]
Make = Callable[[Mapping[str, Array]], Run]

DTYPE = "float16"
DRAWS = 3
LARGEST = 1e-3  # root mean square of the error, over that of the result: half precision gives 5e-4
ROUNDS = 5


@dataclass(frozen=True)
class Place:
    """Where a case is measured: on a GPU at its sizes, or on the CPU at few blocks, untimed."""

    device: str

    @property
    def is_gpu(self) -> bool:
        return self.device == "cuda"

    def sizes(self, case: Case) -> Mapping[str, int]:
        return case.sizes if self.is_gpu else case.few


GPU, CPU = Place("cuda"), Place("cpu")


def judged(case: Case, place: Place = GPU, *, default: bool) -> Record:
    """The error of each contestant that is right, and why the others are not."""
    import torch

    from blockbuster.emit.target.compiler import assembling_here

    sizes = dict(place.sizes(case))
    errors: dict[str, float] = {}
    failed: dict[str, str] = {}
    with torch.no_grad():
        for name, make in contestants(case, place, default=default):
            try:
                errors[name] = checked(case, place, make)
            except Exception as error:  # one that fails must not hide the others
                failed[name] = f"{type(error).__name__}: {error}"[:800]
    with assembling_here() as assembler:
        used = str(assembler or "")
    known = {"program": case.name, "sizes": sizes, "schedule": case.text, "assembler": used}
    return {**known, "errors": errors, "failed": failed}


def timed(case: Case, names: Sequence[str], *, default: bool) -> Record:
    """The times of the contestants of these names, on a GPU."""
    import torch

    with torch.no_grad():
        inputs = drawn(case, GPU, seed=0)
        makers = dict(contestants(case, GPU, default=default))
        return {"times": medians({name: makers[name](inputs) for name in names}, ROUNDS)}


def contestants(case: Case, place: Place, *, default: bool) -> Iterator[tuple[str, Make]]:
    """What is compared: a name, and what makes it for inputs."""
    sizes = place.sizes(case)
    yield "ours", partial(ours, case, case.text, sizes)
    for word, text in case.alternatives().items():
        yield f"ours {word}", partial(ours, case, text, sizes)
    if default:
        yield "default", partial(ours, case, None, sizes)
    for form in case.forms():
        if place.is_gpu or not form.settings.get("dependent"):  # no interpreter has such launches
            yield f"hand {form.name}", partial(by_hand, form)
    if place.is_gpu:
        yield "library", lambda inputs: lambda: (case.library(**inputs),)


def ours(
    case: Case, schedule: str | None, sizes: Mapping[str, int], inputs: Mapping[str, Array]
) -> Run:
    """The kernel of a schedule's text, with outputs of its own; None: the default schedule."""
    kernel = emitted(case, schedule, sizes)
    outputs = {name: result_like(case, inputs) for name in kernel.outputs}

    def run() -> tuple[Array, ...]:
        kernel(**inputs, **outputs)
        return tuple(outputs.values())

    return run


def by_hand(form: Any, inputs: Mapping[str, Array]) -> Run:
    """A hand form, compiled with the assembler that ours is compiled with."""
    from blockbuster.emit.target.compiler import assembling_here

    ready = form.ready(inputs)
    with assembling_here():
        ready.run()
    return ready.run


def emitted(case: Case, schedule: str | None, sizes: Mapping[str, int]) -> Any:
    import blockbuster as bb

    return bb.emit(case.graph(), sizes, DTYPE, "sm_90", schedule=schedule)


def result_like(case: Case, inputs: Mapping[str, Array]) -> Array:
    """A new array of the shape of the result, of which there is one."""
    import torch

    meta = {name: torch.empty(x.shape, device="meta") for name, x in inputs.items()}
    (result,) = case.oracle()(**meta)
    first = next(iter(inputs.values()))
    return torch.empty(result.shape, dtype=first.dtype, device=first.device)


def drawn(case: Case, place: Place, seed: int) -> dict[str, Array]:
    """Normally distributed inputs; weights are scaled so that results stay near one."""
    import torch

    random = torch.Generator(device=place.device).manual_seed(seed)
    made = {}
    for name, shape in case.shapes(place.sizes(case)).items():
        x = torch.randn(shape, generator=random, device=place.device, dtype=torch.float32)
        scale = shape[-2] ** -0.5 if name in case.weights else 1.0
        made[name] = (x * scale).to(getattr(torch, DTYPE))
    return made


def checked(case: Case, place: Place, make: Make) -> float:
    """The largest error of some draws, each run twice. Raises ValueError if one is not right."""
    import torch

    worst = 0.0
    for seed in range(1, DRAWS + 1 if place.is_gpu else 2):
        inputs = drawn(case, place, seed)
        right = case.oracle()(**{name: x.double() for name, x in inputs.items()})
        run = make(inputs)
        first = [y.clone() for y in poisoned(run)]
        for y, exact in zip(first, right, strict=True):
            error = float((y.double() - exact).norm() / exact.norm())
            if not error <= LARGEST:
                raise ValueError(f"the error is {error:.1e} of the result, above {LARGEST:.0e}")
            worst = max(worst, error)
        for y, z in zip(first, poisoned(run), strict=True):
            if not torch.equal(y, z):
                raise ValueError("two runs on the same inputs differ")
    return worst


def poisoned(run: Run) -> tuple[Array, ...]:
    """The results of a second run, over outputs that were filled with NaN after the first."""
    for y in run():
        y.fill_(float("nan"))
    return run()
