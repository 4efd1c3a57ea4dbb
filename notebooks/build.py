"""Run the notebooks, and keep each executed .ipynb in step with its .py source.

    python notebooks/build.py                  run all sources, write the notebooks
    python notebooks/build.py 03 07       only those whose name starts so
    python notebooks/build.py --check          run all, write nothing, fail where a pair disagrees

The sources are Python files in percent format. Warnings are errors while they run. What is written
is the same bytes on every run: no times, no random ids; pictures are not compared, and numbers with
a unit of time are taken to be equal.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

FOLDER = Path(__file__).parent
TIMEOUT = 300  # seconds for one cell, on a busy machine too
AT_ONCE = 2  # each runs in a process of its own, in one thread
MAX_BYTES = 600_000
STRICT = """import warnings
warnings.simplefilter("error")
warnings.filterwarnings("ignore", module="ipykernel")  # the kernel itself warns when it ends"""
TIMES = re.compile(r"\b\d[\d,.]*(e[+-]?\d+)?\s?(s|ms|us|µs|ns|seconds|milliseconds|microseconds)\b")
ADDRESS = re.compile(r"\bat 0x[0-9a-f]{6,}")
COLORS = re.compile(r"\x1b\[[0-9;]*m")
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


class Mismatch(Exception):
    """A notebook is not what its source gives; the text says where and what to do."""


def sources(prefixes: Sequence[str] = ()) -> list[Path]:
    """The sources, in order; those whose names start with one of ``prefixes``, if any are given."""
    found = sorted(path for path in FOLDER.glob("*.py") if path.name != Path(__file__).name)
    unknown = [p for p in prefixes if not any(path.stem.startswith(p) for path in found)]
    if unknown:
        names = ", ".join(path.stem for path in found)
        raise SystemExit(f"no notebook starts with {unknown[0]!r}; there are: {names}")
    return [path for path in found if not prefixes or path.stem.startswith(tuple(prefixes))]


def read_source(path: Path) -> Any:
    """The notebook that a source describes, without outputs; cell ids count the cells."""
    notebook = jupytext.read(path, fmt="py:percent")
    notebook.metadata = nbformat.from_dict(METADATA)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number:02}"
        cell.metadata.pop("lines_to_next_cell", None)
    return notebook


def execute(path: Path) -> Any:
    """The notebook of a source with its outputs. Raises CellExecutionError where a cell fails."""
    notebook = read_source(path)
    cells = notebook.cells
    notebook.cells = [nbformat.v4.new_code_cell(STRICT, id="strict"), *cells]
    client = NotebookClient(
        notebook,
        kernel_name="python3",
        extra_arguments=["--IPKernelApp.log_level=ERROR"],
        timeout=TIMEOUT,
        record_timing=False,
        resources={"metadata": {"path": str(FOLDER)}},
    )
    asyncio.run(client.async_execute())  # closes its loop, also in a thread
    notebook.cells = cells
    notebook.metadata = nbformat.from_dict(METADATA)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for number, cell in enumerate(code, start=1):
        cell.execution_count = number
        cell.outputs = [_tidy(output, number) for output in _joined(cell.outputs)]
        cell.metadata.pop("execution", None)
    return notebook


def _joined(outputs: Iterable[Any]) -> list[Any]:
    """Outputs with the pieces of one stream joined: how it was cut depends on the moment."""
    joined: list[Any] = []
    for output in outputs:
        last = joined[-1] if joined else None
        if last is not None and _is_same_stream(last, output):
            last.text += output.text
        else:
            joined.append(output)
    return joined


def _is_same_stream(one: Any, other: Any) -> bool:
    kinds = (one.output_type, other.output_type)
    return kinds == ("stream", "stream") and one.name == other.name


def _tidy(output: Any, number: int) -> Any:
    """Without what changes from run to run, and with few words beside a picture."""
    if output.output_type == "execute_result":
        output.execution_count = number
    if any(kind.startswith("image/") for kind in output.get("data", ())):
        output.data["text/plain"] = "<picture>"
    return output


def text_of(notebook: Any) -> str:
    """The file's text: one form for one notebook, a line for a line."""
    return str(nbformat.writes(notebook, version=4)).rstrip("\n") + "\n"


def shown(cell: Any) -> list[tuple[str, str]]:
    """What a cell shows, for comparison: texts without times; of pictures, that there is one."""
    found = []
    for output in cell.get("outputs", ()):
        data = {output.name: output.text} if output.output_type == "stream" else output["data"]
        for kind, value in sorted(data.items()):
            text = "".join(value) if isinstance(value, list) else value
            picture = kind.startswith("image/")
            found.append((kind, "" if picture else TIMES.sub("<time>", text)))
    return found


def compare(path: Path, fresh: Any, *, outputs: bool = True) -> None:
    """Raise Mismatch unless the notebook beside ``path`` is ``fresh``, pictures and times aside."""
    pair = path.with_suffix(".ipynb")
    mend = f"run: make notebooks NAMES={path.stem}"
    if not pair.exists():
        raise Mismatch(f"{pair.name} is missing; {mend}")
    kept = nbformat.read(pair, as_version=4)
    if len(kept.cells) != len(fresh.cells):
        raise Mismatch(f"{pair.name} has {len(kept.cells)} cells, {len(fresh.cells)} now; {mend}")
    for old, new in zip(kept.cells, fresh.cells, strict=True):
        if (old.cell_type, old.source, old.id) != (new.cell_type, new.source, new.id):
            raise Mismatch(f"{pair.name}: {new.id} differs from the source; {mend}")
        if outputs and shown(old) != shown(new):
            raise Mismatch(f"{pair.name}: {new.id} shows\n{shown(new)}\nnot\n{shown(old)}\n{mend}")


def check_text(path: Path, text: str) -> None:
    """Raise Mismatch for what should not be in a notebook: much data, addresses in memory."""
    if len(text.encode()) > MAX_BYTES:
        raise Mismatch(f"{path.stem} has {len(text.encode())} bytes, more than {MAX_BYTES}")
    if found := ADDRESS.search(text):
        raise Mismatch(f"{path.stem} shows an address in memory: {found.group()}")


def build(path: Path, *, check: bool) -> None:
    """Run one source; write its notebook, or compare with it."""
    fresh = execute(path)
    text = text_of(fresh)
    check_text(path, text)
    if check:
        compare(path, fresh)
    else:
        path.with_suffix(".ipynb").write_text(text, encoding="utf-8", newline="\n")


def outcome(path: Path, *, check: bool) -> tuple[bool, str]:
    """Whether a source was built, and what to print of it."""
    began = time.perf_counter()
    try:
        build(path, check=check)
        failed, word = False, "in step" if check else "written"
    except (CellExecutionError, Mismatch) as error:
        failed, word = True, f"FAILED\n{COLORS.sub('', str(error))}"
    return failed, f"{path.stem}: {time.perf_counter() - began:.1f} s, {word}"


def main(arguments: Sequence[str]) -> int:
    """The command line; 1 where a notebook fails."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="how the names of some notebooks start")
    parser.add_argument("--check", action="store_true", help="write nothing, compare instead")
    given = parser.parse_args(arguments)
    failed = []
    paths = sources(given.names)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with ThreadPoolExecutor(AT_ONCE) as pool:
        outcomes = pool.map(partial(outcome, check=given.check), paths)
        for number, (path, (is_failed, said)) in enumerate(zip(paths, outcomes, strict=True), 1):
            failed += [path.stem] if is_failed else []
            print(f"[{number}/{len(paths)}] {said}", flush=True)
    if failed:
        print(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
