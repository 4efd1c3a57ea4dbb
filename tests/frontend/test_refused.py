"""What cannot be traced is refused by name: a reason, what to use, and the user's line."""

import math
import re

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.errors import TraceError
from blockbuster.frontend.functions.refused import BY_NAME, REFUSED
from blockbuster.frontend.functions.table import SPELLINGS, numpy_function
from blockbuster.frontend.no_values import WORDS

ARGUMENTS = (("x",), ("x", "x"), ("x", 1), ("x", "x", "x"), ("x", ["x"], ["x"]), ("x", "x", 1))


def message(fn):
    with pytest.raises(TraceError) as caught:
        bb.trace(fn, x="M N")
    return str(caught.value)


def called(name, x):
    """NumPy's function of this name with arguments that it takes, else a method of the array."""
    function = numpy_function(name)
    if function is None:
        return getattr(x, name)
    for form in ARGUMENTS:
        given = [x if a == "x" else [x] if a == ["x"] else a for a in form]
        try:
            return function(*given)
        except TypeError:  # not this many arguments
            continue
    return getattr(x, name)


@pytest.mark.parametrize("name", BY_NAME)
def test_each_name_has_its_words(name):
    found = message(lambda x: called(name, x))

    if "a traced array has no values" not in found.splitlines()[0]:
        shown = getattr(numpy_function(name), "__name__", name.rsplit(".", 1)[-1])
        assert re.match(rf"(np)?\.([a-z]+\.)?{shown} cannot be traced: ", found), found
        assert BY_NAME[name].instead in found
    assert "test_refused.py" in found


def test_each_name_stands_once_and_is_none_that_can_be_traced():
    names = [name for refusal in REFUSED for name in refusal.names]

    assert len(names) == len(set(names))
    assert not [name for name in names if name in SPELLINGS.methods]
    assert not [name for name in names if numpy_function(name) in SPELLINGS.numpy]


TEXTS = [refusal.instead for refusal in REFUSED] + [hint for _, hint in WORDS.values()]


@pytest.mark.parametrize("text", TEXTS)
def test_hints_name_functions_that_there_are(text):
    for name in re.findall(r"\bbb\.(\w+)", text):
        assert hasattr(bb, name), name
    for name in re.findall(r"\bnp\.([\w.]+)", text):
        assert numpy_function(name) is not None, name


ROTATIONS = np.exp(1j * np.arange(4)).astype(np.complex64)


def format_it(x):
    return f"{x:.3f}"


def change(x):
    x[0] = 1


def add_to_a_piece(x):
    x[0:2] += 1


@pytest.mark.parametrize(("fn", "words", "hint"), [
    (lambda x: x if x > 0 else -x, "no values to decide: if, while", "bb.where"),
    (lambda x: 0 < x < 1, "no values to decide.*a < x < b", r"\(a < x\) & \(x < b\)"),
    (lambda x: x > 0 and x < 1, "no values to decide", "& | ~ combine masks"),
    (lambda x: not x, "no values to decide", "& | ~"),
    (lambda x: math.exp(x), "a float, which functions of math", "bb.exp"),
    (lambda x: np.zeros(3).__setitem__(0, x[0, 0]), "elements of NumPy's arrays", "zeros_like"),
    (lambda x: float(x), "no values to convert to a float", "bb.exp"),
    (lambda x: int(x), "no values to convert to an int", "bb.floor"),
    (lambda x: [1, 2][x], "no values to count or index with", "bb.arange"),
    (lambda x: complex(x), "none is complex", ""),
    (lambda x: len(x), "length of a traced array is not known", r"x\.shape\[0\]"),
    (lambda x: list(x), "no values to loop over", r"x\[0\]"),
    (lambda x: sum(x), "no values to loop over", "bb.sum"),
    (lambda x: 1.0 in x, "no values to search", "bb.any"),
    (change, "changes the argument x in place: callers' arrays stay as they are", "y = y \\+ 1"),
    (add_to_a_piece, "changes the argument x in place", "change a copy: y = x.copy"),
    (lambda x: x.__delitem__(0), "no elements are deleted", "bb.concat"),
    (format_it, r"no values to write as '\.3f'", "print what the jitted function returns"),
    (lambda x: np.asarray(x), "no values to become a NumPy array", "bb.custom"),
    (lambda x: np.linalg.svd(x), "np.linalg.svd cannot be traced: its elements", "bb.custom"),
    (lambda x: x.item(), r"\.item cannot be traced: a traced array has no values", "jitted"),
    (lambda x: x * ROTATIONS, "an array of complex64 cannot be traced", r"w\.real and w\.imag"),
    (lambda x: np.add.at(x, 0, 1), r"np\.add\.at cannot be traced", "bb.custom"),
    (lambda x: np.subtract.accumulate(x), r"np\.subtract\.accumulate cannot be", "bb.custom"),
    (lambda x: x.summ(0), r"\.summ cannot be traced", "bb.custom"),
    (lambda x: np.var(x, dtype=float), "np.var with dtype cannot be traced", "it takes x, axis"),
    (lambda x: bb.norm(x, "nuc"), "a norm of order 'nuc' over 2 axes", "ord='fro'"),
    (lambda x: bb.outer(x, x), "outer takes two vectors", "use a"),
])  # fmt: skip
def test_python_is_refused_in_its_own_words(fn, words, hint):
    found = message(fn)

    assert re.search(words, found), found
    assert re.search(f"hint: .*{hint}", found) or not hint, found
    assert "test_refused.py" in found


def test_printing_an_array_shows_its_shape():
    shown = []
    bb.trace(lambda x: shown.append(f"{x} {x!r}") or x, x="M N")

    assert shown == ["TracedArray(M, N) TracedArray(M, N)"]


def test_round_is_bbs():
    assert [e.op for e in bb.trace(lambda x: round(x), x="M N").equations] == ["round"]
    assert [e.op for e in bb.trace(lambda x: round(x, 2), x="M N").equations] == [
        "mul", "round", "div",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["view_as_complex", "view_as_real", "polar", "complex"])
def test_complex_rotations_are_refused_with_a_rotation_that_works(name):
    """The hint's text is run: it rotates pairs of columns as complex numbers do."""
    torch = pytest.importorskip("torch")
    given = ("x", "x") if name in ("polar", "complex") else ("x",)

    with pytest.raises(bb.TraceError, match="arrays are real") as error:
        bb.trace(lambda x: getattr(torch, name)(*(x for _ in given)), x="M N=2")

    rotation = str(error.value).split("a rotation is ")[1]

    def rotated(x, cos, sin):
        a, b = x[..., 0::2], x[..., 1::2]
        return eval(rotation, {"torch": torch}, {"a": a, "b": b, "cos": cos, "sin": sin})

    program = bb.trace(rotated, x="M N=6", cos="M H=3", sin="M H=3")
    x, angle = torch.randn(5, 6, dtype=torch.float64), torch.randn(5, 3, dtype=torch.float64)
    pairs = torch.view_as_complex(x.reshape(5, 3, 2)) * torch.polar(torch.ones_like(angle), angle)
    got = program.numpy({"x": x.numpy(), "cos": angle.cos().numpy(), "sin": angle.sin().numpy()})
    np.testing.assert_allclose(got["out"], torch.view_as_real(pairs).flatten(1).numpy())
