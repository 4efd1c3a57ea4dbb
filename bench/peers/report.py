"""Tables of measurements: a line for each family, and one for each case.

    python -m bench.peers.report RESULTS                  the tables and, into RESULTS, the plots
    python -m bench.peers.report RESULTS --against OTHER  ours there and here, case by case

A ratio is the time of a peer over ours: above 1 ours is faster.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from bench.peers.case import BOUND, HAND, PEER
from bench.records import Record

SEARCHED = "max-autotune"


def records_of(folder: Path) -> list[Record]:
    """The records of a run, in the order in which they were timed."""
    lines = (folder / "cases.jsonl").read_text(encoding="utf-8").splitlines()
    return list({record["key"]: record for record in map(json.loads, lines)}.values())


def times_of(record: Record) -> dict[str, float]:
    """The median time of each contestant, in microseconds: by graph if ours has one, else cold."""
    kept = record.get("warm") or {}
    if "ours" not in kept and "ours" in record.get("cold", {}):
        kept = record["cold"]
    return {name: statistics.median(rounds) for name, rounds in kept.items() if rounds}


def way_of(record: Record) -> str:
    """How its times were taken."""
    return "graph" if "ours" in (record.get("warm") or {}) else "cold"


def of_kind(record: Record, kind: str) -> dict[str, float]:
    """The times of the contestants of a kind."""
    return {n: us for n, us in times_of(record).items() if record["kinds"].get(n) == kind}


def best(record: Record, kind: str = PEER) -> tuple[str, float] | None:
    """The fastest of a kind, if any was timed."""
    found = of_kind(record, kind)
    return min(found.items(), key=lambda pair: pair[1]) if found else None


def ratio(record: Record, kind: str = PEER) -> float | None:
    """The time of the fastest of a kind over ours."""
    fastest, ours = best(record, kind), times_of(record).get("ours")
    return fastest[1] / ours if fastest and ours else None


def geometric_mean(ratios: Iterable[float | None]) -> float | None:
    known = [x for x in ratios if x]
    return statistics.geometric_mean(known) if known else None


# the tables -----------------------------------------------------------------------


def table(records: Sequence[Record]) -> str:
    """All tables, as a page in Markdown."""
    timed = [record for record in records if record.get("state") == "timed"]
    parts = [by_family(timed), by_peer(timed), by_case(timed), failures(records)]
    return "\n".join(["# Ours beside peers\n", *(part for part in parts if part)])


def families(records: Sequence[Record]) -> dict[str, list[Record]]:
    """The records of each family, in the order of the list of cases."""
    found: dict[str, list[Record]] = {}
    for record in records:
        found.setdefault(record["family"], []).append(record)
    return found


def by_family(records: Sequence[Record]) -> str:
    """How ours stands beside the best peer of each case, the bound, and the form by hand."""
    rows = []
    for family, members in families(records).items():
        ratios = {r["case"]: x for r in members if (x := ratio(r))}
        worst = min(ratios, key=lambda name: ratios[name]) if ratios else ""
        names = Counter(found[0] for r in members if (found := best(r)))
        rows.append(
            (
                family, len(members), _shown(geometric_mean(ratios.values())),
                f"{_shown(ratios.get(worst))} {worst}".strip(),
                ", ".join(f"{name} ({n})" for name, n in names.most_common(2)),
                _shown(geometric_mean(ratio(r, BOUND) for r in members)),
                _shown(geometric_mean(ratio(r, HAND) for r in members)),
            )
        )  # fmt: skip
    ratios_of = ("best peer / ours", "worst", "best peer", "bound / ours", "hand / ours")
    return markdown(("family", "cases", *ratios_of), rows)


def by_peer(records: Sequence[Record]) -> str:
    """The geometric mean of each peer's time over ours, by family."""
    rows = []
    for family, members in families(records).items():
        names = dict.fromkeys(name for r in members for name in of_kind(r, PEER))
        for name in names:
            ratios = {
                r["case"]: us / ours
                for r in members
                if (us := of_kind(r, PEER).get(name)) and (ours := times_of(r).get("ours"))
            }
            if ratios:
                worst = min(ratios, key=lambda case: ratios[case])
                mean = _shown(geometric_mean(ratios.values()))
                rows.append((family, name, len(ratios), mean, f"{ratios[worst]:.2f} {worst}"))
    return markdown(("family", "peer", "cases", "peer / ours", "worst"), rows)


def by_case(records: Sequence[Record]) -> str:
    """All times."""
    rows = []
    for record in records:
        times = times_of(record)
        ours = times.pop("ours", None)
        others = " · ".join(f"{n} {us:.1f}" for n, us in sorted(times.items(), key=lambda x: x[1]))
        error = record["errors"].get("ours")
        kernels = record.get("report", "").partition(": ")[2].partition(" for ")[0]
        rows.append(
            (
                record["key"], way_of(record), f"{ours:.1f}" if ours else "–",
                _shown(ratio(record)), others, f"{error:.0e}" if error else "–", kernels,
            )
        )  # fmt: skip
    head = ("case", "timed", "ours, µs", "best peer / ours", "others, µs", "error", "ours is")
    return markdown(head, rows)


def failures(records: Sequence[Record]) -> str:
    """Who failed, and why."""
    rows = [
        (record["key"], name, " ".join(why.split())[:200])
        for record in records
        for name, why in record.get("failed", {}).items()
    ]
    for record in records:
        for note in record.get("notes", ()):
            rows.append((record["key"], "ours, a note", " ".join(note.split())[:200]))
    return markdown(("case", "contestant", "what went wrong"), rows) if rows else ""


def changes(here: Sequence[Record], there: Sequence[Record]) -> str:
    """Ours in two runs: the time there over the time here, above 1 if it became faster."""
    before = {record["key"]: record for record in there}
    rows, ratios = [], []
    for record in here:
        old = times_of(before.get(record["key"], {})).get("ours")
        new = times_of(record).get("ours")
        if old and new:
            ratios.append(old / new)
            rows.append((record["key"], f"{old:.1f}", f"{new:.1f}", f"{old / new:.2f}"))
    rows.sort(key=lambda row: float(row[3]))
    rows.append(("geometric mean", "", "", _shown(geometric_mean(ratios))))
    return markdown(("case", "there, µs", "here, µs", "there / here"), rows)


def markdown(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    cells = (" | ".join(str(cell).replace("|", "\\|") for cell in row) for row in lines)
    return "\n".join(f"| {row} |" for row in cells) + "\n"


def _shown(number: float | None) -> str:
    return f"{number:.2f}" if number else "–"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", type=Path)
    parser.add_argument("--against", type=Path, help="the results of another commit")
    options = parser.parse_args()
    for folder in filter(None, (options.results, options.against)):
        if not (folder / "cases.jsonl").exists():
            parser.error(f"{folder} has no cases.jsonl: bench.peers.run writes it")
    records = records_of(options.results)
    if options.against:
        print(changes(records, records_of(options.against)))
        return 0
    from bench.peers.plots import draw

    text = table(records)
    (options.results / "table.md").write_text(text, encoding="utf-8")
    print(text)
    draw(records, options.results)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
