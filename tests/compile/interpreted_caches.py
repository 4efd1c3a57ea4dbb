"""Attention to caches in Triton's interpreter: prints the largest error of each case.

Run with TRITON_INTERPRET=1. It is no test by itself.
"""

import json

import numpy as np
import torch

import blockbuster as bb
from blockbuster.emit.target.load import load_module
from tests.compile.cached_attention import CASES, arrays, inputs, plain


def worst(name):
    given = arrays(CASES[name][1], np.random.default_rng(0), B=1, H=4, G=2, S=21, D=16, M=3)
    program = bb.trace(CASES[name][0], **inputs(name, 4, 2))
    sizes = dict(B=1, S=21, D=16) | ({"M": 3} if "causal" in name else {})
    kernel = bb.emit(bb.fuse(bb.lower(program)).final, sizes, dtype="float32")
    tensors = {key: torch.from_numpy(array) for key, array in given.items()}
    floats = {key: t.float() if t.is_floating_point() else t for key, t in tensors.items()}
    made = load_module(kernel.source).launch(**floats)
    return float(np.abs(made.numpy() - plain(name, given)).max())


if __name__ == "__main__":
    print(json.dumps({name: worst(name) for name in CASES}))
