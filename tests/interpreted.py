"""What a module of the tests prints when it runs in Triton's interpreter."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def printed_by(module):
    """The JSON that a module prints, by a process of its own: Triton decides at its import."""
    pytest.importorskip("torch", reason="torch is not installed: pip install torch")
    done = subprocess.run(
        [sys.executable, "-m", module],
        cwd=ROOT,
        env={**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
