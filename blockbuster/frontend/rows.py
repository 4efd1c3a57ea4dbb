"""Some rows of tensors: those whose indices along some dims are asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from blockbuster.frontend.program import Shape
from blockbuster.ir.types import Dim

Tensor = Any
Rows = Mapping[Dim, Tensor]
"""For some dims, the indices that are computed: a vector of int64 each."""


def rows_of(tensor: Tensor, shape: Shape, rows: Rows) -> Tensor:
    """The rows of a whole tensor whose axes are ``shape``: nothing else is copied on the way."""
    import torch

    taken = [rows.get(dim) if isinstance(dim, str) else None for dim in shape]
    cut = [(axis, indices) for axis, indices in enumerate(taken) if indices is not None]
    if len(cut) < 2:
        return tensor.index_select(*cut[0]) if cut else tensor
    places = [
        torch.arange(extent, device=tensor.device) if indices is None else indices
        for indices, extent in zip(taken, tensor.shape, strict=True)
    ]
    ends = range(len(places) - 1, -1, -1)
    return tensor[tuple(at.view(-1, *[1] * end) for at, end in zip(places, ends, strict=True))]


def indices(values: Sequence[int], like: Tensor) -> Tensor:
    """Indices of rows, on the device of ``like``."""
    import torch

    if isinstance(values, range):
        return torch.arange(values.start, values.stop, device=like.device)
    return torch.tensor(values, device=like.device)
