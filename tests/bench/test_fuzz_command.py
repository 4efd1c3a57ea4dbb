"""The harness of random programs as a command: processes that are lost, results, arguments."""

import json
import re
import time

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")

from bench.gpu.fuzz import assemblers, pool, report  # noqa: E402
from bench.gpu.fuzz.__main__ import main  # noqa: E402
from bench.gpu.fuzz.draw import Draw, draw  # noqa: E402
from bench.gpu.fuzz.pen import Given  # noqa: E402
from tests.bench.lost_processes import careless, dying  # noqa: E402

CHAIN = Draw(
    seed=1,
    family="dots",
    body="(x @ a) @ w",
    inputs={"x": Given((64, 64)), "a": Given((64, 33), 0.125), "w": Given((33, 8), 0.17)},
    dtype="float16",
    forced=None,
)


# processes -----------------------------------------------------------------------


def test_processes_that_die_or_hang_cost_their_seed():
    records = []
    end = time.monotonic() + 60
    setting = pool.Setting("cpu", limit=1.0)
    pool.run(iter(range(10)), 2, setting, end, records.append, work=careless)

    verdicts = {record["seed"]: record["verdict"] for record in records}
    assert verdicts == {
        seed: ("right", "right", "device error", "died", "hung")[seed % 5] for seed in range(10)
    }
    died = next(record for record in records if record["verdict"] == "died")
    assert died["reason"] == "exit code 7"
    assert died["source"] == draw(died["seed"]).source


def test_processes_that_all_die_are_an_error():
    records = []
    with pytest.raises(RuntimeError, match="process after process dies: exit code 3"):
        pool.run(
            iter(range(100)), 1, pool.Setting("cpu"), time.monotonic() + 60, records.append,
            work=dying,
        )  # fmt: skip
    assert len(records) < 10


# the command ---------------------------------------------------------------------


def test_published_results_name_no_folders(tmp_path):
    said = report.about(["--seconds", "5", "--out", str(tmp_path / "fuzz")])

    assert said["command"] == ["bench.gpu.fuzz", "--seconds", "5", "--out", "fuzz"]


def test_the_command_writes_what_it_found(tmp_path, capsys):
    arguments = ["--cpu", "--first", "0", "--count", "6", "--workers", "1", "--out", str(tmp_path)]

    assert main(arguments) == 0
    found = json.loads((tmp_path / "fuzz.json").read_text())
    (run,) = found["runs"]
    assert run["programs"] == 6
    assert (run["first seed"], run["last seed"]) == (0, 5)
    assert run["bad"] == []
    assert found["about"]["torch"] == torch.__version__
    assert "6 programs, 0 bad" in capsys.readouterr().out


def test_a_wrong_program_is_shown_with_its_source():
    bad = {**CHAIN.described(source=True), "verdict": "WRONG", "error": 0.3, "eager": 1e-3}
    run = report.summary([bad | {"seconds": 1.0}], assemblers.CHOSEN, 2.0)
    text = report.shown(run)

    assert report.bad_in(run) == 1
    assert run["in five minutes"] == 150
    assert "seed 1: WRONG, error 0.3 (eager 0.001), float16, as chosen" in text
    assert "lambda x, a, w: (x @ a) @ w" in text
    assert "a (64, 33)" in text


def test_refusals_are_counted_by_reason():
    records = [
        {**CHAIN.described(), "verdict": "refused", "seconds": 0.1, "reason": reason}
        for reason in ("Y_kernel needs 300 bytes\n  more", "Z_kernel_1 needs 70 bytes")
    ]
    run = report.summary(records, assemblers.CHOSEN, 2.0)

    assert run["refused"] == {"KERNEL needs n bytes": 2}
    assert report.bad_in(run) == 0


def test_one_program_alone(capsys):
    assert main(["--seed", "5", "--cpu"]) == 0

    said = capsys.readouterr().out
    assert draw(5).source in said
    assert '"verdict": "right"' in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--families", "dots,nonsense"], "no family nonsense; known: operators"),
        (["--assembler", "no/such/ptxas"], "no/such/ptxas is no ptxas"),
        (["--without", "nonsense"], "no protection 'nonsense'"),
    ],
)
def test_wrong_arguments_are_refused(capsys, arguments, message):
    with pytest.raises(SystemExit):
        main(arguments)
    assert message in capsys.readouterr().err


def test_assemblers_have_versions_and_come_once():
    versions = [assemblers.version(path) for path in assemblers.found()]

    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in versions)
    assert len(set(versions)) == len(versions)
