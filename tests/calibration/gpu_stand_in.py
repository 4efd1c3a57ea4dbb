"""The probes of a GPU on a stand-in for one: arrays of torch on the CPU, Triton's interpreter.

Run with TRITON_INTERPRET=1: prints what was found as JSON. It is no test by itself.
"""

import json
from types import SimpleNamespace

import torch

from blockbuster.calibration import calibrate, gpu_probes, kernel_texts, procedure
from blockbuster.calibration.gpu_device import Device
from blockbuster.calibration.kernel_texts import TEXT, Form
from blockbuster.emit.target.load import load_module

NOT_INTERPRETED = ("ticks", "spin", "spin_dependent")  # instructions of NVIDIA's
FLOAT8 = torch.float8_e4m3fn
SMALL = {
    "LARGE": 1 << 15, "PRODUCT": 8, "CHASED": 16, "ARITHMETIC": 1, "KERNELS": 3, "PROGRAMS": 2,
    "LINES": {"l2": 32, "hbm": 64},
}  # fmt: skip


class StandIn(Device):
    """A GPU of one processor on which everything takes a second."""

    where = "cpu"

    def __init__(self) -> None:
        self.torch = torch
        self.name = "a stand-in"
        self.about = SimpleNamespace(
            major=9, minor=0, multi_processor_count=1, total_memory=1 << 30, L2_cache_size=1 << 17,
            shared_memory_per_multiprocessor=1 << 17, shared_memory_per_block_optin=1 << 16,
            regs_per_multiprocessor=1 << 16, max_threads_per_multi_processor=2048, warp_size=32,
        )  # fmt: skip
        self._kernels = load_module(TEXT)

    def launch(self, kernel, programs, *arguments):
        if kernel == "ticks":
            arguments[1].view(-1, 2)[:] = torch.tensor([3, 2])  # cycles, nanoseconds
        elif kernel not in NOT_INTERPRETED and arguments[0].dtype != FLOAT8:
            super().launch(kernel, programs, *arguments)

    def seconds(self, call, repeat=1, *, before=None):
        if before is not None:
            before()
        call()
        return 1.0

    def captured(self, call, times):
        return lambda: [call() for _ in range(times)]


def calibration() -> dict[str, object]:
    """What `blockbuster calibrate --json` prints of the stand-in; nothing is done in float8."""
    for name, value in SMALL.items():
        setattr(gpu_probes, name, value)
    procedure.Device = StandIn
    return json.loads(calibrate("gpu", rounds=1, tell=lambda text: None).to_json())


def small(kernel: str, **constants: int) -> None:
    """Let a kernel have small tiles from now on."""
    form = kernel_texts.FORMS[kernel]
    kernel_texts.FORMS[kernel] = Form(form.types, constants, form.warps, form.stages, form.pdl)


def computed() -> dict[str, bool]:
    """Whether kernels compute what they say."""
    for kernel in ("read", "multiply_add", "exponentials", "mixed"):
        small(kernel, BLOCK=4)
    small("product", ROWS=4, COLUMNS=8, DEPTH=2)
    device = StandIn()
    found = {}
    source, target = torch.arange(24.0), torch.zeros(24)
    device.launch("read", 3, source, target, 4, 6)
    tiles = source.view(6, 4)
    passed = [tiles[[0, 1, 2, 3]], tiles[[4, 5, 0, 1]], tiles[[2, 3, 4, 5]]]
    found["read"] = target[:3].tolist() == [float(each.sum()) for each in passed]
    device.launch("multiply_add", 1, target, 1.0, 1.0, 2)
    found["multiply_add"] = torch.equal(target[:4], torch.arange(4.0) + 2 * kernel_texts.UNROLLED)
    device.launch("exponentials", 1, target, 40)
    found["exponentials"] = bool(((target[:4] - torch.exp2(-target[:4])).abs() < 1e-5).all())
    device.launch("mixed", 1, target, 1.0, 1.0, 0, 0, 1)
    lanes = torch.arange(4.0)
    found["mixed"] = torch.equal(target[:4], lanes + 2 * kernel_texts.UNROLLED + lanes)
    left, right = torch.arange(64.0).view(8, 8), torch.arange(64.0).view(8, 8) % 5
    result = torch.zeros(8, 8)
    device.launch("product", 2, left, right, result, 8)
    found["product"] = torch.equal(result, left @ right.T)
    following, place = gpu_probes._cycle(device, 8), torch.zeros(1, dtype=torch.int32)
    seen = []
    for _ in range(8):
        device.launch("chase", 1, following, place, 1)
        seen.append(int(place))
    found["chase"] = sorted(seen) == list(range(0, 8 * gpu_probes.LINE, gpu_probes.LINE))
    device.launch("chase", 1, following, place, 8)
    found["a chase goes around"] = int(place) == seen[-1]
    return found


if __name__ == "__main__":
    print(json.dumps({"calibration": calibration(), "computed": computed()}))
