"""`blockbuster doctor`: reports what is installed, which GPU there is, and what will be used."""

from __future__ import annotations

import argparse
import platform
import shutil
import subprocess
from importlib import metadata

import blockbuster
from blockbuster.emit.target.compiler import assembler_of
from blockbuster.emit.target.inspection import UNSEEN, disassembler
from blockbuster.errors import EmitError
from blockbuster.extras import install_hint
from blockbuster.machines import AUTO, NAMES, machine
from blockbuster.view.render import HOW_TO, renderer
from blockbuster.view.terminal import say

PACKAGES = ("numpy", "sympy", "networkx", "rich", "triton", "torch")
EXAMPLES = ""
EXTRAS = {"torch": "torch"}


def add_arguments(_: argparse.ArgumentParser) -> None:
    """It takes nothing."""


def run(_: argparse.Namespace) -> int:
    """Print the report; 0 unless something the main job needs is missing."""
    say(f"blockbuster {blockbuster.__version__}")
    say(f"python      {platform.python_version()} on {platform.system()} {platform.machine()}")
    for package in PACKAGES:
        say(f"{package:<11} {_version(package)}")
    gpu = _gpu()
    triton = _version("triton")[0].isdigit()
    say(f"gpu         {gpu or 'none found'}")
    say(f"machine     {_machine()}")
    problem = _compilers() if triton else ""
    say(f"pictures    {renderer() or f'as DOT text only ({HOW_TO})'}")
    say(f"kernels run {_how_kernels_run(bool(gpu), triton)}")
    if platform.system() == "Linux" and not triton:
        say("problem: triton is missing; install it with: pip install triton")
        return 1
    if problem:
        say(f"problem: {problem}")
        return 1
    return 0


def _compilers() -> str:
    """Print what assembles for Hopper and what reads its code; a problem with them, or ""."""
    try:
        assembler = assembler_of("sm_90")
    except EmitError as error:
        return str(error)
    say(f"assembler   {assembler} for sm_90")
    for note in assembler.notes if assembler else ():
        say(f"            {note}")
    reader = disassembler()
    say(f"code        {f'read by {reader}' if reader else f'no nvdisasm is found: {UNSEEN}'}")
    if assembler and assembler.broken:
        say(f"            it {assembler.broken}: kernels that it breaks are refused")
        say(f"            {install_hint('ptxas')} brings one that is sound")
    return ""


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        extra = EXTRAS.get(package)
        return f"not installed ({install_hint(extra)})" if extra else "not installed"


def _gpu() -> str:
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return ""
    query = [tool, "--query-gpu=name,memory.total", "--format=csv,noheader"]
    found = subprocess.run(query, capture_output=True, text=True, check=False)
    return "; ".join(found.stdout.split("\n")).strip("; ") if found.returncode == 0 else ""


def _machine() -> str:
    """What machine "auto" is, for the cost models."""
    try:
        found = machine(AUTO)
    except ValueError as error:
        return str(error)
    if found.name in NAMES:
        return f"{found.name}, not measured: see blockbuster calibrate"
    return found.name


def _how_kernels_run(gpu: bool, triton: bool) -> str:
    if not triton:
        return "as NumPy text only: triton is not installed"
    if gpu and _version("torch")[0].isdigit():
        return "on the GPU, compiled by triton"
    return "in triton's interpreter on the CPU"
