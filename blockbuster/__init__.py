"""Blockbuster: array programs become fused kernels, step by step, each step proved and costed.

>>> import blockbuster as bb
>>> def gelu_of_product(x, w):
...     return bb.gelu(x @ w)
>>> graph = bb.lower(bb.trace(gelu_of_product, x="M K", w="K N"))
>>> derivation = bb.fuse(graph)
>>> [step.rule for step in derivation.steps]
['fuse-maps', 'fuse-maps', 'fuse-reduction']
"""

import ast
import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from blockbuster.version import VERSION

__version__ = VERSION

_OTHERS = [
    # array programs
    "trace", "lower", "ArrayProgram",
    # block programs, rules
    "Graph", "parse", "verify", "Rule", "PAPER_RULES", "RULES", "fuse", "Derivation", "safe",
    "materialize", "overflowing", "explain", "reasons", "repair", "Repair",
    # meaning and proof
    "evaluate", "Float16", "Float32", "Float64", "prove_equal", "Proof", "GraphTraffic",
    "check_rule", "RuleReport",
    # cost
    "traffic", "Traffic", "machine", "Machine", "simulate",
    # kernels
    "emit", "Kernel", "check_schedule", "check_kernel", "KernelReport",
    "jit", "compile", "select", "tune", "load", "Jitted", "Compiled", "Plan", "Fuser",
    "torch_backend",
    # errors
    "BlockbusterError", "TraceError", "VerifyError", "ParseError", "RuleError", "FusionError",
    "EmitError", "LaunchError", "DrawError",
]  # fmt: skip


def _modules() -> dict[str, str]:
    """The module of each public name, as `__init__.pyi` says: type checkers read the same file."""
    stub = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    found = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: f"{__name__}.{node.module}" for node in found for alias in node.names}


_MODULE = _modules()

_FUNCTIONS = f"{__name__}.frontend.functions."

__all__ = [*_OTHERS, *(name for name in _MODULE if _MODULE[name].startswith(_FUNCTIONS))]


class _Package(ModuleType):
    """This package: `bb.emit` stays the function when the package `emit` is imported."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _MODULE and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    """A public name, from its module, which is loaded when the name is first used."""
    if name not in _MODULE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(_MODULE[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
