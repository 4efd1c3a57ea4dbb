"""The user's function as NumPy text: what an emitted file compares its kernels with.

The text has one line for each operator of the array program, and copies the functions of the oracle
that NumPy lacks. So lowering, rules and the safety pass have no part in it:

    t0 = k.T
    t1 = matmul(q, t0)
    t2 = softmax(t1, axis=-1)
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from blockbuster.errors import shown
from blockbuster.frontend.on_tensors import cost
from blockbuster.frontend.operator_text import OperatorText, unused
from blockbuster.frontend.oracle_sources import definitions, sources
from blockbuster.frontend.program import ArrayProgram
from blockbuster.frontend.separable import separable_dims
from blockbuster.ir.graph import Value
from blockbuster.ir.lengths import in_order
from blockbuster.ir.meaning import Reference
from blockbuster.ir.types import Dim

RESERVED = (
    "np", "math", "int", "float", "max", "dtype", "over_zero", "reference",
    *keyword.kwlist, *keyword.softkwlist,
)  # fmt: skip


@dataclass(frozen=True)
class UserFunction:
    """The meaning of a lowered graph (ir/meaning.py): the array program that it was made of."""

    program: ArrayProgram

    @property
    def sizes(self) -> Mapping[Dim, int]:
        """The sizes for which alone the program was traced."""
        return self.program.sizes

    def reference(
        self,
        inputs: Sequence[str],
        outputs: Sequence[str],
        *,
        sizes: Mapping[Dim, int],
        free: Sequence[Dim],
    ) -> Reference | None:
        """The program as a function of ``inputs``, in order, that returns ``outputs``."""
        results = {output.name: output.value for output in self.program.outputs}
        if any(name not in results for name in outputs):
            return None
        text = _Text(self.program, inputs, [results[name] for name in outputs], free)
        opaque = any(equation.op == "custom" for _, equation in text.live)
        if opaque or not set(text.read) <= set(inputs):
            return None
        known = _completed(self.program, sizes)
        whole = set(self.program.dims) <= set(known)
        held = cost(self.program, known).held if whole else 0
        shown = {axis for v in text.given for axis in self.program.shape_of(v)}
        cut = tuple(dim for dim in apart(self.program) if dim in shown)
        module, divides = text.module()
        return Reference(module, held, cut, in_dtypes=True, over_zero=divides, fixed=self.sizes)


def _completed(program: ArrayProgram, sizes: Mapping[Dim, int]) -> dict[Dim, int]:
    """The sizes of a program's dims, as far as they follow from ``sizes``."""
    full = {**program.sizes, **sizes}
    for rule in in_order(program.rules, full):
        if rule.exact:
            full.setdefault(rule.dim, rule.length.value(full))
    return full


class _Text:
    """The text of a program.

    ``given``: the inputs; ``live``: the equations that its results need, with their places.
    """

    def __init__(
        self,
        program: ArrayProgram,
        inputs: Sequence[str],
        results: Sequence[Value],
        free: Sequence[Dim],
    ) -> None:
        self._program, self._free, self._results = program, free, results
        self.live = [(at, program.equations[at]) for at in program.needed(results)]
        ports = {given.name: port for port, given in enumerate(program.inputs)}
        self.given = [Value(-1, ports[name]) for name in inputs if name in ports]
        taken = dict.fromkeys((*RESERVED, *definitions(), *free))
        dims = dict.fromkeys((*program.dims, *free))  # a number may name a dim of no shape
        self._sizes = {dim: dim if dim in free else unused(dim, taken) for dim in dims}
        words = program.names()
        values = (*self.given, *(Value(at) for at, _ in self.live))
        self._names = {value: unused(words[value], taken) for value in values}

    @property
    def read(self) -> list[str]:
        """The names of the inputs that are read."""
        values = [*(o for _, e in self.live for o in e.operands), *self._results]
        ports = [v.port for v in values if isinstance(v, Value) and v.node < 0]
        return [self._program.inputs[port].name for port in dict.fromkeys(ports)]

    def module(self) -> tuple[str, bool]:
        """The whole module, and whether it takes what a quotient over 0 is to be."""
        operators = OperatorText(self._program, self._names, self._sizes)
        lines = [f"    {self._names[Value(at)]} = {operators.of(e)}" for at, e in self.live]
        lines.append(f"    return {', '.join(self._names[value] for value in self._results)}")
        names = [self._names[value] for value in self.given]
        arguments = [*names, "*", *self._free, "dtype=np.float64"]
        arguments += ["over_zero=0"] * operators.divides
        said = f"{self._program.name}, operator by operator, in ``dtype``".replace('"', "'")
        floats = [v for v in self.given if self._program.kind_of(v) == "float"]
        function = [
            "@np.errstate(all='ignore')",
            f"def reference({', '.join(arguments)}):",
            f'    """{shown(said)}."""',
            *(f"    {self._names[v]} = np.asarray({self._names[v]}, dtype)" for v in floats),
            *self._bound(lines),
            *lines,
        ]
        helpers = sources([*operators.helpers])
        math = ["import math"] if any("math." in text for text in helpers) else []
        head = "\n".join([*math, "import numpy as np\n"])
        text = "\n\n".join([head, *helpers, "\n".join(function) + "\n"])
        return text, operators.divides

    def _bound(self, body: Sequence[str]) -> list[str]:
        """The sizes that the lines of ``body`` read: from shapes, or from other sizes."""
        found: dict[Dim, str] = {}
        for value in self.given:
            for axis, dim in enumerate(self._program.shape_of(value)):
                if isinstance(dim, str) and dim not in self._free:
                    found.setdefault(dim, f"{self._names[value]}.shape[{axis}]")
        for rule in in_order(self._program.rules, (*found, *self._free)):
            if rule.exact and rule.dim not in self._free:
                found.setdefault(rule.dim, rule.length.python(self._sizes.__getitem__))
        kept: list[str] = []
        read = set(re.findall(r"\w+", "\n".join(body)))
        for dim, text in reversed(found.items()):
            if self._sizes[dim] in read:
                read.update(re.findall(r"\w+", text))
                kept.insert(0, f"    {self._sizes[dim]} = {text}")
        return kept


# dims that can be cut ------------------------------------------------------------------


def apart(program: ArrayProgram) -> tuple[Dim, ...]:
    """The dims along which a part of the inputs gives that part of the outputs.

    No equation looks into them, and nothing asks for their size or for positions along them.

    >>> from blockbuster.frontend.trace import trace
    >>> apart(trace(lambda x: x.mean(axis=1, keepdims=True) / x.shape[2], x="A B C"))
    ('A',)
    """
    twice = {dim for shape in program.shapes for dim in shape if shape.count(dim) > 1}
    asked = {*twice, *_asked(program)}
    return tuple(dim for dim in separable_dims(program) if dim not in asked)


def _asked(program: ArrayProgram) -> Iterator[Dim]:
    """The dims whose size or positions an equation, or another size, depends on."""
    for rule in program.rules:
        yield from (rule.dim, *rule.length.dims)
    for equation in program.equations:
        if equation.op == "arange":
            yield from (axis for axis in equation.shape if isinstance(axis, str))
        yield from equation.dims_read
