"""Random eager programs by jit beside NumPy and torch, and what their judge notices."""

from random import Random

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed: pip install torch")

from bench import eager_programs
from bench.eager_programs import drawn, judged, main
from bench.eager_source import Eager, eager_program

FINE = {"equal", "dtype as documented", "refused", "ill-conditioned"}

def verdicts(seeds):
    return {seed: record for seed in seeds if (record := judged(seed))["verdict"] not in FINE}


@pytest.mark.parametrize("first", range(0, 160, 40))
def test_programs_are_as_the_library_computes_them(first):
    assert verdicts(range(first, first + 40)) == {}


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 3000, 250))
def test_more_programs_are_as_the_library_computes_them(first):
    assert verdicts(range(first, first + 250)) == {}


def test_most_programs_are_taken():
    refused = [seed for seed in range(100) if judged(seed)["verdict"] == "refused"]

    assert len(refused) <= 25


def test_a_seed_names_one_program():
    assert drawn(7).text == drawn(7).text
    assert drawn(7).text != drawn(8).text


@pytest.mark.parametrize("library", ["np", "torch"])
def test_programs_have_what_people_type(library):
    texts = [eager_program(Random(seed), library, empty=True).text for seed in range(300)]
    wanted = ["+=", "] =", "[:-", "reshape(", "arange(", "argmax(", " > ", "softmax("]
    wanted += ["::-", "np.stack(", "np.where("] if library == "np" else ["_(", "torch.where("]

    assert [word for word in wanted if not any(word in text for text in texts)] == []


@pytest.mark.parametrize(
    ("right", "wrong", "reason"),
    [
        ("return x + 1,", "return x + 1.001,", "off by"),
        ("return x > 0,", "return x >= 0,", "other integers"),
        ("return x,", "return x.astype('float32'),", "float32, not float64"),
        ("return x,", "return x[:, None],", "shape"),
    ],
)
def test_a_wrong_result_is_noticed(monkeypatch, right, wrong, reason):
    head = "def program(x):\n    "
    array = {"x": np.array([0.0, 1.5, -2.0])}
    program = Eager("np", head + right + "\n", array)
    other = Eager("np", head + wrong + "\n", array)
    monkeypatch.setattr(eager_programs, "drawn", lambda _: program)
    monkeypatch.setattr(eager_programs.bb, "jit", lambda _: other.function())

    record = judged(0)

    assert record["verdict"] == "WRONG"
    assert reason in record["reason"]


def test_an_error_that_is_none_of_ours_is_a_crash(monkeypatch):
    def boom(_):
        raise KeyError("boom")

    monkeypatch.setattr(eager_programs.bb, "jit", boom)

    assert judged(3)["verdict"] == "CRASHED"


def test_the_command_counts(monkeypatch, tmp_path, capsys):
    out = tmp_path / "found.json"
    monkeypatch.setattr("sys.argv", ["x", "--count", "5", "--workers", "1", "--out", str(out)])

    assert main() == 0
    assert "'equal'" in capsys.readouterr().out
    assert "counts" in out.read_text()
