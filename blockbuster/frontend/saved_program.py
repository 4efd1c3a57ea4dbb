"""An array program as JSON, and back: equal except for lines and hints of the source.

Reading it only reads data, as in runtime/saved.py: no function that it names is imported. The
result is a program that can be run: each operator is known, has the operands and parameters that it
takes and a result of the shape that its operands imply, and the size of each dim follows from the
inputs. The lengths of slices and joins are checked when it runs. Numbers are texts, because JSON
has neither NaN nor infinities.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from typing import Any

from blockbuster.errors import shown
from blockbuster.frontend.dims import DimTable
from blockbuster.frontend.kinds import KINDS
from blockbuster.frontend.program import (
    ArrayInput,
    ArrayOutput,
    ArrayProgram,
    Axis,
    Equation,
    Operand,
    Shape,
)
from blockbuster.frontend.shapes import REDUCTIONS, SCANS, SHAPES, WEIGHTED
from blockbuster.frontend.source import Refused
from blockbuster.ir.dtypes import FLOAT8, OWN
from blockbuster.ir.expr import DEEPEST, FUNCTIONS, Call, Const, Expr, Size, calls
from blockbuster.ir.graph import Value
from blockbuster.ir.lengths import ONE, Length, in_order, size
from blockbuster.ir.reading import (
    Read,
    Wrong,
    expected,
    flag,
    items,
    maybe,
    number,
    one_of,
    record,
    row,
    text,
)
from blockbuster.ir.saving import (
    Classes,
    function_to_json,
    length_to_json,
    lengths_to_json,
    read_function,
    read_length,
    read_lengths,
    read_rule,
    rule_to_json,
)
from blockbuster.ir.types import Dim

CASTS = ("float16", "bfloat16", "float32", "float64")
ANY = "?"
"""An axis of a result whose dim the operands do not tell."""


def program_to_json(program: ArrayProgram, classes: Classes) -> dict[str, Any]:
    """An array program as JSON; ``classes`` are the callable objects of ours that it may hold.

    Raises ValueError for a function that cannot be imported by its name, or another value that has
    no form in the file.
    """
    return {
        "name": program.name,
        "inputs": [[i.name, i.shape, i.dtype] for i in program.inputs],
        "equations": [_equation_to_json(e, classes) for e in program.equations],
        "outputs": [[o.name, [o.value.node, o.value.port]] for o in program.outputs],
        "fixed_sizes": program.fixed_sizes,
        "rules": [*map(rule_to_json, program.rules)],
    }


def read_program(data: Any, classes: Classes) -> ArrayProgram:
    """The program that ``program_to_json`` wrote. Raises Wrong, with the place, for other data."""
    found = record(
        data, name=text, inputs=items(_input), equations=items(partial(_equation, classes=classes)),
        outputs=items(_output), fixed_sizes=items(lambda pair: row(pair, text, number(1))),
        rules=items(read_rule),
    )  # fmt: skip
    program = ArrayProgram(**found)
    _check(program)
    return program


# inputs, outputs and equations ---------------------------------------------------------


def _axis(data: Any) -> Axis:
    if isinstance(data, str) and data != ANY:
        return text(data)
    if type(data) is not int or data != 1:
        raise expected("a dim or 1", data)
    return 1


SHAPE: Read[Shape] = items(_axis)


def _input(data: Any) -> ArrayInput:
    return ArrayInput(*row(data, text, SHAPE, one_of(("", FLOAT8, *CASTS, *OWN))))


def _output(data: Any) -> ArrayOutput:
    return ArrayOutput(*row(data, text, _value))


def _value(data: Any) -> Value:
    return Value(*row(data, number(-1), number(0)))


def _equation_to_json(equation: Equation, classes: Classes) -> dict[str, Any]:
    forms = _forms(equation.op, equation.param("name", ""), classes)
    try:
        params = {name: forms[name].write(value) for name, value in equation.params}
    except (TypeError, AttributeError) as error:  # a value of another type than is traced
        raise ValueError(f"a parameter of {equation.op} cannot be saved: {error}") from error
    return {
        "op": equation.op, "operands": [*map(_operand_to_json, equation.operands)],
        "params": params, "shape": equation.shape, "kind": equation.kind,
    }  # fmt: skip


def _equation(data: Any, classes: Classes) -> Equation:
    op = one_of((*SHAPES, "custom"))
    found = record(
        data, op=op, operands=items(_operand), params=lambda given: given, shape=SHAPE,
        kind=one_of(KINDS),
    )  # fmt: skip
    forms = _forms(found["op"], "", classes)
    try:
        read = record(found["params"], **{name: form.read for name, form in forms.items()})
    except Wrong as wrong:
        raise wrong.inside(".params") from None
    return Equation(**{**found, "params": tuple((k, read[k]) for k in found["params"])})


def _operand_to_json(operand: Operand) -> Any:
    if isinstance(operand, Value):
        return [operand.node, operand.port]
    return None if operand is None else _expr_to_json(operand)


def _operand(data: Any) -> Operand:
    if isinstance(data, list):
        return _value(data)
    return None if data is None else _scalar(data)


# scalars ---------------------------------------------------------------------------------


def _number_to_json(value: Any) -> str:
    return repr(float(value))


def _number(data: Any) -> float:
    try:
        value = float(text(data))
    except ValueError:
        raise expected("a number as text", data) from None
    if repr(value) != data:
        raise expected(f"the text {value!r}", data)
    return value


def _expr_to_json(expr: Expr) -> dict[str, Any]:
    """The parts of an expression, arguments before the function that takes them."""
    parts: list[dict[str, Any]] = []
    waiting = [expr]
    while waiting:
        match waiting.pop():
            case Const(value):
                parts.append({"number": _number_to_json(value)})
            case Size(dim):
                parts.append({"size": dim})
            case Call(fn, args):
                parts.append({"call": fn})
                waiting.extend(args)
            case _:
                raise AssertionError("a scalar has no arguments")
    return {"scalar": parts[::-1]}


def _scalar(data: Any) -> Expr:
    """A scalar expression, no larger than tracing makes them."""
    made: list[Expr] = []
    for part in record(data, scalar=items(_part))["scalar"]:
        if not isinstance(part, str):
            made.append(part)
            continue
        first = len(made) - FUNCTIONS[part]
        if first < 0:
            raise Wrong(f"has too few arguments for {part}", ".scalar")
        made[first:] = [Call(part, tuple(made[first:]))]
    if len(made) != 1 or calls(made[0]) > DEEPEST:
        raise expected(f"one expression of at most {DEEPEST} functions", data)
    return made[0]


def _part(data: Any) -> Expr | str:
    """A number, a size, or the name of a function."""
    if isinstance(data, dict) and "size" in data:
        return Size(record(data, size=text)["size"])
    if isinstance(data, dict) and "call" in data:
        return str(record(data, call=one_of(tuple(FUNCTIONS)))["call"])
    return Const(record(data, number=_number)["number"])


# parameters --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Form:
    """The writer and the reader of a parameter of an operator."""

    write: Callable[[Any], Any]
    read: Read[Any]


def _as_it_is(value: Any) -> Any:
    return value


WHOLE = Form(int, number(-(2**63)))
COUNT = Form(int, number(1))
PLACE = Form(int, number(0))
TRUTH = Form(bool, flag)
REAL = Form(_number_to_json, _number)
SCALAR = Form(_expr_to_json, _scalar)
LENGTH, EXTENTS = Form(length_to_json, read_length), Form(lengths_to_json, read_lengths)

PARAMS: Mapping[str, Mapping[str, Form]] = {
    **{fn: {} for fn in FUNCTIONS},
    **{f: {"axis": WHOLE, "keepdims": TRUTH} for f in REDUCTIONS},
    **{f: {"axis": WHOLE} for f in ("log_softmax", *SCANS)},
    "softmax": {"axis": WHOLE, "safe": TRUTH}, **{f: {"eps": REAL} for f in WEIGHTED},
    "matmul": {}, "transpose": {"axes": Form(list, items(number(0)))},
    "expand": {"axes": Form(list, items(maybe(number(0))))},
    "cast": {"dtype": Form(str, one_of(CASTS))}, "arange": {"size": SCALAR},
    "slice": {"axis": PLACE, "start": LENGTH, "length": LENGTH},
    "strided": {"axis": PLACE, "start": LENGTH, "length": LENGTH, "step": COUNT},
    "windows": {**dict.fromkeys(("before", "dilation"), WHOLE), "count": LENGTH, "length": LENGTH,
                "axis": PLACE, "step": COUNT, "padded": TRUTH},
    "concat": {"axis": WHOLE}, "reshape": {"shape": EXTENTS},
}  # fmt: skip
"""The parameters of every operator but ``custom``."""


def _forms(op: str, name: str, classes: Classes) -> Mapping[str, Form]:
    """The parameters of an operator; ``name`` shows a function that cannot be saved."""
    if op != "custom":
        return PARAMS[op]
    write = partial(function_to_json, name=name, classes=classes)
    return {"fn": Form(write, partial(read_function, classes=classes)), "name": Form(str, text)}


# what makes a program one that can be run ------------------------------------------------

OPERANDS: Mapping[str, tuple[int, int | None]] = {
    **dict.fromkeys(SHAPES, (1, 1)),
    **{fn: (arity, arity) for fn, arity in FUNCTIONS.items()},
    "matmul": (2, 2), "rms_norm": (2, 2), "layer_norm": (3, 3), "arange": (0, 0),
    "concat": (1, None), "custom": (1, None),
}  # fmt: skip
"""How many operands an operator takes, at least and at most."""


def _check(program: ArrayProgram) -> None:
    """Raise Wrong unless all that is read is there, in order, and shapes fit."""
    _check_distinct([i.name for i in program.inputs], ".inputs")
    _check_distinct([o.name for o in program.outputs], ".outputs")
    known = {a for i in program.inputs for a in i.shape if isinstance(a, str)} | {*program.sizes}
    known |= {rule.dim for rule in in_order(program.rules, known)}
    for position, equation in enumerate(program.equations):
        try:
            _check_equation(program, equation, position, known)
        except Wrong as wrong:
            raise wrong.inside(f".equations[{position}]") from None
        except Refused as refused:
            raise Wrong(f"is none: {refused.reason}", f".equations[{position}]") from None
    for output in program.outputs:
        _check_value(program, output.value, len(program.equations), ".outputs")
    _check_dims({d for rule in program.rules for d in (rule.dim, *rule.length.dims)}, known)


def _check_distinct(names: Sequence[str], place: str) -> None:
    if len({*names}) != len(names) or not names:
        raise Wrong("has a name twice, or none", place)


def _check_value(program: ArrayProgram, value: Value, position: int, place: str = "") -> None:
    there = value.port < len(program.inputs) if value.node < 0 else value.port == 0
    if value.node >= position or not there:
        raise Wrong(f"reads {[*value]}, which is not known there", place)


def _check_dims(dims: set[Dim], known: set[Dim]) -> None:
    for dim in sorted(dims - known):
        raise Wrong(f"has the dim {shown(repr(dim), 80)}, whose size follows from no input")


def _check_equation(
    program: ArrayProgram, equation: Equation, position: int, known: set[Dim]
) -> None:
    least, most = OPERANDS[equation.op]
    count = len(equation.operands)
    if count < least or (most is not None and count > most):
        raise Wrong(f"{equation.op} has {count} operands")
    for number_of_operand, operand in enumerate(equation.operands):
        if isinstance(operand, Value):
            _check_value(program, operand, position)
        elif not (equation.op in WEIGHTED and number_of_operand) and (
            operand is None or equation.op not in FUNCTIONS
        ):
            raise Wrong(f"{equation.op} lacks an array")
    dims = {axis for axis in equation.shape if isinstance(axis, str)}
    _check_dims(dims | {*equation.dims_read}, known)
    if equation.op != "custom":
        _check_shape(program, equation)


def _check_shape(program: ArrayProgram, equation: Equation) -> None:
    """The rules of tracing have to give the shape that stands there.

    A number that was an array of one element has lost its axes: they are 1, in front.
    """
    shapes = [program.shape_of(o) for o in equation.arrays]
    plain = len(shapes) == sum(o is not None for o in equation.operands)
    if not plain and equation.op not in FUNCTIONS:
        return
    _check_places(equation, shapes)
    params = dict(equation.params)
    if equation.op == "arange" and params["size"] == Const(1.0):
        params["size"] = Size(ANY)  # a dim that turned out to have one element
    found = SHAPES[equation.op](Final(), shapes, params)
    more = len(equation.shape) - len(found) if not plain else 0
    pairs = list(zip_longest((*(1,) * more, *found), equation.shape))
    if any(axis != given and (axis != ANY or given is None) for axis, given in pairs):
        raise Wrong(f"{equation.op} has the shape {equation.shape}, expected {found}")


def _check_places(equation: Equation, shapes: Sequence[Shape]) -> None:
    """Axes by number are among those of the operand, each once."""
    numbers: Sequence[int | None] = equation.param("axes", ())
    if equation.op in ("slice", "strided", "windows"):
        numbers = (equation.param("axis"),)
    axes = [axis for axis in numbers if axis is not None]
    if len({*axes}) != len(axes) or max(axes, default=-1) >= (len(shapes[0]) if shapes else 0):
        raise Wrong(f"{equation.op} has axes {tuple(numbers)} of {len(shapes[0])}")
    if equation.op == "transpose" and len(axes) != len(shapes[0]):
        raise Wrong(f"transpose has axes {tuple(numbers)} of {len(shapes[0])}")


class Final(DimTable):
    """The dims of a finished program: each axis is what it is, and none is unified any more."""

    def find(self, axis: Axis) -> Axis:
        return axis

    def unify(self, left: Axis, right: Axis) -> Axis:
        if left != right and ANY not in (left, right):
            raise Refused(f"{left} and {right} differ")
        return left

    def broadcast(self, left: Axis, right: Axis) -> Axis:
        return right if left == 1 else left if right == 1 else self.unify(left, right)

    def derived(self, length: Length, *key: Any) -> Axis:
        return ANY

    def length(self, axis: Axis) -> Length:
        return size(axis) if isinstance(axis, str) else ONE
