"""Inputs that are declared constant: what is launched for them, when, and what users can say."""

import inspect

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.emission import emit
from blockbuster.emit.target.load import load_module
from blockbuster.errors import EmitError
from blockbuster.runtime.file_launches import FileLaunches
from blockbuster.runtime.graphs import Graphed
from blockbuster.runtime.kept import Kept
from blockbuster.runtime.launch import run_interpreted
from tests.compile.functions import normal
from tests.compile.stand_ins import Device
from tests.compile.test_graphs import Gpu

SIZES = dict(M=64, K=64, N=64)
SCHEDULE = """\
block nest 1 K 32, N 32
block nest 2 M 32, K 32, N 32
warps 4
"""


def scaled(x, w, g):
    return x @ (w * g[:, None])


DIMS = dict(x="M K", w="K N", g="K")


@pytest.fixture(scope="module")
def graph():
    """Two maps: weights with a factor, and a product with them."""
    return bb.fuse(bb.lower(bb.trace(scaled, **DIMS))).snapshots[0]


def kernel_of(graph, constant=("w", "g"), **more):
    return emit(graph, SIZES, "float32", "sm_90", schedule=SCHEDULE, constant=constant, **more)


def arrays(seed=0):
    random = np.random.default_rng(seed)
    shapes = {name: [SIZES[d] for d in dims.split()] for name, dims in DIMS.items()}
    return {n: random.integers(1, 4, shape).astype("float32") for n, shape in shapes.items()}


# emitted files -----------------------------------------------------------------------------


def test_a_file_prepares_what_reads_constants_alone(graph):
    module = load_module(kernel_of(graph).source)

    assert [*inspect.signature(module.prepare).parameters] == ["w", "g"]
    assert inspect.signature(module.launch).parameters["prepared"].default is None
    assert "prepare" not in vars(load_module(kernel_of(graph, ()).source))
    assert "prepare" not in vars(load_module(kernel_of(graph, ("g",)).source))


def test_launches_give_the_same_with_and_without(graph):
    given = arrays()
    expected = given["x"] @ (given["w"] * given["g"][:, None])
    for constant in (("w", "g"), ("g",), ()):
        made = run_interpreted(kernel_of(graph, constant), given)
        np.testing.assert_array_equal(made["out"], expected)


def test_a_prepared_launch_starts_the_other_kernels_only(graph, torch, monkeypatch):
    log = []
    module = Device(torch).put_into(load_module(kernel_of(graph).source), log, monkeypatch)
    started = noted(module, monkeypatch)
    given = {name: torch.from_numpy(array) for name, array in arrays().items()}

    module.launch(**given)
    assert len(started) == 2
    prepared = module.prepare(given["w"], given["g"])
    assert len(started) == 3
    module.launch(**given, prepared=prepared)
    assert len(started) == 4
    with pytest.raises(ValueError, match=r"prepared holds .*, expected .*: call prepare again"):
        module.launch(**given, prepared=(prepared[0][:32],))
    with pytest.raises(ValueError, match="w has dtype float16, expected float32"):
        module.prepare(given["w"].half(), given["g"])


def test_what_is_prepared_is_checked_before_a_kernel_is_called(graph, torch, monkeypatch):
    kernel, gpu = kernel_of(graph), Device(torch)
    module = gpu.put_into(load_module(kernel.source), [], monkeypatch)
    launches = FileLaunches(module, kernel.launches.given((), prepared=True), gpu)
    given = {name: torch.from_numpy(array) for name, array in arrays().items()}
    (array,) = kernel.launches.keeps
    shape = [SIZES[dim] for _, dim, _ in array.shape]

    def calls(*kept):
        inputs = [given[name] for name in module.INPUTS]
        return launches.first([*inputs, *kept], SIZES, Kept(), gpu.empty).calls

    assert len(calls(torch.zeros(shape))) == 1
    for kept in [(), (torch.zeros(shape[:1]),), (torch.zeros(shape, dtype=torch.float16),)]:
        with pytest.raises(ValueError, match=r"prepared holds .*: call prepare again"):
            calls(*kept)


def noted(module, monkeypatch):
    """What kernels of a module were started, by name."""
    started = []

    class Kernel:
        def __init__(self, name):
            self.name = name

        def __getitem__(self, grid):
            return lambda *arguments, **options: started.append(self.name)

    for entry in module.KERNELS:
        name = entry["function"].__name__
        monkeypatch.setattr(module, name, Kernel(name))
    return started


def test_sizes_that_constants_do_not_show_are_given(graph):
    """The factor is 1 / |M| here, so that what is prepared differs from size to size."""

    def averaged(x, w):
        return x @ (w * (1.0 / x.shape[0]))

    start = bb.fuse(bb.lower(bb.trace(averaged, x="M K", w="K N"))).snapshots[0]
    made = emit(start, SIZES, "float32", "sm_90", schedule=SCHEDULE, constant=("w",))
    module = load_module(made.source)

    assert str(inspect.signature(module.prepare)) == "(w, *, M)"
    assert "prepared = prepare(w, M=M)" in made.source
    given = {name: array for name, array in arrays().items() if name != "g"}
    found = run_interpreted(made, given)["out"]
    np.testing.assert_allclose(found, given["x"] @ given["w"] / 64, rtol=1e-6)


def test_names_of_arrays_that_there_are_not(graph):
    with pytest.raises(ValueError, match="unknown array 'v' in constant"):
        kernel_of(graph, ("v",))
    with pytest.raises(TypeError, match="constant is one string, expected several names"):
        kernel_of(graph, "w")


def test_a_schedule_that_overlaps_the_kept_nest_is_refused(graph):
    with pytest.raises(EmitError, match="nest 1 is kept from call to call"):
        emit(graph, SIZES, "float32", "sm_90", schedule=SCHEDULE + "overlap nest 1\n",
             constant=("w", "g"))  # fmt: skip


# costs -------------------------------------------------------------------------------------


def test_kernels_of_constants_cost_nothing(graph):
    with_them, without = kernel_of(graph, ()), kernel_of(graph)

    assert len(without.cost("h200").waves) == len(with_them.cost("h200").waves) - 1
    assert without.cost("h200").time_us < with_them.cost("h200").time_us
    assert bb.simulate(without, "h200").time_us < bb.simulate(with_them, "h200").time_us


# calls -------------------------------------------------------------------------------------


@pytest.fixture
def staged(stage, torch):
    x, w, g = (torch.from_numpy(a) for a in normal((2048, 1024), (1024, 1024), (1024,)))
    x, w, g = x.half(), w.half(), g.half()
    found = stage(scaled, x, w, g, constant=("w", "g"))
    assert "def prepare" in found.plan.source, "the product with scaled weights prepares them"
    return found, [x, w, g]


def calls(staged, replay, arrays):
    """How many kernels a call starts."""
    staged.log.clear()
    replay(arrays)
    return len(staged.log)


def test_kernels_of_constants_start_once_and_after_changes(staged, torch):
    found, (x, w, g) = staged
    replay = found.replay([x, w, g])
    replay([x, w, g])  # by its launcher

    first = calls(found, replay, [x, w, g])
    each = calls(found, replay, [x, w, g])
    assert first > each > 0
    assert calls(found, replay, [x.clone(), w, g]) == each
    g.mul_(2)
    assert calls(found, replay, [x, w, g]) == first
    assert calls(found, replay, [x, w, g]) == each
    assert calls(found, replay, [x, w.clone(), g]) == first
    assert calls(found, replay, [x, w, g]) == each


def test_what_is_kept_is_read_where_it_lies(staged):
    found, arrays = staged
    replay = found.replay(arrays)
    replay(arrays)
    calls(found, replay, arrays)
    prepared = found.log[0]
    calls(found, replay, arrays)

    addresses = {given for given in prepared[9:] if isinstance(given, int) and given > 1 << 31}
    made = addresses - {array.data_ptr() for array in arrays}
    assert made & {given for call in found.log for given in call[9:] if isinstance(given, int)}


def test_other_layouts_have_what_is_kept_too(staged, torch):
    found, (x, w, g) = staged
    on_gpu = found.on_gpu()
    replay = found.replay([x, w, g], on_gpu)
    replay([x, w, g])
    first = calls(found, replay, [x, w, g])
    each = calls(found, replay, [x, w, g])

    longer = torch.zeros(4096, 1024, dtype=torch.float16)
    other = found.replay([longer, w, g], on_gpu)
    other([longer, w, g])
    assert calls(found, other, [longer, w, g]) == each < first


def test_memory_full_of_other_numbers_is_prepared_anew(staged):
    found, arrays = staged
    replay = found.replay(arrays)
    replay(arrays)
    first = calls(found, replay, arrays)
    found.log.clear()
    replay.poisoned(arrays)

    assert len(found.log) == first


def test_a_graph_is_recorded_again_when_a_constant_changes(staged):
    found, (x, w, g) = staged
    replay = found.replay([x, w, g])
    replay([x, w, g])
    gpu = Gpu()
    graphed = Graphed(replay, gpu)
    graphed([x, w, g])
    graphed([x, w, g])
    x.mul_(2)
    graphed([x, w, g])
    assert gpu.recordings == 1

    w.mul_(2)
    graphed([x, w, g])
    assert gpu.recordings == 2
    graphed.clear()
    graphed([x, w, g])
    assert gpu.recordings == 3


# what users say ----------------------------------------------------------------------------


def test_on_the_cpu_constants_change_nothing():
    x, w, g = normal((8, 16), (16, 4), (16,))
    plain, constant = bb.jit(scaled), bb.jit(constant=("w", "g"))(scaled)

    np.testing.assert_array_equal(plain(x, w, g), constant(x, w, g))
    w *= 2
    np.testing.assert_array_equal(plain(x, w, g), constant(x, w, g))
    constant.clear_constants()
    program = bb.trace(scaled, **DIMS)
    made = bb.compile(program, dict(M=8, K=16, N=4), "float32", "cpu", constant=("w",))
    np.testing.assert_allclose(made(x, w, g), plain(x, w, g), rtol=1e-6)
    made.clear_constants()


def test_parameters_that_hold_arrays_and_arrays_that_are_held():
    held = normal((16, 4))[0]

    def fn(x, weights):
        return x @ weights["w"] + x @ held

    x, w = normal((8, 16), (16, 4))
    for names in (("weights",), ("weights_w",), ("weights['w']",), ("held",), ("weights", "held")):
        assert bb.jit(constant=names)(fn)(x, {"w": w}).shape == (8, 4)
    with pytest.raises(ValueError, match=r"unknown array 'weight' in constant[\s\S]*known: .*held"):
        bb.jit(constant=("weight",))(fn)(x, {"w": w})


@pytest.mark.parametrize("names", ["w", 3, (3,)])
def test_names_are_several_strings(names):
    with pytest.raises(TypeError, match="constant is"):
        bb.jit(constant=names)
    with pytest.raises(TypeError, match="constant is"):
        bb.compile(bb.trace(scaled, **DIMS), SIZES, "float32", "cpu", constant=names)
