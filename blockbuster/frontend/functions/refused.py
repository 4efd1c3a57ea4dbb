"""What traced arrays do not take, and what to use in its place."""

from __future__ import annotations

from collections.abc import Mapping

_SPLITS = "use bb.split_heads(x, h), bb.merge_heads(x), or inputs that have the axes as dims"
_CUSTOM = "bb.custom(fn, x, shape=x.shape) takes any function"

INSTEAD: Mapping[str, str] = {
    "dot": "use @", "reshape": _SPLITS, "view": _SPLITS, "flatten": _SPLITS, "ravel": _SPLITS,
    "squeeze": "reduce with keepdims=False", "item": "a traced array has no values",
    "std": "use bb.layer_norm, or the mean of squares", "var": "use the mean of squares",
    "clip": "use bb.minimum(bb.maximum(x, low), high)", "permute": "use x.transpose(axes)",
    "size": "multiply the entries of x.shape", "norm": "use bb.sqrt(bb.sum(x * x, axis))",
}  # fmt: skip
"""For names that people try: a function of the same meaning."""


def instead_of(name: str) -> str:
    """What to use in place of the function or method ``name``."""
    return INSTEAD.get(name.rsplit(".", 1)[-1], _CUSTOM)
