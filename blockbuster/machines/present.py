"""The names of the present devices, from their drivers and from the operating system."""

from __future__ import annotations

import ctypes
import platform
from pathlib import Path

LONGEST = 256  # bytes of a device's name
DRIVERS = (("libcuda.so.1", "cu"), ("nvcuda.dll", "cu"), ("libamdhip64.so", "hip"))
"""The libraries of GPU drivers, and what the names of their functions begin with."""


def gpu_name() -> str:
    """The name of the first GPU that this process sees: "NVIDIA H200"; "" if there is none.

    The driver itself is queried, so no library of tensors has to be loaded.
    """
    for library, prefix in DRIVERS:
        try:
            driver = ctypes.CDLL(library)
        except OSError:
            continue
        device, name = ctypes.c_int(), ctypes.create_string_buffer(LONGEST)
        failed = (
            driver[f"{prefix}Init"](0)
            or driver[f"{prefix}DeviceGet"](ctypes.byref(device), 0)
            or driver[f"{prefix}DeviceGetName"](name, LONGEST, device)
        )
        if not failed:
            return name.value.decode(errors="replace")
    return ""


def cpu_name() -> str:
    """The name of this computer's processor, as the operating system gives it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        return platform.processor() or platform.machine()
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.machine())
