"""One call of a kernel that is checked, on copies of its arrays between guard zones.

The call runs in whatever process holds the kernel; what goes in and comes out can be sent.
"""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockbuster.emit.allocations import guarding
from blockbuster.emit.checked_arguments import NoArrays, results_of
from blockbuster.emit.guarded import Guarded, Packed, guarded, laid
from blockbuster.emit.tensors import is_tensor
from blockbuster.errors import message, shown

Array = Any  # a NumPy array or a torch tensor
LONGEST = 1000  # characters of an exception's text that are told


@dataclass(frozen=True)
class Call:
    """Inputs, outputs to write into, and the turn of the patterns around them."""

    inputs: tuple[Packed, ...]
    outputs: tuple[Packed, ...] = ()
    turn: int = 0


@dataclass(frozen=True)
class Result:
    """A result: its numbers in float64, and the layout that it has."""

    numbers: NDArray[Any]
    like: Packed


@dataclass(frozen=True)
class Outcome:
    """What a call gave, and what it did wrong beside that.

    ``stopped`` says why there are no results. ``refused`` is the message of a TypeError: the kernel
    does not return arrays.
    """

    results: tuple[Result, ...] = ()
    problems: tuple[str, ...] = ()
    stopped: str = ""
    refused: str = ""


def perform(kernel: Callable[..., Any], call: Call, *, alone: bool) -> Outcome:
    """Call the kernel. ``alone``: nothing else runs in this process, so allocations are guarded."""
    given = [guarded(array, call.turn) for array in (*call.inputs, *call.outputs)]
    written = given[len(call.inputs) :]
    made: list[Guarded] = []
    try:
        with guarding(call.turn) if alone else nullcontext(made) as made:
            returned = kernel(**{array.packed.name: array.view for array in given})
            _wait(given)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit is a way of failing, too
        return Outcome(stopped=_told(error))
    try:
        problems = tuple(_problems(given, made))
        found = tuple(array.view for array in written) or results_of("kernel", returned)
        return Outcome(tuple(Result(in_doubles("kernel", a), laid("", a)) for a in found), problems)
    except NoArrays as error:
        return Outcome(refused=str(error))
    except Exception as error:  # it changed NumPy, say; or its result has no place in memory
        said = _said(error)
        return Outcome(stopped=f"left a process in which its results cannot be read: {said}")


def _problems(given: Iterable[Guarded], made: Iterable[Guarded]) -> Iterator[str]:
    for array in given:
        yield from array.problems()
    for array in made:
        yield from array.overruns()


def in_doubles(who: str, array: Array) -> NDArray[Any]:
    """An array or a tensor in float64; NoArrays unless it holds real numbers or truth values."""
    kind = array.dtype.kind if isinstance(array, np.ndarray) else ""
    if kind in ("c", "O", "S", "U", "M", "m") or (not kind and array.is_complex()):
        hint = "return real numbers: the parts of complex numbers as two arrays"
        raise NoArrays(message(f"the {who} returned an array of dtype {array.dtype}", hint=hint))
    if kind:
        return np.array(array, np.float64)
    return np.array(array.detach().double().cpu().numpy(), np.float64)


def _wait(given: Iterable[Guarded]) -> None:
    """Wait until GPUs have done what was launched: their errors belong to this call."""
    for array in given:
        if is_tensor(array.view) and array.view.is_cuda:
            sys.modules["torch"].cuda.synchronize(array.view.device)


def _told(error: BaseException) -> str:
    """What a kernel raised, and where in its file."""
    here = Path(__file__).parent
    frames = [
        f for f in traceback.extract_tb(error.__traceback__) if here != Path(f.filename).parent
    ]
    own = [frame for frame in frames if frame.filename == frames[0].filename]
    place = f" ({Path(own[-1].filename).name}, line {own[-1].lineno})" if own else ""
    said = _said(error)
    outside = ": most likely it reads or writes out of bounds" if _ILLEGAL.search(said) else ""
    return f"raised {said}{place}{outside}"


def _said(error: BaseException) -> str:
    """The type of an exception and its text, on one line. A text may fail, too."""
    name = shown(type(error).__name__, LONGEST)
    try:
        text = str(error)
    except Exception:
        return f"{name}, which has no text"
    if "CUDA error" in text:
        text = text.split("\n")[0]  # what follows is advice on debugging by hand
    return f"{name}: {shown(text[:LONGEST], LONGEST)}"


_ILLEGAL = re.compile(
    "illegal (memory access|address)|misaligned address|unspecified launch failure"
)
