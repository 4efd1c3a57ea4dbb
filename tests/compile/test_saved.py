"""Saved programs are read as data: whatever a file holds, loading runs nothing of it."""

import hashlib
import json
import os
import random
import sys
from copy import deepcopy

import numpy as np
import pytest
from hypothesis import settings

import blockbuster as bb
from blockbuster.check import loading
from blockbuster.check.first_result import compare_first
from blockbuster.emission import emit
from blockbuster.ir.reading import Wrong
from blockbuster.runtime.first_launch import Finding
from blockbuster.runtime.saved_launches import read_launches
from tests.compile.functions import (
    attention,
    doubled,
    fails_if_negative,
    several,
    with_custom,
)
from tests.edited_json import STRANGE, changed, places, put, random_change
from tests.parameters import rest_slow

(x_of_all,) = (np.arange(24.0, dtype=np.float32).reshape(4, 6),)


def test_a_kernel_with_loops_in_chunks_comes_back(tmp_path):
    """How many chunks there are is the kernel's own: no array shows it."""
    program = bb.trace(lambda x, w: x @ w, x="M K", w="K N")
    compiled = bb.compile(program, dict(M=64, K=8192, N=64), machine="sm_90")
    (file,) = compiled.plan.files
    assert file.considered.best.program.chunks

    loaded = bb.load(compiled.save(tmp_path / "a.json"))

    assert loaded.plan == compiled.plan


def test_what_a_launcher_does_is_read_by_type():
    """Two kernels, of which the first is kept and the second loads by descriptors."""
    program = bb.trace(lambda x, w, g: x @ (w * g[:, None]), x="M K", w="K N", g="K")
    text = "block nest 1 K 32, N 32\nblock nest 2 M 32, K 32, N 32\nwarps 4\n"
    text += "stage nest 2 K 3 by descriptors\n"
    graph, sizes = bb.fuse(bb.lower(program)).snapshots[0], dict(M=64, K=64, N=64)
    kernel = emit(graph, sizes, "float16", "sm_90", schedule=text, constant=("w", "g"))
    data = json.loads(json.dumps(kernel.launches))

    assert read_launches(data) == kernel.launches
    assert kernel.launches.keeps
    assert any(start.descriptors for start in kernel.launches.starts)
    draw, refused = random.Random(0), 0
    for place in [place for place in places(data) if place]:
        try:
            edited = changed(data, place, random_change(draw))
        except (IndexError, TypeError):  # it does not fit there
            continue
        try:
            read_launches(edited)
        except Wrong:
            refused += 1
    assert refused > 50


def turned_columns(x, w):
    """A slice, a split, a merge, and a concatenation that are copies."""
    y = bb.split_heads(x @ w, 2)
    z = bb.merge_heads(bb.softmax(y @ y.mT))
    both = bb.concat([z, z], axis=0)
    return bb.sum(np.sort(both)[1:3] @ both.T, axis=-1, keepdims=True)


def saved(tmp_path, function, *arrays):
    compiled = bb.jit(function).compiled_for(*arrays)
    return compiled, compiled.save(tmp_path / "a.json")


PROGRAMS = {
    "attention": (attention, [x_of_all] * 3),
    "several": (several, [x_of_all, x_of_all.T.copy()]),
    "custom": (with_custom(doubled), [x_of_all]),
    "copies": (turned_columns, [x_of_all, np.ones((6, 8), np.float32)]),
    "sorted rows": (lambda x: np.sort(x, axis=-1)[1:3] * 2, [x_of_all]),
    "ones": (lambda x: bb.custom(doubled, x[:, :1], shape=(x.shape[0], 1)) + x, [x_of_all]),
}


@pytest.fixture
def no_code(monkeypatch):
    """Nothing is imported, compiled or run, and no file is written, while a test looks on."""
    watched = {"on": False, "seen": []}
    harmless = ("open", "os.listdir", "os.scandir")

    def hook(event, arguments):
        if not watched["on"]:
            return
        writes = event == "open" and (arguments[2] or 0) & (os.O_WRONLY | os.O_RDWR)
        runs = event in ("compile", "exec", "import", "os.system", "subprocess.Popen")
        if writes or runs or (event.startswith(("socket", "os.")) and event not in harmless):
            watched["seen"].append((event, arguments))

    sys.addaudithook(hook)

    def load(path):
        modules = set(sys.modules)
        watched["on"] = True
        try:
            return bb.load(path)
        finally:
            watched["on"] = False
            assert watched["seen"] == []
            assert set(sys.modules) == modules

    yield load
    watched["on"] = False


def resigned(content):
    """The text of a file with this content and the checksum that belongs to it."""
    plain = {key: content.get(key) for key in ("plan", "shape", "program")}
    digest = hashlib.sha256(json.dumps(plain, sort_keys=True, separators=(",", ":")).encode())
    return json.dumps({**content, "sha256": digest.hexdigest()})


@pytest.mark.parametrize("name", PROGRAMS)
def test_all_kinds_of_steps_are_saved(name, tmp_path, no_code):
    function, arrays = PROGRAMS[name]
    compiled, path = saved(tmp_path, function, *arrays)
    loaded = no_code(path)
    again = loaded.save(tmp_path / "again.json")

    assert again.read_bytes() == path.read_bytes()
    head = str(compiled.report).splitlines()[0]
    assert str(loaded.report).splitlines()[0] == head.split(";")[0]
    right, found = compiled(*arrays), loaded(*arrays)
    for key in right if isinstance(right, dict) else (slice(None),):
        np.testing.assert_array_equal(found[key], right[key])


def test_every_changed_byte_is_the_same_plan_or_an_error(tmp_path, no_code):
    compiled, path = saved(tmp_path, *PROGRAMS["ones"][:1], *PROGRAMS["ones"][1])
    data = path.read_bytes()
    choose = random.Random(0)
    same = 0
    for position in range(0, len(data), max(len(data) // 150, 1)):
        for byte in {data[position] ^ 1, data[position] ^ 0x80, choose.randrange(256), 0, 0x5C}:
            path.write_bytes(data[:position] + bytes([byte]) + data[position + 1 :])
            same += loads_as(compiled.plan, path, no_code)
        path.write_bytes(data[:position])
        same += loads_as(compiled.plan, path, no_code)
        path.write_bytes(data[:position] + data[position + 1 :])
        same += loads_as(compiled.plan, path, no_code)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.json"]
    assert same > 0


def loaded_or_refused(load, path):
    """The plan, or None where the error names the file; no other error passes."""
    try:
        return load(path)
    except bb.LaunchError as error:
        said = str(error)
    assert "a.json cannot be loaded: " in said
    assert all(line.isprintable() for line in said.split("\n"))
    return None


def loads_as(plan, path, load):
    loaded = loaded_or_refused(load, path)
    if loaded is None:
        return False
    written = [(step.name, str(step.fn)) for step in loaded.plan.calls]
    assert loaded.source == plan.source
    assert written
    assert loaded.plan.results == plan.results
    return True


@pytest.mark.parametrize("name", rest_slow(PROGRAMS, ["copies", "several"]))
def test_what_loads_of_a_changed_file_runs_or_names_the_file(name, tmp_path, no_code):
    """Also at the second call, which another path runs."""
    function, arrays = PROGRAMS[name]
    _, path = saved(tmp_path, function, *arrays)
    content = json.loads(path.read_text())
    choose = random.Random(name)
    found = [*places({key: content[key] for key in ("plan", "shape", "program")})][1:]
    outcomes = {"refused": 0, "fails": 0, "runs": 0}
    for _ in range(settings().max_examples * 15):
        path.write_text(resigned(changed(content, choose.choice(found), random_change(choose))))
        loaded = loaded_or_refused(no_code, path)
        outcome = "refused"
        for _ in range(2 if loaded else 0):
            outcome = "runs"
            try:
                loaded(*arrays)
            except bb.BlockbusterError:
                outcome = "fails"
        outcomes[outcome] += 1
    assert min(outcomes.values()) > 0, outcomes


def test_an_error_of_a_loaded_program_names_the_file_and_the_function(tmp_path, no_code):
    _, path = saved(tmp_path, with_custom(fails_if_negative), x_of_all)
    loaded = no_code(path)
    loaded(x_of_all)

    for arrays in (-x_of_all, -x_of_all[:2], -x_of_all):
        with pytest.raises(bb.LaunchError) as info:
            loaded(arrays)
        assert isinstance(info.value.__cause__, RuntimeError)
        said = str(info.value)
        assert "a.json cannot be run: RuntimeError: less than 0" in said
        assert "in fails_if_negative" in said
        assert "which runs between kernels, on arrays" in said
        assert "save the compiled program again" in said


def test_wrong_arguments_of_a_loaded_program_are_no_fault_of_the_file(tmp_path, no_code):
    _, path = saved(tmp_path, attention, *PROGRAMS["attention"][1])
    loaded = no_code(path)

    for arrays in ([x_of_all], [x_of_all, x_of_all, x_of_all[:2]], [None] * 3, [[1.0]] * 3):
        with pytest.raises((TypeError, ValueError, bb.LaunchError)) as info:
            loaded(*arrays)
        assert "a.json" not in str(info.value)


@pytest.mark.parametrize("name", rest_slow(["several", "custom", "copies", "ones"], ["custom"]))
def test_every_changed_field_of_a_resigned_file_is_a_plan_or_an_error(name, tmp_path, no_code):
    function, arrays = PROGRAMS[name]
    _, path = saved(tmp_path, function, *arrays)
    content = json.loads(path.read_text())
    choose = random.Random(0)
    outcomes = {True: 0, False: 0}
    for place in places({key: content[key] for key in ("plan", "shape", "program")}):
        if not place:
            continue
        changes = [put(value) for value in choose.sample(STRANGE, 4)]
        changes.append(lambda at, key: at.__delitem__(key))
        changes.append(lambda at, key: at.append(at[key]) if isinstance(at, list) else None)
        changes.append(lambda at, key: at.__setitem__("more", 1) if isinstance(at, dict) else None)
        for change in changes:
            path.write_text(resigned(changed(content, place, change)))
            loaded = loaded_or_refused(no_code, path)
            outcomes[loaded is not None] += 1
            if loaded is not None:
                assert str(loaded.report)
                assert repr(loaded)
                loaded.save(tmp_path / "b.json")
    assert outcomes[False] > 3 * outcomes[True] > 0


@pytest.mark.parametrize("name", rest_slow(["several", "custom", "copies"], ["custom"]))
def test_every_changed_field_of_its_array_program_is_one_or_an_error(name, tmp_path, no_code):
    function, arrays = PROGRAMS[name]
    _, path = saved(tmp_path, function, *arrays)
    content = json.loads(path.read_text())
    choose = random.Random(0)
    outcomes = {True: 0, False: 0}
    found = [*places({"program": content["program"]})][1:]
    for place in choose.sample(found, 40):
        for value in choose.sample(STRANGE, 4):
            path.write_text(resigned(changed(content, place, put(value))))
            loaded = loaded_or_refused(no_code, path)
            outcomes[loaded is not None] += 1
            if loaded is not None:
                assert loaded.save(tmp_path / "b.json")
    assert outcomes[False] > 3 * outcomes[True]


@pytest.mark.parametrize(
    ("place", "value", "reason"),
    [
        (("inputs", 0, 0), "other", r"program.inputs has other inputs than the plan"),
        (("outputs", 0, 0), "other", r"program.outputs has other outputs than the plan"),
        (("rules",), [["A", [[["B"], 1, 1]], True]], r"program.rules has other rules"),
        (("equations", 0, "op"), "tan", r"program.equations\[0\].op is 'tan', expected one of"),
    ],
)
def test_an_array_program_of_another_plan(place, value, reason, tmp_path, no_code):
    _, path = saved(tmp_path, *PROGRAMS["custom"][:1], *PROGRAMS["custom"][1])
    content = changed(json.loads(path.read_text()), ("program", *place), put(value))
    path.write_text(resigned(content))
    with pytest.raises(bb.LaunchError, match=f"a.json cannot be loaded: {reason}"):
        no_code(path)


def test_a_loaded_program_judges_as_the_traced_one(torch, tmp_path, no_code, monkeypatch):
    """Also where it calls functions of whole arrays, which it knows by name."""
    programs = []
    monkeypatch.setattr(loading, "comparison", programs.append)
    for name in ("custom", "copies"):
        function, arrays = PROGRAMS[name]
        _, path = saved(tmp_path, function, *arrays)
        programs.clear()
        loaded = no_code(path)
        (program,) = programs
        tensors = [torch.from_numpy(array) for array in arrays]

        def run(given, *, loaded=loaded):
            return [loaded(*given)]

        def wrong(given, *, run=run):
            return [result + 0.5 for result in run(given)]

        assert compare_first(program, run, tensors, run(tensors)) == Finding()
        assert (
            "out has a largest error"
            in compare_first(program, wrong, tensors, wrong(tensors)).wrong
        )


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "it is no JSON"),
        (b"\xff\xfe", "it is no text in UTF-8: byte 0 is wrong"),
        (b"[" * 1_000_000, "it is nested deeper than any file of ours"),
        (b'{"plan":' * 200_000, "it is nested deeper than any file of ours"),
        (b"9" * 100_000, "it is no JSON"),
        (b'{"schema": NaN}', "NaN is no number"),
        (b'{"schema": -Infinity}', "-Infinity is no number"),
        (b'{"schema": 1, "schema": 2}', "'schema' stands twice"),
        (b'{"schema": "\\u001b[2J"}', r"its schema is '\\x1b\[2J'"),
        (b"null", "its schema is None"),
    ],
)
def test_what_is_no_saved_program(data, reason, tmp_path, no_code):
    path = tmp_path / "a.json"
    path.write_bytes(data)
    with pytest.raises(bb.LaunchError, match=f"a.json cannot be loaded: .*{reason}"):
        no_code(path)


def test_deep_values_inside_a_resigned_file(tmp_path, no_code):
    _, path = saved(tmp_path, *PROGRAMS["ones"][:1], *PROGRAMS["ones"][1])
    content = json.loads(path.read_text())
    call = next(step["call"] for step in content["plan"]["steps"] if "call" in step)
    for depth in (2, 50, 150):
        fn = call["fn"]
        for _ in range(depth):
            fn = {"class": "WholeArrays", "fields": {**call["fn"]["fields"], "fn": fn}}
        deep = deepcopy(content)
        next(s for s in deep["plan"]["steps"] if "call" in s)["call"]["fn"] = fn
        path.write_text(resigned(deep))
        with pytest.raises(
            bb.LaunchError, match=r"fn\.fields\.fn\.class is 'WholeArrays', expected one of"
        ):
            no_code(path)


def test_what_is_no_file(tmp_path, no_code):
    os.mkfifo(tmp_path / "pipe")
    for path, reason in (
        (tmp_path, "it is no file"),
        (tmp_path / "pipe", "it is no file"),
        (tmp_path / "gone", "No such file or directory"),
        (tmp_path / "gone" / "a", "No such file or directory"),
        ("/dev/zero", "it is no file"),
        (tmp_path / ("a" * 300), "File name too long"),
    ):
        with pytest.raises(bb.LaunchError, match=f"cannot be loaded: {reason}"):
            no_code(path)


def test_functions_are_imported_when_they_are_called(tmp_path, no_code, monkeypatch):
    place = tmp_path / "given_by_a_user.py"
    place.write_text("def twice(a):\n    return a * 2\n")
    monkeypatch.syspath_prepend(tmp_path)
    import given_by_a_user

    _, path = saved(tmp_path, with_custom(given_by_a_user.twice), x_of_all)
    monkeypatch.delitem(sys.modules, "given_by_a_user")
    loaded = no_code(path)

    np.testing.assert_array_equal(loaded(x_of_all), (x_of_all + 1) * 2 - 1)
    assert "given_by_a_user" in sys.modules

    monkeypatch.delitem(sys.modules, "given_by_a_user")
    place.unlink()
    with pytest.raises(bb.LaunchError, match=r"calls given_by_a_user.twice, which cannot be im"):
        no_code(path)(x_of_all)
