"""bb.compile ahead of time, saving and loading, and the emitted kernels in the interpreter."""

import json

import numpy as np
import pytest

import blockbuster as bb
from blockbuster.runtime.run_plan import run_in_interpreter
from tests.compile.functions import (
    attention,
    close,
    doubled,
    normal,
    plain_attention,
    plain_several,
    several,
    with_custom,
)

SIZES = {"M": 40, "N": 48, "D": 32, "L": 16}


def compiled_attention(dtype="float32", machine="cpu"):
    program = bb.trace(attention, q="M D", k="N D", v="N L")
    return bb.compile(program, SIZES, dtype=dtype, machine=machine)


def arrays(m=40, n=48, dtype="float32"):
    return normal((m, 32), (n, 32), (n, 16), dtype=dtype)


def test_arrays_in_order_and_by_name():
    compiled = compiled_attention()
    q, k, v = arrays()

    for out in (compiled(q, k, v), compiled(q, v=v, k=k), compiled(k=k, q=q, v=v)):
        close(out, plain_attention(q, k, v))
    assert repr(compiled) == "<attention for cpu, float32: 1 kernels>"
    for wrong in ((q, k), (q, k, v, v)):
        with pytest.raises(TypeError, match="takes the arrays q, k, v, each once"):
            compiled(*wrong)
    with pytest.raises(TypeError, match="each once"):
        compiled(q, k, v, q=q)


def test_other_sizes_and_dtypes():
    compiled = compiled_attention()
    q, k, v = arrays()

    close(compiled(*arrays(7, 300)), plain_attention(*arrays(7, 300)))
    with pytest.raises(
        bb.LaunchError, match=r"k has shape \(48, 31\), expected \(N, D\) with D = 32"
    ):
        compiled(q, k[:, 1:], v)
    with pytest.raises(bb.LaunchError, match="q holds float16, expected float32"):
        compiled(*arrays(dtype="float16"))
    with pytest.raises(bb.LaunchError, match="is 0: attention is compiled for"):
        compiled(*arrays(0))


def test_wrong_arguments_of_compile():
    program = bb.trace(attention, q="M D", k="N D", v="N L")
    with pytest.raises(ValueError, match="unknown dim 'X' in sizes"):
        bb.compile(program, {**SIZES, "X": 1}, machine="cpu")
    with pytest.raises(ValueError, match="no size given for M"):
        bb.compile(program, {"N": 1, "D": 1, "L": 1}, machine="cpu")
    with pytest.raises(ValueError, match="dtype 'float64'"):
        bb.compile(program, SIZES, dtype="float64", machine="a100")


def test_saved_and_loaded(tmp_path):
    x, w = normal((6, 8), (8, 5))
    first = bb.jit(several).compiled_for(x, w)
    path = first.save(tmp_path / "there" / "several.json")

    loaded = bb.load(path)

    assert loaded.plan == first.plan
    for name, right in first(x, w).items():
        np.testing.assert_array_equal(loaded(x, w)[name], right)
    assert [file.name for file in path.parent.iterdir()] == ["several.json"]
    assert str(loaded.report).startswith("several: 2 kernels for cpu")


@pytest.mark.parametrize(
    "function", [lambda x: x + 1, lambda x: (x,), lambda x: [x, x + 1], lambda x: {"out0": x}]
)
def test_structure_is_saved(function, tmp_path):
    (x,) = normal((4, 4))
    compiled = bb.jit(function).compiled_for(x)

    result = bb.load(compiled.save(tmp_path / "f"))(x)

    assert type(result) is type(compiled(x))


def test_functions_that_can_be_imported_are_saved(tmp_path):
    (x,) = normal((4, 4))
    compiled = bb.jit(with_custom(doubled)).compiled_for(x)

    np.testing.assert_array_equal(bb.load(compiled.save(tmp_path / "f"))(x), compiled(x))
    with pytest.raises(ValueError, match=r"<lambda> cannot be saved: .* cannot be imported"):
        bb.jit(with_custom(lambda a: a)).compiled_for(x).save(tmp_path / "g")
    assert not (tmp_path / "g").exists()


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda text: text[:-200], "it is no JSON"),
        (lambda text: text.replace("float32", "float64"), "checksum"),
        (lambda text: text.replace("compiled/8", "compiled/9"), "its schema is"),
        (lambda text: json.dumps([1]), "its schema is None"),
    ],
)
def test_damaged_files(damage, reason, tmp_path):
    path = compiled_attention().save(tmp_path / "a.json")
    path.write_text(damage(path.read_text()))

    with pytest.raises(bb.LaunchError, match=f"(?s)a.json cannot be loaded: .*{reason}"):
        bb.load(path)


@pytest.mark.interpreter
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_emitted_kernels_in_the_interpreter(dtype):
    x, w = normal((40, 24), (24, 33), dtype=dtype)
    plan = bb.jit(several, machine="h100").plan_for(x, w)

    results = run_in_interpreter(plan, {"x": x, "w": w})

    expected = plain_several(x.astype(float), w.astype(float))
    for result, right in zip(results, expected.values(), strict=True):
        close(result, right, 1e-2 if dtype == "float16" else 1e-5)


@pytest.mark.interpreter
def test_another_size_of_the_class_in_the_interpreter():
    jitted = bb.jit(attention, machine="h100")
    small, large = [normal((n, 32), (n, 32), (n, 16)) for n in (144, 176)]
    plan = jitted.plan_for(*small)
    assert plan is jitted.plan_for(*large)

    (out,) = run_in_interpreter(plan, dict(zip("qkv", large, strict=True)))

    close(out, plain_attention(*large))


def test_a_program_of_mixed_dtypes_takes_its_inputs_after_it_was_saved(tmp_path):
    x, y = np.ones((4, 4), np.float32), np.full((4, 4), 2.0)
    first = bb.jit(lambda x, y: x + y[:1]).compiled_for(x, y)

    loaded = bb.load(first.save(tmp_path / "mixed.json"))

    assert loaded.plan == first.plan
    assert loaded.plan.input_dtypes == {"x": "float32"}
    np.testing.assert_array_equal(loaded(x, y), x + y)
    for given in ((y, y), (x, x), (y, x)):
        with pytest.raises(bb.LaunchError, match=r"holds float(32|64), expected float(32|64)"):
            loaded(*given)
        with pytest.raises(bb.LaunchError, match=r"holds float(32|64), expected float(32|64)"):
            first(*given)


def test_a_dict_compiled_ahead_of_time(tmp_path):
    (x,) = normal((4, 6))
    program = bb.trace(lambda x: {"a": x * 2, "b": x}, x="M N")
    compiled = bb.compile(program, dict(M=4, N=6), "float32", "cpu")
    for one in (compiled, bb.load(compiled.save(tmp_path / "f"))):
        made = one(x)
        np.testing.assert_array_equal(made["a"], x * 2)
        np.testing.assert_array_equal(made["b"], x)
