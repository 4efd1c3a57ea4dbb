"""Kernels that differ in names alone are compiled once: which are alike, and which are not."""

import re
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

import blockbuster as bb
from blockbuster.emit.target.alike import shared
from blockbuster.emit.target.load import load_module

HEAD = "import triton\nimport triton.language as tl\nimport math\n"
KERNEL = '''
LARGEST = 7

@triton.jit
def _twice(x, y: tl.constexpr):
    """Twice."""
    return x * 2 + y

@triton.jit
def k(a_ptr, b_ptr, N, BLOCK: tl.constexpr):
    # a comment
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(a_ptr + offs, mask=offs < N)
    for i in range(3):
        a = _twice(a, y=i) - LARGEST
    tl.store(b_ptr + offs, a, mask=offs < N)
'''


def kernel(text=KERNEL, *changes, name="k"):
    """The kernel of a module whose text has changes, each a pattern and what takes its place."""
    for old, new in changes:
        text, count = re.subn(old, new, text)
        assert count, old
    return getattr(load_module(HEAD + dedent(text)), name)


def alike(function, lanes=64, warps=4):
    block = next((one.name for one in function.params if one.is_constexpr), "BLOCK")
    return shared(function, {block: lanes}, {"num_warps": warps})


RENAMED = {
    "arrays": ((r"\ba_ptr\b", "x_ptr"), (r"\bb_ptr\b", "y_ptr")),
    "a block": ((r"\bBLOCK\b", "BLOCK_M"),),
    "a local": ((r"\boffs\b", "o"), (r"\bi\b", "j")),
    "arrays the other way round": (
        (r"\ba_ptr\b", "c_ptr"), (r"\bb_ptr\b", "a_ptr"), (r"\bc_ptr\b", "b_ptr")
    ),
    "the kernel": ((r"def k\b", "def other"),),
    "a comment": (("# a comment", "# another, line 7"),),
    "a docstring": (("Twice.", "Two times."),),
    "names inside what it calls": ((r"x \* 2", "z * 2"), (r"_twice\(x", "_twice(z")),
}  # fmt: skip


@pytest.mark.parametrize("changes", RENAMED.values(), ids=RENAMED)
def test_other_names_make_no_other_kernel(changes):
    first = alike(kernel()).function
    other = kernel(KERNEL, *changes, name="other" if changes[0][1] == "def other" else "k")
    found = alike(other)
    assert found.function is first
    assert [found.names[name] for name in other.arg_names] == [*first.arg_names]


DIFFERENT = {
    "a number": ((r"x \* 2", "x * 3"),),
    "an operator": ((r"x \* 2", "x + 2"),),
    "what it reads of its module": (("LARGEST = 7", "LARGEST = 8"),),
    "the order of parameters": (("a_ptr, b_ptr, N", "b_ptr, a_ptr, N"),),
    "which array is read": ((r"tl.load\(a_ptr", "tl.load(b_ptr"),),
    "a mask": ((r"a, mask=offs < N", "a"),),
    "a constant as a number": ((r"BLOCK: tl.constexpr", "BLOCK"),),
    "the name of an argument": ((r"y=i", "i"),),
}


@pytest.mark.parametrize("changes", DIFFERENT.values(), ids=DIFFERENT)
def test_another_computation_is_another_kernel(changes):
    other = kernel(KERNEL, *changes)
    assert alike(other).function is not alike(kernel()).function


@pytest.mark.parametrize("value", ["object()", "[7]", "k"])
def test_a_kernel_that_reads_other_values_is_alone(value):
    text = f"{KERNEL}\nLARGEST = {value}\n"
    for changes in ((), ((r"\ba_ptr\b", "x_ptr"),)):
        own = kernel(text, *changes)
        assert alike(own).function is own


def test_other_constants_or_options_are_compiled_beside_it():
    first, other = kernel(), kernel(KERNEL, (r"\ba_ptr\b", "x_ptr"))
    assert alike(first).function is alike(other).function
    assert alike(other, lanes=32).function is not alike(first).function
    assert alike(other, warps=8).function is not alike(first).function


def test_arguments_come_by_the_names_of_the_first():
    first = kernel(KERNEL, (r"x \* 2", "x * 41"))
    assert alike(first).named({"BLOCK": 4, "num_warps": 2}) == {"BLOCK": 4, "num_warps": 2}
    other = kernel(KERNEL, (r"x \* 2", "x * 41"), (r"\bN\b", "M"), (r"\bBLOCK\b", "BLOCK_M"))
    assert alike(other).named({"BLOCK_M": 4, "num_warps": 2}) == {"BLOCK": 4, "num_warps": 2}


@pytest.mark.parametrize("sizes", [{"M": 256, "K": 512, "N": 384}, {"M": 250, "K": 511, "N": 77}])
def test_emitted_kernels_of_equal_layers_are_one(sizes):
    def layer(x, w, b):
        return bb.relu(x @ w + b)

    def same(state, weights, bias):
        return bb.relu(state @ weights + bias)

    def other(x, w, b):
        return bb.tanh(x @ w + b)

    given = [
        (layer, {"x": "M K", "w": "K N", "b": "N"}, sizes),
        (same, {"state": "A C", "weights": "C B", "bias": "B"},
         {"A": sizes["M"], "C": sizes["K"], "B": sizes["N"]}),
        (other, {"x": "M K", "w": "K N", "b": "N"}, sizes),
    ]  # fmt: skip
    made = [
        bb.emit(bb.fuse(bb.lower(bb.trace(fn, **dims))), own, target="sm_90")
        for fn, dims, own in given
    ]
    entries = [load_module(one.source).KERNELS[0] for one in made]
    found = [shared(one["function"], one["constants"], one["options"]).function for one in entries]
    assert found[0] is found[1]
    assert found[0] is not found[2]


NAMES = ["a_ptr", "b_ptr", "N", "BLOCK", "offs", "a", "i"]


@given(st.permutations(NAMES))
def test_any_names_will_do(names):
    text = KERNEL
    for at, name in enumerate(NAMES):
        text = re.sub(rf"\b{name}\b(?! comment)", f"new_{at}_", text)
    for at, name in enumerate(names):
        text = text.replace(f"new_{at}_", name)
    assert alike(kernel(text)).function is alike(kernel()).function
