"""Loads the user's program, named on the command line as FILE.py:FUNCTION."""

from __future__ import annotations

import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from blockbuster.errors import BlockbusterError, TraceError, message
from blockbuster.frontend import ArrayProgram
from blockbuster.frontend.trace import trace_with_facts
from blockbuster.frontend.users_frames import lines_of

MOST_NAMED = 8
"""So many functions of a file a message names."""


def load_function(where: str) -> Callable[..., Any]:
    """The function that FILE.py:FUNCTION names. Raises TraceError saying what is wrong with it."""
    file, _, name = where.rpartition(":")
    if not file.endswith(".py"):
        raise TraceError(message("expected FILE.py:FUNCTION", value=where, hint=_whole(where)))
    module = load_module(file)
    function = getattr(module, name, None)
    if not inspect.isfunction(function):
        own = _defined(module)
        hint = f"it defines {', '.join(own)}" if own else "it defines no function"
        raise TraceError(message(f"{file} has no function {name}", hint=hint))
    return function


def _whole(where: str) -> str:
    """What may be meant by a text without a function, or without the ending of its file."""
    file, colon, name = where.partition(":")
    if colon and name.isidentifier():
        return f"write {file}.py:{name}"
    if not file.endswith(".py") or not Path(file).is_file():
        return "for example model.py:attention"
    return " or ".join(f"{file}:{name}" for name in _defined(load_module(file))[:MOST_NAMED])


def _defined(module: ModuleType) -> list[str]:
    """The functions that a module defines."""
    held = vars(module).items()
    return [n for n, f in held if inspect.isfunction(f) and f.__module__ == module.__name__]


def load_module(file: str) -> ModuleType:
    """The module in a file. Raises TraceError if there is none or running it fails."""
    path = Path(file)
    if not path.is_file():
        raise TraceError(
            message(f"there is no file {file}", hint="paths are relative to where you are")
        )
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)  # dataclasses look up their module there
    sys.path.insert(0, str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except BlockbusterError:
        raise
    except Exception as error:
        raise TraceError(_import_failure(file, error)) from None
    finally:
        sys.path.pop(0)
    return module


def _import_failure(file: str, error: Exception) -> str:
    if isinstance(error, SyntaxError):
        return message(f"{file} is not valid Python: {error.msg} (line {error.lineno})")
    last = traceback.extract_tb(error.__traceback__)[-1]
    what = f"running {file} failed: {type(error).__name__}: {error}"
    return message(what, origin=f"{Path(last.filename).name}:{last.lineno}")


def trace_named(where: str, dims: Sequence[str]) -> ArrayProgram:
    """The array program of FILE.py:FUNCTION with inputs ``name=DIMS``.

    Raises TraceError, with the function's own lines, if the function raises an error.
    """
    function = load_function(where)
    inputs = dict(split_assignment(text, "--dims", 'q="M D"') for text in dims)
    if not inputs:
        parameters = inspect.signature(function).parameters
        example = " ".join(f'{name}="M N"' for name in parameters)
        hint = f"for example --dims {example}"
        raise TraceError(message("the dims of the inputs are not given", hint=hint))
    try:
        return trace_with_facts(function, **inputs)[0]
    except BlockbusterError:
        raise
    except Exception as error:
        lines = lines_of(error)
        if not lines:
            raise
        what = f"{where} failed while it was traced: {type(error).__name__}: {error}"
        raise TraceError(message(what, origin="\n".join(lines))) from None


def split_assignment(text: str, option: str, example: str) -> tuple[str, str]:
    """NAME=VALUE in its two parts. Raises ValueError naming the option."""
    name, equals, value = text.partition("=")
    if not equals or not name.rstrip("'").isidentifier():
        raise ValueError(message(f"{option} takes NAME=VALUE, for example {example}", value=text))
    return name, value.strip()


def parse_sizes(texts: Sequence[str], option: str = "--sizes") -> dict[str, int]:
    """``M=128 D=64`` (or ``M=128,D=64``) as numbers. Raises ValueError naming the option."""
    sizes = {}
    for text in (part for given in texts for part in given.split(",") if part):
        name, value = split_assignment(text, option, "M=128")
        if not value.isdecimal():
            raise ValueError(message(f"{option} wants whole numbers, as in M=128", value=text))
        sizes[name] = int(value)
    return sizes
