"""Adjacent axes that no operator tells apart, as one: kernels get long axes in place of short ones.

    x: (A, B, C, D)                               x: (A, E)    with E = B * C * D
    layer norm over the last three axes           layer norm over E

Kernels hold blocks of the last two axes, whose lengths are padded to powers of two, and run loops
over all others. One axis in place of several has no short loops, and is padded once; where rows of
odd length become one axis, loads are as wide as those of even rows. ``merged`` only changes the
program; runtime/merged_arrays.py views the arrays of a call accordingly.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from blockbuster.frontend.merging import Apart, Merging, Pair
from blockbuster.frontend.plain_folds import with_plain_folds
from blockbuster.frontend.program import ArrayOutput, ArrayProgram, Equation, Shape
from blockbuster.frontend.regrouping import parts_of
from blockbuster.frontend.reshaped_axes import with_own_axes
from blockbuster.ir.expr import FUNCTIONS
from blockbuster.ir.garbage import collection_paused
from blockbuster.ir.lengths import Length, Rule, in_order, size, whole
from blockbuster.ir.types import Dim

Groups = tuple[int, ...]
"""For each axis of an array in a merged program: how many axes of the original it stands for."""


@dataclass(frozen=True)
class Merged:
    """A program with merged axes, and the axes that merged in its inputs and outputs.

    It computes what the original does, of arrays that are viewed so. It accepts some sizes that the
    original refuses, so the sizes of a call are first checked for that.
    """

    program: ArrayProgram
    inputs: tuple[Groups, ...]
    outputs: tuple[Groups, ...]


@collection_paused()
def merged(program: ArrayProgram, whole_inputs: Sequence[str] = ()) -> Merged | None:
    """The program with as few axes as its operators allow; None if nothing merges. Axes of
    ``whole_inputs``, arrays that must not be viewed, stay apart.

    >>> from blockbuster.frontend.trace import trace
    >>> print(merged(trace(lambda x, w: x @ w, x="B S K", w="K N")).program)
    lambda(x: (BS, K), w: (K, N)) {
      t0: (BS, N) = matmul(x, w)
      return t0
    }
    <BLANKLINE>
    """
    plain = with_plain_folds(program)
    own, old = with_own_axes(plain)
    found = _merged(own, old, whole_inputs) if old else None
    return found or _merged(plain, {}, whole_inputs)


def _merged(
    plain: ArrayProgram, old: Mapping[Dim, Dim], whole_inputs: Sequence[str]
) -> Merged | None:
    """The same for plain folds. ``old``: names of dims that go first, and get these if they stay.

    With ``old``, None also if a reshape then cuts across axes, which takes a copy.
    """
    found = Merged(
        plain,
        tuple((1,) * len(given.shape) for given in plain.inputs),
        tuple((1,) * len(plain.shape_of(output.value)) for output in plain.outputs),
    )
    kept = (given.shape for given in plain.inputs if given.name in whole_inputs)
    refused = {pair: None for shape in kept for pair in pairwise(shape)}
    while True:
        better = next(_merges(found, refused, old), None)
        if better is None:
            break
        found = better
    if found.program is plain:
        return None
    if old and not all(_nests(found.program, one) for one in found.program.equations):
        return None
    return replace(found, program=_renamed(found.program, old))


def _nests(program: ArrayProgram, equation: Equation) -> bool:
    """False for a reshape that does not just split axes and join others."""
    if equation.op != "reshape":
        return True
    (x,) = equation.arrays
    length_of = lengths_of(program)
    before, after = (
        [length_of(axis) for axis in shape if isinstance(axis, str)]
        for shape in (program.shape_of(x), equation.shape)
    )
    parts = parts_of(before, after)
    return parts is not None and all(
        part.length in (before[part.old], after[part.new]) for part in parts
    )


def _renamed(program: ArrayProgram, old: Mapping[Dim, Dim]) -> ArrayProgram:
    """The program with the old names of dims that did not merge. The size of such a dim is told
    once more only where the dim of that name has merged.
    """
    equations = tuple(
        replace(one, shape=tuple(old.get(a, a) if isinstance(a, str) else a for a in one.shape))
        for one in program.equations
    )
    told = program.dims
    fixed = {old.get(d, d): n for d, n in program.fixed_sizes if old.get(d) not in told}
    rules = {
        replace(rule, dim=old.get(rule.dim, rule.dim)): None
        for rule in program.rules
        if old.get(rule.dim) not in told
    }
    return _without_lost_sizes(
        replace(program, equations=equations, fixed_sizes=tuple(fixed.items()), rules=tuple(rules))
    )


def _without_lost_sizes(program: ArrayProgram) -> ArrayProgram:
    """The program without the sizes of dims that no array has any more: only what nobody reads had
    them, and what is known of such sizes is not known of the dims that merged.
    """
    live = {*program.dims, *(dim for one in program.equations for dim in one.dims_read)}
    live.update(d for rule in program.rules if rule.dim in live for d in rule.length.dims)
    return replace(
        program,
        fixed_sizes=tuple(one for one in program.fixed_sizes if one[0] in live),
        rules=tuple(rule for rule in program.rules if rule.dim in live),
    )


def _merges(
    found: Merged, refused: dict[tuple[int | Dim, int | Dim], None], sooner: Container[Dim]
) -> Iterator[Merged]:
    """The program with one more pair merged, for each pair that merges: the last axes first, but
    those with a dim of ``sooner`` before all others.
    """
    pairs, length_of = _pairs(found.program), lengths_of(found.program)
    lengths, kept = {dim: length_of(dim) for dim in found.program.dims}, _kept(found.program)
    for pair in sorted(pairs, key=lambda pair: not any(dim in sooner for dim in pair)):
        if pair not in refused:
            try:
                for shape in {**kept[pair[0]], **kept[pair[1]]}:
                    Pair(*pair, "").places(shape)
                yield _with_pair(found, _named(found.program, lengths, *pair))
            except Apart:
                refused[pair] = None


def _kept(program: ArrayProgram) -> Mapping[Dim, dict[Shape, None]]:
    """For each dim the shapes with it that merge only as a whole: of inputs, and of what scalar
    functions compute. Most pairs are told apart there, before anything is written anew.
    """
    found: dict[Dim, dict[Shape, None]] = {dim: {} for dim in program.dims}
    pointwise = (one.shape for one in program.equations if one.op in FUNCTIONS)
    for shape in dict.fromkeys((*(one.shape for one in program.inputs), *pointwise)):
        for axis in shape:
            if isinstance(axis, str):
                found[axis][shape] = None
    return found


def _pairs(program: ArrayProgram) -> tuple[tuple[Dim, Dim], ...]:
    """The dims that stand side by side in a shape."""
    found: dict[tuple[Dim, Dim], None] = {}
    for shape in program.shapes:
        for first, second in reversed([*pairwise(shape)]):
            if isinstance(first, str) and isinstance(second, str) and first != second:
                found[first, second] = None
    return tuple(found)


def _named(program: ArrayProgram, lengths: Mapping[Dim, Length], first: Dim, second: Dim) -> Pair:
    """A pair with the name of the merged dim: that of a dim that is as long, or a new one.

    Numbers may be equal by chance: of two axes with numbers, a reshape has to make that dim, since
    dims of one name get blocks of one size. ``lengths``: of all dims of the program.
    """
    length = lengths[first] * lengths[second]
    for dim, other in lengths.items():
        if dim in (first, second) or other != length:
            continue
        if length.constant is None or _is_reshaped(program, (first, second), dim):
            return Pair(first, second, dim)
    name = f"{first}{second}"
    while name in lengths:
        name += "_"
    return Pair(first, second, name)


def _is_reshaped(program: ArrayProgram, pair: tuple[Dim, Dim], dim: Dim) -> bool:
    """True if a reshape has a pair side by side in one shape, and a dim instead in the other."""
    shapes = [
        (equation.shape, program.shape_of(equation.arrays[0]))
        for equation in program.equations
        if equation.op == "reshape"
    ]
    both = (*shapes, *((other, one) for one, other in shapes))
    return any(
        pair in pairwise(one) and dim in other and not {*pair} & {*other} for one, other in both
    )


def lengths_of(program: ArrayProgram) -> Callable[[Dim], Length]:
    """The function from a dim to its size, in terms of those that follow from no others."""
    fixed = program.sizes
    rules = {rule.dim: rule.length for rule in program.definitions}

    def of(dim: Dim, waiting: tuple[Dim, ...] = ()) -> Length:
        if dim in fixed:
            return whole(fixed[dim])
        if dim not in rules or dim in waiting:
            return size(dim)
        return rules[dim].replaced(lambda d: of(d, (*waiting, dim)))

    return of


def _with_pair(found: Merged, pair: Pair) -> Merged:
    """The program with a pair merged. Raises Apart if something tells the two dims apart."""
    program, merging = found.program, Merging(found.program, pair)
    merging.run()
    inputs = tuple(replace(i, shape=pair.merged(i.shape)) for i in program.inputs)
    outputs = tuple(ArrayOutput(o.name, merging.value(o.value)) for o in program.outputs)
    made = replace(
        program,
        inputs=inputs,
        equations=tuple(merging.equations),
        outputs=outputs,
        fixed_sizes=_fixed(program, pair),
        rules=_rules(program, pair),
    )
    _expect_sizes(made)
    taken = zip(found.inputs, program.inputs, strict=True)
    given = zip(found.outputs, program.outputs, strict=True)
    return Merged(
        made,
        tuple(_grouped(groups, pair.places(i.shape)) for groups, i in taken),
        tuple(_grouped(groups, pair.places(program.shape_of(o.value))) for groups, o in given),
    )


def _grouped(groups: Groups, places: tuple[int, ...]) -> Groups:
    """The groups of axes with those at each place and behind it as one."""
    found = list(groups)
    for place in reversed(places):
        found[place : place + 2] = [found[place] + found[place + 1]]
    return tuple(found)


def _fixed(program: ArrayProgram, pair: Pair) -> tuple[tuple[Dim, int], ...]:
    """The fixed sizes: that of a merged dim is fixed if both are."""
    sizes = program.sizes
    first, second = sizes.pop(pair.first, None), sizes.pop(pair.second, None)
    if first is not None and second is not None:
        sizes.setdefault(pair.name, first * second)
    return tuple(sizes.items())


def _rules(program: ArrayProgram, pair: Pair) -> tuple[Rule, ...]:
    """The rules about sizes that are left. Raises Apart if one reads the size of one dim alone.

    Rules about the two dims are the original's; what follows for their product stays.
    """
    both = (pair.first, pair.second)
    found: dict[Rule, None] = {}
    for rule in program.rules:
        if rule.dim in both or (rule.dim == pair.name and set(both) & set(rule.length.dims)):
            continue
        found[replace(rule, length=pair.length(rule.length))] = None
    defined = {rule.dim for rule in program.definitions}
    if pair.name not in program.dims and defined.issuperset(both):
        length_of = lengths_of(program)
        length = length_of(pair.first) * length_of(pair.second)
        if not set(both) & set(length.dims):
            found[Rule(pair.name, length)] = None
    return tuple(found)


def _expect_sizes(program: ArrayProgram) -> None:
    """Raise Apart if the size of a dim no longer follows from the inputs and the fixed sizes."""
    known = {axis for given in program.inputs for axis in given.shape if isinstance(axis, str)}
    known |= {*program.sizes}
    known |= {rule.dim for rule in in_order(program.rules, sorted(known)) if rule.exact}
    if not known.issuperset(program.dims):
        raise Apart("the size of a dim follows from those of two axes")
