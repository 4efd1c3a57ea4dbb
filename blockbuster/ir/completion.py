"""``completed`` (lengths.py) compiled to one function for a program's rules.

Every call at a new size evaluates it, so it has to be fast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from blockbuster.ir.formula import function_of, product_of, sum_of
from blockbuster.ir.length_symbols import Clamp, Symbol
from blockbuster.ir.lengths import Length, Rule, in_order
from blockbuster.ir.types import Dim

Complete = Callable[[Sequence[int]], tuple[tuple[int, ...], bool]]
"""All sizes for those that are given, and whether they keep the rules."""


def completion(places: Mapping[Dim, int], rules: Iterable[Rule]) -> tuple[Sequence[Dim], Complete]:
    """The dims (size classes) whose sizes are known or follow, and the function that gives them for
    a sequence in which the sizes of some stand at ``places``.

    >>> from blockbuster.ir.lengths import size, whole
    >>> dims, complete = completion({"N": 0}, [Rule("T", size("N") - whole(3))])
    >>> dims, complete([5]), complete([2])
    (('N', 'T'), ((5, 2), True), ((2, -1), False))
    """
    names = {dim: f"n{number}" for number, dim in enumerate(places)}
    made = [f"({names[dim]} := e[{place:d}])" for dim, place in places.items()]
    tests: list[str] = []
    for rule in in_order(rules, names):
        value, divisor = total_of(rule.length, names, tests)
        if divisor != "1":
            tests.append(f"{value} % {divisor} == 0")
            value = f"({value} // {divisor})"
        relation = f"== {value} >= 0" if rule.exact else f">= {value}"
        if rule.dim not in names:
            names[rule.dim], relation = f"n{len(names)}", ">= 0"
            made.append(f"({names[rule.dim]} := {value})")
        tests.append(f"{names[rule.dim]} {relation}")
    text = f"lambda e: (({' '.join(f'{one},' for one in made)}), {' and '.join(tests) or True})"
    return tuple(names), function_of(text, "sizes that follow")


def total_of(
    length: Length, names: Mapping[Dim, str], tests: list[str] | None = None
) -> tuple[str, str]:
    """A length as a whole number over another one, in terms of the names of sizes.

    ``tests`` takes the conditions that clamps in it have to be whole, and divisors at least 1.
    """

    def word(symbol: Symbol) -> str:
        if isinstance(symbol, str):
            return names[symbol]
        assert isinstance(symbol, Clamp), "the divisors stand in `under`"
        total, by = total_of(symbol.of, names, tests)
        if by != "1" and not symbol.rounds and tests is not None:
            tests.append(f"{total} % {by} == 0")
        rounded = total if by == "1" else f"-(-{total} // {by})"
        return f"({rounded} if {total} > 0 else 0)"  # `max` is a name: the formula reads none

    def added(one: Length) -> str:
        return sum_of([product_of(int(n), [*map(word, found)]) for found, n in one.terms])

    top, under = length.fraction
    if under.constant is not None:
        return added(top), str(under.constant)
    divisor = added(under)
    if tests is not None:
        tests.append(f"{divisor} > 0")
    return added(top), f"({divisor} or 1)"  # 1: the number is computed before the tests
