"""Every hand form at small sizes that no block divides, in Triton's interpreter.

Run with TRITON_INTERPRET=1: prints the relative error of each as JSON. It is no test by itself.
"""

import json
import sys

import torch

from bench.schedules.programs import CASES


def error(case, form):
    """The root mean square of the error, as a share of the result's, against float64."""
    torch.manual_seed(len(form.name))
    shapes = case.shapes(case.small)
    inputs = {name: torch.randn(shape).half() for name, shape in shapes.items()}
    ready = form.ready(inputs, small=True)
    for y in ready.outputs:
        y.fill_(float("nan"))
    found = ready.run()
    right = case.oracle(small=True)(**{name: x.double() for name, x in inputs.items()})
    off = [(a.double() - b).norm() / b.norm() for a, b in zip(found, right, strict=True)]
    return max(float(x) for x in off)


def main() -> int:
    wanted = sys.argv[1:]
    found = {
        f"{case.name}: {form.name}": error(case, form)
        for case in CASES
        if not wanted or case.name in wanted
        for form in case.forms()
    }
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
