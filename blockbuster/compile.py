"""The whole path: from a function or an array program to something that runs.

``jit`` traces when it is called, ``compile`` works ahead of time. Both fuse, choose, emit and
return a ``Compiled``: kernels in order, with functions of whole arrays between them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, overload

from blockbuster.check.loading import comparison
from blockbuster.emit.target.targets import architecture
from blockbuster.emit.tile.constants import known_names, names_given
from blockbuster.errors import a_kind
from blockbuster.frontend import ArrayProgram
from blockbuster.frontend.arguments import shape_from_names
from blockbuster.jitted import Jitted
from blockbuster.machines import AUTO
from blockbuster.runtime.compiled import Compiled
from blockbuster.runtime.first_launch import Refused
from blockbuster.runtime.given import asked_for, family_of
from blockbuster.runtime.machines import known_machine
from blockbuster.selection.plans.effort import USUAL, check_effort
from blockbuster.selection.plans.fusers import Fuser, check_fusers
from blockbuster.selection.plans.plan import Plan, Sizes
from blockbuster.tuning.entry import Entry
from blockbuster.tuning.measuring import LIMIT, Tell
from blockbuster.tuning.setting import MEASURE, check_tune, saved_with, tuning_for


@overload
def jit(fn: Callable[..., Any], /) -> Jitted: ...
@overload
def jit(
    *,
    one_kernel: bool = False,
    tune: str = "model",
    machine: str = "auto",
    check: bool = True,
    graph: bool = False,
    constant: Sequence[str] = (),
    library: bool = True,
    effort: str = USUAL,
    fusers: Sequence[Fuser] = (),
) -> Callable[[Callable[..., Any]], Jitted]: ...
def jit(
    fn: Callable[..., Any] | None = None,
    /,
    *,
    one_kernel: bool = False,
    tune: str = "model",
    machine: str = "auto",
    check: bool = True,
    graph: bool = False,
    constant: Sequence[str] = (),
    library: bool = True,
    effort: str = USUAL,
    fusers: Sequence[Fuser] = (),
) -> Any:
    """``fn`` compiled when it is called: NumPy on the CPU, Triton for CUDA tensors.

    Arrays may have any shapes and strides, and stand in tuples, lists, dicts and dataclasses; a
    compiled program is reused for sizes that the same kernels serve. Arrays that ``fn`` reads from
    a closure, a global or ``self`` are inputs, too (frontend/captured.py). All other arguments are
    fixed: another value is another program, as is another value of a global that ``fn`` reads.
    Results have the dtype in which their operands meet (float32 for float16 with float32).
    Arithmetic is float32, on the CPU float64 if an array is, a cast asks for it, or all arrays are
    small.

    ``one_kernel`` raises FusionError, with the reasons, if the result would be several kernels.
    ``machine`` names the machine to compile for; "auto" is the one that holds the arrays.

    ``tune="model"`` uses stored measurements, else the cost model. ``tune="measure"`` measures
    unknown kernels when first needed (some ten seconds each, on a GPU) and stores the results.

    On a GPU the first result of each compiled kernel is compared with ``fn`` run by torch before it
    is returned; if it is wrong, there is a warning and other kernels take its place.
    ``check=False`` returns it unchecked. ``bb.custom`` functions are called several times for that.

    ``graph=True`` replays whole calls as CUDA graphs: pass the same tensors again and write new
    values into them; the results of a call are overwritten by the next one (runtime/graphs.py).

    ``constant`` names parameters, or arrays that ``fn`` holds, whose values seldom change: weights.
    On a GPU, what kernels compute of them alone is kept and computed anew when one of them changes,
    or another tensor takes its place (runtime/kept.py says which changes are seen).

    ``library=False`` leaves out calls of torch's library, which else compute products and
    convolutions where they are measured to be faster (machines/library.py). ``effort`` and
    ``fusers`` are those of ``select``: how many parts are priced, and who offers programs for them.
    """
    check_tune(tune)
    check_effort(effort)
    check_fusers(fusers)
    known_machine(machine)
    options: dict[str, Any] = dict(
        one_kernel=one_kernel, tune=tune, machine=machine, check=check, graph=graph,
        constant=names_given(constant), library=library, effort=effort, fusers=fusers,
    )  # fmt: skip
    if fn is None:
        return functools.partial(jit, **options)
    if not callable(fn):
        raise TypeError(f"bb.jit takes a function, not {a_kind(fn)}")
    return Jitted(fn, **options)


def compile(
    program: ArrayProgram,
    sizes: Mapping[str, int],
    dtype: str = "float16",
    machine: str = "auto",
    *,
    tune: str = "model",
    check: bool = True,
    graph: bool = False,
    constant: Sequence[str] = (),
    library: bool = True,
    effort: str = USUAL,
    fusers: Sequence[Fuser] = (),
) -> Compiled:
    """An array program compiled ahead of time, for sizes of the class of ``sizes``.

    ``machine`` is "cpu", a GPU's name or architecture; "auto" is the GPU if there is one. Raises
    ValueError for unknown or missing dims, dtypes, machines, arrays and efforts. All options have
    the meaning that they have in ``jit``.
    """
    check_tune(tune)
    check_effort(effort)
    device, bound = asked_for(program, sizes, dtype, machine)
    tuning = tuning_for(tune, machine, architecture(device))
    constants = known_names(constant, [one.name for one in program.inputs])
    asked = dtype, device, tuning.known, None, constants
    family = family_of(program, *asked, library=library, effort=effort, fusers=fusers)
    shape = shape_from_names([output.name for output in program.outputs])

    def planned(sizes: Sizes) -> Plan:
        at = functools.partial(family.at, sizes)
        return tuning.plan(family, at, saved_with(shape, program), one=False)

    def instead(plan: Plan, refused: Refused, sizes: Sizes) -> Plan:
        family.refuse(plan, refused.files, refused.reason)
        return planned(sizes)

    compare = comparison(program) if check else None
    return Compiled(
        planned(bound), shape, instead=instead, compare=compare, program=program, graph=graph
    )


def tune(
    program: ArrayProgram,
    sizes: Mapping[str, int],
    dtype: str = "float16",
    *,
    limit: float = LIMIT,
    tell: Tell = lambda _: None,
) -> tuple[Entry, ...]:
    """The measured schedules of a program's kernels on this GPU; missing ones are measured.

    ``limit``: seconds for a kernel, about; ``tell`` hears of progress. Raises LaunchError if there
    is no GPU, and the errors of ``compile``.
    """
    device, bound = asked_for(program, sizes, dtype, AUTO)
    tuning = tuning_for(MEASURE, AUTO, architecture(device), limit=limit, tell=tell)
    family = family_of(program, dtype, device, tuning.known)
    shape = shape_from_names([output.name for output in program.outputs])
    at = functools.partial(family.at, bound)
    plan = tuning.plan(family, at, saved_with(shape, program), one=False)
    return tuple(filter(None, (tuning.entry(family.asked(plan, file)) for file in plan.files)))
