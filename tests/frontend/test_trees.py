"""Containers of arrays: how they are taken apart, and what the arrays are called."""

from collections import OrderedDict
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster.frontend.trees import distinct, holds, taken_apart


class Pair(NamedTuple):
    w: Any
    b: Any


@dataclass
class Layer:
    w: Any
    scale: float = 2.0
    inner: Any = field(default_factory=dict)

    def __post_init__(self):
        assert self.w is not None


def values():
    leaves = st.integers() | st.text(max_size=3) | st.none() | st.floats(allow_nan=False)
    several = lambda parts: (  # noqa: E731
        st.lists(parts, max_size=3)
        | st.tuples(parts, parts)
        | st.dictionaries(st.text(max_size=2), parts, max_size=3)
        | st.builds(Pair, parts, parts)
        | st.builds(Layer, parts.filter(lambda part: part is not None), inner=parts)
    )
    return st.recursive(leaves, several, max_leaves=12)


@given(values())
def test_a_value_is_put_together_again_and_its_steps_lead_to_the_leaves(value):
    leaves, tree = taken_apart(value, lambda part: isinstance(part, str))

    assert tree.build(iter([leaf.value for leaf in leaves])) == value
    for leaf in leaves:
        found = value
        for step in leaf.steps:
            found = step(found)
        assert found is leaf.value
        assert holds(value, lambda part, leaf=leaf: part is leaf.value)


@given(st.lists(st.sampled_from(["a", "a_", "b", "a__"])))
def test_distinct_words_stay_what_they_are_where_they_can(words):
    names = distinct(words)

    assert len(set(names)) == len(words)
    assert all(
        name.rstrip("_") == word.rstrip("_") for name, word in zip(names, words, strict=True)
    )


def test_a_container_that_holds_itself_ends():
    cycle: list[Any] = []
    cycle.append(cycle)

    assert not holds(cycle, lambda part: part == "x")
    with pytest.raises(ValueError, match="too deep"):
        taken_apart(cycle, lambda part: False)


def test_inputs_are_called_by_their_paths():
    def function(params, layer, pair, x, *more):
        y = x @ params["w"] + params["b"][0] * layer.w * layer.scale + pair.w * pair.b
        return {"y": y, "both": (more[0] * more[1], Pair(y, layer.inner["u"] * 2.0))}

    program = bb.trace(
        function,
        params={"w": "K N", "b": ("N",)},
        layer=Layer("N", 3.0, OrderedDict(u="N")),
        pair=Pair("N", "N"),
        x="M K",
        more=("A", "A"),
    )
    assert [given.name for given in program.inputs] == [
        "params_w", "params_b_0", "layer_w", "layer_inner_u", "pair_w", "pair_b", "x",
        "more_0", "more_1",
    ]  # fmt: skip
    assert [o.name for o in program.outputs] == ["y", "both_0", "both_1_0", "both_1_1"]


def test_names_that_meet_are_told_apart():
    program = bb.trace(lambda params_w, params: params_w + params["w"], params_w="M",
                       params={"w": "M"})  # fmt: skip

    assert [given.name for given in program.inputs] == ["params_w", "params_w_"]


def test_keywords_of_all_kinds():
    def function(x, /, y, *, z=None, **more):
        return x + y + z + more["q"]

    program = bb.trace(function, x="M", y="M", z="M", q="M")
    arrays = {name: np.full(2, 10.0**n) for n, name in enumerate("xyzq")}
    np.testing.assert_array_equal(program.numpy(arrays)["out"], [1111.0, 1111.0])


def test_methods_and_partial_functions():
    class Model:
        def __init__(self, scale):
            self.scale = scale

        def run(self, x, by):
            return x * self.scale * by

    program = bb.trace(partial(Model(3.0).run, by=2.0), x="M")
    np.testing.assert_array_equal(program.numpy({"x": [1.0]})["out"], [6.0])


@pytest.mark.parametrize(("inputs", "message"), [
    ({"x": {"w": "M 0"}}, r"input x\['w'\]: '0' in 'M 0' is no dim"),
    ({"x": Pair("M", object())}, r"input x.b: an object is neither a dim string nor an array"),
    ({"x": [np.ones(2, complex)]}, r"input x\[0\]: "),
])  # fmt: skip
def test_errors_show_the_path(inputs, message):
    with pytest.raises(bb.TraceError, match=message):
        bb.trace(lambda x: x, **inputs)


@pytest.mark.parametrize(("result", "message"), [
    ([], "returned no array"),
    ({"a": {0: object()}}, "an array under the key 0"),
    ({"a": (1.0, object())}, "returned an object for a_1"),
    ((None, {"a": 1}), "returned no array"),
    (None, "returned None for out"),
])  # fmt: skip
def test_results_that_are_no_arrays(result, message):
    with pytest.raises(bb.TraceError, match=message):
        bb.trace(lambda x: result, x="M")


@pytest.mark.parametrize("constant", [None, True, 1, 1.0, -0.0, 2j])
def test_constants_beside_arrays_are_results_as_they_are(constant):
    jitted = bb.jit(lambda x, beside: {"y": x + 1, "z": [beside, x, (beside,)]})
    for beside in (constant, 0.0, constant):
        made = jitted(np.zeros(2), beside)
        np.testing.assert_array_equal(made["y"], [1.0, 1.0])
        np.testing.assert_array_equal(made["z"][1], [0.0, 0.0])
        assert repr(made["z"][::2]) == repr([beside, (beside,)])


@pytest.mark.parametrize(("returned", "message"), [
    (lambda x: (x, f"{x.shape[0]}"), "returned a str for out1"),
    (lambda x: (x, x.shape[0]), "returned a size for out1"),
    (lambda x: {"x": x, "shape": x.shape}, "returned a size for shape"),
], ids=["text", "size", "shape"])  # fmt: skip
def test_what_sizes_make_is_no_result(returned, message):
    for traced in (lambda: bb.trace(returned, x="M"), lambda: bb.jit(returned)(np.zeros(2))):
        with pytest.raises(bb.TraceError, match=message):
            traced()


def test_numbers_made_of_sizes_are_those_of_each_call():
    jitted = bb.jit(lambda x: (x, len(x), float(x.shape[0]), x.shape[0] > 2))
    for count in (2, 3, 2):
        assert jitted(np.zeros(count))[1:] == (count, count, count > 2)


@pytest.mark.parametrize("returned", [lambda x: (x, 1), lambda x: (x, (None, [x + 1, 2j]))])
def test_traced_programs_have_no_place_for_constants(returned):
    with pytest.raises(bb.TraceError, match=r"returned (1|None) beside arrays"):
        bb.trace(returned, x="M")
