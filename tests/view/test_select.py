"""`blockbuster select` as a user meets it."""

import json

import pytest

from blockbuster.view.cli import main

MODEL = """
import blockbuster as bb

def grouped(x, w):
    y = x @ w
    y = y.reshape(x.shape[0], 4, w.shape[1] // 4)
    return y - y.max(-1, keepdims=True)
"""
SIZES = ["--dims", "x=M K", "w=K N", "--sizes", "M=1024,K=1024", "N=2048"]


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.py"
    path.write_text(MODEL)
    return f"{path}:grouped"


def run(capsys, *arguments):
    code = main(["select", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_it_prints_why_a_program_becomes_these_kernels(capsys, model):
    code, out, _ = run(capsys, model, *SIZES, "--machine", "a100")

    assert code == 0
    assert out.startswith("grouped: 2 kernels for sm_80, float16; ")
    assert "us predicted on a100 (closed form, cold cache)\n  1. matmul (model.py:5): " in out
    assert "\n  stores 1024 x 2048 (y: float16; 4.2 MB): one kernel for y and out would" in out


def test_json_has_the_same_and_the_numbers(capsys, model):
    code, out, _ = run(capsys, model, *SIZES, "--dtype", "bfloat16", "--json", "--no-library")
    data = json.loads(out)

    assert code == 0
    assert data["schema"] == "blockbuster.plan/1"
    assert (data["name"], data["target"], data["dtype"]) == ("grouped", "sm_90", "bfloat16")
    assert (data["kernels"], data["machine"]) == (2, "h200")
    assert data["total_us"] == pytest.approx(sum(part["us"] for part in data["parts"]))
    assert data["gap"] == pytest.approx(data["total_us"] / data["lower_bound_us"] - 1)
    assert data["parts"][0]["writes"] == data["parts"][1]["reads"] == ["y"]


def test_calls_of_a_library_are_told(capsys, model):
    _, out, _ = run(capsys, model, "--dims", "x=M K", "w=K N", "--sizes", "M=1024,K=4096,N=4096")
    _, own, _ = run(
        capsys, model, "--dims", "x=M K", "w=K N", "--sizes", "M=1024,K=4096,N=4096",
        "--no-library",
    )  # fmt: skip

    assert "1 library call" in out
    assert "torch.matmul" in out
    assert "library" not in own


def test_the_cpu_has_times(capsys, model):
    code, out, _ = run(capsys, model, *SIZES, "--machine", "cpu", "--json")
    data = json.loads(out)

    assert code == 0
    assert data["machine"] == "cpu"
    assert data["total_us"] >= data["parts"][0]["us"] > 0


def test_it_draws_the_plan(capsys, model, tmp_path):
    path = tmp_path / "plan.svg"
    code, out, _ = run(capsys, model, *SIZES, "-o", str(path))

    assert code == 0
    assert out.endswith(f"\nwrote {path}\n")
    assert path.read_text().startswith("<svg")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (SIZES[:3], "no size given for M, K, N"),
        ([*SIZES, "M=0"], "M is 0: arrays without elements"),
        ([*SIZES, "Z=1"], "unknown dim 'Z' in sizes"),
        ([*SIZES, "--machine", "h300"], "unknown machine 'h300'"),
        ([*SIZES, "--dtype", "int4"], "no kernel is written for dtype 'int4'"),
        ([*SIZES, "-o", "plan.gif"], "drawings are .svg, .png or .dot files"),
    ],
)
def test_bad_input_is_a_message(capsys, model, arguments, words):
    code, _, err = run(capsys, model, *arguments)

    assert code == 2
    assert words in err
    assert "Traceback" not in err


def test_a_function_that_is_not_there_is_refused(capsys, model):
    code, _, err = run(capsys, model.replace("grouped", "group"), *SIZES)

    assert (code, "no function group" in err) == (1, True)
