"""The same input gives the same bytes in any process, whatever the hash seed and import order."""

import os
import subprocess
import sys

PACKAGES = ("ir", "frontend", "rules", "interp", "emit", "testing")

SCRIPT = """
import importlib, sys
for package in sys.argv[1:]:
    importlib.import_module("blockbuster." + package)

import blockbuster as bb
from blockbuster import examples

for example in examples.ALL:
    derivation = bb.fuse(bb.lower(example.program()))
    safe = bb.safe(derivation.final)
    kernel = bb.emit(safe, sizes=example.sizes, dtype="float16", target="sm_90")
    print("#", example.name)
    print(derivation.start.show())
    print(derivation.show())
    for snapshot in derivation.snapshots:
        print(snapshot.show())
    print(safe.listing())
    print(kernel.source)
"""


def output(seed: str, imports: tuple[str, ...]) -> bytes:
    """What the script prints in a fresh process."""
    finished = subprocess.run(
        [sys.executable, "-c", SCRIPT, *imports],
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr.decode()
    return finished.stdout


def test_two_processes_print_the_same_bytes():
    first = output("1", PACKAGES)

    assert first.count(b"\n# ") + first.startswith(b"# ") >= 3
    assert first == output("4242", PACKAGES[::-1])
