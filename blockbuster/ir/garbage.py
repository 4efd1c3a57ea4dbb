"""A context in which Python's garbage collector waits."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collection_paused() -> Iterator[None]:
    """The garbage collector is off inside, and as it was before afterwards.

    Rewriting and running programs make many objects that stay, nodes above all, and the collector
    would go over all of them again and again. It would find next to nothing: nodes and graphs never
    change and refer only to objects made before them, so there are no cycles, and reference counts
    free dead objects at once. Nested calls leave the collector to the outermost one.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
