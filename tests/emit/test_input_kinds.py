"""What a file's check draws for its inputs: labels, lengths, masks, or any numbers."""

import re
import subprocess
import sys

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.emit.target.load import load_module
from blockbuster.emit.tile.input_kinds import input_kinds
from blockbuster.emit.tile.lower import lower_to_tiles
from blockbuster.emit.tile.trips import sized
from tests.emit.cases import FOLDER


def loss(x, labels):
    hit = labels[:, None] == bb.arange(x.shape[-1])
    return -bb.sum(bb.where(hit, bb.log_softmax(x), 0.0), axis=-1)


def ignoring(x, labels):
    hit = labels[:, None] == bb.arange(x.shape[-1])
    seen = labels >= 0
    return bb.where(seen, bb.sum(bb.where(hit, x, 0.0), axis=-1), 0.0)


def ragged(s, lengths):
    return bb.softmax(bb.where(bb.arange(s.shape[-1]) < lengths[:, None], s, -np.inf))


def shifted(s, first):
    inside = bb.arange(s.shape[-1]) * 2 + 1 >= first[:, None]
    return bb.sum(bb.where(inside, s, 0.0), axis=-1)


def segments(s, a, b):
    return bb.softmax(bb.where(a[:, None] == b, s, -np.inf))


def masked(s, mask):
    return bb.softmax(bb.where(mask == 0, -np.inf, s))


def rectified(s):
    return bb.where(s > 0, s, 0.0)


def weighted(s, labels):
    """Labels that are numbers, too."""
    hit = labels[:, None] == bb.arange(s.shape[-1])
    return bb.where(hit, s, 0.0) * labels[:, None]


def thresholds(s, t):
    return bb.where(s > t, 1.0, 0.0) + bb.where(t > 0.3, 1.0, 0.0)


KINDS = {
    loss: (dict(x="M C", labels="M"), {"labels": ("index", "C")}),
    ignoring: (dict(x="M C", labels="M"), {"labels": ("index", "C")}),
    ragged: (dict(s="M N", lengths="M"), {"lengths": ("count", "N")}),
    shifted: (dict(s="M N", first="M"), {"first": ("count", "N")}),
    segments: (dict(s="M N", a="M", b="N"), {"a": ("index", 4), "b": ("index", 4)}),
    masked: (dict(s="M N", mask="M N"), {"mask": ("truth", 2)}),
    rectified: (dict(s="M N"), {}),
    weighted: (dict(s="M N", labels="M"), {}),
    thresholds: (dict(s="M N", t="M N"), {}),
}


@pytest.mark.parametrize("function", KINDS, ids=lambda f: f.__name__)
def test_uses_tell_what_an_input_holds(function):
    dims, wanted = KINDS[function]
    graph = bb.lower(bb.trace(function, **dims))

    assert input_kinds(lower_to_tiles(graph)) == wanted
    assert input_kinds(lower_to_tiles(bb.safe(bb.fuse(graph).final))) == wanted


@pytest.mark.parametrize(
    ("function", "name", "values"),
    [
        (loss, "labels", range(5)),
        (ragged, "lengths", range(1, 6)),
        (segments, "a", range(4)),
        (masked, "mask", range(2)),
    ],
)
def test_a_file_draws_them(function, name, values):
    derivation = bb.fuse(bb.lower(bb.trace(function, **KINDS[function][0])))
    sizes = {"M": 200, "N": 5, "C": 5}
    known = {dim: sizes[dim] for dim in sized(lower_to_tiles(derivation.start))}
    kernel = bb.emit(derivation, known, "float32")
    arrays = load_module(kernel.source, FOLDER).random_inputs(known)

    assert sorted({*arrays[name].flat}) == [*values]
    others = [array for key, array in arrays.items() if key not in KINDS[function][1]]
    assert all(np.unique(array).size > 100 for array in others)


def divided(x, n):
    return x // bb.abs(n)


def divided_by_a_sum(x, n):
    return x % (n + 1)


def from_the_end(s, i):
    return np.take_along_axis(s, i[:, None], axis=1)


OF_INTEGERS = {
    divided: (dict(x="int32: M", n="int32: M"), {"n": ("divisor", 0)}),
    divided_by_a_sum: (dict(x="int32: M", n="int32: M"), {}),
    from_the_end: (dict(s="M N", i="int64: M"), {"i": ("wrapped", "N")}),
}


@pytest.mark.parametrize("function", OF_INTEGERS, ids=lambda f: f.__name__)
def test_uses_tell_what_an_input_of_integers_holds(function):
    dims, wanted = OF_INTEGERS[function]

    assert input_kinds(lower_to_tiles(bb.lower(bb.trace(function, **dims)))) == wanted


@pytest.mark.parametrize(
    ("function", "name", "values"),
    [
        (divided, "n", {*range(-8, 9)} - {0}),
        (divided, "x", {*range(-8, 8)}),
        (from_the_end, "i", {*range(-5, 5)}),
    ],
)
def test_a_file_draws_integers_of_both_signs(function, name, values):
    graph = bb.lower(bb.trace(function, **OF_INTEGERS[function][0]))
    sizes = {dim: {"M": 400, "N": 5}[dim] for dim in sized(lower_to_tiles(graph))}
    module = load_module(bb.emit(graph, sizes, "float32").source, FOLDER)

    assert {*module.random_inputs(sizes)[name].tolist()} == values
    assert module.random_inputs(sizes, scale=1e4)["i" if name == "i" else "x"].min() < -3


def test_a_check_compares_with_the_function_that_was_traced():
    """Without what lowering, fusing and the safety pass made of it."""
    derivation = bb.fuse(bb.lower(bb.trace(ragged, **KINDS[ragged][0])))
    program = bb.parse(derivation.final.show())  # which knows no function
    chosen, given, own = (
        bb.emit(one, {"M": 8, "N": 8}, "float32").source
        for one in (derivation, derivation.final, program)
    )
    one, other, graph = (
        text[text.index("def reference(") : text.index("class HostArray")]
        for text in (chosen, given, own)
    )

    assert one == other
    assert "t4 = softmax(t3, axis=-1)\n    return t4" in one
    assert "softmax" not in graph
    assert ".max(" in graph


@pytest.mark.parametrize(("threshold", "verdict"), [("0.5", "PASS"), ("0.9", "FAIL")])
def test_a_check_counts_the_truth_values_that_differ(tmp_path, threshold, verdict):
    derivation = bb.fuse(bb.lower(bb.trace(lambda x: x > 0.5, x="M N")))
    source = bb.emit(derivation, {"M": 64, "N": 32}, "float32").source
    kernel, reference = source.split("def reference(")
    path = tmp_path / "kernel.py"
    path.write_text("def reference(".join((kernel.replace("> 0.5", f"> {threshold}"), reference)))

    made = subprocess.run(
        [sys.executable, path, "--check"], capture_output=True, text=True, check=False
    )

    assert re.match(rf"out: \d+ of \d+ entries differ: {verdict}\n", made.stdout)
    assert made.returncode == (verdict == "FAIL")
