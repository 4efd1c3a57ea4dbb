"""The probes of a CPU: the rates that NumPy reaches, because CPU kernels are NumPy text."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import as_strided

from blockbuster.calibration.probe import Probe

Array = npt.NDArray[np.floating]

BEST_OF = 9  # calls of each round, of which the fastest counts: others use the processor, too
CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
SHARES = {"l3": 0.25, "l2": 0.5, "l1": 0.75}
"""The part of a cache that two arrays take together; of memory they take ``LARGE`` bytes each."""
LARGE = 1 << 27
MOST_ROWS = 1000
SIZE = 1024  # rows and columns of matrices
LEAST_SECONDS = 2e-3  # of a call: below, it is repeated


def cpu_numbers() -> dict[str, int | float]:
    """The numbers of a machine's file that the operating system reports, by their paths."""
    numbers: dict[str, int | float] = {"processors": _processors()}
    numbers |= {f"tiers.{tier}.bytes": size for tier, size in cache_sizes().items()}
    found = re.search(r"MemTotal:\s+(\d+) kB", _text(Path("/proc/meminfo")))
    if found:
        numbers["tiers.dram.bytes"] = 1024 * int(found[1])
    found = re.search(r"cpu MHz\s*: ([\d.]+)", _text(Path("/proc/cpuinfo")))
    return numbers | ({"clock": 1e6 * float(found[1])} if found else {})


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def cache_sizes() -> dict[str, int]:
    """The sizes of the caches that hold data, by the names of their tiers, in bytes."""
    found = {}
    for index in sorted(CACHES.glob("index*")):
        size = re.fullmatch(r"(\d+)K", _text(index / "size").strip())
        if size and _text(index / "type").strip() != "Instruction":
            found[f"l{_text(index / 'level').strip()}"] = 1024 * int(size[1])
    return found


def cpu_probes(sizes: dict[str, int | float]) -> tuple[Probe, ...]:
    """All probes of this CPU; ``sizes``: the bytes of its caches, by the names of their tiers."""
    return (*_memory(sizes), *_arithmetic(int(sizes["l2"])), *_walking(int(sizes["l2"])))


def _memory(sizes: dict[str, int | float]) -> Iterator[Probe]:
    for tier in ("dram", *SHARES):
        size = int(sizes[tier] * SHARES[tier] / 2) if tier in SHARES else LARGE
        source, target = np.ones(size // 4, np.float32), np.zeros(size // 4, np.float32)
        yield _negating(f"tiers.{tier}.bandwidth", source, target)


def _negating(path: str, source: Array, target: Array) -> Probe:
    """Reading and writing, again and again by one call: calls are no part of the bandwidth.

    Both arrays are seen as many rows that lie on each other. Negation is used because NumPy copies
    such rows one element at a time.
    """
    rows = max(1, min(MOST_ROWS, LARGE // source.nbytes))
    shape, steps = (rows, source.size), (0, source.itemsize)
    many_sources, many_targets = (as_strided(x, shape, steps) for x in (source, target))
    what = f"negating {source.nbytes >> 10} KiB again and again, bytes read and written"
    return _calling(
        path, what, 2.0 * rows * source.nbytes, lambda: np.negative(many_sources, out=many_targets)
    )


def _arithmetic(cache: int) -> Iterator[Probe]:
    for dtype in ("float32", "float64"):
        yield _multiplying(dtype)
        x = np.full(cache // 4 // np.dtype(dtype).itemsize, 0.5, dtype)
        yield _pointwise(f"compute.vector.{dtype}", "squares", np.square, x)
        if dtype == "float32":
            yield _pointwise("special", "exponentials", np.exp, x)
    one = np.ones(1, np.float32)
    yield _calling(
        "launch.plain", "the square of one element", 1.0, lambda: np.square(one), rate=False
    )


def _walking(cache: int) -> Iterator[Probe]:
    """What NumPy text pays beside rates: rounding once from float64, short rows, lone elements."""
    size = 1 << (cache // 16).bit_length() - 1  # elements: a quarter of the cache at most, but for
    size = max(size, 256 * 256)  # small caches: what walks along a square needs these
    x, count = np.full(size, 0.5, np.float32), float(size)
    made, rows, pairs = np.empty_like(x), x.reshape(-1, 1024), x.reshape(-1, 2)
    square = x[: 256 * 256].reshape(256, 256)
    places, lanes = np.arange(rows.shape[0])[:, None], np.arange(1024)[None, :]

    def exponentials() -> None:
        np.exp(x, out=made, dtype=np.float64, casting="same_kind")

    of = f"of {size} elements of float32"
    yield _calling("compute.special.float64", f"exponentials in float64 {of}", count, exponentials)
    yield _calling(
        "compute.fold.float64", f"sums in float64 of rows of 1024 {of}", count,
        lambda: np.add.reduce(rows, axis=-1, dtype=np.float64),
    )  # fmt: skip
    yield _calling(
        "compute.rows.float32", f"sums in float64 of pairs {of}, pairs a second", count / 2,
        lambda: np.add.reduce(pairs, axis=-1, dtype=np.float64),
    )  # fmt: skip
    yield _calling(
        "compute.gather.float32", f"elements at positions {of}", count, lambda: rows[places, lanes]
    )
    what = "a copy of 256 x 256 elements of float32 with the axes exchanged"
    yield _calling("compute.copy.float32", what, float(square.size), lambda: square.T.copy())


def _multiplying(dtype: str) -> Probe:
    left, right = np.ones((2, SIZE, SIZE), dtype)
    product = np.empty_like(left)
    what = f"a matrix product of {SIZE}^3 in {dtype}"
    return _calling(
        f"compute.matrix.{dtype}", what, 2.0 * SIZE**3, lambda: np.matmul(left, right, out=product)
    )


def _pointwise(path: str, what: str, function: np.ufunc, x: Array) -> Probe:
    result = np.empty_like(x)
    words = f"{what} of {x.size} elements of {x.dtype.name}"
    return _calling(path, words, float(x.size), lambda: function(x, out=result))


def _calling(
    path: str, what: str, amount: float, call: Callable[[], object], *, rate: bool = True
) -> Probe:
    return Probe(path, what, amount, lambda: _seconds(call), rate)


def _seconds(call: Callable[[], object]) -> float:
    """How long a call takes: the best of some, each repeated until the clock can tell."""
    begun = perf_counter()
    call()
    repeat = max(1, int(LEAST_SECONDS / max(perf_counter() - begun, 1e-9)))
    return min(_repeated(call, repeat) for _ in range(BEST_OF))


def _repeated(call: Callable[[], object], repeat: int) -> float:
    begun = perf_counter()
    for _ in range(repeat):
        call()
    return (perf_counter() - begun) / repeat


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
