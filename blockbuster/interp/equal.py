"""Are two programs equal? A randomized exact answer, and what exactly it says.

The programs are run on random residues with uninterpreted functions (``exact.py``), at random
small sizes and blocks. Where they agree in every trial they are equal as terms, but for luck.
Where they do not, they may still be equal by a law of some function, so a difference is only
reported as one where it shows in floating point too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from blockbuster.interp.binding import bind, dims_of, sources
from blockbuster.interp.evaluate import Interpreter
from blockbuster.interp.exact import PRIMES, UNDEFINED, Exact, ZeroDenominator
from blockbuster.interp.layout import Array
from blockbuster.interp.observers import Observer
from blockbuster.interp.semantics import Float32, Float64, Semantics
from blockbuster.ir.expr import Call, Expr
from blockbuster.ir.graph import Graph
from blockbuster.ir.lengths import fitted
from blockbuster.ir.list_only import list_only
from blockbuster.ir.ops import Elementwise, Map, Pointwise, Rescale
from blockbuster.ir.types import Dim, size_class

LARGEST_SIZE = 5
DRAWS = 20  # how often inputs are drawn again before a zero denominator is taken to be no accident
TOLERANCE = 1e-6  # of the largest number in an output; far above rounding at these sizes

SCOPE = (
    "equality as terms in +, *, / with the other functions uninterpreted, at the tried sizes and "
    "blocks, over exact arithmetic, wherever denominators are nonzero"
)
ASSUMPTIONS = (
    "not shown: other sizes, floating point, NaN and infinities, the compiler, the hardware",
)
NO_BOUND = "no bound computed yet"


@dataclass(frozen=True)
class Counterexample:
    """Inputs, sizes and blocks on which two programs give different outputs."""

    sizes: Mapping[Dim, int]
    block_sizes: Mapping[Dim, int]
    inputs: Mapping[str, Array]
    left: Mapping[str, Array]
    right: Mapping[str, Array]
    semantics: str

    def __str__(self) -> str:
        names = [n for n in self.left if not np.array_equal(self.left[n], self.right[n])]
        lines = [f"the programs differ in {', '.join(names)} ({self.semantics})"]
        lines += [f"  sizes={dict(self.sizes)}, block_sizes={dict(self.block_sizes)}"]
        lines += [f"  {name} = {array.tolist()}" for name, array in self.inputs.items()]
        for name in names:
            lines.append(f"  {name}: {self.left[name].tolist()} != {self.right[name].tolist()}")
        return "\n".join(lines)


@dataclass(frozen=True)
class Proof:
    """What a comparison of two programs showed; ``equal`` is None where it settled nothing."""

    equal: bool | None
    tier: str
    scope: str
    assumptions: tuple[str, ...]
    false_accept_bound: float | None
    counterexample: Counterexample | None
    reason: str
    trials: int
    redraws: int

    def __str__(self) -> str:
        word = {True: "equal", False: "different", None: "unknown"}[self.equal]
        bound = NO_BOUND if self.false_accept_bound is None else f"{self.false_accept_bound:.1e}"
        lines = [f"{word}: {self.reason}"]
        if self.equal:
            lines += [f"  shown: {self.scope}", *(f"  {a}" for a in self.assumptions)]
            lines += [f"  {self.trials} trials, {self.redraws} redraws; false accept: {bound}"]
        if self.counterexample:
            lines += [f"  {line}" for line in str(self.counterexample).splitlines()]
        return "\n".join(lines)


class Unsettled(Exception):
    """A trial gave no answer; the text says why."""


@dataclass(frozen=True)
class Setting:
    """The sizes and block sizes of one trial, by size class."""

    sizes: Mapping[Dim, int]
    block_sizes: Mapping[Dim, int]

    def shapes(self, graph: Graph) -> dict[str, tuple[int, ...]]:
        """The shape of every source of ``graph``."""
        return {
            name: tuple(1 if d is None else self.sizes[size_class(d)] for d in axes)
            for name, axes in sources(graph).items()
        }

    def run(
        self, graph: Graph, inputs: Mapping[str, Array], semantics: Semantics
    ) -> dict[str, Array]:
        """The outputs of ``graph``."""
        own = dict.fromkeys(map(size_class, dims_of(graph)))
        layout = bind(
            graph,
            self.shapes(graph),
            sizes={d: self.sizes[d] for d in own},
            block_sizes={d: self.block_sizes[d] for d in own},
        )
        return Interpreter(layout, semantics, Observer()).run(graph, inputs)


def settings(a: Graph, b: Graph, trials: int, random: np.random.Generator) -> Iterator[Setting]:
    """Small sizes and blocks for both programs; the first have several blocks, one ragged."""
    single = {*list_only(a), *list_only(b)}
    classes = dict.fromkeys(size_class(d) for d in (*dims_of(a), *dims_of(b)))
    rules = (*a.size_rules, *b.size_rules)
    for trial in range(trials):
        drawn, steps = {}, {}
        for dim in classes:
            size = int(random.integers(1, LARGEST_SIZE + 1) if trial else random.choice([3, 5]))
            drawn[dim] = size
            steps[dim] = 1 if dim in single else int(random.integers(1, size + 1)) if trial else 2
        yield Setting(fitted(drawn, rules), steps)


def check_equal_exactly(
    a: Graph, b: Graph, *, trials: int = 2, seed: int = 0
) -> Counterexample | None:
    """Where two programs differ as terms, or None where they agree in every trial.

    Raises Unsettled where the trials cannot tell, ValueError where the interfaces differ.
    """
    counterexample, _ = _exact_trials(a, b, trials, seed)
    return counterexample


def prove_equal(a: Graph, b: Graph, trials: int = 8, seed: int = 0) -> Proof:
    """Compare two programs of one interface exactly, on random inputs, sizes and blocks.

    ``equal`` is True where they agree as terms in every trial, False where they differ in floating
    point too, None where neither shows. Raises ValueError where the interfaces differ.
    """

    def proof(equal: bool | None, reason: str, **more: Any) -> Proof:
        facts = {"false_accept_bound": None, "counterexample": None, "redraws": 0, **more}
        return Proof(equal, "A", SCOPE, ASSUMPTIONS, reason=reason, trials=trials, **facts)

    if a == b:
        return proof(True, "the programs are the same", false_accept_bound=0.0)
    try:
        different, redraws = _exact_trials(a, b, trials, seed)
    except Unsettled as unsettled:
        return proof(None, str(unsettled))
    if different is None:
        return proof(True, "the programs agree in every trial", redraws=redraws)
    visible = _float_difference(a, b, trials, seed)
    if visible is not None:
        found = "the programs differ as terms, and in floating point"
        return proof(False, found, counterexample=visible, redraws=redraws)
    if uses_homomorphism(a) or uses_homomorphism(b):
        found = "uses the exponential's homomorphism: tier B"
    else:
        found = "the programs differ as terms, but no difference shows in floating point"
    return proof(None, found, redraws=redraws)


def uses_homomorphism(graph: Graph) -> bool:
    """True if a program rescales by exponentials, which tier A leaves uninterpreted."""

    def mentions(expr: Expr) -> bool:
        return isinstance(expr, Call) and (expr.fn == "sub0" or any(map(mentions, expr.args)))

    return any(
        any(isinstance(r, Rescale) for r in node.op.results)
        if isinstance(node.op, Map)
        else isinstance(node.op, Elementwise | Pointwise) and mentions(node.op.expr)
        for _, level in graph.walk()
        for node in level.nodes
    )


def _same_interface(a: Graph, b: Graph) -> None:
    for what, left, right in (
        ("read", sorted(sources(a)), sorted(sources(b))),
        ("return", list(a.output_names), list(b.output_names)),
    ):
        if left != right:
            raise ValueError(f"the programs {what} different arrays: {left} and {right}")


def _exact_trials(a: Graph, b: Graph, trials: int, seed: int) -> tuple[Counterexample | None, int]:
    """The first difference as terms, and how often inputs were drawn again."""
    _same_interface(a, b)
    random = np.random.default_rng([seed, 0])
    redraws = 0
    for trial, setting in enumerate(settings(a, b, trials, random)):
        for _ in range(DRAWS):
            semantics = Exact(PRIMES[trial % len(PRIMES)], int(random.integers(2**62)))
            inputs = {
                name: random.integers(0, semantics.prime, shape)
                for name, shape in setting.shapes(a).items()
            }
            try:
                left = setting.run(a, inputs, semantics)
                right = setting.run(b, inputs, semantics)
                break
            except ZeroDenominator:
                redraws += 1
        else:
            raise Unsettled(f"a denominator was zero in each of {DRAWS} draws")
        how = f"residues modulo {semantics.prime}, oracle seed {semantics.seed}"
        if _differ_as_terms(left, right):
            return Counterexample(
                setting.sizes, setting.block_sizes, inputs, left, right, how
            ), redraws
    return None, redraws


def _differ_as_terms(left: Mapping[str, Array], right: Mapping[str, Array]) -> bool:
    """True if an element differs. Raises Unsettled if none does but some are undefined."""
    undefined = False
    for name in left:
        if left[name].shape != right[name].shape:
            return True
        unclear = (left[name] == UNDEFINED) | (right[name] == UNDEFINED)
        if ((left[name] != right[name]) & ~unclear).any():
            return True
        undefined |= bool(unclear.any())
    if undefined:
        raise Unsettled(
            "an output is undefined: it contains inf - inf, or an infinity times a number"
        )
    return False


def _float_difference(a: Graph, b: Graph, trials: int, seed: int) -> Counterexample | None:
    """Inputs on which the outputs differ by far more than rounding can explain."""
    random = np.random.default_rng([seed, 1])
    for setting in settings(a, b, trials, random):
        inputs = {
            name: random.integers(-8, 9, shape) / 4 for name, shape in setting.shapes(a).items()
        }
        left, right = (setting.run(graph, inputs, Float64) for graph in (a, b))
        rough = [setting.run(graph, inputs, Float32) for graph in (a, b)]
        for name, x in left.items():
            y = right[name]
            if x.shape != y.shape or _clearly_apart(x, y, *(r[name] for r in rough)):
                return Counterexample(
                    setting.sizes, setting.block_sizes, inputs, left, right, "float64"
                )
    return None


def _clearly_apart(x: Array, y: Array, rough_x: Array, rough_y: Array) -> bool:
    """True if x and y differ by far more than rounding, which costs less than single precision."""
    with np.errstate(all="ignore"):
        finite = np.isfinite(x) & np.isfinite(y) & np.isfinite(rough_x) & np.isfinite(rough_y)
        x, y, rough_x, rough_y = (np.where(finite, z, 0.0) for z in (x, y, rough_x, rough_y))
        scale = max(np.abs(x).max(initial=0), np.abs(y).max(initial=0))
        noise = np.abs(x - rough_x) + np.abs(y - rough_y)
        return bool((np.abs(x - y) > np.maximum(TOLERANCE * scale, 10 * noise)).any())
