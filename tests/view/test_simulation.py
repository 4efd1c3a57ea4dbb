"""Simulations as a user sees them: the command, the figure, the explorer's tab."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

import blockbuster as bb
from blockbuster.errors import DrawError
from blockbuster.view.cli import main
from blockbuster.view.explorer.simulation import MOST_BARS, simulation_data
from blockbuster.view.gantt import COLOURS, kind
from tests.simulator.kernels import WIDE, kernel
from tests.view.explorer_cases import data

MODEL = """
def product(x, w):
    return x @ w
"""
SIZES = "M=256,K=128,N=256"
PAGE = Path(bb.__file__).parent / "view" / "explorer"


@pytest.fixture
def product(tmp_path):
    path = tmp_path / "model.py"
    path.write_text(MODEL)
    return [f"{path}:product", "--dims", "x=M K", "w=K N", "--sizes", SIZES]


def run(capsys, *arguments):
    code = main(["simulate", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


# the command ------------------------------------------------------------------------


def test_prints_the_report(capsys, product):
    code, out, err = run(capsys, *product, "--machine", "a100", "--launch", "graph")

    assert (code, err) == (0, "")
    assert " us on a100 (simulator, cold cache), limited by " in out
    assert "assumed: launches: graph" in out
    assert "\x1b" not in out  # plain where it is piped


def test_prints_json(capsys, product):
    code, out, _ = run(capsys, *product, "--json", "--warm")
    report = json.loads(out)

    assert code == 0
    assert report["machine"] == "h200"
    assert report["bytes"]["hbm"] == 0  # the cache has it all
    assert {"time_us", "busy", "critical", "timeline", "use"} <= set(report)


def test_draws_the_report(capsys, product, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    path = tmp_path / "waves.svg"

    assert run(capsys, *product, "--plot", str(path))[1].endswith(f"wrote {path}\n")
    assert path.read_text().lstrip().startswith("<?xml")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--machine", "cpu"], "only kernels for GPUs can be simulated"),
        (["--machine", "h300"], "h300"),
        (["--snapshot", "7"], "has snapshot 1 only"),
        (["--tiles", "M=256", "N=256", "K=256"], "bytes of shared memory"),
    ],
)
def test_wrong_arguments(capsys, product, arguments, words):
    code, out, err = run(capsys, *product, *arguments)

    assert (code, out) == (2, "")
    assert words in err


def test_missing_sizes(capsys, product):
    code, _, err = run(capsys, *product[:-1], "M=256,K=128")

    assert code == 2
    assert "no size given for N" in err


# the figure -------------------------------------------------------------------------


def test_the_figure_has_a_bar_for_each_event():
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    report = bb.simulate(kernel("attention"))
    drawn = report.plot()
    top, *others = drawn.axes

    bars = sum(len(container) for container in top.containers)
    assert bars == len([e for e in report.timeline if e.processor >= 0])
    assert len(others) == len(report.use)
    assert top.get_title(loc="left").endswith(f"limited by {report.critical}")


def test_the_closed_form_has_nothing_to_draw():
    with pytest.raises(ValueError, match="no timeline"):
        kernel("matmul").cost("h200").plot()


def test_without_matplotlib(monkeypatch):
    report = bb.simulate(kernel("matmul"))
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)

    with pytest.raises(DrawError, match="needs matplotlib"):
        report.plot()


@pytest.mark.parametrize("name", ["hbm", "dram", "l2", "l3", "shared", "l1", "matrix", "launch"])
def test_every_resource_has_a_colour(name):
    assert kind(name) in COLOURS


# the explorer -----------------------------------------------------------------------


def test_the_page_has_the_simulation_of_its_kernel():
    made = data("attention")["simulation"]

    assert made["machine"] == "h200"
    assert made["every"] == 1
    assert {"hbm", "l2", "shared", "launch"} <= {r["name"] for r in made["resources"]}
    bars = [bar for of_resource in made["bars"].values() for bar in of_resource]
    assert all(start <= end <= made["time"] for _, start, end, *_ in bars)


@pytest.mark.slow
def test_a_long_timeline_shows_some_processors():
    made = simulation_data(kernel("softmax", dict(M=10_000, N=1024), tiles={"M": 1}), "h200")
    bars = [bar for of_resource in made["bars"].values() for bar in of_resource]

    assert made["every"] > 1
    assert len(bars) <= MOST_BARS + made["processors"]
    assert {processor % made["every"] for processor, *_ in bars} == {0}


def test_a_page_without_a_kernel_says_so():
    assert "No kernel" in simulation_data(None, "h200")["missing"]


def test_a_kernel_that_does_not_fit_says_so():
    made = kernel("matmul", dict(WIDE, K=1024), tiles=dict(M=256, N=128, K=128))

    assert "not simulated on rtx3080" in simulation_data(made, "rtx3080")["missing"]


NODE = shutil.which("node")


@pytest.mark.skipif(NODE is None, reason="node is not installed: no script is read without it")
@pytest.mark.parametrize("name", sorted(path.name for path in PAGE.glob("*.js")))
def test_the_scripts_parse(name):
    subprocess.run([NODE, "--check", PAGE / name], check=True, capture_output=True)
