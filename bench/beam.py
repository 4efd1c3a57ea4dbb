"""A beam search by the closed form from the choice for each case of bench/peers: what it finds.

    python -m bench.choices make --out chosen.jsonl          # no GPU; --target h100, --only
    python -m bench.beam chosen.jsonl --out beam.jsonl       # no GPU; --budget 400
    python -m bench.choices measure chosen.jsonl beam.jsonl --out FOLDER        # on a GPU

The search looks at the neighbours of a schedule in its space (selection/space.py). A line of the
table: the microseconds of the choice and of the best schedule found, and the edits between them.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from functools import partial
from pathlib import Path

import blockbuster as bb
from bench.choices import Chosen, asked_for, fused, read
from bench.peers.cases import BY_KEY
from blockbuster.emit.schedule.scheduled import Scheduled
from blockbuster.errors import BlockbusterError
from blockbuster.selection.search import beam, microseconds

BUDGET = 400
LEAST = 0.98
"""The part of the choice's microseconds above which a schedule counts as no better."""


def beamed(before: Chosen, target: str, budget: int) -> tuple[Chosen, str]:
    """The best schedule that the search finds for a case, and a line about it.

    The choice itself, if none is better by ``LEAST``.
    """
    began = time.process_time()
    case = BY_KEY[before.key]
    derivation, dtypes, constant = fused(case)
    emit = partial(bb.emit, derivation, dict(case.sizes), dtypes, target, constant=constant)
    try:
        kernel = emit(schedule=before.schedule)
        start = kernel.derivation.final if kernel.derivation else None
        assert isinstance(start, Scheduled)
        found = beam([start], microseconds, budget=budget)
        best = found[0]
        seconds = time.process_time() - began
        old = microseconds(start)
        said = f"{before.key:45} {old:9.2f} {best.microseconds:9.2f} {best.microseconds / old:6.3f}"
        said += f" {len(found):4} prices {seconds:5.1f} s  {'; '.join(best.edits)}"
        if best.microseconds > LEAST * old:
            return before, said
        first = before.schedule.splitlines(keepends=True)[:1]
        named_first = first[0] if first and first[0].startswith("for ") else ""
        made = emit(schedule=named_first + best.scheduled.schedule)
    except BlockbusterError as error:
        return Chosen(before.key, reason=str(error)), f"{before.key:45} {error}"
    after = Chosen(before.key, made.schedule, round(best.microseconds, 2), made.source)
    return after, said


def search(before: Path, out: Path, keys: Sequence[str], options: argparse.Namespace) -> None:
    """Append what is found for these cases to a file."""
    chosen = {key: one for key, one in read(before).items() if key in keys and one.schedule}
    done = read(out) if out.exists() else {}
    left = [one for key, one in chosen.items() if key not in done]
    one = partial(beamed, target=options.target, budget=options.budget)
    with ProcessPoolExecutor(options.workers) as pool, out.open("a", encoding="utf-8") as file:
        for after, said in pool.map(one, left):
            print(said, flush=True)
            file.write(json.dumps(asdict(after)) + "\n")
            file.flush()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("before", type=Path, help="choices, by bench.choices make")
    parser.add_argument("--out", type=Path, required=True, help="a file of choices like that")
    parser.add_argument("--only", default="", help="suites or cases, separated by commas")
    parser.add_argument("--target", default="sm_90")
    parser.add_argument("--budget", type=int, default=BUDGET, help="schedules that are priced")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    keys = asked_for([word for word in options.only.split(",") if word])
    search(options.before, options.out, keys, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
