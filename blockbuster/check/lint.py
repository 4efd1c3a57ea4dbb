"""A check of any Triton source text for the race in Triton's software pipeliner.

In a pipelined loop, a tile that feeds ``tl.dot`` from shared memory must have no other use. If it
has one, its ring of buffers is one slot short: the copy of a later tile lands where the matrix
units still read. Nothing reports it, and the error changes from run to run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

_SAME_TILE = ("trans", "permute", "T", "transpose")  # another view of the same shared memory


@dataclass(frozen=True)
class Finding:
    """A tile that feeds a dot and something else in a loop that may be pipelined."""

    function: str
    line: int
    tile: str
    uses: tuple[int, ...]

    def __str__(self) -> str:
        lines = ", ".join(map(str, self.uses))
        return (
            f"line {self.line}: {self.function}: {self.tile} feeds tl.dot in a pipelined loop and"
            f" is also used in line {lines}: the pipeliner may overwrite it while the matrix units"
            " read it; compute what else needs it in another kernel, or launch with num_stages=1"
        )


def lint(source: str) -> tuple[Finding, ...]:
    """The findings in the kernels of a module, given as text; raises SyntaxError.

    Loops that say no number of stages are not pipelined where the module launches their kernel with
    ``num_stages=1``, and only so.

    >>> lint("def kernel(X): return X")
    ()
    """
    module = ast.parse(source)
    functions = {f.name: f for f in ast.walk(module) if isinstance(f, ast.FunctionDef)}
    loaders = tuple(name for name, f in functions.items() if _returns_load(f))
    stages = _stages(module)
    found: list[Finding] = []
    for name, function in functions.items():
        single = stages.get(name) == {1}
        for loop in ast.walk(function):
            if isinstance(loop, ast.For) and _pipelined(loop, single):
                found += _Loop(name, loop, loaders).findings()
    return tuple(sorted(set(found), key=lambda finding: finding.line))


def _stages(module: ast.Module) -> dict[str, set[object]]:
    """Per launched kernel, the values of ``num_stages``; None if a launch does not say."""
    found: dict[str, set[object]] = {}
    for call in ast.walk(module):
        match call:
            case ast.Call(func=ast.Subscript(value=ast.Name(name)), keywords=keywords):
                given = [k.value for k in keywords if k.arg == "num_stages"]
                constant = given and isinstance(given[0], ast.Constant)
                value = given[0].value if constant else None  # type: ignore[attr-defined]
                found.setdefault(name, set()).add(value)
    return found


def _pipelined(loop: ast.For, single: bool) -> bool:
    """True unless the loop is unrolled or has one stage, as a launch with a ``single`` one says."""
    if not isinstance(loop.iter, ast.Call) or _name(loop.iter.func) != "range":
        return False
    stages = [k.value for k in loop.iter.keywords if k.arg == "num_stages"]
    if not stages:
        return not single
    return not (isinstance(stages[0], ast.Constant) and stages[0].value == 1)


def _name(node: ast.expr) -> str:
    """The last word of a dotted name."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _returns_load(function: ast.FunctionDef) -> bool:
    return any(
        isinstance(n, ast.Return) and n.value is not None and any(map(_is_load, ast.walk(n.value)))
        for n in ast.walk(function)
    )


def _is_load(node: ast.AST, loaders: tuple[str, ...] = ()) -> bool:
    return isinstance(node, ast.Call) and _name(node.func) in ("load", *loaders)


class _Loop:
    def __init__(self, function: str, loop: ast.For, loaders: tuple[str, ...]) -> None:
        self._function, self._loop, self._loaders = function, loop, loaders
        self._parents = {c: p for p in ast.walk(loop) for c in ast.iter_child_nodes(p)}

    def findings(self) -> Iterator[Finding]:
        """One per tile; equal loads are one tile, since the compiler merges them."""
        tiles: dict[str, list[ast.AST]] = {}
        for node in ast.walk(self._loop):
            if _is_load(node, self._loaders):
                tiles.setdefault(ast.dump(node), []).append(node)
        for loads in tiles.values():
            uses = [use for load in loads for use in self._uses(load)]
            others = [use for use in uses if not self._feeds_dot(use)]
            if len(others) < len(uses) and others:
                lines = tuple(sorted({_line(use) for use in others}))
                yield Finding(self._function, _line(loads[0]), self._shown(loads[0]), lines)

    def _uses(self, load: ast.AST) -> Iterator[ast.AST]:
        """Where the value of a load is read: the load itself, or the variable that holds it."""
        parent = self._parents.get(load)
        if not isinstance(parent, ast.Assign | ast.AnnAssign):
            yield load
            return
        names = {n.id for n in ast.walk(parent) if _stored(n)}  # type: ignore[attr-defined]
        for node in ast.walk(self._loop):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names:
                yield node

    def _feeds_dot(self, use: ast.AST) -> bool:
        """True if a use is as an operand of a dot, as it is or seen transposed."""
        parent = self._parents.get(use)
        while isinstance(parent, ast.Attribute | ast.Call) and self._is_view(parent, use):
            use, parent = parent, self._parents.get(parent)
        if not (isinstance(parent, ast.Call) and _name(parent.func) in ("dot", "dot_scaled")):
            return False
        return use in parent.args[:2]

    def _is_view(self, node: ast.Attribute | ast.Call, inner: ast.AST) -> bool:
        if isinstance(node, ast.Attribute):
            return node.attr in _SAME_TILE
        return _name(node.func) in _SAME_TILE and (inner in node.args[:1] or inner is node.func)

    def _shown(self, load: ast.AST) -> str:
        parent = self._parents.get(load)
        if isinstance(parent, ast.Assign):
            return ast.unparse(parent.targets[0])
        return "a loaded tile"


def _stored(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _line(node: ast.AST) -> int:
    return int(getattr(node, "lineno", 0))
