"""The tables of a library's calls, with a meter that counts elements in place of a GPU."""

import tomllib
from math import prod

import pytest

from blockbuster.ir.dtypes import FLOAT8
from blockbuster.machines.library import MORE

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")

from bench.gpu.library_calls import CONVOLUTIONS, table, tables  # noqa: E402 - it imports torch


class Counts:
    """A meter that tells how many elements a call makes."""

    def us(self, call, shapes, made, dtype="float32"):
        whole = dtype if dtype == FLOAT8 else "float32"
        found = call(*(torch.zeros(shape).to(getattr(torch, whole)) for shape in shapes))
        assert found.numel() == made
        return float(made)


def test_tables_hold_a_time_for_each_size():
    known = tables(Counts())
    others = {name for name in known if name.partition("_channels")[0] not in CONVOLUTIONS}
    assert others == {"product", "product_odd", "attention", "attention_causal", *MORE}
    assert len(known) == len(others) + 2 * len(CONVOLUTIONS)
    assert known["batched"][1](3, 4, 5, 8) == 3 * 4 * 5
    assert known["scaled"][1](16, 32, 48) == known["scaled_rows"][1](16, 32, 48) == 16 * 32
    assert known["product_float32"][1](8192, 8192, 8192) == 0.0, "too large in float32"
    assert known["attention"][1](2, 3, 5, 4) == 2 * 3 * 4, "elements made, by this stand-in"
    assert known["attention_causal"][1](2, 3, 4) == 2 * 3 * 4
    assert known["attention"][1](128, 16384, 16384, 128) == 0.0, "too large"
    grid, measure = known["transposed_channels_last"]
    times = [float(n) for n in range(prod(map(len, grid.values())))]
    assert tomllib.loads(table("t", grid, times))["t"] == {
        **{a: [*v] for a, v in grid.items()},
        "us": times,
    }
    assert measure(3, 16, 1, 8) == 32 * 16**2
    assert known["depthwise"][1](2, 7, 2, 14) == 32 * 2 * 7**2
    assert known["volumes_grouped_channels_last"][1](2, 3, 4, 2) == 8 * 4 * 2**3
    assert known["volumes"][1](2, 3, 4) == 8 * 3 * 4**3
    assert known["lines_transposed"][1](16, 2, 1, 8) == 32 * 8 * 8
    assert known["lines"][1](7, 2, 3, 64) == 32 * 3 * 64
    assert known["images"][1](5, 512, 512, 112) == 0.0, "too large to be measured"
