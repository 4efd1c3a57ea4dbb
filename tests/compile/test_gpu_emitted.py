"""Files of bb.emit on a GPU: each checks itself against the function as it was written."""

import os
import subprocess
import sys

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.emit.target.assembler import SETTING
from blockbuster.emit.target.compiler import assembler_of

pytestmark = pytest.mark.gpu


def geglu(x, w, v, o):
    return (bb.gelu(x @ w) * (x @ v)) @ o


def normed(x, w):
    return bb.layer_norm(x) @ w


def loss(x, labels):
    hit = labels[:, None] == bb.arange(x.shape[-1])
    return -bb.sum(bb.where(hit, bb.log_softmax(x), 0.0), axis=-1)


def ragged(q, k, v, lengths):
    s = (q @ k.swapaxes(-1, -2)) * q.shape[-1] ** -0.5
    inside = bb.arange(k.shape[-2]) < lengths[:, None, None]
    return bb.softmax(bb.where(inside, s, -np.inf)) @ v


def above(x, w):
    return x @ w > 0.5


PROGRAMS = {
    geglu: (dict(x="M K", w="K F", v="K F", o="F K"), dict(M=512, K=512, F=1408)),
    normed: (dict(x="M K", w="K N"), dict(M=1024, K=1024, N=1024)),
    loss: (dict(x="M C", labels="M"), dict(M=1000, C=1500)),
    ragged: (dict(q="B M D", k="B N D", v="B N D", lengths="B"), dict(B=8, M=300, N=500, D=64)),
    above: (dict(x="M K", w="K N"), dict(M=512, K=256, N=300)),
}


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_a_file_agrees_with_the_function(cuda, tmp_path, function, dtype):
    dims, sizes = PROGRAMS[function]
    derivation = bb.fuse(bb.lower(bb.trace(function, **dims)))
    path = bb.emit(derivation, sizes, dtype).write(tmp_path / "kernel.py")

    # as a file asks for whose dots the ptxas of Triton would break
    environment = {**os.environ, SETTING: assembler_of("sm_90").path}
    made = subprocess.run(
        [sys.executable, path, "--check"],
        capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip

    assert made.returncode == 0, made.stdout + made.stderr
    assert "PASS" in made.stdout
