"""Derivations for the tests of the explorer, and the meaning of its data in Python."""

import base64
import json
import re
import zlib
from functools import cache
from math import prod

import blockbuster as bb
from blockbuster import examples
from blockbuster.rules import PAPER_RULES
from blockbuster.view.explorer.chosen import chosen
from blockbuster.view.explorer.data import explorer_data
from blockbuster.view.explorer.frames import frames
from blockbuster.view.explorer.setting import Setting

SETTINGS = [
    ({"M": 8, "N": 12, "D": 6, "L": 10}, {"M": 2, "N": 3, "D": 1, "L": 5}),
    ({"M": 7, "N": 9, "D": 5, "L": 3}, {"M": 3, "N": 2, "D": 5, "L": 1}),  # ragged
    ({"M": 1, "N": 16, "D": 4, "L": 4}, {"M": 1, "N": 8, "D": 2, "L": 2}),
]

SMALL = {
    "attention": SETTINGS[0][0],
    "heads": {"M": 32, "D": 16, "E": 32},
}
"""Sizes at which there is too little to do to look for schedules; others have usual ones."""

NOTHING = {"steps": [], "chosen": {"state": 0}}
"""The data of a derivation without steps."""


def two_heads(x, w):
    """Heads, so that sizes follow from sizes."""
    q = bb.split_heads(x @ w, 2)
    return bb.merge_heads(bb.softmax(q @ q.swapaxes(-1, -2)) @ q)


def residual(x, w1, w2):
    """Left with buffered edges under the paper's rules."""
    return bb.rms_norm(x + bb.gelu(bb.rms_norm(x) @ w1) @ w2)


@cache
def derivation(name):
    if name == "heads":
        return bb.fuse(bb.lower(bb.trace(two_heads, x="M D", w="D E")))
    if name == "residual":
        program = bb.trace(residual, x="M D", w1="D K", w2="K D")
        return bb.fuse(bb.lower(program), PAPER_RULES)
    (example,) = (e for e in examples.ALL if e.name == name)
    return bb.fuse(bb.lower(example.program()))


@cache
def passed(name):
    """The frames of the page: the derivation, and what leads on to the kernels' program."""
    sizes = {dim["name"]: dim["size"] for dim in data(name)["dims"]}
    return frames(derivation(name), chosen(derivation(name), sizes, "float16", "sm_90").derivation)


@cache
def kernel_of(name):
    """What ``bb.emit`` writes at the sizes of the page."""
    sizes = {dim["name"]: dim["size"] for dim in data(name)["dims"]}
    return bb.emit(derivation(name), sizes)


@cache
def data(name, prove=False):
    setting = Setting(sizes=SMALL.get(name, {}), trials=1)
    return explorer_data(derivation(name), setting, prove=prove)


def unpacked(text):
    """The data that a page holds."""
    (held,) = re.findall(r'id="data">([^<]*)<', text)
    return json.loads(zlib.decompress(base64.b64decode(held), -zlib.MAX_WBITS))


def values(page, sizes, blocks):
    """The numbers of all polynomials, as the page computes them."""
    symbols = []
    for dim in page["dims"]:
        size, count = sizes[dim["name"]], blocks[dim["name"]]
        symbols += [size, count, -(-size // count)]
    return [
        sum(times * prod(symbols[s] for s in factors) for times, *factors in row)
        for row in page["polynomials"]
    ]
