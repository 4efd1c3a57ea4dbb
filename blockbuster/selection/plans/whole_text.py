"""NumPy text of an array program, operator by operator on whole arrays.

    t0 = x.reshape(A, B // 16, 16)
    t1 = (np.add.reduce(t0, axis=(2,), dtype=np.float64) / 16).astype(dtype)
    t2 = np.subtract(t0, t1[:, :, None])

Sums, products, exponentials and what is like them are rounded as in all text for the CPU: once,
from float64, or in parts (emit/print/numpy). An array that is not read any more gives its memory to
the next one. Views are NumPy's own; results are arrays of their own.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator

from blockbuster.emit.print.numpy.own_functions import HELPERS
from blockbuster.emit.print.numpy.spelling import RESERVED, Spelling
from blockbuster.emit.print.numpy.text import DECORATOR, RUN_DOC
from blockbuster.errors import shown
from blockbuster.frontend.kinds import FLOAT, MASK
from blockbuster.frontend.operator_text import OperatorText, unused
from blockbuster.frontend.oracle_sources import definitions, sources
from blockbuster.frontend.part import dims_named
from blockbuster.frontend.powers import POWERS
from blockbuster.frontend.program import ArrayProgram
from blockbuster.ir.expr import FUNCTIONS, Arg, Call, substitute
from blockbuster.ir.graph import Value
from blockbuster.ir.types import size_class
from blockbuster.selection.plans.whole_patterns import CONTRACT, PICK
from blockbuster.selection.plans.whole_steps import Step, Steps, steps_of

COMPOSED = ("softmax", "log_softmax", "logsumexp", "rms_norm", "layer_norm")
"""Operators that are several steps: a function of the text's own each."""

SCANS = {
    "cumsum": "np.add", "cumprod": "np.multiply", "cummax": "np.maximum", "cummin": "np.minimum",
}  # fmt: skip
EXTREMA = {"max": ("np.maximum", "-np.inf"), "min": ("np.minimum", "np.inf")}
"""What folds to an extremum, and what it begins with."""


def whole_text(program: ArrayProgram) -> str:
    """A module's source, with the function ``run`` that all NumPy text has (text.py)."""
    return _Text(steps_of(program)).module()


class _Text:
    def __init__(self, steps: Steps) -> None:
        self._steps, self._program = steps, steps.program
        taken = dict.fromkeys((*RESERVED, *keyword.kwlist, *definitions(), "int", "float"))
        words = self._program.names()
        inputs = [Value(-1, port) for port in range(len(self._program.inputs))]
        values = [*inputs, *(step.value for step in steps.steps)]
        self._names = {value: unused(words[value], taken) for value in values}
        dims = dims_named([one.shape for one in self._program.inputs], self._program.equations)
        self._sizes = {dim: unused(dim, taken) for dim in dims}
        self._spelling = Spelling(lambda dim: self._sizes[dim])
        self._operators = OperatorText(self._program, self._names, self._sizes)
        self._last = steps.last_reads

    def module(self) -> str:
        """The whole text."""
        lines = [*self._lines()]
        results = [*self._results()]
        own = [HELPERS[name] for name in self._spelling.helpers]
        helpers = [*own, *sources([*self._operators.helpers])]
        math = ["import math\n"] if any("math." in text for text in helpers) else []
        head = "\n".join([*math, "import numpy as np\n"])
        function = [
            DECORATOR,
            "def run(inputs, sizes, block_sizes, *, dtype=np.float64, order=list, "
            "empty=np.empty):",
            *RUN_DOC.rstrip("\n").split("\n"),
            *self._bindings([*lines, *results]),
            *lines,
            *results,
        ]
        return "\n\n".join([head, *helpers, "\n".join(function) + "\n"])

    def _bindings(self, body: list[str]) -> Iterator[str]:
        read = {word for line in body for word in re.findall(r"\w+", line)}
        for port, given in enumerate(self._program.inputs):
            if (name := self._names[Value(-1, port)]) in read:
                truth = " != 0" if given.kind == MASK else ""
                yield f"    {name} = inputs[{given.name!r}]{truth}"
        for dim, name in self._sizes.items():
            if name in read:
                yield f"    {name} = sizes[{size_class(dim)!r}]"

    def _lines(self) -> Iterator[str]:
        for number, step in enumerate(self._steps.steps):
            where = step.equation.where
            note = f"  # {shown(str(where))}" if where else ""
            yield f"    {self._names[step.value]} = {self._text(number, step)}{note}"

    def _results(self) -> Iterator[str]:
        """The return statement, with copies of what would share memory with another array."""
        roots, seen, parts = self._steps.roots, dict[Value, list[str]](), []
        for output, value in zip(self._program.outputs, self._steps.results, strict=True):
            root, name = roots[value], self._names[value]
            others = seen.setdefault(root, [self._names[root]] if root.node < 0 else [])
            text = name
            for other in others:
                text = f"{self._spelling.helper('own')}({text}, {other})"
            others.append(name)
            parts.append(f"{output.name!r}: np.asarray({text})")
        yield f"    return {{{', '.join(parts)}}}"

    # operators -----------------------------------------------------------------------

    def _text(self, number: int, step: Step) -> str:
        one = step.equation
        if step.axes:
            return self._fold(step)
        if one.op in (PICK, CONTRACT):
            return self._pattern(step)
        floats = [self._program.kind_of(value) == FLOAT for value in step.reads]
        if one.kind == FLOAT and all(floats):
            if one.op in FUNCTIONS:
                return self._function(number, step)
            if one.op == "matmul":
                names = ", ".join(self._names[value] for value in step.reads)
                return f"{self._spelling.helper('whole_product')}({names}, dtype)"
            if one.op in COMPOSED:
                return self._composed(step)
            if one.op in SCANS:
                (name,), axis = (self._names[value] for value in step.reads), one.param("axis")
                return f"{SCANS[one.op]}.accumulate({name}, {axis}, np.float64).astype(dtype)"
        if step.turned is not None:
            axes = range(len(one.shape))
            each = ["::-1" if axis in step.turned else ":" for axis in axes] or ["..."]
            return f"{self._names[step.reads[0]]}[{', '.join(each)}]"
        if one.op in ("slice", "strided"):
            return self._cut(step)
        if one.kind == FLOAT and one.op in FUNCTIONS and not any(floats):
            return self._of_wholes(step)
        return self._operators.of(one)

    def _of_wholes(self, step: Step) -> str:
        """A function of integers or masks: NumPy's own of bytes and truths are of float16."""
        wide = {value: f"{self._names[value]}.astype(np.float64)" for value in step.reads}
        operators = OperatorText(self._program, {**self._names, **wide}, self._sizes)
        text = operators.of(step.equation)
        self._operators.helpers |= operators.helpers
        return text

    def _fold(self, step: Step) -> str:
        one, (operand,) = step.equation, step.reads
        name, axes = self._names[operand], ", ".join(map(str, step.axes))
        options = f"axis=({axes},)" + (", keepdims=True" if one.param("keepdims") else "")
        if one.op in EXTREMA:
            function, start = EXTREMA[one.op]
            return f"{function}.reduce({name}, {options}, initial={start})"
        if one.op == "sum" and self._is_positive(operand, step):
            keeps = bool(one.param("keepdims"))
            return f"{self._spelling.helper('sum_of_positive')}({name}, {keeps}, dtype)"
        function = "np.multiply" if one.op == "prod" else "np.add"
        total = f"{function}.reduce({name}, {options}, dtype=np.float64)"
        if one.op == "mean":
            shape = self._program.shape_of(operand)
            extents = [shape[axis] for axis in step.axes]
            count = " * ".join(self._sizes[a] if isinstance(a, str) else str(a) for a in extents)
            total = f"({total} / {count if len(extents) == 1 else f'({count})'})"
        return f"{total}.astype(dtype)"

    def _is_positive(self, operand: Value, step: Step) -> bool:
        """True for rows of exponentials."""
        made = {one.value: one.equation.op for one in self._steps.steps}
        last = len(self._shape(operand)) - 1
        return made.get(operand) == "exp" and step.axes == (last,)

    def _pattern(self, step: Step) -> str:
        """Elements at positions, or a product with a row or a column."""
        one, (x, other) = step.equation, step.reads
        first, second = self._names[x], self._names[other]
        keeps = bool(one.param("keepdims"))
        if one.op == PICK:
            helper = self._spelling.helper("picked")
            return f"{helper}({first}, {second}, {one.param('axis')}, {keeps})"
        helper = self._spelling.helper("whole_product")
        rank = max(len(self._shape(x)), len(self._shape(other)))
        if one.param("axis") == rank - 2:
            product = f"{helper}(np.swapaxes({second}, -1, -2), {first}, dtype)"
            return product if keeps else f"{product}[..., 0, :]"
        if len(self._shape(other)) > 1:
            second = f"np.swapaxes({second}, -1, -2)"
        else:
            second += "[:, None]"
        product = f"{helper}({first}, {second}, dtype)"
        return product if keeps else f"{product}[..., 0]"

    def _function(self, number: int, step: Step) -> str:
        """A function of each element, in memory that is free if there is any."""
        one, names = step.equation, [self._names[value] for value in step.reads]
        places = iter(range(len(names)))
        args = [Arg(next(places)) if isinstance(o, Value) else o for o in one.operands]
        expr = Call(one.op, tuple(a for a in args if a is not None))
        power = POWERS.get(expr.args[1]) if expr.fn == "pow" else None
        if power:
            expr = Call(power.fn, tuple(substitute(part, expr.args[:1]) for part in power.args))
        free = self._free(number, step)
        if free:
            text = self._spelling.into(expr, names, free, free)
            if text:
                return text
        text = self._spelling.value(expr, names)
        more = len(one.shape) - max((len(self._shape(v)) for v in step.reads), default=0)
        return f"np.asarray({text})[{', '.join(['None'] * more)}]" if more else text

    def _shape(self, value: Value) -> tuple[object, ...]:
        return self._program.shape_of(value)

    def _free(self, number: int, step: Step) -> str:
        """The name of an operand that nobody reads later, and whose memory takes the result."""
        roots = [self._steps.roots[value] for value in step.reads]
        for value, root in zip(step.reads, roots, strict=True):
            same = self._shape(value) == step.equation.shape != ()
            own = value == root and root.node >= 0 and roots.count(root) == 1
            if same and own and self._last[root] == number:
                return self._names[value]
        return ""

    def _composed(self, step: Step) -> str:
        one = step.equation
        names = [self._names[o] if isinstance(o, Value) else "None" for o in one.operands]
        options = [f"{key}={value!r}" for key, value in one.params if key != "safe"]
        helper = self._spelling.helper(f"whole_{one.op}")
        return f"{helper}({', '.join([*names, 'dtype', *options])})"

    def _cut(self, step: Step) -> str:
        """A slice, as Python writes it."""
        one, (operand,) = step.equation, step.reads
        texts = {key: self._operators.param(value) for key, value in one.params}
        start, length, each = texts["start"], texts["length"], texts.get("step", "1")
        stop = f"{start} + ({length})" if each == "1" else f"{start} + ({length}) * {each}"
        cut = f"{start}:{stop}" + ("" if each == "1" else f":{each}")
        return f"{self._names[operand]}[{':, ' * int(texts['axis'])}{cut}]"
