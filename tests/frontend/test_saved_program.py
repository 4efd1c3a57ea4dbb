"""Array programs as JSON: equal when read again, and nothing is read that cannot be run."""

import json
import random
from contextlib import suppress
from copy import deepcopy

import numpy as np
import pytest

import blockbuster.frontend as bb
from blockbuster.errors import TraceError
from blockbuster.frontend.protocols import AlongAxis
from blockbuster.frontend.saved_program import program_to_json, read_program
from blockbuster.ir.fitting import fitted
from blockbuster.ir.lengths import completed
from blockbuster.ir.reading import Wrong
from blockbuster.testing.arrays import random_array_function, random_norm_function
from tests.frontend.programs import PROGRAMS

CLASSES = {"AlongAxis": AlongAxis}
NO_NAME = ("custom with unit axis",)
"""Its function is a lambda."""


def as_data(program):
    return json.loads(json.dumps(program_to_json(program, CLASSES)))


def again(program):
    return read_program(as_data(program), CLASSES)


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in NO_NAME])
def test_what_is_read_is_equal(name):
    function, inputs = PROGRAMS[name]
    program = bb.trace(function, **inputs)
    found = again(program)
    assert found == program
    assert as_data(found) == as_data(program)


def test_random_programs_are_equal_when_read():
    choose = random.Random(3)
    for number in range(300):
        make = random_array_function if number % 3 else random_norm_function
        function = make(choose)
        program = bb.trace(function, **function.inputs)
        assert again(program) == program, function


EXAMPLES = [
    (lambda x, y: x + y, (4, 1), (1, 5)),
    (lambda x, y: x @ y, (4, 1), (1, 5)),
    (lambda x, y: (x * np.ones((1, 1, 1))).sum() + y, (4, 5), (3,)),
    (lambda x, y: bb.rms_norm(x, 2.0) + bb.layer_norm(y, None, y[0]), (4, 6), (4, 6)),
    (lambda x, y: bb.where(x < y, -np.inf, np.nan) + -0.0 * y.shape[1] ** -0.5, (4, 6), (4, 6)),
    (lambda x, y: np.sort(x, axis=0) + y[0], (4, 6), (4, 6)),
    (lambda x, y: x[:, None, 0] + y[1:2, ::], (4, 6), (4, 1)),
    (lambda x, y: bb.split_heads(x, 6) + y, (4, 6), (6, 4, 1)),
    (lambda x, y: bb.concat([x, y], axis=0).sum(0) * bb.arange(x.shape[1]), (1, 6), (1, 6)),
    (lambda x, y: bb.arange(x.shape[0]) + y.max(axis=(0, 1)), (1, 6), (1, 6)),
    (lambda x, y: x.astype("bfloat16").T.mean(keepdims=1) + y * True, (1, 6), (1, 6)),
]


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_programs_of_example_arrays_are_equal_when_read(number):
    function, *shapes = EXAMPLES[number]
    x, y = (np.ones(shape, "float32") for shape in shapes)
    program = bb.trace(function, x=x, y=y)
    assert again(program) == program


def test_a_function_without_a_name_is_not_saved():
    program = bb.trace(lambda x: bb.custom(lambda a: a, x, shape=x.shape), x="M N")
    with pytest.raises(ValueError, match=r"the function <lambda> cannot be saved"):
        program_to_json(program, CLASSES)


STRANGE = (
    None, True, False, 0, 1, -1, 7, 10**30, 1.5, "", "x", "M", "?", "\ud800", [], {}, [[]], [None],
    [0, 0], [-1, 0], [9, 9], {"scalar": [{"number": "nan"}]}, {"number": 1}, {"size": "M"},
    {"scalar": [{"size": "M"}, {"number": "1.0"}, {"call": "add"}]}, {"call": "os.system"},
    {"scalar": [{"call": "exp"}]}, {"scalar": [{"size": "no"}]}, {"scalar": []},
    {"import": ["os", "system"]}, "matmul", "exp", "float16", "mask", [[["M"], 1, 1]],
)  # fmt: skip


def places(value, path=()):
    if path:
        yield path
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(item, (*path, key))


def changed(data, path, change):
    data = deepcopy(data)
    at = data
    for key in path[:-1]:
        at = at[key]
    change(at, path[-1])
    return data


def changes(choose):
    for value in choose.sample(STRANGE, 5):
        yield lambda at, key, value=value: at.__setitem__(key, value)
    yield lambda at, key: at.__delitem__(key)
    yield lambda at, key: at.append(at[key]) if isinstance(at, list) else None
    yield lambda at, key: at.__setitem__("more", 1) if isinstance(at, dict) else None


FUZZED = ("causal", "decoder", "every scalar function", "sort", *list(PROGRAMS)[-4:])


@pytest.mark.parametrize("name", FUZZED)
def test_every_change_is_refused_or_can_be_run(name):
    """What is read gives arrays of the shapes that it states: ``numpy`` looks at each.

    Of slices, reshapes and joins only sizes tell how long they are.
    """
    function, inputs = PROGRAMS[name]
    data = as_data(bb.trace(function, **inputs))
    choose = random.Random(0)
    outcomes = {True: 0, False: 0}
    every = [*places(data)]
    for place in choose.sample(every, min(len(every), 40)):
        for change in changes(choose):
            try:
                program = read_program(changed(data, place, change), CLASSES)
            except Wrong as error:
                said = str(error)
                outcomes[False] += 1
                assert said.isprintable()
                continue
            outcomes[True] += 1
            assert as_data(program) is not None
            str(program)
            run(program)
    assert outcomes[False] > outcomes[True] > 0


def run(program):
    sizes = {dim: program.sizes.get(dim, 6) for i in program.inputs for dim in i.shape}
    try:
        sizes = completed(fitted(sizes, program.rules), program.rules)
    except (ValueError, KeyError):  # no sizes keep the rules
        return
    shapes = {i.name: [1 if a == 1 else sizes[a] for a in i.shape] for i in program.inputs}
    ops = [equation.op for equation in program.equations]
    if "custom" in ops:  # another function: it may do anything
        return
    arrays = {name: np.ones(shape) for name, shape in shapes.items()}
    if {*ops} & {"slice", "reshape", "concat"}:
        with suppress(ValueError):
            program.numpy(arrays)
        return
    program.numpy(arrays)


BASE = as_data(bb.trace(lambda x, y: (x @ y) * x.shape[1] ** -0.5, x="M K", y="K N"))


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("equations", 0, "op"), "os", r"equations\[0\]\.op is 'os', expected one of"),
        (("equations", 0, "operands", 1), [0, 0], r"equations\[0\] reads \[0, 0\], which is not"),
        (("equations", 0, "operands", 0), [-1, 1], r"equations\[0\] is none: .* differ"),
        (("equations", 0, "operands"), [[-1, 0]], r"equations\[0\] matmul has 1 operands"),
        (("equations", 0, "operands", 0), None, r"equations\[0\] matmul lacks an array"),
        (("equations", 0, "shape"), ["M", "K"], r"equations\[0\] matmul has the shape"),
        (("equations", 0, "params"), {"axis": 1}, r"equations\[0\]\.params\.axis is nothing"),
        (("inputs", 0, 0), "y", r"inputs has a name twice"),
        (
            ("equations", 1, "operands", 1),
            {"scalar": [{"size": "Q"}]},
            r"equations\[1\] has the dim 'Q', whose",
        ),
        (("equations", 1, "operands", 1), {"scalar": [{"number": "1e0"}]}, "text 1.0"),
        (("outputs", 0, 1), [2, 0], r"outputs reads \[2, 0\]"),
        (("outputs",), [], r"outputs has a name twice, or none"),
    ],
)
def test_what_is_no_program(path, value, message):
    with pytest.raises(Wrong, match=message):
        read_program(changed(BASE, path, lambda at, key: at.__setitem__(key, value)), CLASSES)


def test_expressions_are_no_larger_than_tracing_makes_them():
    for count, more in ((100, {"call": "neg"}), (50, {"number": "2.0"})):
        parts = [{"size": "M"}, *[more, *([{"call": "add"}] if "number" in more else [])] * count]
        data = changed(BASE, ("equations", 1, "operands", 1), put({"scalar": parts}))
        assert as_data(read_program(data, CLASSES)) == data
    parts += [{"call": "exp"}] * 51
    with pytest.raises(Wrong, match=r"operands\[1\] is .* expected one expression of at most 100"):
        read_program(
            changed(BASE, ("equations", 1, "operands", 1), put({"scalar": parts})), CLASSES
        )

    def grown(x):
        size = x.shape[0]
        for _ in range(7):
            size = size + size
        return x * size

    with pytest.raises(TraceError, match="more than 100 operators"):
        bb.trace(grown, x="M")


def put(value):
    return lambda at, key: at.__setitem__(key, value)
