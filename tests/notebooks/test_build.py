"""Notebooks are in step with their sources, small, and written the same on every run.

Running them all takes a minute: `make check-notebooks` does, and compares what they show.
"""

import re

import pytest

pytest.importorskip("jupytext", reason="needs the extra `notebooks`")
pytest.importorskip("nbclient", reason="needs the extra `notebooks`")

import nbformat

from notebooks import build

SOURCES = build.sources()
NAMES = [path.stem for path in SOURCES]


@pytest.mark.parametrize("path", SOURCES, ids=NAMES)
def test_the_notebook_has_the_cells_of_its_source(path):
    build.compare(path, build.read_source(path), outputs=False)


@pytest.mark.parametrize("path", SOURCES, ids=NAMES)
def test_the_notebook_was_run_and_is_small(path):
    text = path.with_suffix(".ipynb").read_text(encoding="utf-8")
    notebook = nbformat.reads(text, as_version=4)
    nbformat.validate(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]

    build.check_text(path, text)
    assert text == build.text_of(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert not any(o.output_type == "error" for cell in cells for o in cell.outputs)
    assert any(cell.outputs for cell in cells)


@pytest.mark.parametrize("path", SOURCES, ids=NAMES)
def test_every_notebook_asserts_what_it_claims(path):
    assert path.read_text(encoding="utf-8").count("\nassert ") >= 3


@pytest.mark.parametrize("path", SOURCES, ids=NAMES)
def test_links_lead_somewhere(path):
    cells = [c.source for c in build.read_source(path).cells if c.cell_type == "markdown"]
    targets = re.findall(r"\]\(([^)\s]+)\)", "\n".join(cells))

    assert [t for t in targets if not (path.parent / t).exists()] == []


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A folder with one small source, its notebook written."""
    monkeypatch.setattr(build, "FOLDER", tmp_path)
    path = tmp_path / "small.py"
    path.write_text("# %% [markdown]\n# # Small\n\n# %%\nprint('took', 3 + 0.2, 'ms')\n1 + 1\n")
    assert build.main(["small"]) == 0
    return path


def test_a_pair_in_step_passes_and_is_written_the_same_again(small):
    before = small.with_suffix(".ipynb").read_bytes()

    assert build.main(["--check"]) == 0
    assert build.main([]) == 0
    assert small.with_suffix(".ipynb").read_bytes() == before


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("# %%\n1 + 1\n", "cells"),
        ("# %% [markdown]\n# # Little\n\n# %%\nprint('took', 3 + 0.2, 'ms')\n1 + 1\n", "differs"),
    ],
)
def test_a_source_that_changed_is_told(small, source, words, capsys):
    small.write_text(source)

    assert build.main(["--check"]) == 1
    said = capsys.readouterr().out
    assert words in said
    assert "make notebooks NAMES=small" in said


def test_an_output_that_changed_is_told_and_a_time_is_not(small, capsys):
    pair = small.with_suffix(".ipynb")
    text = pair.read_text()
    pair.write_text(text.replace("took 3.2 ms", "took 17 ms"))
    assert build.main(["--check"]) == 0

    pair.write_text(text.replace('"2"', '"3"'))
    assert pair.read_text() != text
    assert build.main(["--check"]) == 1
    assert "shows" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import warnings\nwarnings.warn('old')", "UserWarning: old"),
        ("assert 1 == 2", "AssertionError"),
        ("object()", "an address in memory"),
        (f"print('x' * {build.MAX_BYTES})", "bytes, more than"),
    ],
)
def test_what_fails(small, code, words, capsys):
    small.write_text(f"# %%\n{code}\n")

    assert build.main([]) == 1
    assert words in capsys.readouterr().out


def test_a_missing_notebook_and_an_unknown_name(small, capsys):
    small.with_suffix(".ipynb").unlink()

    assert build.main(["--check"]) == 1
    assert "small.ipynb is missing" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="no notebook starts with 'large'; there are: small"):
        build.main(["large"])


def test_pieces_of_a_stream_are_joined():
    pieces = [("stdout", "a"), ("stdout", "b"), ("stderr", "c"), ("stdout", "d")]
    outputs = [nbformat.v4.new_output("stream", name=name, text=text) for name, text in pieces]

    joined = [(output.name, output.text) for output in build._joined(outputs)]

    assert joined == [("stdout", "ab"), ("stderr", "c"), ("stdout", "d")]
