"""The text of ``launch`` and ``prepare`` in an emitted file, from what they do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from blockbuster.emit.print.triton.file import OVERLAPS, literal, wrapped
from blockbuster.emit.tile.launch_spec import (
    BLOCKS,
    LEAST,
    OVER,
    SIZE,
    STRIDE,
    TIMES,
    Array,
    LaunchSpec,
    Number,
    Section,
    Start,
)
from blockbuster.ir.types import Dim

Word = Callable[[Dim], str]
FORMS = {TIMES: "{} * {}", OVER: "{} // {}", BLOCKS: "triton.cdiv({}, {})", LEAST: "min({}, {})"}


def launcher_text(spec: LaunchSpec, size: Word) -> str:
    """The functions' text. ``size``: the variable that holds the size of a dim."""
    return _LauncherText(spec, size).text()


class _LauncherText:
    def __init__(self, spec: LaunchSpec, size: Word) -> None:
        self._spec, self._size = spec, size
        self._first = spec.launch.inputs[0].name

    def text(self) -> str:
        """``launch``, behind the function that prepares what it keeps."""
        prepare = self._spec.prepare
        return f"{self._prepare(prepare)}\n\n\n{self._launch()}" if prepare else self._launch()

    def _launch(self) -> str:
        spec, section, results = self._spec, self._spec.launch, self._spec.results
        optional = [*results, *(["prepared"] if spec.prepare else [])]
        head = ", ".join([*self._takes(section), *(f"{name}=None" for name in optional)])
        chained = any(start.waits for start in section.starts)
        return "\n".join(
            [
                f"def launch({head}):",
                *self._said(results),
                *self._sizes(section, "check_lengths"),
                *(self._prepared(spec.prepare) if spec.prepare else []),
                *(line for array in spec.outputs for line in self._output(array)),
                *(self._made(array, self._first) for array in section.makes),
                f"    index = index_type({', '.join(section.spans)})",
                f"    with on_device({self._first}):",
                *self._guard(),
                *([f"        overlaps = can_overlap({self._first})"] if chained else []),
                *(line for at in range(len(section.starts)) for line in self._chained(at)),
                f"    return {', '.join(results)}",
            ]
        )

    def _takes(self, section: Section) -> list[str]:
        free = [self._size(dim) for dim in section.free]
        return [*(array.name for array in section.inputs), *(["*", *free] if free else [])]

    def _said(self, results: Sequence[str]) -> list[str]:
        said = f"{', '.join(results)}, written into the arrays given for them, if any."
        if not self._spec.prepare:
            return [f'    """{said}"""']
        more = "``prepared``: what ``prepare`` returned; None: it is called here."
        return [f'    """{said}', "", f"    {more}", '    """']

    def _sizes(self, section: Section, completed: str) -> list[str]:
        """The checks of inputs, and the sizes of dims, ``completed`` by a function."""
        names = [array.name for array in section.inputs]
        return [
            f"    size = {_entries({dim: self._size(dim) for dim in section.free})}",
            f"    inputs = {_entries({name: name for name in names})}",
            "    for name, array in inputs.items():",
            f"        check_array(name, array, INPUTS[name], {names[0]}, size)",
            f"    check_sizes({completed}(size))",
            *(f"    {self._size(dim)} = size[{literal(dim)}]" for dim in section.dims),
            *(f"    {self._size(dim)} = {count}" for dim, count in self._spec.chunks),
        ]

    def _guard(self) -> list[str]:
        return ["        check_assembler()"] if self._spec.guarded else []

    # what is kept from call to call ------------------------------------------------------

    def _prepare(self, section: Section) -> str:
        """The function that computes of constants what calls share."""
        names, gives = [a.name for a in section.inputs], self._kept()
        return "\n".join(
            [
                f"def prepare({', '.join(self._takes(section))}):",
                f'    """{gives} for ``launch``: right until a change of {", ".join(names)}."""',
                *self._sizes(section, "of_constants"),
                *(self._made(array, names[0]) for array in section.makes),
                f"    index = index_type({', '.join(section.spans)})",
                f"    with on_device({names[0]}):",
                *self._guard(),
                *(line for start in section.starts for line in self._started(start)),
                f"    return ({gives},)",
            ]
        )

    def _kept(self) -> str:
        return ", ".join(array.name for array in self._spec.keeps)

    def _prepared(self, section: Section) -> list[str]:
        """How ``launch`` comes by what is kept."""
        given = [array.name for array in section.inputs]
        given += [f"{self._size(dim)}={self._size(dim)}" for dim in section.free]
        shapes = ", ".join(
            f"({literal(array.name)}, {self._shape(array)}, {literal(array.dtype)})"
            for array in self._spec.keeps
        )
        return [
            "    if prepared is None:",
            f"        prepared = prepare({', '.join(given)})",
            f"    check_prepared(prepared, [{shapes}], {self._first})",
            f"    ({self._kept()},) = prepared",
        ]

    # arrays that are made ----------------------------------------------------------------

    def _output(self, array: Array) -> Iterator[str]:
        name, like = array.name, self._first
        yield f"    if {name} is None:"
        yield f"        {name} = empty({self._shape(array)}, DTYPES[{literal(name)}], {like})"
        key = literal(name)
        yield f"    check_array({key}, {name}, OUTPUTS[{key}], {like}, size)"

    def _made(self, array: Array, like: str) -> str:
        return f"    {array.name} = empty({self._shape(array)}, {literal(array.dtype)}, {like})"

    def _shape(self, array: Array) -> str:
        extents = [self._number(extent) for extent in array.shape]
        return f"({extents[0]},)" if len(extents) == 1 else f"({', '.join(extents)})"

    def _number(self, number: Number) -> str:
        if isinstance(number, int):
            return str(number)
        kind, one, other = number
        if kind == SIZE:
            return self._size(one)
        if kind == STRIDE:
            return f"strides({one})[{other}]"
        return FORMS[kind].format(self._number(one), self._number(other))

    # launches ----------------------------------------------------------------------------

    def _chained(self, at: int) -> list[str]:
        """The launch of a kernel of each call. ``early``: how one is launched behind one that did
        start, if it may begin before that has ended; the first of a chain begins when all has
        ended, unless it is the first of all and waits for whatever the caller launched before.
        ``started``: the kernel, where it leaves room for the next one.
        """
        starts = self._spec.launch.starts
        start, leads = starts[at], any(after.waits for after in starts[at + 1 : at + 2])
        early = '{"launch_pdl": True} if overlaps else {}'
        options = ["**early"] if start.waits and at else [f"**({early})"] if start.waits else []
        begun = [f"            early = {early}"] if leads else []
        lines = ["        early = {}"] if leads and not (start.waits and at) else []
        name = "started" if start.leaves_room else ""
        if name:
            begun += ["            if overlaps:", f"                leave_room({name})"]
        return [*lines, *self._started(start, options, name), *begun]

    def _started(self, start: Start, options: Sequence[str] = (), name: str = "") -> list[str]:
        """A launch, with these options beside the kernel's; ``name``: of what is started."""
        arrays = [f"argument({array})" for array in start.arrays]
        sizes = [self._size(dim) for dim in start.sizes]
        steps = [f"strides({array})[{axis}]" for array, axis in start.strides]
        described = [
            f"{one.parameter}=descriptor({one.array}, {literal(one.tile)})"
            for one in start.descriptors
        ]
        constants = [f"{name}={lanes}" for name, lanes in start.lanes]
        for parameter, numbers in start.even:
            constants.append(f"{parameter}=even({', '.join(map(self._number, numbers))})")
        constants += [f"{parameter}={self._number(size)}" for parameter, size in start.told]
        constants += ["INDEX=index", *([f"{OVERLAPS}=overlaps"] if start.asks else [])]
        options = [*(f"{name}={value}" for name, value in start.options), *options]
        called = f"{name} = {start.kernel}" if name else start.kernel
        lines = [f"        grid = {self._number(start.grid)}"]
        lines += ["        if grid:", f"            {called}[(grid,)]("]
        for group in (arrays, sizes, steps, described, constants, options):
            lines += wrapped(group, 16)
        return [*lines, "            )"]


def _entries(names: Mapping[str, str]) -> str:
    """A dict of variables."""
    return f"{{{', '.join(f'{literal(key)}: {name}' for key, name in names.items())}}}"
