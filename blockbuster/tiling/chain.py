"""A chain of compute-intensive operators, as MCFuser sees it: loops, tensors, and sizes.

Each operator multiplies two tensors and sums over the loops that its result lacks; the result of
one is an operand of the next. A loop has one letter, as in the expressions of the source.
Memory-intensive operators between two products (a softmax, a bias) are part of the second.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from blockbuster.errors import message
from blockbuster.ir.types import Dim

ITEM_BYTES = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8}


@dataclass(frozen=True)
class Tensor:
    """A tensor by name, and the loops that index it."""

    name: str
    axes: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.name}[{', '.join(self.axes)}]"


@dataclass(frozen=True)
class Operator:
    """``result`` is the product of ``operands``, summed over the loops that it lacks.

    ``first``: what is applied to the first operand before ("softmax"), in words; it costs nothing
    in the source's model.
    """

    result: Tensor
    operands: tuple[Tensor, ...]
    first: str = ""

    @cached_property
    def loops(self) -> tuple[str, ...]:
        """Its loops: those of the result, then those that it sums over."""
        return tuple(
            dict.fromkeys((*self.result.axes, *(a for t in self.operands for a in t.axes)))
        )

    @property
    def reduced(self) -> tuple[str, ...]:
        """The loops that it sums over."""
        return tuple(loop for loop in self.loops if loop not in self.result.axes)


@dataclass(frozen=True)
class Chain:
    """Operators in order, and the size of every loop.

    ``batch``: how many independent chains there are (batches, heads); each has its own thread
    blocks. ``dims``: the dim of the array program that a loop runs over, where one is known. Raises
    ValueError for anything but a chain.
    """

    operators: tuple[Operator, ...]
    sizes: Mapping[str, int] = field(hash=False)
    batch: int = 1
    dtype: str = "float16"
    dims: Mapping[str, Dim] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        reason = _not_a_chain(self) or _not_sized(self)
        if reason:
            raise ValueError(
                message(reason, value=", ".join(str(op.result) for op in self.operators))
            )

    @cached_property
    def loops(self) -> tuple[str, ...]:
        """All loops, in order of first appearance."""
        return tuple(dict.fromkeys(loop for op in self.operators for loop in op.loops))

    @property
    def output(self) -> Tensor:
        """The result of the last operator."""
        return self.operators[-1].result

    @property
    def intermediates(self) -> tuple[Tensor, ...]:
        """The results that never leave a fused kernel."""
        return tuple(op.result for op in self.operators[:-1])

    @cached_property
    def inputs(self) -> tuple[Tensor, ...]:
        """The operands that no operator of the chain makes."""
        operands = dict.fromkeys(t for op in self.operators for t in op.operands)
        return tuple(t for t in operands if t not in self.intermediates)

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """Inputs, intermediates and the output."""
        return (*self.inputs, *self.intermediates, self.output)

    @property
    def item_bytes(self) -> int:
        """Bytes of an element."""
        return ITEM_BYTES[self.dtype]


def gemm_chain(m: int, n: int, k: int, h: int, *, batch: int = 1, dtype: str = "float16") -> Chain:
    """``E = (A B) D``, the source's example: A[m, k], B[k, n], D[n, h]."""
    return _two_products(dict(m=m, n=n, k=k, h=h), batch, dtype, "")


def self_attention(
    m: int, n: int, k: int, h: int, *, batch: int = 1, dtype: str = "float16"
) -> Chain:
    """``E = softmax(A B) D``: queries A, keys B, values D; ``batch`` counts heads."""
    return _two_products(dict(m=m, n=n, k=k, h=h), batch, dtype, "softmax")


def _two_products(sizes: Mapping[str, int], batch: int, dtype: str, between: str) -> Chain:
    c, e = Tensor("C", ("m", "n")), Tensor("E", ("m", "h"))
    first = Operator(c, (Tensor("A", ("m", "k")), Tensor("B", ("k", "n"))))
    second = Operator(e, (c, Tensor("D", ("n", "h"))), between)
    dims = {loop: loop.upper() for loop in "mnkh"}
    return Chain((first, second), sizes, batch, dtype, dims)


# predicates ------------------------------------------------------------------------


def _not_a_chain(chain: Chain) -> str:
    """Why the operators are no chain, or ""."""
    if not chain.operators:
        return "a chain has at least one operator, got none"
    summed: list[str] = []
    for before, after in zip(chain.operators, chain.operators[1:], strict=False):
        if before.result not in after.operands:
            return f"{after.result.name} does not read {before.result.name}, the result before it"
        summed += before.reduced
        for loop in after.loops:
            if loop in summed:
                return f"{after.result.name} runs over {loop}, which is summed over before it"
    for loop in chain.loops:
        if len(loop) != 1 or not loop.isalpha():
            return f"a loop is named by one letter, got {loop!r}"
    return ""


def _not_sized(chain: Chain) -> str:
    """Why sizes or dtype do not fit the loops, or ""."""
    for loop in chain.loops:
        if chain.sizes.get(loop, 0) < 1:
            return f"loop {loop} needs a size of at least 1, got {chain.sizes.get(loop, 'none')}"
    if chain.batch < 1:
        return f"a chain is computed at least once, got batch {chain.batch}"
    if chain.dtype not in ITEM_BYTES:
        return f"unknown dtype {chain.dtype!r}; known: {', '.join(ITEM_BYTES)}"
    return ""
