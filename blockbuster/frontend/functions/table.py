"""The table of all functions: the one source for the tracer, the documentation and the tests."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

import numpy as np

from blockbuster.frontend.functions import (
    angles,
    arrangements,
    choices,
    creation,
    differences,
    exceptional,
    filled,
    hyperbolic,
    joins,
    matrices,
    normalizations,
    operators,
    orders,
    overwriting,
    pads,
    pointwise,
    products,
    ranks,
    reductions,
    searches,
    shapes,
    sliding,
    statistics,
    torch_activations,
    torch_convolutions,
    torch_creation,
    torch_dtypes,
    torch_heads,
    torch_images,
    torch_layers,
    torch_losses,
    torch_margins,
    torch_orders,
    torch_parts,
    torch_pools,
    torch_products,
    torch_recurrent,
    torch_reductions,
    torch_resampled,
    torch_scattered,
    torch_tensors,
    torch_transposed,
)
from blockbuster.frontend.functions.row import Row
from blockbuster.frontend.functions.spelling import Spellings

GROUPS: tuple[ModuleType, ...] = (
    operators, pointwise, hyperbolic, angles, exceptional, reductions, normalizations, products,
    shapes, joins, pads, arrangements, searches, orders, ranks, choices, filled, creation,
    overwriting, sliding, differences, statistics, matrices,
)  # fmt: skip

TABLE: tuple[Row, ...] = tuple(row for group in GROUPS for row in group.ROWS)

TORCH_GROUPS: tuple[ModuleType, ...] = (
    torch_activations, torch_losses, torch_margins, torch_layers, torch_heads,
    torch_recurrent, torch_convolutions, torch_transposed, torch_pools, torch_images,
    torch_resampled, torch_products, torch_scattered, torch_tensors, torch_orders, torch_parts,
    torch_dtypes, torch_creation, torch_reductions,
)  # fmt: skip

TORCH: tuple[Row, ...] = tuple(row for group in TORCH_GROUPS for row in group.ROWS)
"""What torch's names mean where its arguments are its own: these rows come before the table's."""

PUBLIC: Mapping[str, Row] = {row.name: row for row in TABLE if row.public}
"""The rows of the functions that ``blockbuster`` has, by their names."""


def numpy_function(name: str) -> Any:
    """The function of NumPy's that users write as ``np.name``; None if this NumPy has none."""
    found: Any = np
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


SPELLINGS = Spellings(
    {f: row for row in TABLE for f in map(numpy_function, row.numpy) if f is not None},
    {name: row for row in TABLE for name in row.methods},
    {name: row for row in (*TABLE, *TORCH) for name in row.torch},
)
