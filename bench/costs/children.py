"""Processes that work through pairs: if one dies or stops reporting, its current pair is lost.

A child reads its pairs from standard input, as JSON, and writes a line of JSON for each event: the
start of a pair, and its outcome. Its other output is ignored.
"""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from bench.costs.variations import Pair

Record = dict[str, Any]
BEGUN, CHECKED, FAILED = "begun", "checked", "failed"
TRIES = 2  # children in a row that end badly at no pair
LATE = "no time was left for it"


def worked_through(
    pairs: Sequence[Pair],
    command: Sequence[str],
    *,
    silence: float,
    end: float,
    note: Callable[[Record], None],
) -> None:
    """Have children, started by ``command``, work through ``pairs``.

    ``note`` gets their records, and one for each pair that was lost.
    A child that says nothing for ``silence`` seconds is stopped, as all are at ``end`` (of the
    monotonic clock). After a child that ended badly another one goes on with the rest.
    """
    left, tries = list(pairs), 0
    while left and tries < TRIES:
        states: dict[str, str] = {}
        problem = ""
        for record in _lines(left, command, silence, end):
            if "problem" in record:
                problem = record["problem"]
                continue
            states[record["key"]] = record["state"]
            if record["state"] != BEGUN:
                note(record)
        lost = [key for key, state in states.items() if state == BEGUN]
        for key in lost:
            note({"key": key, "state": FAILED, "reason": problem or "its process forgot it"})
        left = [pair for pair in left if states.get(pair.key, CHECKED) == CHECKED]
        if not problem or time.monotonic() > end:
            break
        tries = 0 if lost else tries + 1
    reason = LATE if time.monotonic() > end else problem or LATE
    for pair in left:
        note({"key": pair.key, "state": FAILED, "reason": reason})


def _lines(
    pairs: Sequence[Pair], command: Sequence[str], silence: float, end: float
) -> Iterator[Record]:
    """The records of one child; last a "problem", if it ended badly or said nothing for long."""
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        errors: list[str] = []
        reader = threading.Thread(target=lambda: errors.extend(child.stderr or ()), daemon=True)
        reader.start()
        watch = _Watch(child, silence, end)
        with suppress(BrokenPipeError):  # it ended before it has read them
            child.stdin.write(json.dumps([asdict(pair) for pair in pairs]))
        with suppress(BrokenPipeError):
            child.stdin.close()
        for line in child.stdout:
            watch.heard()
            if line.startswith('{"key"'):
                yield json.loads(line)
        code = child.wait()
        watch.stop()
        reader.join(5)
    if code:
        said = "".join(errors)[-400:]
        yield {"problem": watch.reason or f"its process ended with code {code}: {said}"}


class _Watch:
    """Ends a child that says nothing for too long, or when time is up."""

    def __init__(self, child: subprocess.Popen[str], silence: float, end: float) -> None:
        self.reason = ""
        self._child, self._silence, self._end = child, silence, end
        self._timer: threading.Timer | None = None
        self.heard()

    def heard(self) -> None:
        """Begin to wait anew."""
        self.stop()
        left = self._end - time.monotonic()
        late = left < self._silence
        reason = "time was up" if late else f"it said nothing for {self._silence:.0f} s"
        self._timer = threading.Timer(max(0.0, min(left, self._silence)), self._kill, [reason])
        self._timer.daemon = True
        self._timer.start()

    def stop(self) -> None:
        """Wait no longer."""
        if self._timer is not None:
            self._timer.cancel()

    def _kill(self, reason: str) -> None:
        self.reason = reason
        self._child.kill()
