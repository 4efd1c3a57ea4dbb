"""Starts of compiled kernels by the harness of bench/costs: arrays without descriptors."""

from bench.costs.building import kernel_of
from bench.costs.launching import without_descriptors
from bench.costs.near import HELD_FILE
from bench.costs.pairs import read_pairs
from bench.costs.workloads import BY_NAME
from blockbuster.emit.target.compiler import compiled_entry
from blockbuster.emit.target.load import load_module
from blockbuster.emit.target.targets import target_of


def test_a_kernel_started_without_its_descriptors_reads_by_pointers():
    name = "product-odd-float32"
    kernels = (kernel_of(pair, dict(BY_NAME[name].sizes)) for pair in read_pairs([name], HELD_FILE))
    source = next(kernel.source for kernel in kernels if "=descriptor(" in kernel.source)
    entries = load_module(source).KERNELS
    found = [(e, n) for e in entries for n, t in e["signature"].items() if "tensordesc" in t]
    assert found
    for entry, name in found:
        compiled, _ = compiled_entry(without_descriptors(entry, [name]), target_of("sm_90"))
        assert compiled.src.signature[name] == "constexpr"
        assert name not in compiled.asm["ttir"]
