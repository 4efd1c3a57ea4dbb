"""Operators of a tile program as NumPy text, with the dtype of their result."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from blockbuster.emit.print.integers import integer_literal
from blockbuster.emit.print.numpy.mixed import COUNTED, converted, integer_functional
from blockbuster.emit.print.numpy.places import Scope, permuted
from blockbuster.emit.print.numpy.spelling import Spelling, aligned
from blockbuster.emit.tile.program import Buffer, Let, Tile, TileProgram
from blockbuster.emit.tile.result_dtypes import INDEX, SUMS, WIDTHS
from blockbuster.ir.dtypes import INTEGERS, TRUTH
from blockbuster.ir.expr import arguments
from blockbuster.ir.ops import Cast, Functional, Pointwise, Relabel, Scan, Transpose
from blockbuster.ir.regroup import Regroup

SCANS = {"+": "np.add", "prod": "np.multiply", "max": "np.maximum", "min": "np.minimum"}


class Operators(ABC):
    """The operators of ``program``; ``integers``: some of its tiles hold integers."""

    _program: TileProgram
    _spelling: Spelling
    _integers: bool

    @abstractmethod
    def _shape(self, tile: Tile, scope: Scope) -> str:
        """The shape of a tile, as text."""

    def operator(self, stmt: Let, scope: Scope) -> str:
        """The value of a statement."""
        return SPELLING[type(stmt.op)](self, stmt, scope)

    def _is_wide(self, made: Tile | Buffer) -> bool:
        """True for float64 in a program that computes in float32."""
        return made.dtype == "float64" != self._program.dtype

    def _spell(self, made: Tile | Buffer, args: Sequence[Tile] = ()) -> Spelling:
        """How what makes a tile is spelled; ``args`` are the tiles of which it is computed."""
        exact = bool(args) and all(tile.dtype == "float64" for tile in (made, *args))
        return self._spelling.of(wide=self._is_wide(made), exact=exact)

    def _dtype(self, made: Tile | Buffer) -> str:
        return f"np.{made.dtype}" if made.dtype in INTEGERS else self._spell(made).dtype

    def _number(self, made: Tile, text: str, value: float) -> str:
        """A number in a tile: ``text``, but for integers."""
        return integer_literal(value, made.dtype) if made.dtype in INTEGERS else text

    def _read(self, tile: Tile, target: Tile) -> str:
        """``tile`` as what computes ``target`` reads it: rounded, unless that is wide, too."""
        narrowed = self._is_wide(tile) and not self._is_wide(target)
        return f"{tile.name}.astype(dtype, copy=False)" if narrowed else tile.name

    def _folded(self, tile: Tile, target: Tile) -> str:
        """``tile`` as a fold or a product makes ``target`` of it: converted to floats if need be.

        NumPy would make int32 and float32 float64; truth values are numbers of the arithmetic.
        """
        whole = self._integers and tile.dtype in COUNTED and target.dtype not in COUNTED
        if whole or (tile.dtype == TRUTH and self._is_wide(target)):
            return f"{tile.name}.astype({self._dtype(target)})"
        return self._read(tile, target)

    def _operands(self, stmt: Let) -> list[str]:
        return [self._read(arg, stmt.target) for arg in stmt.args]

    def _scalars(self, stmt: Let, op: Pointwise) -> list[str]:
        """The operands of a scalar expression; for a wide result at least one is float64."""
        names = self._operands(stmt)
        read = [stmt.args[at] for at in arguments(op.expr)]
        narrow = self._is_wide(stmt.target) and all(tile.dtype != "float64" for tile in read)
        for at, tile in enumerate(stmt.args):
            if narrow and (tile.axes or tile.dtype != INDEX):  # one position may be Python's int
                names[at] += ".astype(np.float64)"
            names[at] = aligned(names[at], tile.axes, op.axes)
        return names

    def _functional(self, stmt: Let, scope: Scope) -> str:
        assert isinstance(stmt.op, Functional)
        if stmt.args[0].dtype in INTEGERS and stmt.op.name != "dot":
            return integer_functional(stmt.op.name, stmt.args[0].name, stmt.args[0].dtype)
        names = [self._folded(arg, stmt.target) for arg in stmt.args]
        return self._spell(stmt.target, stmt.args).functional(stmt.op.name, names)

    def _pointwise(self, stmt: Let, scope: Scope) -> str:
        op = stmt.op
        assert isinstance(op, Pointwise)
        names, expr, spell = self._scalars(stmt, op), op.expr, self._spell(stmt.target, stmt.args)
        if self._integers:
            expr, names = converted(expr, names, [arg.dtype for arg in stmt.args], spell)
        text = spell.value(expr, names)
        if all(any(dim in arg.axes for arg in stmt.args) for dim in op.axes):
            return text
        return f"np.broadcast_to({text}, {self._shape(stmt.target, scope)})"

    def _cast(self, stmt: Let, scope: Scope) -> str:
        assert isinstance(stmt.op, Cast)
        (text,), given = self._operands(stmt), stmt.args[0].dtype
        if self._program.dtype and stmt.op.dtype in INTEGERS:
            return f"{text}.astype(np.{stmt.op.dtype})"
        counted = self._integers and given in COUNTED
        if given and not counted and WIDTHS[given] < WIDTHS[stmt.op.dtype]:
            return text
        return f"{self._spelling.helper('rounded')}({text}, {stmt.op.dtype!r}).astype(dtype)"

    def _scan(self, stmt: Let, scope: Scope) -> str:
        """Folds up to each element: floats grow in float64 and are rounded once."""
        assert isinstance(stmt.op, Scan)
        dtype, given = stmt.target.dtype, stmt.args[0]
        grows = SUMS if dtype in INTEGERS else "float64"
        text = self._folded(given, stmt.target)
        way = "[..., ::-1]" if stmt.op.back else ""
        made = f"{SCANS[stmt.op.monoid]}.accumulate({text}{way}, axis=-1, dtype=np.{grows}){way}"
        return f"{made}.astype({self._dtype(stmt.target)}, copy=False)"


SPELLING: dict[type, Callable[[Operators, Let, Scope], str]] = {
    Functional: Operators._functional,
    Pointwise: Operators._pointwise,
    Cast: Operators._cast,
    Scan: Operators._scan,
    Transpose: lambda text, stmt, _: (
        text._operands(stmt)[0] + permuted(stmt.args[0].axes, stmt.target.axes)
    ),
    Relabel: lambda text, stmt, _: text._operands(stmt)[0],
    Regroup: lambda text, stmt, scope: (
        f"{text._operands(stmt)[0]}.reshape{text._shape(stmt.target, scope)}"
    ),
}
