"""A part of a program, lowered and fused by itself: what one or more files of a plan compute."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from blockbuster.emit.tile.array_dtypes import Given
from blockbuster.emit.tile.value_dtypes import casts, result_dtype
from blockbuster.errors import EmitError
from blockbuster.frontend import ArrayProgram, lower
from blockbuster.frontend.kinds import MOVES
from blockbuster.frontend.structure import structure
from blockbuster.ir.dtypes import OWN
from blockbuster.ir.graph import Graph
from blockbuster.ir.lengths import completed
from blockbuster.ir.types import Dim
from blockbuster.selection.candidates.candidate import CPU
from blockbuster.selection.candidates.named import unfused
from blockbuster.selection.choice import Fused
from blockbuster.selection.plans.asked import Subject
from blockbuster.selection.plans.pieces import Call, Piece, Seen, in_pieces
from blockbuster.selection.plans.plan_dtypes import (
    kept_dtypes,
    taken_by_products,
    with_integers,
    written_dtypes,
)
from blockbuster.selection.plans.rounded_operands import without_casts_of_softmaxes
from blockbuster.selection.priors import PRIORS


@dataclass(frozen=True)
class Dtypes:
    """The dtypes of a program, or of a part of it.

    ``common``: where inputs meet; ``inputs``: of those that have another. ``read``: in which a part
    reads what other parts wrote, ``cut``: in which it writes its outputs. ``constants``:
    inputs that stay as they are from call to call. ``on_cpu``: it becomes NumPy text.
    """

    common: str
    inputs: Mapping[str, str]
    read: Mapping[str, str]
    cut: Mapping[str, str]
    constants: tuple[str, ...] = ()
    on_cpu: bool = False


class Part:
    """An array program lowered and cut into pieces, each of them fused once.

    ``cut``: the outputs that other parts read; None for a whole program. ``taken``: names of
    arrays of other parts. ``fused``: a block program in place of what lowering makes of the
    program; it stays as it is.
    """

    by = ""
    """The name of the fuser that offered its program, if one did."""
    _offered: Graph | None = None

    def __init__(
        self,
        program: ArrayProgram,
        dtypes: Dtypes,
        cut: Collection[str] | None = None,
        taken: Collection[str] = (),
        fused: Graph | None = None,
    ) -> None:
        self._taken_by_products = taken_by_products(program, dtypes.inputs, dtypes.common)
        program = without_casts_of_softmaxes(program, self._taken_by_products)
        graph = fused or lower(program)
        self._offered = fused
        self.program, self.size_rules = program, graph.size_rules
        pieces = in_pieces(graph, cut, taken)
        self._cut, self._taken = cut, taken
        self.dtypes = written_dtypes(pieces, dtypes.common, dtypes.inputs)
        self.pieces = with_integers(pieces, self.dtypes)
        exact = dtypes.on_cpu and "float64" in (dtypes.common, *casts(graph))
        self.arithmetic = "float64" if exact else "float32"
        self._of = dtypes
        self.steps = tuple(step for step in self.pieces.steps if isinstance(step, Piece))
        self.fused = tuple(
            Fused(
                piece.graph,
                unfused(piece.graph) if fused else None,
                constants=bool(dtypes.constants),
                on_cpu=dtypes.on_cpu,
            )
            for piece in self.steps
        )

    @property
    def first(self) -> Part:
        """The part whose kernels compute it: itself, or an equal one."""
        return self

    def own(self, sizes: Mapping[Dim, int]) -> dict[Dim, int]:
        """The sizes of the dims that its kernels name, where those of the program are ``sizes``."""
        return completed(sizes, self.size_rules)

    def named(self, blocks: Mapping[Dim, tuple[int, ...]]) -> Mapping[Dim, tuple[int, ...]]:
        """Lanes of dims that its kernels name, by the program's names of these dims."""
        return blocks

    def expect_shared(self) -> None:
        """Raise EmitError if lowering made many nodes of each operation: pieces of a value that
        others read in pieces, as pools of pools do, are each computed from the inputs on.
        """
        nodes = sum(len(one.graph.nodes) for one in self.steps)
        operations = sum(one.op not in MOVES for one in self.program.equations)
        if nodes > max(PRIORS.many_nodes, PRIORS.nodes_an_operation * operations):
            reason = "pieces of what it computes are computed one by one"
            raise EmitError(f"{reason}: {nodes} nodes of {operations} operations")

    def as_program(self, program: ArrayProgram) -> Part:
        """The same part by another program that computes the same."""
        return Part(program, self._of, self._cut, self._taken)

    def offered(self, program: ArrayProgram | Graph, by: str) -> Part:
        """The same part by a program that a fuser offers; a block program is left as it is."""
        if isinstance(program, Graph):
            found = Part(self.program, self._of, self._cut, self._taken, program)
        else:
            found = self.as_program(program)
        found.by = by
        return found

    def dtype_given(self, name: str) -> str:
        """The dtype of one of its inputs."""
        of = self._of
        return of.read.get(name) or of.inputs.get(name, of.common)

    def dtype_kept(self, name: str) -> str:
        """The dtype in which one of its outputs is kept."""
        return self._of.cut.get(name) or self.dtypes[dict(self.results)[name].array]

    @cached_property
    def given(self) -> tuple[Given, ...]:
        """What the kernels of each piece are told of the dtypes of their arrays."""
        of, steps = self._of, self.pieces.steps
        own = {**of.inputs, **of.read}
        kept = kept_dtypes(
            steps, self.dtypes, common=of.common, arithmetic=self.arithmetic, own=own
        )
        kept |= {name: dtype for name, dtype in of.cut.items() if name in kept}
        known = {name: of.common for step in steps for name in step.reads} | own | kept
        return tuple(
            Given(
                {name: self._read_as(name, known[name], kept) for name in step.reads},
                common=self._taken_by_products,
                results=tuple(kept[name] for name in step.writes),
                arithmetic=self.arithmetic,
                constants=tuple(name for name in step.reads if name in of.constants),
            )
            for step in self.steps
        )

    def _read_as(self, name: str, dtype: str, kept: Mapping[str, str]) -> str:
        """The dtype in which kernels read an array: of what is computed, truths are numbers."""
        if name in self._of.read and dtype in OWN:
            return dtype
        computed = name in kept or name in self._of.read
        return result_dtype([dtype], self.arithmetic) if computed else dtype

    def structure(self, sizes: Mapping[Dim, int]) -> tuple[Any, ...]:
        """What two parts have in common that take the same time at ``sizes``."""
        program, dims, names = structure(self.program)
        dtypes = tuple(
            (
                tuple(one.arrays.get(name, "") for name in names),
                tuple(dtype for name, dtype in one.arrays.items() if name not in names),
                tuple(name in one.constants for name in names),
                one.common,
                one.results,
            )
            for one in self.given
        )
        held = tuple(self.dtype_given(name) for name in names)
        return program, tuple(sizes[dim] for dim in dims), held, dtypes, self._offered

    @property
    def calls(self) -> tuple[Call, ...]:
        """Its functions of whole arrays: copies, calls of a library, a user's functions."""
        return tuple(step for step in self.pieces.steps if isinstance(step, Call))

    @property
    def results(self) -> Iterator[tuple[str, Seen]]:
        """Where each of its outputs is found, by name."""
        return zip(self.pieces.names, self.pieces.results, strict=True)

    @property
    def rounded(self) -> tuple[str, ...]:
        """The outputs that are not kept as they are computed."""
        return tuple(n for n, dtype in self._of.cut.items() if dtype != self.arithmetic)

    @cached_property
    def subjects(self) -> tuple[Subject, ...]:
        """What is asked of those who measure schedules: one for each piece."""
        pairs = zip(self.fused, self.given, strict=True)
        return tuple(Subject(fused.graph, given) for fused, given in pairs)


def dtypes_of(
    common: str, target: object, inputs: Mapping[str, str], constants: tuple[str, ...]
) -> Dtypes:
    """The dtypes of a whole program for a target."""
    return Dtypes(common, inputs, {}, {}, constants, on_cpu=target == CPU)
