"""What is compiled ahead of a plan's first run is what its steps compile, one after the other."""

import pytest

import blockbuster as bb
from blockbuster.runtime import file_launches, replay
from blockbuster.selection.plans.plan import Plan
from tests.compile.functions import normal
from tests.compile.stand_ins import LARGEST, Device


def both_ways(x):
    return bb.softmax(bb.softmax(x, axis=0), axis=1)


def apart(x, w):
    return bb.softmax(x, axis=0), bb.sum(bb.exp(w), axis=1)


PROGRAMS = {"chain": (both_ways, [(2048, 3000)]), "apart": (apart, [(512, 1024), (2048, 300)])}


def plain(argument):
    """An argument as far as a kernel depends on it: addresses differ from run to run."""
    if hasattr(argument, "dtype"):
        return argument.dtype, argument.data_ptr() % 16 == 0
    if hasattr(argument, "base"):
        return plain(argument.base), argument.shape, argument.strides, argument.block_shape
    if isinstance(argument, int) and argument >= LARGEST:
        return "address", argument % 16 == 0
    return argument


@pytest.fixture
def compiled(monkeypatch):
    """The sources that each call of ``compile_ahead`` is given, and those that steps compile."""
    ahead, steps, known = [], [], file_launches.compiled_for_launch

    def noted(kernels):
        return [
            (function.__name__, [*map(plain, arguments)], {k: plain(v) for k, v in named.items()})
            for function, arguments, named in kernels
        ]

    def compile(*source):
        steps.extend(noted([source]))
        return known(*source)

    monkeypatch.setattr(replay, "compile_ahead", lambda kernels, _: ahead.extend(noted(kernels)))
    monkeypatch.setattr(file_launches, "compile_ahead", lambda *_: None)
    monkeypatch.setattr(file_launches, "compiled_for_launch", compile)
    return ahead, steps


def staged_for(name, stage, torch):
    function, shapes = PROGRAMS[name]
    arrays = [torch.from_numpy(a).half() for a in normal(*shapes)]
    staged = stage(function, *arrays)
    assert len(staged.plan.files) > 1
    return staged, arrays


@pytest.mark.parametrize("name", PROGRAMS)
def test_all_files_are_compiled_ahead_as_their_steps_compile_them(name, stage, torch, compiled):
    staged, arrays = staged_for(name, stage, torch)

    staged.replay(arrays)(arrays)

    ahead, steps = compiled
    assert ahead == steps


def test_an_array_that_a_file_takes_in_another_dtype_has_that_dtype(
    stage, torch, compiled, monkeypatch
):
    staged, arrays = staged_for("apart", stage, torch)
    expected = {name: staged.plan.input_dtypes.get(name, staged.plan.dtype) for name in "xw"}
    assert expected == {"x": "float16", "w": "float16"}
    monkeypatch.setattr(Plan, "taken_as", lambda plan, step, name: expected.get(name, ""))
    given = [array.float() for array in arrays]

    staged.replay(given)(given)

    ahead, steps = compiled
    assert ahead == steps
    dtypes = [argument for _, arguments, _ in ahead for argument in arguments]
    assert dtypes.count((torch.float16, True)) >= len(given)


def test_what_a_function_of_whole_arrays_makes_has_a_known_layout(stage, torch, compiled):
    arrays = [torch.from_numpy(a).half() for a in normal((1024, 2048), (2048, 1024))]
    staged = stage(lambda x, w: bb.softmax(bb.sort(bb.exp(x), axis=0) @ w, axis=-1), *arrays)
    assert len(staged.plan.files) > 1
    assert staged.plan.calls

    staged.replay(arrays)(arrays)

    ahead, steps = compiled
    assert ahead == steps


def test_the_files_of_a_known_plan_are_not_compiled_again(stage, torch, compiled):
    staged, arrays = staged_for("chain", stage, torch)
    on_gpu = staged.on_gpu()
    staged.replay(arrays, on_gpu)(arrays)
    before = len(compiled[0])

    staged.replay(arrays, on_gpu)(arrays)

    assert len(compiled[0]) == before


def test_nothing_is_compiled_ahead_while_launches_are_captured(stage, torch, compiled, monkeypatch):
    staged, arrays = staged_for("chain", stage, torch)
    monkeypatch.setattr(Device, "is_capturing", lambda gpu: True)

    staged.replay(arrays)(arrays)

    ahead, steps = compiled
    assert steps
    assert not ahead


def test_arrays_that_do_not_fit_are_refused_by_the_step_that_takes_them(stage, torch, compiled):
    staged, arrays = staged_for("chain", stage, torch)
    given = [array.double() for array in arrays]

    with pytest.raises(bb.LaunchError, match="expected float16\n  launching "):
        staged.replay(given)(given)

    assert compiled == ([], [])


def test_no_more_is_made_than_there_is_room_for(stage, torch, compiled, monkeypatch):
    staged, arrays = staged_for("chain", stage, torch)
    made, empty = [], Device.empty
    monkeypatch.setattr(
        Device, "empty", lambda gpu, *given: made.append(given) or empty(gpu, *given)
    )
    monkeypatch.setattr(replay, "room", lambda device: 2 * 2048 * 3000 - 1)  # float16

    staged.replay(arrays)._compile_ahead(arrays)

    ahead, steps = compiled
    assert not made
    assert not ahead
    assert not steps
