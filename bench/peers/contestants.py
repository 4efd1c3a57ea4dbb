"""Makers of contestants: ours, torch's own forms, and hand-written kernels of bench/schedules/hand.

On the CPU, for dry runs and tests, compilers are left out and torch uses the plain form of
attention: there the check is that all compute the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import Any

from bench.peers.case import BOUND, EAGER, HAND, OURS, PEER, Array, Contestant, Inputs, Run

MAX_AUTOTUNE = "max-autotune-no-cudagraphs"
FLASH, CUDNN, EFFICIENT = "FLASH_ATTENTION", "CUDNN_ATTENTION", "EFFICIENT_ATTENTION"
RECOMPILED = 512  # forms that torch.compile keeps of one function: a process prepares many cases


def ours(fn: Callable[..., Any], constant: tuple[str, ...] = ()) -> Contestant:
    """The program as ``bb.jit`` runs it, with all that is usual.

    ``constant``: inputs of which kernels compute once, before the clock runs.
    """

    def make(inputs: Inputs, *, library: bool = True) -> Run:
        import blockbuster as bb

        fast, arrays = bb.jit(constant=constant, library=library)(fn), tuple(inputs.values())
        fast(*arrays)
        pinned = fast.compiled_for(*arrays).pinned(*arrays) if constant else None
        return Jitted(fast, arrays, pinned)

    return Contestant("ours", make, OURS, alone=partial(make, library=False))


class Jitted:
    """A call of a jitted function with its arrays, which can say what became of it."""

    def __init__(self, fast: Any, arrays: tuple[Array, ...], pinned: Run | None = None) -> None:
        self._fast, self._arrays, self._pinned = fast, arrays, pinned

    def __call__(self) -> Any:
        return self._pinned() if self._pinned else self._fast(*self._arrays)

    def report(self) -> str:
        """Its kernels, tiles and notes."""
        return str(self._fast.report_for(*self._arrays))


def called(
    name: str,
    fn: Callable[..., Any],
    *,
    kind: str = PEER,
    prepared: Callable[..., tuple[Array, ...]] | None = None,
) -> Contestant:
    """``fn`` as it is, of the inputs or of what is ``prepared`` from them before the clock runs."""

    def make(inputs: Inputs) -> Run:
        arrays = tuple(inputs.values())
        arrays = prepared(*arrays) if prepared else arrays
        return lambda: fn(*arrays)

    return Contestant(name, make, kind)


def compiled(
    name: str,
    fn: Callable[..., Any],
    *,
    searched: bool = False,
    prepared: Callable[..., tuple[Array, ...]] | None = None,
) -> Contestant:
    """``fn`` by torch.compile, for these shapes alone; ``searched``: with max-autotune."""

    def make(inputs: Inputs) -> Run:
        arrays = tuple(inputs.values())
        arrays = prepared(*arrays) if prepared else arrays
        fast = by_compiler(fn, arrays[0].device.type, searched=searched)
        return lambda: fast(*arrays)

    return Contestant(name, make, PEER, searched)


def by_compiler(fn: Callable[..., Any], device: str, *, searched: bool = False) -> Any:
    """``fn`` by torch.compile on a GPU; on the CPU only what dynamo captures, run operator-wise."""
    import torch
    import torch._dynamo

    torch._dynamo.config.recompile_limit = RECOMPILED
    torch._dynamo.config.accumulated_recompile_limit = RECOMPILED
    if device == "cpu":
        return torch.compile(fn, dynamic=False, fullgraph=True, backend="eager")
    mode = MAX_AUTOTUNE if searched else None
    return torch.compile(fn, dynamic=False, fullgraph=True, mode=mode)


def usual(plain: Callable[..., Any], *, searched: bool = False) -> tuple[Contestant, ...]:
    """What any program has: eager torch and torch.compile."""
    made = (called(EAGER, plain), compiled("torch.compile", plain))
    return (*made, compiled("max-autotune", plain, searched=True)) if searched else made


def sdpa(
    name: str, backend: str, arguments: Callable[..., tuple[tuple[Array, ...], dict[str, Any]]]
) -> Contestant:
    """scaled_dot_product_attention by one of its backends; ``arguments`` makes those of the call.

    Arrays of ``arguments`` are (batch, heads, positions, depth).
    """

    def make(inputs: Inputs) -> Run:
        import torch

        arrays, named = arguments(*inputs.values())
        attend = torch.nn.functional.scaled_dot_product_attention

        def run() -> Array:
            with backend_of(backend, arrays[0].device.type):
                return attend(*arrays, **named)

        return run

    return Contestant(name, make)


@contextmanager
def backend_of(backend: str, device: str) -> Iterator[None]:
    """The backend of attention; on the CPU the plain one."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    with sdpa_kernel(getattr(SDPBackend, backend if device == "cuda" else "MATH")):
        yield


def flex(
    arguments: Callable[..., tuple[tuple[Array, ...], Mapping[str, Any]]], *, searched: bool = False
) -> Contestant:
    """FlexAttention, compiled. ``arguments`` gives q, k, v and its ``score_mod``, ``mask_mod``."""

    def make(inputs: Inputs) -> Run:
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention

        (q, k, v), mods = arguments(*inputs.values())
        device, mask = q.device.type, mods.get("mask_mod")
        lengths = (q.shape[-2], k.shape[-2])
        blocks = create_block_mask(mask, None, None, *lengths, device=device) if mask else None
        fast = flex_attention
        if device == "cuda":
            fast = by_compiler(flex_attention, device, searched=searched)
        named = dict(score_mod=mods.get("score_mod"), block_mask=blocks)
        return lambda: fast(q, k, v, **named, enable_gqa=q.shape[1] != k.shape[1])

    return Contestant("flex max-autotune" if searched else "flex", make, PEER, searched)


def by_hand(place: str, number: int, arguments: Callable[..., Inputs] | None = None) -> Contestant:
    """A form of a tuple of bench/schedules/hand, such as form 1 of "matmul.FORMS".

    ``arguments`` makes its inputs by name, if they are not those of the case.
    """

    def make(inputs: Inputs) -> Run:
        from blockbuster.emit.target.compiler import assembling_here

        module, name = place.split(".")
        form = getattr(import_module(f"bench.schedules.hand.{module}"), name)[number]
        ready = form.ready(arguments(*inputs.values()) if arguments else inputs)
        with assembling_here():
            ready.run()
        return ready.run

    return Contestant("hand", make, HAND)


def bound(name: str, fn: Callable[..., Any]) -> Contestant:
    """A part of the program, by the library."""
    return called(name, fn, kind=BOUND)
