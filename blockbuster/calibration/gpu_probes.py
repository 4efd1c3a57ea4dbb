"""The probes of an NVIDIA GPU: memory, arithmetic, latencies and launches."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Any

from blockbuster.calibration.gpu_device import Call, Device
from blockbuster.calibration.kernel_texts import FORMS, UNROLLED
from blockbuster.calibration.probe import Probe

TILE = FORMS["read"].constants["BLOCK"]  # elements of float32
PART = 4  # of the cache that is read: so much stays in it
LARGE = 1 << 29  # elements of an array of 2 GiB, far more than any cache holds
LINE = 32  # elements of a cache line of 128 bytes
PRODUCT = 8192  # rows and columns of matrices
CHASED = 1 << 14  # addresses that a chase follows in one launch
ARITHMETIC = 2000  # iterations of the loops of arithmetic
LINES = {"l2": 1 << 16, "hbm": 1 << 23}
"""Lines that are chased through: 8 MiB, which L2 holds, and 1 GiB, which no cache does."""
KERNELS = 200  # in a graph
SPINS = 10_000  # cycles: some microseconds, in which the host's part of a launch is over
PROGRAMS = 8  # for each processor: more than enough to fill it
FACTOR, SUMMAND = 0.999, 0.001


def gpu_probes(device: Device) -> tuple[Probe, ...]:
    """All probes of this GPU, in the order in which they take turns."""
    return (
        _memory(device),
        _l2(device),
        *_matrices(device),
        *_arithmetic(device),
        _clock(device),
        *_latencies(device),
        *_launches(device),
    )


def _memory(device: Device) -> Probe:
    source, target = device.empty(LARGE).normal_(), device.empty(LARGE)

    def copy() -> None:
        target.copy_(source)

    return Probe("tiers.hbm.bandwidth", "copying 2 GiB by torch, bytes read and written",
                 2 * 4.0 * LARGE, lambda: device.seconds(copy, 5))  # fmt: skip


def _l2(device: Device) -> Probe:
    programs = PROGRAMS * int(device.about.multi_processor_count)
    tiles = int(device.about.L2_cache_size) // PART // 4 // TILE
    source, target = device.empty(tiles * TILE).normal_(), device.empty(programs)
    each = 257  # no multiple of it is one of the tiles: programs begin at different ones

    def read() -> None:
        device.launch("read", programs, source, target, each, tiles)

    what, amount = f"reading 1/{PART} of L2 again and again", 4.0 * programs * each * TILE
    return Probe("tiers.l2.bandwidth", what, amount, lambda: device.seconds(read, 3))


def _matrices(device: Device) -> Iterator[Probe]:
    operations = 2.0 * PRODUCT**3
    for dtype in ("float16", "bfloat16", "float32", "float64"):
        size = PRODUCT // 2 if dtype == "float64" else PRODUCT
        operands = device.random(size, size, dtype), device.random(size, size, dtype)
        path, what = f"compute.matrix.{dtype}", f"torch.mm of {size}^3 in {dtype}"
        if dtype == "float32":
            path, what = "compute.matrix.tf32", f"{what} on matrix units (tf32)"
        yield _multiplying(device, path, what, operands)
    if device.architecture >= 89:
        left, right = (device.random(PRODUCT, PRODUCT, "float8_e4m3fn") for _ in range(2))
        result = device.empty(PRODUCT * PRODUCT, "bfloat16")
        constants = FORMS["product"].constants
        programs = (PRODUCT // constants["ROWS"]) * (PRODUCT // constants["COLUMNS"])

        def product() -> None:
            device.launch("product", programs, left, right, result, PRODUCT)

        yield Probe(
            "compute.matrix.float8", f"a Triton kernel of dots, {PRODUCT}^3 in float8",
            operations, lambda: device.sustained(product),
        )  # fmt: skip


def _multiplying(device: Device, path: str, what: str, operands: tuple[Any, Any]) -> Probe:
    left, right = operands
    result = device.torch.empty_like(left)
    operations = 2.0 * left.shape[0] ** 3

    def seconds() -> float:
        before = device.torch.get_float32_matmul_precision()
        device.torch.set_float32_matmul_precision("high")
        try:
            return device.sustained(lambda: device.torch.mm(left, right, out=result))
        finally:
            device.torch.set_float32_matmul_precision(before)

    return Probe(path, what, operations, seconds)


def _arithmetic(device: Device) -> Iterator[Probe]:
    programs = PROGRAMS * int(device.about.multi_processor_count)

    def running(path: str, what: str, kernel: str, each: int, arguments: tuple[Any, ...]) -> Probe:
        """A probe of a loop that does ``each`` things to an element at a time."""
        block = FORMS[kernel].constants["BLOCK"]
        amount = float(each) * UNROLLED * ARITHMETIC * programs * block

        def call() -> None:
            device.launch(kernel, programs, *arguments, ARITHMETIC)

        return Probe(path, what, amount, lambda: device.seconds(call, 3))

    single, double = (device.empty(programs * 2048, dtype) for dtype in ("float32", "float64"))
    factors = (FACTOR, SUMMAND)
    for array, dtype in ((single, "float32"), (double, "float64")):
        yield running(f"compute.vector.{dtype}", f"multiplying and adding in {dtype}",
                      "multiply_add", 2, (array, *factors))  # fmt: skip
    yield running("special", "exponentials", "exponentials", 1, (single,))
    issued = running("issue", "instructions of float32 and of int32 in turn",
                     "mixed", 4, (single, *factors, 12345, 54321))  # fmt: skip
    warp = int(device.about.warp_size)
    yield Probe("issue", issued.what, issued.amount / warp, issued.seconds)


def _clock(device: Device) -> Probe:
    programs = PROGRAMS * int(device.about.multi_processor_count)
    target = device.empty(programs * 2048)
    times = device.empty(2 * programs, "int64")

    def seconds() -> float:
        """Of one cycle: the median over all programs."""
        device.launch("ticks", programs, target, times, FACTOR, SUMMAND, 10 * ARITHMETIC)
        pairs = times.view(programs, 2).double()
        return float((pairs[:, 1] / pairs[:, 0]).median()) * 1e-9

    return Probe("clock", "counting cycles while multiplying and adding", 1.0, seconds)


def _latencies(device: Device) -> Iterator[Probe]:
    for tier, lines in LINES.items():
        following, place = _cycle(device, lines), device.empty(1, "int32").zero_()
        yield _chasing(device, tier, lines, (following, place))


def _chasing(device: Device, tier: str, lines: int, arrays: tuple[Any, Any]) -> Probe:
    def chase() -> None:
        device.launch("chase", 1, *arrays, CHASED)

    def once_around() -> None:
        """Bring all lines into L2: what was measured before has driven them out."""
        for _ in range(lines // CHASED):
            chase()

    before = once_around if tier == "l2" else None
    what = f"following addresses through {lines * LINE >> 18} MiB"
    return Probe(f"tiers.{tier}.latency", what, float(CHASED),
                 lambda: device.seconds(chase, before=before), rate=False)  # fmt: skip


def _cycle(device: Device, lines: int) -> Any:
    """An array whose every line holds the place of another one: one cycle through all of them."""
    torch = device.torch
    order = torch.randperm(lines, device=device.where).int() * LINE
    following = torch.zeros(lines * LINE, dtype=torch.int32, device=device.where)
    following[order.long()] = order.roll(-1)
    return following


def _launches(device: Device) -> Iterator[Probe]:
    processors = int(device.about.multi_processor_count)
    target = device.empty(1)

    def empty() -> None:
        device.launch("empty", processors, target)

    yield Probe("launch.plain", "an empty kernel between two events", 1.0,
                lambda: median(device.seconds(empty) for _ in range(21)), rate=False)  # fmt: skip
    replay = device.captured(empty, KERNELS)
    yield Probe("launch.graph", f"{KERNELS} empty kernels in a graph", float(KERNELS),
                lambda: device.seconds(replay), rate=False)  # fmt: skip
    yield _between(device, "graph", "spin", "one after the other")
    if device.architecture >= 90:
        yield _between(device, "dependent", "spin_dependent", "each launched before the last ends")


def _between(device: Device, way: str, kernel: str, how: str) -> Probe:
    """What lies between kernels that keep every processor busy: twice as long ones tell."""
    processors = int(device.about.multi_processor_count)

    def spinning(cycles: int) -> Call:
        return device.captured(lambda: device.launch(kernel, processors, cycles), KERNELS)

    once, twice = spinning(SPINS), spinning(2 * SPINS)

    def seconds() -> float:
        return 2 * device.seconds(once) - device.seconds(twice)

    what = f"between {KERNELS} busy kernels in a graph, {how}"
    return Probe(f"record.launch.{way}", what, float(KERNELS), seconds, rate=False)
