"""The benchmark of ours and peers: all agree, processes may be lost, tables say what was found."""

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from bench.peers import report  # noqa: E402
from bench.peers.case import HAND, OURS, Case, as_tuple, error_of  # noqa: E402
from bench.peers.cases import BY_KEY, CASES, SUITES  # noqa: E402
from bench.peers.contestants import called  # noqa: E402
from bench.peers.plots import draw  # noqa: E402
from bench.peers.pool import Pool, Setting, taking_part  # noqa: E402
from bench.peers.run import chosen, dry_run  # noqa: E402
from bench.peers.trial import checked, prepared  # noqa: E402
from bench.schedules.hand import attention, chain, decode, matmul, normed_matmul, rows  # noqa: E402
from tests.bench.lost_peers import careless  # noqa: E402
from tests.parameters import one_in  # noqa: E402

HAND_FORMS = (attention, chain, decode, matmul, normed_matmul, rows)
TRIED = (
    "masks/alibi-2048", "masks/window-8192", "decode/gqa-8192", "ffn/small512-128",
    "gemm_chain/G12", "rows/length-256x131072", "losses/smoothed-cross-entropy",
)  # fmt: skip


@pytest.mark.parametrize("key", one_in(3, TRIED))
def test_all_who_compute_a_case_agree(key, capsys):
    assert dry_run([BY_KEY[key]]) == 0, capsys.readouterr().out


def test_every_suite_has_quick_cases_and_every_family_its_peers():
    assert {case.suite for case in CASES if case.quick} == set(SUITES) - {"outside", "einsum"}
    assert sum(case.quick for case in CASES) <= 60
    for case in CASES:
        names = [one.name for one in case.contestants]
        assert len(set(names)) == len(names), case.key
        assert names[0] == "ours"
        assert any(one.kind == "peer" and not one.searched for one in case.contestants), case.key


def test_a_search_is_made_at_two_shapes_of_a_family_at_most_and_never_in_quick_runs():
    families = {}
    for case in CASES:
        searched = [one for one in case.contestants if one.searched]
        families.setdefault(case.family, []).extend([case.key] if searched else [])
        assert not any(one.searched for one in taking_part(case, Setting(searches=False)))
    assert {family: keys for family, keys in families.items() if len(keys) > 3} == {}


def test_ours_alone_can_be_asked_for():
    assert [one.name for one in taking_part(CASES[0], Setting(ours_only=True))] == ["ours"]


def test_cases_are_chosen_by_suite_and_by_name():
    def keys(only, *, quick=False):
        options = argparse.Namespace(only=only, families="", every=1, quick=quick)
        return [case.key for case in chosen(options)]

    assert len(keys("")) == len(CASES)
    assert keys("G4,decode/gqa-8192") == ["decode/gqa-8192", "gemm_chain/G4"]
    assert set(keys("rows", quick=True)) < set(keys("rows"))
    with pytest.raises(ValueError, match="no suite or case is named attentoin; suites: attention"):
        keys("attentoin")
    with pytest.raises(ValueError, match="no case is left"):
        keys("outside", quick=True)


def test_a_wrong_or_failing_contestant_is_named_and_not_timed():
    others = {"eager": lambda x: 2 * x, "off": lambda x: 2 * x + 1, "broken": lambda x: x @ x}
    case = made_up(lambda x: x * 2, *(called(name, fn) for name, fn in others.items()))
    made = prepared(case, case.contestants, case.drawn(case.few, "cpu", seed=1))
    errors = checked(made)
    assert list(made.runs) == ["eager"]
    assert errors["eager"] == 0.0
    assert "above 2e-04" in made.failed["off"]
    assert "RuntimeError" in made.failed["broken"]


@pytest.mark.parametrize(("of_eager", "of_ours", "quantizes", "right"), [
    (1e-4, 1e-4, True, True), (1e-4, 1.1e-4, True, False), (1e-6, 1e-4, True, False),
    (1e-2, 1e-2, True, False), (1e-4, 1e-4, False, False),
])  # fmt: skip
def test_ours_may_err_as_much_as_an_eager_that_is_right(of_eager, of_ours, quantizes, right):
    ours = called("ours", lambda x: 2 * x * (1 + of_ours), kind=OURS)
    eager = called("eager", lambda x: 2 * x * (1 + of_eager))
    case = replace(made_up(lambda x: x * 2, ours, eager), quantizes=quantizes)
    made = prepared(case, case.contestants, case.drawn(case.few, "cpu", seed=1))
    checked(made)
    assert ("ours" in made.runs) is right


def test_a_result_of_another_shape_or_with_nan_is_wrong():
    x = torch.ones(3, dtype=torch.float64)
    assert error_of(as_tuple(x), (x,)) == 0.0
    assert error_of((x * float("nan"),), (x,)) == float("inf")
    assert error_of((x[:2],), (x,)) == float("inf")


def made_up(plain, *contestants):
    few = dict(M=3, N=5)
    return Case("s", "f", "n", plain, plain, dict(x="M N"), few, few, contestants, dtype="float32")


def test_hand_forms_exist():
    modules = {module.__name__.rpartition(".")[2]: module for module in HAND_FORMS}
    for case in CASES:
        for one in case.contestants:
            if one.kind == HAND:
                cells = [cell.cell_contents for cell in one.make.__closure__]
                (place,) = (cell for cell in cells if isinstance(cell, str))
                (number,) = (cell for cell in cells if isinstance(cell, int))
                module, name = place.split(".")
                assert getattr(modules[module], name)[number].prepare, (case.key, place)


# processes --------------------------------------------------------------------------


def through(keys, *, workers=2, patience=20.0, seconds=30.0, each=0.01):
    found = {}
    setting = Setting(patience=patience)
    pool = Pool(workers, setting, lambda record: found.update({record["key"]: record}), careless)
    pool.run(keys, each=each, end=time.monotonic() + seconds)
    pool.close()
    return found


def test_all_cases_are_timed_by_those_who_prepared_them():
    found = through(["a", "b", "c"])
    assert [found[key]["state"] for key in "abc"] == ["timed"] * 3
    assert 1 <= len({record["process"] for record in found.values()}) <= 2


def test_a_process_that_dies_or_hangs_loses_one_contestant(monkeypatch):
    monkeypatch.setattr("bench.peers.pool.LAST", 0.0)
    found = through(["a", "b dies", "c", "d dies-late", "hangs e"], patience=1.0)
    assert len(found) == 5
    assert {record["state"] for record in found.values()} == {"timed"}
    assert found["b dies"]["failed"] == {"dies": "its process died; exit code 7"}
    assert found["d dies-late"]["failed"] == {"dies-late": "its process died; exit code 7"}
    assert found["hangs e"]["failed"]["hangs"].startswith("it took more than 1 s")
    assert found["a"]["failed"] == {}


def test_a_case_that_fails_as_a_whole_is_noted_and_the_others_go_on(monkeypatch):
    monkeypatch.setattr("bench.peers.pool.LAST", 0.0)
    found = through(["breaks", "a"], workers=1)
    assert found["breaks"]["failed"] == {"case": "no memory"}
    assert found["a"]["state"] == "timed"


def test_no_case_is_begun_that_could_not_be_timed():
    assert through(["a", "b"], each=100.0, seconds=10.0) == {}


# tables -----------------------------------------------------------------------------


def record(name, family="rows", warm=True, failed=None, **times):
    kinds = {"ours": "ours", "eager": "peer", "compile": "peer", "mm": "bound", "hand": "hand"}
    rounds = {key: [us, us, 10 * us] for key, us in times.items()}
    return {
        "key": f"rows/{name}", "case": name, "family": family, "state": "timed",
        "kinds": kinds, "cold": {key: [2 * us for us in r] for key, r in rounds.items()},
        "warm": rounds if warm else {}, "failed": failed or {}, "errors": {"ours": 3e-4},
        "report": "length: 2 kernels for sm_90",
    }  # fmt: skip


RECORDS = [
    record("a", ours=2.0, eager=4.0, compile=3.0, mm=1.0),
    record("b", ours=2.0, eager=1.0, compile=8.0, hand=2.2),
    record("c", family="GEMM", warm=False, ours=5.0, eager=6.0, failed={"compile": "out\nof luck"}),
]


def test_a_family_is_compared_with_the_best_peer_of_each_case():
    first, second = report.by_family(RECORDS).splitlines()[2:]
    assert first == "| rows | 2 | 0.87 | 0.50 b | compile (1), eager (1) | 0.50 | 1.10 |"
    assert second == "| GEMM | 1 | 1.20 | 1.20 c | eager (1) | – | – |"


def test_cases_say_how_they_were_timed_and_what_failed():
    text = report.table(RECORDS)
    assert (
        "| rows/a | graph | 2.0 | 1.50 | mm 1.0 · compile 3.0 · eager 4.0 | 3e-04 | 2 kernels |"
        in text
    )
    assert "| rows/c | cold | 10.0 | 1.20 | eager 12.0 |" in text
    assert "| rows/c | compile | out of luck |" in text
    assert "| rows | eager | 2 | 1.00 | 0.50 b |" in text


def test_two_runs_of_ours_are_compared_case_by_case():
    lines = report.changes(RECORDS, [record("a", ours=3.0)]).splitlines()
    assert lines[2] == "| rows/a | 3.0 | 2.0 | 1.50 |"
    assert lines[3] == "| geometric mean |  |  | 1.50 |"


def test_records_are_read_and_drawn(tmp_path):
    lines = [json.dumps(one) + "\n" for one in (*RECORDS, replaced(RECORDS[0]))]
    (tmp_path / "cases.jsonl").write_text("".join(lines), encoding="utf-8")
    found = report.records_of(tmp_path)
    assert len(found) == 3
    assert report.times_of(found[0])["ours"] == 1.0
    pytest.importorskip("matplotlib")
    assert draw(found, tmp_path) == Path(tmp_path / "ratios.png")
    assert (tmp_path / "ratios.png").stat().st_size > 1000


def replaced(old):
    return old | {"warm": {"ours": [1.0], "eager": [4.0]}}


def test_a_dry_run_finds_a_wrong_contestant(capsys):
    case = replace(
        made_up(lambda x: x + 1, called("off", lambda x: x)),
        contestants=(called("off", lambda x: x),),
    )
    assert dry_run([case]) == 1
    assert "1 contestants wrong" in capsys.readouterr().out
