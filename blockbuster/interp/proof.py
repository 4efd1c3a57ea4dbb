"""The result of a comparison of two programs: in words, as JSON, and as code that reproduces it."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from blockbuster.errors import quoted_lines
from blockbuster.interp.binding import dims_of
from blockbuster.interp.domains import dtypes_of
from blockbuster.interp.layout import Array
from blockbuster.ir.graph import Graph
from blockbuster.ir.types import Dim, size_class

SCHEMA = "blockbuster.proof/1"
WORDS = {True: "equal", False: "different", None: "unknown"}
NO_BOUND = "randomized check, no proven bound"
NOT_SHOWN = "not shown: other sizes, floating point, NaN and infinities, the compiler, the hardware"


@dataclass(frozen=True)
class Counterexample:
    """Inputs, sizes and blocks on which two programs give different outputs.

    Its text is Python code that shows the difference.
    """

    programs: tuple[Graph, Graph]
    sizes: Mapping[Dim, int]
    block_sizes: Mapping[Dim, int]
    inputs: Mapping[str, Array]
    left: Mapping[str, Array]
    right: Mapping[str, Array]
    semantics: str
    """The semantics as an expression: ``bb.Float64``, ``Exact(prime=..., seed=...)``."""

    @property
    def differing(self) -> tuple[str, ...]:
        """The names of the outputs that differ."""
        return tuple(
            name
            for name, array in self.left.items()
            if array.shape != self.right[name].shape or (array != self.right[name]).any()
        )

    def __str__(self) -> str:
        lines = ["import numpy as np", "import blockbuster as bb"]
        if not self.semantics.startswith("bb."):
            kind = self.semantics.partition("(")[0]
            module = {"Ordered": "ordered", "Characters": "characters"}.get(kind, "exact")
            lines.append(f"from blockbuster.interp.{module} import {kind}")
        lines += ["from numpy import inf, nan", "", "inputs = {"]
        known = dtypes_of(*self.programs)
        for name, array in self.inputs.items():
            dtype = repr(known[name]) if known.get(name) == array.dtype.name else "float"
            held = f"np.array({array.tolist()}, {dtype}).reshape({array.shape})"
            lines.append(f"    {name!r}: {held},")
        lines.append("}")
        sides = zip(("left", "right"), self.programs, (self.left, self.right), strict=True)
        for side, graph, outputs in sides:
            own = dict.fromkeys(map(size_class, dims_of(graph)))
            sizes = {d: self.sizes[d] for d in own}
            steps = {d: self.block_sizes[d] for d in own}
            text = quoted_lines(graph.show()).removeprefix('"""')
            lines += [f'{side} = bb.parse("""\\', f"{text})"]
            call = f"inputs, sizes={sizes}, block_sizes={steps}, semantics={self.semantics}"
            lines.append(f"{side} = bb.evaluate({side}, {call})")
            for name in self.differing:
                lines.append(f"print({side}[{name!r}].tolist())  # {outputs[name].tolist()}")
        return "\n".join(lines)

    def to_data(self) -> dict[str, Any]:
        """The counterexample as plain data."""
        arrays = {"inputs": self.inputs, "left": self.left, "right": self.right}
        return {
            "sizes": dict(self.sizes),
            "block_sizes": dict(self.block_sizes),
            "semantics": self.semantics,
            "differing": list(self.differing),
            **{key: {n: plain(a) for n, a in held.items()} for key, held in arrays.items()},
            "code": str(self),
        }


def plain(array: Array) -> Any:
    """Nested lists, in which numbers that JSON lacks become text."""
    if array.dtype.kind in "iub":
        return array.tolist()
    values = np.asarray(array, float)
    return np.where(np.isfinite(values), values.astype(object), values.astype(str)).tolist()


class Shown(Protocol):
    """The evidence that two programs differ: its text, and plain data."""

    def __str__(self) -> str: ...

    def to_data(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Proof:
    """The result of a comparison of two programs; ``equal`` is None if it settled nothing.

    ``tier``: "A" (terms over a field), "B" (exp a homomorphism, too), "ordered" (fractions).
    ``false_accept_bound``: a bound on the probability that programs which differ at a tried size
    are called equal; None if none is proven, 1.0 if the bound is vacuous.
    """

    equal: bool | None
    tier: str
    scope: str
    assumptions: tuple[str, ...]
    false_accept_bound: float | None
    counterexample: Shown | None
    reason: str
    trials: int
    redraws: int

    @property
    def bound_in_words(self) -> str:
        """The false accept bound as it is printed."""
        bound = self.false_accept_bound
        if bound is None:
            return NO_BOUND
        if bound >= 1:
            return "false accept bound: vacuous"
        if bound == 0:
            return "false accept bound: 0"
        return f"false accept bound: {max(bound, sys.float_info.min):.1e}"

    def __repr__(self) -> str:
        told = self.bound_in_words if self.equal else self.reason
        return f"Proof({WORDS[self.equal]}, tier {self.tier}, {told})"

    def _repr_html_(self) -> str:
        from blockbuster.view.notebook import proof_html

        return proof_html(self)

    def __str__(self) -> str:
        lines = [f"{WORDS[self.equal]} (tier {self.tier}): {self.reason}"]
        if self.equal:
            lines += [f"  shown: {self.scope}", f"  {NOT_SHOWN}"]
            lines += [f"  assumed: {a}" for a in self.assumptions]
            lines += [f"  {self.trials} trials, {self.redraws} redraws; {self.bound_in_words}"]
        if self.counterexample:
            lines += ["", str(self.counterexample)]
        return "\n".join(lines)

    def to_data(self) -> dict[str, Any]:
        """The proof as plain data."""
        return {
            "equal": self.equal,
            "tier": self.tier,
            "reason": self.reason,
            "scope": self.scope,
            "not_shown": NOT_SHOWN,
            "assumptions": list(self.assumptions),
            "false_accept_bound": self.false_accept_bound,
            "trials": self.trials,
            "redraws": self.redraws,
            "counterexample": self.counterexample and self.counterexample.to_data(),
        }

    def to_json(self) -> str:
        """The proof as JSON; the schema is named in it."""
        return json.dumps({"schema": SCHEMA, **self.to_data()}, indent=1) + "\n"
