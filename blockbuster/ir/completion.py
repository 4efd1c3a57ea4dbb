"""``completed`` (lengths.py) compiled to one function for a program's rules.

Every call at a new size evaluates it, so it has to be fast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from blockbuster.ir.formula import function_of, product_of, sum_of
from blockbuster.ir.lengths import Clamp, Length, Rule, Symbol, in_order
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
        if divisor != 1:
            tests.append(f"{value} % {divisor:d} == 0")
            value = f"({value} // {divisor:d})"
        relation = f"== {value} >= 0" if rule.exact else f">= {value}"
        if rule.dim not in names:
            names[rule.dim], relation = f"n{len(names)}", ">= 0"
            made.append(f"({names[rule.dim]} := {value})")
        tests.append(f"{names[rule.dim]} {relation}")
    text = f"lambda e: (({' '.join(f'{one},' for one in made)}), {' and '.join(tests) or True})"
    return tuple(names), function_of(text, "sizes that follow")


def total_of(
    length: Length, names: Mapping[Dim, str], tests: list[str] | None = None
) -> tuple[str, int]:
    """A length as a whole number over another one, in terms of the names of sizes.

    ``tests`` takes the conditions that clamps in it have to be whole.
    """
    terms, divisor = length.parts()

    def word(symbol: Symbol) -> str:
        if not isinstance(symbol, Clamp):
            return names[symbol]
        total, by = total_of(symbol.of, names, tests)
        if by != 1 and not symbol.rounds and tests is not None:
            tests.append(f"{total} % {by:d} == 0")
        rounded = total if by == 1 else f"-(-{total} // {by:d})"
        return f"({rounded} if {total} > 0 else 0)"  # `max` is a name: the formula reads none

    return sum_of([product_of(times, [*map(word, found)]) for times, found in terms]), divisor
