"""Every listing of the documents is run, in the order of its page, and prints what the page says.

`--update-golden` rewrites what pages show, like the goldens: read the difference.
"""

import runpy
import sys

import pytest

from tests.docs.pages import PAGES, ROOT, Block, blocks_of
from tests.docs.reader import Reader, assert_exists, assert_shown


@pytest.mark.parametrize("page", PAGES)
def test_a_page_works_as_written(page, tmp_path, monkeypatch, capsys, update_golden):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    path = ROOT / page
    text = path.read_text(encoding="utf-8")
    reader = Reader(page, tmp_path, lambda: capsys.readouterr().out)
    monkeypatch.setitem(sys.modules, reader.module.__name__, reader.module)
    for block in blocks_of(text):  # another test may have left a module of that name
        written = str(block.options.get("file", "")).removesuffix(".py")
        monkeypatch.delitem(sys.modules, written, raising=False)
    loaded = set(sys.modules)
    changed: list[tuple[Block, str]] = []
    for block in blocks_of(text):
        printed = reader.unread
        try:
            reader.follow(block)
        except AssertionError as error:
            if not (update_golden and block.language == "text" and printed):
                pytest.fail(f"{page}:{block.line}: {error}", pytrace=False)
            changed.append((block, printed.strip("\n") + "\n"))
            reader.unread = ""
    for name in set(sys.modules) - loaded:
        if (tmp_path / f"{name}.py").exists():
            del sys.modules[name]

    assert not reader.unread, f"{page} does not show what it prints last: {reader.unread}"
    for block, printed in reversed(changed):
        text = text[: block.start] + printed + text[block.start + len(block.text) :]
        path.write_text(text, encoding="utf-8", newline="\n")


def follow(folder, capsys, page):
    reader = Reader("page.md", folder, lambda: capsys.readouterr().out)
    for block in blocks_of(page):
        reader.follow(block)


FAULTS = {
    "this is shown": "```python\nprint(1)\n```\n```text\n2\n```\n",
    "nothing was run": "```text\n2\n```\n",
    "printed, and not shown": "```python\nprint(1)\n```\n```python\nprint(2)\n```\n",
    "nothing runs a block of rust": "```rust\nfn main() {}\n```\n",
    "ends with 3": "```console\n$ python -c 'raise SystemExit(3)'\n```\n",
    "ends with 0": "```console exit=1\n$ python -c 'pass'\n```\n",
    "is not run here": "```console\n$ curl example.org\n```\n",
    "names nonsense": "```sh\nmake docs nonsense  # with a comment\n```\n",
    "names bench.nonsense": "```sh\npython3 -m bench.nonsense --out build\n```\n",
    "names nonsense.sh": "```sh\nOUT=build bash nonsense.sh\n```\n",
    "names no_such_extra": "```sh\npip install -e '.[torch,no_such_extra]'\n```\n",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_reader_notices(fault, tmp_path, capsys):
    with pytest.raises(AssertionError, match=fault):
        follow(tmp_path, capsys, FAULTS[fault])


def test_a_block_sees_the_names_and_files_of_those_above(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    follow(
        tmp_path,
        capsys,
        "```python file=data.txt\nseven\n```\n"
        "```python\nname = 'data.txt'\n```\n"
        "```python\nfrom pathlib import Path\nprint(Path(name).read_text())\n```\n"
        "```text\nse...en\n```\n",
    )


def test_dots_stand_for_anything_and_blank_lines_around_do_not_count():
    assert_shown("a ... c\n", "\na b c\n\n")


@pytest.mark.parametrize(
    ("page", "file"), [("README.md", "grouped.py"), ("docs/torch_compile.md", "compiled.py")]
)
def test_pages_show_what_tensors_give(page, file, tmp_path, capsys):
    pytest.importorskip("torch", reason="torch is not installed: pip install torch")
    blocks = blocks_of((ROOT / page).read_text("utf-8"))
    (block,) = (one for one in blocks if one.options.get("file") == file)
    path = tmp_path / file
    path.write_text(block.text, encoding="utf-8")

    runpy.run_path(str(path))
    assert f"# prints {capsys.readouterr().out.strip()}: " in block.text


def test_what_is_there_may_be_named():
    for command in (
        "make docs",
        "make test ARGS=x",
        ".ci/run",
        "python3 -m bench.targets --out x",
        "",
    ):
        assert_exists(command)


def test_every_page_is_looked_at():
    assert {"README.md", "CONTRIBUTING.md", "docs/tutorial.md"} <= set(PAGES)
    assert any(page.startswith("bench/results/") for page in PAGES)
