"""Decisions on disk: another process makes the same plan from them, or searches anew."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

import blockbuster as bb
from blockbuster.emit.target.disk import Folder
from blockbuster.frontend import trace
from blockbuster.ir.reading import Wrong
from blockbuster.runtime.compiled import SAVED
from blockbuster.runtime.given import family_of
from blockbuster.selection.decision import Decision, Kernel, read_decision
from blockbuster.selection.plans.recalled import DECIDED, decision_of
from blockbuster.tuning.memory import Decisions, decisions_for

SIZES = {"M": 300, "K": 512, "N": 256}


def normed(x, w):
    y = x @ w
    return y / np.sqrt((y * y).mean(-1, keepdims=True) + 1e-5)


def softmax(x, w):
    return np.tanh(np.exp(x).sum(-1, keepdims=True)) + (x @ w)


def gated(x, w):
    y = x @ w
    return (y * np.tanh(y)) @ w.T


def layers(x, w):
    for _ in range(2):
        x = x + np.tanh(x @ w) @ w.T
    return x


PROGRAMS = {
    function.__name__: trace(function, x="M K", w="K N")
    for function in (normed, softmax, gated, layers)
}


@pytest.fixture
def folder(tmp_path):
    return Folder("decided", tmp_path)


def remembered(program, folder, **named):
    named = {"library": True, **named}
    found = decisions_for(program, SAVED, dtype="float16", **named)
    return replace(found, folder=folder)


def family(program, memory, **named):
    return family_of(program, "float16", "h100", memory=memory, **named)


def changed(memory, folder, change):
    """The one file of a folder, changed in a way that its checksum does not tell."""
    (name,) = folder.names()
    found = json.loads(folder.read(name))["decision"]
    change(found)
    memory.keep(SIZES, read_decision(found))


def no_search(*_):
    raise AssertionError("nothing is to be searched for")


@pytest.mark.parametrize("library", [True, False])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_decision_gives_the_same_plan_without_a_search(name, library, folder, monkeypatch):
    program = PROGRAMS[name]
    memory = remembered(program, folder, library=library)
    first = family(program, memory, library=library).at(SIZES)
    assert len(folder.names()) == 1
    again = family(program, memory, library=library)
    with monkeypatch.context() as patched:
        patched.setattr(type(again), "_searched", no_search)
        plan = again.at(SIZES)
    assert plan == first
    assert plan.source == first.source
    assert plan.divided.why == DECIDED
    assert plan.total_us == first.total_us


def test_reports_say_what_a_search_would(folder):
    program = PROGRAMS["normed"]
    memory = remembered(program, folder)
    first, again = (family(program, memory).at(SIZES) for _ in range(2))
    assert again.divided.search
    assert again.explain() == first.explain()
    assert again.lower_bound_us == first.lower_bound_us


def test_all_that_is_asked_of_a_recalled_plan_takes_one_search(folder, monkeypatch):
    program, searches = PROGRAMS["normed"], []
    memory = remembered(program, folder)
    first, again = family(program, memory).at(SIZES), family(program, memory)
    search = type(again)._searched
    monkeypatch.setattr(
        type(again), "_searched", lambda own, sizes: searches.append(sizes) or search(own, sizes)
    )
    plan = again.at(SIZES)
    assert not searches
    assert plan.explain() == first.explain()
    for own, other in zip(plan.divided.considered, first.divided.considered, strict=True):
        assert [one.key for one in own.others] == [one.key for one in other.others]
    assert len(searches) == 1


def test_sizes_of_one_class_have_one_plan_as_without_decisions(folder):
    program = PROGRAMS["softmax"]
    memory = remembered(program, folder)
    searching, recalling = family(program, None), family(program, memory)
    family(program, memory).like(SIZES)
    for rows in (300, 301, 304, 320, 511, 512, 513):
        sizes = {**SIZES, "M": rows}
        assert recalling.like(sizes) == searching.like(sizes), rows


def test_another_program_size_dtype_or_machine_has_no_decision(folder):
    program = PROGRAMS["gated"]
    memory = remembered(program, folder)
    family(program, memory).at(SIZES)
    assert memory.recall(SIZES)
    assert memory.recall({**SIZES, "M": 301}) is None
    for other in (
        remembered(PROGRAMS["softmax"], folder),
        remembered(program, folder, library=False),
        remembered(program, folder, device="a100"),
    ):
        assert other.recall(SIZES) is None


CHANGES = {
    "another program": lambda found: found["kernels"][0].update(program="0" * 24),
    "another name": lambda found: found["kernels"][0].update(name="the program that never was"),
    "a number of no program": lambda found: found["kernels"][0].update(snapshot=900),
    "a move that does not apply": lambda found: found["kernels"][0].update(schedule="block d9 7"),
    "no schedule": lambda found: found["kernels"][0].update(schedule=""),
    "no move at all": lambda found: found["kernels"][0].update(schedule="dance"),
    "a kernel too many": lambda found: found["kernels"].append(found["kernels"][0]),
    "a kernel too few": lambda found: found["kernels"].pop(),
    "a unit left out": lambda found: found["parts"].__setitem__(0, [0, 0]),
    "a unit twice": lambda found: found["parts"].append(found["parts"][0]),
    "no parts": lambda found: found["parts"].clear(),
    "a form that a part has not": lambda found: found["parts"].__setitem__(
        0, [found["parts"][0][0], 90]
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_does_not_fit_is_decided_anew(change, folder):
    program = PROGRAMS["normed"]
    memory = remembered(program, folder, library=False)
    first = family(program, memory, library=False).at(SIZES)
    changed(memory, folder, change)
    again = family(program, memory, library=False).at(SIZES)
    assert again.divided.why != DECIDED
    assert again == first
    assert memory.recall(SIZES) == decision_of(first.divided)  # it was mended


@pytest.mark.parametrize(
    "damage",
    [lambda data: data[:-9], lambda data: data.replace(b"block", b"blook", 1), lambda data: b"{}"],
    ids=["cut off", "changed", "empty"],
)
def test_damaged_files_are_removed(damage, folder):
    memory = remembered(PROGRAMS["softmax"], folder)
    memory.keep(SIZES, Decision(((1, 0),), (KERNEL,), ()))
    (name,) = folder.names()
    folder.write(name, damage(folder.read(name)))
    assert memory.recall(SIZES) is None
    assert not folder.names()


def test_what_a_compiler_refused_is_forgotten(folder):
    program = PROGRAMS["normed"]
    memory = remembered(program, folder, library=False)
    made = family(program, memory, library=False)
    plan = made.at(SIZES)
    made.refuse(plan, plan.files[:1], "it does not compile")
    assert not folder.names()
    other = made.at(SIZES)
    assert other != plan
    assert not folder.names()  # it depends on what was refused here


def test_functions_without_a_name_have_no_decisions():
    def shifted(x):
        return bb.custom(lambda y: y + 1, bb.exp(x), shape=x.shape) * 2

    assert decisions_for(trace(shifted, x="M N"), SAVED) is None


def test_calls_on_the_cpu_remember_nothing(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    fast = bb.jit(lambda x, w: F.gelu(x @ w))
    fast(torch.ones(8, 8), torch.ones(8, 8))
    fast = bb.jit(lambda x, w: F.gelu(x @ w), machine="h100")
    fast.plan_for(torch.ones(8, 8), torch.ones(8, 8))  # of arrays that are not on a GPU
    assert not Decisions("").folder.names()


KERNEL = Kernel(
    1,
    "snapshot 1",
    "0" * 24,
    "block d0 64",
    "the best of 3",
    {"d0": (32, 64)},
    ("snapshot 2 is no choice",),
)
WORDS, COUNTS = st.text(max_size=9), st.integers(0, 2**62)
BLOCKS = st.dictionaries(WORDS, st.lists(st.integers(1, 99), max_size=3).map(tuple), max_size=2)
SEVERAL = st.lists(WORDS, max_size=2).map(tuple)
KERNELS = st.builds(Kernel, st.integers(1, 99), WORDS, WORDS, WORDS, WORDS, BLOCKS, SEVERAL)
DECISIONS = st.builds(
    Decision,
    st.lists(st.tuples(COUNTS, COUNTS), max_size=3).map(tuple),
    st.lists(KERNELS, max_size=3).map(tuple),
    SEVERAL,
)


@given(DECISIONS)
def test_a_decision_comes_back_from_its_text(decision):
    assert read_decision(json.loads(json.dumps(decision.to_json()))) == decision


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.pop("parts"),
        lambda data: data.update(more=1),
        lambda data: data["parts"].append([1]),
        lambda data: data["parts"].append([-1, 0]),
        lambda data: data["kernels"][0].update(snapshot=0),
        lambda data: data["kernels"][0].update(blocks={"d0": [0]}),
    ],
)
def test_other_data_is_no_decision(change):
    data = Decision(((1, 0),), (KERNEL,), ()).to_json()
    data = json.loads(json.dumps(data))
    change(data)
    with pytest.raises(Wrong):
        read_decision(data)
