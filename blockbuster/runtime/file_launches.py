"""The launches of an emitted file on a device, computed from its LaunchSpec for arrays of a layout.

For the first arrays that need other kernels than those known, the kernels are compiled (``first``).
For another layout only numbers are computed (``laid``); no compiler or check runs. Kernels that
differ in names alone are one (alike.py).

Triton compiles a kernel anew if one of its integers becomes 1, if its divisibility by 16 changes,
if the alignment of a pointer changes, if the power of two changes that a launch says divides
the numbers of rows, or if a size changes that is a constant of its kernel. So known kernels are
kept by such patterns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from blockbuster.emit.print.triton.file import OVERLAPS
from blockbuster.emit.target.alike import shared
from blockbuster.emit.target.compiler import (
    Compilation,
    Source,
    compile_ahead,
    compiled_for_launch,
)
from blockbuster.emit.target.starting import starter
from blockbuster.emit.tile.launch_spec import LaunchSpec, Section, Start, value
from blockbuster.ir.types import Dim
from blockbuster.runtime.launch import ALIGNED
from blockbuster.runtime.launches import (
    Described,
    Keeps,
    Kernel,
    Laid,
    Prepared,
    in_rows,
    laid_out,
)
from blockbuster.runtime.numbers import Arithmetic, Found, Made, Started

if TYPE_CHECKING:
    from blockbuster.emit.target.gpu import Gpu
    from blockbuster.selection.plans.plan import Sizes

Tensor = Any
LARGEST = 1 << 31  # numbers and offsets from here on are 64 bits wide: other kernels


class FileLaunches:
    """The launches of one file, for all layouts whose kernels are known.

    ``module``: its text, loaded, whose kernels and checks are called.
    """

    def __init__(self, module: ModuleType, spec: LaunchSpec, gpu: Gpu) -> None:
        self._module, self._spec, self._gpu = module, spec, gpu
        self._arithmetic = Arithmetic(spec, gpu.dtype)
        arrays = (*spec.launch.inputs, *spec.made)
        self._number = {array.name: number for number, array in enumerate(arrays)}
        self._results = [self._number[name] for name in spec.results]
        self._sections = [section for section in (spec.prepare, spec.launch) if section]
        self._describes = any(start.descriptors for start in spec.starts)
        self._waits = any(start.waits or start.asks for start in spec.starts)
        self._functions = {
            entry["function"].__name__: shared(
                entry["function"], entry["constants"], entry["options"]
            )
            for entry in module.KERNELS
        }
        self._lengths = frozenset(dim for dim, *_ in module.LENGTHS)
        self._with_lengths: Callable[[dict[Dim, int]], Sizes] = module.check_lengths
        self._known: dict[Any, Sequence[Kernel]] = {}
        self._prepared: Prepared | None = None

    def laid(self, tensors: Sequence[Tensor], sizes: Sizes) -> Laid | None:
        """The launches for arrays of this layout; None if a kernel is not known."""
        if not (self._known and all(sizes.values())):
            return None
        if self._lengths and not sizes.keys() >= self._lengths:  # a schedule's own: halves of rows
            sizes = self._with_lengths({**sizes})
        found = self._arithmetic([t.stride() for t in tensors], sizes)
        kernels = self._known.get(self._pattern(found, tensors))
        if kernels is None:
            return None
        launches, part = [*zip(kernels, found.starts, strict=True)], self._prepared
        if part is not None:
            part = part.of(found.made, launches)
        return laid_out(self._gpu, found.made, launches, self._results, part, len(tensors))

    def _pattern(self, found: Found, tensors: Sequence[Tensor]) -> Any:
        """What kernels are known by; None where offsets are wide."""
        if max(found.numbers) >= LARGEST:
            return None
        aligned = [not t.data_ptr() % ALIGNED for t in tensors]
        still = [0 in t.stride() for t in tensors] if self._describes else []
        return found.classes, found.even, *aligned, *still

    def learn(self, pattern: Any, laid: Laid) -> None:
        """Let other layouts have the kernels that were compiled for one of this pattern."""
        if pattern is not None:
            self._known[pattern] = [kernel for kernel, _ in laid.launches]
            self._prepared = laid.prepared

    # the first arrays of a pattern -----------------------------------------------------------

    def first(
        self, tensors: Sequence[Tensor], sizes: Sizes, keeps: Keeps, empty: Callable[..., Tensor]
    ) -> First:
        """The kernels compiled for these arrays. ``empty`` makes the others.

        Raises Refusal if Triton refuses a kernel, ValueError for arrays that do not fit.
        """
        gpu = self._gpu
        size, found, made, arrays, _, wanted = self.begun(tensors, sizes, empty)
        with gpu.current():
            compile_ahead([one.source for one in wanted], gpu)
            calls = [one.compiled() for one in wanted]
        launches = [(call.kernel, call.start) for call in calls]
        part = self._part(calls, len(tensors), keeps)
        part = part and part.of(made, launches)
        laid = laid_out(gpu, made, launches, self._results, part, len(tensors))
        pattern = self._pattern(found, tensors) if all(size.values()) else None
        return First(laid, calls, arrays, pattern, self._module)

    def begun(self, tensors: Sequence[Tensor], sizes: Sizes, empty: Callable[..., Tensor]) -> Begun:
        """What is computed of these arrays before kernels are compiled. ``empty`` makes the others.

        Raises ValueError for arrays that do not fit.
        """
        size = self._checked(tensors, sizes)
        found = self._arithmetic([t.stride() for t in tensors], size)
        made = [(shape, in_rows(shape), dtype) for shape, _, dtype in found.made]
        with self._gpu.current():
            arrays = [*tensors, *(empty(*one) for one in made)]
            wanted = [*self._wanted(found, arrays)]
        results = [arrays[number] for number in self._results]
        return Begun(size, found, made, arrays, results, wanted)

    def _part(self, calls: Sequence[Call], inputs: int, keeps: Keeps) -> Prepared | None:
        """The part of the launches that computes of constants; None if there is none."""
        section = self._spec.prepare
        starts = sum(call.section is section for call in calls)
        if section is None or not starts:
            return None
        constants = tuple([self._number[array.name] for array in section.inputs])
        later = tuple([self._number[array.name] - inputs for array in self._spec.keeps])
        return Prepared(len(section.makes), starts, inputs, constants, later, None, keeps)

    def _checked(self, tensors: Sequence[Tensor], sizes: Sizes) -> Sizes:
        """All sizes. Raises ValueError for arrays and sizes that the file was not written for."""
        module, section = self._module, self._spec.launch
        size = {dim: sizes[dim] for dim in section.free}
        axes = {**module.OUTPUTS, **module.INPUTS}
        names = [array.name for array in section.inputs if array.name in axes]
        for name, tensor in zip(names, tensors, strict=False):
            module.check_array(name, tensor, axes[name], tensors[0], size)
        module.check_sizes(module.check_lengths(size))
        kept = section.inputs[len(names) :]
        if kept:
            known = {**size, **dict(self._spec.chunks)}
            shapes = [tuple([value(extent, known, {}) for extent in one.shape]) for one in kept]
            expected = [(one.name, s, one.dtype) for one, s in zip(kept, shapes, strict=True)]
            module.check_prepared(tensors[len(names) :], expected, tensors[0])
        return size

    def _wanted(self, found: Found, arrays: Sequence[Tensor]) -> Iterator[Wanted]:
        """The starts of all kernels that have programs, in order."""
        overlaps = self._waits and self._module.can_overlap(arrays[0])
        numbers = zip(found.starts, found.even, strict=True)
        for section in self._sections:
            index = self._module.index_type(*(arrays[self._number[a]] for a in section.spans))
            early = False  # whether a kernel before this one, in its chain, did start
            for at, start in enumerate(section.starts):
                begun, even = next(numbers)
                begins = start.waits and (early or not at)
                early = early and start.waits
                if not begun[0]:
                    continue
                early = True
                names = [name for name, _ in (*start.even, *start.told)]
                told = dict(zip(names, even, strict=True))
                constants = {**dict(start.lanes), **told, "INDEX": index}
                constants |= {OVERLAPS: overlaps} if start.asks else {}
                options = {"launch_pdl": True} if begins and overlaps else {}
                room = start.leaves_room and overlaps
                yield self._wants(section, start, begun, arrays, constants, options, room)

    def _wants(
        self,
        section: Section,
        start: Start,
        begun: Started,
        arrays: Sequence[Tensor],
        constants: Mapping[str, Any],
        options: Mapping[str, Any],
        leaves_room: bool,
    ) -> Wanted:
        """A start of a kernel for arrays and constants."""
        module, own = self._module, self._functions[start.kernel]
        places = tuple(self._number[name] for name in start.arrays)
        arguments = (*(module.argument(arrays[place]) for place in places), *begun[1])
        made, described = {}, []
        for parameter, name, tile in start.descriptors:
            place = self._number[name]
            made[parameter] = module.descriptor(arrays[place], tile)
            described.append(Described(place, tile) if made[parameter] else None)
        named = own.named({**made, **constants, **dict(start.options), **options})
        known = (places, tuple(constants.values()), tuple(described))
        return Wanted(section, begun, own.function, arguments, named, known, leaves_room)


class Wanted(NamedTuple):
    """The start of a kernel that is not compiled yet, as Triton's function is called.

    ``known``: its ``Kernel`` but for what is compiled.
    """

    section: Section
    start: Started
    function: Any
    arguments: tuple[Any, ...]
    options: Mapping[str, Any]
    known: tuple[Any, ...]
    leaves_room: bool

    @property
    def source(self) -> Source:
        """What is compiled."""
        return self.function, self.arguments, self.options

    def compiled(self) -> Call:
        """The same, compiled. Raises Refusal if Triton refuses the kernel."""
        compilation = compiled_for_launch(self.function, self.arguments, self.options)
        compiled = compilation.compiled
        kernel = Kernel(starter(compiled), compiled.function, *self.known)
        section, start, function, arguments, options, _, leaves_room = self
        return Call(section, kernel, start, function, arguments, options, compilation, leaves_room)


class Begun(NamedTuple):
    """The numbers for the first arrays of a layout, and all arrays: inputs, and those that are made
    but not written yet.
    """

    sizes: Sizes
    found: Found
    made: Sequence[Made]
    arrays: Sequence[Tensor]
    results: Sequence[Tensor]
    wanted: Sequence[Wanted]


class Call(NamedTuple):
    """The start of a compiled kernel: with numbers, and as Triton's function is called."""

    section: Section
    kernel: Kernel
    start: Started
    function: Any
    arguments: tuple[Any, ...]
    options: Mapping[str, Any]
    compilation: Compilation
    leaves_room: bool


class First(NamedTuple):
    """The launches of a file for the first arrays of a layout, compiled; calling it starts them.

    ``arrays``: the inputs, and those that are made. ``pattern``: see ``FileLaunches``.
    """

    laid: Laid
    calls: Sequence[Call]
    arrays: Sequence[Tensor]
    pattern: Any
    module: ModuleType

    @property
    def compilations(self) -> list[Compilation]:
        """The kernels."""
        return [call.compilation for call in self.calls]

    def __call__(self) -> list[Tensor]:
        """The outputs, from kernels that are started as the file's launcher does."""
        with self.laid.gpu.current():
            for call in self.calls:
                call.function[(call.start[0],)](*call.arguments, **call.options)
                if call.leaves_room:
                    self.module.leave_room(call.compilation.compiled)
        return [self.arrays[number] for number in self.laid.results]
