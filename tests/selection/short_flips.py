"""Plans for an H100 that read few rows backwards, in Triton's interpreter, against NumPy.

Run with TRITON_INTERPRET=1: it prints the largest error of each case. It is no test by itself.
"""

import json

import numpy as np

import blockbuster as bb
from tests.selection.equal_layers import run

FUNCTIONS = {
    "added": lambda x: x + x[::-1],
    "both": lambda x: x[::-1, ::-1] * 2,
    "joined": lambda x: np.concatenate([x[::-1], x], 0) + 1,
    "product": lambda x: x @ x[::-1].T,
    "from place 4": lambda x: x[4:1:-1] * 2,
    "in steps": lambda x: x[-2::-3] * 2,
    "columns": lambda x: x[:, ::-1][:, 1:3] * 2,
}
SHAPES = ((0, 6), (1, 7), (2, 3), (4, 0), (37, 70))


def worst(name):
    """The largest error of a plan for odd sizes, in arrays of other shapes."""
    function = FUNCTIONS[name]
    program = bb.trace(function, x="M N")
    plan = bb.compile(program, {"M": 2997, "N": 1001}, "float32", "h100", library=False).plan
    errors = [0.0]
    for shape in SHAPES:
        x = np.random.default_rng(0).integers(-3, 4, shape).astype(np.float32)
        found, right = run(plan, [x]), function(x)
        assert found.shape == right.shape, (name, shape)
        errors += np.abs(found - right).ravel().tolist()
    return max(errors)


if __name__ == "__main__":
    print(json.dumps({name: worst(name) for name in FUNCTIONS}))
