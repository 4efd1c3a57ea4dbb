"""What a terminal is told while something takes its time, and what a file is not."""

import io
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

import blockbuster as bb
from blockbuster.view import terminal
from blockbuster.view.commands import view
from blockbuster.view.explorer.setting import Setting
from blockbuster.view.terminal import telling


class Terminal(io.StringIO):
    def isatty(self):
        return True


def on_terminal(monkeypatch, patience=None):
    """Standard error as a terminal; in the test itself, as pytest changes it before each."""
    out = Terminal()
    monkeypatch.setattr("sys.stderr", out)
    monkeypatch.setenv("TERM", "xterm")
    if patience is not None:
        monkeypatch.setattr(terminal, "PATIENCE", patience)
    return out


def attention(q, k, v):
    return bb.softmax(q @ k.T) @ v


DERIVATION = bb.fuse(bb.lower(bb.trace(attention, q="M D", k="N D", v="N L")))


def test_work_that_lasts_is_named_on_a_terminal(monkeypatch):
    shown = on_terminal(monkeypatch, 0.02)
    with telling(None, "proving") as tell:
        time.sleep(0.3)
        tell("step 7 [bold]")
        time.sleep(0.3)

    assert "proving" in shown.getvalue()
    assert "step 7 [bold]" in shown.getvalue()


def test_work_that_is_done_at_once_is_not(monkeypatch):
    shown = on_terminal(monkeypatch)
    with telling(None, "proving") as tell:
        tell("step 7")

    assert "proving" not in shown.getvalue()
    assert "step 7" not in shown.getvalue()


def test_a_file_is_told_nothing(capsys):
    with telling(None, "proving") as tell:
        tell("step 7")

    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("made", [DERIVATION, None], ids=["rules", "kernel"])
def test_whoever_asks_is_told_every_step(made):
    if made is None:
        sizes = dict(M=64, N=64, D=64, L=64)
        made = bb.emit(DERIVATION, sizes, dtype="float16", target="sm_90").derivation
    names = []
    report = made.prove(trials=1, progress=names.append)

    assert names == [entry.name for entry in report.entries]


def test_a_page_tells_a_terminal_what_is_done(monkeypatch, tmp_path):
    shown = on_terminal(monkeypatch, 0.001)
    DERIVATION.to_html(tmp_path / "page.html", trials=1)

    assert "simulating (prove=False leaves out the proofs)" in shown.getvalue()


@pytest.mark.parametrize(("trials", "proved"), [(8, True), (0, False)])
def test_a_page_names_what_is_made_and_how_to_leave_out_the_proofs(monkeypatch, trials, proved):
    """Without the page itself: what the terminal is told of each part of the work."""
    told = []

    @contextmanager
    def working(_, what):
        told.append(what)
        yield told.append

    def write_html(*_, prove, progress, **__):
        assert prove is proved
        progress("simulating")

    monkeypatch.setattr(view.Screen, "working", working)
    monkeypatch.setattr(view, "write_html", write_html)
    view.write_page(None, Path("page.html"), Setting(trials=trials))

    way_out = " (--trials 0 leaves out the proofs)" if proved else ""
    assert told == [f"rewriting{way_out}", f"simulating{way_out}"]
