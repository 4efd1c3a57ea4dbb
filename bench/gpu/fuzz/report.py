"""What a run found: as data for a JSON file, and as a table."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from bench.gpu.fuzz import assemblers
from bench.gpu.fuzz.trial import BAD, NO_ORACLE, REFUSED, RIGHT

Record = dict[str, Any]

SPAN = 300  # seconds: programs in five minutes are the rate to show
PACKAGES = ("torch", "triton", "numpy")


def about(arguments: list[str]) -> Record:
    """The machine, the versions and the date; results are published, so folders are left out."""
    words = [Path(word).name if Path(word).is_absolute() else word for word in arguments]
    command = ["bench.gpu.fuzz", *words]
    found: Record = {"date": datetime.now(UTC).isoformat(timespec="seconds"), "command": command}
    found["python"] = platform.python_version()
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "none"
    found["cores"] = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    # without a CUDA context in this process
    gpu = _said("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader")
    found["gpu and driver"] = gpu or "none"
    found["commit"] = _said("git", "rev-parse", "--short", "HEAD") or "unknown"
    return found


def _said(*command: str) -> str:
    """The first line that a command prints; empty where it fails."""
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return ""
    return said.splitlines()[0].strip() if said.strip() else ""


def summary(records: list[Record], assembler: str, seconds: float) -> Record:
    """One run under one assembler."""
    families: dict[str, Counter[str]] = {}
    for record in records:
        families.setdefault(record["family"], Counter())[record["verdict"]] += 1
    refused = Counter(reason(r) for r in records if r["verdict"] == REFUSED)
    instead = Counter(
        in_general(text) for r in records if r["verdict"] == RIGHT for text in r.get("refusals", ())
    )
    is_path = assembler != assemblers.CHOSEN
    return {
        "assembler": assembler,
        "version": assemblers.version(assembler) if is_path else "",
        "programs": len(records),
        "seconds": round(seconds, 1),
        "in five minutes": round(len(records) * SPAN / seconds) if seconds else 0,
        "busy seconds": round(sum(record["seconds"] for record in records), 1),
        "first seed": min((record["seed"] for record in records), default=None),
        "last seed": max((record["seed"] for record in records), default=None),
        "families": {name: dict(counts) for name, counts in sorted(families.items())},
        "refused": dict(refused.most_common()),
        "refused, and another kernel was right": dict(instead.most_common()),
        "bad": sorted((r for r in records if r["verdict"] in BAD), key=lambda r: r["seed"]),
        "no oracle": [r for r in records if r["verdict"] == NO_ORACLE],
    }


def reason(record: Record) -> str:
    return in_general(record.get("reason", ""))


def in_general(text: str) -> str:
    """The first line of a reason, with n for numbers and no names of kernels."""
    first = re.sub(r"\b\w+_kernel\w*\b", "KERNEL", text.splitlines()[0] if text else "")
    return re.sub(r"\d+", "n", first)[:160]


def bad_in(run: Record) -> int:
    return len(run["bad"])


def shown(run: Record) -> str:
    """A run as a table, with the wrong ones first."""
    lines = []
    for record in run["bad"]:
        lines.append(_headline(record))
        lines.append(f"  {record['source']}")
        lines.append(f"  {', '.join(f'{n} {s}' for n, s in record['inputs'].items())}")
        lines += [f"  {line}" for line in record.get("reason", "").splitlines()[:3]]
    kinds = sorted({v for counts in run["families"].values() for v in counts})
    lines.append(f"{'family':12}" + "".join(f"{kind:>22}" for kind in kinds))
    for family, counts in run["families"].items():
        lines.append(f"{family:12}" + "".join(f"{counts.get(kind, 0):22}" for kind in kinds))
    for title in ("refused", "refused, and another kernel was right"):
        lines += [f"{title}: {n} x {text}" for text, n in list(run[title].items())[:12]]
    by = " ".join(filter(None, (run["assembler"], run["version"])))
    lines.append(
        f"{run['programs']} programs, {bad_in(run)} bad, {run['seconds']:.0f} s:"
        f" {run['in five minutes']} in five minutes; seeds {run['first seed']} to"
        f" {run['last seed']}; assembler: {by}"
    )
    return "\n".join(lines)


def _headline(record: Record) -> str:
    """A bad record in a line."""
    parts = [f"seed {record['seed']}: {record['verdict']}"]
    if "error" in record:
        parts.append(f"error {record['error']:.2g} (eager {record['eager']:.2g})")
    if record.get("lost"):
        parts.append(f"{record['lost']} of {record.get('judged', 'its')} results are no number")
    return ", ".join([*parts, record["dtype"], record["forced"] or "as chosen"])


def warn(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
