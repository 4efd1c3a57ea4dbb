"""One kernel has one time wherever it is printed; other models stand beside it by name."""

import re

import pytest

from blockbuster.frontend import lower
from blockbuster.view.cli import main
from blockbuster.view.explorer.plan import choice_for, plan_data, plan_of
from blockbuster.view.explorer.setting import Setting
from blockbuster.view.load import trace_named
from tests.parameters import rest_slow
from tests.view.explorer_cases import NOTHING

MODEL = """
import blockbuster as bb

def normed(x):
    return bb.softmax(x)

def attention(q, k, v):
    return bb.softmax(q @ k.T) @ v

def few_rows(q, k, v):
    return bb.softmax(q @ k.T) @ v

def product(x, w):
    return bb.gelu(x @ w)

def layer_norm(x, g):
    return (x - bb.mean(x, axis=-1, keepdims=True)) * g
"""

QKV = ("q=M D", "k=N D", "v=N L")
CASES = {
    "normed": (("x=M N",), {"M": 256, "N": 512}),
    "attention": (QKV, {"M": 512, "N": 512, "D": 64, "L": 64}),
    "few_rows": (QKV, {"M": 16, "N": 8192, "D": 64, "L": 64}),
    "product": (("x=M K", "w=K N"), {"M": 512, "K": 256, "N": 512}),
    "layer_norm": (("x=M N", "g=N"), {"M": 1024, "N": 1024}),
}
TIME = re.compile(r"[\d,.]+ us predicted on h200 \(closed form, cold cache\)")


@pytest.fixture
def place(tmp_path):
    path = tmp_path / "model.py"
    path.write_text(MODEL)
    return path


def printed(capsys, command, place, name, *more):
    """What a command prints for a program at its sizes."""
    dims, sizes = CASES[name]
    given = [f"{dim}={size}" for dim, size in sizes.items()]
    assert main([command, f"{place}:{name}", "--dims", *dims, "--sizes", *given, *more]) == 0
    return " ".join(capsys.readouterr().out.split())


def on_the_page(place, name):
    """The first page's head, the times of its boxes, and why its kernel was chosen."""
    dims, sizes = CASES[name]
    program = trace_named(f"{place}:{name}", dims)
    plan, missing = plan_of(program, sizes, Setting(sizes))
    assert plan is not None, missing
    choice = choice_for(lower(program), plan)
    shown = plan_data(plan, [NOTHING], alone=choice is not None)
    assert choice is not None, "the program is one part, which emit writes, too"
    return shown["head"], [part["time"] for part in shown["parts"]], choice.words


@pytest.mark.parametrize("name", rest_slow(CASES, ["normed"]))
def test_commands_and_pages_print_the_same_time(capsys, place, name):
    head, boxes, words = on_the_page(place, name)
    emitted = printed(capsys, "emit", place, name, "-o", str(place.with_name("out.py")))
    texts = {
        "page": head,
        "tab": words,
        "emit": emitted,
        "select": printed(capsys, "select", place, name, "--no-library"),
        "explain": printed(capsys, "explain", place, name),
        "simulate": printed(capsys, "simulate", place, name),
    }
    (time,) = {TIME.search(text)[0] for text in texts.values()}

    assert [f"{box} predicted on h200 (closed form, cold cache)" for box in boxes] == [time]
    assert texts["simulate"].startswith(f"{time} ")
    simulated = r" [\d,.]+ us on h200 \(simulator, cold cache\), limited by "
    assert re.match(simulated, texts["simulate"].removeprefix(time))
    each = re.findall(r"kernel \d+: .*?; ([\d,.]+) us", emitted)
    assert sum(map(float, each)) == pytest.approx(float(time.split()[0]), abs=0.06 * len(each))


def test_a_simulation_names_what_its_cache_holds(capsys, place):
    for state in ("warm", "flushed"):
        text = printed(capsys, "simulate", place, "normed", f"--{state}")
        assert TIME.match(text)
        assert f"us on h200 (simulator, {state} cache), limited by" in text
