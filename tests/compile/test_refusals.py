"""Where Triton refuses a kernel, the next best choice runs, and the report says why."""

import os
import re
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

import blockbuster as bb
from blockbuster.check import loading
from blockbuster.emit.target.compiler import Compilation, Refusal, accepted
from blockbuster.emit.target.inspection import Findings
from blockbuster.emit.target.load import load_module
from blockbuster.runtime import compiled, file_launches, replay
from blockbuster.runtime.first_launch import Finding
from blockbuster.runtime.tensors import Arrays
from tests.compile.functions import attention, doubled, normal, with_custom
from tests.compile.stand_ins import Started

NOTHING_FOUND = SimpleNamespace(finished=Findings)
COMPLAINT = b"triton: /x/Pass.cpp:341: void run(): Assertion `loopResult.hasOneUse()' failed.\n"


class Kernel:
    """A kernel that compiles unless ``refuses`` says otherwise, and does nothing."""

    def __init__(self, kernel, refuses, launched, text):
        self.__name__, self.arg_names = kernel.__name__, kernel.arg_names
        self.text, self.refuses, self.launched = text, refuses, launched

    def warmup(self, *arguments, grid, **options):
        if self.refuses(options):
            os.write(2, COMPLAINT)
            raise RuntimeError("PassManager::run failed")
        return Started([])

    def __getitem__(self, grid):
        return lambda *arguments, **options: self.launched.append(options)


@pytest.fixture
def refusing(torch, monkeypatch):
    """Tensors of the CPU taken for those of a GPU whose compiler refuses some kernels."""

    def zeros(shape, dtype, like):
        return torch.zeros(shape, dtype=getattr(torch, dtype))

    def install(refuses):
        launched = []

        def load(text):
            module = load_module(text)
            monkeypatch.setattr(module.triton.knobs.runtime, "interpret", True)
            monkeypatch.setattr(module, "empty", zeros)
            for entry in module.KERNELS:
                if not isinstance(entry["function"], Kernel):
                    made = Kernel(entry["function"], refuses, launched, text)
                    monkeypatch.setitem(entry, "function", made)
            return module

        gpu = SimpleNamespace(
            dtype=lambda name: getattr(torch, name),
            empty=lambda shape, steps, dtype: torch.zeros(shape, dtype=dtype),
            poisoned=lambda shape, steps, dtype: torch.zeros(shape, dtype=dtype),
            stream=lambda: 77,
            elsewhere=lambda: False,
            current=nullcontext,
            is_capturing=lambda: False,
        )
        monkeypatch.setattr(compiled, "Gpu", lambda index: gpu)
        monkeypatch.setattr(replay, "load_module", load)
        monkeypatch.setattr(Arrays, "on_gpu", True)
        return launched

    return install


@pytest.fixture
def tensors(torch):
    return [torch.from_numpy(a) for a in normal((384, 64), (384, 64), (384, 64))]


def product(x, y):
    return x @ y.T


def largest(options):
    return max(size for name, size in options.items() if name.startswith("BLOCK_"))


def test_smaller_tiles_are_tried_and_the_report_says_why(refusing, tensors, capfd):
    launched, tensors = refusing(lambda options: largest(options) >= 32), tensors[:2]
    jitted = bb.jit(product, machine="h200", check=False)

    jitted(*tensors)
    jitted(*tensors)

    assert len(launched) == jitted.plan_for(*tensors).kernels
    assert max(map(largest, launched)) == 16
    report = jitted.report_for(*tensors)
    why = "Pass.cpp:341: Assertion `loopResult.hasOneUse()' failed"
    assert any("tiles" in note and why in note for note in report.notes)
    assert "16" in str(report.details).split("tiles:")[1].splitlines()[0]


def test_what_is_known_to_be_wrong_is_not_launched(refusing, tensors, monkeypatch):
    """A kernel that compiles, but to a reshape that exchanges rows."""
    layouts = ("sizePerThread = [1, 1{0}], threadsPerWarp = [32, 1{0}], warpsPerCTA = [4, 1{0}]",)
    text = "".join(
        f"#{name} = #ttg.blocked<{{{layouts[0].format(more)}, order = {order}}}>\n"
        for name, more, order in (("a", "", "[0, 1]"), ("b", ", 1", "[2, 0, 1]"))
    )
    text += "%1 = tt.reshape %0 allow_reorder : tensor<256x8xf32, #a> -> tensor<256x1x8xf32, #b>\n"

    def warmup(kernel, *arguments, grid, **options):
        return Started([], ttgir=text if kernel.refuses(options) else "")

    launched = refusing(lambda options: largest(options) >= 32)
    monkeypatch.setattr(Kernel, "warmup", warmup)
    jitted = bb.jit(product, machine="h200", check=False)

    jitted(*tensors[:2])

    assert max(map(largest, launched)) == 16
    why = "rows of its 256x8 tile are exchanged"
    assert any(why in note for note in jitted.report_for(*tensors[:2]).notes)


def test_the_next_choice_is_for_the_sizes_at_hand(torch, refusing):
    """128 and 192 are of one class at tiles of 64, but not at every other snapshot's tiles."""
    refusing(lambda options: largest(options) in (64, 128))
    jitted = bb.jit(lambda x, w: bb.softmax(x @ w) @ w.T, machine="h200", check=False)

    for rows in (192, 128, 320):
        x, w = (torch.from_numpy(a) for a in normal((rows, 64), (64, 192), dtype="float16"))
        assert jitted(x, w).shape == (rows, 64)
        assert jitted(x, w).shape == (rows, 64)


def test_another_choice_is_taken_before_smaller_tiles(refusing, tensors):
    refused = []

    def only_the_first(options):
        refused.append(options)
        return len(refused) <= 2  # once, and once more for its reason

    launched = refusing(only_the_first)
    jitted = bb.jit(attention, machine="h200", check=False)
    first = jitted.plan_for(*tensors).files[0].considered.best

    jitted(*tensors)

    best = jitted.plan_for(*tensors).files[0].considered.best
    assert best.key != first.key
    assert "smaller tiles" not in best.name
    assert launched
    refusal, taken = jitted.report_for(*tensors).notes
    assert refusal.startswith(f"snapshot {first.snapshot} is no choice: with tiles ")
    assert taken == f"taken instead: {best.name}"


@pytest.fixture
def checking(refusing, tmp_path, monkeypatch):
    """The same, where first results are compared: ``wrong(count)`` says what the n-th one has."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    codes = {}

    def install(wrong):
        launched, compared = refusing(lambda options: False), []

        def compare(program, run, tensors, results):
            compared.append(program.name)
            return Finding(wrong(len(compared)))

        def code(kernel, arguments, options):
            made = Started([])
            text = f"{kernel.text} {sorted(options.items(), key=str)}"
            made.kernel = codes.setdefault(text, b"%d" % len(codes))
            made.asm = {"ptx": "a text"}
            return Compilation(kernel.__name__, made, "ptxas 13.3.0", (), NOTHING_FOUND)

        monkeypatch.setattr(file_launches, "compiled_for_launch", code)
        monkeypatch.setattr(loading, "compare_first", compare)
        vars(compiled.Gpu(0)).update(
            name="a device", versions="versions", is_probed=lambda assemblers: True,
            is_capturing=lambda: False, fault=lambda: "",
        )  # fmt: skip
        return launched, compared

    return install


def test_a_wrong_first_result_is_not_returned(checking, tensors):
    _, compared = checking(lambda count: "out is off" if count == 1 else "")
    jitted = bb.jit(attention, machine="h200")
    first = jitted.plan_for(*tensors)

    with pytest.warns(RuntimeWarning, match=r"for out is not used, .* out is off") as warned:
        jitted(*tensors)
    jitted(*tensors)

    assert len(compared) == 2
    assert len(warned) == 1
    assert "reproduces it" in str(warned[0].message)
    assert jitted.plan_for(*tensors) is not first
    assert any("out is off" in note for note in jitted.report_for(*tensors).notes)


def test_what_passed_is_not_compared_in_another_process(checking, tensors):
    _, compared = checking(lambda count: "")
    bb.jit(attention, machine="h200")(*tensors)
    bb.jit(attention, machine="h200")(*tensors)  # remembers nothing but what is on the disk
    assert len(compared) == 1


def test_what_was_wrong_is_not_launched_in_another_process(checking, tensors):
    launched, compared = checking(lambda count: "out is off" if count == 1 else "")
    with pytest.warns(RuntimeWarning, match="out is off"):
        bb.jit(attention, machine="h200")(*tensors)
    launched.clear()
    with pytest.warns(RuntimeWarning, match="failed its check earlier: out is off"):
        bb.jit(attention, machine="h200")(*tensors)
    assert len(compared) == 2


def test_check_can_be_left_out(checking, tensors):
    _, compared = checking(lambda count: "out is off")
    bb.jit(attention, machine="h200", check=False)(*tensors)
    assert not compared


def test_where_all_are_wrong_nothing_is_returned(checking, tensors):
    checking(lambda count: "out is off")
    with (
        pytest.warns(RuntimeWarning, match="out is off"),
        pytest.raises(bb.EmitError, match="no kernel compiles and is right"),
    ):
        bb.jit(bb.softmax, machine="h200")(tensors[0])


def test_all_are_refused(refusing, tensors):
    refusing(lambda options: True)

    every = r"(?s)no kernel compiles and is right.*snapshot 1.*unfused program"
    with pytest.raises(bb.EmitError, match=every):
        bb.jit(bb.softmax, machine="h200", check=False)(tensors[0])


def test_one_kernel_stays_one_kernel(refusing, tensors):
    refusing(lambda options: largest(options) >= 64)
    jitted = bb.jit(attention, one_kernel=True, machine="h200", check=False)

    jitted(*tensors)
    assert jitted.plan_for(*tensors).kernels == 1


def test_functions_between_kernels_stay(refusing, tensors):
    refusing(lambda options: largest(options) >= 64)
    jitted = bb.jit(with_custom(doubled), machine="h200", check=False)

    assert jitted(tensors[0]).shape == tensors[0].shape
    assert jitted.plan_for(tensors[0]).calls


def test_ahead_of_time_and_loaded(refusing, tensors, tmp_path):
    program = bb.trace(attention, q="M D", k="N D", v="N L")
    sizes = {"M": 384, "N": 384, "D": 64, "L": 64}
    ahead = bb.compile(program, sizes, dtype="float32", machine="h200", check=False)
    path = ahead.save(tmp_path / "a.json")
    refusing(lambda options: largest(options) >= 64)

    ahead(*tensors)

    assert ahead.report.notes
    with pytest.raises(bb.EmitError, match=r"(?s)no kernel for out.*compile the program again"):
        bb.load(path)(*tensors)


@pytest.fixture
def saved(checking, tensors, tmp_path):
    """A program that was saved where nothing has been compared, and what is compared after that."""
    program = bb.trace(attention, q="M D", k="N D", v="N L")
    sizes = {"M": 384, "N": 384, "D": 64, "L": 64}
    ahead = bb.compile(program, sizes, dtype="float32", machine="h200")

    def install(wrong):
        launched, compared = checking(wrong)
        return ahead.save(tmp_path / "a.json"), launched, compared

    return install


def test_what_was_loaded_is_compared_with_its_program(saved, tensors, tmp_path, monkeypatch):
    path, _, _ = saved(lambda count: "")
    programs = []

    def compare(program, run, tensors, results):
        programs.append(program)
        return Finding()

    monkeypatch.setattr(loading, "compare_first", compare)
    loaded = bb.load(path)
    loaded(*tensors)
    loaded(*tensors)

    assert programs == [bb.trace(attention, q="M D", k="N D", v="N L")]
    assert loaded.save(tmp_path / "again.json").read_bytes() == path.read_bytes()


def test_a_wrong_first_result_of_what_was_loaded_is_an_error(saved, tensors, tmp_path):
    path, launched, compared = saved(lambda count: "out is off")
    path = bb.load(path).save(tmp_path / "again.json")
    loaded = bb.load(path)

    error = r"(?s)no kernel for out: out is off.*reproduce it: (\S+\.py).*compile the program again"
    with pytest.raises(bb.EmitError, match=error) as refused:
        loaded(*tensors)
    (evidence,) = re.search(error, str(refused.value)).groups()
    assert Path(evidence).read_text().startswith("# out is off\n")
    assert len(compared) == 1

    launched.clear()
    for again in (loaded, bb.load(path)):
        with pytest.raises(bb.EmitError, match="out is off"):
            again(*tensors)
    assert len(compared) == 1
    assert not launched


def test_what_was_loaded_may_answer_unchecked(saved, tensors):
    path, _, compared = saved(lambda count: "out is off")
    bb.load(path, check=False)(*tensors)
    assert not compared


def test_a_program_that_cannot_be_saved_is_told(torch, saved, tensors, tmp_path):
    _, _, compared = saved(lambda count: "")

    def function(x):
        bb.custom(lambda array: array, x, shape=x.shape)  # no result needs it
        return x * 2

    program = bb.trace(function, x="M D")
    sizes = {"M": 256, "D": 64}
    path = bb.compile(program, sizes, dtype="float32", machine="h200").save(tmp_path / "b.json")
    loaded = bb.load(path)
    loaded(tensors[0])
    assert not compared
    why = "first results are not compared: the file holds no array program"
    assert loaded.report.notes == (why,)
    assert bb.load(path, check=False).report.notes == ()
    assert loaded.save(tmp_path / "again.json").read_bytes() == path.read_bytes()


def test_errors_of_a_launch_are_no_refusals(refusing, tensors, monkeypatch):
    refusing(lambda options: False)

    def broken(self, grid):
        raise RuntimeError("an illegal memory access")

    monkeypatch.setattr(Kernel, "__getitem__", broken)
    with pytest.raises(RuntimeError, match="an illegal memory access"):
        bb.jit(attention, machine="h200", check=False)(*tensors)


def test_what_triton_says_itself_is_the_reason(torch):
    from triton.runtime.errors import OutOfResources

    def fails():
        raise OutOfResources(300_000, 232_448, "shared memory")

    with pytest.raises(Refusal, match=r"Triton \S+ refuses a_kernel: out of resource: shared"):
        accepted("a_kernel", fails)


SUMS = """
import blockbuster as bb
from blockbuster.check import loading
from blockbuster.emit.target.compiler import compile_kernel
for axis in (0, 1):
    def function(x):
        s = x.sum(axis)
        return s * s + bb.exp(s), s
    graph = bb.fuse(bb.lower(bb.trace(function, x="M N"))).final
    compile_kernel(bb.emit(graph, dict(M=370, N=7000), "float32"))
"""


def test_sums_that_are_read_twice_compile(torch, tmp_path):
    """Triton 3.6 asserts that what a loop adds up is read once; the text sees to it."""
    environment = {**os.environ, "TRITON_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", SUMS]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr[-2000:]
