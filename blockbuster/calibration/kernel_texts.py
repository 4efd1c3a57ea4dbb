"""The Triton kernels that measure a GPU, and their launches.

``read`` goes through L2 only (".cg"), and each program begins elsewhere. Arithmetic is done on many
independent elements per thread, so that units and not latencies limit it. ``chase`` follows
addresses that it reads, each only after the one before has arrived. ``ticks`` counts a processor's
cycles, and nanoseconds, while it multiplies. ``spin`` takes a given number of cycles.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

UNROLLED = 16
"""How many times the body of a loop of arithmetic does what it does."""

TEXT = """
import triton
import triton.language as tl


@triton.jit
def read(SOURCE, TARGET, TILES, ALL, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    first = tl.program_id(0) * TILES
    total = tl.zeros((BLOCK,), tl.float32)
    for tile in range(TILES):
        at = ((first + tile) % ALL).to(tl.int64) * BLOCK + lanes
        total += tl.load(SOURCE + at, cache_modifier=".cg")
    tl.store(TARGET + tl.program_id(0), tl.sum(total, axis=0))


@triton.jit
def multiply_add(TARGET, FACTOR, SUMMAND, STEPS, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    dtype = TARGET.dtype.element_ty
    x = lanes.to(dtype)
    factor = tl.full((BLOCK,), FACTOR, dtype)
    summand = tl.full((BLOCK,), SUMMAND, dtype)
    for _step in range(STEPS):
        for _again in tl.static_range(16):
            x = x * factor + summand
    tl.store(TARGET + tl.program_id(0) * BLOCK + lanes, x)


@triton.jit
def exponentials(TARGET, STEPS, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    x = lanes.to(tl.float32) / BLOCK
    for _step in range(STEPS):
        for _again in tl.static_range(16):
            x = tl.exp2(-x)
    tl.store(TARGET + tl.program_id(0) * BLOCK + lanes, x)


@triton.jit
def mixed(TARGET, FACTOR, SUMMAND, ADDED, FLIPPED, STEPS, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    x = lanes.to(tl.float32)
    n = lanes
    for _step in range(STEPS):
        for _again in tl.static_range(16):
            x = x * FACTOR + SUMMAND
            n = n + ADDED
            x = x * FACTOR + SUMMAND
            n = n ^ FLIPPED
    tl.store(TARGET + tl.program_id(0) * BLOCK + lanes, x + n)


@triton.jit
def chase(NEXT, PLACE, STEPS):
    at = tl.load(PLACE)
    for _step in range(STEPS):
        at = tl.load(NEXT + at, cache_modifier=".cg")
    tl.store(PLACE, at)


@triton.jit
def cycles():
    return tl.inline_asm_elementwise(
        "mov.u64 $0, %clock64;", "=l", [], dtype=tl.int64, is_pure=False, pack=1
    )


@triton.jit
def nanoseconds():
    return tl.inline_asm_elementwise(
        "mov.u64 $0, %globaltimer;", "=l", [], dtype=tl.int64, is_pure=False, pack=1
    )


@triton.jit
def ticks(TARGET, TIMES, FACTOR, SUMMAND, STEPS, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    x = lanes.to(tl.float32)
    begun = nanoseconds()
    first = cycles()
    for _step in range(STEPS):
        for _again in tl.static_range(16):
            x = x * FACTOR + SUMMAND
    tl.store(TARGET + tl.program_id(0) * BLOCK + lanes, x)
    last = cycles()
    ended = nanoseconds()
    tl.store(TIMES + 2 * tl.program_id(0), last - first)
    tl.store(TIMES + 2 * tl.program_id(0) + 1, ended - begun)


@triton.jit
def product(LEFT, RIGHT, RESULT, SIZE, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
            DEPTH: tl.constexpr):
    down = tl.program_id(0) % (SIZE // ROWS)
    across = tl.program_id(0) // (SIZE // ROWS)
    rows = down * ROWS + tl.arange(0, ROWS)
    columns = across * COLUMNS + tl.arange(0, COLUMNS)
    depth = tl.arange(0, DEPTH)
    left = LEFT + rows[:, None] * SIZE + depth[None, :]
    right = RIGHT + columns[None, :] * SIZE + depth[:, None]
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for _step in range(SIZE // DEPTH):
        total = tl.dot(tl.load(left), tl.load(right), total)
        left += DEPTH
        right += DEPTH
    at = rows[:, None] * SIZE + columns[None, :]
    tl.store(RESULT + at, total.to(RESULT.dtype.element_ty))


@triton.jit
def empty(TARGET):
    pass


@triton.jit
def spin(CYCLES):
    first = cycles()
    now = first
    while now - first < CYCLES:
        now = cycles()


@triton.jit
def spin_dependent(CYCLES):
    tl.extra.cuda.gdc_wait()
    tl.extra.cuda.gdc_launch_dependents()
    spin(CYCLES)
"""


@dataclass(frozen=True)
class Form:
    """The launch form of a kernel: the types of its arguments, its constants, and options."""

    types: Mapping[str, str]
    constants: Mapping[str, int] = field(default_factory=dict)
    warps: int = 4
    stages: int = 1
    pdl: bool = False


F32, I32 = "*fp32", "i32"
FORMS: Mapping[str, Form] = {
    "read": Form(
        {"SOURCE": F32, "TARGET": F32, "TILES": I32, "ALL": I32}, {"BLOCK": 4096}, warps=8
    ),
    "multiply_add": Form(
        {"TARGET": F32, "FACTOR": "fp32", "SUMMAND": "fp32", "STEPS": I32}, {"BLOCK": 2048}
    ),
    "exponentials": Form({"TARGET": F32, "STEPS": I32}, {"BLOCK": 2048}),
    "mixed": Form(
        {"TARGET": F32, "FACTOR": "fp32", "SUMMAND": "fp32", "ADDED": I32, "FLIPPED": I32,
         "STEPS": I32},
        {"BLOCK": 1024},
    ),
    "chase": Form({"NEXT": "*i32", "PLACE": "*i32", "STEPS": I32}, warps=1),
    "ticks": Form(
        {"TARGET": F32, "TIMES": "*i64", "FACTOR": "fp32", "SUMMAND": "fp32", "STEPS": I32},
        {"BLOCK": 2048},
    ),
    "product": Form(
        {"LEFT": "*fp8e4nv", "RIGHT": "*fp8e4nv", "RESULT": "*bf16", "SIZE": I32},
        {"ROWS": 128, "COLUMNS": 256, "DEPTH": 128}, warps=8, stages=3,
    ),
    "empty": Form({"TARGET": F32}),
    "spin": Form({"CYCLES": I32}),
    "spin_dependent": Form({"CYCLES": I32}, pdl=True),
}  # fmt: skip
