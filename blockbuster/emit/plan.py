"""A plan: emitted files and functions of whole arrays, in the order in which they run.

It is made for one dtype, one target and one class of sizes. On the CPU it runs here, through NumPy;
``replay.py`` runs it on a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockbuster.emit.choice import CPU, Considered, Fused
from blockbuster.emit.kernel import Kernel, emit
from blockbuster.emit.launch import run_interpreted
from blockbuster.emit.load import load_module
from blockbuster.emit.numpy_text import numpy_text
from blockbuster.emit.pieces import Axes, Call, Piece, Seen, in_pieces
from blockbuster.emit.tile import TileProgram
from blockbuster.emit.trips import dims_of, sized
from blockbuster.errors import LaunchError, message
from blockbuster.ir.graph import Graph
from blockbuster.ir.lengths import Rule, completed
from blockbuster.ir.types import Dim, size_class

Array = NDArray[Any]
Sizes = Mapping[Dim, int]


@dataclass(frozen=True)
class File:
    """An emitted module: kernels that run one after the other.

    ``axes`` are those of the arrays it writes, ``boolean`` says which of them hold truth values.
    ``dims`` are all its dims, ``blocks`` the size classes that NumPy walks in blocks.
    ``considered`` says why it is this snapshot; a plan that was saved has forgotten it.
    """

    text: str = field(repr=False)
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    axes: tuple[Axes, ...]
    boolean: tuple[bool, ...]
    dims: tuple[Dim, ...]
    blocks: Mapping[Dim, int]
    kernels: int
    considered: Considered | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Plan:
    """What runs for one class of sizes. ``sizes`` are those it was made for.

    ``inputs`` are the program's arrays with their axes (None: of extent 1), ``results`` where its
    outputs are found, ``dtypes`` what they are rounded to ("": the plan's own dtype). ``rules``
    give the sizes that no input shows.
    """

    name: str
    dtype: str
    target: str
    inputs: Mapping[str, Axes]
    sizes: Sizes
    steps: tuple[File | Call, ...]
    names: tuple[str, ...]
    results: tuple[Seen, ...]
    dtypes: tuple[str, ...]
    notes: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()

    @property
    def files(self) -> tuple[File, ...]:
        """The emitted modules, in order."""
        return tuple(step for step in self.steps if isinstance(step, File))

    @property
    def calls(self) -> tuple[Call, ...]:
        """The functions of whole arrays, in order."""
        return tuple(step for step in self.steps if isinstance(step, Call))

    @property
    def kernels(self) -> int:
        """How many kernels run, the functions of whole arrays not counted."""
        return sum(file.kernels for file in self.files)

    @property
    def source(self) -> str:
        """The emitted modules, one after the other."""
        return "\n\n".join(file.text for file in self.files)

    @property
    def result_dtypes(self) -> tuple[str, ...]:
        """The dtypes of the outputs: the plan's own, unless cast, and bool for truth values."""
        truth = {n for f in self.files for n, b in zip(f.writes, f.boolean, strict=True) if b}
        return tuple(
            "bool" if seen.array in truth else dtype or self.dtype
            for seen, dtype in zip(self.results, self.dtypes, strict=True)
        )

    def result_shapes(self, sizes: Sizes) -> tuple[tuple[int, ...], ...]:
        """The shapes of the outputs."""
        axes: dict[str, Axes] = {}
        for step in self.steps:
            axes.update(zip(step.writes, step.axes, strict=True))
        shown_as = [
            tuple(None if i is None else axes[seen.array][i] for i in seen.order)
            for seen in self.results
        ]
        return tuple(
            tuple(1 if dim is None else sizes[size_class(dim)] for dim in dims) for dims in shown_as
        )

    def bind(self, shapes: Mapping[str, Sequence[int]]) -> dict[Dim, int]:
        """The size of every dim for arrays of these shapes; LaunchError where they disagree."""
        return bind_sizes(self.inputs, shapes, self.rules)

    def checked(self, sizes: dict[Dim, int]) -> dict[Dim, int]:
        """``sizes``, if NumPy can run them: a dim that is one block has to have elements.

        The launchers of kernels check sizes on their own.
        """
        for file in self.files if self.target == CPU else ():
            for dim in file.dims:
                if size_class(dim) not in file.blocks and not sizes[size_class(dim)]:
                    known = self.sizes[size_class(dim)]
                    raise LaunchError(f"{dim} is 0: {self.name} is compiled for {dim} = {known}")
        return sizes


class Family:
    """The plans of one program for one dtype and target: fused once, emitted per class of sizes.

    ``input_dtypes``: those of inputs that have another dtype than ``dtype``, where all meet.
    """

    def __init__(
        self,
        graph: Graph,
        inputs: Mapping[str, Axes],
        *,
        name: str,
        dtype: str,
        target: str,
        dtypes: tuple[str, ...],
        input_dtypes: Mapping[str, str],
        rules: tuple[Rule, ...] = (),
    ) -> None:
        self.name, self.dtype, self.target, self.inputs = name, dtype, target, inputs
        self.rules = tuple(dict.fromkeys((*rules, *graph.size_rules)))
        self._dtypes, self.input_dtypes = dtypes, input_dtypes
        self._pieces = in_pieces(graph)
        fused = [Fused(step.graph) for step in self._pieces.steps if isinstance(step, Piece)]
        self.fused = tuple(fused)
        self._plans: dict[tuple[Any, ...], Plan] = {}

    def bind(self, shapes: Mapping[str, Sequence[int]]) -> dict[Dim, int]:
        """The size of every dim for arrays of these shapes; LaunchError where they disagree."""
        return bind_sizes(self.inputs, shapes, self.rules)

    def at(self, sizes: Sizes, *, one_kernel: bool = False) -> Plan:
        """The plan for these sizes: one that is there already, if it serves them."""
        chosen = [
            fused.consider(sizes, self.dtype, self.target, one_kernel=one_kernel)
            for fused in self.fused
        ]
        key = (one_kernel, *(considered.best.key for considered in chosen))
        if key not in self._plans:
            self._plans[key] = self._plan(sizes, chosen)
        return self._plans[key]

    def refuse(self, plan: Plan, files: Sequence[File], reason: str) -> None:
        """Never choose these files of a plan again: a compiler refuses or breaks them."""
        for file in files:
            assert file.considered is not None, "a plan of this family"
            self.fused[plan.files.index(file)].refuse(file.considered.best, reason)

    def _plan(self, sizes: Sizes, chosen: Sequence[Considered]) -> Plan:
        found = iter(zip(self.fused, chosen, strict=True))
        steps: list[File | Call] = []
        for step in self._pieces.steps:
            steps.append(step if isinstance(step, Call) else self._file(step, *next(found), sizes))
        notes = [note for considered in chosen for note in considered.notes]
        return Plan(
            self.name,
            self.dtype,
            self.target,
            self.inputs,
            dict(sizes),
            tuple(steps),
            self._pieces.names,
            self._pieces.results,
            self._dtypes,
            tuple(notes),
            self.rules,
        )

    def _file(self, piece: Piece, fused: Fused, considered: Considered, sizes: Sizes) -> File:
        best = considered.best
        program = best.program
        dims = dims_of(program)
        if self.target == CPU:
            text = numpy_text(program)
            whole = tuple(map(size_class, program.whole))
            blocks = {d: n for d, n in best.blocks.items() if d not in whole}
        else:
            known = {d: sizes[d] for d in sized(program) if d in sizes}
            dtypes = self._array_dtypes(piece, program)
            kernel = emit(
                best.graph,
                known,
                dtypes,
                self.target,
                best.tiles,
                reference=fused.graph,
                chunks=None if program.chunks else {},
            )
            text, blocks = kernel.source, {}
        return File(
            text,
            tuple(buffer.name for buffer in program.inputs),
            piece.writes,
            tuple(
                tuple(None if a.dim is None else size_class(a.dim) for a in b.axes)
                for b in program.outputs
            ),
            tuple(buffer.boolean for buffer in program.outputs),
            dims,
            blocks,
            best.kernels,
            considered,
        )

    def _array_dtypes(self, piece: Piece, program: TileProgram) -> dict[str, str]:
        """The dtypes of a file's arrays: inputs as they are given, results as they are cast."""
        cast = {
            seen.array: dtype
            for seen, dtype in zip(self._pieces.results, self._dtypes, strict=True)
            if dtype
        }
        found = {b.name: self.input_dtypes.get(b.name, self.dtype) for b in program.inputs}
        for name, buffer in zip(piece.writes, program.outputs, strict=True):
            if not buffer.boolean:
                found[buffer.name] = cast.get(name, self.dtype)
        return found


def bind_sizes(
    inputs: Mapping[str, Axes], shapes: Mapping[str, Sequence[int]], rules: tuple[Rule, ...]
) -> dict[Dim, int]:
    """The size of every dim, as ``inputs`` show it; LaunchError where shapes disagree."""
    sizes: dict[Dim, int] = {}
    first: dict[Dim, str] = {}
    for name, axes in inputs.items():
        shape = tuple(shapes[name])
        shown = f"({', '.join(axis or '1' for axis in axes)})"
        if len(shape) != len(axes):
            raise LaunchError(message(f"{name} has shape {shape}, expected the axes {shown}"))
        for axis, extent in zip(axes, shape, strict=True):
            known = 1 if axis is None else sizes.setdefault(axis, extent)
            if known != extent:
                place = f" as in {first[axis]}" if axis in first else ""
                raise LaunchError(
                    message(
                        f"{name} has shape {shape}, expected {shown} with "
                        f"{axis or 'the last'} = {known}{place}"
                    )
                )
            if axis is not None:
                first.setdefault(axis, name)
    try:
        return completed(sizes, rules)
    except ValueError as error:
        raise LaunchError(message(str(error))) from error


def host_dtype(dtype: str) -> Any:
    """What NumPy holds arrays of ``dtype`` in: it has no bfloat16."""
    return np.dtype("float32" if dtype == "bfloat16" else dtype).type


def run_on_host(plan: Plan, arrays: Mapping[str, Array], sizes: Sizes) -> list[Array]:
    """The outputs of a plan for the CPU, from NumPy arrays.

    Arithmetic is float32, and float64 for float64 arrays; what leaves a file is rounded.
    """
    held = host_dtype(plan.dtype)
    kind = np.float64 if plan.dtype == "float64" else np.float32
    known = {name: np.asarray(array).astype(held, copy=False) for name, array in arrays.items()}
    for step in plan.steps:
        if isinstance(step, Call):
            made = call_on_host(step, [shown(known[s.array], s) for s in step.operands], sizes)
            known.update(zip(step.writes, (m.astype(held, copy=False) for m in made), strict=True))
            continue
        given = {name: known[name].astype(kind, copy=False) for name in step.reads}
        module = load_module(step.text)
        blocks = {d: step.blocks.get(size_class(d), sizes[size_class(d)] or 1) for d in step.dims}
        found = module.run(given, sizes, blocks, dtype=kind)
        for name, array, truth in zip(step.writes, found.values(), step.boolean, strict=True):
            known[name] = array.astype(bool if truth else held, copy=False)
    results = [shown(known[seen.array], seen) for seen in plan.results]
    return [
        array.astype(host_dtype(dtype), copy=False)
        for array, dtype in zip(results, plan.result_dtypes, strict=True)
    ]


def run_in_interpreter(plan: Plan, arrays: Mapping[str, Array]) -> list[Array]:
    """The outputs of a plan for a GPU, from NumPy arrays, with Triton's interpreter: slow."""
    sizes = plan.bind({name: array.shape for name, array in arrays.items()})
    held = host_dtype(plan.dtype)
    known = dict(arrays)
    for step in plan.steps:
        if isinstance(step, Call):
            operands = [shown(known[s.array], s).astype(held) for s in step.operands]
            made = call_on_host(step, operands, sizes)
            known.update(zip(step.writes, (m.astype(held) for m in made), strict=True))
            continue
        name = "_".join(step.writes)
        kernel = Kernel(
            name=name, source=step.text, sizes=sizes, tiles={}, dtype=plan.dtype,
            target=plan.target, inputs=step.reads, outputs=step.writes,
        )  # fmt: skip
        free = {dim: sizes[dim] for dim in load_module(step.text).FREE}
        given = {n: known[n] if n in arrays else known[n].astype(held) for n in step.reads}
        known.update(run_interpreted(kernel, {**given, **free}))
    return [shown(known[seen.array], seen) for seen in plan.results]


def call_on_host(call: Call, operands: Sequence[Array], sizes: Sizes) -> list[Array]:
    """The arrays that a function makes of NumPy arrays, which it cannot change."""
    views = [array.view() for array in operands]
    for view in views:
        view.flags.writeable = False
    made = noted(call, call.fn, views)
    results = [np.asarray(array) for array in (made if isinstance(made, tuple) else (made,))]
    check_results(call, results, sizes)
    shared = [any(np.may_share_memory(array, view) for view in views) for array in results]
    return [array.copy() if s else array for array, s in zip(results, shared, strict=True)]


def noted(call: Call, fn: Callable[..., Any], arrays: Sequence[Any]) -> Any:
    """``fn(*arrays)``; an error of the user's function says how it came to be called."""
    try:
        return fn(*arrays)
    except BaseException as error:
        shapes = ", ".join(str(tuple(array.shape)) for array in arrays)
        where = f" ({call.where})" if call.where else ""
        error.add_note(f"in {call.name}{where}, which runs between kernels, on arrays {shapes}")
        raise


def check_results(call: Call, results: Sequence[Any], sizes: Sizes) -> None:
    """Raise LaunchError unless a function gave the arrays that it was traced with."""
    if len(results) != len(call.axes):
        raise LaunchError(f"{call.name} gave {len(results)} arrays, expected {len(call.axes)}")
    for array, axes in zip(results, call.axes, strict=True):
        expected = tuple(1 if d is None else sizes[size_class(d)] for d in axes)
        if tuple(array.shape) != expected:
            raise LaunchError(
                message(
                    f"{call.name} gave an array of shape {tuple(array.shape)}, expected {expected}",
                    origin=call.where or None,
                )
            )


def shown(array: Any, seen: Seen) -> Any:
    """An array or tensor with its axes as ``seen`` has them."""
    order = seen.order
    if order == tuple(range(len(array.shape))):
        return array
    kept = sorted(axis for axis in order if axis is not None)
    array = array[tuple(slice(None) if i in kept else 0 for i in range(len(array.shape)))]
    places = [kept.index(axis) for axis in order if axis is not None]
    array = array.transpose(places) if isinstance(array, np.ndarray) else array.permute(places)
    return array[tuple(None if axis is None else slice(None) for axis in order)]
