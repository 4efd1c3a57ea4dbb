"""In what torch's internal operators are written before a graph with gradients is divided."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

Tensor = Any

_WRITTEN_OUT = (
    "native_layer_norm", "native_group_norm", "elu", "leaky_relu", "hardtanh",
    "_native_batch_norm_legit_functional", "_native_batch_norm_legit",
)  # fmt: skip
"""Operators that are not translated, but whose decompositions are."""

_KEPT = (
    "_scaled_dot_product_flash_attention_for_cpu", "embedding_dense_backward", "addcdiv", "addcmul",
    "lerp", "roll", "slice_backward", "select_backward", "diagonal_backward",
)  # fmt: skip
"""Operators that are better as they are than in what torch writes them."""

_OF_LISTS = (
    "abs", "add", "addcdiv", "addcmul", "ceil", "clamp_max", "clamp_min", "copy", "div", "exp",
    "floor", "lerp", "log", "maximum", "minimum", "mul", "neg", "norm", "pow", "reciprocal",
    "round", "rsqrt", "sigmoid", "sign", "sqrt", "sub", "tanh", "zero",
)  # fmt: skip
"""Operators that optimizers apply to lists of tensors, as in ``torch._foreach_add``."""


def decompositions() -> dict[Any, Any]:
    """How operators that are not translated are written in those that are."""
    import torch._decomp as known
    from torch import ops

    aten = ops.aten
    table = known.core_aten_decompositions()
    table.update(known.get_decompositions([getattr(aten, name) for name in _WRITTEN_OUT]))
    table[aten._native_batch_norm_legit_no_training.default] = _with_known_statistics
    table[aten.native_dropout.default] = _dropped
    table.update(dict(_of_lists()))
    if hasattr(ops.prims, "fma"):  # dynamo writes addcmul_ so, once it is loaded
        table[ops.prims.fma.default] = lambda one, other, added: one * other + added
    kept = {f"aten::{name}{end}" for name in _KEPT for end in ("", "_")}
    return {one: way for one, way in table.items() if one._schema.name not in kept}


def _of_lists() -> Iterator[tuple[Any, Callable[..., Any]]]:
    """The operators of lists, each with the function that computes it tensor by tensor."""
    from torch import linalg, ops

    aten = ops.aten
    others = {
        "addcdiv": _with_value(aten.addcdiv), "addcmul": _with_value(aten.addcmul),
        "norm": lambda x, order=2, dtype=None: linalg.vector_norm(x, order, dtype=dtype),
        "maximum": aten.clamp_min, "minimum": aten.clamp_max,  # these take numbers, too
        "zero": aten.zeros_like,
    }  # fmt: skip
    for name in _OF_LISTS:
        packet = getattr(aten, f"_foreach_{name}")
        for overload in packet.overloads():
            operator = getattr(packet, overload)
            numbers_in_a_tensor = name in ("addcdiv", "addcmul") and overload == "Tensor"
            if not (overload.endswith("out") or numbers_in_a_tensor):
                yield operator, _one_by_one(others.get(name) or getattr(aten, name))


def _one_by_one(function: Callable[..., Any]) -> Callable[..., Any]:
    def of_lists(*args: Any, **kwargs: Any) -> list[Tensor]:
        lists = [isinstance(one, Sequence) for one in args]
        count = len(args[lists.index(True)])
        rows = (
            [one[at] if many else one for one, many in zip(args, lists, strict=True)]
            for at in range(count)
        )
        return [function(*row, **kwargs) for row in rows]

    return of_lists


def _with_value(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, one, other, value=1: function(x, one, other, value=value)


def _dropped(x: Tensor, probability: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """``aten.native_dropout``: what is kept is drawn apart from ``x``, and multiplied in a kernel.

    On the CPU these are the random numbers that eager torch draws.
    """
    import torch
    from torch._prims_common import compute_elementwise_output_logical_to_physical_perm as by_memory

    if train is False or probability == 0:
        return x.clone(), torch.ones_like(x, dtype=torch.bool)
    order, _ = by_memory(x)
    drawn = torch.empty([x.shape[a] for a in order], dtype=torch.bool, device=x.device)
    drawn = torch.bernoulli(drawn, 1 - probability)
    kept = drawn.permute([order.index(axis) for axis in range(x.dim())])
    scale = 0.0 if probability == 1 else 1 / (1 - probability)
    return x * kept * scale, kept


def _with_known_statistics(
    x: Tensor, weight: Any, bias: Any, mean: Tensor, variance: Tensor, _: float, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """A batch norm that is not trained: torch's own way writes it as one that changes its input."""
    shape = [-1] + [1] * (x.dim() - 2)
    factor = (variance + eps).rsqrt()
    factor = factor if weight is None else factor * weight
    made = (x - mean.view(shape)) * factor.view(shape)
    made = made if bias is None else made + bias.view(shape)
    return made.to(x.dtype), x.new_empty(0), x.new_empty(0)
