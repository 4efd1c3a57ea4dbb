"""Replay starts what a file's launcher would start, and known kernels only where they fit."""

import inspect

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.emission import emit
from blockbuster.emit.target.load import load_module
from blockbuster.emit.tile.launch_spec import LaunchSpec, Section, Start
from blockbuster.runtime.file_launches import LARGEST, FileLaunches
from blockbuster.runtime.kept import Kept
from blockbuster.runtime.numbers import Arithmetic
from tests.compile.functions import attention, normal, several
from tests.compile.stand_ins import Device, launched, starts, told
from tests.emit import test_overlap
from tests.emit.test_overlap import DIMS, scheduled
from tests.emit.test_overlap import SIZES as OVERLAPPED
from tests.parameters import one_in


def shifted(x, w):
    return bb.sum(bb.exp(x[1:]) @ w, axis=0)


def appended(q, k, new):
    keys = bb.concat([k, new], axis=0)
    return bb.softmax(q @ keys.T) @ keys


def heads(x, w):
    return bb.merge_heads(bb.softmax(bb.split_heads(x, 4))) @ w


def thirds(x):
    n = x.shape[1] // 3
    return bb.softmax(x[:, :n] * x[:, n : 2 * n], axis=-1) + x[:, 2 * n :]


FUNCTIONS = {
    "sum": (lambda x, y: bb.silu(x) * y, lambda n: [(n, 96), (1, 96)]),
    "attention": (attention, lambda n: [(16, 64), (n, 64), (n, 64)]),
    "softmax": (lambda x: bb.softmax(x, axis=0), lambda n: [(n, 40)]),
    "total": (lambda x: bb.sum(bb.exp(bb.sum(x, axis=0)), axis=0), lambda n: [(n, 640)]),
    "two products": (lambda x, w: bb.softmax(bb.exp(x) @ w, axis=0), lambda n: [(n, 64), (64, 80)]),
    "between": (several, lambda n: [(n, 32), (32, 48)]),
    "shifted": (shifted, lambda n: [(n, 64), (64, 48)]),
    "appended": (appended, lambda n: [(4, 64), (n, 64), (3, 64)]),
    "heads": (heads, lambda n: [(n, 64), (64, 32)]),
}
SIZES = (33, 40, 48, 50, 96, 100, 160, 1000, 1008, 2000)


@pytest.fixture(autouse=True)
def compared(monkeypatch):
    """First calls of files: each starts what the text of the file's launcher starts."""
    seen, first = [], FileLaunches.first

    def with_text(self, tensors, sizes, *more):
        made, module = first(self, tensors, sizes, *more), self._module
        words = inspect.getfullargspec(module.launch).kwonlyargs  # sizes that no array shows
        free = {word: sizes[dim] for word, dim in zip(words, module.FREE, strict=True)}
        with monkeypatch.context() as patch:
            by_text = launched(module, patch, *tensors, **free)
        starts = [
            (call.function.__name__, *told((call.start[0],), call.arguments, call.options))
            for call in made.calls
        ]
        if not all(sizes.values()):  # strides of arrays without elements: torch has its own
            starts, by_text = ([(*s[:2], s[3]) for s in each] for each in (starts, by_text))
        assert starts == by_text
        seen.append(made)
        return made

    monkeypatch.setattr(FileLaunches, "first", with_text)
    return seen


def replayed(staged, arrays, on_gpu=None):
    """What the kernels of a new layout are started with, and the results."""
    made = staged.replay(arrays, on_gpu)
    made(arrays)
    staged.log.clear()
    results = made(arrays)
    return starts(staged.log), [(r.shape, r.stride(), r.dtype) for r in results]


@pytest.mark.parametrize("name", one_in(3, FUNCTIONS))
def test_a_new_layout_is_started_as_its_launcher_would(name, stage, torch, compared):
    function, shapes = FUNCTIONS[name]

    def tensors(n):
        return [torch.from_numpy(a) for a in normal(*shapes(n))]

    staged = stage(function, *tensors(1000))
    plan, on_gpu = staged.plan, staged.on_gpu()
    for n in SIZES:
        if all(served(file, plan, tensors(n)) for file in plan.files):
            assert replayed(staged, tensors(n), on_gpu) == replayed(staged, tensors(n)), n
    before = len(compared)
    for n in (1001, 1003, 999):  # of the patterns of 1000 or 50 at most: nothing new
        assert replayed(staged, tensors(n), on_gpu) == replayed(staged, tensors(n), on_gpu)
    assert len(compared) - before <= len(plan.files)
    assert len(on_gpu.known) == len({file.text for file in plan.files})


def served(file, plan, tensors):
    sizes = plan.bind({n: a.shape for n, a in zip(plan.inputs, tensors, strict=True)})
    module = load_module(file.text)
    return all(sizes[d] % n == 0 for d, n in module.MULTIPLES.items()) and all(
        sizes[d] <= n for d, n in module.AT_MOST.items()
    )


def test_halves_of_rows_follow_from_the_sizes_of_the_call(stage, torch):
    """A schedule that takes blocks in pairs (move jam) has a dim of its own."""

    def heads_of(n):
        return [torch.zeros(16, n, 128, dtype=torch.float16) for _ in range(3)]

    attend = lambda q, k, v: bb.softmax(q @ k.mT) @ v  # noqa: E731
    staged = stage(attend, *heads_of(4096), library=False)
    (file,) = staged.plan.files
    assert "\n    jam nest 1" in file.text
    on_gpu = staged.on_gpu()

    def numbers(n, on_gpu=None):
        (start,), results = replayed(staged, heads_of(n), on_gpu)
        return [given for given in start if isinstance(given, int)], results

    for n in (4096, 3584, 4352):
        assert numbers(n, on_gpu) == numbers(n), n


def test_joined_rows_follow_from_the_sizes_of_the_call(stage, torch):
    """Rows over lines and places of images (move join) have a dim of their own."""

    def images(n):
        shapes = (32, 30, n + 2, 64), (3, 3, 64, 128)
        return [torch.zeros(*shape, dtype=torch.float16) for shape in shapes]

    staged = stage(lambda x, w: bb.einsum("n(h+r)(v+s)c, rsck -> nkhv", x, w), *images(28))
    assert any("\n    join nest 1" in file.text for file in staged.plan.files)
    on_gpu = staged.on_gpu()

    for n in (28, 30, 27, 29):
        assert replayed(staged, images(n), on_gpu) == replayed(staged, images(n)), n


def test_strides_of_inputs_are_those_of_the_call(stage, torch):
    x, y = (torch.from_numpy(a) for a in normal((64, 96), (96, 64)))
    staged = stage(lambda x, y: x - y, x, y.T)
    on_gpu = staged.on_gpu()

    for pair in (
        [x, y.T],
        [x, y.T.contiguous()],
        [x, x[:1].expand(64, 96)],
        [x[:, ::2], y.T[:, 1::2]],
    ):
        assert replayed(staged, pair, on_gpu) == replayed(staged, pair)


def test_masks_and_arrays_without_elements_are_taken_as_by_the_text(stage, torch, compared):
    def rows(n):
        return [torch.zeros(n, 3 * 48), torch.zeros(n, 1, dtype=torch.bool)]

    staged = stage(lambda x, m: bb.where(m, x[:, :48] * x[:, 96:], 0.0), *rows(1000))
    for n in (1000, 8, 0):
        (out,) = staged.replay(rows(n))(rows(n))
        assert out.shape == (n, 48)
        assert out.stride() == (48, 1)
        made = compared.pop()
        assert bool(made.calls) is bool(made.pattern) is bool(n)


@pytest.fixture(scope="module")
def chain():
    return bb.fuse(bb.lower(bb.trace(test_overlap.chain, **DIMS))).snapshots[0]


@pytest.mark.parametrize(
    ("moves", "step", "waits"),
    [
        ("stage nest 2 N 2; overlap", 1, [False, True]),  # the second, behind the first alone
        ("overlap nest 1", LARGEST // 64, [True, False]),
    ],
    ids=["behind another", "first of all"],
)
@pytest.mark.parametrize("overlaps", [False, True])
def test_dependent_launches_and_wide_offsets_are_those_of_the_text(
    chain, torch, monkeypatch, overlaps, moves, step, waits
):
    kernel, log = scheduled(chain, moves), []
    gpu = Device(torch, where="meta")
    module = gpu.put_into(load_module(kernel.source), log, monkeypatch)
    monkeypatch.setattr(module, "can_overlap", lambda array: overlaps)
    monkeypatch.setattr(module, "leave_room", log.append, raising=False)
    for sizes in (OVERLAPPED, {**OVERLAPPED, "N": 0}):
        shapes = [[sizes[dim] for dim in dims.split()] for dims in DIMS.values()]
        steps = [[step * width, step] for _, width in shapes]
        arrays = [gpu.empty(*given, torch.float32) for given in zip(shapes, steps, strict=True)]
        made = FileLaunches(module, kernel.launches, gpu).first(arrays, sizes, Kept(), gpu.empty)
        log.clear()
        made()
        left = [call for call in made.calls if call.leaves_room]
        assert len(log) == len(left) == (overlaps and waits[1] and len(made.calls) == 2)
        early = ["launch_pdl" in call.options for call in made.calls]
        assert early == ([overlaps and one for one in waits] if sizes["N"] else [False])
        wide = {call.options["INDEX"] for call in made.calls}
        assert module.tl.int64 in wide if step > 1 else wide == {module.tl.int32}


def test_a_kernel_behind_one_without_programs_begins_as_usual(torch, monkeypatch):
    """The first of three did start, but the third does not follow it."""
    dims = dict(x="M K", w="K N", u="N H", v="H P")
    moves = "split; block nest 1 M 16, K 32, N 64; block nest 2 M 16, N 64, H 32; "
    moves += "block nest 3 M 16, H 32, P 32; warps 4; overlap nest 3"
    program = bb.trace(lambda x, w, u, v: ((x @ w) @ u) @ v, **dims)
    sizes = dict(M=32, K=32, N=64, H=32, P=32)
    kernel = emit(bb.fuse(bb.lower(program)).snapshots[0], sizes, "float32", schedule=moves)
    gpu = Device(torch)
    module = gpu.put_into(load_module(kernel.source), [], monkeypatch)
    monkeypatch.setattr(module, "can_overlap", lambda array: True)

    def early(h):
        given = {**sizes, "H": h}
        arrays = [torch.zeros([given[dim] for dim in each.split()]) for each in dims.values()]
        made = FileLaunches(module, kernel.launches, gpu).first(arrays, given, Kept(), gpu.empty)
        return ["launch_pdl" in call.options for call in made.calls]

    assert early(32) == [False, False, True]
    assert early(0) == [False, False]


def test_empty_arrays_and_wide_ones_have_no_pattern(stage, torch):
    x, y = (torch.from_numpy(a) for a in normal((100, 96), (96, 100)))
    staged = stage(lambda x, y: x - y.T, x, y)
    (file,) = staged.plan.files
    made = FileLaunches(load_module(file.text), file.launches, Device(torch))
    wide = torch.empty(1).expand(3, 4).as_strided((3, 4), (0, 0))
    within, beyond = (
        torch.empty_strided((100, 96), (LARGEST // parts, 1), device="meta") for parts in (101, 100)
    )

    def pattern(left, right, a=100, b=96):
        numbers = made._arithmetic([left.stride(), right.stride()], {"A": a, "B": b})
        return made._pattern(numbers, [left, right])

    assert made.laid([x[:0], y[:, :0]], {"A": 0, "B": 96}) is None
    assert pattern(x, y) is not None
    assert pattern(wide, y, LARGEST, 1) is None
    assert pattern(within, y) is not None
    assert pattern(beyond, y) is None


NUMBERS = [*range(-40, 70), 1000, 4096, LARGEST - 16, LARGEST - 1, LARGEST, LARGEST + 1, 2**40]


def test_triton_tells_numbers_and_pointers_apart_as_we_do(torch):
    """One pattern, one kernel: asked of Triton's own function, for NVIDIA's devices."""
    jit = pytest.importorskip("triton.runtime.jit", reason="Triton is not installed")
    backend = pytest.importorskip("triton.backends.nvidia.compiler").CUDABackend
    told = getattr(jit, "native_specialize_impl", None)
    if told is None:
        pytest.skip("this Triton specializes arguments in Python")

    def kernel(value):
        return told(backend, value, False, True, True)

    takes_n = Start(
        kernel="k", grid=1, arrays=(), sizes=("N",), strides=(), descriptors=(), lanes=(),
        even=(), told=(), asks=False, options=(), waits=False, leaves_room=False,
    )  # fmt: skip
    section = Section((), (), ("N",), (), (), (takes_n,))
    numbers = Arithmetic(LaunchSpec(section, (), (), None, (), (), guarded=False), str)
    by_pattern = {}
    for value in NUMBERS:
        if value < LARGEST:
            pattern = numbers([], {"N": value}).classes
            by_pattern.setdefault(pattern, set()).add(kernel(value))
    assert [len(kernels) for kernels in by_pattern.values()] == [1, 1, 1]
    x = torch.zeros(64)
    aligned = {(x[i:].data_ptr() % 16 == 0, kernel(x[i:])) for i in range(16)}
    assert len(aligned) == 2
    assert np.unique([a for a, _ in aligned]).size == 2


def rows_of(number):
    """The file of a program whose rows end under a mask."""

    def program(x):
        return x - bb.logsumexp(x, axis=-1, keepdims=True)

    graph = bb.fuse(bb.lower(bb.trace(program, x="M N"))).final
    kernel = bb.emit(graph, dict(M=64, N=number))
    return load_module(kernel.source), kernel.launches


@pytest.mark.parametrize(("n", "same"), [(1000, True), (984, True), (1004, False), (999, False)])
def test_known_kernels_serve_rows_that_are_as_even(n, same, torch):
    made = FileLaunches(*rows_of(1000), Device(torch))

    def pattern(columns):
        x = torch.empty((64, columns), dtype=torch.float16)
        return made._pattern(made._arithmetic([x.stride()], {"M": 64, "N": columns}), [x])

    assert (pattern(n) == pattern(1000)) == same


def test_a_stride_alone_makes_rows_uneven(torch):
    made = FileLaunches(*rows_of(1000), Device(torch))

    def pattern(width):
        x = torch.empty((64, width), dtype=torch.float16)[:, :1000]
        return made._pattern(made._arithmetic([x.stride()], {"M": 64, "N": 1000}), [x])

    assert pattern(1000) == pattern(1032)
    assert pattern(1000) != pattern(1004)


def test_quotients_of_sizes_follow_from_the_sizes_of_the_call(stage, torch):
    """Thirds of a row begin at multiples of 16 or of less, which kernels are told."""

    def rows(n):
        return [torch.from_numpy(normal((20, 3 * n))[0])]

    staged = stage(thirds, *rows(48))
    assert any("EVEN_PARTS=even(" in file.text for file in staged.plan.files)
    on_gpu = staged.on_gpu()

    for n in (48, 40, 33, 64, 36, 47):
        assert replayed(staged, rows(n), on_gpu) == replayed(staged, rows(n)), n
