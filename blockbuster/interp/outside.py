"""What is read at places outside of an array: zeros."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from blockbuster.interp.layout import Array


def with_zeros(
    array: Array, places: Sequence[Array], padded: Sequence[bool], zero: Array
) -> Array:
    """``array`` at ``places``, which broadcast; ``zero`` where a padded axis has no element."""
    inside, near = np.array(True), []
    for place, outside, size in zip(places, padded, array.shape, strict=True):
        if outside:
            inside = inside & (place >= 0) & (place < size)
            place = place.clip(0, max(size - 1, 0))
        near.append(place)
    shape = np.broadcast_shapes(*(place.shape for place in near))
    found = np.full(shape, zero, array.dtype)
    inside = np.broadcast_to(inside, shape)
    found[inside] = array[tuple(np.broadcast_to(place, shape)[inside] for place in near)]
    return found
