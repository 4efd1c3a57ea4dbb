"""``completed`` (lengths.py) compiled to one function for a program's rules.

Every call at a new size evaluates it, so it has to be fast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from blockbuster.ir.formula import function_of, product_of, sum_of
from blockbuster.ir.lengths import Rule, in_order
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
        terms, divisor = rule.length.parts()
        value = sum_of([product_of(times, [names[dim] for dim in dims]) for times, dims in terms])
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
