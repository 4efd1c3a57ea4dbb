"""Parts that are equal but for names are lowered, fused, chosen and written once."""

import re
from dataclasses import replace

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.selection.considered import blocks_of
from blockbuster.selection.plans.equal_part import EqualPart, Firsts
from blockbuster.selection.plans.part import Dtypes, Part
from tests.interpreted import printed_by
from tests.selection.equal_layers import CASES, compiled


@pytest.fixture(scope="module")
def made():
    return {name: compiled(name) for name in CASES}


@pytest.fixture(scope="module")
def plans(made):
    return {name: one.plan for name, one in made.items()}


def test_values_are_right_at_sizes_that_differ_from_layer_to_layer():
    errors = printed_by("tests.selection.equal_layers")

    assert errors.keys() == CASES.keys()
    assert max(errors.values()) < 1e-5, errors


def test_layers_have_one_file(plans):
    files = plans["attending"].files
    texts = {file.text for file in files}

    assert len(texts) < len(files)
    assert plans["attending"].source.count("def launch(") == len(texts)


def test_sizes_of_a_layer_are_its_own(plans):
    second, third = (
        next(file for file in plans["feed forward"].files if name in file.reads)
        for name in ("w2", "w4")
    )

    assert second.text == third.text
    assert not second.named
    assert third.named == {"M": "M", "D": "D", "F1": "F2"}
    assert third.own({"M": 3, "D": 4, "F1": 6, "F2": 7}) == {"M": 3, "D": 4, "F1": 7}


def test_reports_name_the_arrays_of_each_layer(plans):
    plan = plans["feed forward"]
    said = re.findall(r"; reads ([^;]*); writes (\w+)", " ".join(plan.explain().split()))

    wanted = [(sorted(file.reads), *file.writes) for file in plan.files]
    assert [(sorted(reads.split(", ")), writes) for reads, writes in said] == wanted


def test_reports_are_made_at_the_sizes_of_a_call(made, plans):
    for name, one in made.items():
        sizes = {dim: 2 * size if dim == "M" else size for dim, size in plans[name].sizes.items()}
        said = [str(one.report), str(one.report_with(sizes=sizes))]
        assert all(file.writes[-1] in said[0] for file in plans[name].files)
        assert said[0] != said[1]


def test_weights_of_two_layers_are_two_arrays(plans):
    plan = plans["feed forward"]
    weights = 2 * sum(plan.sizes["D"] * plan.sizes[f"F{at}"] * 2 for at in range(3))
    rows = 2 * 2 * plan.sizes["M"] * plan.sizes["D"]

    for file in plan.files:
        used = {name for one in file.works for name in one.unique}
        assert {*file.reads, *file.writes} <= used
    for report in (bb.simulate(plan, "h100"), plan.cost("h100")):
        assert report.bytes["hbm"] >= weights + rows  # each weight, the input and the result


def test_classes_of_sizes_tell_blocks_of_each_layer(plans):
    divided = plans["feed forward"].divided

    assert {"F0", "F1", "F2"} <= {*divided.blocks()}
    assert {"F0", "F1", "F2"} <= {*divided.blocks(lambda one: blocks_of([one.best]))}
    (equal,) = (own for own in divided.parts if isinstance(own, EqualPart))
    assert equal.named({"M": (128,), "F1": (64,)}) == {"M": (128,), "F2": (64,)}


def test_equal_parts_take_the_same_time(plans):
    divided = plans["feed forward"].divided
    known = plans["feed forward"].sizes
    equal = [own for own in divided.parts if isinstance(own, EqualPart)]

    assert equal
    assert all(own.structure(known) == own.first.structure(own.own(known)) for own in equal)


def test_a_saved_program_keeps_whose_sizes_they_are(made, plans, tmp_path):
    again = bb.load(made["feed forward"].save(tmp_path / "saved.json")).plan

    assert [file.named for file in again.files] == [f.named for f in plans["feed forward"].files]
    assert any(file.named for file in again.files)


def firsts(*programs, constants=(), taken=()):
    """The parts of programs, of which each is cut from one whole."""
    known, made = Firsts(), []
    for program in programs:
        of = Dtypes("float16", {}, {}, {output.name: "float16" for output in program.outputs})
        of = replace(of, constants=constants)
        outputs = {output.name: output.value for output in program.outputs}
        made.append(known.part(program, of, outputs, taken))
    return made


def product(name, steps="relu", **inputs):
    ends = {"relu": lambda y: np.maximum(y, 0.0), "exp": np.exp}
    traced = bb.trace(lambda x, w: ends[steps](x @ w), **inputs)
    return replace(traced, outputs=(replace(traced.outputs[0], name=name),))


def test_arrays_and_dims_have_their_own_names():
    one, other = firsts(product("y", x="M K", w="K N"), product("z", x="R C", w="C S"))

    assert type(one) is Part
    assert isinstance(other, EqualPart)
    assert other.first is one
    assert other.fused is one.fused
    (step,) = other.pieces.steps
    assert step.writes == ("z",)
    assert other.pieces.inputs == {"x": ("R", "C"), "w": ("C", "S")}
    assert other.own({"R": 5, "C": 6, "S": 7}) == {"M": 5, "K": 6, "N": 7}


def test_arrays_between_steps_have_names_that_are_free():
    def ordered(name):
        traced = bb.trace(lambda x: np.sort(np.exp(x), -1) * 2.0, x="M K")
        return replace(traced, outputs=(replace(traced.outputs[0], name=name),))

    one, other = firsts(ordered("y"), ordered("z"))
    inner = [step.writes for step in one.pieces.steps[:-1]]
    own = [step.writes for step in other.pieces.steps[:-1]]
    assert inner == [tuple(name.replace("z", "y", 1) for name in names) for names in own]
    assert all(inner)

    _, third = firsts(ordered("y"), ordered("z"), taken={own[0][0]})
    names = [name for step in third.pieces.steps for name in step.writes]
    assert own[0][0] not in names
    assert len({*names}) == len(names)
    assert third.pieces.steps[1].reads == third.pieces.steps[0].writes


@pytest.mark.parametrize(
    ("other", "more"),
    [
        (product("z", "exp", x="R C", w="C S"), {}),
        (product("z", x="R C", w="C C"), {}),  # two sizes would have one name
        (product("z", x="R C=64", w="C S"), {}),
        (bb.trace(lambda x, w: np.maximum(x @ w, 1.0), x="R C", w="C S"), {}),
    ],
)
def test_parts_that_differ_are_made_anew(other, more):
    made = firsts(product("y", x="M K", w="K N"), other, **more)

    assert [type(one) for one in made] == [Part, Part]


def test_slices_that_begin_elsewhere_are_other_parts():
    def sliced(first):
        return bb.trace(lambda x: np.exp(x[:, first : first + 16]), x="M K")

    one, other, again = firsts(sliced(16), sliced(32), sliced(16))

    assert type(other) is Part
    assert isinstance(again, EqualPart)
    assert again.first is one


def test_constants_are_no_other_arrays():
    one = product("y", x="M K", w="K N")
    other = bb.trace(lambda w, x: np.maximum(w @ x, 0.0), w="R C", x="C S")

    assert not isinstance(firsts(one, other, constants=("w",))[1], EqualPart)
