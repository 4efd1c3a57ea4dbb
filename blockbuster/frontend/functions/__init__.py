"""The array functions of the public API: one row of the table (``table.py``) each.

On traced arrays they record operations. On NumPy arrays and numbers they compute at once, in the
arrays' own dtype, with the meaning that ``numerics.NUMPY`` gives to the oracle. On torch tensors
they call torch's own functions, on the tensors' device (``torch.py``).
"""

from typing import Any

from blockbuster.frontend.functions.table import PUBLIC


def __getattr__(name: str) -> Any:
    """The public function ``name``."""
    if name not in PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return PUBLIC[name].function


def __dir__() -> list[str]:
    return sorted({*globals(), *PUBLIC})
