"""Reductions in Triton's interpreter: those of the worker are those of the interpreter itself."""

import json
import os
import subprocess
import sys

import pytest


@pytest.mark.interpreter
def test_results_are_the_same_bits_by_fewer_calls():
    pytest.importorskip("torch", reason="torch is not installed: pip install torch")
    done = subprocess.run(
        [sys.executable, "-m", "tests.compile.interpreted_reductions"],
        env={**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": os.getcwd()},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)

    assert found["count"] == 64
    assert found["differ"] == []
    assert found["calls"] == [2 * 255, 8]
