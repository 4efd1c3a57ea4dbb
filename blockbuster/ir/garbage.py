"""A context in which Python's garbage collector waits."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collection_paused() -> Iterator[None]:
    """The search is off for a while; as before afterwards.

    Rewriting and running programs make many objects that stay, nodes above all, and the search
    would go over all of them again and again. It would find next to nothing: what refers to what is
    acyclic here, because nodes and graphs are made after what they hold and never change, and so
    dead objects are freed at once, by their counts. Nested calls leave it to the outermost.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
