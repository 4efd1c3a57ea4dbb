"""Tiling expressions: the nesting and order of a chain's loops (MCFuser, section III-A).

``mhnk`` nests four loops, m outermost: *deep* tiling. In ``mn(k,h)`` the loop over k, then the loop
over h run inside n: *flat* tiling.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations, product

from blockbuster.errors import ParseError, message
from blockbuster.tiling.chain import Chain


@dataclass(frozen=True)
class Expression:
    """``loops`` nested, outermost first; inside the last, ``branches`` run one after the other."""

    loops: tuple[str, ...]
    branches: tuple[Expression, ...] = ()

    def __str__(self) -> str:
        group = f"({','.join(map(str, self.branches))})" if self.branches else ""
        return "".join(self.loops) + group

    @property
    def all(self) -> tuple[str, ...]:
        """All loops, in the order of the text."""
        return (*self.loops, *(loop for branch in self.branches for loop in branch.all))

    def path(self, loop: str) -> tuple[str, ...]:
        """The loops around ``loop``, outermost first, and itself."""
        if loop in self.loops:
            return self.loops[: self.loops.index(loop) + 1]
        branch = next(branch for branch in self.branches if loop in branch.all)
        return (*self.loops, *branch.path(loop))

    def without(self, loops: Collection[str]) -> Expression:
        """The expression with these loops removed; a lone branch is no branch."""
        kept = tuple(loop for loop in self.loops if loop not in loops)
        branches = tuple(b for b in (b.without(loops) for b in self.branches) if b.all)
        if len(branches) == 1:
            return Expression((*kept, *branches[0].loops), branches[0].branches)
        return Expression(kept, branches)


def parse_expression(text: str) -> Expression:
    """The expression that ``text`` shows. Raises ParseError, with a caret.

    >>> str(parse_expression("mn(k,h)"))
    'mn(k,h)'
    """
    found, end = _parsed(text, 0)
    if not found.all:
        raise _error("expected a loop", text, end)
    if end < len(text):
        raise _error("expected the end, a loop or '('", text, end)
    for position, letter in enumerate(text):
        if letter.isalpha() and letter in text[:position]:
            raise _error(f"the loop {letter} stands twice", text, position)
    return found


def expressions(chain: Chain) -> tuple[Expression, ...]:
    """All tiling expressions of a chain: deep ones in order of permutations, then flat ones.

    In a flat one, no operator uses loops of two branches, and branches stand in the order of the
    operators.
    """
    return (*deep(chain), *_grouped(chain.loops, chain))


def deep(chain: Chain) -> tuple[Expression, ...]:
    """The deep expressions alone: the space of the source's ablation (its Chimera variant)."""
    return tuple(map(Expression, permutations(chain.loops)))


def _grouped(loops: Sequence[str], chain: Chain) -> Iterator[Expression]:
    """The expressions over ``loops`` that have branches."""
    for length in range(len(loops) - 2, 0, -1):
        for outer in permutations(loops, length):
            parts = _apart([loop for loop in loops if loop not in outer], chain)
            for blocks in _partitions(parts):
                if len(blocks) > 1:
                    inner = (tuple(_over(block, chain)) for block in blocks)
                    yield from (Expression(outer, branches) for branches in product(*inner))


def _over(loops: Sequence[str], chain: Chain) -> Iterator[Expression]:
    yield from map(Expression, permutations(loops))
    yield from _grouped(loops, chain)


def _apart(loops: Sequence[str], chain: Chain) -> list[tuple[str, ...]]:
    """``loops`` in groups that no operator ties, in the order of the operators that use them."""
    groups: list[tuple[str, ...]] = []
    for operator in chain.operators:
        mine = [loop for loop in operator.loops if loop in loops]
        met = [group for group in groups if set(group) & set(mine)]
        joined = dict.fromkeys((*(loop for group in met for loop in group), *mine))
        at = groups.index(met[0]) if met else len(groups)
        groups = [group for group in groups if group not in met]
        if joined:
            groups.insert(at, tuple(joined))
    return groups


def _partitions(parts: Sequence[tuple[str, ...]]) -> Iterator[tuple[tuple[str, ...], ...]]:
    """All ways to put ``parts`` into blocks, each a tuple of loops; the first part leads."""
    if not parts:
        yield ()
        return
    first, rest = parts[0], parts[1:]
    for count in range(len(rest) + 1):
        for chosen in combinations(range(len(rest)), count):
            block = (*first, *(loop for at in chosen for loop in rest[at]))
            others = [part for at, part in enumerate(rest) if at not in chosen]
            yield from ((block, *blocks) for blocks in _partitions(others))


def _parsed(text: str, start: int) -> tuple[Expression, int]:
    end = start
    while end < len(text) and text[end].isalpha():
        end += 1
    loops, branches = tuple(text[start:end]), []
    if text[end : end + 1] == "(":
        closing = "("
        while closing in "(,":
            branch, end = _parsed(text, end + 1)
            if not branch.all:
                raise _error("expected a loop", text, end)
            branches.append(branch)
            closing = text[end : end + 1] or " "
        if closing != ")" or len(branches) < 2:
            raise _error("expected ',' and another branch, or ')'", text, end)
        end += 1
    return Expression(loops, tuple(branches)), end


def _error(reason: str, text: str, position: int) -> ParseError:
    what = f"cannot read a tiling expression: {reason}"
    hint = "mhnk nests loops; mn(k,h) runs k, then h, inside n"
    return ParseError(message(what, listing=f"{text}\n{' ' * position}^", hint=hint))
