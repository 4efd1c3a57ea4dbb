"""Processes that work through pairs: one that dies or falls silent loses the pair it was at."""

import sys
import time

from bench.costs.children import worked_through
from bench.costs.variations import Pair
from bench.records import Log

CHILD = """
import json, os, sys, time
for pair in json.load(sys.stdin):
    key = f"{pair['workload']}#{pair['number']}"
    print(json.dumps({"key": key, "state": "begun"}), flush=True)
    print("a compiler says something", flush=True)
    if pair["workload"] == "dies":
        print("out of luck", file=sys.stderr, flush=True)
        os._exit(7)
    if pair["workload"] == "hangs":
        time.sleep(60)
    print(json.dumps({"key": key, "state": "built"}), flush=True)
"""


def pair(workload, number=0):
    return Pair(workload, number, -1, "")


def through(pairs, *, silence=20.0, seconds=20.0, child=CHILD):
    found = []
    command = [sys.executable, "-c", child]
    end = time.monotonic() + seconds
    worked_through(pairs, command, silence=silence, end=end, note=found.append)
    return {record["key"]: record for record in found}


def test_all_pairs_are_worked_through():
    found = through([pair("one"), pair("one", 1)])
    assert {key: record["state"] for key, record in found.items()} == {
        "one#0": "built",
        "one#1": "built",
    }


def test_a_process_that_dies_loses_one_pair():
    found = through([pair("one"), pair("dies"), pair("one", 1), pair("dies", 1), pair("one", 2)])
    assert [record["state"] for record in found.values()].count("built") == 3
    assert found["dies#0"]["state"] == "failed"
    assert "code 7" in found["dies#0"]["reason"]
    assert "out of luck" in found["dies#1"]["reason"]


def test_a_process_that_falls_silent_loses_one_pair():
    found = through([pair("hangs"), pair("one")], silence=1.0)
    assert found["hangs#0"] == {
        "key": "hangs#0",
        "state": "failed",
        "reason": "it said nothing for 1 s",
    }
    assert found["one#0"]["state"] == "built"


def test_what_is_left_when_time_is_up_is_said():
    found = through([pair("hangs"), pair("one")], seconds=1.0)
    assert found["hangs#0"]["reason"] == "time was up"
    assert found["one#0"]["reason"] == "no time was left for it"


def test_a_process_that_cannot_start_is_tried_twice():
    found = through([pair("one")], child="raise SystemExit(3)")
    assert found["one#0"]["reason"].startswith("its process ended with code 3")


def test_a_process_that_reads_nothing_does_not_stop_the_run():
    """More than a pipe holds is written to it when it has ended."""
    pairs = [pair("one" * 40, number) for number in range(2000)]
    found = through(pairs, child="import os; os.close(0); os._exit(3)")

    assert {record["state"] for record in found.values()} == {"failed"}


def test_what_was_only_checked_is_done_again():
    child = """
import json, os, sys
pairs = json.load(sys.stdin)
for pair in pairs:
    key = f"{pair['workload']}#{pair['number']}"
    print(json.dumps({"key": key, "state": "begun"}), flush=True)
    if pair["workload"] == "dies":
        os._exit(7)
    print(json.dumps({"key": key, "state": "checked"}), flush=True)
for pair in pairs:
    print(json.dumps({"key": f"{pair['workload']}#{pair['number']}", "state": "timed"}), flush=True)
"""
    found = through([pair("one"), pair("dies"), pair("one", 1)], child=child)
    assert [found[key]["state"] for key in ("one#0", "dies#0", "one#1")] == [
        "timed",
        "failed",
        "timed",
    ]


def test_a_log_goes_on_where_it_ended(tmp_path):
    path = tmp_path / "pairs.jsonl"
    log = Log(path)
    log.note({"key": "a#0", "state": "chosen", "schedule": "warps 4"})
    log.note({"key": "a#0", "state": "built"})
    log.note({"key": "b#0", "state": "chosen"})
    again = Log(path)
    assert again.found == log.found
    assert again.found["a#0"] == {"key": "a#0", "state": "built", "schedule": "warps 4"}
    again.merge()
    assert len(path.read_text().splitlines()) == 2
    assert Log(path).found == log.found
