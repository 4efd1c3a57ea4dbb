"""Queries of this machine's CUDA driver: does it load the output of an assembler?"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

MAJOR, MINOR = 75, 76  # the driver's numbers for the two parts of a compute capability


@functools.cache
def _driver() -> Any:
    """The driver's library, ready for use; None if there is none, or no GPU."""
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    count = ctypes.c_int()
    if library.cuInit(0) or library.cuDeviceGetCount(ctypes.byref(count)) or not count.value:
        return None
    return library


def device_architecture() -> str:
    """The assembler's name for the architecture of the first GPU, or "" if there is none."""
    driver = _driver()
    if driver is None:
        return ""
    device, numbers = ctypes.c_int(), (ctypes.c_int(), ctypes.c_int())
    driver.cuDeviceGet(ctypes.byref(device), 0)
    for number, attribute in zip(numbers, (MAJOR, MINOR), strict=True):
        driver.cuDeviceGetAttribute(ctypes.byref(number), attribute, device)
    return f"sm_{numbers[0].value}{numbers[1].value}"


def driver_version() -> str:
    """The newest CUDA version that the driver knows, or "" if there is none."""
    driver = _driver()
    number = ctypes.c_int()
    if driver is None or driver.cuDriverGetVersion(ctypes.byref(number)):
        return ""
    return f"{number.value // 1000}.{number.value % 1000 // 10}"


def load_error(cubin: bytes) -> str:
    """The driver's name for why it does not load ``cubin`` on the first GPU; "" if it does."""
    driver = _driver()
    assert driver is not None, "there is a GPU"
    device, context, module = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
    driver.cuDeviceGet(ctypes.byref(device), 0)
    failed = driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
    if failed:
        return _name(failed)
    try:
        driver.cuCtxPushCurrent_v2(context)
        failed = driver.cuModuleLoadData(ctypes.byref(module), cubin)
        if not failed:
            driver.cuModuleUnload(module)
        driver.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))
    finally:
        driver.cuDevicePrimaryCtxRelease_v2(device)
    return _name(failed) if failed else ""


def _name(error: int) -> str:
    name = ctypes.c_char_p()
    _driver().cuGetErrorName(error, ctypes.byref(name))
    return name.value.decode() if name.value else f"error {error}"
