"""Programs compiled for four targets without a GPU: two here, two targets a program in CI, all with
`make targets`."""

import json
from collections import Counter
from pathlib import Path

import pytest

from bench.targets import CASES, TARGETS, compiled, failures, in_turn
from blockbuster.emit.target import targets

GOLDEN = Path(__file__).parents[1] / "golden" / "targets.json"
FEW = {"attention timed float16 default": "gfx942", "mlp ragged bfloat16 default": "sm_100"}
ALL = [(case, target) for case in CASES for target in TARGETS]


@pytest.fixture(autouse=True)
def fresh_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))


@pytest.mark.parametrize("case", [c for c in CASES if c.name in FEW], ids=lambda c: c.name)
def test_a_few_compile(case):
    assert list(failures(compiled(case, FEW[case.name]))) == []


def test_the_targets_that_take_turns_have_as_many_programs_each():
    jobs = in_turn(CASES)
    count = Counter(target for _, target in jobs)

    assert len({(case.name, target) for case, target in jobs}) == 2 * len(CASES)
    assert count.pop("sm_90") == len(CASES)
    assert max(count.values()) - min(count.values()) <= 1


def test_the_record_is_complete_and_within_the_devices():
    records = json.loads(GOLDEN.read_text(encoding="utf-8"))["records"]

    assert len(CASES) >= 40
    assert [(r["case"], r["target"]) for r in records] == [(c.name, t) for c, t in ALL]
    for record in records:
        assert list(failures(record)) == []
        for _, shared, _, _ in record["functions"]:
            assert shared <= targets.TARGETS[record["target"]].shared
