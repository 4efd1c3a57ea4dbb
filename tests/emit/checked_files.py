"""Emitted files and what their --check says, right ones and wrong ones, in Triton's interpreter.

Run with TRITON_INTERPRET=1: prints as JSON the verdict and the words of each. It is no test.
"""

import contextlib
import io
import json
import re
import sys
import warnings

import numpy as np

import blockbuster as bb
from blockbuster.emit.target.load import load_module
from tests.emit.cases import FOLDER

SIZES = dict(B=2, M=8, N=24, K=24, H=4, W=6, D=16, L=16)
FIXED = re.compile(r"(\w+)=(\d+)")
BOTH = ("float16", "float32")
WHOLES = ("int8", "uint8", "int16", "int32", "int64")
MN = dict(x="M N")
QKV = dict(q="B M D", k="B N D", v="B N L")
LAYERS = dict(x="M K", w="K N", v="N L")


def causal(q, k, v):
    seen = bb.arange(q.shape[-2])[:, None] >= bb.arange(k.shape[-2])
    return bb.softmax(bb.where(seen, q @ k.mT * 0.125, -np.inf)) @ v


SEEN = np.tri(8, 24, 16, dtype=bool)  # a condition on positions: the kernels read no mask


def masked(q, k, v):
    return bb.softmax(bb.where(SEEN, q @ k.mT * 0.125, -np.inf)) @ v


def hidden(x, w, v):
    return bb.relu(x @ w) @ v


def bare(x):
    return bb.exp(x) / (1 + bb.exp(x))


def merged(x):
    m = x.shape[0]
    return bb.sum(bb.softmax(x.reshape(m, 256)).reshape(m, 16, 16), axis=1)


def guarded(x, y):
    return bb.where(y != 0, x // y, 0)


RIGHT = {
    "softmax": (bb.softmax, MN, (*BOTH, "bfloat16")),
    "causal attention": (causal, QKV, BOTH),
    "a captured mask": (masked, QKV, ("float32",)),
    "layer norm": (lambda x: bb.layer_norm(x), MN, BOTH),
    "a bare exp": (bare, MN, BOTH),
    "sizes that are numbers": (merged, dict(x="M H=16 W=16"), BOTH),
    "minus infinity": (lambda x: bb.log(bb.maximum(x, 0)), MN, BOTH),
    "rows of minus infinity": (
        lambda x, m: bb.logsumexp(bb.where(m, x, -np.inf), axis=-1),
        dict(x="M N", m="bool: M 1"), BOTH,
    ),
    "NaN rows": (
        lambda x, m: bb.log_softmax(bb.where(m, x, -np.inf)), dict(x="M N", m="bool: M 1"), BOTH,
    ),
    "a logarithm": (bb.log, MN, BOTH),
    "a mean of roots": (lambda x: bb.mean(bb.sqrt(x), axis=-1), MN, BOTH),
    "overflow": (lambda x: bb.exp(bb.exp(x) * 4), MN, BOTH),
    "a jump": (lambda x, w, v: bb.floor(hidden(x, w, v)), LAYERS, BOTH),
    "a choice": (lambda x, w, v: np.argmax(hidden(x, w, v), axis=-1), LAYERS, BOTH),
    "a gate": (lambda x, w, v: bb.where(hidden(x, w, v) > 0.5, 1.0, 0.0), LAYERS, BOTH),
    "what cancels": (lambda x, y: x * y - x * y, dict(x="M N", y="M N"), BOTH),
    "sines": (lambda x, y: bb.sin(x * y), dict(x="M N", y="M N"), BOTH),
    "labels from the end": (
        lambda x, i: np.take_along_axis(x, i[:, None], axis=1), dict(x="M N", i="int64: M"), BOTH,
    ),
    "a quotient of counts": (
        lambda x, m: bb.sum(x) // bb.sum(m, axis=-1), dict(x="int32: M", m="bool: M N"), BOTH[1:],
    ),
    "a guarded quotient": (guarded, dict(x="int32: M", y="int32: M"), BOTH[1:]),
    "a computed divisor": (lambda x, y: x % (y - 1), dict(x="int32: M", y="int32: M"), BOTH[1:]),
    "a true quotient": (lambda x, y: x / y, dict(x="int32: M", y="int32: M"), BOTH[1:]),
    **{
        f"{name} of {dtype}": (function, dict(x=f"{dtype}: M N", y=f"{dtype}: M N"), BOTH[1:])
        for dtype in WHOLES
        for name, function in (
            ("quotients", lambda x, y: x // y),
            ("rests", lambda x, y: x % y),
            ("products", lambda x, y: x * y + x),
            ("dots", lambda x, y: bb.sum(x * y, axis=-1)),
            ("sums", lambda x, y: bb.sum(x, axis=-1) - bb.max(y, axis=-1)),
        )
    },
    "a product of integer matrices": (
        lambda x, y: x @ y, dict(x="int32: M K", y="int32: K N"), BOTH[1:],
    ),
}  # fmt: skip


def emitted(function, dims, dtype, **options):
    derivation = bb.fuse(bb.lower(bb.trace(function, **dims)))
    words = [word for text in dims.values() for word in text.split()]
    sizes = {dim: size for dim, size in SIZES.items() if dim in words}
    sizes |= {found[1]: int(found[2]) for word in words if (found := FIXED.match(word))}
    return bb.emit(derivation, sizes, dtype, **options).source


def graph_of(function, dims):
    return bb.lower(bb.trace(function, **dims))


def forgetful(module, at):
    """The same file with a launcher that leaves some elements of its output as they were."""
    launch = module.launch

    def wrong(**arrays):
        before = arrays["out"].copy()
        launch(**arrays)
        arrays["out"][at] = before[at]

    module.launch = wrong


def replaced(source, old, new):
    """A file whose kernels are changed; its reference stays."""
    kernels, rest = source.split("def launch(", 1)
    assert old in kernels, f"no {old!r} in the kernels"
    return f"{kernels.replace(old, new)}def launch({rest}"


def wrong_files():
    """Files that must fail, as modules."""
    stable = graph_of(bb.sigmoid, MN)
    yield "NaN where eager is finite", load(emitted(bare, MN, "float32", reference=stable))
    logarithm = emitted(lambda x: bb.log(bb.maximum(x, 0)), MN, "float32")
    of = "tl.log(_maximum(x_2, 0.0))"
    yield "NaN for minus infinity", load(replaced(logarithm, of, f"{of} + 0.0 * {of}"))
    quotient = emitted(lambda x, y: x // y, dict(x="int32: M N", y="int32: M N"), "float32")
    yield "a quotient rounded to 0", load(replaced(quotient, "- ((rest != 0)", "- ((rest > 999)"))
    sums = {
        "a sum": lambda x: bb.sum(x, axis=-1),
        "NaN": lambda x: bb.sum(bb.log(-1 - x * x), axis=-1),
    }
    for name, function in sums.items():
        module = load(emitted(function, MN, "float32"))
        forgetful(module, (-1,))
        yield f"{name} that is not written", module
    module = load(emitted(lambda x: x > 0, MN, "float32"))
    forgetful(module, (-1, -1))
    yield "a truth value that is not written", module
    gate = emitted(lambda x: bb.where(x > 0.5, 1.0, 0.0), MN, "float32")
    yield "a wrong threshold", load(replaced(gate, "> 0.5", "> 0.6"))
    ties = emitted(lambda x: bb.where(x >= 3, 1, 0), dict(x="int32: M N"), "float32")
    yield "a wrong side of a tie", load(replaced(ties, ">= 3", "> 3"))
    module = load(emitted(bb.layer_norm, MN, "float16"))
    launch = module.launch

    def off_for_large_rows(x, out):
        launch(x, out)
        out *= 1.5 if abs(x).max() > 1000 else 1.0

    module.launch = off_for_large_rows
    yield "large rows off where eager overflows", module
    large = emitted(lambda x, y: x @ y, dict(x="int32: M K", y="int32: K N"), "float32")
    in_floats = replaced(large, ".to(tl.int64), 1)", ".to(tl.float32), 1).to(tl.int64)")
    yield "integers rounded to floats", load(in_floats)


def load(source):
    return load_module(source, FOLDER)


def verdict(module):
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        passed = module.check(module.sizes_to_check({}))
    return passed, said.getvalue()


def main():
    warnings.simplefilter("ignore", RuntimeWarning)
    right = {
        f"{name}, {dtype}": verdict(load(emitted(function, dims, dtype)))
        for name, (function, dims, dtypes) in RIGHT.items()
        for dtype in dtypes
    }
    wrong = {name: verdict(module) for name, module in wrong_files()}
    json.dump({"right": right, "wrong": wrong}, sys.stdout)


if __name__ == "__main__":
    main()
