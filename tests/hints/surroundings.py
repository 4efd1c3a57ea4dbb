"""Hints about what surrounds a program: devices, tools, folders, processes, files."""

import sys
import tempfile
from dataclasses import replace
from importlib.util import find_spec
from types import SimpleNamespace

import pytest
import torch

import blockbuster as bb
from blockbuster.calibration.gpu_device import torch_with_gpu
from blockbuster.check.kernel_process import SERVER, refuse_to_nest
from blockbuster.costs.footprint import Footprint
from blockbuster.emit.target import assembler, compiler
from blockbuster.emit.target.targets import target_of
from blockbuster.machines import catalog
from blockbuster.runtime.first_launch import FirstChecks
from blockbuster.runtime.graphs import Graphed
from blockbuster.runtime.launch import run_batch
from blockbuster.tuning.store import Store
from blockbuster.version import VERSION
from blockbuster.view import render
from blockbuster.view.explorer import data
from blockbuster.view.gantt import figure
from tests.hints.tried import Tried
from tests.tuning.test_store import ENTRY


def where(work, *changes):
    """``work``, called while names of modules have other values: (module, name, value)."""

    def changed():
        with pytest.MonkeyPatch.context() as patched:
            for owner, name, value in changes:
                if isinstance(owner, dict):
                    patched.setitem(owner, name, value)
                else:
                    patched.setattr(owner, name, value)
            return work()

    return changed


def nowhere(*args, **options):
    raise OSError(28, "No space left on device")


def kernel_of(shared):
    """A compiled kernel that takes ``shared`` bytes of shared memory, as its report is made."""
    compiled = SimpleNamespace(metadata=SimpleNamespace(shared=shared))
    entry = {"function": lambda: None}
    compiled.asm = {"ptx": ""}
    return where(
        lambda: compiler.compile_entry(entry, target_of("sm_90")),
        (compiler, "compiled_entry", lambda *_: (compiled, "ptxas 13.3")),
        (compiler, "_assembled", lambda *_: (32, 0)),
    )


def checks(*, capturing=False, fault=""):
    return FirstChecks(SimpleNamespace(is_capturing=lambda: capturing, fault=lambda: fault), None)


def captured(capturing):
    return lambda: checks(capturing=capturing).expect_no_capture("softmax")


def graphed(*on_host):
    gpu = SimpleNamespace(
        recorded=lambda run: (lambda: None, run()), is_capturing=lambda: False, torch=torch
    )
    run = SimpleNamespace(
        on_host=on_host, notes=(), assemblers=(), pinned=lambda tensors: (list, [])
    )
    return lambda: Graphed(run, gpu)._record([torch.ones(2)])


def stored(version):
    entry = replace(ENTRY, key=replace(ENTRY.key, version=version))
    return lambda: Store().take_in([entry], "tuned.json")


def room(warps):
    return lambda: Footprint(0, 32, warps).resident(bb.machine("h100"))


def page(steps):
    derivation = SimpleNamespace(applications=(None,) * steps, start=SimpleNamespace(size=1000))
    return lambda: data._check_length(derivation)


def drawn():
    return figure(SimpleNamespace(timeline=("an event",)))


GPU, PLAIN = (catalog, "gpu_name", lambda: "GPU 9"), (catalog, "measured", lambda device: None)
OURS = (sys, "orig_argv", ["python", "-c", SERVER])
CASES = (
    Tried("--device cpu", where(torch_with_gpu, (torch.cuda, "is_available", lambda: False)),
          lambda: bb.machine("cpu")),
    Tried("pip install", where(torch_with_gpu, (sys.modules, "torch", None)),
          lambda: torch.ones(1)),
    Tried("pip install ", where(drawn, (sys.modules, "matplotlib.figure", None)),
          lambda: find_spec("matplotlib")),
    Tried("install Graphviz", where(lambda: render.render("digraph {}", "svg"),
                                    (render, "_way_to", lambda format: None)),
          lambda: render.HOW_TO),
    Tried("blockbuster calibrate", where(lambda: bb.machine("auto"), GPU, PLAIN),
          lambda: bb.machine("h100")),
    Tried("if __name__", where(refuse_to_nest, OURS), refuse_to_nest),
    Tried("TMPDIR names another", where(lambda: run_batch([]),
                                        (tempfile, "TemporaryDirectory", nowhere)),
          lambda: run_batch([])),
    Tried("the path of a ptxas", lambda: assembler._given("no/such/ptxas", assembler.SETTING),
          lambda: assembler.SETTING),
    Tried("num_stages=1", kernel_of(1 << 20), kernel_of(1 << 10)),
    Tried("call it once before", captured(True), captured(False)),
    Tried("start Python anew", checks(fault="an illegal access")._check_device,
          checks()._check_device),
    Tried("functions that take tensors", graphed("sorted runs on the host"), graphed()),
    Tried("with `blockbuster tune`", stored("0.0"), stored(VERSION)),
    Tried("choose fewer warps", room(warps=128), room(warps=8)),
    Tried("derivation.to_json()", page(10_000), page(10)),
)  # fmt: skip
