"""The check of a counterexample: it is computed again, by other means, before it is shown."""

from __future__ import annotations

from blockbuster.errors import BlockbusterError, message
from blockbuster.interp.apart import close
from blockbuster.interp.layout import Array
from blockbuster.interp.ordered import Ordered
from blockbuster.interp.plain import plain
from blockbuster.interp.proof import Counterexample
from blockbuster.interp.semantics import Float64, Semantics


def check_counterexample(found: Counterexample) -> None:
    """Raise BlockbusterError where the plain reading of a program gives other outputs.

    Then the interpreter is wrong, or the plain reading is, and the programs may well be equal.
    """
    semantics: Semantics = Float64 if found.semantics == "bb.Float64" else Ordered()
    for graph, outputs in zip(found.programs, (found.left, found.right), strict=True):
        try:
            again = plain(graph, found.inputs, found.sizes, found.block_sizes, semantics)
        except ValueError as error:
            raise _wrong(found, str(error)) from error
        for name, array in outputs.items():
            if not _same(array, again[name], semantics):
                raise _wrong(found, f"{name} is {array.tolist()}, or {again[name].tolist()}")


def _same(x: Array, y: Array, semantics: Semantics) -> bool:
    if isinstance(semantics, Ordered):
        return x.shape == y.shape and not semantics.compared(x, y)[0]
    return close(x, y)


def _wrong(found: Counterexample, why: str) -> BlockbusterError:
    what = "the interpreter contradicts itself, so nothing is known of these programs"
    hint = f"this is a bug in Blockbuster; please report it with these lines:\n{found}"
    return BlockbusterError(message(what, value=why, hint=hint))
