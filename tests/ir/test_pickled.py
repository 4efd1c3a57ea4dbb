"""Expressions that another process has pickled."""

import os
import pickle
import subprocess
import sys

from blockbuster.ir.expr import Arg, call

WRITE = """
import pickle, sys
from blockbuster.ir.expr import Arg, call
sys.stdout.buffer.write(pickle.dumps(call("exp", call("mul", Arg(0), 2.0))))
"""


def test_an_expression_of_another_process_equals_ones_own():
    seeds = [
        subprocess.run(
            [sys.executable, "-c", WRITE],
            env={**os.environ, "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    mine = call("exp", call("mul", Arg(0), 2.0))
    for text in seeds:
        assert pickle.loads(text) == mine
        assert hash(pickle.loads(text)) == hash(mine)
