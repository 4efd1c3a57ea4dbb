"""Every start of a repeated call has the arguments that the arrays of that very call ask for.

Calls mix addresses, strides, sizes, streams and threads, with memory that was freed and comes
again. What reaches the function in C below Triton's launcher is compared with what the same file's
launcher would start for these arrays.
"""

import random
import threading

import pytest

import blockbuster as bb
from blockbuster.emission import emit
from blockbuster.emit.target import starting
from blockbuster.emit.target.load import load_module
from blockbuster.emit.target.starting import starter
from blockbuster.runtime.file_launches import FileLaunches
from blockbuster.runtime.kept import Kept
from tests.compile.stand_ins import Device

SCHEDULE = "block M 16, K 16, N 16\nwarps 4\nstage nest 1 K 3 by descriptors\n"
"""Of the product: both of its operands have descriptors."""


@pytest.fixture
def launchers():
    return pytest.importorskip("tests.compile.launchers", reason="needs Triton 3.9 for Linux")


@pytest.fixture
def product(torch, launchers, monkeypatch):
    """A product's file, its kernels on stand-ins, a device, and a log of starts by thread."""
    import triton

    if not triton.__version__.startswith("3.9."):
        pytest.skip("the stand-ins are for the launcher of Triton 3.9")
    program = bb.trace(lambda x, w: x @ w, x="M K", w="K N")
    sizes = dict(M=64, K=64, N=64)
    kernel = emit(bb.fuse(bb.lower(program)).final, sizes, "float16", "sm_90", schedule=SCHEDULE)
    local = threading.local()

    def launch(*given):
        local.log.append(given)

    gpu = Streams(torch)
    module = gpu.put_into(load_module(kernel.source), [], monkeypatch)
    for entry in module.KERNELS:
        monkeypatch.setitem(entry, "function", launchers.Kernel(entry["function"], launch))
    file = FileLaunches(module, kernel.launches, gpu)
    with launchers.with_driver():
        yield file, gpu, local


class Streams(Device):
    """A device with a current stream for each thread."""

    local = threading.local()

    def stream(self):
        return getattr(self.local, "stream", 0)


def layouts(torch, draw):
    """Arrays of one of several layouts; old ones are free by then, and their memory comes again."""
    m, k, n = draw.choice([(64, 64, 64), (64, 64, 48), (48, 96, 64)])
    x = torch.zeros(m, k + draw.choice([0, 16]), dtype=torch.float16)[:, :k]
    w = torch.zeros(k, n, dtype=torch.float16)
    if draw.random() < 0.2:
        w = torch.zeros(n, k, dtype=torch.float16).T  # has no descriptor
    if draw.random() < 0.2:
        w = torch.zeros(k * n + 1, dtype=torch.float16)[1:].view(k, n)  # not aligned: has none
    return [x, w], dict(M=m, K=k, N=n)


def expected(arrays, out):
    """Addresses and descriptors that a start for these arrays has, in order."""
    described = [
        (a.data_ptr(), tuple(a.shape), a.stride())
        for a in arrays
        if a.stride(1) == 1 and not a.stride(0) % 16 and not a.data_ptr() % 16
    ]
    return described, out.data_ptr()


def check(product, seed, laid_of):
    file, gpu, local = product
    draw = random.Random(seed)
    local.log = []
    for _ in range(60):
        arrays, sizes = layouts(gpu.torch, draw)
        gpu.local.stream = draw.choice([0, 7])
        laid = laid_of(file, gpu, arrays, sizes)
        local.log.clear()
        (out,) = laid([*arrays])
        (given,) = local.log
        described, written = expected(arrays, out)
        *_, arguments = given
        encoded = [one for one in arguments if type(one).__name__ == "Encoded"]
        assert [one[:3] for one in encoded] == described
        assert written in arguments[:3]
        assert given[3] == gpu.local.stream
        assert given[0] == -(-sizes["M"] // 16) * -(-sizes["N"] // 16)
        plain = [a for a in arrays if (a.data_ptr(), tuple(a.shape), a.stride()) not in described]
        assert all(array.data_ptr() in arguments for array in plain)


def first(file, arrays, sizes, gpu):
    """The launches for arrays of this layout, compiled and started once."""
    made = file.first([*arrays], sizes, Kept(), gpu.empty)
    made()
    return made.laid


def layout_of(arrays):
    return tuple((a.shape, a.stride(), a.data_ptr() % 16 == 0) for a in arrays)


def kept_by_layout():
    """Launches for arrays, kept by their layout as compiled programs keep them."""
    known, lock = {}, threading.Lock()

    def laid_of(file, gpu, arrays, sizes):
        with lock:
            key = layout_of(arrays)
            if key not in known:
                known[key] = first(file, arrays, sizes, gpu)
            return known[key]

    return laid_of


@pytest.mark.parametrize("seed", range(3))
def test_starts_are_for_the_arrays_of_the_call(product, seed):
    check(product, seed, kept_by_layout())


def test_threads_share_what_is_kept(product):
    laid_of, failed = kept_by_layout(), []

    def work(seed):
        try:
            check(product, seed, laid_of)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []


def test_a_descriptor_is_encoded_once_for_an_address(product, launchers, monkeypatch):
    file, gpu, local = product
    local.log = []
    count = []
    encode = launchers.encode
    monkeypatch.setattr(
        launchers.Driver.utils,
        "fill_tma_descriptor_tiled",
        lambda *given: count.append(given[0]) or encode(*given),
    )
    x, w, other = (gpu.torch.zeros(64, 64, dtype=gpu.torch.float16) for _ in range(3))
    laid = first(file, [x, w], dict(M=64, K=64, N=64), gpu)

    for left in (x, other, x, other):
        laid([left, w])

    assert count == [x.data_ptr(), w.data_ptr(), other.data_ptr(), w.data_ptr()]


def test_few_encoded_descriptors_are_kept(product, monkeypatch):
    file, gpu, local = product
    local.log = []
    monkeypatch.setattr("blockbuster.runtime.launches.ENCODED", 3)
    arrays = [gpu.torch.zeros(64, 64, dtype=gpu.torch.float16) for _ in range(9)]
    laid = first(file, arrays[:2], dict(M=64, K=64, N=64), gpu)

    for x in arrays * 2:
        laid([x, arrays[0]])

        encoded = [one for one in local.log[-1][-1] if type(one).__name__ == "Encoded"]
        assert [one.address for one in encoded] == [x.data_ptr(), arrays[0].data_ptr()]


# which launchers are known ------------------------------------------------------------------


class Launcher:
    """A launcher that notes its calls, of no kind that is known."""

    def __init__(self):
        self.calls = []

    def __call__(self, *given):
        self.calls.append(given)


def test_unknown_launchers_are_called_themselves(launchers):
    made = launchers.Compiled("kernel", [1], print)
    made.run = Launcher()

    starter(made).start(5, "stream", (1, 2))

    assert made.run.calls == [(5, 1, 1, "stream", 1, (4, 1, 0), None, None, None, 1, 2)]
    assert starter(made).expand is None


@pytest.mark.parametrize("needs", ["global_scratch_size", "profile_scratch_size", "gsan_enabled"])
def test_kernels_that_need_more_are_started_by_their_launcher(launchers, needs, monkeypatch):
    made = launchers.Compiled("kernel", [1], print)
    setattr(made.run, needs, 16)

    assert starting._known_launcher(made.run) is None


def test_other_versions_are_started_by_their_launcher(launchers, monkeypatch):
    made = launchers.Compiled("kernel", [1], print)

    monkeypatch.setattr("triton.__version__", "3.7.1")
    assert starting._known_launcher(made.run) is None
    monkeypatch.setattr("triton.__version__", "3.6.0")
    assert starting._known_launcher(made.run) is starting.LAUNCHERS["3.6"]


def test_triton_3_6_takes_arguments_one_by_one(launchers, monkeypatch):
    """The C function of Triton 3.6 takes 13 arguments, then those of the kernel."""
    calls = []
    made = launchers.Compiled("kernel", [1], print)

    starting._one_by_one(lambda *given: calls.append(given), made)(5, "stream", (1, 2))

    head = (5, 1, 1, "stream", made.function, False, False, None, None, (4, 1, 0))
    assert calls == [(*head, None, None, None, 1, 2)]
