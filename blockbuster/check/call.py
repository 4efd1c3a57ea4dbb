"""One call of a checked kernel, on copies of its arrays between guard zones.

The call runs in whichever process holds the kernel; its arguments and its outcome can be sent.
"""

from __future__ import annotations

import json
import math
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockbuster.check.allocations import guarding
from blockbuster.check.arguments import NoArrays, results_of
from blockbuster.check.grid_order import FORWARDS, NOTHING, Seen, in_order
from blockbuster.check.guarded import Guarded, Packed, guarded, laid
from blockbuster.errors import message, shown
from blockbuster.ir.reading import (
    Read,
    Wrong,
    expected,
    flag,
    items,
    maybe,
    number,
    parse_json,
    record,
    row,
    text,
)
from blockbuster.runtime.tensors import is_tensor

Array = Any  # a NumPy array or a torch tensor
LONGEST = 1000  # characters of an exception's text that are told


@dataclass(frozen=True)
class Call:
    """Inputs, outputs to write into, the turn of patterns around them, the order of programs."""

    inputs: tuple[Packed, ...]
    outputs: tuple[Packed, ...] = ()
    turn: int = 0
    order: str = FORWARDS


@dataclass(frozen=True)
class Result:
    """A result: its numbers in float64, and the layout that it has."""

    numbers: NDArray[Any]
    like: Packed


@dataclass(frozen=True)
class Outcome:
    """The results of a call, and its other errors.

    ``stopped`` says why there are no results. ``refused`` is the message of a TypeError: the kernel
    does not return arrays. ``seen``: what Triton's interpreter saw, if it ran the kernel.
    """

    results: tuple[Result, ...] = ()
    problems: tuple[str, ...] = ()
    stopped: str = ""
    refused: str = ""
    seen: Seen = NOTHING


def perform(kernel: Callable[..., Any], call: Call, *, alone: bool) -> Outcome:
    """Call the kernel. ``alone``: nothing else runs in this process, so allocations are guarded."""
    given = [guarded(array, call.turn) for array in (*call.inputs, *call.outputs)]
    written = given[len(call.inputs) :]
    made: list[Guarded] = []
    try:
        with ExitStack() as stack:
            seen = stack.enter_context(in_order(call.order, call.turn))
            if alone:
                made = stack.enter_context(guarding(call.turn))
            returned = kernel(**{array.packed.name: array.view for array in given})
            _wait(given)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit is a way of failing, too
        return Outcome(stopped=_told(error))
    try:
        problems = tuple(_problems(given, made))
        found = tuple(array.view for array in written) or results_of("kernel", returned)
        results = tuple(Result(in_doubles("kernel", array), laid("", array)) for array in found)
        return Outcome(results, problems, seen=seen())
    except NoArrays as error:
        return Outcome(refused=str(error))
    except Exception as error:  # it changed NumPy, say; or its result has no place in memory
        what = "left a process in which its results cannot be read"
        return Outcome(stopped=f"{what}: {_said(error)}")


# an outcome on its way to who asks -----------------------------------------------


def written(outcome: Outcome) -> bytes:
    """An outcome as a line of JSON, and the numbers of its results behind it."""
    results = [
        {
            "shape": result.numbers.shape,
            "dtype": _dtype_to_json(result.like.dtype),
            **{name: getattr(result.like, name) for name in LAYOUT},
        }
        for result in outcome.results
    ]
    data = {name: getattr(outcome, name) for name in ("problems", "stopped", "refused")}
    data["seen"] = asdict(outcome.seen)
    numbers = [result.numbers.tobytes() for result in outcome.results]
    return b"".join([json.dumps({**data, "results": results}).encode(), b"\n", *numbers])


def read_outcome(data: bytes) -> Outcome:
    """The outcome that ``written`` wrote. ValueError for other bytes: a kernel may have sent them.

    So it is no pickle: that could run code here, and NumPy crashes on damaged ones.
    """
    line, _, numbers = data.partition(b"\n")
    found = record(
        parse_json(line),
        problems=items(text),
        stopped=text,
        refused=text,
        results=items(_read),
        seen=_seen,
    )
    results = []
    for shape, like in found["results"]:
        size = 8 * math.prod(shape)
        if len(shape) > 64 or len(numbers) < size:
            raise Wrong("has fewer numbers than its results")
        results.append(Result(np.frombuffer(numbers[:size]).reshape(shape).copy(), like))
        numbers = numbers[size:]
    if numbers:
        raise Wrong("has more numbers than its results")
    said = (found[name] for name in ("problems", "stopped", "refused", "seen"))
    return Outcome(tuple(results), *said)


SIZES: Read[tuple[int, ...]] = items(number(0))
LAYOUT: dict[str, Read[Any]] = {
    "itemsize": number(1, 64), "device": maybe(text), "steps": items(number(-(2**63))),
    "lead": number(0),
}  # fmt: skip


def _seen(data: Any) -> Seen:
    return Seen(**record(data, grids=flag, atomics=flag, waits=flag))


def _read(data: Any) -> tuple[tuple[int, ...], Packed]:
    found = record(data, shape=SIZES, dtype=_dtype_from_json, **LAYOUT)
    return found["shape"], Packed("", **found)


def _dtype_to_json(dtype: Any) -> Any:
    """A tensor's by its name, an array's by NumPy's code, which tells the order of bytes, too."""
    return dtype if isinstance(dtype, str) else [dtype.name if dtype.kind == "V" else dtype.str]


def _dtype_from_json(data: Any) -> Any:
    if isinstance(data, str):
        return data
    (code,) = row(data, text)
    try:
        return np.dtype(code)
    except TypeError as error:
        raise expected("a dtype", data) from error


def _problems(given: Iterable[Guarded], made: Iterable[Guarded]) -> Iterator[str]:
    for array in given:
        yield from array.problems()
    for array in made:
        yield from array.overruns()


def in_doubles(who: str, array: Array) -> NDArray[Any]:
    """An array or a tensor in float64; NoArrays unless it holds real numbers or truth values."""
    kind = array.dtype.kind if isinstance(array, np.ndarray) else ""
    is_complex = kind == "c" if kind else array.is_complex()
    if is_complex or kind in ("O", "S", "U", "M", "m") or (kind and array.dtype.names):
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
