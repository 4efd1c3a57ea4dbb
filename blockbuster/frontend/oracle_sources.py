"""The text of the oracle's own functions (numerics.py), copied without types and decorators.

A text that has to compute the same as the oracle takes its functions from here, so there is no
second version of a function that could differ from the first.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping, Sequence
from functools import cache

from blockbuster.frontend import numerics

ADDED: Mapping[str, str] = {
    "matmul": '''\
def matmul(a, b):
    """a @ b; float16 is multiplied and added up in float32, as libraries do."""
    if a.dtype == b.dtype == np.float16:
        return np.matmul(a.astype(np.float32), b.astype(np.float32)).astype(np.float16)
    return np.matmul(a, b)
''',
    "rounded": '''\
def rounded(x, to, dtype):
    """x rounded to a dtype of floats, and held in ``dtype`` where that is wider."""
    found = cast(x, dtype=to)
    return found.astype(np.result_type(found, dtype))
''',
    "quotient": '''\
def quotient(x, y, over_zero):
    """x // y of integers; ``over_zero`` where y is 0: there is no quotient."""
    return np.where(np.equal(y, 0), over_zero, np.floor_divide(x, y))
''',
    "remainder": '''\
def remainder(x, y, over_zero):
    """x % y of integers; ``over_zero`` where y is 0."""
    return np.where(np.equal(y, 0), over_zero, np.mod(x, y))
''',
}
"""What texts call in place of the oracle's own, because they run in narrow dtypes, too."""


@cache
def definitions() -> Mapping[str, str]:
    """The text of each function and value that the oracle defines or ``ADDED`` has, by name."""
    found: dict[str, ast.AST] = {}
    for node in ast.parse(inspect.getsource(numerics)).body:
        if isinstance(node, ast.FunctionDef):
            found[node.name] = _Plain().visit(node)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found[node.targets[0].id] = node
    return {**{name: ast.unparse(node) + "\n" for name, node in found.items()}, **ADDED}


class _Plain(ast.NodeTransformer):
    """Removes types and decorators: only the function that calls all others has a decorator."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """A function without types and decorators."""
        self.generic_visit(node)
        node.decorator_list, node.returns = [], None
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        """An argument without its type."""
        node.annotation = None
        return node


def sources(names: Sequence[str]) -> list[str]:
    """The texts of functions, each behind those that it reads."""
    known, found = definitions(), dict[str, str]()

    def define(name: str) -> None:
        """Add the definitions that ``name`` reads, then its own."""
        tree = ast.parse(known[name])
        read = (node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
        for word in dict.fromkeys(read):
            if word in known and word not in (name, *found):
                define(word)
        found.setdefault(name, known[name])

    for name in names:
        define(name)
    return [*found.values()]
