"""The progress of a search, shown on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from blockbuster.errors import shown
from blockbuster.tiling.measurement import Measurement

Note = Callable[[Measurement[Any]], None]


@contextmanager
def watched(
    title: str, total: int | None = None, *, console: Console | None = None
) -> Iterator[Note]:
    """Show how many measurements are done, how many are lost, and the best time so far.

    What this gives hears of each measurement (the ``note`` of ``Workers.measure``). ``total``: how
    many there will be, where that is known. ``console``: rich's; its own by default.
    """
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[said]}", markup=False),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(shown(title), total=total, said="")
        best: list[float] = []
        lost: list[str] = []

        def note(measurement: Measurement[Any]) -> None:
            if measurement.seconds is None:
                lost.append(measurement.reason)
            else:
                best[:] = [min([*best, measurement.seconds])]
            said = f"best {best[0] * 1e6:.2f} us" if best else "no time yet"
            said += f", {len(lost)} lost" if lost else ""
            progress.update(task, advance=1, said=said)

        yield note
