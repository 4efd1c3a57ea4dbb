"""Runs a program of a benchmark in a process of its own: if it dies or hangs, one row is lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Record = dict[str, Any]


@dataclass(frozen=True)
class Child:
    """``python -m module --phase ... --only ... --out ...`` with ``more``, which writes a record.

    ``interpreted``: kernels run in Triton's interpreter.
    """

    module: str
    phase: str
    name: str
    more: Sequence[str] = ()
    interpreted: bool = False

    def record(self, out: Path, seconds: float) -> Record:
        """What the process writes to ``out``, which is gone then; "error" where it ends badly, or
        takes longer.
        """
        if seconds <= 0:
            return self._failed(f"no time was left to {self.phase} it")
        command = [sys.executable, "-m", self.module, "--phase", self.phase, "--only", self.name]
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        if self.interpreted:
            environment["TRITON_INTERPRET"] = "1"
        try:
            done = subprocess.run(
                [*command, "--out", str(out), *self.more],
                capture_output=True,
                text=True,
                timeout=seconds,
                env=environment,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return self._failed(f"stopped after {seconds:.0f} s (to {self.phase} it)")
        if done.returncode:
            how = f"code {done.returncode} (to {self.phase} it)"
            return self._failed(f"{how}: {done.stderr[-800:]}")
        record: Record = json.loads(out.read_text(encoding="utf-8"))
        out.unlink()
        return record

    def _failed(self, error: str) -> Record:
        return {"program": self.name, "passed": False, "error": error}
