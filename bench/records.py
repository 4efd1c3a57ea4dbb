"""Records of a benchmark: written to a file as they come, so that a run can be continued."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

Record = dict[str, Any]


class Log:
    """Records by key, kept in a file as they come."""

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, threading.Lock()
        self.found: dict[str, Record] = {}
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
            self._take(json.loads(line))

    def note(self, record: Record) -> None:
        """Keep a record, in the file first."""
        with self._lock, self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
            self._take(record)

    def merge(self) -> None:
        """Make the file one line for each key."""
        lines = [json.dumps(record) + "\n" for record in self.found.values()]
        self._path.write_text("".join(lines), encoding="utf-8")

    def _take(self, record: Record) -> None:
        self.found[record["key"]] = self.found.get(record["key"], {}) | record


def machine() -> Record:
    """Where it ran."""
    import torch
    import triton

    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"
    head = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "gpu": gpu,
        "torch": torch.__version__,
        "triton": triton.__version__,
        "python": sys.version.split()[0],
        "commit": head.stdout.strip(),
    }
