"""Sizes that follow from others, as the page computes them, in node."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

import blockbuster as bb
from blockbuster.ir.fitting import fitted
from blockbuster.view.explorer import page
from blockbuster.view.explorer.setting import dims_data, rules_of_sizes

NODE = shutil.which("node")


@pytest.mark.skipif(NODE is None, reason="node is not installed: no script is run without it")
def test_quotients_of_sizes_stay_whole():
    """What is divided becomes the next multiple; a divisor of a number becomes a smaller one."""
    part = bb.trace(lambda x, w: x.reshape(x.shape[0] // w.shape[0], -1) * w, x="H", w="G")
    number = bb.trace(lambda x, w: x.reshape(64 // w.shape[0], -1) * w, x="H=64", w="G")
    script = (Path(page.__file__).parent / "numbers.js").read_text(encoding="utf-8")
    script = script[script.index("const clamp") : script.index("const value =")]
    texts = []
    for program, change in ((part, "H = 7"), (part, "G = 4"), (part, "G = 0"), (number, "G = 5")):
        graph = bb.lower(program)
        sizes = fitted({"H": 6, "G": 3, "A": 1, **program.sizes}, graph.size_rules)
        data = {"dims": dims_data(graph, sizes, {}), "rules_of_sizes": rules_of_sizes(graph)}
        run = f"resetSizes(); sizes.{change}; settle(); return [sizes.H, sizes.G, sizes.A];"
        texts.append(f"(() => {{ const data = {json.dumps(data)}; {script} {run} }})()")
    done = subprocess.run(
        [NODE, "-p", f"JSON.stringify([{','.join(texts)}])"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip

    assert json.loads(done.stdout) == [[9, 3, 3], [8, 4, 2], [6, 1, 6], [64, 4, 16]]
