"""Programs that other fusion algorithms offer for parts, checked before they take part in a choice.

A fuser is a function that is given a part, an array program, and gives programs that compute the
same. Ours is ``bb.fuse(bb.lower(part))``, and always takes part. What a user's fuser offers becomes
a form of the part, if it is proven equal: the price decides. A fuser that raises, or offers
something else, is left out for that part, and the plan's notes say so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from blockbuster.errors import BlockbusterError, a_kind, message, shown_lines
from blockbuster.frontend import ArrayProgram, lower
from blockbuster.ir.graph import Graph
from blockbuster.selection.parts.operand_views import OPAQUE
from blockbuster.selection.plans.operators import computes
from blockbuster.selection.plans.part import Part


class Fuser(Protocol):
    """A fusion algorithm that takes part in the choice of kernels: any function like this.

    ``part`` is an array program, with its ``equations``, ``inputs`` and ``outputs``. A fuser gives
    programs that read the same arrays by name and compute the same outputs in the same order, and
    none, ``()``, for a part that it does not know. A block program is one candidate, as it is; an
    array program is lowered and fused by our rules.
    """

    def __call__(self, part: ArrayProgram, /) -> Iterable[ArrayProgram | Graph]:
        """The programs that are offered for ``part``."""


def check_fusers(fusers: object) -> None:
    """Raise TypeError for what is no sequence of functions."""
    if callable(fusers):
        raise TypeError(f"fusers is one function: pass a sequence, fusers=[{name_of(fusers)}]")
    if not isinstance(fusers, Sequence) or isinstance(fusers, str):
        raise TypeError(f"expected a sequence of fusers, got {a_kind(fusers)}")
    for one in fusers:
        if not callable(one):
            what = f"among the fusers is {a_kind(one)}"
            hint = "a fuser is a function of a part, which gives programs: docs/fusers.md"
            raise TypeError(message(what, hint=hint))


def name_of(fuser: Callable[..., object]) -> str:
    """The name by which notes tell of a fuser."""
    return str(getattr(fuser, "__name__", type(fuser).__name__))


class Notes:
    """What took no part in a choice, and why, with the parts of which it was to be a form."""

    def __init__(self) -> None:
        self._parts: dict[str, dict[str, None]] = {}

    def add(self, what: str, part: ArrayProgram) -> None:
        """Note something of a part."""
        self._parts.setdefault(what, {})[computes(part.equations)] = None

    def __iter__(self) -> Iterator[str]:
        for what, parts in self._parts.items():
            first, others = next(iter(parts)), len(parts) - 1
            more = f" and {others} other part{'s' * (others > 1)}" if others else ""
            yield f"{what}; for {first}{more}"


def offered(part: Part, fusers: Sequence[Fuser], notes: Notes) -> Iterator[Part]:
    """The forms of ``part`` by what ``fusers`` offer for it, as far as that is equal."""
    for fuser in fusers if part.program.equations else ():
        name = name_of(fuser)
        try:
            programs = [*fuser(part.program)]
        except Exception as error:  # it may be of any kind: the code is a user's
            text = f"fuser {name} raised {type(error).__name__}: {error}".rstrip(": ")
            notes.add(text, part.program)
            continue
        for program in programs:
            try:
                form, unproven = _form(part, program, name)
            except (BlockbusterError, TypeError, ValueError) as error:
                text = f"fuser {name} is left out: {shown_lines(str(error))[0]}"
                notes.add(text, part.program)
                continue
            if unproven:
                text = f"fuser {name} is not proven, since custom functions are not"
                notes.add(text, part.program)
            yield form


def _form(part: Part, program: object, name: str) -> tuple[Part, bool]:
    """A part by a program that was offered, and whether that was only compared on random inputs:
    of a user's function more cannot be told. Raises ValueError if it is not equal.
    """
    from blockbuster.interp.equal import prove_equal  # first calls prove nothing

    if isinstance(program, ArrayProgram):
        program = _with_outputs(program, part.program)
    elif not isinstance(program, Graph):
        raise TypeError(f"expected an array program or a block program, got {a_kind(program)}")
    graph = program if isinstance(program, Graph) else lower(program)
    proof = prove_equal(lower(part.program), graph)
    if proof.equal is False:
        raise ValueError("its program computes something else")
    custom = any(one.op == OPAQUE for one in part.program.equations)
    if proof.equal is None and not custom:
        raise ValueError(f"its program is not proven equal: {proof.scope}")
    return part.offered(program, name), proof.equal is None


def _with_outputs(program: ArrayProgram, part: ArrayProgram) -> ArrayProgram:
    """``program`` with its outputs named as those of ``part``, in order."""
    if len(program.outputs) != len(part.outputs):
        counts = f"{len(program.outputs)} outputs, and the part has {len(part.outputs)}"
        raise ValueError(f"its program has {counts}")
    pairs = zip(program.outputs, part.outputs, strict=True)
    return replace(program, outputs=tuple(replace(own, name=one.name) for own, one in pairs))
