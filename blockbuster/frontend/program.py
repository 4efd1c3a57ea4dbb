"""Array programs: a user's function as a short list of equations on whole arrays.

Axes are positional, as in NumPy: a shape is a tuple of dim names and the literal 1, and a dim may
occur in it twice. The operations are those that the user called; lowering decomposes them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blockbuster.errors import a_kind, message, shown
from blockbuster.frontend.moves import Flip
from blockbuster.frontend.numerics import NUMPY, number
from blockbuster.frontend.torch import on_host
from blockbuster.ir.dtypes import INTEGERS, OWN, TRUTH
from blockbuster.ir.expr import (
    FUNCTIONS,
    PREDICATES,
    Arg,
    Call,
    Const,
    Expr,
    Size,
    show_expr,
    sizes_in,
)
from blockbuster.ir.extents import Lengths
from blockbuster.ir.graph import Value
from blockbuster.ir.lengths import Length, Rule
from blockbuster.ir.origin import SourceLine
from blockbuster.ir.sizes import bind_sizes
from blockbuster.ir.types import Dim

if TYPE_CHECKING:
    from blockbuster.frontend.primitive_program import Primitives

Axis = Dim | int
"""A dim, or the literal 1."""

Shape = tuple[Axis, ...]
Operand = Value | Expr | None
"""An array, a scalar (a number or an expression over sizes), or an argument left out."""

Params = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class ArrayInput:
    """An input array; ``dtype`` is that of the example it was traced with, or empty for floats.

    ``value`` is the array itself where the function read it without being given it. ``one_value``:
    the parts of the blocks of such a mask that are False, and True, throughout.
    """

    name: str
    shape: Shape
    dtype: str = ""
    value: Any = field(default=None, compare=False, repr=False)
    one_value: tuple[float, float] = field(default=(0.0, 0.0), compare=False, repr=False)

    @property
    def kind(self) -> str:
        """Its dtype for masks and integers, as ``kinds.py`` has them; else "float"."""
        return "mask" if self.dtype == TRUTH else self.dtype if self.dtype in OWN else "float"


@dataclass(frozen=True)
class Equation:
    """An operation applied to arrays and scalars; ``shape`` is that of its result."""

    op: str
    operands: tuple[Operand, ...]
    params: Params
    shape: Shape
    kind: str = "float"
    """``float``, ``mask`` (a truth value), ``index`` or the dtype of integers: see ``kinds.py``."""
    hint: str = field(default="", compare=False)
    where: SourceLine | None = field(default=None, compare=False, repr=False)
    is_stored: bool = field(default=False, compare=False, repr=False)
    """True for what a function of a library takes or returns: eager execution stores it."""

    def param(self, name: str, default: Any = None) -> Any:
        """The value of a keyword argument."""
        return dict(self.params).get(name, default)

    @property
    def arrays(self) -> list[Value]:
        """The operands that are arrays, in order."""
        return [operand for operand in self.operands if isinstance(operand, Value)]

    @property
    def dims_read(self) -> list[Dim]:
        """The dims whose sizes its numbers and parameters read, as often as they do."""
        found: list[Dim] = []
        for value in (*self.operands, *(value for _, value in self.params)):
            if isinstance(value, Length | Lengths):
                found += value.dims
            elif isinstance(value, Const | Size | Call):
                found += sizes_in(value)
        return found

    def reading(self, now: Mapping[Value, Value]) -> Equation:
        """The equation with other arrays in place of those that ``now`` has."""
        return replace(
            self,
            operands=tuple(now.get(o, o) if isinstance(o, Value) else o for o in self.operands),
        )


@dataclass(frozen=True)
class ArrayOutput:
    """A result array and the key under which ``numpy`` returns it."""

    name: str
    value: Value


@dataclass(frozen=True)
class ArrayProgram:
    """A traced function: equations in the order in which they were recorded.

    ``sizes`` holds the dims whose size was fixed when tracing (``"D=64"``), ``rules`` the facts
    about sizes that follow from slices, heads and concatenations. ``taken`` are dims of programs
    beside it, whose names lowering gives to none of its own. ``masks`` has a sentence for each mask
    that the function holds: the condition that it became, or that it stayed an input. ``apart`` is
    a traced program as primitives; it is not an argument, so that ``replace`` does not copy it to
    another program.
    """

    name: str
    inputs: tuple[ArrayInput, ...]
    equations: tuple[Equation, ...]
    outputs: tuple[ArrayOutput, ...]
    fixed_sizes: tuple[tuple[Dim, int], ...] = ()
    rules: tuple[Rule, ...] = ()
    taken: tuple[Dim, ...] = field(default=(), compare=False, repr=False)
    masks: tuple[str, ...] = field(default=(), compare=False, repr=False)
    apart: Primitives | None = field(default=None, init=False, compare=False, repr=False)

    def __str__(self) -> str:
        return self.listing()

    def __repr__(self) -> str:
        given = ", ".join(f"{one.name}[{', '.join(map(str, one.shape))}]" for one in self.inputs)
        return f"ArrayProgram({self.name}: {given}; {len(self.equations)} operators)"

    def _repr_html_(self) -> str:
        from blockbuster.view.notebook import program_html

        return program_html(self)

    @property
    def sizes(self) -> dict[Dim, int]:
        """The sizes fixed when tracing."""
        return dict(self.fixed_sizes)

    @property
    def held(self) -> dict[str, Any]:
        """The arrays that the function captured, by the names of their inputs."""
        return {i.name: i.value for i in self.inputs if i.value is not None}

    def without_held(self) -> ArrayProgram:
        """The same program without held arrays: every input has to be given."""
        free = replace(self, inputs=tuple(replace(i, value=None) for i in self.inputs))
        vars(free)["apart"] = self.apart
        return free

    @property
    def shapes(self) -> list[Shape]:
        """The shapes of the inputs and of the results of all equations."""
        return [i.shape for i in self.inputs] + [e.shape for e in self.equations]

    @cached_property
    def dims(self) -> tuple[Dim, ...]:
        """All dims, in order of first appearance."""
        axes = (axis for shape in self.shapes for axis in shape)
        return tuple(dict.fromkeys(axis for axis in axes if isinstance(axis, str)))

    @property
    def notes(self) -> tuple[str, ...]:
        """The operations that fusion cannot look into: a sentence for each opaque call and copy."""
        opaque = (
            f"{e.param('name')} ({e.where}) is opaque: a kernel boundary runs around it"
            for e in self.equations
            if e.op == "custom" and not self._is_turned(e)
        )
        return (*opaque, *(self.apart.notes if self.apart else ()))

    def _is_turned(self, equation: Equation) -> bool:
        """True for a flip that is none any more: what is scanned around it runs backwards."""
        if self.apart is None or not isinstance(equation.param("fn"), Flip):
            return False
        return not self.apart.calls(equation.param("name"), equation.where)

    @cached_property
    def definitions(self) -> tuple[Rule, ...]:
        """The first rule of each dim whose size follows from others."""
        exact = (rule for rule in reversed(self.rules) if rule.exact)
        plain = (rule for rule in exact if rule.dim not in rule.length.dims)
        return tuple({rule.dim: rule for rule in plain}.values())

    def shape_of(self, value: Value) -> Shape:
        """The shape of an input (node -1) or of an equation's result."""
        if value.node < 0:
            return self.inputs[value.port].shape
        return self.equations[value.node].shape

    def kind_of(self, value: Value) -> str:
        """The kind of an input or of an equation's result: see ``kinds.py``."""
        if value.node < 0:
            return self.inputs[value.port].kind
        return self.equations[value.node].kind

    def is_integer(self, equation: Equation, number: float) -> bool:
        """True for a number that is an integer beside integers: in comparisons if int64 has it."""
        if equation.op not in PREDICATES:
            return equation.kind in ("index", *INTEGERS)
        kinds = {self.kind_of(array) for array in equation.arrays}
        is_held = float(number).is_integer() and -(2.0**63) <= number < 2.0**63
        return kinds <= {*INTEGERS} and is_held

    def needed(self, values: Iterable[Value], known: Collection[Value] = ()) -> list[int]:
        """The equations that ``values`` need, in order; what is ``known`` needs none."""
        found = {value.node for value in values if value not in known}
        for position in reversed(range(len(self.equations))):
            if position in found:
                found |= {o.node for o in self.equations[position].arrays if o not in known}
        return sorted(found - {-1})

    def bind(self, inputs: Mapping[str, ArrayLike]) -> dict[Dim, int]:
        """The size of every dim for these arrays; arrays that the program holds may be left out.

        Raises TypeError if an input is missing or unknown, ValueError if sizes disagree.
        """
        names = [i.name for i in self.inputs]
        inputs = {**self.held, **inputs}
        if sorted(inputs) != sorted(names):
            raise TypeError(f"{self.name} takes the arrays {names}, got {sorted(inputs)}")
        arrays = [(given.name, given.shape) for given in self.inputs]
        shapes = {name: np.shape(array) for name, array in inputs.items()}
        return bind_sizes(arrays, shapes, self.rules, self.sizes, given_in="as traced")

    def numpy(self, inputs: Mapping[str, ArrayLike]) -> dict[str, NDArray[Any]]:
        """The oracle: every equation in whole-array NumPy and double precision.

        ``inputs`` maps names to arrays of any dtype; arrays that the program holds may be left out.
        Masks and integers keep their dtypes; all other arrays are float64. Returns the outputs by
        name.
        """
        inputs = {**{name: on_host(array) for name, array in self.held.items()}, **inputs}
        sizes = self.bind(inputs)
        given = [np.asarray(inputs[i.name], dtype=_exact(i.dtype)) for i in self.inputs]
        made: list[NDArray[Any]] = []

        def array(value: Value) -> NDArray[Any]:
            return given[value.port] if value.node < 0 else made[value.node]

        def taken(equation: Equation, place: int) -> Any:
            operand = equation.operands[place]
            if isinstance(operand, Value):
                return _as_taken(equation, place, array(operand))
            plain = None if operand is None else number(operand, sizes)
            if plain is None or not self.is_integer(equation, plain):
                return plain
            return int(plain)

        with np.errstate(all="ignore"):
            for equation in self.equations:
                params = dict(equation.params)
                for key, value in params.items():
                    if isinstance(value, Length | Lengths):
                        params[key] = value.value(sizes)
                    elif equation.op == "arange":
                        params[key] = int(number(value, sizes))
                operands = [taken(equation, place) for place in range(len(equation.operands))]
                result = np.asarray(NUMPY[equation.op](*operands, **params))
                if equation.op in FUNCTIONS:  # a constant of shape (1, 1) adds axes
                    result = result[(None,) * (len(equation.shape) - result.ndim)]
                self._expect_extents(equation, result.shape, sizes)
                mask = result.dtype.kind == "b"
                made.append(result if mask else result.astype(_exact(equation.kind)))
        return {output.name: array(output.value) for output in self.outputs}

    def listing(self) -> str:
        """The equations as text, one per line, with the shapes of their results."""
        names = self.names()
        own = [f"{i.dtype} " if i.dtype in OWN else "" for i in self.inputs]
        shapes = [show_shape(i.shape, self.sizes) for i in self.inputs]
        heads = [f"{i.name}: {o}{s}" for i, o, s in zip(self.inputs, own, shapes, strict=True)]
        lines = [f"{self.name}({', '.join(heads)}) {{"]
        for position, equation in enumerate(self.equations):
            result = f"{names[Value(position)]}: {show_shape(equation.shape)}"
            lines.append(f"  {result} = {_right_side(equation, names)}")
        ends = [names[o.value] for o in self.outputs]
        if [o.name for o in self.outputs] != ["out"]:
            ends = [f"{o.name}={end}" for o, end in zip(self.outputs, ends, strict=True)]
        lines += [f"  return {', '.join(ends)}", "}"]
        return "\n".join(map(shown, lines)) + "\n"

    def names(self) -> dict[Value, str]:
        """Unique names: the user's words where known, t0, t1, ... elsewhere."""
        names = {Value(-1, port): i.name for port, i in enumerate(self.inputs)}
        taken = dict.fromkeys(names.values())
        used: dict[str, int] = {}  # the last number behind a word: those before are taken
        for position, equation in enumerate(self.equations):
            word = equation.hint or "t"
            count = used.get(word, 0)
            name = f"{word}{count}" if count or not equation.hint else word
            while name in taken:
                count += 1
                name = f"{word}{count}"
            taken[name], used[word] = None, count
            names[Value(position)] = name
        return names

    def _expect_extents(
        self, equation: Equation, extents: tuple[int, ...], sizes: Mapping[Dim, int]
    ) -> None:
        wanted = tuple(sizes[a] if isinstance(a, str) else a for a in equation.shape)
        if extents != wanted:
            raise ValueError(
                f"{equation.param('name') or equation.op} gave an array of shape {extents}, "
                f"expected {show_shape(equation.shape)} = {wanted}"
            )


def _as_taken(equation: Equation, place: int, array: NDArray[Any]) -> NDArray[Any]:
    """An operand as the oracle's function takes it: in float64 if that gives floats.

    Of bytes, NumPy's own exp would be float16.
    """
    decides = equation.op == "where" and place == 0
    floats = equation.kind == "float" and equation.op != "custom" and not decides
    return array.astype(float, copy=False) if floats else array


def _exact(dtype: str) -> str:
    """The dtype in which the oracle holds an array of a dtype or kind."""
    return dtype if dtype in OWN else "int64" if dtype == "index" else "float64"


def show_shape(shape: Shape, sizes: Mapping[Dim, int] | None = None) -> str:
    """A shape as text: ``(M, D=64)``, ``(M,)``, ``()``.

    >>> show_shape(("M", "D", 1), {"D": 64})
    '(M, D=64, 1)'
    """
    known = sizes or {}
    words = [f"{a}={known[a]}" if isinstance(a, str) and a in known else str(a) for a in shape]
    return f"({words[0]},)" if len(words) == 1 else f"({', '.join(words)})"


def _right_side(equation: Equation, names: Mapping[Value, str]) -> str:
    if equation.op in FUNCTIONS:
        leaves = iter(range(len(equation.arrays)))
        args = tuple(
            Arg(next(leaves)) if isinstance(o, Value) else o or Const(0.0)
            for o in equation.operands
        )
        return show_expr(Call(equation.op, args), [names[a] for a in equation.arrays])
    words = [_show_operand(o, names) for o in equation.operands]
    while words and words[-1] == "None":
        words.pop()
    if equation.op == "custom":
        return f"{equation.param('name')}({', '.join(words)})"
    words += [f"{k}={_show_param(v)}" for k, v in equation.params if v is not False]
    return f"{equation.op}({', '.join(words)})"


def _show_operand(operand: Operand, names: Mapping[Value, str]) -> str:
    if isinstance(operand, Value):
        return names[operand]
    return "None" if operand is None else show_expr(operand, [])


def _show_param(value: Any) -> str:
    if isinstance(value, Length | Lengths):
        return str(value)
    return show_expr(value, []) if isinstance(value, Const | Size | Call) else repr(value)


def own_dtypes_of(program: ArrayProgram) -> dict[str, str]:
    """The dtypes of the inputs that hold masks or integers, by name."""
    return {given.name: given.dtype for given in program.inputs if given.dtype in OWN}


def check_program(value: object) -> None:
    """Raise TypeError where ``value`` is no array program, with what makes one of a function."""
    if not isinstance(value, ArrayProgram):
        hint = 'bb.trace(fn, x="M N") makes one of a function'
        raise TypeError(message(f"expected an array program, got {a_kind(value)}", hint=hint))
